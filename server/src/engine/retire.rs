//! Retention of one ended run (server.md §8; run-machine.md W2, H4; seed A "Retention"): the
//! event that names what goes is durable before anything goes, and is a promise. What a fault
//! left is found and finished by the next sweep.

use sluicegate_core::actor::{Actor, ConfiguredBy, Origin, UserActor};
use sluicegate_core::ids::{RunId, TenantId};
use sluicegate_core::run::{
    Command, PayloadKind, RetentionApplied, RetentionPolicy, RetiredPayload,
};

use super::crash::{self, CrashPoint};
use super::{Engine, EngineError, Folded};
use crate::store::{ChildChanges, Guard, Retained, Rule, StoreError};

/// The service that acts (H4).
const SERVICE: &str = "sluicegate.retention";
/// How many payloads go in one transaction: others write in between.
const AT_ONCE: usize = 64;

impl Engine {
    /// Applies a rule to a run that has ended; without effect where nothing is left to go. A run
    /// whose log cannot be folded stays as it is (A9).
    ///
    /// # Errors
    /// Those of the store; the next sweep goes on from there.
    pub async fn retire(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rule: Rule,
    ) -> Result<(), EngineError> {
        let kept = self.promise(tenant, run_id, rule).await?;
        crash::at(CrashPoint::BeforeDeletion);
        if rule.is_of(PayloadKind::Execution) {
            // A child's row holds the same values again. They go first: as long as a payload is
            // left, the run is looked at again.
            while self.store.expire_children(tenant, run_id, AT_ONCE).await? {}
        }
        for some in kept.chunks(AT_ONCE) {
            self.store.expire(tenant, run_id, rule, some).await?;
            crash::at(CrashPoint::DuringDeletion);
        }
        Ok(())
    }

    /// Names what goes, unless an event has named it before, and gives all of it.
    async fn promise(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
        rule: Rule,
    ) -> Result<Vec<Retained>, EngineError> {
        loop {
            let mut folded = self.fold(tenant, run_id).await?;
            let kept = self.store.retained(tenant, run_id, rule).await?;
            let unnamed: Vec<_> = kept
                .iter()
                .filter(|payload| !folded.run.is_retired(&payload.payload_id, payload.kind))
                .collect();
            if unnamed.is_empty() {
                return Ok(kept);
            }
            let payloads = unnamed.into_iter().map(|payload| RetiredPayload {
                payload_id: payload.payload_id.clone(),
                kind: payload.kind,
                hash: payload.hash,
                prior_state: payload.state,
            });
            let applied = RetentionApplied {
                policy: RetentionPolicy {
                    kind: rule.name().to_owned(),
                    days: rule.days,
                },
                payloads: payloads.collect(),
            };
            match self.name(&mut folded, rule, applied).await {
                Ok(()) => return Ok(kept),
                // Another process named them first: look again.
                Err(EngineError::Store(StoreError::Stale)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn name(
        &self,
        folded: &mut Folded,
        rule: Rule,
        applied: RetentionApplied,
    ) -> Result<(), EngineError> {
        let owner = self.store.owner(&folded.tenant).await?;
        let actor = Actor::Service {
            id: SERVICE.to_owned(),
            label: "Retention".to_owned(),
            configured_by: ConfiguredBy::User(UserActor {
                account_id: owner.account_id,
                display_name: owner.display_name,
                email: owner.email,
            }),
        };
        let origin = Origin::Module {
            module_id: SERVICE.to_owned(),
            operation_id: rule.name().to_owned(),
        };
        let step = self.decide(folded, Command::Retire(applied))?;
        let guard = Guard::Sequence(folded.run.sequence());
        self.commit(
            folded,
            step,
            guard,
            (actor, origin),
            ChildChanges::default(),
        )
        .await
        .map(|_| ())
    }
}
