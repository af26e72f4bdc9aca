//! Deciding: what follows from a command (run-machine.md §§1, 3–8). The only function of
//! the machine that sees time; it emits through a [`Draft`] that applies every event to a
//! copy of the run, so that what was decided is legal by construction.

mod cancel;
mod child;
mod draft;
mod end;
mod go_on;
mod input;
mod settle;

use super::command::{Command, Decision, Envelopes, Refusal, Time};
use super::event::{Claimed, Payload, Recovered};
use super::state::{Run, RunStatus};
use crate::code::Code;
use crate::plan::Plan;

use draft::Draft;
use end::Ending;

/// What follows from a command. The run itself is not changed: a caller applies the events
/// once they are durable.
///
/// # Errors
/// [`Refusal`]: nothing was decided.
pub fn decide(
    plan: &Plan,
    run: &Run,
    envelopes: &Envelopes,
    time: Time<'_>,
    command: Command,
) -> Result<Decision, Refusal> {
    advance(plan, run, envelopes, time, command).map(|(decision, _)| decision)
}

/// As [`decide`], with the run as it stands once the events are folded: what a caller goes on
/// with when it has made them durable.
///
/// # Errors
/// [`Refusal`]: nothing was decided.
pub fn advance(
    plan: &Plan,
    run: &Run,
    envelopes: &Envelopes,
    time: Time<'_>,
    command: Command,
) -> Result<(Decision, Run), Refusal> {
    let begins = matches!(command, Command::Queue(_));
    if begins != run.queued().is_none() {
        return Err(Refusal::Stale);
    }
    let retires = matches!(command, Command::Retire(_));
    if run.status().is_terminal() != retires {
        return Err(if retires {
            Refusal::Stale
        } else {
            Refusal::Terminal
        });
    }
    let mut draft = Draft::new(plan, run, envelopes, time);
    match command {
        Command::Queue(queue) => draft.queue(*queue)?,
        Command::Claim {
            worker_id,
            lease,
            over,
        } => {
            draft.emit(match (over, lease) {
                (Some((prior, reason)), Some(lease)) => Payload::RunRecovered(Recovered {
                    worker_id,
                    fence: lease.fence,
                    lease_expires_at: lease.expires_at,
                    prior,
                    reason,
                }),
                (_, lease) => Payload::RunClaimed(Claimed {
                    worker_id,
                    fence: lease.as_ref().map(|lease| lease.fence),
                    lease_expires_at: lease.map(|lease| lease.expires_at),
                }),
            })?;
            // A claim commits alone, with the ending if that is all that is left (O4).
            if draft.run.in_flight.is_none() {
                draft.end_if_spent(None)?;
            }
        }
        Command::Continue => draft.go_on()?,
        Command::ChildAccepted {
            node_id,
            attempt,
            child_id,
            result,
        } => draft.child_accepted(&node_id, attempt, child_id, result)?,
        Command::ChildSettled {
            node_id,
            attempt,
            result,
        } => draft.child_settled(&node_id, attempt, result)?,
        Command::Cancel {
            requested_by,
            reason,
        } => draft.cancel(requested_by, reason)?,
        Command::CancelAnswered {
            node_id,
            attempt,
            child_id,
            refusal,
        } => draft.cancel_answered(&node_id, attempt, child_id, refusal)?,
        Command::PreflightFailed {
            code,
            message,
            node_id,
        } => {
            // Only before anything has begun: afterwards a refusal is an attempt's (A2).
            if draft.run.nodes.iter().any(|node| node.status.is_some()) {
                return Err(Refusal::Stale);
            }
            draft.end(Ending::refused(code.as_str(), message, node_id), None)?;
        }
        Command::Inconsistent { message, node_id } => {
            // Nothing outside can contradict a run that nobody has begun.
            if draft.run.status() == RunStatus::Queued {
                return Err(Refusal::Stale);
            }
            draft.inconsistent(Code::RecoveryInconsistent, message, node_id)?;
        }
        Command::Retire(applied) => draft.emit(Payload::RetentionApplied(applied))?,
    }
    Ok(draft.into_parts())
}
