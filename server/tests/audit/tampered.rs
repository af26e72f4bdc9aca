//! What was done to the chain or to events is found and named.

use std::time::Duration;

use serde_json::json;
use sluicegate_core::audit::{Break, Covered, Subject as About, Verification};
use sluicegate_core::ids::Hash;
use sluicegate_core::run::RunStatus;
use sluicegate_core::simulate::Fixtures;
use sluicegate_core::value::Value;
use sluicegate_server::engine::{Simulate, Subject};
use sluicegate_server::store::{AuditDraft, By};

use crate::harness::bare::Bare;
use crate::harness::ground::Ground;
use crate::harness::{House, by, on_both, permissions, sample};

on_both!(
    h3_a_changed_character_of_an_entry_is_found_there,
    h3_a_changed_character_of_an_event_is_found_at_its_entry,
    h3_rows_that_were_removed_swapped_added_or_cut_are_found,
    h3_events_that_were_removed_swapped_or_added_are_found,
    b124_a_thousand_entries_survive_a_restart_and_a_copy_and_show_what_was_done
);

pub(crate) fn review() -> Value {
    sample("expenses.review/approved.input.json")
}

pub(crate) fn simulation() -> Simulate {
    Simulate {
        subject: Subject::Published {
            workflow_key: "expenses.review".into(),
            revision: None,
        },
        input: review(),
        fixtures: Fixtures::read(&sample("expenses.review/approved.fixtures.json")).unwrap(),
    }
}

pub(crate) fn act(by: &By, text: &str) -> AuditDraft {
    AuditDraft {
        tenant_id: by.tenant.clone(),
        actor: by.actor.clone(),
        origin: Some(by.origin.clone()),
        action: "run.enqueue-refused".to_owned(),
        subject: About {
            kind: "workflow".to_owned(),
            id: "w".to_owned(),
        },
        metadata: json!({"text": text}),
        occurred_at: sluicegate_core::time::Instant(7),
    }
}

/// A house with acts of several kinds behind it, and the file below it without its rules.
struct Books {
    house: House,
    bare: Bare,
    /// Run, event sequence, and the entry that covers it.
    events: Vec<(String, u64, u64)>,
    last: u64,
}

impl Books {
    async fn open(ground: &Ground) -> Self {
        let house = ground.house().await;
        house.sample_agents().await;
        house.publish_sample("expenses.review").await;
        let cancelled = house
            .enqueue("expenses.review", review(), "k1")
            .await
            .run_id;
        house
            .engine
            .cancel(&self::by(), &cancelled, None)
            .await
            .unwrap();
        let run = house
            .enqueue("expenses.review", review(), "k2")
            .await
            .run_id;
        let workers = house.workers("w");
        assert_eq!(house.ended(&run).await, RunStatus::Succeeded);
        assert!(workers.stop(Duration::from_secs(5)).await);
        let (by, may) = (by(), permissions());
        let simulated = house.engine.simulate(&by, &may, simulation()).await;
        simulated.unwrap();
        house.store.record_act(act(&by, "é")).await.unwrap();
        let entries = house.store.audit_after(&by.tenant, 0, 1_000).await.unwrap();
        let mut events = Vec::new();
        for (entry, at) in entries.iter().zip(1..) {
            let Some(covered) = Covered::of(entry) else {
                continue;
            };
            let run_id = covered.run_id.to_string();
            events.extend((covered.first..=covered.last).map(|n| (run_id.clone(), n, at)));
        }
        let mut bare = Bare::open(ground).await;
        let stored = bare
            .number("select count(*) from workflow_run_events")
            .await;
        assert_eq!(events.len(), usize::try_from(stored).unwrap());
        for table in KEPT {
            bare.run(&format!("create table k_{table} as select * from {table}"))
                .await;
        }
        let books = Self {
            house,
            bare,
            events,
            last: entries.len() as u64,
        };
        let answer = books.verify().await;
        assert!(answer.valid, "{answer:?}");
        assert_eq!(answer.checked_through_sequence, books.last);
        books
    }

    async fn verify(&self) -> Verification {
        let tenant = by().tenant;
        self.house.engine.verify_audit(&tenant).await.unwrap()
    }

    /// What is found while some statements have their effect, which is undone afterwards.
    async fn found_after(&mut self, damage: impl AsRef<str>) -> (u64, Break) {
        let damage = damage.as_ref();
        self.bare.run(damage).await;
        let found = self.found(damage).await;
        for table in KEPT {
            let columns = self.bare.names(table).await;
            let again = format!(
                "begin; delete from {table};
                 insert into {table} ({columns}) select {columns} from k_{table}; commit"
            );
            self.bare.run(&again).await;
        }
        found
    }

    async fn found(&self, damage: &str) -> (u64, Break) {
        let answer = self.verify().await;
        let at = answer.first_broken_sequence;
        let at = at.unwrap_or_else(|| panic!("nothing was found after: {damage}"));
        assert!(!answer.valid);
        assert!(answer.checked_through_sequence < at, "{damage}");
        (at, answer.reason.unwrap())
    }

    /// What is found after each of some characters of a text is another one. Where the database
    /// lets it happen, some are no text any more.
    async fn bent(
        &mut self,
        text: Text<'_>,
        which: impl Iterator<Item = usize>,
    ) -> Vec<(u64, Break)> {
        let Text {
            table,
            column,
            place,
        } = text;
        let query = format!("select {column} from {table} where {place}");
        let whole: Vec<char> = self.bare.texts(&query).await.remove(0).chars().collect();
        let literal = |text: &[char]| text.iter().collect::<String>().replace('\'', "''");
        let mut found = Vec::new();
        for offset in which.map(|offset| offset % whole.len()) {
            let (before, after) = (literal(&whole[..offset]), literal(&whole[offset + 1..]));
            let other = match whole[offset] {
                _ if offset % 5 == 0 && !self.bare.is_postgres() => "cast(x'ff' as text)",
                'x' => "'y'",
                _ => "'x'",
            };
            let damage = format!(
                "update {table} set {column} = '{before}' || {other} || '{after}' where {place}"
            );
            self.bare.run(&damage).await;
            found.push(self.found(&damage).await);
            let whole = literal(&whole);
            let again = format!("update {table} set {column} = '{whole}' where {place}");
            self.bare.run(&again).await;
        }
        found
    }
}

/// A text of one row.
#[derive(Clone, Copy)]
struct Text<'a> {
    table: &'a str,
    column: &'a str,
    place: &'a str,
}

/// The tables that a check reads.
const KEPT: [&str; 3] = [
    "workflow_audit_events",
    "workflow_audit_heads",
    "workflow_run_events",
];

async fn h3_a_changed_character_of_an_entry_is_found_there(ground: Ground) {
    let mut books = Books::open(&ground).await;
    let table = "workflow_audit_events";
    for at in 1..=books.last {
        let place = format!("tenant_id = 'default' and sequence = {at}");
        for column in ["entry", "action", "subject_kind", "subject_id"] {
            // Every character of one entry, and one of every other text.
            let every = at == 3 && column == "entry" && !books.bare.is_postgres();
            let first = usize::try_from(at).unwrap() * 131;
            let which = first..first + if every { 700 } else { 1 };
            let text = Text {
                table,
                column,
                place: &place,
            };
            for (found, _) in books.bent(text, which).await {
                assert_eq!(found, at);
            }
        }
    }
    // A row that is moved is missing where it was: the one after it stands in its place.
    let (found, _) = books
        .found_after("update workflow_audit_events set sequence = 1000 where sequence = 4")
        .await;
    assert_eq!(found, 5);
    let (found, _) = books
        .found_after("update workflow_audit_events set tenant_id = 'other' where sequence = 4")
        .await;
    assert_eq!(found, 5);
    assert!(books.verify().await.valid, "what was undone is whole again");
}

async fn h3_a_changed_character_of_an_event_is_found_at_its_entry(ground: Ground) {
    let mut books = Books::open(&ground).await;
    let table = "workflow_run_events";
    for (index, (run_id, sequence, entry)) in books.events.clone().into_iter().enumerate() {
        let place = format!("run_id = '{run_id}' and sequence = {sequence}");
        for column in ["payload", "event_type"] {
            let every = index == 5 && column == "payload" && !books.bare.is_postgres();
            let first = index * 17;
            let which = first..first + if every { 300 } else { 1 };
            let text = Text {
                table,
                column,
                place: &place,
            };
            for found in books.bent(text, which).await {
                assert_eq!(found, (entry, Break::Events));
            }
        }
        let numbers = [
            "schema_version = 2",
            "recorded_at = recorded_at + 1",
            "recorded_at = -1",
            "virtual_offset_ms = coalesce(virtual_offset_ms, -1) + 1",
        ];
        let damage = format!("update {table} set {} where {place}", numbers[index % 4]);
        assert_eq!(
            books.found_after(&damage).await,
            (entry, Break::Events),
            "{damage}"
        );
    }
}

async fn h3_rows_that_were_removed_swapped_added_or_cut_are_found(ground: Ground) {
    let mut books = Books::open(&ground).await;
    let last = books.last;
    let entries = "workflow_audit_events";
    for at in 1..=last {
        let gone = books.found_after(format!("delete from {entries} where sequence = {at}"));
        // Without it the one after it is the first that does not fit.
        let found = if at == last {
            (at, Break::Head)
        } else {
            (at + 1, Break::Link)
        };
        assert_eq!(gone.await, found);
        let cut = books.found_after(format!("delete from {entries} where sequence >= {at}"));
        assert_eq!(cut.await, (at, Break::Head));
        if at < last {
            let swap = format!(
                "update {entries} set sequence = -1 where sequence = {at};
                 update {entries} set sequence = {at} where sequence = {at} + 1;
                 update {entries} set sequence = {at} + 1 where sequence = -1"
            );
            assert_eq!(books.found_after(&swap).await.0, at);
        }
        let copied = |to: String| {
            format!(
                "insert into {entries} (tenant_id, sequence, action, subject_kind, subject_id, entry)
                 select tenant_id, {to}, action, subject_kind, subject_id, entry
                 from {entries} where sequence = {at}"
            )
        };
        let added = books.found_after(copied(format!("{last} + 1"))).await;
        assert_eq!(added.0, last + 1);
        let before = books.found_after(copied("0".to_owned())).await;
        assert_eq!(before.0, 1);
    }
    let heads = "workflow_audit_heads";
    for (damage, at) in [
        (format!("delete from {heads}"), 1),
        (format!("update {heads} set sequence = sequence - 1"), last),
        (
            format!("update {heads} set sequence = sequence + 1"),
            last + 1,
        ),
        (
            format!("update {heads} set hash = replace(hash, substr(hash, 9, 1), 'g')"),
            last,
        ),
        (format!("update {heads} set hash = '{}'", Hash::ZERO), last),
    ] {
        assert_eq!(
            books.found_after(&damage).await,
            (at, Break::Head),
            "{damage}"
        );
    }
}

async fn h3_events_that_were_removed_swapped_or_added_are_found(ground: Ground) {
    let mut books = Books::open(&ground).await;
    let events = "workflow_run_events";
    let copy = |place: &str, run_id: &str, sequence: u64| {
        format!(
            "insert into {events} (tenant_id, run_id, sequence, event_type, schema_version, payload,
                                   recorded_at, virtual_offset_ms)
             select tenant_id, '{run_id}', {sequence}, event_type, schema_version, payload,
                    recorded_at, virtual_offset_ms from {events} where {place}"
        )
    };
    let all = books.events.clone();
    for (index, (run_id, sequence, entry)) in all.iter().enumerate() {
        let place = format!("run_id = '{run_id}' and sequence = {sequence}");
        let gone = books.found_after(format!("delete from {events} where {place}"));
        assert_eq!(gone.await, (*entry, Break::Events));
        let moved = format!("update {events} set run_id = 'x' where {place}");
        assert_eq!(books.found_after(&moved).await, (*entry, Break::Events));
        if all.get(index + 1).is_some_and(|next| next.0 == *run_id) {
            let swap = format!(
                "update {events} set sequence = -1 where {place};
                 update {events} set sequence = {sequence}
                 where run_id = '{run_id}' and sequence = {sequence} + 1;
                 update {events} set sequence = {sequence} + 1
                 where run_id = '{run_id}' and sequence = -1"
            );
            assert_eq!(books.found_after(&swap).await, (*entry, Break::Events));
        } else {
            // After the last event of a run, and before its first.
            let added = books.found_after(copy(&place, run_id, sequence + 1)).await;
            assert_eq!(added, (*entry, Break::Events));
            let added = books.found_after(copy(&place, run_id, 0)).await;
            assert_eq!(added, (*entry, Break::Events));
            // Of a run that no entry knows.
            let stray = books.found_after(copy(&place, "zzz", 1)).await;
            assert_eq!(stray, (books.last + 1, Break::Events));
        }
    }
}

async fn b124_a_thousand_entries_survive_a_restart_and_a_copy_and_show_what_was_done(
    ground: Ground,
) {
    let house = ground.house().await;
    for n in 1..=1_000 {
        let text = format!("entry {n}");
        house.store.record_act(act(&by(), &text)).await.unwrap();
    }
    drop(house);
    let mut bare = Bare::open(&ground).await;
    // Dumped and restored: every row is written anew.
    let columns = bare.names("workflow_audit_events").await;
    let copy = format!(
        "create table dumped as select * from workflow_audit_events;
         delete from workflow_audit_events;
         insert into workflow_audit_events ({columns}) select {columns} from dumped"
    );
    bare.run(&copy).await;
    let house = ground.house().await;
    let tenant = by().tenant;
    let verify = || house.engine.verify_audit(&tenant);
    let answer = verify().await.unwrap();
    assert!(answer.valid);
    assert_eq!(answer.checked_through_sequence, 1_000);
    let turn = |from: &str, to: &str| {
        format!(
            "update workflow_audit_events set entry = replace(entry, '{from}', '{to}')
             where sequence = 500"
        )
    };
    bare.run(&turn("entry 500", "entry 5o0")).await;
    let answer = verify().await.unwrap();
    assert_eq!(answer.first_broken_sequence, Some(500));
    assert_eq!(answer.reason, Some(Break::Content));
    assert_ne!(answer.expected_previous_hash, answer.actual_previous_hash);
    bare.run(&turn("entry 5o0", "entry 500")).await;
    assert!(verify().await.unwrap().valid);
    bare.run("delete from workflow_audit_events where sequence = 700")
        .await;
    // Entry 700 is not there: 701 stands in its place and names another one before it.
    let answer = verify().await.unwrap();
    assert_eq!(answer.first_broken_sequence, Some(701));
    assert_eq!(answer.checked_through_sequence, 699);
    assert_eq!(answer.reason, Some(Break::Link));
    assert!(answer.expected_previous_hash.is_some());
    assert!(answer.actual_previous_hash.is_some());
}
