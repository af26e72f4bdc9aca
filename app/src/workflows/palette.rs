//! The palette: every node type, by click into the middle or by drag to a place.

use leptos::prelude::*;
use sluicegate_core::graph::NodeType;
use web_sys::PointerEvent;

use super::editor::Editor;
use crate::canvas::geometry::{CARD, Vec2, free_spot};
use crate::canvas::gesture::Item;
use crate::canvas::view::{family, picture, type_name};
use crate::state::edits;
use crate::ui::icon::icon;

/// The palette.
pub(crate) fn palette(editor: Editor) -> AnyView {
    let entry = move |node_type: NodeType| {
        // A drag that ends on the canvas adds there; anything else is a click.
        let dragged = StoredValue::new(false);
        let drop = move |event: PointerEvent| {
            let at = editor
                .canvas
                .seen_at(f64::from(event.client_x()), f64::from(event.client_y()));
            if let Some(at) = at {
                dragged.set_value(true);
                add(editor, node_type, at.minus(CARD.times(0.5)).snapped(8.0));
            }
        };
        let click = move |_| {
            if !dragged.get_value() {
                let graph = editor.document.now();
                let taken: Vec<_> = graph
                    .nodes
                    .iter()
                    .map(|node| editor.document.place(&node.id).get_untracked())
                    .collect();
                add(editor, node_type, free_spot(&taken, editor.canvas.middle()));
            }
            dragged.set_value(false);
        };
        view! {
            <li>
                <button
                    type="button"
                    class=format!("family-{}", family(node_type))
                    title="Click to add, or drag onto the canvas"
                    disabled=move || !editor.document.editable.get()
                    on:pointerdown=move |event| capture(&event)
                    on:pointerup=drop
                    on:click=click
                >
                    <span class="picture">{icon(picture(node_type))}</span>
                    {type_name(node_type)}
                </button>
            </li>
        }
    };
    view! {
        <nav class="palette" aria-label="Add a node">
            <h2>"Add"</h2>
            <ul>{NodeType::ALL.map(entry).collect_view()}</ul>
        </nav>
    }
    .into_any()
}

/// The button hears where the drag ends, wherever that is.
fn capture(event: &PointerEvent) {
    use wasm_bindgen::JsCast;
    let target = event
        .current_target()
        .and_then(|it| it.dyn_into::<web_sys::Element>().ok());
    if let Some(target) = target {
        // Refused only for a pointer that is already gone.
        let _ = target.set_pointer_capture(event.pointer_id());
    }
}

fn add(editor: Editor, node_type: NodeType, at: Vec2) {
    let document = editor.document;
    let id = document.edit("Add", |graph| edits::add_node(graph, node_type, at));
    let item = Item::Node(id);
    document.select_only([item.clone()]);
    editor.canvas.reveal(&item);
}
