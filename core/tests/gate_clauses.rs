//! The gate language, cell by cell (L1–L6): every operator on every pair of values against a table
//! of its own, what is evaluated and what is not, and expressions that are built to hurt.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what helps a test may stop it"
)]

use std::time::{Duration, Instant};

use serde_json::{Map, json};
use sluicegate_core::gate::{Expr, OPERATORS};
use sluicegate_core::schema::Schema;
use sluicegate_core::value::{Value, read};

const MISSING: &str = "gate.path-missing";
const MISMATCH: &str = "gate.type-mismatch";

/// `true`, `false`, or the code and, at run time, what the message names.
fn outcome(expr: &Value, input: &Value) -> String {
    match Expr::parse(expr, None).map(|expr| expr.evaluate(input)) {
        Ok(Ok(truth)) => truth.to_string(),
        Ok(Err(error)) => error.code.as_str().to_owned(),
        Err(faults) => faults[0].code.as_str().to_owned(),
    }
}

/// The rows of the table: every JSON type, with values that differ from their neighbours by little.
/// Two values are equal by J5 where their letters are.
const VALUES: [(char, &str, &str); 22] = [
    ('a', "null", "null"),
    ('b', "boolean", "true"),
    ('c', "boolean", "false"),
    ('d', "number", "0"),
    ('d', "number", "-0"),
    ('e', "number", "1"),
    ('e', "number", "1.0"),
    ('e', "number", "10e-1"),
    ('f', "number", "0.1"),
    ('g', "number", "9007199254740991"),
    ('h', "string", "\"\""),
    ('i', "string", "\"1\""),
    ('j', "string", "\"true\""),
    ('k', "string", "\"\\u00e9\""),
    ('l', "string", "\"e\\u0301\""),
    ('m', "array", "[]"),
    ('n', "array", "[1,\"1\",null]"),
    ('n', "array", "[1.0,\"\\u0031\",null]"),
    ('o', "array", "[null,\"1\",1]"),
    ('p', "object", "{}"),
    ('q', "object", "{\"a\":1,\"b\":[true]}"),
    ('q', "object", "{\"b\":[true],\"a\":1e0}"),
];

/// The order of the numbers among the rows, by letter.
const ORDER: &str = "dfeg";

/// The letters of the elements of an array.
fn elements(letter: char) -> &'static str {
    match letter {
        'n' | 'o' => "eia",
        _ => "",
    }
}

/// What the clauses give, by letters and types alone.
fn expected(operator: &str, left: (char, &str, &str), right: (char, &str, &str)) -> String {
    let ordered = |holds: fn(usize, usize) -> bool| {
        if (left.1, right.1) != ("number", "number") {
            return MISMATCH.to_owned();
        }
        let (a, b) = (ORDER.find(left.0).unwrap(), ORDER.find(right.0).unwrap());
        holds(a, b).to_string()
    };
    match operator {
        "eq" => (left.0 == right.0).to_string(),
        "ne" => (left.0 != right.0).to_string(),
        "lt" => ordered(|a, b| a < b),
        "le" => ordered(|a, b| a <= b),
        "gt" => ordered(|a, b| a > b),
        "ge" => ordered(|a, b| a >= b),
        "in" if right.1 == "array" => elements(right.0).contains(left.0).to_string(),
        "in" => MISMATCH.to_owned(),
        "and" | "or" => match (left.2, right.1, right.2, operator) {
            _ if left.1 != "boolean" => MISMATCH.to_owned(),
            ("false", _, _, "and") | ("true", _, _, "or") => left.2.to_owned(),
            (_, "boolean", truth, _) => truth.to_owned(),
            _ => MISMATCH.to_owned(),
        },
        other => panic!("{other}"),
    }
}

#[test]
fn l3_l4_l5_every_operator_on_every_pair_of_values() {
    let operand = |text: &str, name: &str, literal: bool| {
        if literal {
            json!({"literal": read(text).unwrap()})
        } else {
            json!({ "read": format!("/{name}") })
        }
    };
    let mut cells = 0;
    for operator in ["eq", "ne", "lt", "le", "gt", "ge", "in", "and", "or"] {
        for left in VALUES {
            for right in VALUES {
                let input = json!({"l": read(left.2).unwrap(), "r": read(right.2).unwrap()});
                let plain = expected(operator, left, right);
                for (left_literal, right_literal) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let operands = [
                        operand(left.2, "l", left_literal),
                        operand(right.2, "r", right_literal),
                    ];
                    let expr = json!({ operator: operands });
                    // L6: a literal that is no boolean is seen without evaluating anything.
                    let seen =
                        matches!(operator, "and" | "or") && right_literal && right.1 != "boolean";
                    let plain = if seen { MISMATCH } else { &plain };
                    assert_eq!(outcome(&expr, &input), plain, "{expr} {input}");
                    let turned = json!({ "not": expr });
                    let opposite = match plain {
                        "true" => "false",
                        "false" => "true",
                        code => code,
                    };
                    assert_eq!(outcome(&turned, &input), opposite, "{turned} {input}");
                    cells += 1;
                }
            }
        }
    }
    assert_eq!(cells, 9 * 22 * 22 * 4);
}

#[test]
fn l2_l3_l5_every_operator_of_one_operand_on_every_value() {
    for (_, kind, text) in VALUES {
        let value = read(text).unwrap();
        let input = json!({ "v": value });
        let truth = |yes: &str, no: &str| match text {
            "true" => yes.to_owned(),
            "false" => no.to_owned(),
            _ => MISMATCH.to_owned(),
        };
        assert_eq!(kind == "boolean", matches!(text, "true" | "false"));
        for operand in [json!({"read": "/v"}), json!({ "literal": value })] {
            assert_eq!(outcome(&operand, &input), truth("true", "false"));
            assert_eq!(
                outcome(&json!({ "not": operand }), &input),
                truth("false", "true")
            );
            assert_eq!(
                outcome(&json!({"and": [operand]}), &input),
                truth("true", "false")
            );
            assert_eq!(
                outcome(&json!({"or": [operand]}), &input),
                truth("true", "false")
            );
        }
        // L2: the whole input, and what lies in it.
        assert_eq!(
            outcome(&json!({"read": ""}), &value),
            truth("true", "false")
        );
        assert_eq!(outcome(&json!({"exists": ""}), &value), "true");
        assert_eq!(outcome(&json!({"exists": "/v"}), &input), "true");
        assert_eq!(outcome(&json!({"exists": "/w"}), &input), "false");
        let below = if matches!(text, "[]" | "{}") || !matches!(kind, "array" | "object") {
            "false"
        } else {
            "true"
        };
        let inside = if kind == "object" { "/v/a" } else { "/v/0" };
        assert_eq!(
            outcome(&json!({ "exists": inside }), &input),
            below,
            "{text}"
        );
        assert_eq!(outcome(&json!({"read": "/v/-"}), &input), MISSING);
        assert_eq!(outcome(&json!({"read": "/v/00"}), &input), MISSING);
    }
}

/// What one operand does: gives true or false, has another type, or is not there.
const KINDS: [&str; 4] = ["true", "false", "other", "missing"];

/// Every sequence of four kinds of operands: the outcome, and the one operand that ended it.
#[test]
fn l3_what_is_evaluated_and_what_is_not() {
    for operator in ["and", "or"] {
        let deciding = if operator == "and" { "false" } else { "true" };
        for code in 0..4_usize.pow(4) {
            let kinds: Vec<_> = (0..4).map(|i| KINDS[code / 4_usize.pow(i) % 4]).collect();
            let mut input = Map::new();
            for (i, kind) in kinds.iter().enumerate() {
                let value = match *kind {
                    "true" => json!(true),
                    "false" => json!(false),
                    "other" => json!("true"),
                    _ => continue,
                };
                input.insert(format!("p{i}"), value);
            }
            let operands: Vec<_> = (0..4)
                .map(|i| json!({ "read": format!("/p{i}") }))
                .collect();
            let expr = Expr::parse(&json!({ operator: operands }), None).unwrap();
            let result = expr.evaluate(&Value::Object(input));
            let end = kinds
                .iter()
                .position(|kind| *kind == deciding || *kind == "other" || *kind == "missing");
            match end.map(|at| (at, kinds[at])) {
                None => assert_eq!(result, Ok(deciding == "false"), "{kinds:?}"),
                Some((at, kind)) if kind != deciding => {
                    let error = result.unwrap_err();
                    let code = if kind == "other" { MISMATCH } else { MISSING };
                    assert_eq!(error.code.as_str(), code, "{kinds:?}");
                    // The tripwire: the message names the operand that was reached.
                    assert!(error.message.contains(&format!("\"/p{at}\"")), "{error}");
                }
                Some(_) => assert_eq!(result, Ok(deciding == "true"), "{kinds:?}"),
            }
        }
    }
}

#[test]
fn l3_the_leftmost_error_of_a_comparison_is_reported() {
    for operator in ["eq", "ne", "lt", "le", "gt", "ge", "in"] {
        let expr = json!({ operator: [{"read": "/l"}, {"read": "/r"}] });
        let expr = Expr::parse(&expr, None).unwrap();
        let named = |input: Value, place: &str, code: &str| {
            let error = expr.evaluate(&input).unwrap_err();
            assert_eq!(error.code.as_str(), code, "{operator} {input}");
            assert!(error.message.contains(&format!("\"{place}\"")), "{error}");
        };
        named(json!({}), "/l", MISSING);
        named(json!({"r": 1}), "/l", MISSING);
        named(json!({"l": 1}), "/r", MISSING);
        if matches!(operator, "lt" | "le" | "gt" | "ge") {
            named(json!({"l": "1"}), "/l", MISMATCH);
            named(json!({"l": null, "r": null}), "/l", MISMATCH);
            named(json!({"l": 1, "r": true}), "/r", MISMATCH);
        }
        if operator == "in" {
            named(json!({"l": [], "r": {"0": []}}), "/r", MISMATCH);
        }
    }
}

fn pointers(expr: &Value, input: Option<&Schema>) -> Vec<(String, &'static str)> {
    let faults = Expr::parse(expr, input).err().unwrap_or_default();
    faults
        .into_iter()
        .map(|fault| (fault.pointer, fault.code.as_str()))
        .collect()
}

#[test]
fn l1_operands_are_counted() {
    let truth = json!({"literal": true});
    let of = |operator: &str, count: usize| {
        pointers(&json!({ operator: vec![truth.clone(); count] }), None)
    };
    for operator in ["and", "or"] {
        let refused = vec![(format!("/{operator}"), "gate.operands")];
        assert_eq!(of(operator, 0), refused);
        assert!(of(operator, 1).is_empty() && of(operator, 64).is_empty());
        assert_eq!(of(operator, 65), refused);
        for argument in [json!(null), json!(true), json!({}), json!("a"), json!(2)] {
            assert_eq!(pointers(&json!({ operator: argument }), None), refused);
        }
    }
    let number = json!({"literal": 1});
    for operator in ["eq", "ne", "lt", "le", "gt", "ge", "in"] {
        for count in [0, 1, 3, 64] {
            let expr = json!({ operator: vec![number.clone(); count] });
            assert_eq!(
                pointers(&expr, None),
                [(format!("/{operator}"), "gate.operands")]
            );
        }
    }
    for argument in [json!([truth.clone()]), json!(true), json!(null), json!("a")] {
        assert_eq!(
            pointers(&json!({ "not": argument }), None),
            [("/not".into(), "gate.operands")]
        );
    }
    for operator in ["read", "exists"] {
        for argument in [
            json!(null),
            json!(1),
            json!(["/a"]),
            json!("a"),
            json!("/~"),
            json!("#/a"),
        ] {
            let place = format!("/{operator}");
            assert_eq!(
                pointers(&json!({ operator: argument }), None),
                [(place, "gate.operands")]
            );
        }
    }
}

/// Puts one operator around an expression.
type Wrap = fn(Value) -> Value;

#[test]
fn l1_depth_is_counted_through_every_operator() {
    let wraps: [(&str, Wrap, &str); 6] = [
        ("not", |e| json!({ "not": e }), "/not"),
        ("and", |e| json!({"and": [{"literal": true}, e]}), "/and/1"),
        ("or", |e| json!({ "or": [e] }), "/or/0"),
        ("eq", |e| json!({"eq": [{"literal": true}, e]}), "/eq/1"),
        ("ne", |e| json!({"ne": [e, {"literal": 1}]}), "/ne/0"),
        ("in", |e| json!({"in": [e, {"literal": [true]}]}), "/in/0"),
    ];
    for (name, wrap, step) in wraps {
        let nested = |depth: usize| (1..depth).fold(json!({"literal": true}), |e, _| wrap(e));
        assert!(pointers(&nested(16), None).is_empty(), "{name}");
        assert!(
            matches!(&*outcome(&nested(16), &json!(null)), "true" | "false"),
            "{name}"
        );
        for depth in [17, 30, 60] {
            let faults = pointers(&nested(depth), None);
            let at = (step.repeat(16), "gate.operands");
            assert!(faults.contains(&at), "{name} {depth}: {faults:?}");
            // What stands beside it is as deep.
            for (pointer, code) in faults {
                let beside = pointer.starts_with(&step.repeat(15)) && pointer.len() == at.0.len();
                assert!(beside && code == at.1, "{name} {depth}: {pointer}");
            }
        }
    }
    // A literal is one expression, however deep its value is.
    let deep = (0..50).fold(json!(1), |inner, _| json!([inner]));
    assert!(pointers(&json!({"eq": [{"literal": deep}, {"literal": 1}]}), None).is_empty());
}

#[test]
fn l1_an_expression_is_one_known_operator_and_nothing_else() {
    for operator in [
        "",
        "AND",
        "and ",
        "xor",
        "if",
        "==",
        "var",
        "contains",
        "match",
        "literal ",
        "__proto__",
        "constructor",
        "a/b",
        "\u{430}nd",
    ] {
        let token = sluicegate_core::value::escape(operator).into_owned();
        let expr = json!({ operator: [] });
        assert_eq!(
            pointers(&expr, None),
            [(format!("/{token}"), "gate.operator-unknown")]
        );
        let inner = json!({"or": [{"literal": true}, expr]});
        assert_eq!(
            pointers(&inner, None),
            [(format!("/or/1/{token}"), "gate.operator-unknown")]
        );
        // The name is in the pointer; the text repeats nothing of it.
        let fault = Expr::parse(&expr, None).unwrap_err().remove(0);
        assert!(OPERATORS.iter().all(|known| fault.message.contains(known)));
    }
    for expr in [
        json!(null),
        json!(true),
        json!(1),
        json!("a"),
        json!([]),
        json!({}),
    ] {
        assert_eq!(
            pointers(&expr, None),
            [(String::new(), "gate.operands")],
            "{expr}"
        );
    }
    let two = json!({"literal": true, "read": "/a"});
    assert_eq!(pointers(&two, None), [(String::new(), "gate.operands")]);
}

#[test]
fn l6_literals_that_cannot_fit_are_refused_before_any_run() {
    let literal = |text: &str| json!({"literal": read(text).unwrap()});
    for (_, kind, text) in VALUES {
        for operator in ["lt", "le", "gt", "ge"] {
            let faults = if kind == "number" {
                vec![]
            } else {
                vec![MISMATCH]
            };
            for (at, operands) in [
                (0, [literal(text), json!({"read": "/x"})]),
                (1, [json!({"read": "/x"}), literal(text)]),
            ] {
                let found = pointers(&json!({ operator: operands }), None);
                let expected: Vec<_> = faults
                    .iter()
                    .map(|code| (format!("/{operator}/{at}"), *code))
                    .collect();
                assert_eq!(found, expected, "{operator} {text}");
            }
        }
        let found = pointers(&json!({"in": [{"read": "/x"}, literal(text)]}), None);
        assert_eq!(found.is_empty(), kind == "array", "{text}");
    }
    // The result of an operator is a boolean, and so no number and no array.
    for operator in ["lt", "in"] {
        let expr = json!({ operator: [{"literal": 1}, {"exists": "/a"}] });
        assert_eq!(
            pointers(&expr, None),
            [(format!("/{operator}/1"), MISMATCH)]
        );
    }
}

/// L6 by schemas: what the input's schema excludes is a fault, what it only allows is not.
#[test]
fn l6_schemas_decide_what_reads_can_give() {
    let of = |schema: Value, expr: Value| pointers(&expr, Some(&Schema::accept(&schema).unwrap()));
    let less = |pointer: &str| json!({"lt": [{ "read": pointer }, {"literal": 1}]});
    let at = |types: Value| json!({"type": "object", "properties": {"v": types}});
    for (types, allowed) in [
        (json!({"type": "number"}), true),
        (json!({"type": "integer"}), true),
        (json!({"type": ["string", "integer"]}), true),
        (json!({"type": ["string", "null"]}), false),
        (json!({"enum": ["a", 1]}), true),
        (json!({"enum": ["a", null]}), false),
        (json!({"const": [1]}), false),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "number"}]}),
            true,
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            false,
        ),
        (
            json!({"oneOf": [{"const": true}, {"type": "object"}]}),
            false,
        ),
        (
            json!({"allOf": [{"type": ["number", "null"]}, {"type": ["string", "null"]}]}),
            false,
        ),
        (json!({"minimum": 3}), true),
        (json!(true), true),
    ] {
        let faults = of(at(types.clone()), less("/v"));
        let expected = if allowed {
            vec![]
        } else {
            vec![("/lt/0".to_owned(), MISMATCH)]
        };
        assert_eq!(faults, expected, "{types}");
    }
    let closed = json!({"type": "object", "properties": {"v": {"type": "array",
        "prefixItems": [{"type": "number"}], "items": false}}, "additionalProperties": false});
    for (pointer, impossible) in [
        ("/v/0", false),
        ("/v/1", true),
        ("/w", true),
        ("/v/-", true),
        ("/v/00", true),
        ("/v/0/x", true),
    ] {
        let faults = of(closed.clone(), less(pointer));
        let expected = if impossible {
            vec![("/lt/0/read".to_owned(), "gate.path-impossible")]
        } else {
            vec![]
        };
        assert_eq!(faults, expected, "{pointer}");
        // What cannot be there just does not exist.
        assert!(of(closed.clone(), json!({ "exists": pointer })).is_empty());
    }
}

#[test]
fn l1_hostile_expressions_end_on_a_small_stack() {
    let begun = Instant::now();
    let wide = |inner: Value| json!({"and": vec![inner; 64]});
    let reads = json!({ "read": "/0".repeat(64) });
    // As many different places as a graph of 64 KiB can name.
    let distinct: Vec<_> = (0..64)
        .map(|i| {
            let read = |j: usize| json!({ "read": format!("/{j}{}", "/0".repeat(i)) });
            let pairs = (0..6).map(|j| json!({"eq": [read(2 * j), read(2 * j + 1)]}));
            json!({ "or": pairs.collect::<Vec<_>>() })
        })
        .collect();
    let expressions = vec![
        wide(wide(json!({"eq": [reads, reads]}))),
        json!({"and": distinct}),
        wide(wide(wide(json!({"literal": true})))),
        (0..62).fold(json!({"literal": true}), |inner, _| json!({ "not": inner })),
        json!({"in": [{"literal": "x".repeat(30_000)}, {"literal": vec!["y".repeat(300); 100]}]}),
        json!({"or": vec![json!({"exists": "/0".repeat(200)}); 64]}),
        json!({ "x".repeat(60_000): 1 }),
        json!({"eq": [{ "read": format!("/{}", "~1".repeat(30_000)) }, {"literal": 1}]}),
    ];
    let schemas = [
        json!(true),
        json!({"items": {"items": {"items": true}}, "properties": {"0": {"items": {"minItems": 1}}}}),
        json!({"anyOf": vec![json!({"items": {"anyOf": vec![json!({"items": true}); 20]}}); 20]}),
        doubling(),
    ];
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(1 << 20);
        let work = move || {
            for expr in &expressions {
                for schema in &schemas {
                    let schema = Schema::accept(schema).unwrap();
                    if let Ok(expr) = Expr::parse(expr, Some(&schema)) {
                        let deep = (0..60).fold(json!(0), |inner, _| json!([inner]));
                        let _ = expr.evaluate(&deep);
                    }
                }
            }
        };
        thread.spawn_scoped(scope, work).unwrap().join().unwrap();
    });
    assert!(
        begun.elapsed() < Duration::from_secs(60),
        "{:?}",
        begun.elapsed()
    );
}

/// At each level both an object's member and an array's item may be meant.
fn doubling() -> Value {
    let mut definitions = Map::new();
    definitions.insert("d0".into(), json!({"type": ["object", "array", "boolean"]}));
    for step in 1..6 {
        let below = json!({"$ref": format!("#/$defs/d{}", step - 1)});
        let both = json!({"items": below, "properties": {"0": below}});
        definitions.insert(format!("d{step}"), both);
    }
    json!({"$defs": definitions, "$ref": "#/$defs/d5"})
}
