//! The sample module `expenses` (server.md §6): claims in tables of its own and three
//! actions, the reference for an idempotent action. What it writes is its own transition:
//! the workflow's may fail while this one stands, and then the key finds it again.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;

use sluicegate_core::catalogue::ActionDescriptor;
use sluicegate_core::code::Code;
use sluicegate_core::ids::{Hash, TenantId};
use sluicegate_core::value::{Map, Value};

use crate::actions::{Action, ActionFault, Invocation, NotRegistered, Registry};
use crate::store::StoreError;

/// What was decided about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimStatus {
    /// Nothing yet.
    Submitted,
    /// Yes.
    Approved,
    /// No.
    Rejected,
}

impl ClaimStatus {
    /// The word of the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
        }
    }

    /// What a word of the tables says.
    pub(crate) fn stored(word: &str) -> Result<Self, StoreError> {
        match word {
            "approved" => Ok(Self::Approved),
            "rejected" => Ok(Self::Rejected),
            other => Err(StoreError::Corrupt(format!("a claim's status {other:?}"))),
        }
    }
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRow {
    /// Which.
    pub claim_id: String,
    /// How it stands.
    pub status: ClaimStatus,
    /// The note of its approval or the reason of its rejection.
    pub text: Option<String>,
}

/// A decision about a claim, with the key that makes it one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimDecision {
    /// The tenant.
    pub tenant: TenantId,
    /// The same key means the same decision.
    pub key: Hash,
    /// Which claim.
    pub claim_id: String,
    /// Approved or rejected.
    pub status: ClaimStatus,
    /// The note or reason.
    pub text: String,
}

/// What became of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// It was made, now or by the same key before.
    Done,
    /// The claim has the other status already.
    Contradicts(ClaimStatus),
    /// The key was used for something else.
    KeyConflict,
}

/// The module's own tables.
#[async_trait]
pub trait Claims: Send + Sync {
    /// A claim. One that nobody has written about is `submitted`: the sample has no other
    /// source of claims than the workflow that reviews them.
    async fn claim(&self, tenant: &TenantId, claim_id: &str) -> Result<ClaimRow, StoreError>;

    /// Decides about a claim, once for each key.
    async fn decide_claim(&self, decision: ClaimDecision) -> Result<Decided, StoreError>;

    /// How many decisions about a claim were written; what a crash must not make two.
    async fn claim_mutations(&self, tenant: &TenantId, claim_id: &str) -> Result<u64, StoreError>;
}

/// Registers the three actions.
///
/// # Errors
/// [`NotRegistered`].
pub fn register(registry: &mut Registry, claims: &Arc<dyn Claims>) -> Result<(), NotRegistered> {
    for kind in [Kind::Approve, Kind::Read, Kind::Reject] {
        registry.register(Arc::new(ClaimAction {
            kind,
            claims: Arc::clone(claims),
        }))?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Approve,
    Reject,
}

struct ClaimAction {
    kind: Kind,
    claims: Arc<dyn Claims>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    claim_id: String,
    note: Option<String>,
    reason: Option<String>,
}

#[async_trait]
impl Action for ClaimAction {
    fn descriptor(&self) -> ActionDescriptor {
        contract(self.kind)
    }

    async fn invoke(&self, call: Invocation) -> Result<Value, ActionFault> {
        let input = Input::deserialize(&call.input).map_err(|error| ActionFault {
            code: Code::ActionRefused.as_str().to_owned(),
            message: error.to_string(),
        })?;
        let texts = [
            Some(&input.claim_id),
            input.note.as_ref(),
            input.reason.as_ref(),
        ];
        if texts.into_iter().flatten().any(|text| text.contains('\0')) {
            return Err(ActionFault {
                code: Code::ActionRefused.as_str().to_owned(),
                message: "a claim's texts do not hold the character U+0000".to_owned(),
            });
        }
        let (status, text) = match self.kind {
            Kind::Read => return self.read(&call.tenant, &input.claim_id).await,
            Kind::Approve => (ClaimStatus::Approved, input.note),
            Kind::Reject => (ClaimStatus::Rejected, input.reason),
        };
        let decision = ClaimDecision {
            tenant: call.tenant,
            key: call.idempotency_key,
            claim_id: input.claim_id.clone(),
            status,
            text: text.unwrap_or_default(),
        };
        let failed = |message: String| ActionFault {
            code: Code::ActionFailed.as_str().to_owned(),
            message,
        };
        match self.claims.decide_claim(decision).await.map_err(busy)? {
            Decided::Done => Ok(object([
                ("claimId", input.claim_id.into()),
                ("status", status.as_str().into()),
            ])),
            Decided::Contradicts(present) => {
                Err(failed(format!("the claim is {} already", present.as_str())))
            }
            Decided::KeyConflict => Err(failed("the key was used for another claim".to_owned())),
        }
    }
}

impl ClaimAction {
    async fn read(&self, tenant: &TenantId, claim_id: &str) -> Result<Value, ActionFault> {
        let row = self.claims.claim(tenant, claim_id).await.map_err(busy)?;
        let mut members = Map::new();
        members.insert("claimId".to_owned(), row.claim_id.into());
        members.insert("status".to_owned(), row.status.as_str().into());
        let name = match row.status {
            ClaimStatus::Rejected => "reason",
            ClaimStatus::Approved | ClaimStatus::Submitted => "note",
        };
        if let Some(text) = row.text {
            members.insert(name.to_owned(), text.into());
        }
        Ok(Value::Object(members))
    }
}

/// The module's database did not take it: another attempt may help.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
fn busy(error: StoreError) -> ActionFault {
    ActionFault {
        code: "expenses.busy".to_owned(),
        message: error.to_string(),
    }
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.into_iter();
    Value::Object(
        members
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// The published contracts, version 1.
fn contract(kind: Kind) -> ActionDescriptor {
    use sluicegate_core::catalogue::{Cancellation, Idempotency, Risk};
    let id = serde_json::json!({"type": "string", "minLength": 1, "maxLength": 64});
    let long = serde_json::json!({"type": "string", "maxLength": 2000});
    let closed = |required: &[&str], properties: Value| {
        serde_json::json!({
            "type": "object", "required": required, "additionalProperties": false,
            "properties": properties,
        })
    };
    let (name, description, text, done) = match kind {
        Kind::Read => ("read", "Reads a claim and its status.", None, None),
        Kind::Approve => (
            "approve",
            "Marks a claim approved.",
            Some("note"),
            Some("approved"),
        ),
        Kind::Reject => (
            "reject",
            "Marks a claim rejected, with a reason.",
            Some("reason"),
            Some("rejected"),
        ),
    };
    let input_schema = match text {
        None => closed(&["claimId"], object([("claimId", id.clone())])),
        Some(text) => closed(
            &["claimId", text],
            object([("claimId", id.clone()), (text, long)]),
        ),
    };
    let output_schema = match done {
        None => closed(
            &["claimId", "status"],
            serde_json::json!({
                "claimId": id, "status": {"enum": ["approved", "rejected", "submitted"]},
                "note": {"type": "string"}, "reason": {"type": "string"},
            }),
        ),
        Some(done) => closed(
            &["claimId", "status"],
            serde_json::json!({"claimId": id, "status": {"const": done}}),
        ),
    };
    let reads = kind == Kind::Read;
    ActionDescriptor {
        id: format!("expenses.claim.{name}").into(),
        contract_version: 1,
        description: description.to_owned(),
        required_permissions: vec![
            if reads {
                "expenses.claims.read"
            } else {
                "expenses.claims.write"
            }
            .to_owned(),
        ],
        input_schema,
        output_schema,
        timeout_ms: if reads { 5_000 } else { 10_000 },
        idempotency: Idempotency::Required,
        risk: if reads {
            Risk::Read
        } else {
            Risk::WorkspaceWrite
        },
        cancellation: if reads {
            Cancellation::Cooperative
        } else {
            Cancellation::NotSupported
        },
        retryable_codes: vec!["expenses.busy".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contracts_are_those_that_the_samples_pin() {
        let samples: Vec<ActionDescriptor> =
            serde_json::from_str(include_str!("../../../samples/actions.json")).unwrap();
        let ours = [Kind::Approve, Kind::Read, Kind::Reject].map(contract);
        assert_eq!(samples, ours);
    }
}
