//! The laws for generated graph documents, compiled as they would be for real: mappings,
//! templates, gates that read, validators, merges, policies (architecture.md "Tests"); and that
//! no secret shows anywhere, however it was carried (wire-format.md S5).

use std::rc::Rc;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{ChildOutcome, Start, WorkflowReference};
use sluicegate_core::simulate::{Fixtures, Simulation, simulate};
use sluicegate_core::value::canonical;

use super::life::{Script, hold, keep_all_laws};
use super::small::{Middle, Port, Shape, middles, plan};

const NAMES: [&str; 16] = [
    "n00", "n01", "n02", "n03", "n04", "n05", "n06", "n07", "n08", "n09", "n10", "n11", "n12",
    "n13", "n14", "n15",
];

/// A secret with every character that some form escapes.
const WORD: &str = "canary-word/~\"\\\u{1}\u{200b}é";
const PIN: f64 = 918_273.5;
/// No schema of the input marks it; a node's mapping may carry it to a marked place.
const PLAIN: &str = "canary-plain";

/// Which kind stands where, what it takes, how its child ends, and whether it has mappings.
#[derive(Debug, Clone)]
struct Pick {
    kind: usize,
    takes: Vec<usize>,
    end: usize,
    maps: usize,
}

fn picks() -> impl Strategy<Value = Vec<Pick>> {
    let pick = (
        0..100usize,
        prop::collection::vec(0..100usize, 1..4),
        0..100usize,
        0..4usize,
    );
    let pick = pick.prop_map(|(kind, takes, end, maps)| Pick {
        kind,
        takes,
        end,
        maps,
    });
    prop::collection::vec(pick, 0..5)
}

/// A plan, what its children do, and whether a mapping carries `PLAIN` to a secret place.
struct Made {
    plan: Plan,
    fixtures: Value,
    hides_plain: bool,
}

fn make(picks: &[Pick]) -> Made {
    make_named(picks, &NAMES)
}

fn make_named(picks: &[Pick], names: &[&str]) -> Made {
    let kinds: Vec<Middle> = middles();
    let mut shape = Shape {
        middles: Vec::new(),
        takes: Vec::new(),
        outputs: Vec::new(),
    };
    let mut fixtures = serde_json::Map::new();
    for (at, pick) in picks.iter().enumerate() {
        let middle = kinds[pick.kind % kinds.len()].clone();
        let ports = shape.ports();
        let many = if middle.node_type == "merge" { 3 } else { 1 };
        let mut takes: Vec<Port> = Vec::new();
        for take in pick.takes.iter().take(many) {
            let port = ports[take % ports.len()];
            if !takes.contains(&port) {
                takes.push(port);
            }
        }
        if !middle.ends.is_empty() {
            let end = echoing(&middle.ends[pick.end % middle.ends.len()]);
            fixtures.insert(names[at + 1].to_owned(), json!({"attempts": end}));
        }
        shape.middles.push(middle);
        shape.takes.push(takes);
    }
    let unused: Vec<Port> = shape
        .ports()
        .into_iter()
        .filter(|port| !shape.takes(port))
        .collect();
    shape.outputs = if unused.is_empty() {
        vec![(0, "data")]
    } else {
        unused
    };
    let mut document = shape.document(names);
    document["nodes"][0]["ports"]["data"] = json!("login");
    let schemas = document["schemas"].as_object_mut().unwrap();
    let secret = json!({"writeOnly": true});
    schemas.insert(
        "login".to_owned(),
        json!({"type": "object",
        "properties": {"word": secret, "pin": secret, "box": secret, "x": true, "plain": true}}),
    );
    let mut hides_plain = false;
    for (at, pick) in picks.iter().enumerate() {
        if shape.middles[at].ends.is_empty() || pick.maps == 0 {
            continue;
        }
        let read = |pointer: &str| json!({"kind": "path", "sourceNodeId": names[0], "sourcePort": "data", "pointer": pointer});
        let template = json!({"kind": "template", "template": "{{run}}: {{w}}, {{p}}, {{b}}",
            "variables": [{"name": "run", "platform": "run.id"}, {"name": "w", "binding": read("/word")},
                {"name": "p", "binding": read("/pin")}, {"name": "b", "binding": read("/box")}]});
        let mut mappings = vec![
            json!({"targetPointer": "/text", "binding": template}),
            json!({"targetPointer": "/copy", "binding": read("/box")}),
        ];
        if pick.maps == 2 {
            hides_plain = true;
            mappings.push(json!({"targetPointer": "/in/secret", "binding": read("/plain")}));
        }
        if pick.maps == 3 {
            // It may not be there, which follows the policy (A3).
            mappings.push(json!({"targetPointer": "/x", "binding": read("/missing")}));
        }
        document["nodes"][at + 1]["mappings"] = mappings.into();
        document["nodes"][at + 1]["ports"]["input"] = json!("secretly");
    }
    if picks
        .iter()
        .enumerate()
        .any(|(at, pick)| pick.maps > 0 && !shape.middles[at].ends.is_empty())
    {
        let schemas = document["schemas"].as_object_mut().unwrap();
        schemas.insert(
            "secretly".to_owned(),
            json!({"type": "object",
            "properties": {"in": {"properties": {"secret": {"writeOnly": true}}}}}),
        );
    }
    Made {
        plan: plan(&document),
        fixtures: json!({ "nodes": fixtures }),
        hides_plain,
    }
}

/// Children that repeat what they should not, in every form.
fn echoing(attempts: &Value) -> Value {
    let quoted = canonical(&json!(WORD));
    let twice = canonical(&json!(quoted));
    let echo = json!({
        "said": format!("the word is {WORD}, {quoted}, {twice}"), "pin": PIN,
        "text": format!("pin {PIN}! {}", canonical(&secret_box())), WORD: 1,
        "box": secret_box(), "plain": format!("<{PLAIN}>"), "x": 1,
    });
    let tell = |attempt: &Value| {
        let mut attempt = attempt.clone();
        match attempt["outcome"].as_str().unwrap() {
            "failure" => {
                let pointer = format!("/{}", WORD.replace('~', "~0").replace('/', "~1"));
                let message = format!("{WORD} at {pointer}: {PIN} {twice} {PLAIN}");
                attempt["message"] = message.into();
            }
            "success" => attempt["output"] = echo.clone(),
            _ => {
                attempt["data"] = echo.clone();
                attempt["reason"] = format!("because of {WORD} and {PIN}, {PLAIN}").into();
            }
        }
        attempt
    };
    attempts.as_array().unwrap().iter().map(tell).collect()
}

fn secret_box() -> Value {
    json!({"canary-name": {"inner": "canary-inner"}, "list": ["canary-item"]})
}

fn input() -> Value {
    json!({"x": 1, "word": WORD, "pin": PIN, "box": secret_box(), "plain": PLAIN})
}

/// Live children that do as the fixtures say.
fn live_script(fixtures: &Value) -> Script {
    let fixtures = fixtures.clone();
    Rc::new(move |start: &Start| {
        let attempts = fixtures["nodes"][start.node_id.as_str()]["attempts"]
            .as_array()
            .unwrap();
        let entry = &attempts[(start.attempt as usize - 1).min(attempts.len() - 1)];
        let text = |name: &str| entry[name].as_str().unwrap().to_owned();
        match &*text("outcome") {
            "failure" if entry["code"] == "permission.denied" => ChildOutcome::Refused {
                code: text("code"),
                message: text("message"),
            },
            "failure" => ChildOutcome::Failure {
                code: text("code"),
                message: text("message"),
            },
            "success" => ChildOutcome::Success {
                output: Arc::new(entry["output"].clone()),
            },
            port => ChildOutcome::Decision {
                answer: Arc::new(
                    json!({"decision": port, "data": entry["data"], "reason": entry["reason"]}),
                ),
            },
        }
    })
}

fn run(made: &Made) -> Simulation {
    let fixtures = Fixtures::read(&made.fixtures).unwrap();
    let (limits, reference) = (Limits::default(), WorkflowReference::default());
    simulate(&made.plan, Arc::new(input()), &fixtures, &limits, reference).unwrap()
}

/// Everything of a run that anybody can read.
fn readable(done: &Simulation) -> String {
    let result = done.result();
    assert!(result.payloads.is_some() && result.events.is_some());
    serde_json::to_string(&result).unwrap()
}

proptest! {
    // Each is a run for every commit that it can be cut, cancelled or overdue at.
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn generated_graphs_keep_every_law(picks in picks()) {
        let made = make(&picks);
        let done = run(&made);
        hold(&made.plan, &done.run, &done.events);
        prop_assert_eq!(&run(&made).events, &done.events, "X4");
        keep_all_laws(&made.plan, &input(), &live_script(&made.fixtures));
    }
}

proptest! {
    #[test]
    fn o1_the_smallest_ready_id_is_always_next(picks in picks(), names in Just(NAMES.to_vec()).prop_shuffle()) {
        let made = make_named(&picks, &names);
        let mut placed: Vec<&str> = Vec::new();
        let nodes = made.plan.nodes();
        while placed.len() < nodes.len() {
            let is_ready = |id: &str| {
                let mut into = made.plan.edges().iter().filter(|edge| edge.target.node_id == id);
                !placed.contains(&id) && into.all(|edge| placed.contains(&edge.source.node_id.as_str()))
            };
            let next = nodes.iter().map(|node| node.id.as_str()).filter(|id| is_ready(id)).min();
            placed.push(next.unwrap());
        }
        let order: Vec<&str> = nodes.iter().map(|node| node.id.as_str()).collect();
        prop_assert_eq!(order, placed);
    }

    #[test]
    fn s5_no_secret_shows_however_it_was_carried(picks in picks()) {
        let made = make(&picks);
        let seen = readable(&run(&made));
        for secret in ["canary-word", "918273.5", "canary-inner", "canary-item", "canary-name"] {
            prop_assert!(!seen.contains(secret), "{secret} in {seen}");
        }
        prop_assert!(!made.hides_plain || !seen.contains(PLAIN), "{PLAIN} in {seen}");
    }
}

#[test]
fn s5_what_is_mapped_to_a_secret_place_is_a_secret_from_the_start() {
    // Directly, through a gate, and out of a merge's item.
    let pick = |kind: usize, takes: Vec<usize>, maps| Pick {
        kind,
        takes,
        end: 0,
        maps,
    };
    let agent = 0;
    let made = make(&[pick(agent, vec![0], 2)]);
    assert!(made.hides_plain);
    let done = run(&made);
    assert!(!readable(&done).contains(PLAIN));
    let first = &done.payloads[0];
    assert_eq!(first.id.as_str(), "input");
    let preview = first.evidence.preview.clone().unwrap();
    assert_eq!(preview["plain"], "***");
    assert_eq!(preview["x"], 1);
    // Without such a mapping it is plain.
    assert!(readable(&run(&make(&[pick(agent, vec![0], 1)]))).contains(PLAIN));
}
