//! The 21 events of a run and their payloads (run-machine.md §2, D1–D4; seed A "Event
//! envelope and catalog"). A stored format: golden files keep it loading for ever.

mod ending;
mod payload;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::ids::NodeId;
use crate::time::{Instant, Millis};
use crate::value::{JsonError, Place, Value};

pub use ending::*;
pub use payload::*;

/// One durable fact about a run.
///
/// The core's own form is `{sequence, type, schemaVersion, payload, virtualOffsetMs?}`; a
/// server adds `recordedAt` (and, around it, the tenant, the run and an event id).
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// From 1, without gaps.
    pub sequence: u64,
    /// What happened.
    pub payload: Payload,
    /// When the evidence was persisted; none in the core's own simulation.
    pub recorded_at: Option<Instant>,
    /// Offset from the start of a simulation; none in live runs.
    pub virtual_offset_ms: Option<Millis>,
}

/// Why a stored event cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {sequence}: {detail}")]
pub struct EventError {
    /// Always `WORKFLOW_EVENT_SCHEMA_UNSUPPORTED`: what was read may still not follow, which
    /// only a fold can say.
    pub code: Code,
    /// The event's sequence, 0 where even that cannot be read.
    pub sequence: u64,
    /// What is wrong.
    pub detail: String,
}

macro_rules! events {
    ($($name:literal => $variant:ident($body:ty),)*) => {
        /// The type and payload of an event.
        #[derive(Debug, Clone, PartialEq, Serialize)]
        #[serde(tag = "type", content = "payload")]
        pub enum Payload {
            $(#[doc = concat!("`", $name, "`")] #[serde(rename = $name)] $variant($body),)*
        }

        impl Payload {
            /// All types, in the order of the catalogue.
            pub const TYPES: &'static [&'static str] = &[$($name,)*];

            /// The event's type.
            #[must_use]
            pub fn type_name(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)* }
            }

            /// Reads the payload of a type; `None` for a type that is not known. Not derived:
            /// the type stands first, and buffering for the case that it does not would double
            /// the code of every payload.
            fn read(event_type: &str, payload: &Value) -> Option<Result<Self, serde_json::Error>> {
                Some(match event_type {
                    $($name => <$body>::deserialize(payload).map(Self::$variant),)*
                    _ => return None,
                })
            }

            /// The payload alone.
            fn body(&self) -> Result<Value, serde_json::Error> {
                match self { $(Self::$variant(body) => serde_json::to_value(body),)* }
            }
        }
    };
}

events! {
    "run.queued" => RunQueued(Box<Queued>),
    "run.claimed" => RunClaimed(Claimed),
    "run.recovered" => RunRecovered(Recovered),
    "node.ready" => NodeReady(NodeReady),
    "node.attempt.started" => AttemptStarted(Started),
    "node.child.waiting" => ChildWaiting(ChildWaiting),
    "node.attempt.settled" => AttemptSettled(Box<Settled>),
    "node.retry.scheduled" => RetryScheduled(RetryScheduled),
    "node.retry.started" => RetryStarted(RetryStarted),
    "node.skipped" => NodeSkipped(NodeSkipped),
    "edge.settled" => EdgeSettled(EdgeSettled),
    "run.cancel.requested" => RunCancelRequested(RunCancelRequested),
    "node.cancel.requested" => NodeCancelRequested(NodeCancelRequested),
    "node.cancel.acknowledged" => NodeCancelAcknowledged(CancelAnswered),
    "node.cancel.not-acknowledged" => NodeCancelNotAcknowledged(CancelAnswered),
    "node.result.late-ignored" => LateIgnored(LateIgnored),
    "payload.retention.applied" => RetentionApplied(RetentionApplied),
    "run.succeeded" => RunSucceeded(Box<Succeeded>),
    "run.failed" => RunFailed(Box<Failed>),
    "run.refused" => RunRefused(Box<Failed>),
    "run.cancelled" => RunCancelled(Box<RunCancelled>),
}

impl Payload {
    /// The node that the event is about; an edge's end is no word about its nodes.
    #[must_use]
    pub fn node_id(&self) -> Option<&NodeId> {
        Some(match self {
            Self::NodeReady(p) => &p.node_id,
            Self::AttemptStarted(p) => &p.node_id,
            Self::ChildWaiting(p) => &p.node_id,
            Self::AttemptSettled(p) => &p.node_id,
            Self::RetryScheduled(p) => &p.node_id,
            Self::RetryStarted(p) => &p.node_id,
            Self::NodeSkipped(p) => &p.node_id,
            Self::NodeCancelRequested(p) => &p.node_id,
            Self::NodeCancelAcknowledged(p) | Self::NodeCancelNotAcknowledged(p) => &p.node_id,
            Self::LateIgnored(p) => &p.node_id,
            Self::EdgeSettled(_)
            | Self::RunQueued(_)
            | Self::RunClaimed(_)
            | Self::RunRecovered(_)
            | Self::RunCancelRequested(_)
            | Self::RetentionApplied(_)
            | Self::RunSucceeded(_)
            | Self::RunFailed(_)
            | Self::RunRefused(_)
            | Self::RunCancelled(_) => return None,
        })
    }
}

/// The wire form, before the payload is known to be of its type.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'e> {
    sequence: u64,
    #[serde(rename = "type")]
    event_type: Cow<'e, str>,
    schema_version: u32,
    payload: Cow<'e, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_at: Option<Instant>,
    #[serde(skip_serializing_if = "Option::is_none")]
    virtual_offset_ms: Option<Millis>,
}

impl<'e> Wire<'e> {
    fn read(stored: &'e Value) -> Result<Self, JsonError> {
        let mut object = Place::root(stored).object()?;
        let count = |place: Place<'_>| {
            u64::try_from(place.integer()?)
                .map_err(|_| place.error(Code::JsonWrongType, "an integer from 0 is needed here"))
        };
        let wire = Self {
            sequence: count(object.required("sequence")?)?,
            event_type: object.required("type")?.text()?.into(),
            // No version beyond these bounds is known either.
            schema_version: count(object.required("schemaVersion")?)?
                .try_into()
                .unwrap_or(u32::MAX),
            payload: Cow::Borrowed(object.required("payload")?.value()),
            recorded_at: object
                .optional("recordedAt")
                .map(count)
                .transpose()?
                .map(Instant),
            virtual_offset_ms: object
                .optional("virtualOffsetMs")
                .map(count)
                .transpose()?
                .map(Millis),
        };
        for shells in ["tenantId", "runId", "eventId"] {
            object
                .optional(shells)
                .map(|place| place.text())
                .transpose()?;
        }
        object.done()?;
        Ok(wire)
    }
}

/// The payload schemas of these types, all of them.
pub const EVENT_SCHEMA_VERSION: u32 = 1;

impl Event {
    /// Reads a stored event, strictly: a payload is read only if it would be written again as it
    /// is, so an unknown member or a null for an absent one is refused. Members that a shell
    /// adds (`tenantId`, `runId`, `eventId`) are passed over.
    ///
    /// # Errors
    /// See [`EventError`].
    pub fn read(stored: &Value) -> Result<Self, EventError> {
        let wire = Wire::read(stored).map_err(|error| EventError {
            code: Code::WorkflowEventSchemaUnsupported,
            sequence: stored
                .get("sequence")
                .and_then(Value::as_u64)
                .unwrap_or_default(),
            detail: error.to_string(),
        })?;
        Self::from_parts(
            wire.sequence,
            &wire.event_type,
            wire.schema_version,
            &wire.payload,
            wire.recorded_at,
            wire.virtual_offset_ms,
        )
    }

    /// Puts an event together from a row's columns.
    ///
    /// # Errors
    /// See [`EventError`].
    pub fn from_parts(
        sequence: u64,
        event_type: &str,
        schema_version: u32,
        payload: &Value,
        recorded_at: Option<Instant>,
        virtual_offset_ms: Option<Millis>,
    ) -> Result<Self, EventError> {
        let error = |detail| EventError {
            code: Code::WorkflowEventSchemaUnsupported,
            sequence,
            detail,
        };
        let read = match schema_version {
            EVENT_SCHEMA_VERSION => Payload::read(event_type, payload),
            _ => None,
        };
        let Some(read) = read else {
            return Err(error(format!(
                "type {event_type:?} of schema version {schema_version} is not known"
            )));
        };
        let read =
            read.map_err(|e| error(format!("the payload is not one of {event_type}: {e}")))?;
        if read.body().ok().as_ref() != Some(payload) {
            return Err(error(format!(
                "the payload has members that {event_type} does not know, or nulls"
            )));
        }
        Ok(Self {
            sequence,
            payload: read,
            recorded_at,
            virtual_offset_ms,
        })
    }

    /// The payload alone, as a row stores it.
    #[must_use]
    pub fn payload_value(&self) -> Value {
        self.payload.body().unwrap_or_default()
    }
}

impl Serialize for Event {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Wire {
            sequence: self.sequence,
            event_type: self.payload.type_name().into(),
            schema_version: EVENT_SCHEMA_VERSION,
            payload: Cow::Owned(self.payload_value()),
            recorded_at: self.recorded_at,
            virtual_offset_ms: self.virtual_offset_ms,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&value).map_err(serde::de::Error::custom)
    }
}
