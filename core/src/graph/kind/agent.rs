//! `agent` and `agent-decision`: the same configuration, other ports (wire-format.md G4).

use serde::Serialize;

use super::{FailurePolicy, Mapping};
use crate::graph::node::{optional_integer, optional_text};
use crate::ids::AgentId;
use crate::value::{JsonError, Object, Place};

/// A node that executes a pinned agent revision.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentNode {
    /// Which agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentReference>,
    /// How the input is built; none: the incoming envelope as it is (M1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mappings: Option<Vec<Mapping>>,
    /// What happens when an attempt fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Time limit of one attempt in milliseconds, 1,000 to 3,600,000; default 300,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
}

/// An agent's exact revision.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentReference {
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The revision, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
}

impl AgentNode {
    pub(super) fn read(object: &mut Object<'_>) -> Result<Self, JsonError> {
        Ok(Self {
            agent: object
                .optional("agent")
                .map(|place| AgentReference::read(&place))
                .transpose()?,
            mappings: Mapping::read_list(object.optional("mappings"))?,
            failure_policy: FailurePolicy::read(object.optional("failurePolicy"))?,
            timeout_ms: optional_integer(object.optional("timeoutMs"))?,
        })
    }
}

impl AgentReference {
    fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let reference = Self {
            agent_id: optional_text(object.optional("agentId"))?.map(AgentId::from),
            revision: optional_integer(object.optional("revision"))?,
        };
        object.done()?;
        Ok(reference)
    }
}
