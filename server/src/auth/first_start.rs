//! The first start (server.md §1): one tenant, its owner, one API key and a way to sign in.

use sluicegate_core::ids::{Permission, TenantId};
use sluicegate_core::time::{Instant, Millis};

use super::secret;
use crate::store::{Account, ApiKey, Store, StoreError};

/// A sign-in link that nobody uses ends.
const LINK_LIFE: Millis = Millis(24 * 3_600_000);

/// What the first start makes; it is shown once and never again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstStart {
    /// The API key.
    pub api_key: String,
}

/// The tenant that a server on one machine has.
fn default_tenant() -> TenantId {
    TenantId::from("default")
}

/// Creates what a new data folder lacks. `None` when nothing was missing.
///
/// # Errors
/// Those of the store.
pub async fn first_start(
    store: &dyn Store,
    owner_may: &[Permission],
) -> Result<(TenantId, Option<FirstStart>), StoreError> {
    let tenant = default_tenant();
    let owner = Account {
        account_id: uuid::Uuid::new_v4().to_string(),
        display_name: "Owner".to_owned(),
        email: None,
        role: "owner".to_owned(),
    };
    if !store.ensure_tenant(&tenant, &owner).await? {
        return Ok((tenant, None));
    }
    let api_key = secret::random(secret::KEY_PREFIX)?;
    let mut permissions = owner_may.to_vec();
    permissions.sort_unstable();
    store
        .create_api_key(&ApiKey {
            tenant: tenant.clone(),
            key_id: uuid::Uuid::new_v4().to_string(),
            label: "first key".to_owned(),
            secret: secret::hash(&api_key),
            permissions,
            created_by: owner.account_id,
            expires_at: None,
        })
        .await?;
    Ok((tenant, Some(FirstStart { api_key })))
}

/// A new single-use link for the owner, as the part of an address after the host.
///
/// # Errors
/// Those of the store.
pub async fn sign_in_link(
    store: &dyn Store,
    tenant: &TenantId,
    now: Instant,
) -> Result<String, StoreError> {
    let token = secret::random("")?;
    let owner = store.owner(tenant).await?;
    store
        .create_sign_in_link(
            tenant,
            &owner.account_id,
            &secret::hash(&token),
            now.plus(LINK_LIFE),
        )
        .await?;
    Ok(format!("/sign-in?token={token}"))
}
