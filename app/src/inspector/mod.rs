//! The inspector (web.md §2): what is selected, its words and its configuration as JSON,
//! with errors in place.

mod configuration;

use leptos::prelude::*;
use sluicegate_core::graph::{Direction, Edge, Endpoint, Graph, Node};
use sluicegate_core::ids::{EdgeId, NodeId, SchemaId};
use sluicegate_core::limits::Limits;
use sluicegate_core::schema::BUILT_IN;
use sluicegate_core::validate::Location;

use crate::canvas::gesture::Item;
use crate::canvas::view::{family, picture, type_name};
use crate::state::connect::port_schema;
use crate::state::edits;
use crate::ui::fold;
use crate::ui::icon::{Icon, icon};
use crate::ui::json_field::{json_field, pretty};
use crate::workflows::editor::Editor;

/// The panel. It is drawn again when another thing is selected or its document changed (B139).
pub(crate) fn inspector(editor: Editor) -> AnyView {
    let document = editor.document;
    let several = Memo::new(move |_| document.selection().len());
    let selected = Memo::new(move |_| document.selected());
    (move || match (several.get(), selected.get()) {
        (0, _) => workflow(editor),
        (_, Some(Item::Node(id))) => node(editor, id),
        (_, Some(Item::Edge(id))) => edge(editor, id),
        (n, None) => view! {
            <h2>{format!("{n} selected")}</h2>
            <p class="muted">"Drag to move them together. Delete removes them with their edges."</p>
        }
        .into_any(),
    })
    .into_any()
}

/// Nothing is selected: the workflow itself.
fn workflow(editor: Editor) -> AnyView {
    let document = editor.document;
    let row = editor.workflow.with_value(|it| it.row.clone());
    let counts = move || {
        document.with(|graph| format!("{} nodes, {} edges", graph.nodes.len(), graph.edges.len()))
    };
    let text = RwSignal::new(String::new());
    let error = RwSignal::new(None);
    Effect::new(move |_| {
        let schemas =
            document.with(|graph| serde_json::to_value(&graph.schemas).unwrap_or_default());
        text.set(pretty(&schemas));
        error.set(None);
    });
    let apply = move |typed: String| match configuration::read_schemas(&typed) {
        Ok(schemas) => {
            error.set(None);
            document.edit("Change schemas", |graph| graph.schemas = schemas);
        }
        Err(reason) => error.set(Some(reason)),
    };
    let field = json_field(
        "By id, as JSON",
        text,
        move || error.get(),
        move || !document.editable.get(),
        apply,
    );
    let names = move || document.with(|graph| graph.schemas.len().to_string());
    let description = (!row.description.is_empty())
        .then(|| view! { <p dir="auto">{row.description.clone()}</p> });
    view! {
        <h2>"Workflow"</h2>
        {description}
        <dl class="facts">
            <dt>"Key"</dt>
            <dd class="mono">{row.key.to_string()}</dd>
            <dt>"Size"</dt>
            <dd>{counts}</dd>
        </dl>
        {fold("Schemas", names, || false, field)}
        <p class="muted">"Select a node or an edge to see and change it. Drag from a port to connect."</p>
    }
    .into_any()
}

fn node(editor: Editor, id: NodeId) -> AnyView {
    let document = editor.document;
    let Some(now) = document.now().node(id.as_str()).cloned() else {
        return ().into_any();
    };
    let kind = now.node_type();
    let read = {
        let id = id.clone();
        move || document.with(|graph| graph.node(id.as_str()).cloned())
    };
    let label = {
        let read = read.clone();
        move || read().and_then(|node| node.label).unwrap_or_default()
    };
    let description = {
        let read = read.clone();
        move || read().and_then(|node| node.description).unwrap_or_default()
    };
    let set_label = {
        let id = id.clone();
        move |text: String| change(editor, "Rename", &id, |node| node.label = some(text))
    };
    let set_description = {
        let id = id.clone();
        move |text: String| {
            change(editor, "Describe", &id, |node| {
                node.description = some(text)
            })
        }
    };
    let ports = kind
        .ports()
        .iter()
        .map(|port| port_row(editor, &id, port))
        .collect_view();
    view! {
        <h2 class=format!("with-picture family-{}", family(kind))>
            <span class="picture">{icon(picture(kind))}</span>
            {type_name(kind)}
        </h2>
        {issues(editor, Item::Node(id.clone()))}
        {line_field("Label", label, set_label, editor)}
        {area_field("Description", description, set_description, editor)}
        <section class="group">
            <h3>"Ports"</h3>
            <datalist id="schema-ids">{schema_options(editor)}</datalist>
            {ports}
        </section>
        {configuration::field(editor, &id)}
        <p class="muted">"Node " <span class="mono">{id.to_string()}</span></p>
    }
    .into_any()
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Changes one node as a step of the history.
fn change(editor: Editor, name: &'static str, id: &NodeId, with: impl FnOnce(&mut Node)) {
    editor.document.edit(name, |graph| {
        if let Some(mut node) = graph.node(id.as_str()).cloned() {
            with(&mut node);
            edits::replace_node(graph, node);
        }
    });
}

fn line_field(
    name: &'static str,
    value: impl Fn() -> String + Send + Sync + 'static,
    set: impl Fn(String) + 'static,
    editor: Editor,
) -> AnyView {
    view! {
        <label class="field">
            <span class="label">{name}</span>
            <input
                type="text"
                dir="auto"
                maxlength=Limits::LABEL_CHARS.to_string()
                disabled=move || !editor.document.editable.get()
                prop:value=value
                on:change=move |event| set(event_target_value(&event))
            />
        </label>
    }
    .into_any()
}

fn area_field(
    name: &'static str,
    value: impl Fn() -> String + Send + Sync + 'static,
    set: impl Fn(String) + 'static,
    editor: Editor,
) -> AnyView {
    view! {
        <label class="field">
            <span class="label">{name}</span>
            <textarea
                dir="auto"
                rows="2"
                maxlength=Limits::DESCRIPTION_CHARS.to_string()
                disabled=move || !editor.document.editable.get()
                prop:value=value
                on:change=move |event| set(event_target_value(&event))
            ></textarea>
        </label>
    }
    .into_any()
}

/// A port and its schema: fixed ones are shown, the others chosen.
fn port_row(editor: Editor, id: &NodeId, port: &'static sluicegate_core::graph::Port) -> AnyView {
    let document = editor.document;
    let side = if port.direction == Direction::Input {
        "in"
    } else {
        "out"
    };
    let schema = {
        let id = id.clone();
        move || {
            let schema = document.with(|graph| port_schema(graph.node(id.as_str())?, port));
            schema.map_or(String::new(), |schema| schema.to_string())
        }
    };
    if let Some(fixed) = port.fixed_schema {
        return view! {
            <div class="port-row">
                <span class="name">{port.name}</span>
                <span class="side-name">{side}</span>
                <span class="mono muted">{fixed}</span>
            </div>
        }
        .into_any();
    }
    let id = id.clone();
    let set = move |event: web_sys::Event| {
        let schema = event_target_value(&event);
        change(editor, "Change a schema", &id, |node| {
            if schema.is_empty() {
                node.ports.remove(port.name);
            } else {
                node.ports
                    .insert(port.name.to_owned(), SchemaId::from(schema));
            }
        });
    };
    view! {
        <label class="port-row">
            <span class="name">{port.name}</span>
            <span class="side-name">{side}</span>
            <input
                type="text"
                class="mono"
                list="schema-ids"
                placeholder="schema"
                spellcheck="false"
                aria-label=format!("Schema of {}", port.name)
                disabled=move || !document.editable.get()
                prop:value=schema
                on:change=set
            />
        </label>
    }
    .into_any()
}

fn schema_options(editor: Editor) -> AnyView {
    (move || {
        let own = editor.document.with(|graph| {
            graph
                .schemas
                .keys()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        });
        let all = own.into_iter().chain(BUILT_IN.map(str::to_owned));
        all.map(|id| view! { <option value=id></option> })
            .collect_view()
    })
    .into_any()
}

fn edge(editor: Editor, id: EdgeId) -> AnyView {
    let document = editor.document;
    let graph = document.now();
    let Some(edge) = graph.edge(id.as_str()) else {
        return ().into_any();
    };
    let end = |end: &Endpoint| {
        let title = graph
            .node(end.node_id.as_str())
            .map_or(end.node_id.as_str(), Node::title);
        let schema = schema_at(&graph, end).map(|schema| format!(" · {schema}"));
        view! { <bdi>{title.to_owned()}</bdi> <span class="mono muted">" " {end.port.clone()} {schema}</span> }
    };
    let label = {
        let id = id.clone();
        move || {
            document
                .with(|graph| graph.edge(id.as_str()).and_then(|edge| edge.label.clone()))
                .unwrap_or_default()
        }
    };
    let set = {
        let id = id.clone();
        move |text: String| {
            document.edit("Label an edge", |graph| {
                let found = |edge: &&mut Edge| edge.id == id;
                if let Some(edge) = graph.edges.iter_mut().find(found) {
                    edge.label = some(text);
                }
            });
        }
    };
    view! {
        <h2>"Edge"</h2>
        {issues(editor, Item::Edge(id.clone()))}
        <dl class="facts">
            <dt>"From"</dt>
            <dd>{end(&edge.source)}</dd>
            <dt>"To"</dt>
            <dd>{end(&edge.target)}</dd>
        </dl>
        {line_field("Label", label, set, editor)}
        <p class="muted">"Edge " <span class="mono">{id.to_string()}</span></p>
    }
    .into_any()
}

fn schema_at(graph: &Graph, end: &Endpoint) -> Option<SchemaId> {
    let node = graph.node(end.node_id.as_str())?;
    port_schema(node, node.node_type().port(&end.port)?)
}

/// What is wrong with the selected thing.
fn issues(editor: Editor, item: Item) -> AnyView {
    (move || {
        let issues = editor.issues.get();
        let of_it = issues
            .iter()
            .filter(|issue| crate::problems::item(issue).as_ref() == Some(&item));
        let line = |issue: &sluicegate_core::validate::Issue| {
            let (picture, tone) = if issue.is_error() {
                (Icon::Error, "danger")
            } else {
                (Icon::Warning, "waiting")
            };
            let place = match &issue.location {
                Location::Node { path, .. } | Location::Edge { path, .. } => path.clone(),
                _ => None,
            };
            view! {
                <li data-tone=tone>
                    {icon(picture)}
                    <span>{issue.message.clone()} " " <span class="mono muted">{place}</span></span>
                </li>
            }
        };
        let lines: Vec<_> = of_it.map(line).collect();
        (!lines.is_empty()).then(|| view! { <ul class="own-issues">{lines}</ul> })
    })
    .into_any()
}
