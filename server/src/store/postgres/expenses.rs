//! The tables of the sample module `expenses` (server.md §6): a decision is one transition
//! of its own, found again by its key.

use async_trait::async_trait;

use sluicegate_core::ids::TenantId;

use super::{Columns, PostgresStore, fault, int};
use crate::modules::expenses::{ClaimDecision, ClaimRow, ClaimStatus, Claims, Decided};
use crate::store::StoreError;

#[async_trait]
impl Claims for PostgresStore {
    async fn claim(&self, tenant: &TenantId, claim_id: &str) -> Result<ClaimRow, StoreError> {
        let row = sqlx::query(
            "select status, text from expenses_claims where tenant_id = $1 and claim_id = $2",
        )
        .bind(tenant.as_str())
        .bind(claim_id)
        .fetch_optional(&self.pool)
        .await
        .map_err(fault)?;
        let (status, text) = match row {
            None => (ClaimStatus::Submitted, None),
            Some(row) => (
                ClaimStatus::stored(&row.text("status")?)?,
                Some(row.text("text")?),
            ),
        };
        Ok(ClaimRow {
            claim_id: claim_id.to_owned(),
            status,
            text,
        })
    }

    async fn decide_claim(&self, decision: ClaimDecision) -> Result<Decided, StoreError> {
        let (now, key) = (int(self.clock.now().0), decision.key.to_string());
        let (tenant, word) = (decision.tenant.as_str(), decision.status.as_str());
        let mut c = self.begin().await?;
        let new = sqlx::query(
            "insert into expenses_decisions
                 (tenant_id, idempotency_key, claim_id, status, decided_at)
             values ($1, $2, $3, $4, $5)
             on conflict (tenant_id, idempotency_key) do nothing",
        )
        .bind(tenant)
        .bind(&key)
        .bind(&decision.claim_id)
        .bind(word)
        .bind(now)
        .execute(&mut *c)
        .await
        .map_err(fault)?;
        if new.rows_affected() == 0 {
            let before = sqlx::query(
                "select claim_id, status from expenses_decisions
                 where tenant_id = $1 and idempotency_key = $2",
            )
            .bind(tenant)
            .bind(&key)
            .fetch_one(&mut *c)
            .await
            .map_err(fault)?;
            let same =
                before.text("claim_id")? == decision.claim_id && before.text("status")? == word;
            return Ok(if same {
                Decided::Done
            } else {
                Decided::KeyConflict
            });
        }
        let stands = sqlx::query(
            "insert into expenses_claims (tenant_id, claim_id, status, text, decided_at)
             values ($1, $2, $3, $4, $5)
             on conflict (tenant_id, claim_id)
             do update set text = excluded.text, decided_at = excluded.decided_at
             where expenses_claims.status = excluded.status",
        )
        .bind(tenant)
        .bind(&decision.claim_id)
        .bind(word)
        .bind(&decision.text)
        .bind(now)
        .execute(&mut *c)
        .await
        .map_err(fault)?;
        if stands.rows_affected() == 0 {
            let present: String = sqlx::query_scalar(
                "select status from expenses_claims where tenant_id = $1 and claim_id = $2",
            )
            .bind(tenant)
            .bind(&decision.claim_id)
            .fetch_one(&mut *c)
            .await
            .map_err(fault)?;
            return Ok(Decided::Contradicts(ClaimStatus::stored(&present)?));
        }
        c.commit().await.map_err(fault)?;
        Ok(Decided::Done)
    }

    async fn claim_mutations(&self, tenant: &TenantId, claim_id: &str) -> Result<u64, StoreError> {
        let count: i64 = sqlx::query_scalar(
            "select count(*) from expenses_decisions where tenant_id = $1 and claim_id = $2",
        )
        .bind(tenant.as_str())
        .bind(claim_id)
        .fetch_one(&self.pool)
        .await
        .map_err(fault)?;
        Ok(super::nat(count))
    }
}
