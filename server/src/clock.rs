//! The time that the shell sees (run-machine.md W5): the wall clock at start plus the
//! monotonic one, so that a wall clock that is set back makes no lease live again.

use std::time::{Instant as Monotonic, SystemTime, UNIX_EPOCH};

use sluicegate_core::time::Instant;

/// A clock that never runs back.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: u64,
    since: Monotonic,
}

impl Clock {
    /// Reads the wall clock, once.
    #[must_use]
    pub fn start() -> Self {
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis());
        Self {
            wall: u64::try_from(wall).unwrap_or(u64::MAX),
            since: Monotonic::now(),
        }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Instant {
        let since = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        Instant(self.wall.saturating_add(since))
    }
}
