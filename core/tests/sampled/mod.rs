//! The catalogue that the samples pin (samples/README.md), for the tests that run them.

use std::path::Path;

use serde_json::{Value, json};
use sluicegate_core::value;

/// `agents.json`, each at revision 1 and active, and `actions.json`.
pub(crate) fn catalogue() -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples");
    let read = |name: &str| {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        value::read(&text).unwrap()
    };
    let definitions = read("agents.json");
    let agents: Vec<Value> = definitions
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| {
            json!({"agentId": agent["agentId"], "revision": 1, "name": agent["name"],
                "status": "active", "provider": agent["provider"], "model": agent["model"],
                "structuredOutput": agent["structuredOutput"],
                "requiredPermissions": agent["requiredPermissions"]})
        })
        .collect();
    json!({"agents": agents, "actions": read("actions.json")})
}
