//! What a finished database holds, taken apart into the transitions that wrote it: each with
//! the rows that it touched, read from the tables themselves.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// A column's value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Cell {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            _ => 0,
        }
    }
}

/// A table as the bare writer knows it.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The key by which a row is found; the rest of a row that is there is replaced.
    pub(crate) key: &'static [&'static str],
    /// Whether a row is written again later.
    pub(crate) again: bool,
}

/// In the order of writing; `workflow_runs` first.
pub(crate) const TABLES: [Table; 9] = [
    Table {
        name: "workflow_runs",
        key: &["tenant_id", "run_id"],
        again: true,
    },
    Table {
        name: "child_runs",
        key: &["tenant_id", "child_id"],
        again: false,
    },
    Table {
        name: "child_attempts",
        key: &["tenant_id", "child_id", "attempt"],
        again: true,
    },
    Table {
        name: "workflow_run_events",
        key: &["tenant_id", "run_id", "sequence"],
        again: false,
    },
    Table {
        name: "workflow_node_states",
        key: &["tenant_id", "run_id", "node_id"],
        again: true,
    },
    Table {
        name: "workflow_node_attempts",
        key: &["tenant_id", "run_id", "node_id", "attempt"],
        again: true,
    },
    Table {
        name: "workflow_edge_transfers",
        key: &["tenant_id", "run_id", "edge_id"],
        again: false,
    },
    Table {
        name: "workflow_payloads",
        key: &["tenant_id", "run_id", "payload_id", "kind"],
        again: false,
    },
    Table {
        name: "workflow_audit_events",
        key: &["tenant_id", "sequence"],
        again: false,
    },
];

const RUNS: usize = 0;
const CHILD_RUNS: usize = 1;
const CHILD_ATTEMPTS: usize = 2;
const EVENTS: usize = 3;
const STATES: usize = 4;
const ATTEMPTS: usize = 5;
const EDGES: usize = 6;
const PAYLOADS: usize = 7;
const AUDIT: usize = 8;

/// A whole table: its columns and its rows.
pub(crate) struct Rows {
    pub(crate) columns: Vec<String>,
    /// The types of the columns; on PostgreSQL alone.
    pub(crate) kinds: Vec<String>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Rows {
    fn at(&self, name: &str) -> usize {
        self.columns
            .iter()
            .position(|column| column == name)
            .unwrap()
    }
}

/// Rows by table, as one transition writes them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transition {
    pub(crate) rows: [Vec<Vec<Cell>>; 9],
}

impl Transition {
    pub(crate) fn count(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        let of = |cell: &Cell| match cell {
            Cell::Null => 0,
            Cell::Int(_) => 8,
            Cell::Text(text) => text.len(),
            Cell::Bytes(bytes) => bytes.len(),
        };
        self.rows.iter().flatten().flatten().map(of).sum()
    }
}

/// The transitions of every run, run by run, each in its order; the enqueue is the first.
pub(crate) fn transitions(tables: &[Rows; 9]) -> Vec<Vec<Transition>> {
    let index = |table: usize, names: &[&str]| {
        let places: Vec<_> = names.iter().map(|name| tables[table].at(name)).collect();
        let mut found: HashMap<Vec<String>, Vec<&Vec<Cell>>> = HashMap::new();
        for row in &tables[table].rows {
            let key = places.iter().map(|at| word(&row[*at])).collect();
            found.entry(key).or_default().push(row);
        }
        found
    };
    let runs = index(RUNS, &["run_id"]);
    let events = index(EVENTS, &["run_id", "sequence"]);
    let states = index(STATES, &["run_id", "node_id"]);
    let attempts = index(ATTEMPTS, &["run_id", "node_id", "attempt"]);
    let edges = index(EDGES, &["run_id", "edge_id"]);
    let payloads = index(PAYLOADS, &["run_id", "payload_id"]);
    let child_runs = index(CHILD_RUNS, &["run_id", "node_id"]);
    let child_by_id = index(CHILD_RUNS, &["child_id"]);
    let child_attempts = index(CHILD_ATTEMPTS, &["child_id"]);
    let (kind, payload) = (
        tables[EVENTS].at("event_type"),
        tables[EVENTS].at("payload"),
    );
    let child_id = tables[CHILD_RUNS].at("child_id");
    let entry = tables[AUDIT].at("entry");
    let mut of_runs: BTreeMap<String, (Vec<Transition>, BTreeSet<String>)> = BTreeMap::new();
    for audit in &tables[AUDIT].rows {
        let said: Value = serde_json::from_str(audit[entry].text()).unwrap();
        if said["subject"]["kind"] != "run" {
            continue;
        }
        let run = said["subject"]["id"].as_str().unwrap().to_owned();
        let (done, seen) = of_runs.entry(run.clone()).or_default();
        let mut one = Transition::default();
        one.rows[RUNS].extend(runs[&vec![run.clone()]].iter().map(|row| (*row).clone()));
        one.rows[AUDIT].push(audit.clone());
        let metadata = &said["metadata"];
        let range = metadata["firstSequence"].as_u64().unwrap()
            ..=metadata["lastSequence"].as_u64().unwrap();
        let (mut nodes, mut tries, mut of_children) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for sequence in range {
            let event = events[&vec![run.clone(), sequence.to_string()]][0];
            one.rows[EVENTS].push(event.clone());
            let name = event[kind].text();
            let said: Value = serde_json::from_str(event[payload].text()).unwrap();
            if let Some(node) = said["nodeId"]
                .as_str()
                .filter(|_| name.starts_with("node."))
            {
                nodes.insert(node.to_owned());
                if let Some(attempt) = said["attempt"].as_u64() {
                    tries.insert((node.to_owned(), attempt.to_string()));
                }
            }
            if let Some(edge) = said["edgeId"].as_str() {
                let row = edges[&vec![run.clone(), edge.to_owned()]][0];
                one.rows[EDGES].push(row.clone());
            }
            if name == "node.attempt.started" || name == "node.attempt.settled" {
                let key = vec![run.clone(), said["nodeId"].as_str().unwrap().to_owned()];
                of_children.extend(child_runs.get(&key).into_iter().flatten().map(|row| {
                    (
                        name == "node.attempt.started",
                        row[child_id].text().to_owned(),
                    )
                }));
            }
            let mut named = Vec::new();
            payload_ids(&said, &mut named);
            if name == "run.succeeded" {
                named.push("result".to_owned());
            }
            for id in named {
                if seen.insert(id.clone())
                    && let Some(rows) = payloads.get(&vec![run.clone(), id])
                {
                    one.rows[PAYLOADS].extend(rows.iter().map(|row| (*row).clone()));
                }
            }
        }
        for node in nodes {
            let row = states[&vec![run.clone(), node]][0];
            one.rows[STATES].push(row.clone());
        }
        for (node, attempt) in tries {
            let row = attempts[&vec![run.clone(), node, attempt]][0];
            one.rows[ATTEMPTS].push(row.clone());
        }
        for (starts, child) in of_children {
            if starts {
                let row = child_by_id[&vec![child.clone()]][0];
                one.rows[CHILD_RUNS].push(row.clone());
            }
            let row = child_attempts[&vec![child]][0];
            one.rows[CHILD_ATTEMPTS].push(row.clone());
        }
        done.push(one);
    }
    of_runs.into_values().map(|(done, _)| done).collect()
}

fn word(cell: &Cell) -> String {
    match cell {
        Cell::Int(number) => number.to_string(),
        other => other.text().to_owned(),
    }
}

fn payload_ids(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(id) if name == "payloadId" => into.push(id.clone()),
                    other => payload_ids(other, into),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| payload_ids(item, into)),
        _ => {}
    }
}

/// The transitions of runs that go on `flight` at a time, gathered `size` to a transaction.
pub(crate) fn gathered(
    runs: Vec<Vec<Transition>>,
    flight: usize,
    size: usize,
) -> Vec<Vec<Transition>> {
    let mut waiting = runs.into_iter().map(|run| run.into_iter());
    let mut going: Vec<_> = waiting.by_ref().take(flight).collect();
    let (mut batches, mut batch) = (Vec::new(), Vec::new());
    while !going.is_empty() {
        going.retain_mut(|run| match run.next() {
            Some(transition) => {
                batch.push(transition);
                if batch.len() == size {
                    batches.push(std::mem::take(&mut batch));
                }
                true
            }
            None => false,
        });
        while going.len() < flight
            && let Some(next) = waiting.next()
        {
            going.push(next);
        }
    }
    if !batch.is_empty() {
        batches.push(batch);
    }
    batches
}

/// The sequence and hash that a batch leaves as the head of its chain.
pub(crate) fn heads(columns: &[String], batch: &[Transition]) -> BTreeMap<String, (i64, String)> {
    let at = |name: &str| columns.iter().position(|column| column == name).unwrap();
    let (tenant, sequence, entry) = (at("tenant_id"), at("sequence"), at("entry"));
    let mut heads = BTreeMap::new();
    for row in batch.iter().flat_map(|one| &one.rows[AUDIT]) {
        let said: Value = serde_json::from_str(row[entry].text()).unwrap();
        let hash = said["eventHash"].as_str().unwrap().to_owned();
        heads.insert(row[tenant].text().to_owned(), (row[sequence].int(), hash));
    }
    heads
}
