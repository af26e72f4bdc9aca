//! Many decisions in one transaction (architecture.md "Rules"; run-machine.md W1, W2): a few
//! statements of many rows each. Locks are taken in the same order by everybody: stored runs
//! by tenant and id, workflows, new runs by key, and the tenants' audit heads last. Whoever's
//! guard does not hold is dropped before any row of it is written.

use std::collections::{BTreeMap, HashMap, HashSet};

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{AssertSqlSafe, PgConnection, Postgres};

use sluicegate_core::ids::TenantId;
use sluicegate_core::time::Instant;

use super::{Columns, audit, child, fault, int, run};
use crate::store::flat::{Begins, Transition};
use crate::store::stood::Stood;
use crate::store::table::{AUDIT, Cell, Kind, PROJECTED, RUNS, TABLES, Table};
use crate::store::{Committed, Guard, StoreError};

pub(super) type Verdict = Result<Stood, StoreError>;
pub(super) type Query<'q> = sqlx::query::Query<'q, Postgres, PgArguments>;

/// A run, by its tenant and id.
type Place<'a> = (&'a str, &'a str);

fn place(transition: &Transition) -> Place<'_> {
    (transition.tenant.as_str(), transition.run_id.as_str())
}

/// Writes decisions of different runs inside the caller's transaction; verdicts are in their
/// order.
///
/// # Errors
/// When one of them, nobody knows which, cannot be written: the transaction is lost.
pub(super) async fn write(
    c: &mut PgConnection,
    batch: &[&Transition],
    now: Instant,
) -> Result<Vec<Verdict>, StoreError> {
    let found = lock_runs(&mut *c, batch).await?;
    let moved = move_runs(&mut *c, batch, &found).await?;
    let made = insert_runs(&mut *c, batch).await?;
    let stands = |t: &Transition| {
        let (tenant, run) = place(t);
        let place = (tenant.to_owned(), run.to_owned());
        moved.contains(&place) || made.contains(&place)
    };
    let standing: Vec<&Transition> = batch.iter().copied().filter(|t| stands(t)).collect();
    child::settle_all(&mut *c, &standing, now).await?;
    let started = child::start_all(&mut *c, &standing, now).await?;
    for (place, table) in TABLES.iter().enumerate() {
        let rows = standing.iter().filter_map(|t| t.rows.get(place));
        insert(&mut *c, table, rows.flatten().collect()).await?;
    }
    let mut verdicts: Vec<Option<Verdict>> = Vec::with_capacity(batch.len());
    for transition in batch {
        verdicts.push(match stands(transition) {
            true => None,
            false => Some(why_not(&mut *c, transition, &found).await?),
        });
    }
    // The heads last: whoever holds one waits for nobody.
    let mut sequences = append_all(&mut *c, &standing).await?.into_iter();
    let mut written = |transition: &Transition| {
        let new = transition.children.start.as_ref();
        Ok(Stood::Written(Committed {
            audit_sequence: sequences.next().unwrap_or_default(),
            started: new.is_some_and(|start| started.contains(start.new_id.as_str())),
        }))
    };
    let verdicts = batch.iter().zip(verdicts);
    Ok(verdicts
        .map(|(transition, verdict)| verdict.unwrap_or_else(|| written(transition)))
        .collect())
}

/// Who holds a run, as it was found.
struct Lease {
    token: Option<String>,
    fence: u64,
}

/// Locks the stored runs, in the order of their tenants and ids. A claim does not wait: a run
/// that somebody has locked is somebody's.
async fn lock_runs<'a>(
    c: &mut PgConnection,
    batch: &[&'a Transition],
) -> Result<HashMap<(String, String), Lease>, StoreError> {
    let claims = |transition: &Transition| match &transition.begins {
        Begins::New { .. } => None,
        Begins::Stored(guard) => Some(matches!(guard, Guard::Claim { .. })),
    };
    let mut found = HashMap::new();
    for (claimed, text) in [
        (
            false,
            "select r.tenant_id, r.run_id, r.lease_token, r.lease_fence
             from workflow_runs r
             join unnest($1::text[], $2::text[]) as v (tenant_id, run_id)
               on r.tenant_id = v.tenant_id and r.run_id = v.run_id
             order by r.tenant_id, r.run_id for update of r",
        ),
        (
            true,
            "select r.tenant_id, r.run_id, r.lease_token, r.lease_fence
             from workflow_runs r
             join unnest($1::text[], $2::text[]) as v (tenant_id, run_id)
               on r.tenant_id = v.tenant_id and r.run_id = v.run_id
             order by r.tenant_id, r.run_id for update of r skip locked",
        ),
    ] {
        let runs = batch.iter().filter(|t| claims(t) == Some(claimed));
        let (tenants, runs): (Vec<&'a str>, Vec<&'a str>) = runs.map(|t| place(t)).unzip();
        if tenants.is_empty() {
            continue;
        }
        let rows = sqlx::query(text).bind(tenants).bind(runs);
        for row in rows.fetch_all(&mut *c).await.map_err(fault)? {
            let lease = Lease {
                token: row.maybe_text("lease_token")?,
                fence: row.number("lease_fence")?,
            };
            found.insert((row.text("tenant_id")?, row.text("run_id")?), lease);
        }
    }
    Ok(found)
}

/// What a guard looks at and what it takes or gives back.
const GUARD: [(&str, Kind); 11] = [
    ("g_tenant", Kind::Text),
    ("g_run", Kind::Text),
    ("g_sequence", Kind::Int),
    ("g_token", Kind::Text),
    ("g_fence", Kind::Int),
    ("g_found", Kind::Text),
    ("g_owner", Kind::Text),
    ("g_lease", Kind::Int),
    ("g_ended", Kind::Int),
    ("g_back", Kind::Int),
    ("g_wake", Kind::Int),
];

fn guard_cells(transition: &Transition, guard: &Guard) -> [Cell; 11] {
    let text = Cell::text;
    let none = [Cell::Null, Cell::Null, Cell::Null, Cell::Null, Cell::Null];
    let [token, fence, found, owner, lease] = match guard {
        Guard::Sequence(_) => none,
        Guard::Owner { token, fence, .. } => [
            text(token),
            Cell::Int(int(*fence)),
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ],
        Guard::Claim {
            worker_id,
            token,
            fence,
            found,
            lease_ms,
            ..
        } => [
            text(token),
            Cell::Int(int(*fence)),
            found.as_deref().map_or(Cell::Null, text),
            text(worker_id.as_str()),
            Cell::Int(int(*lease_ms)),
        ],
    };
    [
        text(transition.tenant.as_str()),
        text(transition.run_id.as_str()),
        Cell::Int(int(guard.sequence())),
        token,
        fence,
        found,
        owner,
        lease,
        Cell::Int(transition.ended.into()),
        Cell::Int((transition.ended || transition.hand_back).into()),
        Cell::Int(transition.wake_at),
    ]
}

/// Brings stored runs to what their decisions say, where the guards hold. The end of a lease
/// is written and compared by the database's clock (W5).
async fn move_runs(
    c: &mut PgConnection,
    batch: &[&Transition],
    locked: &HashMap<(String, String), Lease>,
) -> Result<HashSet<(String, String)>, StoreError> {
    let mut cells = Vec::new();
    for transition in batch {
        let (tenant, run) = place(transition);
        // A claim that was skipped would wait here for the one who has the run.
        if let Begins::Stored(guard) = &transition.begins
            && locked.contains_key(&(tenant.to_owned(), run.to_owned()))
        {
            cells.extend(guard_cells(transition, guard));
            cells.extend(transition.projected.iter().cloned());
        }
    }
    let projected = || RUNS.columns.iter().skip(PROJECTED);
    let renamed: Vec<_> = projected()
        .map(|(name, kind)| (format!("v_{name}"), *kind))
        .collect();
    let renamed = renamed.iter().map(|(name, kind)| (name.as_str(), *kind));
    let columns: Vec<_> = GUARD.iter().copied().chain(renamed).collect();
    let mut text = String::from("update workflow_runs set ");
    for (name, _) in projected() {
        text.push_str(&format!("{name} = v_{name}, "));
    }
    text.push_str(
        "open = case when g_ended = 1 then 0 else open end,
         lease_owner = case when g_back = 1 then null else coalesce(g_owner, lease_owner) end,
         lease_token = case when g_back = 1 then null when g_owner is not null then g_token
                            else lease_token end,
         lease_fence = case when g_owner is not null then g_fence else lease_fence end,
         lease_expires_at = case when g_back = 1 then null
                                 else coalesce(now_ms() + g_lease, lease_expires_at) end,
         lease_void = case when g_back = 1 or g_owner is not null then 0 else lease_void end,
         claim_at = case when g_back = 1 then g_wake
                         else coalesce(now_ms() + g_lease, claim_at) end from ",
    );
    text.push_str(&spread(&columns));
    text.push_str(
        " where tenant_id = g_tenant and run_id = g_run and last_sequence = g_sequence
           and parked_code is null
           and case when g_token is null then true
                    when g_owner is null then lease_token = g_token and lease_fence = g_fence
                    else open = 1 and lease_fence = g_fence - 1
                         and lease_token is not distinct from g_found
                         and claim_at <= now_ms() end
         returning tenant_id, run_id",
    );
    let cells: Vec<&Cell> = cells.iter().collect();
    places(&mut *c, text, &columns, &cells).await
}

/// Carries out a statement of many rows that returns the runs it is about.
async fn places(
    c: &mut PgConnection,
    text: String,
    columns: &[(&str, Kind)],
    cells: &[&Cell],
) -> Result<HashSet<(String, String)>, StoreError> {
    if cells.is_empty() {
        return Ok(HashSet::new());
    }
    let query = bind(sqlx::query(AssertSqlSafe(text)), columns, cells);
    let rows = query.fetch_all(c).await.map_err(fault)?;
    let place = |row: &PgRow| Ok((row.text("tenant_id")?, row.text("run_id")?));
    rows.iter().map(place).collect()
}

/// Makes the rows of new runs, where their keys are new and their revisions still live.
async fn insert_runs(
    c: &mut PgConnection,
    batch: &[&Transition],
) -> Result<HashSet<(String, String)>, StoreError> {
    let live = run::lock_live(&mut *c, batch).await?;
    let mut cells = Vec::new();
    for transition in batch {
        let Begins::New {
            invocation,
            accepted,
        } = &transition.begins
        else {
            continue;
        };
        let stands = accepted
            .as_ref()
            .is_none_or(|(_, reference)| live.contains(&run::named(&transition.tenant, reference)));
        if stands {
            cells.extend(invocation.iter().chain(&transition.projected));
        }
    }
    let mut text = insert_text(&RUNS);
    text.push_str(
        " order by tenant_id, idempotency_key
         on conflict (tenant_id, idempotency_key) do nothing returning tenant_id, run_id",
    );
    places(&mut *c, text, RUNS.columns, &cells).await
}

/// Why a decision does not stand.
async fn why_not(
    c: &mut PgConnection,
    transition: &Transition,
    found: &HashMap<(String, String), Lease>,
) -> Result<Verdict, StoreError> {
    let guard = match &transition.begins {
        Begins::Stored(guard) => guard,
        Begins::New { accepted: None, .. } => {
            return Err(StoreError::Corrupt("two runs of one id".to_owned()));
        }
        Begins::New {
            accepted: Some((key, _)),
            ..
        } => {
            let first = run::accepted(c, &transition.tenant, key).await?;
            return Ok(Ok(first.map_or(Stood::Moved, Stood::Existing)));
        }
    };
    let (tenant, run) = place(transition);
    let lease = found.get(&(tenant.to_owned(), run.to_owned()));
    let held = match (guard, lease) {
        (Guard::Claim { .. }, None) => false,
        (_, None) => return Ok(Err(StoreError::NotFound)),
        (Guard::Sequence(_), Some(_)) => true,
        (Guard::Owner { token, fence, .. }, Some(lease)) => {
            lease.token.as_ref() == Some(token) && lease.fence == *fence
        }
        (Guard::Claim { found, fence, .. }, Some(lease)) => {
            lease.token == *found && lease.fence + 1 == *fence
        }
    };
    Ok(Err(if held {
        StoreError::Stale
    } else {
        StoreError::Fenced
    }))
}

/// Appends the audit entries and gives their sequences in the batch's order.
async fn append_all(
    c: &mut PgConnection,
    standing: &[&Transition],
) -> Result<Vec<u64>, StoreError> {
    let tenants = standing.iter().map(|t| &t.tenant);
    let mut heads: BTreeMap<&TenantId, _> = tenants.map(|tenant| (tenant, None)).collect();
    audit::lock_heads(&mut *c, &mut heads).await?;
    let mut cells = Vec::with_capacity(standing.len() * AUDIT.columns.len());
    let mut sequences = Vec::with_capacity(standing.len());
    for transition in standing {
        let head = heads.entry(&transition.tenant).or_default();
        let sealed = transition.audit.seal(&head.unwrap_or_default());
        *head = Some(sealed.head);
        sequences.push(sealed.head.sequence);
        cells.extend([
            Cell::text(transition.tenant.as_str()),
            Cell::Int(int(sealed.head.sequence)),
            Cell::text(&transition.audit.action),
            Cell::text(&transition.audit.subject.kind),
            Cell::text(&transition.audit.subject.id),
            Cell::Text(sealed.text.into()),
        ]);
    }
    insert(&mut *c, &AUDIT, cells.iter().collect()).await?;
    audit::set_heads(&mut *c, &heads).await?;
    Ok(sequences)
}

/// Adds rows to a table; where the table says so, a row that is there already is replaced.
pub(super) async fn insert(
    c: &mut PgConnection,
    table: &Table,
    cells: Vec<&Cell>,
) -> Result<(), StoreError> {
    if cells.is_empty() {
        return Ok(());
    }
    let mut text = insert_text(table);
    if !table.replaced_by.is_empty() {
        let changed = table.columns.iter().map(|(name, _)| *name);
        let changed = changed.filter(|name| !table.replaced_by.contains(name));
        let changed: Vec<_> = changed
            .map(|name| format!("{name} = excluded.{name}"))
            .collect();
        let (key, changed) = (table.replaced_by.join(", "), changed.join(", "));
        text.push_str(&format!(" on conflict ({key}) do update set {changed}"));
    }
    let query = bind(sqlx::query(AssertSqlSafe(text)), table.columns, &cells);
    query.execute(c).await.map_err(fault)?;
    Ok(())
}

pub(super) fn insert_text(table: &Table) -> String {
    let names: Vec<_> = table.columns.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    format!(
        "insert into {} ({names}) select {names} from {}",
        table.name,
        spread(table.columns)
    )
}

/// The rows that [`bind`] binds, as a table `v` with these columns.
pub(super) fn spread(columns: &[(&str, Kind)]) -> String {
    let kind = |kind: &Kind| match kind {
        Kind::Int => "bigint",
        Kind::Text => "text",
        Kind::Bytes => "bytea",
    };
    let arrays = columns
        .iter()
        .zip(1..)
        .map(|((_, of), at)| format!("${at}::{}[]", kind(of)));
    let names: Vec<_> = columns
        .iter()
        .map(|(name, _)| format!("\"{name}\""))
        .collect();
    let arrays: Vec<_> = arrays.collect();
    format!("unnest({}) as v ({})", arrays.join(", "), names.join(", "))
}

/// Binds the cells of whole rows, an array a column.
pub(super) fn bind<'q>(
    mut query: Query<'q>,
    columns: &[(&str, Kind)],
    cells: &[&'q Cell],
) -> Query<'q> {
    for (place, (_, kind)) in columns.iter().enumerate() {
        let column = cells.iter().skip(place).step_by(columns.len());
        query = match kind {
            Kind::Int => query.bind(column.map(|cell| number(cell)).collect::<Vec<_>>()),
            Kind::Text => query.bind(column.map(|cell| text(cell)).collect::<Vec<_>>()),
            Kind::Bytes => query.bind(column.map(|cell| bytes(cell)).collect::<Vec<_>>()),
        };
    }
    query
}

fn number(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Int(number) => Some(*number),
        _ => None,
    }
}

fn text(cell: &Cell) -> Option<&str> {
    match cell {
        Cell::Text(text) => Some(text),
        _ => None,
    }
}

fn bytes(cell: &Cell) -> Option<&[u8]> {
    match cell {
        Cell::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}
