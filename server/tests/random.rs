//! Random lists of a store's verbs, carried out on both databases at once: every answer is the
//! same (architecture.md "Tests"; run-machine.md §§6, 7).

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "harness/hand.rs"]
mod hand;
mod harness;

use std::fmt::Debug;

use hand::{Taken, take, touch};
use harness::ground::Ground;
use harness::{House, by, text_of};
use serde_json::json;
use sluicegate_core::code::Code;
use sluicegate_core::ids::{ChildId, Hash, NodeId, RunId};
use sluicegate_core::run::ChildKind;
use sluicegate_core::time::Instant;
use sluicegate_core::value::Value;
use sluicegate_server::store::{
    ChildEnd, ChildIntent, ChildSettlement, ChildStanding, ChildStatus, DraftChange, NewWorkflow,
    Parked, RunFilter, Save, WorkflowFilter, WorkflowName, by_key,
};

const LISTS: u64 = 6;
const VERBS: usize = 120;

/// The same numbers for the same seed (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// A verb and its numbers; what they name depends on what came before.
#[derive(Debug, Clone, Copy)]
struct Verb {
    what: u64,
    which: usize,
    how: u64,
}

/// One database and what its runs, leases and children are called there.
struct Side {
    house: House,
    runs: Vec<RunId>,
    held: Vec<Taken>,
    children: Vec<ChildId>,
    asked: usize,
}

fn plain() -> Value {
    json!({
        "schemaVersion": 1,
        "nodes": [
            {"id": "in", "type": "input", "ports": {"data": "std.any"}},
            {"id": "out", "type": "output", "ports": {"input": "std.any"}}
        ],
        "edges": [{"id": "e", "source": {"nodeId": "in", "port": "data"},
                   "target": {"nodeId": "out", "port": "input"}}],
        "schemas": {}, "layout": {}
    })
}

fn said(answer: impl Debug) -> String {
    format!("{answer:?}")
}

impl Side {
    async fn open(ground: &Ground) -> Self {
        let house = ground.house().await;
        for key in ["k0", "k1"] {
            house.publish(key, &plain()).await;
        }
        Self {
            house,
            runs: Vec::new(),
            held: Vec::new(),
            children: Vec::new(),
            asked: 0,
        }
    }

    /// Carries a verb out; the answer is in words that are the same everywhere.
    async fn carry_out(&mut self, verb: Verb) -> String {
        match verb.what {
            0..=2 => self.define(verb).await,
            3..=5 => self.enqueue(verb).await,
            6..=7 => self.claim(verb).await,
            8..=10 => self.own(verb).await,
            11 => self.cancel(verb).await,
            12 => self.park(verb).await,
            13..=16 => self.child(verb).await,
            _ => self.read(verb).await,
        }
    }

    async fn define(&mut self, verb: Verb) -> String {
        let (store, by) = (&self.house.store, by());
        let key = format!("k{}", verb.which % 4);
        let found = store.workflow(&by.tenant, &by_key(&key)).await;
        let (expected, id) = match &found {
            Ok(found) => (found.row.draft_version, found.row.workflow_id.clone()),
            Err(_) => (1, "none".to_owned()),
        };
        // Now and then somebody was quicker.
        let expected = expected + u64::from(verb.how.is_multiple_of(5));
        match verb.how % 4 {
            0 => {
                let new = NewWorkflow {
                    key: key.as_str().into(),
                    name: format!("N{}", verb.how),
                    description: String::new(),
                    graph: text_of(&plain()),
                };
                said(
                    store
                        .create_workflow(&by, new)
                        .await
                        .map(|made| made.row.draft_version),
                )
            }
            1 => {
                let change = DraftChange {
                    name: Some(format!("Name {}", verb.how)),
                    ..DraftChange::default()
                };
                let save = Save {
                    workflow_id: id,
                    expected,
                    change,
                };
                said(store.save_draft(&by, save).await)
            }
            // Archiving is final, so it is rare.
            2 if verb.how < 4 => said(store.archive(&by, &id, expected).await),
            _ => said(store.delete_workflow(&by, &id, expected).await),
        }
    }

    async fn enqueue(&mut self, verb: Verb) -> String {
        let (key, input) = (format!("k{}", verb.which % 3), json!(verb.how % 2));
        let idempotency = format!("i{}", verb.how % 12);
        match self.house.try_enqueue(&key, input, &idempotency).await {
            Err(error) => said(error.code()),
            Ok(accepted) => {
                let at = self.runs.iter().position(|run| *run == accepted.run_id);
                let at = at.unwrap_or_else(|| {
                    self.runs.push(accepted.run_id.clone());
                    self.runs.len() - 1
                });
                said((at, accepted.created, accepted.status))
            }
        }
    }

    fn number(&self, run: &RunId) -> usize {
        self.runs.iter().position(|known| known == run).unwrap()
    }

    async fn claim(&mut self, verb: Verb) -> String {
        let due = self.house.store.due(100).await.unwrap();
        let mut found: Vec<_> = due
            .into_iter()
            .map(|due| (self.number(&due.run_id), due))
            .collect();
        found.sort_by_key(|(number, _)| *number);
        let words = found
            .iter()
            .map(|(number, due)| (*number, due.fence, due.over.as_ref().map(|(_, why)| *why)));
        let words = said(words.collect::<Vec<_>>());
        if found.is_empty() {
            return words;
        }
        // A lease of nothing is over at once.
        let (_, due) = found.swap_remove(verb.which % found.len());
        let lease_ms = if verb.how.is_multiple_of(3) {
            0
        } else {
            600_000
        };
        let taken = take(&self.house, due, "w", lease_ms).await;
        let answer = said(taken.as_ref().map(|taken| taken.fence));
        self.held.extend(taken);
        words + &answer
    }

    async fn own(&mut self, verb: Verb) -> String {
        if self.held.is_empty() {
            return String::new();
        }
        let taken = &self.held[verb.which % self.held.len()];
        let store = &self.house.store;
        match verb.how % 5 {
            0 => said(store.release(&taken.held()).await),
            1 => said(store.renew(&taken.held(), 0).await.map(|_| ())),
            2 => said(store.renew(&taken.held(), 600_000).await.map(|_| ())),
            how => {
                let row = store.run_row(&taken.tenant, &taken.run_id).await.unwrap();
                let guard = taken.owns(row.row.last_sequence + (how - 3));
                let touched = touch(&self.house, taken, guard).await;
                said(touched.map(|done| done.audit_sequence))
            }
        }
    }

    async fn cancel(&mut self, verb: Verb) -> String {
        if self.runs.is_empty() {
            return String::new();
        }
        let run = &self.runs[verb.which % self.runs.len()];
        let cancelled = self.house.engine.cancel(&by(), run, None).await;
        match cancelled {
            Ok(cancelled) => said((cancelled.status, cancelled.cancellation.state)),
            Err(error) => said(error.code()),
        }
    }

    async fn park(&mut self, verb: Verb) -> String {
        if self.runs.is_empty() || !verb.how.is_multiple_of(4) {
            return String::new();
        }
        let parked = Parked {
            code: Code::WorkflowEventSchemaUnsupported,
            sequence: verb.how,
        };
        let run = &self.runs[verb.which % self.runs.len()];
        said(self.house.store.park(&by().tenant, run, &parked).await)
    }

    async fn child(&mut self, verb: Verb) -> String {
        self.asked += 1;
        let store = &self.house.store;
        let (attempt, fence) = (1 + (verb.how % 3) as u32, 1 + verb.how / 3 % 3);
        let key = format!("key {}", verb.which % 4);
        let intent = ChildIntent {
            tenant: by().tenant,
            run_id: RunId::from("r"),
            node_id: NodeId::from("n"),
            kind: [ChildKind::Action, ChildKind::Agent][verb.which % 2],
            target: "x@1".to_owned(),
            key: Hash::of(key.as_bytes()),
            attempt,
            fence,
            new_id: ChildId::new(format!("c{}", self.asked)),
            deadline_at: Instant(verb.how),
        };
        let known = || self.children.get(verb.which % self.children.len().max(1));
        match (verb.what, known().cloned()) {
            (13, _) => {
                let standing = store.start_child(intent).await.unwrap();
                if let ChildStanding::Execute { child_id, .. } = &standing
                    && !self.children.contains(child_id)
                {
                    self.children.push(child_id.clone());
                }
                said(standing)
            }
            (14, Some(child)) => said(
                store
                    .observe_child(&by().tenant, &child, attempt, fence)
                    .await,
            ),
            (15, Some(child_id)) => {
                let ends = [ChildStatus::Succeeded, ChildStatus::Failed];
                let settlement = ChildSettlement {
                    tenant: by().tenant,
                    child_id,
                    attempt,
                    fence,
                    end: ChildEnd {
                        status: ends[verb.which % 2],
                        output: Some(("k".to_owned(), vec![0, 1, 255])),
                        code: Some("x".to_owned()),
                        message: None,
                        usage: None,
                        cost: None,
                    },
                };
                said(store.settle_child(settlement).await)
            }
            _ if verb.how.is_multiple_of(3) => said(store.cancel_child(intent).await),
            _ => said(
                store
                    .children(&by().tenant, &RunId::from("r"))
                    .await
                    .map(|all| all.len()),
            ),
        }
    }

    async fn read(&mut self, verb: Verb) -> String {
        let (store, tenant) = (&self.house.store, by().tenant);
        match verb.how % 5 {
            0 => {
                let filter = WorkflowFilter {
                    q: Some(["N", "k1", "name", "%"][verb.which % 4].to_owned()),
                    limit: 3,
                    ..WorkflowFilter::default()
                };
                let rows = store.workflows(&tenant, &filter).await.unwrap();
                said(
                    rows.into_iter()
                        .map(|row| (row.key, row.name, row.status))
                        .collect::<Vec<_>>(),
                )
            }
            1 => said(store.audit_head(&tenant).await.map(|head| head.sequence)),
            2 => {
                let filter = RunFilter {
                    workflow_key: Some(format!("k{}", verb.which % 3).as_str().into()),
                    limit: 100,
                    ..RunFilter::default()
                };
                let rows = store.runs(&tenant, &filter).await.unwrap();
                let mut rows: Vec<_> = rows
                    .iter()
                    .map(|row| (self.number(&row.run_id), row.row.status, row.parked.clone()))
                    .collect();
                rows.sort_by_key(|(number, ..)| *number);
                said(rows)
            }
            3 => {
                let name = WorkflowName::Key(format!("k{}", verb.which % 4).as_str().into());
                let found = store.revision(&tenant, &name, None).await;
                said(found.map(|found| (found.row.revision, found.archived)))
            }
            _ => said(store.next_due().await.map(|due| due.is_some())),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_lists_of_verbs_have_the_same_answers_on_both_databases() {
    let mut reached = [0; 3];
    for seed in 1..=LISTS {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (sqlite, postgres) = (Ground::sqlite(), Ground::postgres().await);
        let (mut one, mut other) = (Side::open(&sqlite).await, Side::open(&postgres).await);
        let mut before = Vec::new();
        for _ in 0..VERBS {
            let verb = Verb {
                what: dice.roll(19),
                which: dice.roll(97) as usize,
                how: dice.roll(101),
            };
            let answers = (one.carry_out(verb).await, other.carry_out(verb).await);
            before.push((verb, answers.0.clone()));
            let last = &before[before.len().saturating_sub(12)..];
            assert_eq!(answers.0, answers.1, "list {seed}: {last:#?}");
        }
        reached[0] += one.runs.len();
        reached[1] += one.held.len();
        reached[2] += one.children.len();
        for run in &one.runs {
            one.house.check(run).await;
        }
        for run in &other.runs {
            other.house.check(run).await;
        }
    }
    assert!(reached.into_iter().all(|count| count >= 10), "{reached:?}");
}
