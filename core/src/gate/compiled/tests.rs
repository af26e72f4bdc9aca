//! The compiled form says what the expression says (wire-format.md L1–L5, J5).

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Short pointers that often lead somewhere in [`input`], and often to the same place.
fn pointer() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop::sample::select(vec!["a", "bb", "b~1", "0", "1", "-", ""]),
        0..4,
    )
    .prop_map(|tokens| tokens.iter().map(|token| format!("/{token}")).collect())
}

fn scalar() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(-1.5),
        json!("a"),
        json!("bb"),
        json!([1, "a", true]),
        json!({}),
    ])
}

fn input() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 40, 6, |inner| {
        let name = prop::sample::select(vec!["a", "bb", "b/", "0", "", "cc", "d"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name, inner, 0..6).prop_map(|members| json!(members)),
        ]
    })
}

fn expr() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        scalar().prop_map(|value| json!({ "literal": value })),
        pointer().prop_map(|at| json!({ "read": at })),
        pointer().prop_map(|at| json!({ "exists": at })),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..5).prop_map(|all| json!({ "and": all })),
            prop::collection::vec(inner.clone(), 1..5).prop_map(|all| json!({ "or": all })),
            inner.prop_map(|one| json!({ "not": one })),
            (
                prop::sample::select(vec!["eq", "ne", "lt", "le", "gt", "ge", "in"]),
                two
            )
                .prop_map(|(operator, (left, right))| json!({ operator: [left, right] })),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn l2_l5_compiled_and_written_form_agree(expr in expr(), input in input(), wide in any::<bool>()) {
        let mut input = input;
        if let (true, Value::Object(members)) = (wide, &mut input) {
            members.extend((0..40).map(|n| (format!("m{n}"), json!(n))));
        }
        // By serde, since L6 would refuse what can only fail.
        let expr: Expr = serde_json::from_value(expr).unwrap();
        let gate = Gate::from(expr.clone());
        prop_assert_eq!(gate.evaluate(&input), expr.evaluate(&input));
    }
}

#[test]
fn l2_a_pointer_longer_than_any_value_and_more_pointers_than_slots_are_still_answered() {
    let long = "/a".repeat(20_000);
    let many: Vec<Value> = (0..60)
        .map(|n| json!({"exists": format!("/m{n}")}))
        .collect();
    let wide = json!({"m59": null});
    for (expr, truth) in [
        (json!({"not": {"exists": long}}), true),
        (json!({ "or": many }), true),
        (json!({ "and": many }), false),
    ] {
        let gate = Gate::from(serde_json::from_value::<Expr>(expr).unwrap());
        assert_eq!(gate.evaluate(&wide), Ok(truth));
    }
}

#[test]
fn j5_texts_are_told_apart_at_every_length() {
    for length in 0..40 {
        let text = "a".repeat(length);
        let gate = json!({"eq": [{"read": ""}, {"literal": text}]});
        let gate = Gate::from(serde_json::from_value::<Expr>(gate).unwrap());
        assert_eq!(gate.evaluate(&json!(text)), Ok(true));
        assert_eq!(gate.evaluate(&json!("a".repeat(length + 1))), Ok(false));
        for at in 0..length {
            let mut other = text.clone();
            other.replace_range(at..=at, "b");
            assert_eq!(gate.evaluate(&json!(other)), Ok(false), "{other}");
        }
    }
    // Fewer than four bytes are packed; a byte more to the left must not vanish.
    let gate = json!({"in": [{"read": ""}, {"literal": ["\0a", "b"]}]});
    let gate = Gate::from(serde_json::from_value::<Expr>(gate).unwrap());
    assert_eq!(gate.evaluate(&json!("a")), Ok(false));
    assert_eq!(gate.evaluate(&json!("\0a")), Ok(true));
    assert_eq!(gate.evaluate(&json!("\0b")), Ok(false));
    assert_eq!(gate.evaluate(&json!(7)), Ok(false));
}

#[test]
fn l1_a_gate_is_stored_as_its_expression() {
    let written = json!({"and": [{"exists": "/a"}, {"lt": [{"read": "/n"}, {"literal": 5}]}]});
    let gate: Gate = serde_json::from_value(written.clone()).unwrap();
    assert!(gate.compiled.is_some());
    assert_eq!(serde_json::to_value(&gate).unwrap(), written);
}
