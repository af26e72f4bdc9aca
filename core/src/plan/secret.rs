//! Where what a payload holds is marked secret, there or at any node that it reaches
//! (wire-format.md S5): by the schemas that it passes unchanged, inside a merge's items, and at
//! the place that a mapping or a template carries a part of it to. Evidence is never made again,
//! so a value that a later node marks must be known as a secret from the start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{NodeIndex, Plan, Task};
use crate::mapping::{Binding, Part, Source};
use crate::node_type::NodeType;
use crate::schema::Schema;
use crate::value::{Map, Pointer, Value};

/// A schema that judges a payload, or a part of it, at some node.
#[derive(Debug, Clone)]
pub struct Mark {
    carried: Carried,
    schema: Arc<Schema>,
}

/// Which part of a payload comes to a node, and where it stands in what comes there.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Carried {
    take: Pointer,
    put: Vec<Step>,
}

/// One level around a carried part, from outside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Member(String),
    /// Of a merge, whichever.
    Item,
}

/// Node and port → the marks of what stands there; a node's effective input as port `input`.
pub(super) type Marks = BTreeMap<(NodeIndex, &'static str), Vec<Mark>>;

impl Mark {
    /// What the schema judges of a payload: the payload itself, or the part of it that comes
    /// to the node, alone in its place.
    pub fn judged<R>(
        &self,
        payload: &Value,
        judge: impl FnOnce(&Schema, &Value) -> R,
    ) -> Option<R> {
        let part = self.carried.take.read(payload)?;
        if self.carried.put.is_empty() {
            return Some(judge(&self.schema, part));
        }
        let steps = self.carried.put.iter().rev();
        let placed = steps.fold(part.clone(), |inside, step| match step {
            Step::Item => Value::Array(vec![inside]),
            Step::Member(name) => Value::Object(Map::from_iter([(name.clone(), inside)])),
        });
        Some(judge(&self.schema, &placed))
    }
}

impl Carried {
    /// What a mapping reads of it, if the place that it reads has anything to do with it.
    fn read(&self, pointer: &Pointer) -> Option<Self> {
        let tokens = pointer.tokens();
        let fits = self.put.iter().zip(tokens).all(|(step, token)| match step {
            Step::Item => true,
            Step::Member(name) => name == token,
        });
        if !fits {
            return None;
        }
        let inside = tokens.get(self.put.len()..).unwrap_or_default();
        Some(Self {
            take: inside
                .iter()
                .fold(self.take.clone(), |at, token| at.child(token)),
            put: self.put.get(tokens.len()..).unwrap_or_default().to_vec(),
        })
    }

    /// The same inside something more.
    fn inside(&self, around: impl Iterator<Item = Step>) -> Self {
        Self {
            take: self.take.clone(),
            put: around.chain(self.put.iter().cloned()).collect(),
        }
    }
}

/// The marks of every port and every effective input.
pub(super) fn of(plan: &Plan) -> Marks {
    let mut readers: Readers<'_> = BTreeMap::new();
    for index in plan.node_indices() {
        for mapping in &plan.node(index).mappings {
            for source in sources(&mapping.binding) {
                let port = (source.node_id.as_str(), source.port.as_str());
                let reader = (index, &source.pointer, &mapping.target);
                readers.entry(port).or_default().push(reader);
            }
        }
    }
    let mut marks = Marks::new();
    for index in plan.node_indices() {
        for port in plan.node(index).task.node_type().ports() {
            let mut search = Search {
                plan,
                readers: &readers,
                seen: BTreeSet::new(),
                found: Vec::new(),
            };
            match port.name {
                "input" => search.enter(index, &Carried::default()),
                "items" => continue,
                name => search.stand(index, name, &Carried::default()),
            }
            if !search.found.is_empty() {
                marks.insert((index, port.name), search.found);
            }
        }
    }
    marks
}

/// Node and port → who reads there, what, and to where.
type Readers<'p> = BTreeMap<(&'p str, &'p str), Vec<(NodeIndex, &'p Pointer, &'p Pointer)>>;

struct Search<'p> {
    plan: &'p Plan,
    readers: &'p Readers<'p>,
    /// What came where already; a payload can come to a node through merges and beside them.
    seen: BTreeSet<(NodeIndex, &'static str, Vec<Step>)>,
    found: Vec<Mark>,
}

impl Search<'_> {
    fn mark(&mut self, schema: &Arc<Schema>, carried: &Carried) {
        if schema.holds_secret() {
            self.found.push(Mark {
                carried: carried.clone(),
                schema: Arc::clone(schema),
            });
        }
    }

    /// It stands at an output port.
    fn stand(&mut self, index: NodeIndex, port: &str, carried: &Carried) {
        let (_, schema) = self.plan.port_schema(index, port);
        self.mark(schema, carried);
        let id = self.plan.node(index).id.as_str();
        for (reader, pointer, target) in self.readers.get(&(id, port)).into_iter().flatten() {
            if let Some(part) = carried.read(pointer) {
                let around = target.tokens().iter().cloned().map(Step::Member);
                let (_, schema) = self.plan.port_schema(*reader, "input");
                self.mark(schema, &part.inside(around));
            }
        }
        for edge in self.plan.outgoing(index) {
            let Some(target) = self.plan.target(*edge) else {
                continue;
            };
            let node = self.plan.node(target);
            match node.task.node_type() {
                _ if self.plan.edge(*edge).source.port != port => {}
                NodeType::Merge => self.merge(target, carried),
                // With mappings the envelope itself does not go in.
                _ if node.mappings.is_empty() => self.enter(target, carried),
                _ => {}
            }
        }
    }

    fn merge(&mut self, index: NodeIndex, carried: &Carried) {
        if !self.seen.insert((index, "items", carried.put.clone())) {
            return;
        }
        let (_, items) = self.plan.port_schema(index, "items");
        self.mark(items, carried);
        let around = [Step::Item, Step::Member("data".to_owned())];
        self.stand(index, "data", &carried.inside(around.into_iter()));
    }

    /// What a node does with an unmapped input: it judges it, and two types pass it on.
    fn enter(&mut self, index: NodeIndex, carried: &Carried) {
        if !self.seen.insert((index, "input", carried.put.clone())) {
            return;
        }
        let (_, schema) = self.plan.port_schema(index, "input");
        self.mark(schema, carried);
        let node = self.plan.node(index);
        match &node.task {
            Task::Gate { .. } => {
                self.stand(index, "pass", carried);
                self.stand(index, "fail", carried);
            }
            Task::Validator { schema } => {
                self.mark(self.plan.schema(schema), carried);
                self.stand(index, "pass", carried);
            }
            Task::Input
            | Task::Agent(_)
            | Task::AgentDecision(_)
            | Task::Action(_)
            | Task::Merge
            | Task::Output => {}
        }
    }
}

/// Every place that a binding reads.
fn sources(binding: &Binding) -> impl Iterator<Item = &Source> {
    let (path, parts) = match binding {
        Binding::Literal { .. } => (None, [].as_slice()),
        Binding::Path(source) => (Some(source), [].as_slice()),
        Binding::Template { parts } => (None, parts.as_slice()),
    };
    let in_template = parts.iter().filter_map(|part| match part {
        Part::Path(source) => Some(source),
        Part::Text(_) | Part::Platform(_) => None,
    });
    path.into_iter().chain(in_template)
}
