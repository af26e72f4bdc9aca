//! Entries that many append at once, and those that cannot be appended.

use std::time::Duration;

use serde_json::json;
use sluicegate_core::ids::{Hash, RunId, TenantId};
use sluicegate_core::run::RunStatus;
use sluicegate_core::value;
use sluicegate_server::store::{DraftChange, GraphText, NewWorkflow, Save, StoreError};

use crate::harness::bare::Bare;
use crate::harness::ground::Ground;
use crate::harness::{by, of, on_both, permissions};
use crate::tampered::{act, review, simulation};

on_both!(
    b125_the_chain_never_forks_and_is_whole_at_every_moment,
    b125_an_act_whose_entry_cannot_be_written_did_not_happen
);

fn draft(text: &str) -> GraphText {
    let canonical = value::canonical(&json!({"text": text}));
    GraphText {
        checksum: Hash::of(canonical.as_bytes()),
        canonical,
    }
}

/// Does something that a busy database may refuse for want of a connection, with no effect.
async fn again<T, E: std::fmt::Debug, F: Future<Output = Result<T, E>>>(
    mut act: impl FnMut() -> F,
) -> T {
    for _ in 0..20 {
        match act().await {
            Ok(done) => return done,
            Err(error) => {
                let busy = ["timed out", "cannot be reached"];
                let error = format!("{error:?}");
                assert!(busy.iter().any(|busy| error.contains(busy)), "{error}");
            }
        }
    }
    panic!("the database is too busy");
}

async fn b125_the_chain_never_forks_and_is_whole_at_every_moment(ground: Ground) {
    let first = ground.house().await;
    first.sample_agents().await;
    // A tenant whose very first entry is one of these.
    let tenant = TenantId::from("fresh");
    let owner = first.store.owner(&by().tenant).await.unwrap();
    first.store.ensure_tenant(&tenant, &owner).await.unwrap();
    first.publish_sample("expenses.review").await;
    let houses = [first, ground.house().await, ground.house().await];
    let workers: Vec<_> = houses
        .iter()
        .zip(["a", "b", "c"])
        .map(|(h, n)| h.workers(n))
        .collect();
    let mut acts = tokio::task::JoinSet::new();
    for n in 0..50_usize {
        let (store, engine) = (houses[n % 3].store.clone(), houses[n % 3].engine.clone());
        let tenant = tenant.clone();
        acts.spawn(async move {
            let new = NewWorkflow {
                key: format!("w{n}").as_str().into(),
                name: "w".to_owned(),
                description: String::new(),
                graph: draft("first"),
            };
            let (fresh, by, may) = (of(&tenant), by(), permissions());
            let made = again(|| store.create_workflow(&fresh, new.clone())).await;
            let save = Save {
                workflow_id: made.row.workflow_id,
                expected: 1,
                change: DraftChange {
                    graph: Some(draft("second")),
                    name: None,
                    description: None,
                },
            };
            again(|| store.save_draft(&fresh, save.clone())).await;
            let request = sluicegate_server::engine::Enqueue {
                workflow_key: "expenses.review".into(),
                input: review(),
                idempotency_key: format!("k{n}"),
            };
            let run = again(|| engine.enqueue(&by, &may, request.clone())).await;
            if n % 2 == 0 {
                again(|| engine.cancel(&by, &run.run_id, None)).await;
            }
            run.run_id
        });
    }
    // While they go on, whatever was read first is whole.
    let mut seen = 0;
    let mut runs: Vec<RunId> = Vec::new();
    while let Some(run) = acts.join_next().await {
        runs.push(run.unwrap());
        if !runs.len().is_multiple_of(10) {
            continue;
        }
        for tenant in [&tenant, &by().tenant] {
            let answer = houses[runs.len() % 3]
                .engine
                .verify_audit(tenant)
                .await
                .unwrap();
            assert!(answer.valid, "{answer:?}");
            seen = seen.max(answer.checked_through_sequence);
        }
    }
    for run in &runs {
        houses[0].ended(run).await;
    }
    for workers in workers {
        assert!(workers.stop(Duration::from_secs(5)).await);
    }
    for tenant in [tenant, by().tenant] {
        let answer = houses[0].engine.verify_audit(&tenant).await.unwrap();
        assert!(answer.valid, "{answer:?}");
        let entries = houses[0]
            .store
            .audit_after(&tenant, 0, 100_000)
            .await
            .unwrap();
        assert_eq!(answer.checked_through_sequence, entries.len() as u64);
        let previous: std::collections::BTreeSet<_> = entries
            .iter()
            .map(|entry| entry["previousHash"].to_string())
            .collect();
        assert_eq!(previous.len(), entries.len(), "each is followed once");
        assert!(entries.len() as u64 >= seen.min(100));
    }
}

async fn b125_an_act_whose_entry_cannot_be_written_did_not_happen(ground: Ground) {
    let house = ground.house().await;
    house.sample_agents().await;
    let workflow_id = house.publish_sample("expenses.review").await;
    let run = house.enqueue("expenses.review", review(), "k").await.run_id;
    let mut bare = Bare::open(&ground).await;
    for (table, write) in [
        ("workflow_audit_events", "insert on workflow_audit_events"),
        ("workflow_audit_heads", "update on workflow_audit_heads"),
    ] {
        let (trigger, over) = match bare.is_postgres() {
            true => (
                format!("before {write} for each row execute function refuse('refused')"),
                format!("drop trigger no_entry on {table}"),
            ),
            false => (
                format!("before {write} begin select raise(abort, 'refused'); end"),
                "drop trigger no_entry".to_owned(),
            ),
        };
        bare.run(&format!("create trigger no_entry {trigger}"))
            .await;
        let before = bare.dump().await;
        let refused = |what: &str, error: StoreError| {
            assert!(
                matches!(error, StoreError::Database(_)),
                "{what}: {error} ({table})"
            );
        };
        let by = by();
        let new = NewWorkflow {
            key: "other".into(),
            name: "Other".to_owned(),
            description: String::new(),
            graph: draft("x"),
        };
        let made = house.store.create_workflow(&by, new).await;
        refused("create", made.unwrap_err());
        let save = Save {
            workflow_id: workflow_id.clone(),
            expected: 1,
            change: DraftChange {
                graph: Some(draft("x")),
                name: None,
                description: None,
            },
        };
        refused("save", house.store.save_draft(&by, save).await.unwrap_err());
        let archived = house.store.archive(&by, &workflow_id, 1).await;
        refused("archive", archived.unwrap_err());
        let enqueued = house
            .try_enqueue("expenses.review", review(), "other")
            .await;
        assert!(enqueued.is_err());
        assert!(house.engine.cancel(&by, &run, None).await.is_err());
        let may = permissions();
        let simulated = house.engine.simulate(&by, &may, simulation()).await;
        assert!(simulated.is_err());
        assert!(house.store.record_act(act(&by, "refused")).await.is_err());
        assert_eq!(bare.dump().await, before, "nothing of it stands");
        // A worker gets nowhere, and goes on once it can.
        let workers = house.workers("w");
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(house.types(&run).await, ["run.queued"]);
        assert!(workers.stop(Duration::from_secs(5)).await);
        bare.run(&over).await;
        house.check(&run).await;
    }
    house.store.void_leases().await.unwrap();
    let workers = house.workers("w");
    assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
    house.check(&run).await;
    assert!(workers.stop(Duration::from_secs(5)).await);
}
