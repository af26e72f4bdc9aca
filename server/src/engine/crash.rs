//! Named points at which a process can be made to die as if it were killed (architecture.md
//! "Tests", Crash). Production builds have them too, so that what is tested is what runs;
//! without `SLUICEGATE_CRASH_AT` each is one comparison.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! points {
    ($($name:ident = $text:literal, $doc:literal;)*) => {
        /// Where a process can die.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum CrashPoint { $(#[doc = $doc] $name,)* }

        impl CrashPoint {
            /// All points.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name in `SLUICEGATE_CRASH_AT`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

points! {
    AfterEnqueue = "after-enqueue", "The run is durable, the caller is not told yet.";
    AfterClaim = "after-claim", "The lease is held, `run.claimed` is not durable.";
    BeforeIntent = "before-intent-commit", "The next child is decided, nothing is durable.";
    AfterIntent = "after-intent-commit", "The intent is durable, the child is not called.";
    AfterChildStart = "after-child-start", "The child is durable, its acceptance is not.";
    DuringChild = "during-child", "The child's effect may be done, its end is not durable.";
    AfterChildEnd = "after-child-end", "The child's end is durable, its settlement is not.";
    BeforeEnd = "before-terminal-commit", "The end is decided, not durable.";
    AfterEnd = "after-terminal-commit", "The end is durable, nobody was told.";
    BeforeRetention = "before-retention-commit", "What goes is named, nothing is durable.";
    BeforeDeletion = "before-deletion", "What goes is named durably, all of it is there.";
    DuringDeletion = "during-deletion", "A part of what was named is gone.";
}

/// Dies here, if this is the point that was asked for: `<name>`, or `<name>:<n>` for the n-th
/// time that it is passed. No destructor runs and nothing is flushed, as after `kill -9`.
pub fn at(point: CrashPoint) {
    static ASKED: OnceLock<Option<(String, u32)>> = OnceLock::new();
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let asked = ASKED.get_or_init(|| read(&std::env::var("SLUICEGATE_CRASH_AT").ok()?));
    if let Some((name, nth)) = asked
        && name == point.as_str()
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *nth
    {
        std::process::abort();
    }
}

fn read(text: &str) -> Option<(String, u32)> {
    match text.split_once(':') {
        None => Some((text.to_owned(), 1)),
        Some((name, nth)) => Some((name.to_owned(), nth.parse().ok()?)),
    }
}
