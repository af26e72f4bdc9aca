use serde_json::json;

use super::*;
use crate::schema::Schema;
use crate::value::read;

fn parsed(expr: Value) -> Expr {
    Expr::parse(&expr, None).unwrap_or_else(|faults| panic!("{expr}: {faults:?}"))
}

/// `true`, `false` or the code.
fn outcome(expr: &Value, input: &Value) -> &'static str {
    match Expr::parse(expr, None).map(|expr| expr.evaluate(input)) {
        Ok(Ok(true)) => "true",
        Ok(Ok(false)) => "false",
        Ok(Err(error)) => error.code.as_str(),
        Err(faults) => faults[0].code.as_str(),
    }
}

fn faults(expr: &Value, schema: Option<&Schema>) -> Vec<(String, &'static str)> {
    Expr::parse(expr, schema)
        .err()
        .unwrap_or_default()
        .into_iter()
        .map(|fault| (fault.pointer, fault.code.as_str()))
        .collect()
}

#[test]
fn l4_l5_every_operator_against_every_pair_of_types() {
    let samples = [
        json!(null),
        json!(true),
        json!(2),
        json!("2"),
        json!([2]),
        json!({"a": 2}),
    ];
    let mismatch = "gate.type-mismatch";
    let word = |truth: bool| if truth { "true" } else { "false" };
    for (i, left) in samples.iter().enumerate() {
        for (j, right) in samples.iter().enumerate() {
            let numbers = (i, j) == (2, 2);
            for (operator, expected) in [
                ("eq", word(i == j)),
                ("ne", word(i != j)),
                ("lt", if numbers { "false" } else { mismatch }),
                ("gt", if numbers { "false" } else { mismatch }),
                ("le", if numbers { "true" } else { mismatch }),
                ("ge", if numbers { "true" } else { mismatch }),
                ("in", if j == 4 { word(i == 2) } else { mismatch }),
            ] {
                let input = json!({"l": left, "r": right});
                let expr = json!({operator: [{"read": "/l"}, {"read": "/r"}]});
                assert_eq!(outcome(&expr, &input), expected, "{expr} {input}");
                // A literal gives what a read gives; only the time of the refusal differs.
                let expr = json!({operator: [{"literal": left}, {"literal": right}]});
                assert_eq!(outcome(&expr, &input), expected, "{expr}");
            }
        }
        let (is_boolean, input) = (i == 1, json!({"v": left}));
        for (expr, truth) in [
            (json!({"read": "/v"}), "true"),
            (json!({"literal": left}), "true"),
            (json!({"not": {"read": "/v"}}), "false"),
            (json!({"and": [{"read": "/v"}]}), "true"),
            (json!({"or": [{"read": "/v"}]}), "true"),
        ] {
            let expected = if is_boolean { truth } else { mismatch };
            assert_eq!(outcome(&expr, &input), expected, "{expr} {input}");
        }
        assert_eq!(outcome(&json!({"exists": "/v"}), &input), "true");
        assert_eq!(outcome(&json!({"exists": "/w"}), &input), "false");
        assert_eq!(outcome(&json!({"read": "/w"}), &input), "gate.path-missing");
    }
}

/// Each operand reads a path of its own, so the outcome tells how many were evaluated.
#[test]
fn l3_evaluation_stops_at_the_first_deciding_operand() {
    for (operator, going_on) in [("and", true), ("or", false)] {
        for deciding in 0..6 {
            for failing in 0..6 {
                let operands: Vec<_> = (0..6).map(|i| json!({"read": format!("/{i}")})).collect();
                let mut input = json!({});
                for i in (0..6).filter(|i| *i != failing) {
                    input[i.to_string()] = json!(if i == deciding { !going_on } else { going_on });
                }
                let result = parsed(json!({operator: operands})).evaluate(&input);
                if deciding < failing {
                    assert_eq!(result, Ok(!going_on), "{operator} {deciding} {failing}");
                } else {
                    let error = result.unwrap_err();
                    assert_eq!(error.code, Code::GatePathMissing);
                    assert!(
                        error.message.contains(&format!("\"/{failing}\"")),
                        "{error}"
                    );
                }
            }
        }
    }
}

#[test]
fn l5_messages_name_pointers_and_types_never_values() {
    for (expr, input) in [
        (
            json!({"lt": [{"read": "/t"}, {"literal": 4711}]}),
            json!({"t": "hunter2"}),
        ),
        (json!({"and": [{"read": "/t"}]}), json!({"t": ["hunter2"]})),
        (
            json!({"in": [{"read": "/t"}, {"read": "/t"}]}),
            json!({"t": {"hunter2": 4711}}),
        ),
    ] {
        let error = parsed(expr).evaluate(&input).unwrap_err();
        assert!(error.message.contains("\"/t\""), "{error}");
        assert!(
            !error.message.contains("hunter2") && !error.message.contains("4711"),
            "{error}"
        );
    }
    let expr = json!({"lt": [{"literal": "hunter2"}, {"literal": 1}]});
    let fault = Expr::parse(&expr, None).unwrap_err().remove(0);
    assert!(fault.message.contains("a string") && !fault.message.contains("hunter2"));
}

#[test]
fn l1_all_faults_are_found_in_order_of_pointer() {
    let expr = json!({"and": [
        {"lt": [{"literal": "a"}, {"literal": null}]},
        {"xor": []},
        {"eq": [{"read": "no"}]},
        {"or": [{"read": "~"}, 7, {"literal": 1, "nope": 2}]},
    ]});
    assert_eq!(
        faults(&expr, None),
        [
            ("/and/0/lt/0", "gate.type-mismatch"),
            ("/and/0/lt/1", "gate.type-mismatch"),
            ("/and/1/xor", "gate.operator-unknown"),
            ("/and/2/eq", "gate.operands"),
            ("/and/3/or/0/read", "gate.operands"),
            ("/and/3/or/1", "gate.operands"),
            ("/and/3/or/2", "gate.operands"),
            ("/and/3/or/2/nope", "gate.operator-unknown"),
        ]
        .map(|(pointer, code)| (pointer.to_owned(), code))
    );
}

#[test]
fn l1_depth_16_passes_and_17_is_refused() {
    let nested = |depth: usize| (1..depth).fold(json!({"literal": true}), |e, _| json!({"not": e}));
    assert_eq!(outcome(&nested(16), &json!(null)), "false");
    assert_eq!(
        faults(&nested(17), None),
        [("/not".repeat(16), "gate.operands")]
    );
    // What is deeper than a stack must not be walked.
    assert_eq!(
        faults(&nested(60), None),
        [("/not".repeat(16), "gate.operands")]
    );
}

#[test]
fn l1_serde_form_is_the_wire_form() {
    for text in [
        r#"{"and":[{"exists":"/a~1b"},{"not":{"eq":[{"read":""},{"literal":null}]}}]}"#,
        r#"{"or":[{"in":[{"literal":1},{"literal":[1]}]},{"ne":[{"read":"/a"},{"literal":{"literal":1}}]}]}"#,
        r#"{"lt":[{"read":"/a"},{"literal":0.5}]}"#,
        r#"{"le":[{"read":"/a"},{"literal":0.5}]}"#,
        r#"{"gt":[{"read":"/a"},{"literal":0.5}]}"#,
        r#"{"ge":[{"read":"/a"},{"literal":0.5}]}"#,
    ] {
        let wire = read(text).unwrap();
        let expr = parsed(wire.clone());
        assert_eq!(serde_json::to_value(&expr).unwrap(), wire);
        assert_eq!(serde_json::from_value::<Expr>(wire).unwrap(), expr);
    }
}

#[test]
fn l6_types_of_a_schema() {
    for (schema, types) in [
        (
            json!(true),
            "a boolean or a number or a string or an array or an object or null",
        ),
        (json!({"type": "null"}), "null"),
        (json!({"type": "boolean"}), "a boolean"),
        (json!({"type": "number"}), "a number"),
        (json!({"type": "integer"}), "a number"),
        (json!({"type": "string"}), "a string"),
        (json!({"type": "array"}), "an array"),
        (json!({"type": "object"}), "an object"),
        (json!({"type": ["string", "null"]}), "a string or null"),
        (json!({"const": {"a": 1}}), "an object"),
        (json!({"enum": [1, "a"]}), "a number or a string"),
        (
            json!({"anyOf": [{"type": "string"}, {"const": true}]}),
            "a boolean or a string",
        ),
        (
            json!({"allOf": [{"type": ["string", "number"]}, {"type": ["number", "null"]}]}),
            "a number",
        ),
        (json!({"minimum": 3, "type": "number"}), "a number"),
        (json!({"type": "string", "enum": [1]}), ""),
        (json!(false), ""),
    ] {
        assert_eq!(
            types::Types::of_schema(&schema).to_string(),
            types,
            "{schema}"
        );
    }
}

// That `Expr::parse` asks for faults although an expression came out is for whoever adds a fault
// that leaves one: today each leaves none, so no test can tell the guard from `true`.
#[test]
fn l6_reads_are_judged_by_the_inputs_schema() {
    let input = Schema::accept(&json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer"},
            "s": {"type": ["string", "null"]},
            "b": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "string"}},
            "any": true,
        },
        "required": ["n"],
        "additionalProperties": false,
    }))
    .unwrap();
    for (expr, expected) in [
        (json!({"lt": [{"read": "/n"}, {"read": "/any"}]}), vec![]),
        (json!({"and": [{"read": "/b"}, {"read": "/any"}]}), vec![]),
        (json!({"in": [{"read": "/s"}, {"read": "/list"}]}), vec![]),
        (json!({"exists": "/nowhere"}), vec![]),
        (
            json!({"lt": [{"read": "/s"}, {"read": "/n"}]}),
            vec![("/lt/0", "gate.type-mismatch")],
        ),
        (
            json!({"lt": [{"read": "/list/0"}, {"literal": 1}]}),
            vec![("/lt/0", "gate.type-mismatch")],
        ),
        (json!({"read": "/n"}), vec![("", "gate.type-mismatch")]),
        (
            json!({"in": [{"literal": 1}, {"read": "/s"}]}),
            vec![("/in/1", "gate.type-mismatch")],
        ),
        (
            json!({"or": [{"read": "/nowhere"}, {"eq": [{"read": "/n/x"}, {"read": "/b"}]}]}),
            vec![
                ("/or/0/read", "gate.path-impossible"),
                ("/or/1/eq/0/read", "gate.path-impossible"),
            ],
        ),
    ] {
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(pointer, code)| (pointer.to_owned(), code))
            .collect();
        assert_eq!(faults(&expr, Some(&input)), expected, "{expr}");
    }
}

fn gate(expr: &Value) -> Gate {
    Gate::from(serde_json::from_value::<Expr>(expr.clone()).unwrap())
}

// Where the compiled form leaves an answer to the expression, or walks an object in another order,
// it only spares work: those of its mutants no test can tell.
#[test]
fn l4_l5_a_compiled_gate_says_what_its_expression_says() {
    let values = [
        json!(null),
        json!(true),
        json!(1),
        json!("x"),
        json!(["x", "y"]),
        json!({}),
    ];
    let mut operands: Vec<Value> = values
        .iter()
        .map(|value| json!({"literal": value}))
        .collect();
    operands.extend(["/a", "/b", "/gone"].map(|pointer| json!({"read": pointer})));
    operands.push(json!({"not": {"exists": "/b"}}));
    let mut inputs = Vec::new();
    for more in [0, 3, 100] {
        for a in &values {
            let mut input = json!({"a": a, "b": "x"});
            for at in 0..more {
                input[format!("m{at}")] = json!(at);
            }
            inputs.push(input);
        }
    }
    for operator in ["eq", "ne", "lt", "le", "gt", "ge", "in"] {
        for left in &operands {
            for right in &operands {
                let expr = json!({operator: [left, right]});
                let Ok(parsed) = serde_json::from_value::<Expr>(expr.clone()) else {
                    continue;
                };
                let gate = gate(&expr);
                for input in &inputs {
                    assert_eq!(
                        gate.evaluate(input),
                        parsed.evaluate(input),
                        "{expr} {input}"
                    );
                }
            }
        }
    }
    assert_ne!(
        gate(&json!({"exists": "/a"})),
        gate(&json!({"exists": "/b"}))
    );
}

#[test]
fn l2_what_is_there_is_found_beside_whatever_else_is() {
    for more in [0, 1, 9, 100] {
        let mut input = json!({"a": null, "b": {"c": 1}, "dd": [0]});
        for at in 0..more {
            input[format!("m{at}")] = json!(at);
        }
        let there = ["/a", "/b", "/b/c", "/dd/0"].map(|pointer| json!({"exists": pointer}));
        let gone = ["/c", "/b/a", "/dd/1", "/ee"].map(|pointer| json!({"exists": pointer}));
        assert_eq!(gate(&json!({"and": there})).evaluate(&input), Ok(true));
        assert_eq!(gate(&json!({"or": gone})).evaluate(&input), Ok(false));
    }
    // However many places one gate asks for, the last is looked at too.
    for count in 1..=64 {
        let asked: Vec<_> = (0..count)
            .map(|at| json!({"exists": format!("/n{at}")}))
            .collect();
        let input = json!({format!("n{}", count - 1): 1});
        assert_eq!(
            gate(&json!({"or": asked})).evaluate(&input),
            Ok(true),
            "{count}"
        );
    }
    // A truth and a value are compared too (L4).
    let expr = json!({"eq": [{"exists": "/a"}, {"read": "/a"}]});
    assert_eq!(gate(&expr).evaluate(&json!({"a": true})), Ok(true));
    assert_eq!(gate(&expr).evaluate(&json!({"a": 1})), Ok(false));
    let expr = json!({"eq": [{"exists": "/a"}, {"exists": "/b"}]});
    assert_eq!(gate(&expr).evaluate(&json!({"a": 1, "b": 1})), Ok(true));
    assert_eq!(gate(&expr).evaluate(&json!({"a": 1})), Ok(false));
}
