//! Who acts and through what (seed A "Actor and origin model"; api.md "Shared shapes").

use serde::{Deserialize, Serialize};

/// Who caused something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Actor {
    /// A person.
    User(UserActor),
    /// An agent, during one of its own runs.
    #[serde(rename_all = "camelCase")]
    Agent {
        /// The authorizing agent run.
        run_id: String,
        /// The agent.
        agent_id: String,
        /// Its name.
        agent_name: String,
    },
    /// A program, with the person who configured it.
    #[serde(rename_all = "camelCase")]
    Service {
        /// The service or key.
        id: String,
        /// What people call it.
        label: String,
        /// Who gave it its authority.
        configured_by: ConfiguredBy,
    },
}

/// A person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserActor {
    /// The account.
    pub account_id: String,
    /// The name shown.
    pub display_name: String,
    /// The address, where one is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub email: Option<String>,
}

/// A user actor inside a service actor: the same members, `kind` always `user`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ConfiguredBy {
    /// The person.
    User(UserActor),
}

impl Actor {
    /// What `actor.label` gives (wire-format.md M4).
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::User(user) => &user.display_name,
            Self::Agent { agent_name, .. } => agent_name,
            Self::Service { label, .. } => label,
        }
    }

    /// `user`, `agent` or `service`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Agent { .. } => "agent",
            Self::Service { .. } => "service",
        }
    }

    /// The account, agent or service.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::User(user) => &user.account_id,
            Self::Agent { agent_id, .. } => agent_id,
            Self::Service { id, .. } => id,
        }
    }
}

/// Through what a run was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum Origin {
    /// By hand.
    Manual,
    /// By a module's operation.
    Module {
        /// The module.
        module_id: String,
        /// The operation.
        operation_id: String,
    },
    /// By a schedule.
    Schedule {
        /// Which.
        schedule_id: String,
    },
    /// By a webhook.
    Webhook {
        /// Which.
        trigger_id: String,
    },
}

impl Origin {
    /// `manual`, `module`, `schedule` or `webhook`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Module { .. } => "module",
            Self::Schedule { .. } => "schedule",
            Self::Webhook { .. } => "webhook",
        }
    }

    /// The operation, schedule or trigger.
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        match self {
            Self::Manual => None,
            Self::Module { operation_id, .. } => Some(operation_id),
            Self::Schedule { schedule_id } => Some(schedule_id),
            Self::Webhook { trigger_id } => Some(trigger_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn m4_every_actor_has_a_label_and_reads_back() {
        let person = json!({"kind": "user", "accountId": "acc", "displayName": "Ada"});
        for (wire, [kind, id, label]) in [
            (person.clone(), ["user", "acc", "Ada"]),
            (
                json!({"kind": "agent", "runId": "r", "agentId": "ag", "agentName": "Judge"}),
                ["agent", "ag", "Judge"],
            ),
            (
                json!({"kind": "service", "id": "s", "label": "Nightly", "configuredBy": person}),
                ["service", "s", "Nightly"],
            ),
        ] {
            let actor: Actor = serde_json::from_value(wire.clone()).unwrap();
            assert_eq!([actor.kind(), actor.id(), actor.label()], [kind, id, label]);
            assert_eq!(json!(actor), wire);
        }
    }
}
