//! `mapping.*` (wire-format.md M1, M2, S6; seed A publication rule 8 and "Data mappings").

use std::cell::OnceCell;

use super::{report, template};
use crate::code::Code;
use crate::graph::{Binding, Direction, Mapping, Node, VariableSource};
use crate::ids::NodeId;
use crate::mapping::is_target;
use crate::schema::{Compatibility, Reach, Schema};
use crate::validate::flow::{Certainty, Flow};
use crate::validate::issue::{Issue, Location};
use crate::validate::survey::{NodeIx, Survey};
use crate::value::{Map, Pointer, Value};

pub(super) fn check(
    survey: &Survey<'_>,
    flow: &Flow,
    order: Option<&[NodeIx]>,
    issues: &mut Vec<Issue>,
) {
    let certainty = OnceCell::new();
    for (at, node) in survey.nodes.iter().enumerate() {
        let mappings = node.kind.mappings();
        if mappings.is_empty() {
            continue;
        }
        let before = order.map(|order| Before {
            reader: at,
            upstream: flow.upstream(at),
            certainty: certainty.get_or_init(|| Certainty::new(survey, flow, order)),
        });
        let mut rule = Rule {
            survey,
            node,
            before,
            issues,
        };
        rule.judge(mappings);
    }
}

/// The mappings of one node under judgement.
struct Rule<'r, 'g> {
    survey: &'r Survey<'g>,
    node: &'g Node,
    /// None while there is a cycle (Q2).
    before: Option<Before<'r>>,
    issues: &'r mut Vec<Issue>,
}

/// What stands before the node that reads.
struct Before<'r> {
    reader: NodeIx,
    upstream: Vec<bool>,
    certainty: &'r Certainty<'r>,
}

/// A read of an upstream port, from a path binding or a template's variable.
struct Read<'g> {
    node: &'g NodeId,
    port: &'g str,
    pointer: &'g str,
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
            fits &= self.binding(at, &mapping.binding, place.as_ref());
            fits &= target.is_some() && (wanted.is_none() || place.is_some());
        }
        if let Some(schema) = wanted
            && fits
        {
            self.whole(schema, targets.iter().flatten());
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
                "The target {text:?} names an item of an array; write the array as a whole."
            ),
            Err(error) => format!(
                "The target {text:?} is not a JSON Pointer: {}.",
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
                        prefix.to_string(),
                        target.to_string()
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
    fn place(&mut self, at: usize, schema: &Schema, target: &Pointer) -> Option<Schema> {
        match schema.reach(target) {
            Reach::Certain(place) | Reach::Possible(place) => Schema::accept(&place).ok(),
            Reach::Impossible => {
                let message = format!(
                    "The input of {} has no place {:?} by its schema; choose another target.",
                    self.node.title(),
                    target.to_string()
                );
                let path = format!("/mappings/{at}/targetPointer");
                self.report(Code::MappingTypeIncompatible, path, message);
                None
            }
        }
    }

    /// Judges where the value comes from and whether it can fit the place; false when not.
    fn binding(&mut self, at: usize, binding: &'g Binding, place: Option<&Schema>) -> bool {
        let path = format!("/mappings/{at}/binding");
        let cannot = match binding {
            Binding::Literal { value } => {
                let failure = place.and_then(|place| place.first_failure(value));
                failure.map(|failure| failure.message)
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
                let source = self.read(&path, &read);
                source
                    .zip(place)
                    .filter(|(source, place)| {
                        self.survey.compare(source, place) == Compatibility::Incompatible
                    })
                    .map(|_| format!("what {node} emits on {port} at {pointer:?} has another type"))
            }
            Binding::Template {
                template,
                variables,
            } => {
                template::check(self.node, &path, template, variables, self.issues);
                for (at, variable) in variables.iter().enumerate() {
                    if let VariableSource::Binding(read) = &variable.source {
                        let read = Read {
                            node: &read.source_node_id,
                            port: &read.source_port,
                            pointer: &read.pointer,
                        };
                        self.read(&format!("{path}/variables/{at}/binding"), &read);
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
            "The mapped value can never fit the input of {}: {why}.",
            self.node.title()
        );
        self.report(Code::MappingTypeIncompatible, path, message);
        false
    }

    /// Judges a read; gives the schema of what is read where one is known.
    fn read(&mut self, path: &str, read: &Read<'g>) -> Option<Schema> {
        let Read {
            node: id,
            port,
            pointer: text,
        } = *read;
        let pointer = Pointer::parse(text);
        if let Err(error) = &pointer {
            let message = format!("{text:?} is not a JSON Pointer: {}.", error.detail);
            self.report(
                Code::MappingPointerInvalid,
                format!("{path}/pointer"),
                message,
            );
        }
        let Some((source, node)) = self.survey.find(id.as_str()) else {
            let message = format!("There is no node {id} to read from; choose another source.");
            self.report(
                Code::MappingSourceUnknown,
                format!("{path}/sourceNodeId"),
                message,
            );
            return None;
        };
        let known = node.node_type().port(port);
        let Some(known) = known.filter(|port| port.direction == Direction::Output) else {
            let message = format!("{} has no output port {port:?} to read from.", node.title());
            self.report(
                Code::MappingSourceUnknown,
                format!("{path}/sourcePort"),
                message,
            );
            return None;
        };
        let found = self.before.as_ref().map(|before| {
            let upstream = before.upstream.get(source).copied().unwrap_or_default();
            (
                upstream,
                before.certainty.is_certain(source, known, before.reader),
            )
        });
        match found {
            Some((false, _)) => {
                let message = format!(
                    "{} does not come before {}; only nodes upstream can be read.",
                    node.title(),
                    self.node.title()
                );
                self.report(
                    Code::MappingSourceNotUpstream,
                    format!("{path}/sourceNodeId"),
                    message,
                );
                return None;
            }
            Some((true, false)) => {
                let message = format!(
                    "{} does not emit on {port} in every run that reaches {}; where it does not, \
                     this node fails with mapping.source-missing.",
                    node.title(),
                    self.node.title()
                );
                self.report(Code::MappingSourceUncertain, path.to_owned(), message);
            }
            Some((true, true)) | None => {}
        }
        match self.survey.port_schema(node, port)?.reach(&pointer.ok()?) {
            Reach::Certain(schema) | Reach::Possible(schema) => Schema::accept(&schema).ok(),
            Reach::Impossible => {
                let message = format!(
                    "What {} emits on {port} never has {text:?} by its schema.",
                    node.title()
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
    fn whole<'p>(&mut self, schema: &Schema, targets: impl Iterator<Item = &'p Pointer>) {
        let mut shape = Value::Bool(true);
        for target in targets {
            grow(&mut shape, target.tokens());
        }
        let Ok(built) = Schema::accept(&shape) else {
            return;
        };
        if self.survey.compare(&built, schema) == Compatibility::Incompatible {
            let message = format!(
                "What the mappings build can never be an input of {}: a required member has no \
                 mapping.",
                self.node.title()
            );
            self.report(
                Code::MappingTypeIncompatible,
                "/mappings".to_owned(),
                message,
            );
        }
    }
}

/// Adds a target to the schema of what mappings build: an object with these members alone,
/// each of them anything.
fn grow(shape: &mut Value, tokens: &[String]) {
    let Some((token, rest)) = tokens.split_first() else {
        return;
    };
    if !shape.is_object() {
        *shape = serde_json::json!({
            "type": "object", "properties": {}, "required": [], "additionalProperties": false
        });
    }
    let Value::Object(members) = shape else {
        return;
    };
    let entry = |members: &mut Map<String, Value>| {
        if let Some(Value::Object(properties)) = members.get_mut("properties") {
            let is_new = !properties.contains_key(token);
            grow(
                properties
                    .entry(token.as_str())
                    .or_insert(Value::Bool(true)),
                rest,
            );
            return is_new;
        }
        false
    };
    if entry(members)
        && let Some(Value::Array(required)) = members.get_mut("required")
    {
        required.push(Value::String(token.clone()));
    }
}

#[cfg(test)]
mod tests;
