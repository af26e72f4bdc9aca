//! How far a schema expands once every `$ref` is followed (S2): recursion, depth, number.

use std::collections::{BTreeMap, BTreeSet};

use super::Fault;
use crate::{code::Code, limits::Limits};

/// Every subschema by its pointer; a `$ref` may name only these.
pub(super) type Places = BTreeMap<String, Place>;

/// One subschema as the expansion sees it.
#[derive(Default)]
pub(super) struct Place {
    /// Pointers of the subschemas that apply wherever this one does.
    pub(super) children: Vec<String>,
    /// The pointer that `$ref` names.
    pub(super) target: Option<String>,
}

/// How far a subschema expands, `$ref` included.
#[derive(Clone, Copy)]
struct Extent {
    depth: usize,
    count: u64,
}

/// Adds the faults of a whole document. Every place is measured once, so a tree of `$ref` that
/// doubles at each step costs no more than its text.
pub(super) fn judge(places: &Places, faults: &mut Vec<Fault>) {
    let mut measured = BTreeMap::new();
    let mut whole = true;
    for pointer in places.keys() {
        whole &= measure(places, pointer, &mut measured, faults).is_some();
    }
    // A dangling or circular `$ref` has no extent, and was refused on the way.
    let Some(root) = measured.get("").copied().flatten().filter(|_| whole) else {
        return;
    };
    if root.count > Limits::SCHEMA_NODES as u64 {
        let message = format!(
            "the schema has more than {} subschemas once each \"$ref\" is expanded",
            Limits::SCHEMA_NODES
        );
        faults.push(fault(Code::SchemaTooLarge, String::new(), message));
    }
    if root.depth > Limits::SCHEMA_DEPTH {
        let message = format!(
            "more than {} schemas are nested, counted through \"$ref\"; make it flatter",
            Limits::SCHEMA_DEPTH
        );
        let at = deepest(places, &measured);
        faults.push(fault(Code::SchemaTooDeep, at, message));
    }
}

fn fault(code: Code, pointer: String, message: impl Into<String>) -> Fault {
    Fault {
        code,
        pointer,
        message: message.into(),
    }
}

/// `None` where the expansion does not end; the fault is noted once, at the `$ref`. A chain of
/// references is as long as a document may be, so the way down is kept here and not on the
/// machine's stack.
fn measure<'p>(
    places: &'p Places,
    from: &'p str,
    measured: &mut BTreeMap<&'p str, Option<Extent>>,
    faults: &mut Vec<Fault>,
) -> Option<Extent> {
    if let Some(known) = measured.get(from) {
        return *known;
    }
    let mut way = vec![Open::at(places, from)?];
    let mut open = BTreeSet::from([from]);
    while let Some(here) = way.last_mut() {
        let Some(below) = here.below.next().map(String::as_str) else {
            let (pointer, extent) = (here.pointer, here.extent);
            way.pop();
            open.remove(pointer);
            measured.insert(pointer, extent);
            if let Some(above) = way.last_mut() {
                above.hold(extent);
            }
            continue;
        };
        let wrong = if open.contains(below) {
            Some((
                Code::SchemaRecursive,
                "a schema must not refer to itself, directly or through others",
            ))
        } else if let Some(known) = measured.get(below) {
            here.hold(*known);
            None
        } else if let Some(next) = Open::at(places, below) {
            open.insert(below);
            way.push(next);
            None
        } else {
            Some((
                Code::SchemaInvalid,
                "\"$ref\" names a schema that is not there",
            ))
        };
        // Only a `$ref` leads back, or nowhere.
        if let (Some((code, message)), Some(here)) = (wrong, way.last_mut()) {
            here.extent = None;
            let at = format!("{}/$ref", here.pointer);
            faults.push(fault(code, at, message));
        }
    }
    measured.get(from).copied().flatten()
}

/// A subschema that is being measured.
struct Open<'p> {
    pointer: &'p str,
    /// What applies below it and was not looked at yet.
    below: std::iter::Chain<std::slice::Iter<'p, String>, std::option::Iter<'p, String>>,
    extent: Option<Extent>,
}

impl<'p> Open<'p> {
    /// `None` where no schema stands.
    fn at(places: &'p Places, pointer: &'p str) -> Option<Self> {
        let place = places.get(pointer)?;
        Some(Self {
            pointer,
            below: place.children.iter().chain(&place.target),
            extent: Some(Extent { depth: 1, count: 1 }),
        })
    }

    /// One subschema below it is measured.
    fn hold(&mut self, inner: Option<Extent>) {
        self.extent = self.extent.zip(inner).map(|(sum, inner)| Extent {
            depth: sum.depth.max(inner.depth + 1),
            count: sum.count.saturating_add(inner.count),
        });
    }
}

/// The pointer of the first subschema that lies too deep on the deepest way down.
fn deepest(places: &Places, measured: &BTreeMap<&str, Option<Extent>>) -> String {
    let mut at = String::new();
    for _ in 0..Limits::SCHEMA_DEPTH {
        let next = places.get(&at).and_then(|place| {
            place
                .children
                .iter()
                .chain(&place.target)
                .max_by_key(|below| {
                    let extent = measured.get(below.as_str()).copied().flatten();
                    extent.map_or(0, |extent| extent.depth)
                })
        });
        match next {
            Some(next) => at.clone_from(next),
            None => break,
        }
    }
    at
}
