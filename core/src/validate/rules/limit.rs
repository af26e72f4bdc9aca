//! `graph.version-unsupported` and the limits, which end the judging when they are broken
//! (wire-format.md Q2, G1; seed A "Limits").

use super::report;
use crate::code::Code;
use crate::graph::{Graph, SCHEMA_VERSION};
use crate::limits::Limits;
use crate::validate::issue::{Issue, Location};
use crate::value;

pub(in crate::validate) fn check(graph: &Graph, limits: &Limits, issues: &mut Vec<Issue>) {
    if graph.schema_version != Some(SCHEMA_VERSION) {
        let found = match graph.schema_version {
            None => "The graph does not say its schemaVersion".to_owned(),
            Some(version) => format!("The schemaVersion {version} is not supported"),
        };
        let location = Location::graph_at("/schemaVersion");
        let message = format!("{found}; write {SCHEMA_VERSION}.");
        report(issues, Code::GraphVersionUnsupported, location, message);
        return;
    }
    let counts = [
        (
            Code::GraphTooManyNodes,
            "nodes",
            graph.nodes.len(),
            limits.nodes,
        ),
        (
            Code::GraphTooManyEdges,
            "edges",
            graph.edges.len(),
            limits.edges,
        ),
        (
            Code::GraphTooManySchemas,
            "schemas",
            graph.schemas.len(),
            limits.schemas,
        ),
    ];
    for (code, what, count, limit) in counts {
        if exceeds(count, limit) {
            let location = Location::graph_at(format!("/{what}"));
            let message = format!("The graph has {count} {what}; keep at most {limit}.");
            report(issues, code, location, message);
        }
    }
    match value::canonical_len_of(graph) {
        Ok(bytes) => {
            let limit = limits.graph_bytes;
            if exceeds(bytes, limit) {
                let message = format!(
                    "The graph's canonical JSON, layout included, is {bytes} bytes; shorten it to \
                     {limit}."
                );
                report(issues, Code::GraphTooLarge, Location::graph(), message);
            }
        }
        // Only a graph that was built by hand can hold what reading refuses (J1).
        Err(error) => {
            let location = Location::graph_at(error.pointer);
            let message = format!("The graph cannot be written as JSON: {}.", error.detail);
            report(issues, error.code, location, message);
        }
    }
}

fn exceeds(count: usize, limit: u64) -> bool {
    u64::try_from(count).is_ok_and(|count| count > limit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::limits::Limits;
    use crate::validate::cases::{found, found_within, sound};

    #[test]
    fn g8_only_version_1_is_judged() {
        for version in [json!(0), json!(2), json!(null)] {
            let mut graph = sound();
            // Would be reported too, were the rest judged.
            graph["nodes"][0]["label"] = json!("x".repeat(200));
            graph["schemaVersion"] = version.clone();
            if version.is_null() {
                graph.as_object_mut().unwrap().remove("schemaVersion");
            }
            let issues = ["graph.version-unsupported graph /schemaVersion"];
            assert_eq!(found(&graph), issues, "{version}");
        }
        assert!(found(&sound()).is_empty());
    }

    #[test]
    fn q2_limits_are_judged_first_and_end_the_judging() {
        let mut graph = sound();
        graph["nodes"][0]["label"] = json!("x".repeat(200));
        graph["schemas"] = json!({"a": true, "b": true});
        let exact = Limits {
            nodes: 2,
            edges: 1,
            schemas: 2,
            ..Limits::default()
        };
        assert!(
            !found_within(&graph, &exact)
                .iter()
                .any(|i| i.contains("too-"))
        );
        let tight = Limits {
            nodes: 1,
            edges: 0,
            schemas: 1,
            graph_bytes: 10,
            ..exact
        };
        let issues = [
            "graph.too-large graph",
            "graph.too-many-edges graph /edges",
            "graph.too-many-nodes graph /nodes",
            "graph.too-many-schemas graph /schemas",
        ];
        assert_eq!(found_within(&graph, &tight), issues);
    }

    #[test]
    fn g1_the_size_counts_the_layout() {
        let bytes =
            |graph: &serde_json::Value| u64::try_from(crate::value::canonical_len(graph)).unwrap();
        let mut graph = sound();
        let limits = Limits {
            graph_bytes: bytes(&graph),
            ..Limits::default()
        };
        assert!(found_within(&graph, &limits).is_empty());
        graph["layout"]["in"] = json!({"x": 1, "y": 1});
        assert_eq!(found_within(&graph, &limits), ["graph.too-large graph"]);
    }

    #[test]
    fn j1_a_graph_built_by_hand_cannot_hold_what_reading_refuses() {
        let mut graph = crate::graph::Graph::read(&sound()).unwrap();
        let far = json!({"maximum": 9_007_199_254_740_992_u64});
        graph.schemas.insert("far".into(), far);
        let issues = crate::validate::check(&graph, None, &Limits::default());
        let issues: Vec<_> = issues.iter().map(|issue| issue.code.as_str()).collect();
        assert_eq!(issues, ["json.number-range"]);
    }
}
