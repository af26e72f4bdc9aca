//! `repair`: what events project, compared with the rows that stand there and built anew (server.md
//! §2; run-machine.md A9). On a data folder while no server holds it; on a shared database at any time,
//! because a run that moves on in between is looked at again.

use std::fmt::Display;

use serde::Serialize;

use super::fault::Fault;
use super::output::{MOST_LISTED, Output, beyond, message, name, plain};
use super::{Answer, Repair};
use crate::clock::Clock;
use crate::config::Storage;
use crate::engine::repair::{self, Finding, Looked, Wrong};
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::{Folder, SqliteStore};
use crate::store::{Difference, RowIs, Store, StoreError};

pub(super) fn repair(arguments: &Repair, output: &mut Output) -> Result<Answer, Fault> {
    let storage = Storage::resolve(&arguments.storage, &super::serve::environment)
        .map_err(|error| Fault::new(message(&error.to_string())))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::new(error.to_string()))?;
    runtime.block_on(carry_out(&storage, arguments, output))
}

async fn carry_out(
    storage: &Storage,
    arguments: &Repair,
    output: &mut Output,
) -> Result<Answer, Fault> {
    let fault = |place: &dyn Display, error: &dyn Display| {
        Fault::new(message(&format!("{place}: {error}")))
    };
    if let Some(address) = &storage.database {
        let open = async { PostgresStore::open(address, address.clock().await?).await };
        let store = open.await.map_err(|error| fault(address, &error))?;
        return go_through(&store, arguments, output).await;
    }
    if !storage.data.is_dir() {
        let folder = storage.data.display();
        return Err(Fault::new(format!("--data: there is no folder {folder}")));
    }
    let folder = Folder::hold(&storage.data).map_err(|held| fault(&"--data", &held))?;
    let file = folder.database();
    if !file.exists() {
        return Err(fault(&file.display(), &"there is no such file"));
    }
    let store = SqliteStore::open(&file, Clock::start())
        .await
        .map_err(|error| fault(&file.display(), &error))?;
    go_through(&store, arguments, output).await
}

async fn go_through(
    store: &dyn Store,
    arguments: &Repair,
    output: &mut Output,
) -> Result<Answer, Fault> {
    let mut told = 0;
    let looked = repair::Repair::new(store, arguments.apply)
        .run(|finding| {
            told += 1;
            match arguments.json {
                true => output.json(finding),
                false if told > MOST_LISTED => Ok(()),
                false => people(finding, output),
            }
        })
        .await?;
    if arguments.json {
        #[derive(Serialize)]
        struct Summary {
            looked: Looked,
        }
        output.json(&Summary { looked })?;
    } else {
        if let Some(more) = beyond(told) {
            output.line(more)?;
        }
        output.line(summary(looked, arguments.apply))?;
    }
    Ok(match looked.wrong == looked.repaired {
        true => Answer::Yes,
        false => Answer::No,
    })
}

fn summary(looked: Looked, apply: bool) -> String {
    let Looked {
        runs,
        wrong,
        repaired,
    } = looked;
    match (wrong, apply) {
        (0, _) => format!("{runs} runs are as their events say"),
        (_, false) => format!("{wrong} of {runs} runs are not as their events say; see --apply"),
        (_, true) => format!("{repaired} of {wrong} runs repaired, {runs} looked at"),
    }
}

fn people(finding: &Finding, output: &mut Output) -> Result<(), Fault> {
    let run = format!("run {}", name(finding.run_id.as_str()));
    let done = if finding.repaired { " (repaired)" } else { "" };
    match &finding.wrong {
        Wrong::Invocation { detail } => {
            output.line(plain(&format!("{run} cannot be read: {}", message(detail))))
        }
        Wrong::Log {
            code,
            sequence,
            detail,
        } => output.line(plain(&format!(
            "{run} cannot be folded at event {sequence}: {} ({code})",
            message(detail)
        ))),
        Wrong::Rows {
            differences,
            parked,
        } => {
            if *parked {
                output.line(plain(&format!(
                    "{run} is parked, and its log is whole{done}"
                )))?;
            }
            for difference in differences {
                output.line(plain(&format!("{run}: {}{done}", told(difference))))?;
            }
            Ok(())
        }
    }
}

fn told(difference: &Difference) -> String {
    let Difference {
        table,
        row,
        is,
        columns,
    } = difference;
    let row = name(row);
    match is {
        RowIs::Missing => format!("{table} {row} is missing"),
        RowIs::Extra => format!("{table} {row} is nothing that an event says"),
        RowIs::Different => format!("{table} {row} differs in {}", columns.join(", ")),
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::new(message(&error.to_string()))
    }
}
