//! Fixtures: what stands for each child of a simulation (wire-format.md §9).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::code::{Class, Code};
use crate::ids::{Hash, NodeId};
use crate::limits::Limits;
use crate::node_type::NodeType;
use crate::plan::{Plan, Task};
use crate::time::Millis;
use crate::value::{self, JsonError, Place, Value};

/// A fixture file that was read: the shape is right, the fit to a plan is judged by
/// [`Fixtures::judge`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fixtures {
    nodes: BTreeMap<NodeId, NodeFixture>,
    hash: Option<Hash>,
}

/// What stands for one node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NodeFixture {
    /// Attempt n uses the n-th entry; the last one repeats (X2).
    pub attempts: Vec<Attempt>,
    /// What a node without a child takes, and each attempt that says nothing else.
    pub simulated_duration: Millis,
    pointer: String,
}

/// What stands for one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// How it ends.
    pub outcome: Outcome,
    /// How long it takes.
    pub simulated_duration: Millis,
    /// Hash of the entry, for the child's id (D3).
    pub hash: Hash,
    pointer: String,
}

/// How a simulated attempt ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// `success` with `output`.
    Success {
        /// What the child returns.
        output: Arc<Value>,
    },
    /// `pass` or `fail` with `data` and an optional `reason`, as the agent would answer.
    Decision {
        /// `{decision, data, reason?}`.
        answer: Arc<Value>,
    },
    /// `failure` with a `code`; the message defaults to it (X5).
    Failure {
        /// A code of wire-format.md §12 or of a contract.
        code: String,
        /// For people.
        message: String,
    },
}

/// Why fixtures do not fit (X5): one entry of `WORKFLOW_FIXTURES_INVALID`'s `errors`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FixtureError {
    /// The node.
    pub node_id: NodeId,
    /// JSON Pointer into the fixtures, where there is a place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pointer: Option<String>,
    /// What is wrong and what to do.
    pub reason: String,
}

impl Fixtures {
    /// Reads a fixture file's shape (J4).
    ///
    /// # Errors
    /// The first offender with its pointer.
    pub fn read(document: &Value) -> Result<Self, JsonError> {
        Self::read_at(&Place::root(document))
    }

    /// As [`Fixtures::read`], for fixtures inside a request body.
    ///
    /// # Errors
    /// The first offender with its pointer.
    pub fn read_at(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let mut nodes = BTreeMap::new();
        if let Some(place) = object.optional("nodes") {
            for (id, place) in place.entries()? {
                nodes.insert(NodeId::from(id), NodeFixture::read(&place)?);
            }
        }
        object.done()?;
        Ok(Self {
            nodes,
            hash: Some(value::hash(place.value())),
        })
    }

    /// The hash of the file; of an empty object where there is none.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.hash.unwrap_or_else(|| Hash::of(b"{}"))
    }

    /// The entry for an attempt, from 1.
    #[must_use]
    pub fn attempt(&self, node: &NodeId, number: u32) -> Option<&Attempt> {
        let attempts = &self.nodes.get(node)?.attempts;
        let last = attempts.len().checked_sub(1)?;
        attempts.get(last.min(number.saturating_sub(1) as usize))
    }

    /// What nodes without a child take (V1).
    #[must_use]
    pub fn durations(&self) -> BTreeMap<NodeId, Millis> {
        let taken = self.nodes.iter();
        taken
            .map(|(id, fixture)| (id.clone(), fixture.simulated_duration))
            .collect()
    }

    /// Everything that does not fit a plan (X1–X3), all nodes named, sorted.
    #[must_use]
    pub fn judge(&self, plan: &Plan) -> Vec<FixtureError> {
        let mut errors = Vec::new();
        for (id, fixture) in &self.nodes {
            match plan.find_node(id.as_str()) {
                None => errors.push(FixtureError {
                    node_id: id.clone(),
                    pointer: Some(fixture.pointer.clone()),
                    reason: "the graph has no such node".to_owned(),
                }),
                Some(index) => {
                    let node_type = plan.node(index).task.node_type();
                    for attempt in &fixture.attempts {
                        if let Some((pointer, reason)) = attempt.judge(plan, id, node_type) {
                            errors.push(FixtureError {
                                node_id: id.clone(),
                                pointer: Some(pointer),
                                reason,
                            });
                        }
                    }
                }
            }
        }
        for node in plan.nodes() {
            let missing = self
                .nodes
                .get(&node.id)
                .is_none_or(|fixture| fixture.attempts.is_empty());
            if missing && node.task.node_type().has_child() {
                errors.push(FixtureError {
                    node_id: node.id.clone(),
                    pointer: None,
                    reason: format!("it needs a fixture: {}", wanted(node.task.node_type())),
                });
            }
        }
        errors.sort();
        errors
    }
}

/// A type's name after "a" or "an".
fn with_article(node_type: NodeType) -> String {
    let name = node_type.as_str();
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {name}")
}

/// The outcomes that a type knows (X1).
fn wanted(node_type: NodeType) -> &'static str {
    match node_type {
        NodeType::AgentDecision => {
            "attempts with outcome pass or fail and data, or failure and code"
        }
        _ => "attempts with outcome success and output, or failure and code",
    }
}

impl NodeFixture {
    fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let simulated_duration =
            duration(object.optional("simulatedDurationMs"))?.unwrap_or_default();
        let attempts = match object.optional("attempts") {
            None => Vec::new(),
            Some(place) => place
                .array()?
                .iter()
                .map(|place| Attempt::read(place, simulated_duration))
                .collect::<Result<_, _>>()?,
        };
        object.done()?;
        Ok(Self {
            attempts,
            simulated_duration,
            pointer: place.pointer().to_owned(),
        })
    }
}

impl Attempt {
    /// An attempt without a duration of its own takes what its node takes.
    fn read(place: &Place<'_>, usual: Millis) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let kind = object.required("outcome")?;
        let outcome = match kind.text()? {
            "success" => Outcome::Success {
                output: Arc::new(object.required("output")?.value().clone()),
            },
            decision @ ("pass" | "fail") => {
                let mut answer = value::Map::new();
                answer.insert("decision".to_owned(), decision.into());
                let data = object.required("data")?.value().clone();
                answer.insert("data".to_owned(), data);
                if let Some(reason) = object.optional("reason") {
                    answer.insert("reason".to_owned(), reason.text()?.into());
                }
                Outcome::Decision {
                    answer: Arc::new(Value::Object(answer)),
                }
            }
            "failure" => {
                let code = object.required("code")?.text()?.to_owned();
                let message = match object.optional("message") {
                    Some(message) => message.text()?.to_owned(),
                    None => code.clone(),
                };
                Outcome::Failure { code, message }
            }
            other => {
                return Err(kind.error(
                    Code::JsonWrongType,
                    format!("{other:?} is not an outcome; use success, pass, fail or failure"),
                ));
            }
        };
        let simulated_duration = duration(object.optional("simulatedDurationMs"))?.unwrap_or(usual);
        object.done()?;
        Ok(Self {
            outcome,
            simulated_duration,
            hash: value::hash(place.value()),
            pointer: place.pointer().to_owned(),
        })
    }

    /// What does not fit, with its pointer.
    fn judge(&self, plan: &Plan, id: &NodeId, node_type: NodeType) -> Option<(String, String)> {
        let (port, value, member) = match (&self.outcome, node_type) {
            (Outcome::Failure { .. }, _) if node_type.has_child() => return None,
            (Outcome::Success { output }, NodeType::Agent | NodeType::Action) => {
                ("success", &**output, "output")
            }
            (Outcome::Decision { answer }, NodeType::AgentDecision) => {
                let passes = answer.get("decision").and_then(Value::as_str) == Some("pass");
                let port = if passes { "pass" } else { "fail" };
                (port, answer.get("data")?, "data")
            }
            _ if node_type.has_child() => {
                return Some((
                    format!("{}/outcome", self.pointer),
                    format!(
                        "{} node takes {}",
                        with_article(node_type),
                        wanted(node_type)
                    ),
                ));
            }
            _ => {
                return Some((
                    self.pointer.clone(),
                    format!(
                        "{} node runs for real; it takes only simulatedDurationMs",
                        with_article(node_type)
                    ),
                ));
            }
        };
        let index = plan.find_node(id.as_str())?;
        let (schema_id, schema) = plan.port_schema(index, port);
        let first = schema.first_failure(value)?;
        Some((
            format!("{}/{member}{}", self.pointer, first.path),
            format!(
                "it does not fit schema {schema_id} of port {port}: {}",
                first.message
            ),
        ))
    }

    /// Whether this attempt is refused before it has a child (V2).
    pub(super) fn is_refused(&self, task: &Task) -> bool {
        match &self.outcome {
            Outcome::Failure { code, .. } => {
                Code::classify(code, task.retryable_codes()) == Class::Refused
            }
            Outcome::Success { .. } | Outcome::Decision { .. } => false,
        }
    }
}

fn duration(place: Option<Place<'_>>) -> Result<Option<Millis>, JsonError> {
    let Some(place) = place else {
        return Ok(None);
    };
    let taken = place.integer()?;
    u64::try_from(taken)
        .ok()
        .filter(|ms| *ms <= Limits::FIXTURE_DURATION_MS)
        .map(|ms| Some(Millis(ms)))
        .ok_or_else(|| {
            place.error(
                Code::JsonWrongType,
                format!(
                    "a duration is 0 to {} milliseconds",
                    Limits::FIXTURE_DURATION_MS
                ),
            )
        })
}
