//! The permissions there are (server.md §3; seed A "Authorization and audit").

/// See workflows, their drafts and revisions, and the catalogue.
pub const DEFINITIONS_READ: &str = "workflows.definitions.read";
/// Create, save, archive and delete workflows.
pub const DEFINITIONS_MANAGE: &str = "workflows.definitions.manage";
/// Publish a draft.
pub const DEFINITIONS_PUBLISH: &str = "workflows.definitions.publish";
/// See runs, their events, results and audit.
pub const RUNS_READ: &str = "workflows.runs.read";
/// Start, simulate and dry-run.
pub const RUNS_EXECUTE: &str = "workflows.runs.execute";
/// Cancel a run.
pub const RUNS_CANCEL: &str = "workflows.runs.cancel";

/// All of the server's own. What actions and agents ask for comes on top.
pub const ALL: [&str; 9] = [
    DEFINITIONS_READ,
    DEFINITIONS_MANAGE,
    DEFINITIONS_PUBLISH,
    RUNS_READ,
    RUNS_EXECUTE,
    RUNS_CANCEL,
    "agents.manage",
    "actions.read",
    "tenant.manage",
];
