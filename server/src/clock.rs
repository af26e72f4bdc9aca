//! The time that the shell sees (run-machine.md W5): a reading at start plus the monotonic
//! clock, so that a wall clock that is set back makes no lease live again. The reading is the
//! wall clock's, or the database's where several processes share one.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant as Monotonic, SystemTime, UNIX_EPOCH};

use sluicegate_core::time::Instant;

/// A clock that never runs back. Copies are the same clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    reading: u64,
    since: Monotonic,
    /// Milliseconds that it was set forward since.
    ahead: &'static AtomicU64,
}

impl Clock {
    /// Reads the wall clock, once.
    #[must_use]
    pub fn start() -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        Self::at(Instant(u64::try_from(wall).unwrap_or(u64::MAX)))
    }

    /// A clock that shows `now`.
    #[must_use]
    pub fn at(now: Instant) -> Self {
        Self {
            reading: now.0,
            since: Monotonic::now(),
            // A process has one clock; its word is never given back.
            ahead: Box::leak(Box::default()),
        }
    }

    /// Sets it forward to `now`, should it be behind.
    pub fn catch_up(&self, now: Instant) {
        let behind = now.since(self.unset());
        self.ahead.fetch_max(behind.0, Ordering::Relaxed);
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Instant {
        let ahead = self.ahead.load(Ordering::Relaxed);
        Instant(self.unset().0.saturating_add(ahead))
    }

    fn unset(&self) -> Instant {
        let since = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        Instant(self.reading.saturating_add(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w5_it_is_set_forward_and_never_back() {
        let clock = Clock::at(Instant(1_000));
        let copy = clock;
        clock.catch_up(Instant(5_000));
        assert!(copy.now().0 >= 5_000);
        clock.catch_up(Instant(2_000));
        assert!(copy.now().0 >= 5_000);
        assert!(copy.now().0 < 100_000);
    }
}
