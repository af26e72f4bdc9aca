//! What a run looks like on the graph after some of its events (web.md §4; seed A
//! "Execution overlay"). Rebuilt only from events.

use std::collections::HashMap;
use std::sync::Arc;

use sluicegate_core::graph::Endpoint;
use sluicegate_core::ids::{EdgeId, NodeId, RunId, TenantId};
use sluicegate_core::plan::Plan;
use sluicegate_core::run::{
    Corrupt, EdgeState, Ended, Event, NodeState, NodeStatus, Payload, Run, RunStatus,
};

/// Milliseconds from a run's first event to this one, on the clock that the run has.
pub(crate) fn since(event: &Event, first: Option<&Event>) -> u64 {
    if let Some(offset) = event.virtual_offset_ms {
        return offset.0;
    }
    match (event.recorded_at, first.and_then(|first| first.recorded_at)) {
        (Some(at), Some(start)) => at.since(start).0,
        _ => 0,
    }
}

/// Whether nothing but retention follows.
pub(crate) fn is_terminal(event: &Event) -> bool {
    matches!(
        event.payload,
        Payload::RunSucceeded(_)
            | Payload::RunFailed(_)
            | Payload::RunRefused(_)
            | Payload::RunCancelled(_)
    )
}

/// What people read for a run's status, and the role of its colour.
pub(crate) fn run_words(status: RunStatus) -> (&'static str, &'static str) {
    match status {
        RunStatus::Queued => ("Queued", "neutral"),
        RunStatus::Running => ("Running", "running"),
        RunStatus::WaitingAgent => ("Waiting for an agent", "running"),
        RunStatus::WaitingRetry => ("Waiting to retry", "waiting"),
        RunStatus::CancelRequested => ("Cancelling", "waiting"),
        RunStatus::Succeeded => ("Succeeded", "success"),
        RunStatus::Failed => ("Failed", "danger"),
        RunStatus::Refused => ("Refused", "danger"),
        RunStatus::Cancelled => ("Cancelled", "skipped"),
    }
}

/// A node in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeLook {
    pub(crate) status: NodeStatus,
    /// The latest attempt; 0 before the first.
    pub(crate) attempt: u32,
    /// The port that it settled on.
    pub(crate) port: Option<String>,
    /// Why its latest attempt failed.
    pub(crate) code: Option<String>,
    /// The wait before the next attempt, while it waits.
    pub(crate) backoff_ms: Option<u64>,
}

impl Default for NodeLook {
    fn default() -> Self {
        Self {
            status: NodeStatus::Pending,
            attempt: 0,
            port: None,
            code: None,
            backoff_ms: None,
        }
    }
}

impl NodeLook {
    fn of(node: &NodeState) -> Self {
        let status = node.status();
        let last = node.attempts.last();
        let waits = status == NodeStatus::WaitingRetry;
        Self {
            status,
            attempt: last.map_or(0, |attempt| attempt.attempt),
            port: node.outcome_port.clone(),
            code: last.and_then(|attempt| attempt.code.clone()),
            backoff_ms: node
                .retry
                .as_ref()
                .filter(|_| waits)
                .map(|retry| retry.scheduled.backoff_ms.0),
        }
    }

    /// A decision went the other way: normal, not an error.
    pub(crate) fn decided_fail(&self) -> bool {
        self.status == NodeStatus::Succeeded && self.port.as_deref() == Some("fail")
    }

    /// The name of the look: the status, or that a decision went the other way.
    pub(crate) fn look(&self) -> &'static str {
        if self.decided_fail() {
            "decided-fail"
        } else {
            self.status.as_str()
        }
    }

    pub(crate) fn words(&self) -> &'static str {
        match self.status {
            NodeStatus::Pending => "Not reached yet",
            NodeStatus::Ready => "Ready",
            NodeStatus::Running => "Running",
            NodeStatus::WaitingChild => "Working",
            NodeStatus::WaitingRetry => "Waiting to retry",
            NodeStatus::Succeeded if self.decided_fail() => "Decided: fail",
            NodeStatus::Succeeded => "Succeeded",
            NodeStatus::Failed => "Failed",
            NodeStatus::Refused => "Refused",
            NodeStatus::Skipped => "Skipped",
            NodeStatus::Cancelled => "Cancelled",
        }
    }
}

/// How an edge stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EdgeLook {
    Open,
    /// It carried its envelope, which its target has not done with yet.
    Traversing,
    Settled(EdgeState),
}

impl EdgeLook {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Traversing => "traversing",
            Self::Settled(EdgeState::Emitted) => "emitted",
            Self::Settled(EdgeState::Closed) => "closed",
            Self::Settled(EdgeState::Skipped) => "skipped",
        }
    }
}

/// A run after some of its events.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Overlay {
    pub(crate) status: RunStatus,
    nodes: HashMap<NodeId, NodeLook>,
    edges: HashMap<EdgeId, (EdgeState, Endpoint)>,
    /// Tokens and money so far; none before there is a run.
    pub(crate) rollups: Option<Ended>,
    /// An event that does not follow from the ones before it: the picture ends there.
    pub(crate) corrupt: Option<String>,
}

impl Default for Overlay {
    fn default() -> Self {
        Self {
            status: RunStatus::Queued,
            nodes: HashMap::new(),
            edges: HashMap::new(),
            rollups: None,
            corrupt: None,
        }
    }
}

impl Overlay {
    fn of(plan: &Plan, run: &Run, corrupt: Option<&Corrupt>) -> Self {
        let nodes = plan.nodes().iter().zip(run.nodes());
        let edges = run.edges().iter().flatten().map(|fact| &fact.settled);
        Self {
            status: run.status(),
            nodes: nodes
                .map(|(node, state)| (node.id.clone(), NodeLook::of(state)))
                .collect(),
            edges: edges
                .map(|it| (it.edge_id.clone(), (it.state, it.target.clone())))
                .collect(),
            rollups: Some(run.rollups()),
            corrupt: corrupt.map(ToString::to_string),
        }
    }

    pub(crate) fn node(&self, id: &NodeId) -> NodeLook {
        self.nodes.get(id).cloned().unwrap_or_default()
    }

    /// An edge is traversing while its envelope waits for its target or is worked on there.
    pub(crate) fn edge(&self, id: &EdgeId) -> EdgeLook {
        match self.edges.get(id) {
            None => EdgeLook::Open,
            Some((EdgeState::Emitted, target))
                if !self.status.is_terminal() && !self.node(&target.node_id).status.is_final() =>
            {
                EdgeLook::Traversing
            }
            Some((state, _)) => EdgeLook::Settled(*state),
        }
    }

    /// Nodes with a final word.
    pub(crate) fn settled(&self) -> usize {
        self.nodes
            .values()
            .filter(|node| node.status.is_final())
            .count()
    }
}

/// Folds the first events of a list, and goes on from there when more of it is asked for.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    plan: Arc<Plan>,
    run: Run,
    folded: usize,
    corrupt: Option<Corrupt>,
}

impl Folder {
    pub(crate) fn new(plan: Arc<Plan>) -> Self {
        // Whose run it is decides nothing that is drawn.
        let run = Run::new(&plan, TenantId::from(""), RunId::from(""));
        Self {
            plan,
            run,
            folded: 0,
            corrupt: None,
        }
    }

    /// The run after the first `count` of these events, which only ever grow at their end.
    pub(crate) fn at(&mut self, events: &[Event], count: usize) -> Overlay {
        if count < self.folded {
            *self = Self::new(self.plan.clone());
        }
        for event in events.iter().take(count).skip(self.folded) {
            if self.corrupt.is_some() {
                break;
            }
            self.corrupt = self.run.apply(&self.plan, event).err();
        }
        self.folded = count.min(events.len());
        Overlay::of(&self.plan, &self.run, self.corrupt.as_ref())
    }
}

/// Adds an event to a list in order, each sequence once (B083). `false`: one is missing in
/// between, so the list stays as it is.
pub(crate) fn take_in(events: &mut Vec<Event>, event: Event) -> bool {
    let next = events.last().map_or(1, |last| last.sequence + 1);
    if event.sequence == next {
        events.push(event);
        return true;
    }
    event.sequence < next
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sluicegate_core::compile::compile;
    use sluicegate_core::graph::Graph;
    use sluicegate_core::limits::Limits;
    use sluicegate_core::run::WorkflowReference;
    use sluicegate_core::simulate::{Fixtures, simulate};

    fn decided_fail() -> (Arc<Plan>, Vec<Event>) {
        let graph = Graph::read(&json!({
            "schemaVersion": 1,
            "nodes": [
                {"id": "in", "type": "input", "ports": {"data": "std.any"}},
                {"id": "g", "type": "gate", "ports": {"input": "std.any", "pass": "std.any", "fail": "std.any"},
                 "logic": {"version": 1, "expr": {"literal": false}}},
                {"id": "no", "type": "output", "ports": {"input": "std.any"}},
                {"id": "yes", "type": "output", "ports": {"input": "std.any"}}
            ],
            "edges": [
                {"id": "e1", "source": {"nodeId": "in", "port": "data"}, "target": {"nodeId": "g", "port": "input"}},
                {"id": "e2", "source": {"nodeId": "g", "port": "pass"}, "target": {"nodeId": "yes", "port": "input"}},
                {"id": "e3", "source": {"nodeId": "g", "port": "fail"}, "target": {"nodeId": "no", "port": "input"}}
            ]
        }))
        .unwrap();
        let limits = Limits::default();
        let plan = Plan::load(compile(&graph, None, &limits).plan.unwrap()).unwrap();
        let fixtures = Fixtures::read(&json!({})).unwrap();
        let run = simulate(
            &plan,
            Arc::new(json!(1)),
            &fixtures,
            &limits,
            WorkflowReference::default(),
        );
        (Arc::new(plan), run.unwrap().events)
    }

    #[test]
    fn web4_states_of_nodes_and_edges_follow_the_events() {
        let (plan, events) = decided_fail();
        let mut folder = Folder::new(plan);
        let settled = |node: &str| {
            events.iter().position(|event| match &event.payload {
                Payload::AttemptSettled(it) => it.node_id == *node,
                _ => false,
            })
        };
        let before = folder.at(&events, settled("g").unwrap());
        assert_eq!(before.edge(&"e1".into()), EdgeLook::Traversing);
        assert_eq!(before.edge(&"e2".into()), EdgeLook::Open);
        let middle = folder.at(&events, settled("no").unwrap());
        assert_eq!(middle.node(&"g".into()).look(), "decided-fail");
        assert_eq!(middle.node(&"yes".into()).status, NodeStatus::Skipped);
        assert_eq!(middle.edge(&"e3".into()), EdgeLook::Traversing);
        let end = folder.at(&events, events.len());
        assert_eq!(end.status, RunStatus::Succeeded);
        assert_eq!(
            end.edge(&"e3".into()),
            EdgeLook::Settled(EdgeState::Emitted)
        );
        assert_eq!(end.edge(&"e2".into()), EdgeLook::Settled(EdgeState::Closed));
        assert_eq!(end.settled(), 4);
        // Back and forth gives the same picture as folding from the start.
        assert_eq!(folder.at(&events, settled("no").unwrap()), middle);
        assert_eq!(folder.at(&events, events.len()), end);
    }

    #[test]
    fn a9_a_damaged_log_is_drawn_up_to_its_fault_and_says_so() {
        let (plan, mut events) = decided_fail();
        events.remove(3);
        let overlay = Folder::new(plan).at(&events, events.len());
        assert!(overlay.corrupt.is_some());
        assert!(!overlay.status.is_terminal());
    }

    #[test]
    fn b083_each_sequence_once_and_a_gap_is_seen() {
        let (_, events) = decided_fail();
        let mut taken = Vec::new();
        for index in [0, 1, 1, 0, 2] {
            assert!(take_in(&mut taken, events[index].clone()));
        }
        assert!(!take_in(&mut taken, events[4].clone()));
        assert_eq!(taken, events[..3]);
    }
}
