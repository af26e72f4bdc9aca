//! The check of a chain: its links, the content of each entry, its head, and the events that
//! its entries hashed (run-machine.md H2, H3; seed A "Authorization and audit").
//!
//! An entry is checked as the JSON that it is and not as the type that it should be: whoever
//! damaged it need not have left it its shape, and a member that no type knows is hashed too.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Head, content_hash, events_hash};
use crate::ids::{Hash, RunId};
use crate::value::Value;

/// The answer of a check: the seed's, with `head` and `reason` (H3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Verification {
    /// Whether everything fits.
    pub valid: bool,
    /// The last entry up to which everything fits; 0: none.
    pub checked_through_sequence: u64,
    /// The first entry that does not fit; where entries before it are missing, more than one
    /// after it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_broken_sequence: Option<u64>,
    /// By `reason`: the hash of the entry before (`link`), of the entry's own content
    /// (`content`), of the head (`head`) or of the events by their entry (`events`).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expected_previous_hash: Option<Hash>,
    /// What there is instead: the entry's `previousHash`, its `eventHash`, the last entry's
    /// hash, or that of the events as they are. None where there is no hash at all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub actual_previous_hash: Option<Hash>,
    /// What kind of break.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<Break>,
    /// The head that was checked against; without one, the last entry that fits.
    pub head: Head,
}

/// How a chain can be broken (H3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Break {
    /// An entry does not name the one before it, or one is missing or too many.
    Link,
    /// An entry's content is not what was hashed.
    Content,
    /// The chain does not end where the head says.
    Head,
    /// A run's events are not those that the entries hashed.
    Events,
}

/// The events that an entry stands for (H1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Covered {
    /// The run.
    pub run_id: RunId,
    /// The first event.
    pub first: u64,
    /// The last event.
    pub last: u64,
    /// The hash over all of them.
    pub hash: Hash,
}

/// A check that goes along a chain, entry by entry, so that no chain is too long for it: of the
/// entries it keeps the last one's hash, and of each run whose events are checked two numbers.
///
/// The order of calls: [`Check::take`] for each entry; where events are checked too,
/// [`Check::take_events`] after each entry that [`Check::due`] names some for, and at the end
/// [`Check::take_run`] for each run; then [`Check::finish`].
#[derive(Debug, Clone, Default)]
pub struct Check {
    last: Head,
    due: Option<Covered>,
    /// Run → its last covered event and the entry that covers it.
    runs: BTreeMap<RunId, (u64, u64)>,
    /// Simulations whose entry says nothing of their events, as the first ones did (V3).
    unsaid: BTreeSet<RunId>,
    /// The first entry after which a run has events that no entry knows.
    stray: Option<u64>,
    broken: Option<Broken>,
}

#[derive(Debug, Clone, Copy)]
struct Broken {
    sequence: u64,
    /// The last entry up to which everything fits.
    through: u64,
    expected: Option<Hash>,
    actual: Option<Hash>,
    reason: Break,
}

impl Check {
    /// Takes the next entry, as it is stored; one that cannot even be read may be `null`.
    /// `false`: the chain is broken here or was before, and the rest needs no look.
    pub fn take(&mut self, entry: &Value) -> bool {
        if self.broken.is_some() {
            return false;
        }
        self.due = None;
        let at = self.last.sequence + 1;
        let previous = hash_of(entry, "previousHash");
        let said = hash_of(entry, "eventHash");
        let content = content_hash(entry.clone());
        let links = count(entry, "sequence") == Some(at) && previous == Some(self.last.hash);
        if entry.is_object() && !links {
            // Where entries are missing, the one that stands after them, whole in itself, is the
            // first broken.
            let whole = said == Some(content);
            let named = count(entry, "sequence").filter(|_| whole);
            let at = named.map_or(at, |named| named.max(at));
            self.break_at(at, Some(self.last.hash), previous, Break::Link);
        } else if said != Some(content) {
            self.break_at(at, Some(content), said, Break::Content);
        } else {
            self.last = Head {
                sequence: at,
                hash: content,
            };
            self.due = Covered::of(entry);
            if self.due.is_none() {
                self.unsaid.extend(simulation(entry));
            }
        }
        self.broken.is_none()
    }

    /// The events that the entry taken last stands for; none where it is not about events.
    #[must_use]
    pub fn due(&self) -> Option<&Covered> {
        self.due.as_ref()
    }

    /// Takes the full events that [`Check::due`] names, in order, as far as they are there.
    /// `false`: they are not what the entry hashed, or the entry does not continue its run.
    pub fn take_events(&mut self, events: &[Value]) -> bool {
        let (None, Some(due)) = (self.broken, self.due.take()) else {
            return self.broken.is_none();
        };
        let at = self.last.sequence;
        let actual = events_hash(events);
        if actual != due.hash || due.first != self.covered(&due.run_id) + 1 {
            self.break_at(at, Some(due.hash), Some(actual), Break::Events);
            return false;
        }
        self.runs.insert(due.run_id, (due.last, at));
        true
    }

    /// The last event of a run that the entries taken so far stand for; 0: none.
    #[must_use]
    pub fn covered(&self, run_id: &RunId) -> u64 {
        self.runs.get(run_id).map_or(0, |(last, _)| *last)
    }

    /// Says how far a run's stored events go, once all entries were taken. `false`: there
    /// are more than the chain knows. The run's last entry is then the broken one, or where it
    /// has none, the next one, unless the chain itself is broken.
    pub fn take_run(&mut self, run_id: &RunId, last_event: u64) -> bool {
        let known = self.runs.get(run_id).copied();
        if known.is_none() && self.unsaid.contains(run_id) {
            return true;
        }
        let (covered, entry) = known.unwrap_or((0, self.last.sequence + 1));
        if last_event != covered {
            self.stray = Some(self.stray.map_or(entry, |stray| stray.min(entry)));
        }
        last_event == covered
    }

    /// The answer, once all entries were taken. `head`: what is kept apart from the chain.
    #[must_use]
    pub fn finish(mut self, head: Option<Head>) -> Verification {
        if let (None, Some(head)) = (self.broken, head)
            && head != self.last
        {
            // The same entry with another hash is itself the broken one.
            let at = if head.sequence == self.last.sequence {
                head.sequence.max(1)
            } else {
                self.last.sequence.min(head.sequence) + 1
            };
            self.break_at(at, Some(head.hash), Some(self.last.hash), Break::Head);
        }
        if let (None, Some(at)) = (self.broken, self.stray) {
            self.break_at(at, None, None, Break::Events);
        }
        let broken = self.broken;
        Verification {
            valid: broken.is_none(),
            checked_through_sequence: broken.map_or(self.last.sequence, |broken| broken.through),
            first_broken_sequence: broken.map(|broken| broken.sequence),
            expected_previous_hash: broken.and_then(|broken| broken.expected),
            actual_previous_hash: broken.and_then(|broken| broken.actual),
            reason: broken.map(|broken| broken.reason),
            head: head.unwrap_or(self.last),
        }
    }

    /// `sequence` is at least 1.
    fn break_at(
        &mut self,
        sequence: u64,
        expected: Option<Hash>,
        actual: Option<Hash>,
        reason: Break,
    ) {
        self.broken = Some(Broken {
            sequence,
            through: self.last.sequence.min(sequence - 1),
            expected,
            actual,
            reason,
        });
    }
}

impl Covered {
    /// Which events an entry stands for, by what it says (H1).
    #[must_use]
    pub fn of(entry: &Value) -> Option<Self> {
        let subject = entry.get("subject")?;
        let metadata = entry.get("metadata")?;
        if subject.get("kind")?.as_str() != Some("run") {
            return None;
        }
        Some(Self {
            run_id: subject.get("id")?.as_str()?.into(),
            first: count(metadata, "firstSequence")?,
            last: count(metadata, "lastSequence")?,
            hash: hash_of(metadata, "eventsHash")?,
        })
    }
}

/// Checks a whole chain, its entries in order from the first: against its head, where one is
/// known, and against the full events of all runs (in any order), where they are given.
#[must_use]
pub fn verify(entries: &[Value], head: Option<Head>, events: Option<&[Value]>) -> Verification {
    let runs = events.map(by_run);
    let mut check = Check::default();
    for entry in entries {
        if !check.take(entry) {
            break;
        }
        if let (Some(runs), Some(due)) = (&runs, check.due()) {
            let run = runs.get(due.run_id.as_str()).map_or(&[][..], Vec::as_slice);
            let due = run
                .iter()
                .filter(|(sequence, _)| (due.first..=due.last).contains(sequence))
                .map(|(_, event)| Value::clone(event));
            if !check.take_events(&due.collect::<Vec<_>>()) {
                break;
            }
        }
    }
    for (run_id, events) in runs.into_iter().flatten() {
        // H1 speaks of live runs: a simulation may stand outside, but not be half inside.
        if check.covered(&run_id.into()) == 0
            && events.first().is_some_and(|(_, event)| is_simulated(event))
        {
            continue;
        }
        check.take_run(&run_id.into(), events.last().map_or(0, |(last, _)| *last));
    }
    check.finish(head)
}

/// Full events by run, each run's in order of sequence. What names no run or no sequence
/// belongs to the run without a name, which no entry covers.
fn by_run(events: &[Value]) -> BTreeMap<&str, Vec<(u64, &Value)>> {
    let mut runs: BTreeMap<&str, Vec<(u64, &Value)>> = BTreeMap::new();
    for event in events {
        let run_id = event.get("runId").and_then(Value::as_str);
        let (run_id, sequence) = match (run_id, count(event, "sequence")) {
            (Some(run_id), Some(sequence)) => (run_id, sequence),
            _ => ("", 1),
        };
        runs.entry(run_id).or_default().push((sequence, event));
    }
    for events in runs.values_mut() {
        events.sort_by_key(|(sequence, _)| *sequence);
    }
    runs
}

fn is_simulated(first: &Value) -> bool {
    let mode = first.pointer("/payload/mode");
    mode.and_then(Value::as_str) == Some("simulate")
}

/// The run that an entry says was simulated.
fn simulation(entry: &Value) -> Option<RunId> {
    let simulated = entry.get("action")?.as_str() == Some("run.simulated");
    let id = entry.get("subject")?.get("id")?.as_str()?;
    simulated.then(|| id.into())
}

fn count(object: &Value, name: &str) -> Option<u64> {
    object.get(name)?.as_u64()
}

fn hash_of(object: &Value, name: &str) -> Option<Hash> {
    Hash::parse(object.get(name)?.as_str()?)
}

#[cfg(test)]
mod tests;
