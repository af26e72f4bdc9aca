//! A node's configuration and the graph's schemas as JSON, read back with the place of
//! whatever is wrong.

use std::collections::BTreeMap;

use leptos::prelude::*;
use sluicegate_core::graph::{Graph, Node};
use sluicegate_core::ids::{NodeId, SchemaId};
use sluicegate_core::value::{self, Map, Value};

use crate::state::edits;
use crate::ui::json_field::{json_field, pretty, read, sentence};
use crate::workflows::editor::Editor;

/// Members that have fields of their own.
const APART: [&str; 5] = ["id", "type", "label", "description", "ports"];

/// What a node's type has beyond what all nodes have.
fn configuration(node: &Node) -> Value {
    let mut document = value::to_value(node).unwrap_or_default();
    if let Value::Object(members) = &mut document {
        members.retain(|name, _| !APART.contains(&name.as_str()));
    }
    document
}

/// A node with another configuration, or why it is none.
fn configured(node: &Node, text: &str) -> Result<Node, String> {
    let Value::Object(own) = read(text)? else {
        return Err("A node's configuration is an object.".to_owned());
    };
    if let Some(name) = own.keys().find(|name| APART.contains(&name.as_str())) {
        return Err(format!("/{name}: it has its own field; remove it here."));
    }
    let Ok(Value::Object(mut members)) = value::to_value(node) else {
        return Err("The node cannot be written.".to_owned());
    };
    members.retain(|name, _| APART.contains(&name.as_str()));
    members.extend(own);
    let document = Map::from_iter([("nodes".to_owned(), Value::Array(vec![members.into()]))]);
    let graph = Graph::read(&document.into()).map_err(|mut error| {
        // The place is in the person's own text, not in the document around it.
        error.pointer = error.pointer.trim_start_matches("/nodes/0").to_owned();
        sentence(&error)
    })?;
    graph
        .nodes
        .into_iter()
        .next()
        .ok_or_else(|| "The node cannot be read.".to_owned())
}

/// Schemas by id, or why they are none. What is inside each is an issue, not a refusal (G8).
pub(super) fn read_schemas(text: &str) -> Result<BTreeMap<SchemaId, Value>, String> {
    match read(text)? {
        Value::Object(members) => Ok(members
            .into_iter()
            .map(|(id, schema)| (SchemaId::from(id), schema))
            .collect()),
        _ => Err("Schemas are an object: each member's name is a schema's id.".to_owned()),
    }
}

/// The field for a node's configuration; none for a type that has none.
pub(super) fn field(editor: Editor, id: &NodeId) -> AnyView {
    let document = editor.document;
    let text = RwSignal::new(String::new());
    let error = RwSignal::new(None);
    let now = {
        let id = id.clone();
        Memo::new(move |_| document.with(|graph| graph.node(id.as_str()).map(configuration)))
    };
    Effect::new(move |_| {
        text.set(now.get().map(|value| pretty(&value)).unwrap_or_default());
        error.set(None);
    });
    let id = id.clone();
    let has_any = document
        .now()
        .node(id.as_str())
        .is_some_and(|node| node.node_type() != sluicegate_core::graph::NodeType::Input);
    if !has_any {
        return ().into_any();
    }
    let apply = move |typed: String| {
        let Some(node) = document.now().node(id.as_str()).cloned() else {
            return;
        };
        match configured(&node, &typed) {
            Ok(node) => {
                error.set(None);
                document.edit("Configure", |graph| edits::replace_node(graph, node));
            }
            Err(reason) => error.set(Some(reason)),
        }
    };
    json_field(
        "Configuration",
        text,
        move || error.get(),
        move || !document.editable.get(),
        apply,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sluicegate_core::graph::NodeType;

    fn gate() -> Node {
        let mut node = Node::new("g", NodeType::Gate);
        node.label = Some("Small".to_owned());
        node
    }

    #[test]
    fn web2_a_configuration_is_read_back_and_keeps_the_rest() {
        let node = configured(
            &gate(),
            r#"{"logic": {"version": 1, "expr": {"literal": true}}}"#,
        )
        .unwrap();
        assert_eq!(node.label.as_deref(), Some("Small"));
        assert_eq!(
            configuration(&node),
            json!({"logic": {"version": 1, "expr": {"literal": true}}})
        );
    }

    #[test]
    fn j4_what_is_wrong_is_named_by_its_place() {
        let refused = |text| configured(&gate(), text).unwrap_err();
        assert!(refused(r#"{"logic": {"version": "1"}}"#).starts_with("/logic/version: "));
        assert!(refused(r#"{"logik": {}}"#).starts_with("/logik: "));
        assert!(refused(r#"{"id": "x"}"#).starts_with("/id: "));
        assert!(refused("{\n  \"logic\": ").starts_with("Line 2, column "));
        assert!(refused("[]").contains("object"));
        assert!(read_schemas("3").is_err());
        assert_eq!(read_schemas(r#"{"claim": {"type": 7}}"#).unwrap().len(), 1);
    }
}
