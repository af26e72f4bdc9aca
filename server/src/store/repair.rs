//! What events project, against the rows that stand there (run-machine.md §1 `project`; seed A
//! "Persistence outline"): compared column by column, the same on both databases.

use std::collections::BTreeMap;

use serde::Serialize;
use sluicegate_core::evidence::Evidence;
use sluicegate_core::ids::{NodeId, RunId, TenantId};
use sluicegate_core::node_type::NodeType;
use sluicegate_core::run::{Mode, Rows};

use super::StoreError;
use super::flat::{projected, projected_rows, word};
use super::table::{Cell, Kind, PROJECTED, RUNS, TABLES, Table};

/// A run as its log projects it, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebuilt {
    /// The last event that was folded.
    pub sequence: u64,
    /// All its rows.
    pub rows: Rows,
    /// The types of the nodes whose attempts these are.
    pub node_types: BTreeMap<NodeId, NodeType>,
    /// What readers may know of each payload, as it stands after retention.
    pub evidence: Vec<Evidence>,
}

/// A row that is not what the log projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The table.
    pub table: &'static str,
    /// The row within the run; empty for the run's own.
    pub row: String,
    /// How.
    pub is: RowIs,
    /// The columns that differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<&'static str>,
}

/// How a row differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RowIs {
    /// It is not there.
    Missing,
    /// Nothing projects it.
    Extra,
    /// It says something else.
    Different,
}

/// The rows of one table as they ought to be.
pub(super) struct Wanted {
    pub(super) table: &'static str,
    pub(super) columns: Vec<(&'static str, Kind)>,
    /// How many of the columns name the row.
    key: usize,
    rows: Vec<Vec<Cell>>,
}

/// Where nodes, attempts and edges stand in [`TABLES`], and how many columns name a row.
pub(super) const PROJECTIONS: [(usize, usize); 3] = [(2, 1), (3, 2), (4, 1)];
/// The columns that every row of a run begins with.
const OF_RUN: usize = 2;

impl Rebuilt {
    /// What stands in the tables when nothing was damaged; the run's own row comes first,
    /// evidence last.
    pub(super) fn wanted(
        &self,
        tenant: &TenantId,
        run_id: &RunId,
    ) -> Result<Vec<Wanted>, StoreError> {
        let mut all = vec![self.own_row()?];
        let rows = projected_rows(tenant, run_id, &self.rows, &self.node_types)?;
        for ((place, key), cells) in PROJECTIONS.into_iter().zip(rows) {
            let Some(Table { name, columns, .. }) = TABLES.get(place) else {
                continue;
            };
            let rows = cells.chunks(columns.len());
            all.push(Wanted {
                table: name,
                columns: columns.iter().skip(OF_RUN).copied().collect(),
                key,
                rows: rows
                    .map(|row| row.iter().skip(OF_RUN).cloned().collect())
                    .collect(),
            });
        }
        all.push(self.evidence_rows()?);
        Ok(all)
    }

    /// Whether a claim may find the run, and what events project of it.
    pub(super) fn own_cells(&self) -> Result<Vec<Cell>, StoreError> {
        let row = self.rows.run.as_ref();
        let row = row.ok_or_else(|| StoreError::Corrupt("a run without its row".to_owned()))?;
        let open = row.mode == Mode::Live && !row.status.is_terminal();
        let mut cells = vec![Cell::Int(open.into())];
        cells.extend(projected(row)?);
        Ok(cells)
    }

    /// When a claim may find it at the latest, once nobody holds it.
    pub(super) fn wake_at(&self) -> i64 {
        let wake_at = self.rows.run.as_ref().and_then(|row| row.wake_at);
        wake_at.map_or(0, |at| super::column::int(at.0))
    }

    fn own_row(&self) -> Result<Wanted, StoreError> {
        let mut cells = self.own_cells()?;
        // The one version of rollups that there is, and whether a claim would come too late.
        cells.extend([Cell::Int(1), Cell::Int(0)]);
        let mut columns: Vec<_> = RUNS.columns.iter().skip(PROJECTED - 1).copied().collect();
        columns.extend([("rollup_version", Kind::Int), ("claim_at", Kind::Int)]);
        Ok(Wanted {
            table: RUNS.name,
            columns,
            key: 0,
            rows: vec![cells],
        })
    }

    fn evidence_rows(&self) -> Result<Wanted, StoreError> {
        let mut rows = Vec::with_capacity(self.evidence.len());
        for evidence in &self.evidence {
            rows.push(evidence_cells(evidence)?.to_vec());
        }
        Ok(Wanted {
            table: "workflow_payloads",
            columns: EVIDENCE.to_vec(),
            key: 1,
            rows,
        })
    }
}

/// What of an evidence row follows from the log; the last says whether a preview is shown that
/// retention has removed.
pub(super) const EVIDENCE: [(&str, Kind); 7] = [
    ("payload_id", Kind::Text),
    ("schema_id", Kind::Text),
    ("hash", Kind::Text),
    ("byte_size", Kind::Int),
    ("state", Kind::Text),
    ("reason", Kind::Text),
    ("preview", Kind::Int),
];

/// The cells of [`EVIDENCE`].
pub(super) fn evidence_cells(evidence: &Evidence) -> Result<[Cell; 7], StoreError> {
    let text = |text: Option<String>| text.map_or(Cell::Null, |text| Cell::Text(text.into()));
    Ok([
        text(evidence.payload_id.as_ref().map(ToString::to_string)),
        text(Some(evidence.schema_id.to_string())),
        text(evidence.hash.map(|hash| hash.to_string())),
        Cell::Int(super::column::int(evidence.original_byte_size)),
        word(&evidence.state)?,
        evidence.reason.as_ref().map_or(Ok(Cell::Null), word)?,
        Cell::Int(0),
    ])
}

/// The ids of payloads that have evidence.
pub(super) fn payload_ids(evidence: &[Evidence]) -> Vec<String> {
    let ids = evidence.iter().filter_map(|one| one.payload_id.as_ref());
    ids.map(ToString::to_string).collect()
}

impl Wanted {
    /// Compares rows that stand there, their cells in the order of `columns`.
    pub(super) fn compare(self, stored: Vec<Vec<Cell>>, into: &mut Vec<Difference>) {
        let key = |row: &[Cell]| -> String {
            let parts = row.iter().take(self.key).map(shown);
            parts.collect::<Vec<_>>().join("/")
        };
        let mut stored: BTreeMap<String, Vec<Cell>> =
            stored.into_iter().map(|row| (key(&row), row)).collect();
        let mut found = |row: String, is: RowIs, columns: Vec<&'static str>| {
            into.push(Difference {
                table: self.table,
                row,
                is,
                columns,
            });
        };
        for wanted in &self.rows {
            let key = key(wanted);
            let Some(stored) = stored.remove(&key) else {
                found(key, RowIs::Missing, Vec::new());
                continue;
            };
            let pairs = self.columns.iter().zip(wanted.iter().zip(&stored));
            let differ = pairs.filter(|(_, (wanted, stored))| wanted != stored);
            let differ: Vec<_> = differ.map(|((name, _), _)| *name).collect();
            if !differ.is_empty() {
                found(key, RowIs::Different, differ);
            }
        }
        for key in stored.into_keys() {
            found(key, RowIs::Extra, Vec::new());
        }
    }
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Int(number) => number.to_string(),
        Cell::Text(text) => text.to_string(),
        Cell::Bytes(_) => "bytes".to_owned(),
    }
}
