//! Which event may follow in which state, and what it makes of the state, as one table that a
//! reader can hold against the seed (seed A "Status model"; run-machine.md §1, A9).
//!
//! The table is `docs/transitions.md`. It is found by trying: every state that the runs of some
//! plans pass through meets every event that any run of the same plan holds. What `apply` takes
//! is a row; what it refuses has to leave the run as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;
use std::sync::OnceLock;

use serde_json::{Value, json};
use sluicegate_core::code::Code;
use sluicegate_core::limits::Limits;
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{
    Command, Event, NodeStatus, Payload, PayloadKind, RetentionApplied, RetentionPolicy,
    RetiredPayload, Run, RunStatus,
};

use super::laws::script;
use super::life::{Life, Manner, Script};
use super::plans::{node, plan, policy};

/// `from → event → to`.
type Table = BTreeMap<&'static str, BTreeMap<&'static str, BTreeSet<&'static str>>>;

pub(crate) fn cases() -> Vec<(Plan, Vec<Value>)> {
    let retried = policy(2, &["agent.timeout", "action.timeout"], "fail-run");
    let emits = policy(2, &["agent.timeout", "action.timeout"], "emit-failure");
    let failure = |code: &str| json!({"outcome": "failure", "code": code});
    let ends = |good: Value| {
        let ends = [
            json!([good]),
            json!([failure("agent.timeout"), good]),
            json!([failure("agent.timeout")]),
            json!([failure("agent.declined")]),
            json!([failure("permission.denied")]),
        ];
        ends.map(|attempts| json!({"nodes": {"x": {"attempts": attempts}}}))
    };
    let success = json!({"outcome": "success", "output": {"s": 1}});
    let chain = |kind: &str, policy: &Value| {
        plan(
            &[
                node("in", "input", json!({})),
                node("x", kind, json!({ "policy": policy })),
                node("out", "output", json!({})),
            ],
            &["e1: in.data > x.input", "e2: x.success > out.input"],
        )
    };
    let forked = |kind: &str, policy: &Value, ports: [&str; 2]| {
        let edges = [
            "e1: in.data > x.input".to_owned(),
            format!("e2: x.{} > o1.input", ports[0]),
            format!("e3: x.{} > m.items", ports[1]),
            "e4: in.data > g.input".to_owned(),
            "e5: g.fail > m.items".to_owned(),
            "e6: m.data > o2.input".to_owned(),
            "e7: g.pass > o3.input".to_owned(),
        ];
        let edges = edges.each_ref().map(String::as_str);
        plan(
            &[
                node("in", "input", json!({})),
                node("x", kind, json!({ "policy": policy })),
                node("g", "gate", json!({})),
                node(
                    "m",
                    "merge",
                    json!({"ports": {"items": "std.any", "data": "std.merged"}}),
                ),
                node("o1", "output", json!({})),
                node("o2", "output", json!({})),
                node("o3", "output", json!({})),
            ],
            &edges,
        )
    };
    let decides = json!({"outcome": "fail", "data": {"d": 1}});
    vec![
        (chain("agent", &retried), ends(success.clone()).to_vec()),
        (chain("action", &retried), ends(success.clone()).to_vec()),
        (
            forked("action", &emits, ["success", "failure"]),
            ends(success).to_vec(),
        ),
        (
            forked("agent-decision", &emits, ["pass", "fail"]),
            ends(decides).to_vec(),
        ),
    ]
}

/// What the runs of a plan may tell: with every answer of its child, refused, claimed again,
/// too late or cancelled at every commit.
pub(crate) fn logs(plan: &Plan, all_fixtures: &[Value]) -> Vec<Vec<Event>> {
    let mut logs: Vec<Vec<Event>> = Vec::new();
    for fixtures in all_fixtures {
        let script: Script = Rc::new(script(fixtures));
        let mut life = Life::new(plan, &json!({"x": 1}), script, Limits::default());
        for claims in [false, true] {
            let mut refused = life.clone();
            if claims {
                refused.claim();
            }
            let preflight = Command::PreflightFailed {
                code: Code::PermissionDenied,
                message: "no".to_owned(),
                node_id: None,
            };
            refused.decide(preflight).unwrap();
            logs.push(refused.log);
        }
        let mut unclaimed = life.clone();
        unclaimed.cancel().unwrap();
        logs.push(unclaimed.log);
        life.claim();
        for mut state in life.finish(Manner::Stops) {
            if state.run.status().is_terminal() {
                state.decide(Command::Retire(retention())).unwrap();
                logs.push(state.log);
                continue;
            }
            let mut again = state.clone();
            again.claim();
            logs.push(again.log);
            let mut late = state.clone();
            late.now += 86_400_001;
            late.claim();
            late.finish(Manner::Stops);
            logs.push(late.log);
            state.cancel().unwrap();
            for manner in [Manner::Stops, Manner::Rejects, Manner::Deaf, Manner::KnewIt] {
                let mut life = state.clone();
                life.finish(manner);
                logs.push(life.log);
            }
        }
    }
    logs
}

/// Every state that the runs of a plan pass through, and every event that they hold.
fn reached(plan: &Plan, all_fixtures: &[Value]) -> (Vec<Run>, Vec<Event>) {
    let (mut states, mut events) = (BTreeMap::new(), BTreeMap::new());
    for log in logs(plan, all_fixtures) {
        let mut run = Run::new(plan, "t1".into(), "r1".into());
        for event in log {
            states
                .entry(format!("{:?}", shape(&run)))
                .or_insert_with(|| run.clone());
            run.apply(plan, &event).unwrap();
            let payload = format!("{:?}", event.payload);
            events.entry(payload).or_insert(event);
        }
        states.entry(format!("{:?}", shape(&run))).or_insert(run);
    }
    (
        states.into_values().collect(),
        events.into_values().collect(),
    )
}

/// What of a run decides which event may follow: all but time, and of the count only what a
/// retry names.
pub(crate) fn shape(run: &Run) -> impl std::fmt::Debug {
    let nodes: Vec<_> = run
        .nodes()
        .iter()
        .map(|node| {
            let last = node.attempts.last();
            let child = last.map(|a| (a.child.is_some(), a.cancellation, a.late, a.code.clone()));
            let retry = node.retry.as_ref().map(|retry| retry.at.sequence);
            (
                retry,
                node.status(),
                node.attempts.len(),
                node.outcome_port.clone(),
                child,
            )
        })
        .collect();
    let edges: Vec<_> = run
        .edges()
        .iter()
        .map(|edge| edge.as_ref().map(|e| e.settled.reason))
        .collect();
    (run.status(), run.queued().is_some(), nodes, edges)
}

fn retention() -> RetentionApplied {
    RetentionApplied {
        policy: RetentionPolicy {
            kind: "evidence".to_owned(),
            days: 1,
        },
        payloads: vec![RetiredPayload {
            payload_id: "input".into(),
            kind: PayloadKind::Evidence,
            hash: None,
            prior_state: None,
        }],
    }
}

/// The status, where a run that does not exist yet has one of its own.
fn status(run: &Run) -> &'static str {
    match run.queued() {
        None => "none",
        Some(_) => run.status().as_str(),
    }
}

/// What is found, once for all tests.
fn tables() -> &'static (Table, Table) {
    static TABLES: OnceLock<(Table, Table)> = OnceLock::new();
    TABLES.get_or_init(find)
}

/// Tries every event in every state.
fn find() -> (Table, Table) {
    let (mut runs, mut nodes) = (Table::new(), Table::new());
    let row = |table: &mut Table, from, event: &Event, to| {
        let name = event.payload.type_name();
        table
            .entry(from)
            .or_default()
            .entry(name)
            .or_default()
            .insert(to);
    };
    for (plan, fixtures) in cases() {
        let (states, events) = reached(&plan, &fixtures);
        for run in &states {
            let mut next = run.clone();
            for event in &events {
                let event = Event {
                    sequence: run.sequence() + 1,
                    recorded_at: run.clock().recorded_at.max(event.recorded_at),
                    ..event.clone()
                };
                if let Err(corrupt) = next.apply(&plan, &event) {
                    assert_eq!(corrupt.code, Code::WorkflowEventTransitionInvalid);
                    assert_eq!(corrupt.sequence, event.sequence);
                    assert_eq!(&next, run, "a refused event changes nothing");
                    continue;
                }
                row(&mut runs, status(run), &event, status(&next));
                if let Some(index) = event
                    .payload
                    .node_id()
                    .and_then(|id| plan.find_node(id.as_str()))
                {
                    let before = run.state(index).status().as_str();
                    row(
                        &mut nodes,
                        before,
                        &event,
                        next.state(index).status().as_str(),
                    );
                }
                next = run.clone();
            }
        }
    }
    (runs, nodes)
}

fn render() -> String {
    let (runs, nodes) = tables();
    let mut text = String::from(
        "# Legal transitions\n\n\
         What one event may do in each state: an event that has no cell here is refused with\n\
         `WORKFLOW_EVENT_TRANSITION_INVALID` and leaves the run as it was. A cell names the status that\n\
         follows, all of them where what the event says decides. More must hold than a table can say: the\n\
         node, attempt and child that an event names, and who ended and why. Made by\n\
         `core/tests/machine/transitions.rs` from `Run::apply`, and compared with it in every test run.\n",
    );
    let run_order = [
        "none",
        "queued",
        "running",
        "waiting-agent",
        "waiting-retry",
        "cancel-requested",
        "succeeded",
        "failed",
        "refused",
        "cancelled",
    ];
    let node_order = [
        "pending",
        "ready",
        "running",
        "waiting-child",
        "waiting-retry",
        "succeeded",
        "failed",
        "refused",
        "skipped",
        "cancelled",
    ];
    for (title, table, order) in [
        ("A run, by its status", runs, run_order),
        (
            "A node, by its status and the events about it",
            nodes,
            node_order,
        ),
    ] {
        let _ = writeln!(
            text,
            "\n## {title}\n\n| status | event | then |\n|---|---|---|"
        );
        for from in order {
            let Some(cells) = table.get(from) else {
                let _ = writeln!(text, "| `{from}` | none | |");
                continue;
            };
            for name in Payload::TYPES {
                let Some(then) = cells.get(name) else {
                    continue;
                };
                let in_order = order.iter().filter(|to| then.contains(*to));
                let then: Vec<String> = in_order.map(|to| format!("`{to}`")).collect();
                let _ = writeln!(text, "| `{from}` | `{name}` | {} |", then.join(", "));
            }
        }
    }
    text
}

#[test]
fn the_table_of_legal_transitions_is_what_apply_takes() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/transitions.md");
    let made = render();
    if std::env::var_os("SLUICEGATE_WRITE_DOCS").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    assert!(
        made == std::fs::read_to_string(&path).unwrap(),
        "docs/transitions.md is not what apply takes: run this test with SLUICEGATE_WRITE_DOCS=1"
    );
}

#[test]
fn the_seed_allows_every_transition_of_a_run() {
    let (runs, _) = tables();
    for (from, cells) in runs {
        for then in cells.values().flatten() {
            let allowed = match *from {
                "none" => &["queued"][..],
                "queued" => &["queued", "running", "cancel-requested", "refused"],
                "running" | "waiting-agent" | "waiting-retry" => &[
                    "running",
                    "waiting-agent",
                    "waiting-retry",
                    "cancel-requested",
                    "succeeded",
                    "failed",
                    "refused",
                ],
                "cancel-requested" => &["cancel-requested", "cancelled"],
                terminal => &[terminal][..],
            };
            assert!(allowed.contains(then), "{from} → {then}");
        }
    }
}

#[test]
fn no_status_is_left_out_of_the_table() {
    let (runs, nodes) = tables();
    let statuses = [
        RunStatus::Queued,
        RunStatus::Running,
        RunStatus::WaitingAgent,
        RunStatus::WaitingRetry,
        RunStatus::CancelRequested,
        RunStatus::Succeeded,
        RunStatus::Failed,
        RunStatus::Refused,
        RunStatus::Cancelled,
    ];
    for status in statuses {
        assert!(runs.contains_key(status.as_str()), "{}", status.as_str());
    }
    let open = [
        NodeStatus::Pending,
        NodeStatus::Ready,
        NodeStatus::Running,
        NodeStatus::WaitingChild,
        NodeStatus::WaitingRetry,
    ];
    for status in open {
        assert!(nodes.contains_key(status.as_str()), "{}", status.as_str());
    }
    let seen: BTreeSet<&str> = runs
        .values()
        .flat_map(|cells| cells.keys().copied())
        .collect();
    assert!(
        Payload::TYPES.iter().all(|name| seen.contains(name)),
        "every event type is legal somewhere"
    );
}
