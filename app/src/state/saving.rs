//! Saving a draft with the expected revision, as a pure machine (web.md §2 "Autosave"):
//! one request at a time, the edits made meanwhile in one more, and nothing at all after a
//! conflict until a person has chosen.

/// How the document in the page relates to the server's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Saving {
    Saved,
    Unsaved,
    /// A request is under way; `again` when the document changed since.
    Sending {
        again: bool,
    },
    /// The last request failed; it is tried again.
    Failed {
        message: String,
        failures: u32,
    },
    /// The server has a version that this page never saw. Nothing is sent.
    Conflict {
        theirs: u64,
    },
}

/// The saving of one draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Saver {
    /// The draft version that the document in the page is based on.
    pub(crate) version: u64,
    pub(crate) saving: Saving,
}

/// How a save was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Saved { version: u64 },
    Conflict { theirs: u64 },
    Failed { message: String },
}

impl Saver {
    pub(crate) fn new(version: u64) -> Self {
        Self {
            version,
            saving: Saving::Saved,
        }
    }

    /// The document changed.
    pub(crate) fn edited(&mut self) {
        match &mut self.saving {
            Saving::Sending { again } => *again = true,
            Saving::Saved => self.saving = Saving::Unsaved,
            Saving::Unsaved | Saving::Failed { .. } | Saving::Conflict { .. } => {}
        }
    }

    /// Begins a request where one is due; answers the revision to expect.
    pub(crate) fn send(&mut self) -> Option<u64> {
        match self.saving {
            Saving::Unsaved | Saving::Failed { .. } => {
                self.saving = Saving::Sending { again: false };
                Some(self.version)
            }
            Saving::Saved | Saving::Sending { .. } | Saving::Conflict { .. } => None,
        }
    }

    /// The request was answered; `failures` so far come from the state before it.
    pub(crate) fn answered(&mut self, answer: Answer, failures: u32) {
        let again = matches!(self.saving, Saving::Sending { again: true });
        self.saving = match answer {
            Answer::Saved { version } => {
                self.version = version;
                if again {
                    Saving::Unsaved
                } else {
                    Saving::Saved
                }
            }
            Answer::Conflict { theirs } => Saving::Conflict { theirs },
            Answer::Failed { message } => Saving::Failed {
                message,
                failures: failures.saturating_add(1),
            },
        };
    }

    /// How often the request failed in a row.
    pub(crate) fn failures(&self) -> u32 {
        match self.saving {
            Saving::Failed { failures, .. } => failures,
            _ => 0,
        }
    }

    /// When to send by itself, in milliseconds from the last change; never in a conflict.
    pub(crate) fn due_ms(&self) -> Option<i32> {
        match self.saving {
            Saving::Unsaved => Some(1_200),
            Saving::Failed { failures, .. } => Some(2_000_i32.saturating_mul(1 << failures.min(5))),
            Saving::Saved | Saving::Sending { .. } | Saving::Conflict { .. } => None,
        }
    }

    /// A person chose: what is in the page goes over the server's version…
    pub(crate) fn keep_mine(&mut self) {
        if let Saving::Conflict { theirs } = self.saving {
            *self = Self {
                version: theirs,
                saving: Saving::Unsaved,
            };
        }
    }

    /// …or the server's version was taken into the page.
    pub(crate) fn took_theirs(&mut self, version: u64) {
        *self = Self::new(version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b054_one_request_at_a_time_and_one_more_for_what_came_meanwhile() {
        let mut saver = Saver::new(7);
        saver.edited();
        assert_eq!(saver.send(), Some(7));
        saver.edited();
        saver.edited();
        assert_eq!(saver.send(), None);
        saver.answered(Answer::Saved { version: 8 }, 0);
        assert_eq!(saver.send(), Some(8));
        saver.answered(Answer::Saved { version: 9 }, 0);
        assert_eq!(saver.saving, Saving::Saved);
        assert_eq!(saver.send(), None);
    }

    #[test]
    fn b053_after_a_conflict_nothing_is_sent_until_a_person_chose() {
        let mut saver = Saver::new(7);
        saver.edited();
        saver.send();
        saver.answered(Answer::Conflict { theirs: 8 }, 0);
        for _ in 0..20 {
            saver.edited();
            assert_eq!(
                (saver.send(), saver.due_ms(), saver.version),
                (None, None, 7)
            );
        }
        let mut other = saver.clone();
        saver.keep_mine();
        assert_eq!(saver.send(), Some(8));
        other.took_theirs(8);
        assert_eq!((other.send(), &other.saving), (None, &Saving::Saved));
    }

    #[test]
    fn b055_failures_are_tried_again_with_growing_waits_and_a_conflict_ends_that() {
        let mut saver = Saver::new(1);
        saver.edited();
        let mut waits = Vec::new();
        for _ in 0..8 {
            let failures = saver.failures();
            saver.send();
            saver.answered(
                Answer::Failed {
                    message: "500".to_owned(),
                },
                failures,
            );
            waits.push(saver.due_ms().unwrap());
        }
        assert!(waits.is_sorted() && waits[0] < waits[3], "{waits:?}");
        assert_eq!(waits.last(), Some(&64_000));
        saver.send();
        saver.answered(Answer::Conflict { theirs: 5 }, 8);
        assert_eq!(saver.due_ms(), None);
    }
}
