//! What comes to the machine from outside its events: fixtures that fit no node (wire-format.md
//! X1, X2, X5) and the platform's own words (M4, run-machine.md V2), inputs at their limit (J4) and secrets (S5).

use serde_json::{Value, json};
use sluicegate_core::code::Code;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{Event, NodeStatus, Run, RunStatus, Start, needs};
use sluicegate_core::simulate::{Fixtures, Refused};
use sluicegate_core::time::{Instant, Millis};

use super::live::{World, success};
use super::order::{run, try_run};
use super::plans::{node, plan, plan_with};

/// An agent that is told every platform variable, before an output.
fn told_everything() -> Plan {
    let variables = [
        "run.id",
        "run.workflow-key",
        "run.workflow-revision",
        "run.queued-at",
        "actor.label",
        "tenant.id",
    ];
    let mut parts = Vec::new();
    for variable in variables {
        parts.push(json!({"text": " "}));
        parts.push(json!({"platform": variable}));
    }
    let mappings = json!([{"target": "/told", "binding": {"kind": "template", "parts": parts}}]);
    plan(
        &[
            node("in", "input", json!({})),
            node("a", "agent", json!({ "mappings": mappings })),
            node("o", "output", json!({})),
        ],
        &["e1: in.data > a.input", "e2: a.success > o.input"],
    )
}

#[test]
fn m4_a_live_run_tells_who_runs_what_and_a_simulation_v2_tells_neither() {
    let plan = told_everything();
    let mut world = World::new(&plan, Box::new(|_| success(json!("ok"))));
    world.now = 951_782_400_123;
    world.queue(json!({}));
    world.claim();
    world.finish();
    let live = " r1 w 3 2000-02-29T00:00:00.123Z Ada t1";
    let told = |value: &Value| value["told"].as_str().unwrap().to_owned();
    assert_eq!(told(&world.payloads["a/1/input"]), live);

    let fixtures = json!({"nodes": {"a": {"attempts": [{"outcome": "success", "output": "ok"}]}}});
    let done = run(&plan, json!({}), fixtures);
    let input = done.payloads.iter();
    let input = input.clone().find(|p| p.id.as_str() == "a/1/input");
    let id = done.run.run_id();
    let simulated = format!(" {id} draft 0 1970-01-01T00:00:00.000Z simulation simulation");
    assert_eq!(told(&input.unwrap().value), simulated);
}

#[test]
fn x1_x2_x5_what_fits_no_node_is_named_with_its_place_and_reason() {
    let plan = plan(
        &[
            node("in", "input", json!({})),
            node(
                "a",
                "agent",
                json!({"ports": {"input": "std.any", "success": "std.text", "failure": "std.failure"}}),
            ),
            node(
                "d",
                "agent-decision",
                json!({"ports": {"input": "std.any", "pass": "std.any", "fail": "std.text",
                    "failure": "std.failure"}}),
            ),
            node("o", "output", json!({})),
            node("p", "output", json!({})),
        ],
        &[
            "e1: in.data > a.input",
            "e2: a.success > d.input",
            "e3: d.pass > o.input",
            "e4: d.fail > p.input",
        ],
    );
    let said = |nodes: Value| match try_run(&plan, json!(1), json!({ "nodes": nodes })) {
        Err(Refused::Fixtures(errors)) => json!(errors),
        other => panic!("{other:?}"),
    };
    let (text, pass) = (
        json!({"outcome": "success", "output": "x"}),
        json!({"outcome": "pass", "data": 1}),
    );
    let fits = |node: &str, attempt: &Value| json!({ node: {"attempts": [attempt]} });
    let with = |mut nodes: Value, more: Value| {
        let members = more.as_object().unwrap().clone();
        nodes.as_object_mut().unwrap().extend(members);
        nodes
    };
    let (a, d) = (fits("a", &text), fits("d", &pass));
    for (nodes, node, pointer, reason) in [
        (
            with(
                fits("a", &json!({"outcome": "success", "output": 1})),
                d.clone(),
            ),
            "a",
            "/nodes/a/attempts/0/output",
            "schema std.text of port success",
        ),
        (
            with(a.clone(), fits("d", &json!({"outcome": "fail", "data": 1}))),
            "d",
            "/nodes/d/attempts/0/data",
            "schema std.text of port fail",
        ),
        (
            with(fits("a", &pass), d.clone()),
            "a",
            "/nodes/a/attempts/0/outcome",
            "an agent node takes",
        ),
        (
            with(with(a.clone(), d.clone()), fits("in", &text)),
            "in",
            "/nodes/in/attempts/0",
            "an input node runs for real",
        ),
        (
            with(
                with(a.clone(), d.clone()),
                fits("o", &json!({"outcome": "failure", "code": "agent.failed"})),
            ),
            "o",
            "/nodes/o/attempts/0",
            "an output node runs for real",
        ),
    ] {
        let errors = said(nodes);
        assert_eq!(errors.as_array().unwrap().len(), 1, "{errors}");
        assert_eq!(errors[0]["nodeId"], node);
        assert_eq!(errors[0]["pointer"], pointer);
        let said = errors[0]["reason"].as_str().unwrap();
        assert!(said.contains(reason), "{said}");
    }
    // A failure needs no schema, and its message may be left out.
    let failed = fits("a", &json!({"outcome": "failure", "code": "agent.failed"}));
    let done = run(&plan, json!(1), json!({"nodes": with(failed, d)}));
    let failure = done.run.end().unwrap().failure.as_ref().unwrap();
    assert_eq!(
        (failure.code.as_str(), failure.message.as_str()),
        ("agent.failed", "agent.failed")
    );
}

#[test]
fn x1_j4_a_fixture_s_shape_is_refused_by_pointer() {
    let within = |attempt: Value| json!({"nodes": {"a": {"attempts": [attempt]}}});
    let at = "/nodes/a/attempts/0";
    let day = 86_400_000_u64;
    for (document, code, pointer) in [
        (
            within(json!({"outcome": "perhaps"})),
            Code::JsonWrongType,
            format!("{at}/outcome"),
        ),
        (
            within(json!({"outcome": "success"})),
            Code::JsonMissingMember,
            at.to_owned(),
        ),
        (
            within(json!({"outcome": "success", "output": 1, "data": 1})),
            Code::JsonUnknownMember,
            format!("{at}/data"),
        ),
        (
            within(json!({"outcome": "success", "output": 1, "simulatedDurationMs": -1})),
            Code::JsonWrongType,
            format!("{at}/simulatedDurationMs"),
        ),
        (
            json!({"nodes": {"a": {"simulatedDurationMs": day + 1}}}),
            Code::JsonWrongType,
            "/nodes/a/simulatedDurationMs".to_owned(),
        ),
    ] {
        let error = Fixtures::read(&document).unwrap_err();
        assert_eq!((error.code, error.pointer), (code, pointer), "{document}");
    }
    let longest = json!({"nodes": {"a": {"simulatedDurationMs": day}}});
    assert!(Fixtures::read(&longest).is_ok());
}

#[test]
fn j4_an_input_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() {
    let plan = plan(
        &[
            node("in", "input", json!({})),
            node("o", "output", json!({})),
        ],
        &["e1: in.data > o.input"],
    );
    let bytes = |count: usize| json!("x".repeat(count - 2));
    let done = run(&plan, bytes(65_536), json!({}));
    assert_eq!(done.run.status(), RunStatus::Succeeded);
    match try_run(&plan, bytes(65_537), json!({})) {
        Err(Refused::Input { code, .. }) => assert_eq!(code, Code::WorkflowLimitExceeded),
        other => panic!("{other:?}"),
    }
}

#[test]
fn s5_what_a_decision_has_to_scrub_is_needed_though_no_node_reads_it_any_more() {
    let secret = json!({"login": {"type": "object",
        "properties": {"word": {"type": "string", "writeOnly": true}}}});
    let plan = plan_with(
        &[
            node("in", "input", json!({"ports": {"data": "login"}})),
            node(
                "a",
                "agent",
                json!({"mappings": [{"target": "", "binding": {"kind": "path", "nodeId": "in",
                    "port": "data", "pointer": "/word"}}]}),
            ),
            node("b", "agent", json!({})),
            node("o", "output", json!({})),
        ],
        &[
            "e1: in.data > a.input",
            "e2: a.success > b.input",
            "e3: b.success > o.input",
        ],
        secret,
    );
    // The second agent was never told, and says it all the same.
    let script = |start: &Start| match start.node_id.as_str() {
        "a" => success(json!("fine")),
        _ => success(json!("the word is sesame-open")),
    };
    let mut world = World::new(&plan, Box::new(script));
    world.queue(json!({"word": "sesame-open"}));
    world.claim();
    while world.run().state(plan.find_node("a").unwrap()).status() != NodeStatus::Succeeded {
        assert!(world.step());
    }
    let wanted = needs(&plan, &world.run());
    assert!(wanted.iter().any(|id| id.as_str() == "input"), "{wanted:?}");
    let mut shown = String::new();
    while !world.run().status().is_terminal() {
        world.step();
    }
    for event in &world.log {
        shown.push_str(&serde_json::to_string(event).unwrap());
    }
    shown.push_str(&world.payloads["result"].to_string());
    assert!(!shown.contains("sesame-open"), "{shown}");
}

#[test]
fn o5_neither_clock_runs_back() {
    let plan = told_everything();
    let mut world = World::new(&plan, Box::new(|_| success(json!("ok"))));
    world.queue(json!({}));
    world.claim();
    world.finish();
    let fixtures = json!({"nodes": {"a": {"attempts":
        [{"outcome": "success", "output": "ok", "simulatedDurationMs": 9}]}}});
    let simulated = run(&plan, json!({}), fixtures).events;
    for log in [&world.log, &simulated] {
        let mut fold = Run::new(&plan, "t1".into(), "r1".into());
        let mut tried = 0;
        for event in log {
            let before = fold.clock();
            let earlier = Event {
                recorded_at: before.recorded_at.map(|at| Instant(at.0.saturating_sub(1))),
                virtual_offset_ms: before
                    .virtual_offset_ms
                    .map(|at| Millis(at.0.saturating_sub(1))),
                ..event.clone()
            };
            if (earlier.recorded_at, earlier.virtual_offset_ms)
                < (before.recorded_at, before.virtual_offset_ms)
            {
                let mut back = fold.clone();
                let refused = back.apply(&plan, &earlier).unwrap_err();
                assert_eq!(refused.code, Code::WorkflowEventTransitionInvalid);
                assert_eq!(back, fold);
                tried += 1;
            }
            fold.apply(&plan, event).unwrap();
        }
        assert!(tried > 3, "{tried}");
    }
}
