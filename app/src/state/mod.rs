//! What the screens share: the document being drawn, its saving, a run's overlay and its
//! playback (architecture.md `app/`).

pub(crate) mod connect;
pub(crate) mod document;
pub(crate) mod edits;
pub(crate) mod overlay;
pub(crate) mod playback;
pub(crate) mod saving;
