//! What a script leaves behind, and how two of these differ: the run, its children, the effects
//! in the target's own tables, the workflow and its acts (run-machine.md §11).

use std::collections::BTreeMap;

use serde_json::json;
use sluicegate_core::audit;
use sluicegate_core::ids::RunId;
use sluicegate_core::value::Value;
use sluicegate_server::engine::repair::Repair;
use sluicegate_server::store::{RunFilter, StoreError, WorkflowDetail, by_key};

use crate::harness::ground::Ground;
use crate::harness::{House, by};
use crate::lab::KEY;
use crate::script::Script;

/// What a script leaves behind.
#[derive(Debug, PartialEq)]
pub(crate) struct Left {
    pub(crate) status: String,
    /// What happened, but for who worked and when.
    course: Vec<Value>,
    nodes: BTreeMap<String, String>,
    payloads: Vec<String>,
    /// Children by node and attempt.
    children: Vec<String>,
    outputs: Option<Value>,
    /// Decisions in the target's own tables, by claim.
    pub(crate) effects: BTreeMap<String, u64>,
    /// Runs, published revisions, the draft's version.
    counts: (usize, usize, u64),
    /// Acts on the workflow in the audit chain.
    acts: Vec<String>,
}

impl Left {
    /// How another differs from this one.
    pub(crate) fn differs_from(&self, other: &Self, script: &Script) -> Option<String> {
        let mut told = Vec::new();
        let mut compare = |name: &str, same: bool, what: String| {
            if !same {
                told.push(format!("{name}: {what}"));
            }
        };
        compare("status", self.status == other.status, other.status.clone());
        compare(
            "effects",
            self.effects == other.effects,
            format!("{:?}", other.effects),
        );
        compare(
            "counts",
            self.counts == other.counts,
            format!("{:?}", other.counts),
        );
        compare("acts", self.acts == other.acts, format!("{:?}", other.acts));
        compare(
            "nodes",
            self.nodes == other.nodes,
            format!("{:?}", other.nodes),
        );
        let outputs = self.outputs == other.outputs;
        compare("outputs", outputs, format!("{:?}", other.outputs));
        // How often a busy module is asked, and where a cancellation finds the run, is a
        // matter of time.
        if !script.busy && !script.cancels {
            compare(
                "children",
                self.children == other.children,
                format!("{:?}", other.children),
            );
            compare(
                "payloads",
                self.payloads == other.payloads,
                format!("{:?}", other.payloads),
            );
            let at = self
                .course
                .iter()
                .zip(&other.course)
                .position(|(a, b)| a != b);
            let length = (self.course.len(), other.course.len());
            let same = at.is_none() && length.0 == length.1;
            let there = at.and_then(|at| Some((self.course.get(at)?, other.course.get(at)?)));
            compare("course", same, format!("{there:?}, {length:?} events"));
        }
        (!told.is_empty()).then(|| told.join("; "))
    }
}

/// Looks at what is left, and at everything that must hold of it by itself.
pub(crate) async fn look(ground: &Ground, script: &Script, run: &RunId) -> Left {
    let house = ground.open(&[]).await;
    house.check(run).await;
    let tenant = by().tenant;
    let detail = house.store.run_detail(&tenant, run).await.unwrap();
    let mut effects = BTreeMap::new();
    for claim in &script.claims {
        let made = house.claims.claim_mutations(&tenant, claim).await.unwrap();
        effects.insert(claim.clone(), made);
    }
    let mut wrong = Vec::new();
    let repair = Repair::new(&*house.store, false);
    let looked = repair.run(|finding| {
        wrong.push(finding.clone());
        Ok::<_, StoreError>(())
    });
    assert!(
        looked.await.unwrap().runs > 0 && wrong.is_empty(),
        "{wrong:?}"
    );
    let nodes = detail.nodes.iter();
    let nodes = nodes.map(|node| (node.node_id.to_string(), format!("{:?}", node.status)));
    let mut payloads: Vec<_> = detail
        .payloads
        .iter()
        .map(|p| p.payload_id.to_string())
        .collect();
    payloads.sort();
    let children = house.children(run).await.into_iter();
    let children = children.map(|c| format!("{} {} {:?}", c.node_id, c.attempt, c.status));
    let result = house.engine.result(&tenant, run).await.unwrap();
    let workflow = house.store.workflow(&tenant, &by_key(KEY)).await.unwrap();
    Left {
        status: detail.row.row.status.as_str().to_owned(),
        course: course(&house, run).await,
        nodes: nodes.collect(),
        payloads,
        children: children.collect(),
        outputs: result.outputs.map(|outputs| json!(outputs)),
        effects,
        counts: counts(&house, &workflow).await,
        acts: acts(&house, &workflow.row.workflow_id).await,
    }
}

async fn counts(house: &House, workflow: &WorkflowDetail) -> (usize, usize, u64) {
    let filter = RunFilter {
        limit: 100,
        ..RunFilter::default()
    };
    let runs = house.store.runs(&by().tenant, &filter).await.unwrap();
    (
        runs.len(),
        workflow.revisions.len(),
        workflow.row.draft_version,
    )
}

/// The acts on the workflow, in their order.
async fn acts(house: &House, id: &str) -> Vec<String> {
    let tenant = by().tenant;
    let entries = house.store.audit_after(&tenant, 0, 10_000).await.unwrap();
    let head = house.store.audit_head(&tenant).await.unwrap();
    assert!(audit::verify(&entries, Some(head), None).valid);
    let own = entries.iter().filter(|entry| entry["subject"]["id"] == id);
    own.map(|entry| entry["action"].as_str().unwrap().to_owned())
        .collect()
}

async fn course(house: &House, run: &RunId) -> Vec<Value> {
    let kept = [
        "nodeId",
        "attempt",
        "edgeId",
        "status",
        "outcomePort",
        "state",
        "code",
        "output",
        "usage",
    ];
    let mut seen = Vec::new();
    for event in house.events(run).await {
        if ["run.claimed", "run.recovered"].contains(&event.event_type.as_str()) {
            continue;
        }
        let mut payload = event.payload;
        if let Some(usage) = payload.get_mut("usage").and_then(Value::as_object_mut) {
            // Ids of children are made anew each time.
            usage.remove("includedChildRunIds");
        }
        let members = payload.as_object().unwrap().iter();
        let members = members.filter(|(name, _)| kept.contains(&name.as_str()));
        let members: BTreeMap<_, _> = members.collect();
        seen.push(json!([event.event_type, members]));
    }
    seen
}
