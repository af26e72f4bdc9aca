//! Following a run live (server.md §5; seed A "Event stream and resume"): one notifier per
//! process, signed cursors, and the frames of one connection.

mod cursor;
mod follow;
mod frame;
mod hub;

pub use cursor::{CursorError, Cursors, Purpose};
pub use follow::{EventCursor, Follow, follow};
pub use hub::{Hub, Listener};

/// Events that one connection replays before it must come back (seed A).
pub const REPLAY: u32 = 100;
