//! The tables of the sample module `expenses` (server.md §6): a decision is one transition
//! of its own, found again by its key.

use async_trait::async_trait;

use sluicegate_core::ids::TenantId;

use super::{Columns, SqliteStore, fault, int};
use crate::modules::expenses::{ClaimDecision, ClaimRow, ClaimStatus, Claims, Decided};
use crate::store::StoreError;

#[async_trait]
impl Claims for SqliteStore {
    async fn claim(&self, tenant: &TenantId, claim_id: &str) -> Result<ClaimRow, StoreError> {
        let row = sqlx::query(
            "select status, text from expenses_claims where tenant_id = ? and claim_id = ?",
        )
        .bind(tenant.as_str())
        .bind(claim_id)
        .fetch_optional(&self.readers)
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
        let now = self.clock.now();
        self.write(move |c| {
            Box::pin(async move {
                let (tenant, key) = (decision.tenant.as_str(), decision.key.to_string());
                let word = decision.status.as_str();
                let before = sqlx::query(
                    "select claim_id, status from expenses_decisions
                     where tenant_id = ? and idempotency_key = ?",
                )
                .bind(tenant)
                .bind(&key)
                .fetch_optional(&mut *c)
                .await
                .map_err(fault)?;
                if let Some(before) = before {
                    let same = before.text("claim_id")? == decision.claim_id
                        && before.text("status")? == word;
                    return Ok(if same {
                        Decided::Done
                    } else {
                        Decided::KeyConflict
                    });
                }
                let present: Option<String> = sqlx::query_scalar(
                    "select status from expenses_claims where tenant_id = ? and claim_id = ?",
                )
                .bind(tenant)
                .bind(&decision.claim_id)
                .fetch_optional(&mut *c)
                .await
                .map_err(fault)?;
                if let Some(present) = present
                    && present != word
                {
                    return Ok(Decided::Contradicts(ClaimStatus::stored(&present)?));
                }
                sqlx::query(
                    "insert into expenses_decisions
                         (tenant_id, idempotency_key, claim_id, status, decided_at)
                     values (?, ?, ?, ?, ?)",
                )
                .bind(tenant)
                .bind(&key)
                .bind(&decision.claim_id)
                .bind(word)
                .bind(int(now.0))
                .execute(&mut *c)
                .await
                .map_err(fault)?;
                sqlx::query(
                    "insert into expenses_claims (tenant_id, claim_id, status, text, decided_at)
                     values (?, ?, ?, ?, ?)
                     on conflict (tenant_id, claim_id)
                     do update set text = excluded.text, decided_at = excluded.decided_at",
                )
                .bind(tenant)
                .bind(&decision.claim_id)
                .bind(word)
                .bind(&decision.text)
                .bind(int(now.0))
                .execute(c)
                .await
                .map_err(fault)?;
                Ok(Decided::Done)
            })
        })
        .await
    }

    async fn claim_mutations(&self, tenant: &TenantId, claim_id: &str) -> Result<u64, StoreError> {
        let count: i64 = sqlx::query_scalar(
            "select count(*) from expenses_decisions where tenant_id = ? and claim_id = ?",
        )
        .bind(tenant.as_str())
        .bind(claim_id)
        .fetch_one(&self.readers)
        .await
        .map_err(fault)?;
        Ok(super::nat(count))
    }
}
