//! Accounts, API keys and sessions as the store keeps them (server.md §3). No secret is
//! here: callers hash them first.

use sluicegate_core::ids::{Hash, TenantId};
use sluicegate_core::time::Instant;

use super::StoreError;
use super::column::Columns;

/// A person who can sign in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its id.
    pub account_id: String,
    /// The name shown.
    pub display_name: String,
    /// The address, where one is known.
    pub email: Option<String>,
    /// `owner` and the like.
    pub role: String,
}

/// An API key to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// The tenant that it opens.
    pub tenant: TenantId,
    /// Its public id.
    pub key_id: String,
    /// What people call it.
    pub label: String,
    /// Hash of the secret.
    pub secret: Hash,
    /// What it may do.
    pub permissions: Vec<String>,
    /// The account that configured it.
    pub created_by: String,
    /// When it ends.
    pub expires_at: Option<Instant>,
}

/// What a presented key opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGrant {
    /// The tenant.
    pub tenant: TenantId,
    /// The key's public id.
    pub key_id: String,
    /// What people call it.
    pub label: String,
    /// What it may do.
    pub permissions: Vec<String>,
    /// Who configured it.
    pub configured_by: Account,
}

/// A signed-in browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Hash of the cookie.
    pub token: Hash,
    /// The CSRF token, given back to its own page only.
    pub csrf: String,
    /// When it ends unless it is used.
    pub idle_until: Instant,
    /// When it ends whatever happens.
    pub expires_at: Instant,
}

/// An account's row.
pub(super) fn account(row: &impl Columns) -> Result<Account, StoreError> {
    Ok(Account {
        account_id: row.text("account_id")?,
        display_name: row.text("display_name")?,
        email: row.maybe_text("email")?,
        role: row.text("role")?,
    })
}
