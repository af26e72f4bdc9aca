//! The functions of the npm package (wire-format.md §11), natively: for the golden vectors and
//! for comparing the two builds byte by byte.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use sluicegate_core::audit::{self, Head};
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::code::Code;
use sluicegate_core::compile;
use sluicegate_core::gate::Expr;
use sluicegate_core::graph::Graph;
use sluicegate_core::limits::Limits;
use sluicegate_core::mapping;
use sluicegate_core::plan::{Plan, PlanError};
use sluicegate_core::run::{self, WorkflowReference};
use sluicegate_core::schema::{Compatibility, Schema, compare};
use sluicegate_core::simulate::{self, Fixtures, Refused};
use sluicegate_core::validate;
use sluicegate_core::value::{self, JsonError, Place, Pointer, Value};

/// A refusal as JavaScript sees it: its code and, where there is one, its pointer.
pub(crate) struct Thrown(pub(crate) Code, pub(crate) Option<String>);

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
pub(crate) fn call(function: &str, given: &[Value]) -> Result<Value, Thrown> {
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
        ("foldEvents", [plan, Value::Array(events)]) => {
            let plan = Plan::read(plan).map_err(|error| match error {
                PlanError::Shape(_) => Thrown(Code::JsonWrongType, Some(String::new())),
                _ => Thrown(Code::WorkflowGraphInvalid, None),
            })?;
            let run = run::fold_events(&plan, events).map_err(|e| Thrown(e.code, None))?;
            json!(run::overlay(&plan, &run))
        }
        ("verifyAudit", [Value::Array(entries)]) => json!(audit::verify(entries, None, None)),
        ("verifyAudit", [Value::Array(entries), head]) => {
            let head = Head::deserialize(head);
            let head = head.map_err(|_| Thrown(Code::JsonWrongType, None))?;
            json!(audit::verify(entries, Some(head), None))
        }
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
