//! Figures of the core as multiples of `serde_json` parsing the same document into a
//! `Value`, in one run. One JSON object a line; exit 1 where a limit is missed.

mod graph;

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use sluicegate_core::graph::{Graph, Kind};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::WorkflowReference;
use sluicegate_core::simulate::{Fixtures, simulate};
use sluicegate_core::validate::{self, Memory};
use sluicegate_core::{compile, value};

fn main() -> ExitCode {
    // The npm package is measured against this build by core/benches/wasm.mjs, which asks for the
    // graph and, in turn with its own rounds, for the time.
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let asked = |word: &str| asked.iter().any(|argument| argument == word);
    if asked("graph") {
        println!("{}", value::canonical(&graph::reference(16).graph));
        return ExitCode::SUCCESS;
    }
    if asked("check-compile") {
        return match check_and_compile() {
            Ok(time) => {
                println!("{}", time.as_secs_f64() * 1e6);
                ExitCode::SUCCESS
            }
            Err(reason) => {
                eprintln!("{reason}");
                ExitCode::FAILURE
            }
        };
    }
    match measure() {
        Ok(missed) => ExitCode::from(u8::from(missed)),
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Whether a limit was missed.
fn measure() -> Result<bool, String> {
    let limits = Limits::default();
    let reference = graph::reference(16);
    let text = value::canonical(&reference.graph);
    let document = value::read(&text).map_err(|e| e.to_string())?;
    let graph = Graph::read(&document).map_err(|e| e.to_string())?;
    let compiled = compile::compile(&graph, None, &limits);
    let plan = compiled
        .plan
        .ok_or(format!("issues: {:#?}", compiled.issues))?;
    let plan = Plan::load(plan).map_err(|e| e.to_string())?;
    let fixtures = Fixtures::read(&reference.fixtures).map_err(|e| e.to_string())?;
    let input = Arc::new(reference.input);
    let run = || {
        let input = Arc::clone(&input);
        simulate(
            &plan,
            input,
            &fixtures,
            &limits,
            WorkflowReference::default(),
        )
    };
    let done = run().map_err(|e| e.to_string())?.result();
    if let Some(failure) = done.failure {
        return Err(format!("the reference graph fails: {failure:?}"));
    }
    // A tenfold graph with the limits lifted shows whether anything grows faster than it.
    let wide = Limits {
        nodes: 10_000,
        edges: 100_000,
        graph_bytes: 100_000_000,
        ..Limits::default()
    };
    let tenfold = Graph::read(&graph::reference(166).graph).map_err(|e| e.to_string())?;

    let edited = edited(&graph);
    let mut memory = Memory::default();
    let mut next = edited.iter().cycle();
    let mut recheck = || {
        let graph = next.next().unwrap_or(&graph);
        validate::check_with(&mut memory, graph, None, &limits).len()
    };

    let parse = || serde_json::from_str::<Value>(&text).is_ok();
    let check = || validate::check(&graph, None, &limits).len();
    let compile = || compile::compile(&graph, None, &limits).plan.is_some();
    let read = || value::read(&text).map(|v| Graph::read(&v).is_ok());
    let figures = [
        ("core.read.vs-parse", ratio(read, parse)),
        ("core.check.vs-parse", ratio(check, parse)),
        ("core.recheck.vs-check", ratio(&mut recheck, check)),
        ("core.compile.vs-parse", ratio(compile, parse)),
        ("core.simulate.vs-parse", ratio(|| run().is_ok(), parse)),
        (
            "core.growth.tenfold",
            ratio(
                || compile::compile(&tenfold, None, &wide).issues.len(),
                compile,
            ),
        ),
    ];
    let mut missed = false;
    for (name, ratio) in figures {
        let limit = LIMITS
            .iter()
            .find(|(of, _)| *of == name)
            .map(|(_, limit)| *limit);
        missed |= limit.is_some_and(|limit| ratio > limit);
        let value = (ratio * 100.0).round() / 100.0;
        println!(
            "{}",
            json!({"name": name, "value": value, "unit": "ratio", "limit": limit})
        );
    }
    let mut times: Vec<_> = (0..501).map(|_| time(&mut || parse())).collect();
    let micros = (median(&mut times).as_secs_f64() * 1e7).round() / 10.0;
    println!(
        "{}",
        json!({"name": "core.parse", "value": micros, "unit": "µs", "limit": null})
    );
    println!(
        "{}",
        json!({"name": "core.graph-bytes", "value": text.len(), "unit": "bytes", "limit": 65_536})
    );
    Ok(missed)
}

/// The time of `check` and `compile` as the npm package offers them: a value in, a value out.
fn check_and_compile() -> Result<Duration, String> {
    let document = graph::reference(16).graph;
    let limits = Limits::default();
    let both = || -> Result<(Value, Value), String> {
        let graph = Graph::read(&document).map_err(|e| e.to_string())?;
        let issues = value::to_value(&validate::check(&graph, None, &limits));
        let graph = Graph::read(&document).map_err(|e| e.to_string())?;
        let compiled = compile::compile(&graph, None, &limits);
        let plan = value::to_value(&json!({"plan": compiled.plan, "issues": compiled.issues}));
        Ok((issues.map_err(|e| e.detail)?, plan.map_err(|e| e.detail)?))
    };
    both()?;
    let begun = worked();
    let mut times = Vec::new();
    while times.len() < 11 || worked() - begun < Duration::from_secs(1) {
        times.push(time(&mut || both()));
    }
    Ok(median(&mut times))
}

/// What must hold.
const LIMITS: [(&str, f64); 3] = [
    ("core.compile.vs-parse", 8.0),
    ("core.simulate.vs-parse", 60.0),
    ("core.growth.tenfold", 12.0),
];

/// The graph after small edits: other labels, and other literals in a gate.
fn edited(graph: &Graph) -> Vec<Graph> {
    let mut graphs = Vec::new();
    for text in ["one", "two"] {
        let mut edited = graph.clone();
        if let Some(node) = edited.nodes.first_mut() {
            node.label = Some(text.to_owned());
        }
        graphs.push(edited.clone());
        let mut gates = edited.nodes.iter_mut();
        if let Some(Kind::Gate(gate)) = gates.find_map(|node| match &mut node.kind {
            gate @ Kind::Gate(_) => Some(gate),
            _ => None,
        }) && let Some(logic) = &mut gate.logic
        {
            logic.expr = Some(json!({"ne": [{"read": "/0"}, {"literal": text}]}));
        }
        graphs.push(edited);
    }
    graphs
}

/// The median time of one call as a multiple of another's, over a second of work or at least
/// eleven rounds. Each round takes both, so that both meet the same machine, and only what this
/// thread worked counts, so that other work on it does not.
fn ratio<T, U>(mut call: impl FnMut() -> T, mut base: impl FnMut() -> U) -> f64 {
    let (mut of_call, mut of_base) = (Vec::new(), Vec::new());
    let begun = worked();
    while of_call.len() < 11 || worked() - begun < Duration::from_secs(1) {
        of_base.push(time(&mut base));
        of_call.push(time(&mut call));
    }
    median(&mut of_call).as_secs_f64() / median(&mut of_base).as_secs_f64()
}

fn time<T>(call: &mut impl FnMut() -> T) -> Duration {
    let before = worked();
    black_box(call());
    worked() - before
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// How long this thread has been at work.
fn worked() -> Duration {
    let at = clock_gettime(ClockId::ThreadCPUTime);
    let at = (u64::try_from(at.tv_sec), u32::try_from(at.tv_nsec));
    // No thread has worked for less than nothing.
    Duration::new(at.0.unwrap_or_default(), at.1.unwrap_or_default())
}
