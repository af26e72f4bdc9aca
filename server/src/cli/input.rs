//! Reading documents from files and standard input (server.md §2; wire-format.md J1, J4).

use std::io::Read;
use std::path::{Path, PathBuf};

use sluicegate_core::catalogue::Catalogue;
use sluicegate_core::graph::Graph;
use sluicegate_core::value::{self, Value};

use super::fault::Fault;

/// Far more than the limits of any document, white space included.
const LONGEST: u64 = 16 * 1_024 * 1_024;

/// A document and what to call it in messages.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) name: String,
    pub(super) value: Value,
}

/// Refuses a command line that would read standard input for two things.
pub(super) fn one_from_standard_input(paths: &[Option<&PathBuf>]) -> Result<(), Fault> {
    let dashes = paths.iter().flatten().filter(|path| is_dash(path)).count();
    if dashes > 1 {
        return Err(Fault::new(
            "only one of the files can be -, because standard input is read once",
        ));
    }
    Ok(())
}

/// Reads one JSON document.
pub(super) fn read(path: &Path) -> Result<Document, Fault> {
    let name = name(path);
    let bytes = if is_dash(path) {
        bytes(std::io::stdin().lock())
    } else {
        std::fs::File::open(path).and_then(bytes)
    };
    let bytes = bytes.map_err(|error| Fault::new(format!("{name}: {}", reason(path, &error))))?;
    if bytes.len() as u64 > LONGEST {
        let detail = format!("{name}: this is longer than {LONGEST} bytes; no document is");
        return Err(Fault::new(detail));
    }
    match value::read_bytes(&bytes) {
        Ok(value) => Ok(Document { name, value }),
        Err(error) => Err(Fault::refused(&name, &error)),
    }
}

/// What a file is called in messages.
pub(super) fn name(path: &Path) -> String {
    if is_dash(path) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

/// Reads to the end, or to one byte beyond the longest: some files never end.
fn bytes(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LONGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a graph document (G8).
pub(super) fn graph(path: &Path) -> Result<Graph, Fault> {
    let document = read(path)?;
    Graph::read(&document.value).map_err(|error| Fault::refused(&document.name, &error))
}

/// Reads a catalogue (wire-format.md §11).
pub(super) fn catalogue(path: &Path) -> Result<Catalogue, Fault> {
    let document = read(path)?;
    Catalogue::read(&document.value).map_err(|error| Fault::refused(&document.name, &error))
}

fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn reason(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => "this file may not be read".to_owned(),
        _ if path.is_dir() => "this is a folder; a file is needed".to_owned(),
        _ => crate::config::os_reason(error),
    }
}
