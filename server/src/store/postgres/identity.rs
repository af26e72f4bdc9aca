//! Tenants, accounts, keys, links and sessions in their tables (server.md §3). A hash finds
//! its tenant here; nothing else may.

use sluicegate_core::ids::{Hash, TenantId};
use sluicegate_core::time::Instant;

use super::{Columns, PostgresStore, audit, fault, int, json};
use crate::store::identity::account;
use crate::store::{Account, ApiKey, KeyGrant, Session, StoreError};

impl PostgresStore {
    pub(super) async fn do_ensure_tenant(
        &self,
        tenant: &TenantId,
        owner: &Account,
    ) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let mut c = self.begin().await?;
        let made = sqlx::query(
            "insert into tenants (tenant_id, created_at) values ($1, $2)
             on conflict do nothing",
        )
        .bind(tenant.as_str())
        .bind(int(now.0))
        .execute(&mut *c)
        .await
        .map_err(fault)?;
        if made.rows_affected() == 0 {
            return Ok(false);
        }
        sqlx::query(
            "insert into accounts
                 (tenant_id, account_id, display_name, email, role, created_at)
             values ($1, $2, $3, $4, $5, $6)",
        )
        .bind(tenant.as_str())
        .bind(&owner.account_id)
        .bind(&owner.display_name)
        .bind(&owner.email)
        .bind(&owner.role)
        .bind(int(now.0))
        .execute(&mut *c)
        .await
        .map_err(fault)?;
        audit::begin_chain(&mut c, tenant).await?;
        c.commit().await.map_err(fault)?;
        Ok(true)
    }

    pub(super) async fn do_owner(&self, tenant: &TenantId) -> Result<Account, StoreError> {
        let row = sqlx::query(
            "select account_id, display_name, email, role from accounts
             where tenant_id = $1 and role = 'owner' order by created_at, account_id limit 1",
        )
        .bind(tenant.as_str())
        .fetch_optional(&self.pool)
        .await
        .map_err(fault)?;
        account(&row.ok_or(StoreError::NotFound)?)
    }

    pub(super) async fn do_create_api_key(&self, key: &ApiKey) -> Result<(), StoreError> {
        sqlx::query(
            "insert into api_keys
                 (tenant_id, key_id, label, secret_hash, permissions, created_by, created_at,
                  expires_at)
             values ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(key.tenant.as_str())
        .bind(&key.key_id)
        .bind(&key.label)
        .bind(key.secret.to_string())
        .bind(json(&key.permissions)?)
        .bind(&key.created_by)
        .bind(int(self.clock.now().0))
        .bind(key.expires_at.map(|at| int(at.0)))
        .execute(&self.pool)
        .await
        .map_err(fault)?;
        Ok(())
    }

    pub(super) async fn do_api_key(
        &self,
        secret: &Hash,
        now: Instant,
    ) -> Result<Option<KeyGrant>, StoreError> {
        let row = sqlx::query(
            "select k.tenant_id, k.key_id, k.label, k.permissions, k.last_used_at,
                    a.account_id, a.display_name, a.email, a.role
             from api_keys k join accounts a
               on a.tenant_id = k.tenant_id and a.account_id = k.created_by
             where k.secret_hash = $1 and k.revoked_at is null
               and (k.expires_at is null or k.expires_at > $2)",
        )
        .bind(secret.to_string())
        .bind(int(now.0))
        .fetch_optional(&self.pool)
        .await
        .map_err(fault)?;
        let Some(row) = row else { return Ok(None) };
        // The minute of the last use is enough, so that reading does not mean writing.
        let stale = row
            .maybe_number("last_used_at")?
            .is_none_or(|used| now.since(Instant(used)).0 >= 60_000);
        if stale {
            sqlx::query("update api_keys set last_used_at = $1 where secret_hash = $2")
                .bind(int(now.0))
                .bind(secret.to_string())
                .execute(&self.pool)
                .await
                .map_err(fault)?;
        }
        Ok(Some(KeyGrant {
            tenant: TenantId::from(row.text("tenant_id")?),
            key_id: row.text("key_id")?,
            label: row.text("label")?,
            permissions: row.json("permissions")?,
            configured_by: account(&row)?,
        }))
    }

    pub(super) async fn do_create_sign_in_link(
        &self,
        tenant: &TenantId,
        account_id: &str,
        token: &Hash,
        expires_at: Instant,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "insert into sign_in_links (token_hash, tenant_id, account_id, expires_at)
             values ($1, $2, $3, $4)",
        )
        .bind(token.to_string())
        .bind(tenant.as_str())
        .bind(account_id)
        .bind(int(expires_at.0))
        .execute(&self.pool)
        .await
        .map_err(fault)?;
        Ok(())
    }

    pub(super) async fn do_exchange_sign_in_link(
        &self,
        token: &Hash,
        session: &Session,
        now: Instant,
    ) -> Result<Option<(TenantId, Account)>, StoreError> {
        let mut c = self.begin().await?;
        let row = sqlx::query(
            "update sign_in_links set spent_at = $2
             where token_hash = $1 and spent_at is null and expires_at > $2
             returning tenant_id, account_id",
        )
        .bind(token.to_string())
        .bind(int(now.0))
        .fetch_optional(&mut *c)
        .await
        .map_err(fault)?;
        let Some(row) = row else { return Ok(None) };
        let (tenant, id) = (row.text("tenant_id")?, row.text("account_id")?);
        sqlx::query(
            "insert into sessions
                 (token_hash, tenant_id, account_id, csrf, created_at, idle_until, expires_at)
             values ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(session.token.to_string())
        .bind(&tenant)
        .bind(&id)
        .bind(&session.csrf)
        .bind(int(now.0))
        .bind(int(session.idle_until.0))
        .bind(int(session.expires_at.0))
        .execute(&mut *c)
        .await
        .map_err(fault)?;
        let row = sqlx::query(
            "select account_id, display_name, email, role from accounts
             where tenant_id = $1 and account_id = $2",
        )
        .bind(&tenant)
        .bind(&id)
        .fetch_one(&mut *c)
        .await
        .map_err(fault)?;
        c.commit().await.map_err(fault)?;
        Ok(Some((TenantId::from(tenant), account(&row)?)))
    }

    pub(super) async fn do_session(
        &self,
        token: &Hash,
        now: Instant,
        idle_until: Instant,
    ) -> Result<Option<(TenantId, Account, Session)>, StoreError> {
        let row = sqlx::query(
            "select s.tenant_id, s.csrf, s.idle_until, s.expires_at,
                    a.account_id, a.display_name, a.email, a.role
             from sessions s join accounts a
               on a.tenant_id = s.tenant_id and a.account_id = s.account_id
             where s.token_hash = $1 and s.idle_until > $2 and s.expires_at > $2",
        )
        .bind(token.to_string())
        .bind(int(now.0))
        .fetch_optional(&self.pool)
        .await
        .map_err(fault)?;
        let Some(row) = row else { return Ok(None) };
        let mut session = Session {
            token: *token,
            csrf: row.text("csrf")?,
            idle_until: row.instant("idle_until")?,
            expires_at: row.instant("expires_at")?,
        };
        // The minute is enough here too.
        if idle_until.since(session.idle_until).0 >= 60_000 {
            session.idle_until = idle_until;
            sqlx::query("update sessions set idle_until = $1 where token_hash = $2")
                .bind(int(idle_until.0))
                .bind(token.to_string())
                .execute(&self.pool)
                .await
                .map_err(fault)?;
        }
        let tenant = TenantId::from(row.text("tenant_id")?);
        Ok(Some((tenant, account(&row)?, session)))
    }

    pub(super) async fn do_end_session(&self, token: &Hash) -> Result<(), StoreError> {
        sqlx::query("delete from sessions where token_hash = $1")
            .bind(token.to_string())
            .execute(&self.pool)
            .await
            .map_err(fault)?;
        Ok(())
    }
}
