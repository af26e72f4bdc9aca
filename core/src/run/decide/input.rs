//! A node's effective input: the invocation, the incoming envelope, mappings or a merge
//! (wire-format.md §4, G4; run-machine.md A3, A4, A6).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::Draft;
use super::settle::{Fault, quoted};
use crate::code::Code;
use crate::evidence::{self, Evidence};
use crate::ids::{NodeId, PayloadId, SchemaId};
use crate::mapping::{self, Platform, Sources};
use crate::node_type::NodeType;
use crate::plan::NodeIndex;
use crate::run::command::Refusal;
use crate::run::event::{EdgeState, Mode};
use crate::run::needs;
use crate::schema::Schema;
use crate::time::Instant;
use crate::value::Value;

/// What a node starts with.
pub(super) struct Input {
    pub(super) evidence: Evidence,
    /// The value, or why the node cannot take it.
    pub(super) value: Result<Arc<Value>, Fault>,
}

impl Draft<'_> {
    pub(super) fn input(&mut self, index: NodeIndex, attempt: u32) -> Result<Input, Refusal> {
        let node = self.plan.node(index);
        match node.task.node_type() {
            NodeType::Input => {
                let Some(queued) = self.run.queued() else {
                    return Err(Refusal::Stale);
                };
                let evidence = queued.input.clone();
                let value = self.value(&PayloadId::from("input"))?;
                Ok(Input {
                    evidence,
                    value: Ok(value),
                })
            }
            NodeType::Merge => self.collected(index, attempt),
            _ if node.mappings.is_empty() => self.forwarded(index),
            _ => self.mapped(index, attempt),
        }
    }

    fn forwarded(&mut self, index: NodeIndex) -> Result<Input, Refusal> {
        let (schema_id, schema) = self.plan.port_schema(index, "input");
        let emitted = self.plan.incoming(index).iter().find_map(|edge| {
            let fact = self.run.edge_state(*edge)?;
            (fact.settled.state == EdgeState::Emitted).then_some(&fact.settled.evidence)
        });
        let Some((evidence, id)) = emitted.and_then(|e| Some((e.clone(), e.payload_id.as_ref()?)))
        else {
            return Err(Refusal::Broken("a ready node has no envelope".to_owned()));
        };
        let value = self.value(id)?;
        // What the same schema let out needs no second look.
        let value = if evidence.schema_id == schema_id {
            Ok(value)
        } else {
            judged(value, &schema_id, schema)
        };
        Ok(Input { evidence, value })
    }

    fn mapped(&mut self, index: NodeIndex, attempt: u32) -> Result<Input, Refusal> {
        let node = self.plan.node(index);
        let (schema_id, schema) = self.plan.port_schema(index, "input");
        let schema = Arc::clone(schema);
        let mut envelopes = BTreeMap::new();
        for source in needs::sources(node) {
            let key = (source.node_id.clone(), source.port.clone());
            if let Some(id) = needs::emitted(self.plan, &self.run, &key.0, &key.1) {
                envelopes.insert(key, self.value(&id)?);
            }
        }
        let upstream = Upstream {
            envelopes,
            draft: self,
        };
        let built = mapping::build(&node.mappings, &upstream)
            .map_err(|error| Fault::new(error.code, error.message))
            .and_then(|value| match self.too_large(&value) {
                Some(fault) => Err(fault),
                None => Ok(Arc::new(value)),
            });
        match built {
            Err(fault) => Ok(Input {
                evidence: evidence::absent(schema_id),
                value: Err(fault),
            }),
            Ok(value) => {
                let id = PayloadId::new(format!("{}/{attempt}/input", node.id));
                let evidence = self.store(id, schema_id.clone(), &schema, Arc::clone(&value));
                Ok(Input {
                    evidence,
                    value: judged(value, &schema_id, &schema),
                })
            }
        }
    }

    /// A merge's items in order of edge id (G4).
    fn collected(&mut self, index: NodeIndex, attempt: u32) -> Result<Input, Refusal> {
        let node_id = &self.plan.node(index).id;
        let (item_schema_id, item_schema) = self.plan.port_schema(index, "items");
        let merged_id = SchemaId::from("std.merged");
        let merged = Arc::clone(self.plan.schema(&merged_id));
        let mut items = Vec::new();
        let mut unfit = None;
        for edge in self.plan.incoming(index) {
            let Some(fact) = self.run.edge_state(*edge) else {
                continue;
            };
            let evidence = &fact.settled.evidence;
            let (EdgeState::Emitted, Some(id)) = (fact.settled.state, &evidence.payload_id) else {
                continue;
            };
            let data = self.value(id)?;
            if unfit.is_none() && evidence.schema_id != item_schema_id {
                unfit = judged(Arc::clone(&data), &item_schema_id, item_schema).err();
            }
            let source = &fact.settled.source;
            items.push(serde_json::json!({
                "edgeId": fact.settled.edge_id,
                "nodeId": source.node_id,
                "port": source.port,
                "data": &*data,
            }));
        }
        let value = Arc::new(Value::Array(items));
        if let Some(fault) = self.too_large(&value) {
            return Ok(Input {
                evidence: evidence::absent(merged_id),
                value: Err(fault),
            });
        }
        let id = PayloadId::new(format!("{node_id}/{attempt}/input"));
        let evidence = self.store(id, merged_id, &merged, Arc::clone(&value));
        Ok(Input {
            evidence,
            value: match unfit {
                Some(fault) => Err(fault),
                None => Ok(value),
            },
        })
    }

    fn platform_text(&self, variable: Platform) -> String {
        let simulated = self.run.mode() == Mode::Simulate;
        let queued = self.run.queued();
        let or = |text: Option<String>, simulation: &str| {
            text.filter(|_| !simulated)
                .unwrap_or_else(|| simulation.to_owned())
        };
        match variable {
            Platform::RunId => self.run.run_id().as_str().to_owned(),
            Platform::WorkflowKey => or(
                queued.and_then(|q| q.workflow_key.as_ref().map(ToString::to_string)),
                "draft",
            ),
            Platform::WorkflowRevision => or(
                queued.and_then(|q| q.workflow_revision.as_ref().map(ToString::to_string)),
                "0",
            ),
            Platform::QueuedAt => {
                let at = self.run.queued_at().and_then(|at| at.recorded_at);
                at.filter(|_| !simulated).unwrap_or(Instant(0)).rfc3339()
            }
            Platform::ActorLabel => or(
                queued.and_then(|q| q.actor.as_ref().map(|actor| actor.label().to_owned())),
                "simulation",
            ),
            Platform::TenantId => or(Some(self.run.tenant_id().to_string()), "simulation"),
        }
    }
}

/// A4: what enters a node is checked.
fn judged(value: Arc<Value>, schema_id: &SchemaId, schema: &Schema) -> Result<Arc<Value>, Fault> {
    match schema.first_failure(&value) {
        None => Ok(value),
        Some(first) => Err(Fault::new(
            Code::NodeInputInvalid,
            format!(
                "the input does not fit schema {schema_id} at {}: {}",
                quoted(&first.path),
                first.message
            ),
        )),
    }
}

/// What mappings read from in this run.
struct Upstream<'d, 'a> {
    envelopes: BTreeMap<(NodeId, String), Arc<Value>>,
    draft: &'d Draft<'a>,
}

impl Sources for Upstream<'_, '_> {
    fn envelope(&self, node: &NodeId, port: &str) -> Option<&Value> {
        let key = (node.clone(), port.to_owned());
        self.envelopes.get(&key).map(|value| &**value)
    }

    fn platform(&self, variable: Platform) -> String {
        self.draft.platform_text(variable)
    }

    fn longest_text(&self) -> u64 {
        self.draft.limits().envelope_bytes
    }
}
