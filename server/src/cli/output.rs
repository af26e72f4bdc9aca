//! Standard output for people and for programs (server.md §2).

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use serde::Serialize;
use sluicegate_core::validate::{Issue, Location, Severity};
use sluicegate_core::value;

use super::fault::Fault;

/// How many entries of a list people are shown.
pub(super) const MOST_LISTED: usize = 100;
/// How many characters of a name or a pointer people are shown.
const LONGEST_NAME: usize = 80;
/// How many characters of a message people are shown.
const LONGEST_MESSAGE: usize = 400;

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
        let value = value::to_answer(thing).map_err(|error| Fault::new(error.to_string()))?;
        self.line(value::canonical(&value))
    }

    /// Writes issues for people, one a line, and how many there are. `files` names what was
    /// judged where several files were given.
    pub(super) fn issues(&mut self, issues: &[Issue], files: Option<&Files>) -> Result<(), Fault> {
        for issue in issues.iter().take(MOST_LISTED) {
            let file = files.map(|files| files.of(issue)).unwrap_or_default();
            let word = self.severity(issue.severity);
            self.line(format!("{file}{word} {}", told(issue)))?;
        }
        if let Some(more) = beyond(issues.len()) {
            self.line(more)?;
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
    pub(super) fn refuse(issues: &[Issue], files: &Files) {
        let errors = issues.iter().filter(|issue| issue.is_error());
        Self::faults(errors.map(|issue| format!("{}error {}", files.of(issue), told(issue))));
    }

    /// Writes a list to standard error, one a line.
    pub(super) fn faults(mut lines: impl Iterator<Item = String>) {
        for line in lines.by_ref().take(MOST_LISTED) {
            Self::fault(&line);
        }
        if let Some(more) = beyond(MOST_LISTED + lines.count()) {
            Self::fault(&more);
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
            Err(error) => Err(Fault::new(format!(
                "standard output: {}",
                crate::config::os_reason(&error)
            ))),
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

/// What the files of a command line are called in messages.
pub(super) struct Files {
    pub(super) graph: String,
    pub(super) input: String,
}

impl Files {
    /// The file in which an issue is, as the beginning of a line.
    fn of(&self, issue: &Issue) -> String {
        plain(&match issue.location {
            Location::Input { .. } => format!("{}: ", self.input),
            _ => format!("{}: ", self.graph),
        })
    }
}

/// A text of a document on one line, with what steers a terminal or hides in it shown as
/// `\u{…}`.
pub(super) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Whether a character moves the cursor, turns the direction of writing or is not seen.
pub(crate) fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
        )
}

/// A name, a pointer or a label, cut to what a person reads.
pub(super) fn name(text: &str) -> String {
    cut(text, LONGEST_NAME)
}

/// A message, with the names that it quotes cut, and cut as a whole.
pub(super) fn message(text: &str) -> String {
    let words: Vec<_> = text.split(' ').map(name).collect();
    cut(&words.join(" "), LONGEST_MESSAGE)
}

/// Leaves the middle out of a text of more characters than `most`.
fn cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    // The end often says what to do.
    let tail = most / 4;
    let head: String = text.chars().take(most - tail - 1).collect();
    let tail: String = text.chars().skip(count - tail).collect();
    format!("{head}…{tail}")
}

/// How many entries of a list were left out, if any.
pub(super) fn beyond(count: usize) -> Option<String> {
    let more = count.checked_sub(MOST_LISTED).filter(|more| *more > 0)?;
    Some(format!("and {more} more"))
}

fn told(issue: &Issue) -> String {
    let place = place(&issue.location);
    format!(
        "{} {place}: {}",
        issue.code,
        plain(&message(&issue.message))
    )
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
        Location::Node { node_id, path } => {
            (format!("node {}", name(node_id.as_str())), path.as_deref())
        }
        Location::Edge { edge_id, path } => {
            (format!("edge {}", name(edge_id.as_str())), path.as_deref())
        }
    };
    match path.filter(|path| !path.is_empty()) {
        Some(path) => plain(&format!("in {what} at {}", name(path))),
        None => plain(&format!("in {what}")),
    }
}
