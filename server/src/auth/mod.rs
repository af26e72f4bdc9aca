//! Who asks (server.md §3): the one place where tenant, actor, origin and permissions come
//! from. Nothing in a request's body can say any of them.

mod first_start;
mod secret;

pub mod permission;

pub use first_start::{FirstStart, first_start, sign_in_link};

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, Method};
use sluicegate_core::actor::{Actor, ConfiguredBy, Origin, UserActor};
use sluicegate_core::api;
use sluicegate_core::code::Code;
use sluicegate_core::ids::{Permission, TenantId};
use sluicegate_core::time::{Instant, Millis};

use crate::store::{Account, By, KeyGrant, Session, Store, StoreError};

/// The session cookie's name.
const COOKIE_NAME: &str = "sluicegate_session";
/// A session that nobody uses ends.
const IDLE: Millis = Millis(24 * 3_600_000);
/// A session ends, however it is used.
const ABSOLUTE: Millis = Millis(7 * 24 * 3_600_000);

/// A trusted context: who asks, for which tenant, and what they may do. Only this module
/// makes one, from credentials that it has checked.
#[derive(Debug, Clone)]
pub struct Context {
    by: By,
    permissions: Vec<Permission>,
    session: Option<Session>,
}

/// Why nobody may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// With this code.
    Code(Code, &'static str),
    /// The store failed.
    Store(StoreError),
}

/// A session that was just opened.
#[derive(Debug)]
pub struct SignedIn {
    /// The `Set-Cookie` header.
    pub cookie: String,
}

impl Context {
    /// Checks the credentials of a request: an API key, or else a session cookie.
    ///
    /// # Errors
    /// [`Refused`] without valid credentials, and for a state-changing request with a cookie
    /// that did not come from that session's own page.
    pub async fn of_request(
        store: &dyn Store,
        owner: &[Permission],
        now: Instant,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Self, Refused> {
        if headers.contains_key(AUTHORIZATION) {
            let secret = bearer(headers).ok_or(Refused::Code(
                Code::AuthenticationRequired,
                "the Authorization header is not Bearer with an API key",
            ))?;
            let found = store.api_key(&secret::hash(secret), now).await?;
            let grant = found.ok_or(Refused::Code(
                Code::AuthenticationRequired,
                "the API key is unknown, revoked or expired",
            ))?;
            return Ok(Self::of_key(grant));
        }
        let token = session_token(headers).ok_or(Refused::Code(
            Code::AuthenticationRequired,
            "sign in, or send Authorization: Bearer with an API key",
        ))?;
        let found = store
            .session(&secret::hash(token), now, now.plus(IDLE))
            .await?;
        let (tenant, account, session) = found.ok_or(Refused::Code(
            Code::AuthenticationRequired,
            "the session has ended; sign in again",
        ))?;
        let safe = matches!(*method, Method::GET | Method::HEAD);
        if !safe {
            from_own_page(headers, &session)?;
        }
        Ok(Self::of_session(tenant, account, session, owner))
    }

    fn of_key(grant: KeyGrant) -> Self {
        let KeyGrant {
            tenant,
            key_id,
            label,
            permissions,
            configured_by,
        } = grant;
        Self {
            by: By {
                tenant,
                actor: Actor::Service {
                    id: key_id.clone(),
                    label,
                    configured_by: ConfiguredBy::User(user(configured_by)),
                },
                origin: Origin::Module {
                    module_id: "sluicegate.api".to_owned(),
                    operation_id: key_id,
                },
            },
            permissions: sorted(permissions),
            session: None,
        }
    }

    fn of_session(
        tenant: TenantId,
        account: Account,
        session: Session,
        owner: &[Permission],
    ) -> Self {
        // The owner is the one role there is for now.
        let permissions = match account.role.as_str() {
            "owner" => sorted(owner.to_vec()),
            _ => Vec::new(),
        };
        Self {
            by: By {
                tenant,
                actor: Actor::User(user(account)),
                origin: Origin::Manual,
            },
            permissions,
            session: Some(session),
        }
    }

    /// The context in which the server itself loads its samples, as the tenant's owner.
    pub(crate) fn of_owner(tenant: TenantId, account: Account, owner: &[Permission]) -> Self {
        Self {
            by: By {
                tenant,
                actor: Actor::User(user(account)),
                origin: Origin::Manual,
            },
            permissions: sorted(owner.to_vec()),
            session: None,
        }
    }

    /// Who, for which tenant, through what.
    #[must_use]
    pub fn by(&self) -> &By {
        &self.by
    }

    /// The tenant.
    #[must_use]
    pub fn tenant(&self) -> &TenantId {
        &self.by.tenant
    }

    /// What they may do, sorted.
    #[must_use]
    pub fn permissions(&self) -> &[Permission] {
        &self.permissions
    }

    /// Whether they may do this.
    #[must_use]
    pub fn may(&self, permission: &str) -> bool {
        self.permissions.iter().any(|held| held == permission)
    }

    /// The session as its own page sees it; none for an API key.
    #[must_use]
    pub fn session(&self) -> Option<api::Session> {
        self.session.as_ref().map(|session| api::Session {
            actor: self.by.actor.clone(),
            tenant_id: self.by.tenant.clone(),
            permissions: self.permissions.clone(),
            csrf_token: session.csrf.clone(),
            expires_at: session.expires_at,
        })
    }

    /// Ends the session, if there is one, and gives the header that removes its cookie.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn end_session(&self, store: &dyn Store) -> Result<String, StoreError> {
        if let Some(session) = &self.session {
            store.end_session(&session.token).await?;
        }
        Ok(format!(
            "{COOKIE_NAME}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0"
        ))
    }
}

/// Spends a sign-in link. `None`: it is unknown, spent or expired.
///
/// # Errors
/// Those of the store, and of the source of randomness.
pub async fn sign_in(
    store: &dyn Store,
    token: &str,
    now: Instant,
    headers: &HeaderMap,
) -> Result<Option<SignedIn>, StoreError> {
    let cookie = secret::random("")?;
    let session = Session {
        token: secret::hash(&cookie),
        csrf: secret::random("")?,
        idle_until: now.plus(IDLE),
        expires_at: now.plus(ABSOLUTE),
    };
    let opened = store
        .exchange_sign_in_link(&secret::hash(token), &session, now)
        .await?;
    // Behind HTTPS the cookie never travels in the clear. Whoever forges this header only
    // makes the own cookie stricter.
    let https = headers
        .get("x-forwarded-proto")
        .is_some_and(|value| value == "https");
    let secure = if https { "; Secure" } else { "" };
    Ok(opened.map(|_| SignedIn {
        cookie: format!(
            "{COOKIE_NAME}={cookie}; Path=/; HttpOnly; SameSite=Lax; Max-Age={}{secure}",
            ABSOLUTE.0 / 1_000
        ),
    }))
}

/// Refuses a request that another site could have made a browser send.
fn from_own_page(headers: &HeaderMap, session: &Session) -> Result<(), Refused> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let token = text("x-csrf-token").ok_or(Refused::Code(
        Code::CsrfRejected,
        "send the session's X-CSRF-Token",
    ))?;
    if !secret::same(token, &session.csrf) {
        return Err(Refused::Code(
            Code::CsrfRejected,
            "the X-CSRF-Token is not this session's",
        ));
    }
    let origin = text(ORIGIN.as_str()).and_then(|origin| origin.split_once("://"));
    let host = text(HOST.as_str());
    match (origin, host) {
        (Some(("http" | "https", origin)), Some(host)) if origin == host => Ok(()),
        _ => Err(Refused::Code(
            Code::CsrfRejected,
            "the Origin header is missing or names another site",
        )),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| secret.trim())
        .filter(|secret| secret.starts_with(secret::KEY_PREFIX))
}

fn session_token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == COOKIE_NAME)
        .map(|(_, value)| value)
}

fn user(account: Account) -> UserActor {
    UserActor {
        account_id: account.account_id,
        display_name: account.display_name,
        email: account.email,
    }
}

fn sorted(mut permissions: Vec<Permission>) -> Vec<Permission> {
    permissions.sort_unstable();
    permissions.dedup();
    permissions
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
