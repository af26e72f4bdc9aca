//! Who is signed in (api.md "Shared shapes").

use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::ids::{Permission, TenantId};
use crate::time::Instant;

/// The answer of `GET /api/session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Who acts.
    pub actor: Actor,
    /// For which tenant.
    pub tenant_id: TenantId,
    /// What they may do, sorted.
    pub permissions: Vec<Permission>,
    /// What a state-changing request of this session sends as `X-CSRF-Token`.
    pub csrf_token: String,
    /// When the session ends, whatever happens.
    pub expires_at: Instant,
}
