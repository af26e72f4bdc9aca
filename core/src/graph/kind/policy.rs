//! The failure policy (wire-format.md §7; seed A "Node failure policy").

use serde::Serialize;

use crate::graph::node::{optional_integer, optional_text};
use crate::value::{JsonError, Place};

/// What happens when an attempt fails. Bounds and names are judged by validation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailurePolicy {
    /// Attempts in all, 1 to 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<i64>,
    /// Exact codes that are retried, at most 16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<Vec<String>>,
    /// The wait before a retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// `emit-failure` or `fail-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exhausted: Option<String>,
}

/// The wait before a retry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Backoff {
    /// `fixed` or `exponential`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Milliseconds before the second attempt, 0 to 3,600,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ms: Option<i64>,
    /// The longest wait in milliseconds, `initialMs` to 3,600,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_ms: Option<i64>,
}

impl FailurePolicy {
    pub(super) fn read(place: Option<Place<'_>>) -> Result<Option<Self>, JsonError> {
        let Some(place) = place else { return Ok(None) };
        let mut object = place.object()?;
        let retry_on = match object.optional("retryOn") {
            None => None,
            Some(place) => Some(
                place
                    .array()?
                    .iter()
                    .map(|place| place.text().map(str::to_owned))
                    .collect::<Result<_, _>>()?,
            ),
        };
        let policy = Self {
            max_attempts: optional_integer(object.optional("maxAttempts"))?,
            retry_on,
            backoff: object
                .optional("backoff")
                .map(|place| Backoff::read(&place))
                .transpose()?,
            on_exhausted: optional_text(object.optional("onExhausted"))?,
        };
        object.done()?;
        Ok(Some(policy))
    }
}

impl Backoff {
    fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let backoff = Self {
            kind: optional_text(object.optional("kind"))?,
            initial_ms: optional_integer(object.optional("initialMs"))?,
            maximum_ms: optional_integer(object.optional("maximumMs"))?,
        };
        object.done()?;
        Ok(backoff)
    }
}
