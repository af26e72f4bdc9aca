//! `audit verify`: asks a server to check its tenant's audit chain (server.md §2; run-machine.md
//! H3).

use std::time::Duration;

use sluicegate_core::api::AuditVerification;
use sluicegate_core::audit::Break;

use super::client::Client;
use super::fault::Fault;
use super::output::Output;
use super::{Answer, Verify};

/// A long chain takes its time.
const LONGEST: Duration = Duration::from_secs(3_600);

pub(super) fn verify(arguments: &Verify, output: &mut Output) -> Result<Answer, Fault> {
    let client = Client::new(&arguments.remote, LONGEST)?;
    let answer: AuditVerification = client.get("/api/workflow-audit/verify", &[])?;
    if arguments.json {
        output.json(&answer)?;
    } else {
        people(&answer, output)?;
    }
    Ok(if answer.valid {
        Answer::Yes
    } else {
        Answer::No
    })
}

fn people(answer: &AuditVerification, output: &mut Output) -> Result<(), Fault> {
    let through = answer.checked_through_sequence;
    let Some(broken) = answer.first_broken_sequence else {
        return output.line(format!("the audit chain is whole: {through} entries"));
    };
    let how = match answer.reason {
        Some(Break::Link) => "it does not follow the entry before it",
        Some(Break::Content) => "its content was changed",
        Some(Break::Head) => "the chain does not end where its head says",
        Some(Break::Events) => "the events of a run are not those that were recorded",
        None => "it does not fit",
    };
    output.line(format!(
        "the audit chain is broken at entry {broken}: {how}"
    ))?;
    for (what, hash) in [
        ("expected", &answer.expected_previous_hash),
        ("found", &answer.actual_previous_hash),
    ] {
        if let Some(hash) = hash {
            output.line(format!("{what} {hash}"))?;
        }
    }
    output.line(format!("entries up to {through} are whole"))
}
