//! The native door of the golden vectors (architecture.md "Tests"): the files that the npm
//! package passes too. `tests/vectors/README.md` says what a vector is.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "what helps a test may stop it"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::code::Code;
use sluicegate_core::compile;
use sluicegate_core::gate::Expr;
use sluicegate_core::graph::Graph;
use sluicegate_core::limits::Limits;
use sluicegate_core::mapping;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::WorkflowReference;
use sluicegate_core::schema::{Compatibility, Schema, compare};
use sluicegate_core::simulate::{self, Fixtures, Refused};
use sluicegate_core::validate;
use sluicegate_core::value::{self, JsonError, Place, Pointer, Value};

/// A refusal as JavaScript sees it: its code and, where there is one, its pointer.
struct Thrown(Code, Option<String>);

impl From<JsonError> for Thrown {
    fn from(error: JsonError) -> Self {
        Self(error.code, Some(error.pointer))
    }
}

fn text(value: &Value) -> Result<&str, Thrown> {
    let wrong = || Thrown(Code::JsonWrongType, Some(String::new()));
    value.as_str().ok_or_else(wrong)
}

fn accepted(schema: &Value) -> Result<Schema, Thrown> {
    Schema::accept(schema).map_err(|faults| Thrown(faults[0].code, Some(faults[0].pointer.clone())))
}

/// A function of the npm package, natively.
fn call(function: &str, given: &[Value]) -> Result<Value, Thrown> {
    Ok(match (function, given) {
        ("parseText", [source]) => value::read(text(source)?)?,
        ("canonicalizeText", [source]) => value::canonical(&value::read(text(source)?)?).into(),
        ("hashText", [source]) => value::hash(&value::read(text(source)?)?).to_string().into(),
        ("readPointer", [value, pointer]) => match Pointer::parse(text(pointer)?)?.read(value) {
            Some(found) => json!({ "found": true, "value": found }),
            None => json!({ "found": false }),
        },
        ("acceptSchema", [schema]) => Schema::accept(schema)
            .err()
            .unwrap_or_default()
            .iter()
            .map(|f| json!({ "code": f.code.as_str(), "path": f.pointer, "message": f.message }))
            .collect(),
        ("validateValue", [schema, value]) => {
            let errors = accepted(schema)?.validate(value);
            json!({ "valid": errors.is_empty(), "errors": errors })
        }
        ("exampleValue", [schema]) => accepted(schema)?.example().unwrap(),
        ("compareSchemas", [source, target]) => {
            match compare(&accepted(source)?, &accepted(target)?) {
                Compatibility::Compatible => "compatible".into(),
                Compatibility::Incompatible => "incompatible".into(),
                Compatibility::Unknown => "unknown".into(),
            }
        }
        ("evaluateGate", [expr, input]) => {
            let expr = Expr::parse(expr, None)
                .map_err(|faults| Thrown(faults[0].code, Some(faults[0].pointer.clone())))?;
            expr.evaluate(input)
                .map_err(|error| Thrown(error.code, None))?
                .into()
        }
        ("renderTemplate", [template, Value::Object(variables)]) => {
            mapping::render_template(text(template)?, variables)
                .map_err(|faults| Thrown(faults[0].code, None))?
                .into()
        }
        ("check", [graph]) => json!(validate::check(
            &Graph::read(graph)?,
            None,
            &Limits::default()
        )),
        ("check", [graph, listed]) => {
            let listed = Catalogue::read(listed)?;
            json!(validate::check(
                &Graph::read(graph)?,
                Some(&listed),
                &Limits::default()
            ))
        }
        ("compile", [graph]) => compiled(graph, None)?,
        ("compile", [graph, listed]) => compiled(graph, Some(&Catalogue::read(listed)?))?,
        ("dryRun", [request]) => dry_run(&Place::root(request))?,
        ("simulate", [request]) => simulate(&Place::root(request))?,
        _ => panic!("no function {function} of {} arguments", given.len()),
    })
}

fn compiled(graph: &Value, catalogue: Option<&Catalogue>) -> Result<Value, Thrown> {
    let compiled = compile::compile(&Graph::read(graph)?, catalogue, &Limits::default());
    Ok(json!({ "plan": compiled.plan, "issues": compiled.issues }))
}

fn dry_run(request: &Place<'_>) -> Result<Value, Thrown> {
    let mut request = request.object()?;
    let graph = Graph::read_at(&request.required("graph")?)?;
    let input = request.optional("input").map(|place| place.value());
    let listed = request.optional("catalogue");
    let listed = listed.map(|place| Catalogue::read_at(&place)).transpose()?;
    let held = request.optional("permissions");
    let held: Option<Vec<_>> = held.map(|place| Vec::deserialize(place.value()).unwrap());
    request.done()?;
    let limits = Limits::default();
    let report = compile::dry_run(&graph, input, listed.as_ref(), held.as_deref(), &limits);
    Ok(json!(report))
}

fn simulate(request: &Place<'_>) -> Result<Value, Thrown> {
    let mut request = request.object()?;
    let graph = Graph::read_at(&request.required("graph")?)?;
    let input = Arc::new(request.required("input")?.value().clone());
    let fixtures = Fixtures::read_at(&request.required("fixtures")?)?;
    let listed = request.optional("catalogue");
    let listed = listed.map(|place| Catalogue::read_at(&place)).transpose()?;
    request.done()?;
    let limits = Limits::default();
    let plan = compile::compile(&graph, listed.as_ref(), &limits).plan;
    let plan = Plan::load(plan.ok_or(Thrown(Code::WorkflowGraphInvalid, None))?).unwrap();
    let reference = WorkflowReference::default();
    match simulate::simulate(&plan, input, &fixtures, &limits, reference) {
        Ok(simulation) => Ok(json!(simulation.result())),
        Err(Refused::Input { code, pointer, .. }) => {
            Err(Thrown(code, Some(format!("/input{pointer}"))))
        }
        Err(Refused::Fixtures(_)) => Err(Thrown(Code::WorkflowFixturesInvalid, None)),
        Err(Refused::Broken(why)) => panic!("{why}"),
    }
}

/// Equality by J5, but for a `message` that the expectation does not name.
fn fits(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len() && expected.iter().zip(actual).all(|(e, a)| fits(e, a))
        }
        (Value::Object(expected), Value::Object(actual)) => {
            let named = |(name, e): (&String, &Value)| actual.get(name).is_some_and(|a| fits(e, a));
            let known = |name: &String| name == "message" || expected.contains_key(name);
            expected.iter().all(named) && actual.keys().all(known)
        }
        (expected, actual) => expected == actual,
    }
}

/// Whether all that the expectation names is there: members by name, items in this order with
/// others between them.
fn holds(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Array(expected), Value::Array(actual)) => {
            let mut rest = actual.iter();
            expected.iter().all(|e| rest.any(|a| holds(e, a)))
        }
        (Value::Object(expected), Value::Object(actual)) => expected
            .iter()
            .all(|(name, e)| actual.get(name).is_some_and(|a| holds(e, a))),
        (expected, actual) => expected == actual,
    }
}

/// What is wrong with the outcome of a vector.
fn judge(vector: &Value) -> Option<String> {
    let given = vector["given"].as_array().unwrap();
    let then = &vector["then"];
    let (right, outcome) = match call(text_of(&vector["when"]), given) {
        Ok(gives) => {
            let right = match (then.get("gives"), then.get("has")) {
                (Some(expected), None) => fits(expected, &gives),
                (None, Some(expected)) => {
                    let lacked = then.get("lacks").and_then(Value::as_array);
                    let lacks = |absent: &Vec<Value>| !absent.iter().any(|a| holds(a, &gives));
                    holds(expected, &gives) && lacked.is_none_or(lacks)
                }
                _ => false,
            };
            (right, json!({ "gives": gives }))
        }
        Err(Thrown(code, pointer)) => {
            let throws = then.get("throws");
            let right = throws.is_some_and(|expected| {
                let named = expected.get("pointer").map(text_of);
                expected["code"] == code.as_str()
                    && named.is_none_or(|named| Some(named) == pointer.as_deref())
            });
            (
                right,
                json!({ "throws": { "code": code.as_str(), "pointer": pointer } }),
            )
        }
    };
    (!right).then(|| format!("expected {then}, got {outcome}"))
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Every vector file below a folder, in order.
fn files(below: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(below).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let inside = |path: PathBuf| match path.extension() {
        None => files(&path),
        Some(end) if end == "json" => vec![path],
        Some(_) => Vec::new(),
    };
    paths.into_iter().flat_map(inside).collect()
}

#[test]
fn every_vector_holds_natively() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors");
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files(&root) {
        let vectors = value::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for (index, vector) in vectors.as_array().unwrap().iter().enumerate() {
            count += 1;
            let place = file.strip_prefix(&root).unwrap().display();
            let clause = text_of(&vector["clause"]);
            wrong.extend(judge(vector).map(|why| format!("{place} [{index}] {clause}: {why}")));
        }
    }
    assert!(count > 0, "no vector was found");
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
