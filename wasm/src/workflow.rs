//! Graphs and runs for JavaScript (wire-format.md §11): check, compile, dry run, simulate.

use std::sync::Arc;

use crate::cross::{from_js, give, give_free};
use crate::refusal::Refusal;
use serde_json::json;
use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::compile::{self, Compiled, DryRunReport};
use sluicegate_core::graph::Graph;
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::WorkflowReference;
use sluicegate_core::simulate::{self, Fixtures, RunResult};
use sluicegate_core::validate;
use sluicegate_core::value::{Place, Value};
use wasm_bindgen::prelude::*;

/// Everything that is wrong with a graph, in the order of §8.
#[wasm_bindgen(js_name = check)]
pub fn check(graph: &JsValue, catalogue: Option<JsValue>) -> Result<JsValue, JsValue> {
    let graph = Graph::read(&from_js(graph)?).map_err(Refusal::from)?;
    let catalogue = catalogue_from_js(catalogue.as_ref())?;
    give(&validate::check(
        &graph,
        catalogue.as_ref(),
        &Limits::default(),
    ))
}

/// A graph's plan and issues; the plan is null when an issue is an error.
#[wasm_bindgen(js_name = compile)]
pub fn compile(graph: &JsValue, catalogue: Option<JsValue>) -> Result<JsValue, JsValue> {
    let graph = Graph::read(&from_js(graph)?).map_err(Refusal::from)?;
    let catalogue = catalogue_from_js(catalogue.as_ref())?;
    let Compiled { plan, issues } =
        compile::compile(&graph, catalogue.as_ref(), &Limits::default());
    give_free(&json!({ "plan": plan, "issues": issues }))
}

/// The dry-run report of a graph and, where one is given, a sample input.
#[wasm_bindgen(js_name = dryRun)]
pub fn dry_run(request: &JsValue) -> Result<JsValue, JsValue> {
    give(&dry_run_of(&from_js(request)?)?)
}

/// Runs a graph from end to end on fixtures (§9) and gives its result (R2).
#[wasm_bindgen(js_name = simulate)]
pub fn simulate(request: &JsValue) -> Result<JsValue, JsValue> {
    give_free(&simulation_of(&from_js(request)?)?)
}

fn dry_run_of(request: &Value) -> Result<DryRunReport, Refusal> {
    let mut request = Place::root(request).object()?;
    let graph = Graph::read_at(&request.required("graph")?)?;
    let input = request.optional("input").map(|place| place.value());
    let catalogue = request.optional("catalogue");
    let catalogue = catalogue
        .map(|place| Catalogue::read_at(&place))
        .transpose()?;
    let permissions = request.optional("permissions");
    let permissions = permissions.map(|place| texts_at(&place)).transpose()?;
    request.done()?;
    Ok(compile::dry_run(
        &graph,
        input,
        catalogue.as_ref(),
        permissions.as_deref(),
        &Limits::default(),
    ))
}

fn simulation_of(request: &Value) -> Result<RunResult, Refusal> {
    let mut request = Place::root(request).object()?;
    let graph = Graph::read_at(&request.required("graph")?)?;
    let input = Arc::new(request.required("input")?.value().clone());
    let fixtures = Fixtures::read_at(&request.required("fixtures")?)?;
    let catalogue = request.optional("catalogue");
    let catalogue = catalogue
        .map(|place| Catalogue::read_at(&place))
        .transpose()?;
    request.done()?;
    let limits = Limits::default();
    let Compiled { plan, issues } = compile::compile(&graph, catalogue.as_ref(), &limits);
    let plan = plan.ok_or_else(|| Refusal::of_graph(&issues))?;
    let plan = Plan::load(plan).map_err(Refusal::from)?;
    let reference = WorkflowReference::default();
    let simulation = simulate::simulate(&plan, input, &fixtures, &limits, reference)?;
    Ok(simulation.result())
}

fn catalogue_from_js(from: Option<&JsValue>) -> Result<Option<Catalogue>, Refusal> {
    let read = |from| Ok(Catalogue::read(&from_js(from)?)?);
    from.filter(|from| !from.is_null()).map(read).transpose()
}

fn texts_at(place: &Place<'_>) -> Result<Vec<String>, Refusal> {
    let texts = place.array()?.into_iter();
    Ok(texts
        .map(|place| place.text().map(str::to_owned))
        .collect::<Result<_, _>>()?)
}
