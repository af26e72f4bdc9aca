//! The binary `sluicegate` (server.md §§1–2).

use std::process::ExitCode;

fn main() -> ExitCode {
    sluicegate_server::cli::main(std::env::args_os())
}
