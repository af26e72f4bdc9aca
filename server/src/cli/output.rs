//! Standard output for people and for programs (server.md §2).

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use serde::Serialize;
use sluicegate_core::validate::{Issue, Location, Severity};
use sluicegate_core::value;

use super::fault::Fault;

/// Standard output. A reader that goes away is no fault: the rest is dropped quietly and
/// the exit code still tells the answer.
pub(super) struct Output {
    out: BufWriter<Stdout>,
    closed: bool,
    colours: bool,
}

impl Output {
    pub(super) fn standard() -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            out: BufWriter::new(io::stdout()),
            closed: false,
            colours: !no_color && io::stdout().is_terminal(),
        }
    }

    /// Whether colours are wanted.
    pub(super) fn colours(&self) -> bool {
        self.colours
    }

    /// Writes one line for people.
    pub(super) fn line(&mut self, text: impl AsRef<str>) -> Result<(), Fault> {
        if self.closed {
            return Ok(());
        }
        let written = self.out.write_all(text.as_ref().as_bytes());
        let written = written.and_then(|()| self.out.write_all(b"\n"));
        self.outcome(written)
    }

    /// Writes one line of canonical JSON for programs.
    pub(super) fn json<T: Serialize>(&mut self, thing: &T) -> Result<(), Fault> {
        let value = value::to_value(thing).map_err(|error| Fault::new(error.to_string()))?;
        self.line(value::canonical(&value))
    }

    /// Writes issues for people, one a line, and how many there are.
    pub(super) fn issues(&mut self, issues: &[Issue]) -> Result<(), Fault> {
        for issue in issues {
            let word = self.severity(issue.severity);
            self.line(format!("{word} {}", told(issue)))?;
        }
        let errors = issues.iter().filter(|issue| issue.is_error()).count();
        let warnings = issues.len() - errors;
        self.line(match (errors, warnings) {
            (0, 0) => "no issues".to_owned(),
            (errors, 0) => counted(errors, "error"),
            (0, warnings) => counted(warnings, "warning"),
            (errors, warnings) => {
                format!(
                    "{}, {}",
                    counted(errors, "error"),
                    counted(warnings, "warning")
                )
            }
        })
    }

    /// Writes the issues that keep a command from its work to standard error.
    pub(super) fn refuse(issues: &[Issue]) {
        for issue in issues.iter().filter(|issue| issue.is_error()) {
            Self::fault(&format!("error {}", told(issue)));
        }
    }

    /// Writes one line to standard error. Whoever closed it does not want it.
    pub(super) fn fault(line: &str) {
        let _ = writeln!(io::stderr(), "sluicegate: {line}");
    }

    /// Writes what is still held back.
    pub(super) fn flush(&mut self) -> Result<(), Fault> {
        if self.closed {
            return Ok(());
        }
        let written = self.out.flush();
        self.outcome(written)
    }

    fn outcome(&mut self, written: io::Result<()>) -> Result<(), Fault> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(error) => Err(Fault::new(format!("standard output: {error}"))),
            Ok(()) => Ok(()),
        }
    }

    fn severity(&self, severity: Severity) -> &'static str {
        match (severity, self.colours) {
            (Severity::Error, true) => "\u{1b}[31merror\u{1b}[0m",
            (Severity::Error, false) => "error",
            (Severity::Warning, true) => "\u{1b}[33mwarning\u{1b}[0m",
            (Severity::Warning, false) => "warning",
        }
    }
}

/// A text of a document on one line, without anything that steers a terminal.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn told(issue: &Issue) -> String {
    let place = place(&issue.location);
    format!("{} {place}: {}", issue.code, plain(&issue.message))
}

fn counted(count: usize, word: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {word}{plural}")
}

/// Where an issue stands, in words.
fn place(location: &Location) -> String {
    let (what, path) = match location {
        Location::Graph { path } => ("the graph".to_owned(), path.as_deref()),
        Location::Input { path } => ("the input".to_owned(), Some(path.as_str())),
        Location::Node { node_id, path } => (format!("node {node_id}"), path.as_deref()),
        Location::Edge { edge_id, path } => (format!("edge {edge_id}"), path.as_deref()),
    };
    match path.filter(|path| !path.is_empty()) {
        Some(path) => plain(&format!("in {what} at {path}")),
        None => plain(&format!("in {what}")),
    }
}
