//! The list of workflows and the editor of one (web.md §1, §2).

mod draft;
pub(crate) mod editor;
mod header;
pub(crate) mod list;
mod palette;
mod publish;
