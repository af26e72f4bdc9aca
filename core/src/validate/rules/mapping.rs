//! `mapping.*` (wire-format.md M1, M2, S6; seed A publication rule 8 and "Data mappings").

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use super::{report, shown, template, title};
use crate::code::Code;
use crate::graph::{Binding, Direction, Mapping, Node, Port, VariableSource};
use crate::ids::NodeId;
use crate::mapping::{self, is_target};
use crate::schema::{Compatibility, Schema};
use crate::validate::flow::Flow;
use crate::validate::issue::{Issue, Location};
use crate::validate::memory::Place;
use crate::validate::past::{Past, Reliance};
use crate::validate::survey::{NodeIx, Survey};
use crate::value::Pointer;

pub(super) fn check(
    survey: &Survey<'_>,
    flow: &Flow,
    order: Option<&[NodeIx]>,
    issues: &mut Vec<Issue>,
) {
    let past = OnceCell::new();
    for (at, node) in survey.nodes.iter().enumerate() {
        let mappings = node.kind.mappings();
        if mappings.is_empty() {
            continue;
        }
        let past = order.map(|order| past.get_or_init(|| Past::new(survey, flow, order)));
        let mut rule = Rule {
            survey,
            node,
            at,
            past,
            issues,
        };
        rule.judge(mappings);
    }
}

/// A mapping as a plan stores it; none where the rules have found a fault in it.
pub(crate) fn planned(mapping: &Mapping) -> Option<mapping::Mapping> {
    let binding = match &mapping.binding {
        Binding::Literal { value } => mapping::Binding::Literal {
            value: value.clone(),
        },
        Binding::Path {
            source_node_id,
            source_port,
            pointer,
        } => mapping::Binding::Path(mapping::Source {
            node_id: source_node_id.clone(),
            port: source_port.clone(),
            pointer: Pointer::parse(pointer).ok()?,
        }),
        Binding::Template {
            template,
            variables,
        } => mapping::Binding::Template {
            parts: template::parts(template, variables).ok()?,
        },
    };
    Some(mapping::Mapping {
        target: Pointer::parse(&mapping.target_pointer).ok()?,
        binding,
    })
}

/// The mappings of one node under judgement.
struct Rule<'r, 'g> {
    survey: &'r Survey<'g>,
    node: &'g Node,
    at: NodeIx,
    /// None while there is a cycle (Q2).
    past: Option<&'r Past>,
    issues: &'r mut Vec<Issue>,
}

/// A read of an upstream port, from a path binding or a template's variable.
struct Read<'g> {
    node: &'g NodeId,
    port: &'g str,
    pointer: &'g str,
}

/// Where a binding stands in its node, written out only for an issue: the mapping, and the
/// template's variable.
#[derive(Clone, Copy)]
struct Spot(usize, Option<usize>);

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/mappings/{}/binding", self.0)?;
        match self.1 {
            Some(variable) => write!(f, "/variables/{variable}/binding"),
            None => Ok(()),
        }
    }
}

impl<'g> Rule<'_, 'g> {
    fn judge(&mut self, mappings: &'g [Mapping]) {
        let targets: Vec<Option<Pointer>> = mappings
            .iter()
            .enumerate()
            .map(|(at, mapping)| self.target(at, mapping))
            .collect();
        let conflict = self.conflicts(&targets);
        let wanted = self.survey.port_schema(self.node, "input");
        let mut fits = !conflict;
        for (at, (mapping, target)) in mappings.iter().zip(&targets).enumerate() {
            let place = match (wanted, target) {
                (Some(schema), Some(target)) => self.place(at, schema, target),
                _ => None,
            };
            fits &= self.binding(at, &mapping.binding, place.as_deref());
            fits &= wanted.is_none() || place.is_some();
        }
        let targets: Option<Vec<Pointer>> = targets.into_iter().collect();
        if let (Some(schema), Some(targets), true) = (wanted, targets, fits) {
            self.whole(schema, &targets);
        }
    }

    fn report(&mut self, code: Code, path: String, message: String) {
        report(
            self.issues,
            code,
            Location::node_at(&self.node.id, path),
            message,
        );
    }

    fn target(&mut self, at: usize, mapping: &Mapping) -> Option<Pointer> {
        let text = &mapping.target_pointer;
        let message = match Pointer::parse(text) {
            Ok(pointer) if is_target(&pointer) => return Some(pointer),
            Ok(_) => format!(
                "The target {:?} names an item of an array; write the array as a whole.",
                shown(text)
            ),
            Err(error) => format!(
                "The target {:?} is not a JSON Pointer: {}.",
                shown(text),
                error.detail
            ),
        };
        let path = format!("/mappings/{at}/targetPointer");
        self.report(Code::MappingPointerInvalid, path, message);
        None
    }

    /// Reports each target that lies at or below another one. In order of tokens a prefix
    /// comes before everything below it, and nothing else comes between.
    fn conflicts(&mut self, targets: &[Option<Pointer>]) -> bool {
        let mut sorted: Vec<(&Pointer, usize)> = targets
            .iter()
            .enumerate()
            .filter_map(|(at, target)| Some((target.as_ref()?, at)))
            .collect();
        sorted.sort_unstable();
        let mut above: Option<(&Pointer, usize)> = None;
        let mut any = false;
        for (target, at) in sorted {
            match above {
                Some((prefix, first)) if prefix.overlaps(target) => {
                    any = true;
                    let message = format!(
                        "Mapping {first} already writes {:?}, which {:?} lies in; remove one.",
                        shown(&prefix.to_string()),
                        shown(&target.to_string())
                    );
                    let path = format!("/mappings/{at}/targetPointer");
                    self.report(Code::MappingTargetConflict, path, message);
                }
                _ => above = Some((target, at)),
            }
        }
        any
    }

    /// The schema at the target's place; none when the input cannot have that place.
    fn place(&mut self, at: usize, schema: &Schema, target: &Pointer) -> Option<Arc<Schema>> {
        match self.survey.place(schema, target) {
            Place::Fits(place) => Some(place),
            Place::Unknown => None,
            Place::Impossible => {
                let message = format!(
                    "The input of {} has no place {:?} by its schema; choose another target.",
                    title(self.node),
                    shown(&target.to_string())
                );
                let path = format!("/mappings/{at}/targetPointer");
                self.report(Code::MappingTypeIncompatible, path, message);
                None
            }
        }
    }

    /// Judges where the value comes from and whether it can fit the place; false when not.
    fn binding(&mut self, at: usize, binding: &'g Binding, place: Option<&Schema>) -> bool {
        let path = Spot(at, None);
        let cannot = match binding {
            Binding::Literal { value } => {
                let failure = place.and_then(|place| place.first_failure(value));
                failure.map(|failure| format!("it {}", failure.message))
            }
            Binding::Path {
                source_node_id: node,
                source_port: port,
                pointer,
            } => {
                let read = Read {
                    node,
                    port,
                    pointer,
                };
                let source = self.read(path, &read);
                source
                    .zip(place)
                    .filter(|(source, place)| {
                        self.survey.compare(source, place) == Compatibility::Incompatible
                    })
                    .map(|_| {
                        let (node, pointer) = (shown(node.as_str()), shown(pointer));
                        format!("what {node} emits on {port} at {pointer:?} has another type")
                    })
            }
            Binding::Template {
                template,
                variables,
            } => {
                template::check(self.node, path, template, variables, self.issues);
                for (at, variable) in variables.iter().enumerate() {
                    if let VariableSource::Binding(read) = &variable.source {
                        let read = Read {
                            node: &read.source_node_id,
                            port: &read.source_port,
                            pointer: &read.pointer,
                        };
                        self.read(Spot(path.0, Some(at)), &read);
                    }
                }
                let text = self.survey.schema("std.text");
                text.zip(place)
                    .filter(|(text, place)| {
                        self.survey.compare(text, place) == Compatibility::Incompatible
                    })
                    .map(|_| "a template gives a text".to_owned())
            }
        };
        let Some(why) = cannot else { return true };
        let message = format!(
            "The mapped value can never fit the input of {}; map another one: {why}.",
            title(self.node)
        );
        self.report(Code::MappingTypeIncompatible, path.to_string(), message);
        false
    }

    /// The output port that a read names.
    fn source(&mut self, path: Spot, read: &Read<'g>) -> Option<(NodeIx, &'g Node, &'static Port)> {
        let Read { node: id, port, .. } = *read;
        let Some((source, node)) = self.survey.find(id.as_str()) else {
            let message = format!(
                "There is no node {} to read from; choose another source.",
                shown(id.as_str())
            );
            self.report(
                Code::MappingSourceUnknown,
                format!("{path}/sourceNodeId"),
                message,
            );
            return None;
        };
        let known = node.node_type().port(port);
        let Some(known) = known.filter(|port| port.direction == Direction::Output) else {
            let message = format!(
                "{} has no output port {:?} to read from; choose another.",
                title(node),
                shown(port)
            );
            self.report(
                Code::MappingSourceUnknown,
                format!("{path}/sourcePort"),
                message,
            );
            return None;
        };
        Some((source, node, known))
    }

    /// Judges a read; gives the schema of what is read where one is known.
    fn read(&mut self, path: Spot, read: &Read<'g>) -> Option<Arc<Schema>> {
        let Read {
            port,
            pointer: text,
            ..
        } = *read;
        let pointer = Pointer::parse(text);
        if let Err(error) = &pointer {
            let message = format!("{:?} is not a JSON Pointer: {}.", shown(text), error.detail);
            self.report(
                Code::MappingPointerInvalid,
                format!("{path}/pointer"),
                message,
            );
        }
        let (source, node, known) = self.source(path, read)?;
        match self.past.map(|past| past.of(source, known, self.at)) {
            Some(Reliance::NotUpstream) => {
                let message = format!(
                    "{} does not come before {}; read a node that is upstream.",
                    title(node),
                    title(self.node)
                );
                self.report(
                    Code::MappingSourceNotUpstream,
                    format!("{path}/sourceNodeId"),
                    message,
                );
                return None;
            }
            Some(Reliance::Uncertain) => {
                let message = format!(
                    "{} does not emit on {port} in every run that reaches {}; read a port that does, or \
                     expect mapping.source-missing.",
                    title(node),
                    title(self.node)
                );
                self.report(Code::MappingSourceUncertain, path.to_string(), message);
            }
            Some(Reliance::Certain) | None => {}
        }
        let emitted = self.survey.port_schema(node, port)?;
        match self.survey.place(emitted, &pointer.ok()?) {
            Place::Fits(place) => Some(place),
            Place::Unknown => None,
            Place::Impossible => {
                let message = format!(
                    "What {} emits on {port} never has {:?} by its schema; read another place.",
                    title(node),
                    shown(text)
                );
                self.report(
                    Code::MappingTypeIncompatible,
                    format!("{path}/pointer"),
                    message,
                );
                None
            }
        }
    }

    /// Judges what all mappings build together: an object without a member that the input's
    /// schema requires can never fit (S6).
    fn whole(&mut self, schema: &Schema, targets: &[Pointer]) {
        let Some(built) = self.survey.shape(targets) else {
            return;
        };
        if self.survey.compare(&built, schema) == Compatibility::Incompatible {
            let message = format!(
                "What the mappings build can never be an input of {}; map every member that its \
                 schema requires.",
                title(self.node)
            );
            self.report(
                Code::MappingTypeIncompatible,
                "/mappings".to_owned(),
                message,
            );
        }
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
