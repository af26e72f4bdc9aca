use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::actor::{Actor, Origin, UserActor};
use crate::audit::{Draft, Subject, of_decision};
use crate::ids::TenantId;
use crate::time::Instant;
use crate::value;

/// A tenant's chain and the events of its runs.
#[derive(Debug, Clone)]
struct Books {
    entries: Vec<Value>,
    events: Vec<Value>,
    head: Head,
}

/// One act a number: below 3 a decision of that run with two events more, else another act.
fn books(acts: &[usize]) -> Books {
    let mut books = Books {
        entries: Vec::new(),
        events: Vec::new(),
        head: Head::default(),
    };
    let mut lengths = BTreeMap::new();
    for (at, act) in acts.iter().enumerate() {
        let run = (*act < 3).then(|| format!("r{act}"));
        let (action, kind, id, metadata) = match run {
            Some(run) => {
                let length: &mut u64 = lengths.entry(run.clone()).or_default();
                let event = |sequence: u64| {
                    json!({
                        "eventId": format!("{run}:{sequence}"), "runId": run, "payload": {"n": at},
                        "recordedAt": at, "schemaVersion": 1, "sequence": sequence,
                        "tenantId": "t", "type": "node.ready",
                    })
                };
                let fresh = [event(*length + 1), event(*length + 2)];
                *length += 2;
                let (action, metadata) = of_decision(&fresh).unwrap();
                books.events.extend(fresh);
                (action, "run", run, metadata)
            }
            None => {
                let (action, kind) = ("workflow.saved".to_owned(), "workflow");
                (action, kind, "w".to_owned(), json!({"version": at}))
            }
        };
        let draft = Draft {
            tenant_id: TenantId::from("t"),
            actor: Actor::User(UserActor {
                account_id: "a".to_owned(),
                display_name: "Ada \u{e9}".to_owned(),
                email: None,
            }),
            origin: Some(Origin::Manual),
            action,
            subject: Subject {
                kind: kind.to_owned(),
                id,
            },
            metadata,
            occurred_at: Instant(at as u64),
        };
        let entry = draft.seal(&books.head).unwrap();
        books.head = entry.head();
        books.entries.push(value::to_value(&entry).unwrap());
    }
    books
}

impl Books {
    fn check(&self) -> Verification {
        verify(&self.entries, Some(self.head), Some(&self.events))
    }

    /// The break that is found, after all that the answer must say of it.
    fn found(&self) -> Option<(u64, Break)> {
        let answer = self.check();
        assert_eq!(answer.valid, answer.reason.is_none());
        assert_eq!(answer.head, self.head);
        let Some(at) = answer.first_broken_sequence else {
            assert!(answer.valid);
            assert_eq!(answer.checked_through_sequence, self.entries.len() as u64);
            return None;
        };
        assert!(answer.checked_through_sequence < at);
        Some((at, answer.reason.unwrap()))
    }

    /// The entry that covers an event.
    fn entry_of(&self, event: &Value) -> u64 {
        let (run, sequence) = (&event["runId"], event["sequence"].as_u64().unwrap());
        let covers = |entry: &Value| {
            entry["subject"]["id"] == *run
                && Covered::of(entry).is_some_and(|c| (c.first..=c.last).contains(&sequence))
        };
        let place = self.entries.iter().position(covers).unwrap();
        place as u64 + 1
    }
}

/// A value of the same text but for one flipped bit, if it is another value at all.
fn flipped(value: &Value, byte: usize, bit: u8) -> Option<Value> {
    let mut bytes = value::canonical(value).into_bytes();
    let at = byte % bytes.len();
    bytes[at] ^= 1 << bit;
    let text = String::from_utf8(bytes).ok()?;
    value::read(&text).ok().filter(|other| other != value)
}

fn acts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..5usize, 1..9)
}

proptest! {
    #[test]
    fn h3_what_nobody_touched_is_valid(acts in acts()) {
        prop_assert_eq!(books(&acts).found(), None);
    }

    #[test]
    fn h3_a_flipped_bit_of_an_entry_is_found_there(
        acts in acts(), which in 0..100usize, byte in 0..10_000usize, bit in 0..8u8,
    ) {
        let mut books = books(&acts);
        let at = which % books.entries.len();
        // What cannot be read any more is handed on as nothing.
        let changed = flipped(&books.entries[at], byte, bit).unwrap_or(Value::Null);
        books.entries[at] = changed;
        let (found, reason) = books.found().unwrap();
        prop_assert_eq!(found, at as u64 + 1);
        prop_assert!(matches!(reason, Break::Link | Break::Content));
    }

    #[test]
    fn h3_a_flipped_bit_of_an_event_is_found_at_its_entry(
        acts in acts(), which in 0..100usize, byte in 0..10_000usize, bit in 0..8u8,
    ) {
        let mut books = books(&acts);
        prop_assume!(!books.events.is_empty());
        let at = which % books.events.len();
        let before = books.events[at].clone();
        let entry = books.entry_of(&before);
        let changed = flipped(&before, byte, bit).unwrap_or(Value::Null);
        let moved = ["runId", "sequence"].iter().any(|name| changed[name] != before[name]);
        books.events[at] = changed;
        let (found, reason) = books.found().unwrap();
        prop_assert_eq!(reason, Break::Events);
        // One that moved may disturb an earlier entry too.
        prop_assert!(found == entry || (moved && found < entry));
    }

    #[test]
    fn h3_removed_swapped_repeated_and_cut_entries_are_found(
        acts in acts(), which in 0..100usize, other in 0..100usize,
    ) {
        let whole = books(&acts);
        let count = whole.entries.len();
        let (at, to) = (which % count, other % count);
        let mut removed = whole.clone();
        removed.entries.remove(at);
        let last = at + 1 == count;
        // An entry that is whole but stands too early is itself the first that does not fit.
        let found = if last {
            (at as u64 + 1, Break::Head)
        } else {
            (at as u64 + 2, Break::Link)
        };
        prop_assert_eq!(removed.found(), Some(found));
        prop_assert_eq!(removed.check().checked_through_sequence, at as u64);
        let mut cut = whole.clone();
        cut.entries.truncate(at);
        prop_assert_eq!(cut.found(), Some((at as u64 + 1, Break::Head)));
        let mut repeated = whole.clone();
        let copy = repeated.entries[at].clone();
        repeated.entries.insert(to, copy);
        let surplus = if to == at { at + 2 } else { (to + 1).max(at + 1) };
        prop_assert_eq!(repeated.found(), Some((surplus as u64, Break::Link)));
        if at != to {
            let mut swapped = whole.clone();
            swapped.entries.swap(at, to);
            prop_assert_eq!(swapped.found(), Some((at.max(to) as u64 + 1, Break::Link)));
        }
    }

    #[test]
    fn h3_removed_swapped_repeated_and_added_events_are_found(
        acts in acts(), which in 0..100usize,
    ) {
        let whole = books(&acts);
        prop_assume!(!whole.events.is_empty());
        let at = which % whole.events.len();
        let entry = whole.entry_of(&whole.events[at]);
        let mut removed = whole.clone();
        removed.events.remove(at);
        prop_assert_eq!(removed.found(), Some((entry, Break::Events)));
        let mut repeated = whole.clone();
        repeated.events.push(whole.events[at].clone());
        prop_assert_eq!(repeated.found(), Some((entry, Break::Events)));
        // Events of one commit that change places have each other's sequence.
        let mut swapped = whole.clone();
        let pair = at - at % 2;
        let (a, b) = (whole.events[pair]["type"].clone(), json!("node.other"));
        swapped.events[pair]["type"] = b;
        swapped.events[pair + 1]["type"] = a;
        prop_assert_eq!(swapped.found(), Some((entry, Break::Events)));
        // One that no entry knows follows the last one of its run.
        let mut added = whole.clone();
        let run = whole.events[at]["runId"].clone();
        let of_run = |event: &&Value| event["runId"] == run;
        let last = whole.events.iter().rfind(of_run).unwrap();
        let mut more = last.clone();
        more["sequence"] = json!(last["sequence"].as_u64().unwrap() + 1);
        added.events.push(more);
        prop_assert_eq!(added.found(), Some((whole.entry_of(last), Break::Events)));
    }
}

#[test]
fn h3_nothing_is_a_valid_chain() {
    assert!(verify(&[], None, None).valid);
    assert_eq!(
        verify(&[], Some(Head::default()), Some(&[])).head,
        Head::default()
    );
}

#[test]
fn h3_each_break_names_what_was_due_and_what_is_there() {
    let whole = books(&[0, 3, 0, 1]);
    let hash = |at: usize, member: &str| hash_of(&whole.entries[at], member);
    let mut changed = whole.clone();
    changed.entries[1]["action"] = json!("other");
    let answer = changed.check();
    assert_eq!(answer.reason, Some(Break::Content));
    assert_eq!(answer.actual_previous_hash, hash(1, "eventHash"));
    // Whoever hashes the changed entry again breaks the link of the next one.
    let again = content_hash(changed.entries[1].clone());
    assert_eq!(answer.expected_previous_hash, Some(again));
    changed.entries[1]["eventHash"] = json!(again);
    let answer = changed.check();
    assert_eq!(answer.first_broken_sequence, Some(3));
    assert_eq!(answer.reason, Some(Break::Link));
    assert_eq!(answer.expected_previous_hash, Some(again));
    assert_eq!(answer.actual_previous_hash, hash(2, "previousHash"));
    // Whoever makes the whole tail again ends with another head.
    let answer = verify(&whole.entries, Some(books(&[0, 3, 0, 2]).head), None);
    assert_eq!(answer.first_broken_sequence, Some(4));
    assert_eq!(answer.reason, Some(Break::Head));
    assert_eq!(answer.actual_previous_hash, hash(3, "eventHash"));
    // A row beyond the head was never committed with it.
    let head = Head {
        sequence: 3,
        hash: hash(2, "eventHash").unwrap(),
    };
    let answer = verify(&whole.entries, Some(head), None);
    assert_eq!(answer.first_broken_sequence, Some(4));
    assert_eq!(answer.checked_through_sequence, 3);
    let mut other = whole.clone();
    other.events[2]["payload"] = json!(null);
    let answer = other.check();
    assert_eq!(answer.first_broken_sequence, Some(3));
    let metadata = &whole.entries[2]["metadata"];
    assert_eq!(
        answer.expected_previous_hash,
        hash_of(metadata, "eventsHash")
    );
    assert_eq!(
        answer.actual_previous_hash,
        Some(events_hash(&other.events[2..4]))
    );
}

#[test]
fn h3_a_run_that_no_entry_knows_is_found_and_a_simulation_may_stand_outside() {
    let stray = |mode: &str| json!({"runId": "stray", "sequence": 1, "type": "run.queued", "payload": {"mode": mode}});
    let mut books = books(&[0, 3]);
    books.events.push(stray("simulate"));
    assert_eq!(books.found(), None);
    books.events.pop();
    books.events.push(stray("live"));
    let answer = books.check();
    assert_eq!(answer.first_broken_sequence, Some(3));
    assert_eq!(answer.checked_through_sequence, 2);
    assert_eq!(answer.reason, Some(Break::Events));
}

#[test]
fn v3_an_entry_of_a_simulation_need_not_say_its_events() {
    let draft = crate::audit::Draft {
        tenant_id: "default".into(),
        actor: crate::actor::Actor::Agent {
            run_id: "r".to_owned(),
            agent_id: "a".to_owned(),
            agent_name: "A".to_owned(),
        },
        origin: None,
        action: "run.simulated".to_owned(),
        subject: crate::audit::Subject {
            kind: "run".to_owned(),
            id: "tried".to_owned(),
        },
        metadata: json!({}),
        occurred_at: crate::time::Instant(1),
    };
    let sealed = draft.prepare().unwrap().seal(&Head::default());
    let mut check = Check::default();
    assert!(check.take(&crate::value::read(&sealed.text).unwrap()));
    assert!(check.take_run(&"tried".into(), 9));
    assert!(!check.take_run(&"stray".into(), 9));
    assert_eq!(check.finish(Some(sealed.head)).reason, Some(Break::Events));
}

#[test]
fn h1_an_entry_must_continue_its_run() {
    // The first two events of the run are given to no entry: a chain that was forged whole.
    let whole = books(&[0, 0]);
    let mut head = Head::default();
    let mut entry = whole.entries[1].clone();
    entry["sequence"] = json!(1);
    entry["previousHash"] = json!(head.hash);
    head.sequence = 1;
    head.hash = content_hash(entry.clone());
    entry["eventHash"] = json!(head.hash);
    let forged = Books {
        entries: vec![entry],
        events: whole.events[2..].to_vec(),
        head,
    };
    assert_eq!(forged.found(), Some((1, Break::Events)));
}

#[test]
fn h3_an_answer_has_the_members_of_the_seed() {
    let mut books = books(&[3, 3]);
    let valid = serde_json::to_value(books.check()).unwrap();
    assert_eq!(
        valid,
        json!({
            "valid": true, "checkedThroughSequence": 2,
            "head": {"sequence": 2, "hash": books.head.hash},
        })
    );
    books.entries.pop();
    let broken = serde_json::to_value(books.check()).unwrap();
    assert_eq!(
        broken,
        json!({
            "valid": false, "checkedThroughSequence": 1, "firstBrokenSequence": 2,
            "expectedPreviousHash": books.head.hash,
            "actualPreviousHash": books.entries[0]["eventHash"],
            "reason": "head", "head": {"sequence": 2, "hash": books.head.hash},
        })
    );
}
