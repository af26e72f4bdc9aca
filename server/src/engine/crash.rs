//! Named points at which a process can be made to stand still, to be killed there as the
//! kernel kills (architecture.md "Tests", Crash). Production builds have them too, so that
//! what is tested is what runs; without `SLUICEGATE_CRASH_AT` each is one comparison.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! points {
    ($($name:ident = $text:literal, $doc:literal;)*) => {
        /// Where a process can be killed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    BeforeSave = "before-save", "A draft is about to be saved.";
    AfterSave = "after-save", "The draft is durable, the caller is not told yet.";
    BeforePublish = "before-publish", "A revision is compiled, not durable.";
    AfterPublish = "after-publish", "The revision is durable, the caller is not told yet.";
    BeforeEnqueue = "before-enqueue", "The run is decided, not durable.";
    AfterEnqueue = "after-enqueue", "The run is durable, the caller is not told yet.";
    BeforeClaim = "before-claim", "A run was found, its claim is not durable.";
    AfterClaim = "after-claim", "The claim is durable, nothing else is.";
    BeforeIntent = "before-intent", "The next child is decided, nothing is durable.";
    AfterIntent = "after-intent", "The intent is durable, nothing follows from it yet.";
    BeforeChildStart = "before-child-start", "An intent is durable whose child is to be found.";
    AfterChildStart = "after-child-start", "The child is durable, it is not executed.";
    DuringChild = "during-child", "The child's effect may be done, its end is not durable.";
    AfterChildEnd = "after-child-end", "The child's end is known, its settlement is not durable.";
    BeforeSettlement = "before-settlement", "What a child said is decided, not durable.";
    AfterSettlement = "after-settlement", "What a child said is durable.";
    BeforeRetry = "before-retry", "A retry is decided, its time is not durable.";
    AfterRetry = "after-retry", "The retry's time is durable, the lease went back with it.";
    BeforeCancel = "before-cancel", "A cancellation is decided, not durable.";
    AfterCancel = "after-cancel", "The cancellation is durable, nobody was told.";
    BeforeEnd = "before-end", "The end is decided, not durable.";
    AfterEnd = "after-end", "The end is durable, nobody was told.";
    BeforeRetention = "before-retention", "What goes is named, nothing is durable.";
    AfterRetention = "after-retention", "What goes is named durably, all of it is there.";
    BeforeDeletion = "before-deletion", "What was named, now or before, is about to go.";
    DuringDeletion = "during-deletion", "A part of what was named is gone.";
    BeforeRenewal = "before-renewal", "A lease is about to be renewed.";
    AfterRenewal = "after-renewal", "A lease was renewed.";
    BeforeDatabaseCommit = "before-database-commit", "A transaction's statements are done.";
    AfterDatabaseCommit = "after-database-commit", "A transaction is durable, nobody was told.";
}

/// The point that was asked for, and how often it was passed.
struct Asked {
    point: CrashPoint,
    nth: u32,
    passed: AtomicU32,
}

/// Stands still here for ever, if this is the point that was asked for: `<name>`, or
/// `<name>:<n>` for the n-th time that it is passed. Says so on standard output, so that
/// whoever asked can kill the process. The other threads go on until then.
pub fn at(point: CrashPoint) {
    static ASKED: OnceLock<Option<Asked>> = OnceLock::new();
    let asked = ASKED.get_or_init(|| read(&std::env::var("SLUICEGATE_CRASH_AT").ok()?));
    if let Some(asked) = asked
        && asked.point == point
        && asked.passed.fetch_add(1, Ordering::SeqCst) + 1 == asked.nth
    {
        let mut out = std::io::stdout();
        let said = writeln!(out, "stands still at {}", point.as_str());
        // Nobody listens who could be told that this failed.
        let _ = said.and_then(|()| out.flush());
        loop {
            std::thread::park();
        }
    }
}

fn read(text: &str) -> Option<Asked> {
    let (name, nth) = match text.split_once(':') {
        None => (text, 1),
        Some((name, nth)) => (name, nth.parse().ok()?),
    };
    let mut points = CrashPoint::ALL.iter().copied();
    Some(Asked {
        point: points.find(|point| point.as_str() == name)?,
        nth,
        passed: AtomicU32::new(0),
    })
}
