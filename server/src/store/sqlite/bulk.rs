//! Many decisions in one transaction (architecture.md "Rules"; run-machine.md W1, W2): a few
//! statements of many rows. Guards are looked at first by conditional updates; who does not
//! stand is dropped before any row of it is written. What else goes wrong takes the whole
//! batch back, and each decision is tried alone.
//!
//! Statements are `or fail`: what a failed one has done is taken back with the batch, so that
//! SQLite need not keep every page for the statement's own undoing.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use sluicegate_core::audit::Head;
use sluicegate_core::ids::TenantId;
use sluicegate_core::time::Instant;

use super::{Columns, child, fault, run};
use crate::store::column::int;
use crate::store::flat::{Begins, Transition};
use crate::store::stood::Stood;
use crate::store::table::{AUDIT, Cell, HEADS, PROJECTED, RUNS, TABLES, Table};
use crate::store::{Committed, Guard, RunReference, StoreError};

/// The most rows of one statement; fewer go in statements of half, a quarter … as many, so
/// that there are few texts to prepare.
const ROWS: usize = 64;

type Verdict = Result<Stood, StoreError>;
type Query = sqlx::query::Query<'static, sqlx::Sqlite, SqliteArguments>;

/// Writes decisions together; verdicts are in their order.
///
/// # Errors
/// One of them cannot be written, nobody knows which; the transaction has to be rolled back,
/// and [`write_alone`] tries each by itself. So no page is kept twice for the usual case.
pub(super) async fn write(
    c: &mut SqliteConnection,
    batch: &[Transition],
    now: Instant,
) -> Result<Vec<Verdict>, StoreError> {
    let mut verdicts: Vec<Option<Verdict>> = vec![None; batch.len()];
    // A run moves once a round, so that no decision looks at a row that another has moved.
    let mut waiting: Vec<usize> = (0..batch.len()).collect();
    while !waiting.is_empty() {
        let mut seen = HashSet::new();
        let mut first_of = |at: &usize| {
            let transition = batch.get(*at);
            transition.is_some_and(|t| seen.insert((&t.tenant, identity(t))))
        };
        let (round, later): (Vec<_>, Vec<_>) = waiting.into_iter().partition(&mut first_of);
        let decisions: Vec<&Transition> = round.iter().filter_map(|at| batch.get(*at)).collect();
        let found = together(&mut *c, &decisions, now).await?;
        for (at, verdict) in round.iter().zip(found) {
            if let Some(place) = verdicts.get_mut(*at) {
                *place = Some(verdict);
            }
        }
        waiting = later;
    }
    Ok(verdicts
        .into_iter()
        .map(|found| found.unwrap_or_else(unreached))
        .collect())
}

/// Writes decisions one by one, each standing or falling by itself.
///
/// # Errors
/// Only when the transaction itself is broken.
pub(super) async fn write_alone(
    c: &mut SqliteConnection,
    batch: &[Transition],
    now: Instant,
) -> Result<Vec<Verdict>, StoreError> {
    let mut verdicts = Vec::with_capacity(batch.len());
    for decision in batch {
        let mut own = c.begin().await.map_err(fault)?;
        match together(&mut own, &[decision], now).await {
            Ok(found) => {
                own.commit().await.map_err(fault)?;
                verdicts.push(found.into_iter().next().unwrap_or_else(unreached));
            }
            Err(error) => {
                own.rollback().await.map_err(fault)?;
                verdicts.push(Err(error));
            }
        }
    }
    Ok(verdicts)
}

fn unreached() -> Verdict {
    Err(StoreError::Database(
        "a decision was not reached".to_owned(),
    ))
}

/// What may be written once a round: a stored run, or the key of a new one.
fn identity(transition: &Transition) -> &str {
    match &transition.begins {
        Begins::New {
            accepted: Some((key, _)),
            ..
        } => key,
        _ => transition.run_id.as_str(),
    }
}

/// Writes decisions of different runs. An error is about one of them, nobody knows which.
async fn together(
    c: &mut SqliteConnection,
    batch: &[&Transition],
    now: Instant,
) -> Result<Vec<Verdict>, StoreError> {
    let moved = move_runs(&mut *c, batch, now).await?;
    let made = insert_runs(&mut *c, batch).await?;
    let stands = |t: &Transition| {
        let place = (t.tenant.as_str(), t.run_id.as_str());
        moved.contains(&place) || made.contains(&place)
    };
    let standing: Vec<&Transition> = batch.iter().copied().filter(|t| stands(t)).collect();
    child::settle_all(&mut *c, &standing, now).await?;
    let started = child::start_all(&mut *c, &standing, now).await?;
    for (place, table) in TABLES.iter().enumerate() {
        let rows = standing.iter().filter_map(|t| t.rows.get(place));
        insert(&mut *c, table, rows.flat_map(|cells| cells.iter())).await?;
    }
    let mut entries = append_all(&mut *c, &standing).await?.into_iter();
    let mut verdicts = Vec::with_capacity(batch.len());
    for transition in batch {
        verdicts.push(if stands(transition) {
            let new = transition
                .children
                .start
                .as_ref()
                .map(|start| start.new_id.as_str());
            Ok(Stood::Written(Committed {
                audit_sequence: entries.next().unwrap_or_default(),
                started: new.is_some_and(|id| started.contains(id)),
            }))
        } else {
            why_not(&mut *c, transition).await
        });
    }
    Ok(verdicts)
}

type Places<'a> = HashSet<(&'a str, &'a str)>;

fn placed<'a>(batch: &[&'a Transition], found: Vec<SqliteRow>) -> Result<Places<'a>, StoreError> {
    let mut names = HashSet::with_capacity(found.len());
    for row in found {
        names.insert((row.text("tenant_id")?, row.text("run_id")?));
    }
    let places = batch.iter().map(|t| (t.tenant.as_str(), t.run_id.as_str()));
    Ok(places
        .filter(|(tenant, run)| names.contains(&((*tenant).to_owned(), (*run).to_owned())))
        .collect())
}

/// Brings stored runs to what their decisions say, where the guards hold.
async fn move_runs<'a>(
    c: &mut SqliteConnection,
    batch: &[&'a Transition],
    now: Instant,
) -> Result<Places<'a>, StoreError> {
    let mut cells = Vec::new();
    for transition in batch {
        let Begins::Stored(guard) = &transition.begins else {
            continue;
        };
        cells.extend(guard_cells(transition, guard, now));
        cells.extend(transition.projected.iter().cloned());
    }
    let width = GUARD.len() + RUNS.columns.len() - PROJECTED;
    let mut found = Vec::new();
    for (rows, cells) in parts(&cells, width) {
        let text = prepared("move", rows, || move_text(rows, width));
        let query = bind(sqlx::query(text), cells.iter());
        found.extend(query.fetch_all(&mut *c).await.map_err(fault)?);
    }
    placed(batch, found)
}

/// What a guard looks at and what it takes or gives back, before the projected columns.
const GUARD: [&str; 12] = [
    "g_tenant",
    "g_run",
    "g_sequence",
    "g_token",
    "g_fence",
    "g_found",
    "g_owner",
    "g_until",
    "g_now",
    "g_ended",
    "g_back",
    "g_wake",
];

fn guard_cells(transition: &Transition, guard: &Guard, now: Instant) -> [Cell; 12] {
    let text = Cell::text;
    let (token, fence, found, owner, until) = match guard {
        Guard::Sequence(_) => (Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null),
        Guard::Owner { token, fence, .. } => (
            text(token),
            Cell::Int(int(*fence)),
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ),
        Guard::Claim {
            worker_id,
            token,
            fence,
            found,
            lease_ms,
            ..
        } => (
            text(token),
            Cell::Int(int(*fence)),
            found.as_deref().map_or(Cell::Null, text),
            text(worker_id.as_str()),
            Cell::Int(int(now.0.saturating_add(*lease_ms))),
        ),
    };
    [
        text(transition.tenant.as_str()),
        text(transition.run_id.as_str()),
        Cell::Int(int(guard.sequence())),
        token,
        fence,
        found,
        owner,
        until,
        Cell::Int(int(now.0)),
        Cell::Int(transition.ended.into()),
        Cell::Int((transition.ended || transition.hand_back).into()),
        Cell::Int(transition.wake_at),
    ]
}

/// A claim takes the lease, an end or a hand-back gives it up, anything else leaves it.
fn move_text(rows: usize, width: usize) -> String {
    let mut text = String::from("with v (");
    text.push_str(&GUARD.join(", "));
    for (name, _) in RUNS.columns.iter().skip(PROJECTED) {
        text.push_str(", v_");
        text.push_str(name);
    }
    text.push_str(") as (values ");
    push_rows(&mut text, rows, width);
    text.push_str(") update or fail workflow_runs set ");
    for (name, _) in RUNS.columns.iter().skip(PROJECTED) {
        text.push_str(&format!("{name} = v_{name}, "));
    }
    text.push_str(
        "open = case when g_ended then 0 else open end,
         lease_owner = case when g_back then null else coalesce(g_owner, lease_owner) end,
         lease_token = case when g_back then null when g_owner is not null then g_token
                            else lease_token end,
         lease_fence = case when g_owner is not null then g_fence else lease_fence end,
         lease_expires_at = case when g_back then null
                                 else coalesce(g_until, lease_expires_at) end,
         lease_void = case when g_back or g_owner is not null then 0 else lease_void end,
         claim_at = case when g_back then g_wake else coalesce(g_until, claim_at) end
         from v
         where tenant_id = g_tenant and run_id = g_run and last_sequence = g_sequence
           and parked_code is null
           and case when g_token is null then 1
                    when g_owner is null then lease_token = g_token and lease_fence = g_fence
                    else open = 1 and lease_fence = g_fence - 1 and lease_token is g_found
                         and claim_at <= g_now end
         returning tenant_id, run_id",
    );
    text
}

/// Makes the rows of new runs, where their keys are new and their revisions still live.
async fn insert_runs<'a>(
    c: &mut SqliteConnection,
    batch: &[&'a Transition],
) -> Result<Places<'a>, StoreError> {
    let mut live: BTreeMap<(&str, &str, u64), bool> = BTreeMap::new();
    let mut cells = Vec::new();
    for transition in batch {
        let Begins::New {
            invocation,
            accepted,
        } = &transition.begins
        else {
            continue;
        };
        if let Some((_, reference)) = accepted {
            let RunReference {
                workflow_id,
                workflow_revision,
                ..
            } = reference;
            let place = (
                transition.tenant.as_str(),
                workflow_id.as_str(),
                *workflow_revision,
            );
            let is_live = match live.get(&place) {
                Some(found) => *found,
                None => run::is_live(&mut *c, &transition.tenant, reference).await?,
            };
            live.insert(place, is_live);
            if !is_live {
                continue;
            }
        }
        cells.extend(invocation.iter().chain(&transition.projected).cloned());
    }
    let width = RUNS.columns.len();
    let mut found = Vec::new();
    for (rows, cells) in parts(&cells, width) {
        let text = prepared(RUNS.name, rows, || {
            let mut text = insert_text(&RUNS, rows);
            text.push_str(
                " on conflict (tenant_id, idempotency_key) do nothing
                 returning tenant_id, run_id",
            );
            text
        });
        let query = bind(sqlx::query(text), cells.iter());
        found.extend(query.fetch_all(&mut *c).await.map_err(fault)?);
    }
    placed(batch, found)
}

/// Why a decision does not stand.
async fn why_not(c: &mut SqliteConnection, transition: &Transition) -> Verdict {
    match &transition.begins {
        Begins::Stored(guard) => Err(run::unmoved(c, transition, guard).await?),
        Begins::New { accepted: None, .. } => {
            Err(StoreError::Corrupt("two runs of one id".to_owned()))
        }
        Begins::New {
            accepted: Some((key, _)),
            ..
        } => match run::accepted(c, &transition.tenant, key).await? {
            Some(first) => Ok(Stood::Existing(first)),
            None => Ok(Stood::Moved),
        },
    }
}

/// Appends the audit entries, tenant by tenant, and gives their sequences in the batch's order.
async fn append_all(
    c: &mut SqliteConnection,
    standing: &[&Transition],
) -> Result<Vec<u64>, StoreError> {
    let tenants: BTreeSet<&TenantId> = standing.iter().map(|t| &t.tenant).collect();
    let mut heads = heads(&mut *c, &tenants).await?;
    let mut cells = Vec::with_capacity(standing.len() * AUDIT.columns.len());
    let mut sequences = Vec::with_capacity(standing.len());
    for transition in standing {
        let tenant = &transition.tenant;
        let head = heads.entry(tenant.clone()).or_default();
        let sealed = transition.audit.seal(head);
        *head = sealed.head;
        sequences.push(sealed.head.sequence);
        cells.extend([
            Cell::text(tenant.as_str()),
            Cell::Int(int(sealed.head.sequence)),
            Cell::text(&transition.audit.action),
            Cell::text(&transition.audit.subject.kind),
            Cell::text(&transition.audit.subject.id),
            Cell::Text(sealed.text.into()),
        ]);
    }
    insert(&mut *c, &AUDIT, cells.iter()).await?;
    let moved = heads.iter().flat_map(|(tenant, head)| {
        [
            Cell::text(tenant.as_str()),
            Cell::Int(int(head.sequence)),
            Cell::Text(head.hash.to_string().into()),
        ]
    });
    let moved: Vec<Cell> = moved.collect();
    insert(&mut *c, &HEADS, moved.iter()).await?;
    Ok(sequences)
}

/// The heads of tenants' chains; a tenant without one has no entry yet.
async fn heads(
    c: &mut SqliteConnection,
    tenants: &BTreeSet<&TenantId>,
) -> Result<BTreeMap<TenantId, Head>, StoreError> {
    let names: Vec<Cell> = tenants.iter().map(|t| Cell::text(t.as_str())).collect();
    let mut heads = BTreeMap::new();
    for (rows, cells) in parts(&names, 1) {
        let text = prepared("heads", rows, || {
            let places = vec!["?"; rows].join(", ");
            format!("select * from workflow_audit_heads where tenant_id in ({places})")
        });
        let query = bind(sqlx::query(text), cells.iter());
        for row in query.fetch_all(&mut *c).await.map_err(fault)? {
            let head = Head {
                sequence: row.number("sequence")?,
                hash: row.hash("hash")?,
            };
            heads.insert(TenantId::from(row.text("tenant_id")?), head);
        }
    }
    Ok(heads)
}

pub(super) async fn insert<'a>(
    c: &mut SqliteConnection,
    table: &Table,
    cells: impl Iterator<Item = &'a Cell>,
) -> Result<(), StoreError> {
    let cells: Vec<&Cell> = cells.collect();
    for (rows, cells) in parts(&cells, table.columns.len()) {
        let text = prepared(table.name, rows, || {
            let mut text = insert_text(table, rows);
            push_replacing(&mut text, table);
            text
        });
        let query = bind(sqlx::query(text), cells.iter().copied());
        query.execute(&mut *c).await.map_err(fault)?;
    }
    Ok(())
}

/// Where a row may be there already, it is replaced whole.
fn push_replacing(text: &mut String, table: &Table) {
    if table.replaced_by.is_empty() {
        return;
    }
    let changed = table.columns.iter().map(|(name, _)| *name);
    let changed = changed.filter(|name| !table.replaced_by.contains(name));
    let changed: Vec<_> = changed
        .map(|name| format!("{name} = excluded.{name}"))
        .collect();
    text.push_str(&format!(
        " on conflict ({}) do update set {}",
        table.replaced_by.join(", "),
        changed.join(", ")
    ));
}

/// The text of a statement for so many rows, made once: the connection finds what it has
/// prepared by it.
pub(super) fn prepared(
    name: &'static str,
    rows: usize,
    make: impl FnOnce() -> String,
) -> AssertSqlSafe<Arc<str>> {
    type Texts = BTreeMap<(&'static str, usize), Arc<str>>;
    static MADE: Mutex<Texts> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let text = made.entry((name, rows)).or_insert_with(|| make().into());
    AssertSqlSafe(Arc::clone(text))
}

pub(super) fn insert_text(table: &Table, rows: usize) -> String {
    let names: Vec<_> = table.columns.iter().map(|(name, _)| *name).collect();
    let mut text = format!(
        "insert or fail into {} ({}) values ",
        table.name,
        names.join(", ")
    );
    push_rows(&mut text, rows, names.len());
    text
}

pub(super) fn push_rows(text: &mut String, rows: usize, width: usize) {
    let row = format!("({})", vec!["?"; width].join(", "));
    text.push_str(&vec![row; rows].join(", "));
}

/// Cells of whole rows in parts of 64, 32 … 1 rows.
pub(super) fn parts<T>(mut cells: &[T], width: usize) -> impl Iterator<Item = (usize, &[T])> {
    let mut rows = ROWS;
    std::iter::from_fn(move || {
        while rows > 0 {
            match cells.split_at_checked(rows * width) {
                Some((part, rest)) if !cells.is_empty() => {
                    cells = rest;
                    return Some((rows, part));
                }
                _ => rows /= 2,
            }
        }
        None
    })
}

pub(super) fn bind<'a>(mut query: Query, cells: impl Iterator<Item = &'a Cell>) -> Query {
    for cell in cells {
        query = match cell {
            Cell::Null => query.bind(None::<i64>),
            Cell::Int(number) => query.bind(*number),
            Cell::Text(text) => query.bind(text.clone()),
            Cell::Bytes(bytes) => query.bind(bytes.clone()),
        };
    }
    query
}
