//! L1–L5 against the public sets of the Common Expression Language and of JSONLogic. Where the
//! meaning is the same the answer is the same; where theirs converts, ours is an error. Every entry
//! falls into one class, and the classes are counted.

use std::collections::BTreeMap;

use serde_json::json;
use sluicegate_core::gate::Expr;
use sluicegate_core::value::{Value, normalise};

use super::{data, folder};

/// `true`, `false` or the code.
fn outcome(expr: &Value, input: &Value) -> &'static str {
    match Expr::parse(expr, None).map(|expr| expr.evaluate(input)) {
        Ok(Ok(true)) => "true",
        Ok(Ok(false)) => "false",
        Ok(Err(error)) => error.code.as_str(),
        Err(faults) => faults[0].code.as_str(),
    }
}

fn operator(expr: &Value) -> &str {
    expr.as_object()
        .and_then(|one| one.keys().next())
        .map_or("", String::as_str)
}

/// Whether an operand is, or reads, a value that a test accepts. Operators give booleans.
fn some_operand(expr: &Value, input: &Value, test: impl Fn(&Value) -> bool) -> bool {
    let operands = expr[operator(expr)].as_array().cloned().unwrap_or_default();
    operands.iter().any(|operand| match operator(operand) {
        "literal" => test(&operand["literal"]),
        "read" => input
            .pointer(operand["read"].as_str().unwrap())
            .is_some_and(&test),
        _ => test(&Value::Bool(true)),
    })
}

#[test]
fn l3_l4_l5_common_expression_language() {
    let Some(folder) = folder("gate-logic") else {
        return;
    };
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    for case in data(&folder.join("cel/simple.json")).as_array().unwrap() {
        *classes.entry(cel(case)).or_default() += 1;
    }
    println!("{classes:#?}");
    assert_eq!(classes, BTreeMap::from(CEL));
}

const CEL: [(&str, usize); 7] = [
    ("agrees", 152),
    ("agrees: an error", 13),
    ("J1: a number of 2^53 or more", 32),
    ("L3, L6: an error is not absorbed by what decides", 6),
    ("L3: the whole expression is a boolean", 52),
    ("L4: in looks into arrays", 6),
    ("L4: only numbers are ordered", 29),
];

fn cel(case: &Value) -> &'static str {
    let id = &case["id"];
    let Some(mut expr) = from_cel(&case["ast"]) else {
        return "L1: no list is built";
    };
    let mut input = case["data"].clone();
    if normalise(&mut expr).is_err() || normalise(&mut input).is_err() {
        return "J1: a number of 2^53 or more";
    }
    let got = outcome(&expr, &input);
    let numbers_only = matches!(operator(&expr), "lt" | "le" | "gt" | "ge");
    match (got, case.get("expected")) {
        ("true", Some(Value::Bool(true))) | ("false", Some(Value::Bool(false))) => "agrees",
        ("true" | "false", other) => panic!("{id}: {expr} gave {got}, CEL {other:?}"),
        ("gate.path-missing" | "gate.type-mismatch", None) => "agrees: an error",
        ("gate.type-mismatch", Some(Value::Bool(_))) if numbers_only => {
            assert!(some_operand(&expr, &input, |v| !v.is_number()), "{id}");
            "L4: only numbers are ordered"
        }
        ("gate.type-mismatch", Some(Value::Bool(_))) if operator(&expr) == "in" => {
            let right = json!({"in": [expr["in"][1].clone()]});
            assert!(some_operand(&right, &input, |v| !v.is_array()), "{id}");
            "L4: in looks into arrays"
        }
        (code, Some(Value::Bool(_))) if matches!(operator(&expr), "and" | "or") => {
            assert!(code.starts_with("gate."), "{id}");
            "L3, L6: an error is not absorbed by what decides"
        }
        ("gate.type-mismatch", Some(other)) if !other.is_boolean() => {
            "L3: the whole expression is a boolean"
        }
        (code, expected) => panic!("{id}: {expr} gave {code}, CEL {expected:?}"),
    }
}

fn from_cel(ast: &Value) -> Option<Value> {
    let (operator, argument) = ast.as_object()?.iter().next()?;
    Some(match operator.as_str() {
        "lit" => json!({"literal": argument}),
        "ref" => json!({"read": argument}),
        "exists" => json!({"exists": argument}),
        "not" => json!({"not": from_cel(argument)?}),
        "list" => return None,
        other => {
            let operands: Option<Vec<_>> = argument.as_array()?.iter().map(from_cel).collect();
            json!({other: operands?})
        }
    })
}

#[test]
fn l2_l3_l4_l5_jsonlogic() {
    let Some(folder) = folder("gate-logic/jsonlogic") else {
        return;
    };
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    for file in ["tests.json", "suites.json"] {
        for case in data(&folder.join(file)).as_array().unwrap() {
            *classes.entry(jsonlogic(case)).or_default() += 1;
        }
    }
    println!("{classes:#?}");
    assert_eq!(classes, BTreeMap::from(JSONLOGIC));
}

const JSONLOGIC: [(&str, usize); 10] = [
    ("agrees", 118),
    ("agrees: an error", 13),
    ("J1: a number of 2^53 or more", 7),
    ("L1: a form without a counterpart", 60),
    ("L1: a number of operands", 30),
    ("L1: another operator, or none", 251),
    ("L2: what is missing is an error", 6),
    ("L3: operands are not given back", 26),
    ("L4, J5: equal without conversion", 13),
    ("L5: no conversion", 73),
];

fn jsonlogic(case: &Value) -> &'static str {
    let id = &case["id"];
    if case["only_ops_with_a_counterpart_here"] != true {
        return "L1: another operator, or none";
    }
    let Some(mut expr) = from_jsonlogic(&case["logic"]) else {
        return "L1: a form without a counterpart";
    };
    let mut input = case["data"].clone();
    if normalise(&mut expr).is_err() || normalise(&mut input).is_err() {
        return "J1: a number of 2^53 or more";
    }
    let got = outcome(&expr, &input);
    match (got, case.get("expected")) {
        ("true", Some(Value::Bool(true))) | ("false", Some(Value::Bool(false))) => "agrees",
        ("true" | "false", _) => {
            // Equality takes any two values and converts neither.
            let text = expr.to_string();
            assert!(
                text.contains("\"eq\"") || text.contains("\"ne\""),
                "{id}: {expr}"
            );
            "L4, J5: equal without conversion"
        }
        ("gate.path-missing", _) => "L2: what is missing is an error",
        ("gate.operands", _) => "L1: a number of operands",
        ("gate.type-mismatch", Some(Value::Bool(_))) => "L5: no conversion",
        ("gate.type-mismatch", Some(_)) => "L3: operands are not given back",
        ("gate.type-mismatch", None) => "agrees: an error",
        (code, expected) => panic!("{id}: {expr} gave {code}, JSONLogic {expected:?}"),
    }
}

fn from_jsonlogic(logic: &Value) -> Option<Value> {
    let Some(object) = logic.as_object() else {
        return Some(json!({"literal": logic}));
    };
    let (operator, argument) = object.iter().next().filter(|_| object.len() == 1)?;
    let operands = match argument {
        Value::Array(items) => items.clone(),
        other => vec![other.clone()],
    };
    let operator = match operator.as_str() {
        "var" => {
            let path = operands.first()?.as_str().filter(|_| operands.len() == 1)?;
            let path = path.split('.').map(|token| format!("/{token}"));
            return Some(json!({"read": path.collect::<String>()}));
        }
        "!" => {
            return Some(json!({"not": from_jsonlogic(operands.first()?)?}));
        }
        "==" | "===" => "eq",
        "!=" | "!==" => "ne",
        "<" => "lt",
        "<=" => "le",
        ">" => "gt",
        ">=" => "ge",
        "and" | "or" | "in" => operator,
        _ => return None,
    };
    if !argument.is_array() {
        // One operand without a list, which L1 refuses.
        return Some(json!({operator: from_jsonlogic(argument)?}));
    }
    let operands: Option<Vec<_>> = operands.iter().map(from_jsonlogic).collect();
    Some(json!({operator: operands?}))
}
