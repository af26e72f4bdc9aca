//! Live preflight (run-machine.md A10): what a run needs is looked at once more at enqueue
//! and in the first claim, never replaced by something nearby.

use sluicegate_core::catalogue::AgentStatus;
use sluicegate_core::code::Code;
use sluicegate_core::ids::{AgentId, NodeId, Permission, TenantId};
use sluicegate_core::plan::{Node, Plan, Task};

use super::{Engine, EngineError};

/// Why a run may not begin: a refused code of wire-format.md §12.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacle {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) node_id: NodeId,
}

impl Obstacle {
    /// The code that a request is told (api.md).
    pub(super) fn request_code(&self) -> Code {
        match self.code {
            Code::PermissionDenied => Code::WorkflowPermissionDenied,
            Code::AgentRevisionMissing | Code::AgentInactive => Code::WorkflowAgentRevisionMissing,
            _ => Code::WorkflowActionVersionMissing,
        }
    }
}

/// The first permission of a node that is not held.
pub(crate) fn denied(task: &Task, held: &[Permission]) -> Option<String> {
    let missing = task.required_permissions().iter();
    let missing = missing.filter(|needed| !held.contains(needed)).min()?;
    Some(format!("the run is not allowed {missing}"))
}

/// The agent revision that a node pins.
fn pinned(node: &Node) -> Option<(AgentId, u64)> {
    match &node.task {
        Task::Agent(task) | Task::AgentDecision(task) => {
            Some((task.agent_id.clone(), task.revision))
        }
        _ => None,
    }
}

impl Engine {
    /// The first node, in plan order, that could not do its work.
    pub(crate) async fn obstacle(
        &self,
        tenant: &TenantId,
        plan: &Plan,
        held: &[Permission],
    ) -> Result<Option<Obstacle>, EngineError> {
        let agents: Vec<_> = plan.nodes().iter().filter_map(pinned).collect();
        let statuses = if agents.is_empty() {
            Vec::new()
        } else {
            self.store.agent_statuses(tenant, &agents).await?
        };
        let mut statuses = statuses.into_iter();
        for node in plan.nodes() {
            let found = match &node.task {
                Task::Agent(_) | Task::AgentDecision(_) => match statuses.next().flatten() {
                    Some(AgentStatus::Active) => None,
                    Some(_) => Some(Code::AgentInactive),
                    None => Some(Code::AgentRevisionMissing),
                },
                Task::Action(task) => {
                    let found = self.actions.find(&task.action_id, task.contract_version);
                    found.is_none().then_some(Code::ActionVersionMissing)
                }
                _ => None,
            };
            let found = found.map(|code| (code, code.sentence().to_owned()));
            let found = found.or_else(|| {
                denied(&node.task, held).map(|message| (Code::PermissionDenied, message))
            });
            if let Some((code, message)) = found {
                return Ok(Some(Obstacle {
                    code,
                    message,
                    node_id: node.id.clone(),
                }));
            }
        }
        Ok(None)
    }
}
