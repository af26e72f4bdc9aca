//! Live runs on both databases, in one process (run-machine.md §§3–8).

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod harness;

use std::time::Duration;

use harness::ground::Ground;
use harness::{House, by, on_both, sample};
use serde_json::json;
use sluicegate_core::run::RunStatus;
use sluicegate_core::simulate::Fixtures;
use sluicegate_core::value::Value;
use sluicegate_server::engine::{Simulate, Subject};

async fn every_sample_case_runs_live_to_an_end_that_its_log_and_rows_agree_on(ground: Ground) {
    let house = ground.house().await;
    house.sample_agents().await;
    let workers = house.workers("w1");
    for key in ["expenses.review", "support.triage", "invoice.check"] {
        house.publish_sample(key).await;
        let cases = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../samples")
            .join(key);
        let mut names: Vec<String> = std::fs::read_dir(cases)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".input.json").map(str::to_owned))
            .collect();
        names.sort();
        assert!(!names.is_empty());
        for name in names {
            let input = sample(&format!("{key}/{name}.input.json"));
            let run = house
                .enqueue(key, input, &format!("{key}:{name}"))
                .await
                .run_id;
            let status = house.ended(&run).await;
            house.check(&run).await;
            if status == RunStatus::Succeeded {
                let result = house.engine.result(&by().tenant, &run).await.unwrap();
                assert!(!result.outputs.unwrap().is_empty());
            }
        }
    }
    assert!(workers.stop(Duration::from_secs(5)).await);
}

async fn n2_a_repeated_key_gives_the_first_run_and_anything_else_is_a_conflict(ground: Ground) {
    let house = ground.house().await;
    house.sample_agents().await;
    let id = house.publish_sample("support.triage").await;
    house.publish_sample("invoice.check").await;
    let input = first_input("support.triage");
    let first = house.enqueue("support.triage", input.clone(), "k").await;
    assert!(first.created);
    let again = house.enqueue("support.triage", input.clone(), "k").await;
    assert_eq!((again.created, &again.run_id), (false, &first.run_id));
    let code = |error: sluicegate_server::engine::EngineError| error.code().as_str();
    for (key, input) in [
        ("invoice.check", input.clone()),
        ("support.triage", json!(1)),
    ] {
        let refused = house.try_enqueue(key, input, "k").await.unwrap_err();
        assert_eq!(code(refused), "WORKFLOW_IDEMPOTENCY_CONFLICT");
    }
    // Looked up before the workflow's state is judged: after an archive too.
    house.store.archive(&by(), &id, 1).await.unwrap();
    let late = house.enqueue("support.triage", input.clone(), "k").await;
    assert_eq!((late.created, late.run_id), (false, first.run_id));
    let refused = house.try_enqueue("support.triage", input, "other").await;
    assert_eq!(code(refused.unwrap_err()), "WORKFLOW_ARCHIVED");
}

async fn n2_many_at_once_make_one_run(ground: Ground) {
    let house = std::sync::Arc::new(ground.house().await);
    house.sample_agents().await;
    house.publish_sample("support.triage").await;
    let input = first_input("support.triage");
    let asking: Vec<_> = (0..20)
        .map(|_| {
            let (house, input) = (house.clone(), input.clone());
            tokio::spawn(async move { house.enqueue("support.triage", input, "k").await })
        })
        .collect();
    let mut created = 0;
    for asked in asking {
        created += usize::from(asked.await.unwrap().created);
    }
    assert_eq!(created, 1);
}

fn first_input(key: &str) -> Value {
    let cases = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../samples")
        .join(key);
    let mut names: Vec<_> = std::fs::read_dir(cases)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".input.json"))
        .collect();
    names.sort();
    sample(&format!("{key}/{}", names[0]))
}

/// input → agent → output, and input → action → output.
fn agent_graph(timeout: u64) -> Value {
    json!({
        "schemaVersion": 1,
        "nodes": [
            {"id": "in", "type": "input", "ports": {"data": "std.any"}},
            {"id": "ask", "type": "agent", "agent": {"agentId": "slow", "revision": 1},
             "timeoutMs": timeout,
             "failurePolicy": {"maxAttempts": 2, "retryOn": ["agent.rate-limited"],
                 "backoff": {"kind": "fixed", "initialMs": 50, "maximumMs": 50},
                 "onExhausted": "fail-run"},
             "ports": {"input": "std.any", "success": "std.text", "failure": "std.failure"}},
            {"id": "out", "type": "output", "ports": {"input": "std.text"}}
        ],
        "edges": [
            {"id": "e1", "source": {"nodeId": "in", "port": "data"},
             "target": {"nodeId": "ask", "port": "input"}},
            {"id": "e2", "source": {"nodeId": "ask", "port": "success"},
             "target": {"nodeId": "out", "port": "input"}}
        ],
        "schemas": {}, "layout": {}
    })
}

fn slow_agent() -> Value {
    json!({
        "agentId": "slow", "name": "Slow", "provider": "scripted", "model": "scripted-1",
        "structuredOutput": true,
        "rules": [
            {"when": {"eq": [{"read": ""}, {"literal": "again"}]}, "attempt": 1,
             "then": {"failure": {"code": "agent.rate-limited"}}},
            {"when": {"eq": [{"read": ""}, {"literal": "slow"}]}, "delayMs": 1500,
             "then": {"text": "late"}, "usage": {"inputTokens": 3, "outputTokens": 4}},
            {"when": {"eq": [{"read": ""}, {"literal": "never"}]}, "delayMs": 600000,
             "then": {"text": "never"}},
            {"when": {"literal": true}, "then": {"text": "> {{ input }}"}}
        ]
    })
}

async fn slow_house(ground: &Ground, timeout: u64) -> House {
    let house = ground.house().await;
    house.agent(slow_agent()).await;
    house.publish("slow.work", &agent_graph(timeout)).await;
    house
}

async fn a_live_run_gives_its_output_and_a_retry_waits_for_its_time(ground: Ground) {
    let house = slow_house(&ground, 60_000).await;
    let workers = house.workers("w1");
    let run = house.enqueue("slow.work", json!("hello"), "a").await.run_id;
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    let result = house.engine.result(&by().tenant, &run).await.unwrap();
    assert_eq!(
        result.outputs.unwrap().values().next(),
        Some(&json!("> hello"))
    );
    house.check(&run).await;
    let run = house.enqueue("slow.work", json!("again"), "b").await.run_id;
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    house.check(&run).await;
    let types = house.types(&run).await;
    assert!(
        types.contains(&"node.retry.scheduled".to_owned()),
        "{types:?}"
    );
    assert_eq!(
        house
            .store
            .children(&by().tenant, &run)
            .await
            .unwrap()
            .len(),
        2
    );
    assert!(workers.stop(Duration::from_secs(5)).await);
}

async fn c1_a_queued_run_is_cancelled_in_the_request(ground: Ground) {
    let house = slow_house(&ground, 60_000).await;
    let run = house.enqueue("slow.work", json!("x"), "a").await.run_id;
    let answer = house
        .engine
        .cancel(&by(), &run, Some("no".to_owned()))
        .await
        .unwrap();
    assert_eq!(answer.status, RunStatus::Cancelled);
    house.check(&run).await;
    let again = house.engine.cancel(&by(), &run, None).await.unwrap();
    assert_eq!(again, answer);
    let types = house.types(&run).await;
    assert_eq!(types.last().unwrap(), "run.cancelled");
    assert!(!types.contains(&"node.attempt.started".to_owned()));
}

async fn c2_a_child_in_flight_is_asked_to_stop(ground: Ground) {
    let house = slow_house(&ground, 60_000).await;
    let workers = house.workers("w1");
    let run = house.enqueue("slow.work", json!("never"), "a").await.run_id;
    house
        .until(&run, |status| status == RunStatus::WaitingAgent)
        .await;
    let answer = house.engine.cancel(&by(), &run, None).await.unwrap();
    assert_eq!(answer.status, RunStatus::CancelRequested);
    assert_eq!(house.ended(&run).await, RunStatus::Cancelled);
    house.check(&run).await;
    let types = house.types(&run).await;
    assert!(
        types.contains(&"node.cancel.acknowledged".to_owned()),
        "{types:?}"
    );
    assert!(workers.stop(Duration::from_secs(5)).await);
}

async fn a8_a_child_beyond_its_deadline_times_out(ground: Ground) {
    let house = slow_house(&ground, 1_000).await;
    let workers = house.workers("w1");
    let run = house.enqueue("slow.work", json!("never"), "a").await.run_id;
    assert_eq!(house.ended(&run).await, RunStatus::Failed);
    let row = house.store.run_row(&by().tenant, &run).await.unwrap().row;
    assert_eq!(row.failure.unwrap().code, "agent.timeout");
    house.check(&run).await;
    assert!(workers.stop(Duration::from_secs(5)).await);
}

async fn w7_what_is_held_is_handed_back_and_another_goes_on_with_the_same_child(ground: Ground) {
    let house = slow_house(&ground, 60_000).await;
    let workers = house.workers("w1");
    let run = house.enqueue("slow.work", json!("slow"), "a").await.run_id;
    house
        .until(&run, |status| status == RunStatus::WaitingAgent)
        .await;
    assert!(workers.stop(Duration::from_secs(5)).await);
    assert_eq!(house.status(&run).await, RunStatus::WaitingAgent);
    let workers = house.workers("w2");
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    house.check(&run).await;
    let children = house.store.children(&by().tenant, &run).await.unwrap();
    assert_eq!(children.len(), 1);
    // Handed back, not recovered.
    let types = house.types(&run).await;
    assert_eq!(
        types.iter().filter(|name| *name == "run.claimed").count(),
        2
    );
    assert!(workers.stop(Duration::from_secs(5)).await);
}

async fn w3_an_expired_lease_is_recovered_and_its_child_taken_over(ground: Ground) {
    let house = slow_house(&ground, 60_000).await;
    let mut deaf = harness::settings("dead");
    deaf.renew = sluicegate_core::time::Millis(600_000);
    let workers = sluicegate_server::worker::Workers::start(house.engine.clone(), deaf);
    let run = house.enqueue("slow.work", json!("slow"), "a").await.run_id;
    house
        .until(&run, |status| status == RunStatus::WaitingAgent)
        .await;
    // The first worker never renews; the second finds the lease over.
    let other = ground.house().await;
    let second = other.workers("alive");
    assert_eq!(other.ended(&run).await, RunStatus::Succeeded);
    other.check(&run).await;
    let types = other.types(&run).await;
    assert!(types.contains(&"run.recovered".to_owned()), "{types:?}");
    let children = other.store.children(&by().tenant, &run).await.unwrap();
    assert_eq!(children.len(), 1);
    assert!(second.stop(Duration::from_secs(5)).await);
    workers.stop(Duration::from_secs(5)).await;
    // Whoever came too late has written nothing more.
    other.check(&run).await;
}

async fn a10_a_run_whose_permissions_do_not_reach_is_not_accepted(ground: Ground) {
    let house = ground.house().await;
    house.sample_agents().await;
    let id = house.publish_sample("expenses.review").await;
    let request = sluicegate_server::engine::Enqueue {
        workflow_key: "expenses.review".into(),
        input: first_input("expenses.review"),
        idempotency_key: "k".to_owned(),
    };
    let refused = house.engine.enqueue(&by(), &[], request).await.unwrap_err();
    assert_eq!(refused.code().as_str(), "WORKFLOW_PERMISSION_DENIED");
    let entries = house.store.audit_after(&by().tenant, 0, 100).await.unwrap();
    let last = entries.last().unwrap();
    assert_eq!(last["action"], "run.enqueue-refused");
    assert_eq!(last["subject"]["id"], id.as_str());
}

async fn an_approved_claim_is_one_mutation_in_the_claims_table(ground: Ground) {
    let house = ground.house().await;
    house.sample_agents().await;
    house.publish_sample("expenses.review").await;
    let workers = house.workers("w1");
    let input = first_input("expenses.review");
    let run = house
        .enqueue("expenses.review", input.clone(), "a")
        .await
        .run_id;
    house.ended(&run).await;
    let claim = input["claimId"].as_str().unwrap();
    let mutations = house
        .claims
        .claim_mutations(&by().tenant, claim)
        .await
        .unwrap();
    assert_eq!(mutations, 1, "{:?}", house.types(&run).await);
    assert!(workers.stop(Duration::from_secs(5)).await);
}

async fn v3_a_simulation_is_kept_with_one_entry_and_a_refused_one_leaves_no_run(ground: Ground) {
    let house = slow_house(&ground, 60_000).await;
    let fixtures = |document: Value| Fixtures::read(&document).unwrap();
    let simulate = |document: Value| Simulate {
        subject: Subject::Published {
            workflow_key: "slow.work".into(),
            revision: None,
        },
        input: json!("x"),
        fixtures: fixtures(document),
    };
    let good = json!({"nodes": {"ask": {"attempts": [
        {"outcome": "success", "output": "y", "simulatedDurationMs": 5}]}}});
    let before = house.store.audit_head(&by().tenant).await.unwrap().sequence;
    let done = house
        .engine
        .simulate(&by(), &harness::permissions(), simulate(good))
        .await
        .unwrap();
    assert_eq!(done.status, RunStatus::Succeeded);
    let detail = house
        .store
        .run_detail(&by().tenant, &done.run_id)
        .await
        .unwrap();
    assert_eq!(detail.row.row.status, RunStatus::Succeeded);
    assert_eq!(detail.audit_sequences, [before + 1]);
    let stored = house.events(&done.run_id).await;
    assert_eq!(stored.len(), done.events.unwrap().len());
    let bad = house
        .engine
        .simulate(
            &by(),
            &harness::permissions(),
            simulate(json!({"nodes": {}})),
        )
        .await;
    assert_eq!(
        bad.unwrap_err().code().as_str(),
        "WORKFLOW_FIXTURES_INVALID"
    );
    let entries = house
        .store
        .audit_after(&by().tenant, before, 10)
        .await
        .unwrap();
    let actions: Vec<_> = entries
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["run.simulated", "run.simulation-refused"]);
}

/// What an event says, but for what D3 and V1 leave out of one of the two modes.
fn essence(event_type: &str, payload: &Value) -> Value {
    let mut payload = payload.clone();
    let members = payload.as_object_mut().unwrap();
    let own = [
        "mode",
        "workflowId",
        "workflowKey",
        "workflowRevision",
        "actor",
        "origin",
        "permissionDigest",
        "workerId",
        "fence",
        "leaseExpiresAt",
        "childId",
        "deadlineAt",
        "idempotencyKey",
        "nextAttemptAt",
        "nextAttemptOffsetMs",
        "usage",
        "cost",
    ];
    for name in own {
        members.remove(name);
    }
    json!([event_type, payload])
}

/// What happened, whatever the values were.
fn course(event_type: &str, payload: &Value) -> Value {
    let kept = [
        "nodeId",
        "attempt",
        "edgeId",
        "status",
        "outcomePort",
        "state",
        "selectedPort",
        "code",
        "classification",
        "semanticGroup",
        "backoffMs",
        "scheduledSequence",
    ];
    let members = payload.as_object().unwrap().iter();
    let members = members.filter(|(name, _)| kept.contains(&name.as_str()));
    json!([
        event_type,
        members.collect::<std::collections::BTreeMap<_, _>>()
    ])
}

/// Runs a case both ways and compares event by event. A retry wait hands the lease back, so
/// both have a claim after it.
async fn agree(
    house: &House,
    key: &str,
    case: &str,
    (input, fixtures): (Value, Value),
    seen: fn(&str, &Value) -> Value,
) {
    let request = Simulate {
        subject: Subject::Published {
            workflow_key: key.into(),
            revision: None,
        },
        input: input.clone(),
        fixtures: Fixtures::read(&fixtures).unwrap(),
    };
    let simulated = house
        .engine
        .simulate(&by(), &harness::permissions(), request)
        .await
        .unwrap();
    let run = house.enqueue(key, input, case).await.run_id;
    house.ended(&run).await;
    let simulated: Vec<Value> = simulated
        .events
        .unwrap()
        .iter()
        .map(|event| seen(event.payload.type_name(), &event.payload_value()))
        .collect();
    let live = house.events(&run).await;
    let live: Vec<Value> = live
        .iter()
        .map(|event| seen(&event.event_type, &event.payload))
        .collect();
    for (at, (live, simulated)) in live.iter().zip(&simulated).enumerate() {
        assert_eq!(live, simulated, "{key} {case}, event {}", at + 1);
    }
    assert_eq!(live.len(), simulated.len(), "{key} {case}");
}

async fn v1_a_live_run_has_the_events_of_its_simulation(ground: Ground) {
    let house = slow_house(&ground, 60_000).await;
    house.sample_agents().await;
    let workers = house.workers("w1");
    let answers = json!({"nodes": {"ask": {"attempts": [
        {"outcome": "failure", "code": "agent.rate-limited"},
        {"outcome": "success", "output": "> again"}]}}});
    agree(
        &house,
        "slow.work",
        "again",
        (json!("again"), answers),
        essence,
    )
    .await;
    for key in ["expenses.review", "support.triage", "invoice.check"] {
        house.publish_sample(key).await;
    }
    // Cases in which no action fails: what the real module decides is not the fixtures' word.
    let cases = [
        ("expenses.review", "approved"),
        ("expenses.review", "incomplete"),
        ("support.triage", "urgent"),
        ("support.triage", "classifier-down"),
        ("invoice.check", "fair-difference"),
        ("invoice.check", "unreadable"),
    ];
    for (key, case) in cases {
        let input = sample(&format!("{key}/{case}.input.json"));
        let fixtures = sample(&format!("{key}/{case}.fixtures.json"));
        agree(&house, key, case, (input, fixtures), course).await;
    }
    assert!(workers.stop(Duration::from_secs(5)).await);
}

on_both! {
    every_sample_case_runs_live_to_an_end_that_its_log_and_rows_agree_on,
    n2_a_repeated_key_gives_the_first_run_and_anything_else_is_a_conflict,
    n2_many_at_once_make_one_run,
    a_live_run_gives_its_output_and_a_retry_waits_for_its_time,
    c1_a_queued_run_is_cancelled_in_the_request,
    c2_a_child_in_flight_is_asked_to_stop,
    a8_a_child_beyond_its_deadline_times_out,
    w7_what_is_held_is_handed_back_and_another_goes_on_with_the_same_child,
    w3_an_expired_lease_is_recovered_and_its_child_taken_over,
    a10_a_run_whose_permissions_do_not_reach_is_not_accepted,
    an_approved_claim_is_one_mutation_in_the_claims_table,
    v3_a_simulation_is_kept_with_one_entry_and_a_refused_one_leaves_no_run,
    v1_a_live_run_has_the_events_of_its_simulation,
}
