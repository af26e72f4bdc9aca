//! The command line (server.md §2): arguments, exit codes and nothing that decides.
//!
//! Exit 0: yes. 1: the answer is no (issues, a run that did not succeed). 2: no answer
//! (usage, unreadable, not JSON, unreachable).

mod audit;
mod check;
mod client;
mod fault;
mod input;
mod output;
mod payload_keys;
mod repair;
mod run;
mod serve;
mod simulate;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use fault::Fault;
use output::Output;
pub(crate) use output::steers;

/// A visual builder and durable engine for workflows of agents, decisions and actions.
#[derive(Debug, Parser)]
#[command(
    name = "sluicegate",
    bin_name = "sluicegate",
    version,
    arg_required_else_help = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Judge a graph and list what is wrong with it
    Check(Check),
    /// Judge a graph with a sample input and show what would run
    DryRun(DryRun),
    /// Run a graph on fixtures: no agent, no action, no clock
    Simulate(Simulate),
    /// Start the server
    Serve(crate::config::Arguments),
    /// Start a published workflow on a server
    Run(Run),
    /// Check a server's audit chain
    #[command(subcommand)]
    Audit(Audit),
    /// Compare what is stored of runs with their events; on a data folder while no server runs
    Repair(Repair),
    /// The keys that payloads are encrypted with
    #[command(subcommand)]
    PayloadKeys(PayloadKeys),
    /// Print the server's settings in force
    Config(crate::config::Arguments),
}

/// What the commands on a graph share.
#[derive(Debug, Args)]
struct Subject {
    /// The graph document; - reads standard input
    graph: PathBuf,
    /// Agents, actions and permissions to judge by: {agents, actions, permissions?}
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Check {
    #[command(flatten)]
    subject: Subject,
    /// Print one JSON object for programs
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct DryRun {
    #[command(flatten)]
    subject: Subject,
    /// A sample input; - reads standard input
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Print one JSON object for programs
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Simulate {
    #[command(flatten)]
    subject: Subject,
    /// The input; - reads standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// What stands for agents and actions; - reads standard input
    #[arg(long, value_name = "FILE")]
    fixtures: PathBuf,
    /// Print the whole result as one JSON object
    #[arg(long, conflicts_with = "events")]
    json: bool,
    /// Print one canonical JSON event a line
    #[arg(long)]
    events: bool,
}

#[derive(Debug, Args)]
struct Run {
    /// The workflow's key
    key: String,
    /// The input; - reads standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Wait until the run has ended
    #[arg(long)]
    wait: bool,
    /// The same key means the same run; a random one is made and printed otherwise
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Print one JSON object for programs
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: crate::config::RemoteArguments,
}

#[derive(Debug, Subcommand)]
enum Audit {
    /// Check every entry and every event from the first; exit 1 where something was changed
    Verify(Verify),
}

#[derive(Debug, Args)]
struct Verify {
    /// Print one JSON object for programs
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    remote: crate::config::RemoteArguments,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["check", "apply"])))]
struct Repair {
    /// List what differs and change nothing
    #[arg(long)]
    check: bool,
    /// Build anew what differs; a run whose events cannot be folded is parked
    #[arg(long)]
    apply: bool,
    /// Print one JSON object a line for programs
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage: crate::config::StorageArguments,
}

#[derive(Debug, Subcommand)]
enum PayloadKeys {
    /// Add a new key, which a server writes with from its next start; what older keys encrypted
    /// stays readable
    Rotate(Rotate),
}

#[derive(Debug, Args)]
struct Rotate {
    #[command(flatten)]
    storage: crate::config::StorageArguments,
}

/// The answer of a command that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
}

/// Runs the command that the arguments name and gives its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Nobody may be reading; the exit code still tells.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let mut output = Output::standard();
    let answer = carry_out(arguments.command, &mut output).and_then(|answer| {
        output.flush()?;
        Ok(answer)
    });
    match answer {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Err(fault) => {
            fault.print();
            ExitCode::from(2)
        }
    }
}

fn carry_out(command: Command, output: &mut Output) -> Result<Answer, Fault> {
    match command {
        Command::Check(arguments) => check::check(&arguments, output),
        Command::DryRun(arguments) => check::dry_run(&arguments, output),
        Command::Simulate(arguments) => simulate::simulate(&arguments, output),
        Command::Serve(arguments) => serve::serve(&arguments, output),
        Command::Run(arguments) => run::run(&arguments, output),
        Command::Audit(Audit::Verify(arguments)) => audit::verify(&arguments, output),
        Command::Repair(arguments) => repair::repair(&arguments, output),
        Command::PayloadKeys(PayloadKeys::Rotate(arguments)) => {
            payload_keys::rotate(&arguments, output)
        }
        Command::Config(arguments) => serve::config(&arguments, output),
    }
}
