//! Reading a request: the body as I-JSON within its limit, counted while reading (server.md
//! §4; wire-format.md J1, J7), the query, and the headers that stand for a member.

use std::pin::Pin;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_TYPE, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use http_body::Body as _;
use sluicegate_core::code::Code;
use sluicegate_core::value::{self, Value};

use super::App;
use super::refusal::Refusal;

/// Bytes of a body that says a thing or two.
pub(super) const SMALL: usize = 16 * 1_024;
/// Bytes of a run's request and of a draft's save.
pub(super) const MEDIUM: usize = 256 * 1_024;
/// Bytes of a simulation.
pub(super) const LARGE: usize = 1_024 * 1_024;

/// How much the endpoint reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimit(pub(super) usize);

/// A JSON body.
#[derive(Debug)]
pub(super) struct Json(pub(super) Value);

impl FromRequest<App> for Json {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &App) -> Result<Self, Refusal> {
        if !is_json(request.headers()) {
            return Err(Refusal::new(
                Code::MediaTypeUnsupported,
                "send the body as application/json",
            ));
        }
        let limit = request
            .extensions()
            .get::<BodyLimit>()
            .map_or(SMALL, |limit| limit.0);
        let too_large = || {
            let detail = format!("the body is larger than {limit} bytes");
            Refusal::new(Code::PayloadTooLarge, detail)
        };
        let body = request.into_body();
        if body.size_hint().lower() > limit as u64 {
            pass_over(body).await;
            return Err(too_large());
        }
        let bytes =
            axum::body::to_bytes(body, limit)
                .await
                .map_err(|error| match is_too_long(&error) {
                    true => too_large(),
                    false => Refusal::malformed("the body did not arrive whole"),
                })?;
        Ok(Self(value::read_bytes(&bytes)?))
    }
}

/// Reads on for a while without keeping anything: a sender that is still writing when the
/// connection closes would never see the answer.
async fn pass_over(mut body: axum::body::Body) {
    let rest = async {
        let mut left = LARGE;
        while left > 0 {
            match std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
                Some(Ok(frame)) => {
                    left = left.saturating_sub(frame.data_ref().map_or(1, |bytes| bytes.len()));
                }
                Some(Err(_)) | None => return,
            }
        }
    };
    // One that sends slower than this has to live without the answer.
    let _ = tokio::time::timeout(std::time::Duration::from_secs(1), rest).await;
}

/// Whether reading stopped at the limit, and not because the sender went away.
fn is_too_long(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.to_string().contains("length limit exceeded") {
            return true;
        }
        cause = error.source();
    }
    false
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()) else {
        return false;
    };
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

/// The query. Members are asked for by name; [`Query::done`] refuses the rest, as a body's
/// unknown members are.
#[derive(Debug)]
pub(super) struct Query {
    pairs: Vec<(String, String)>,
    asked: Vec<&'static str>,
}

impl FromRequestParts<App> for Query {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Refusal> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self {
            pairs: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
            asked: Vec::new(),
        })
    }
}

impl Query {
    /// All values of a repeatable parameter.
    pub(super) fn all(&mut self, name: &'static str) -> Vec<&str> {
        self.asked.push(name);
        let own = self.pairs.iter().filter(|(key, _)| key == name);
        own.map(|(_, value)| value.as_str()).collect()
    }

    /// The value of a parameter that may stand once.
    pub(super) fn optional(&mut self, name: &'static str) -> Result<Option<&str>, Refusal> {
        match self.all(name).as_slice() {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(Refusal::malformed(format!(
                "the parameter {name} stands more than once"
            ))),
        }
    }

    /// The value of a parameter that must stand once.
    pub(super) fn required(&mut self, name: &'static str) -> Result<&str, Refusal> {
        self.optional(name)?
            .ok_or_else(|| Refusal::malformed(format!("the parameter {name} is missing")))
    }

    /// A whole number within bounds.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.optional(name)? else {
            return Ok(None);
        };
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = text
            .parse()
            .ok()
            .filter(|n| digits && (least..=most).contains(n));
        number.map(Some).ok_or_else(|| {
            Refusal::malformed(format!(
                "the parameter {name} takes a whole number from {least} to {most}"
            ))
        })
    }

    /// One of a few words.
    pub(super) fn word<T: serde::de::DeserializeOwned>(
        &mut self,
        name: &'static str,
        accepts: &str,
    ) -> Result<Vec<T>, Refusal> {
        let words = self.all(name);
        let read = |word: &&str| serde_json::from_value(Value::from(*word)).ok();
        words
            .iter()
            .map(read)
            .collect::<Option<_>>()
            .ok_or_else(|| Refusal::malformed(format!("the parameter {name} takes {accepts}")))
    }

    /// Refuses parameters that were not asked for.
    pub(super) fn done(self) -> Result<(), Refusal> {
        let known = |name: &str| self.asked.contains(&name);
        match self.pairs.iter().find(|(name, _)| !known(name)) {
            None => Ok(()),
            Some((name, _)) => Err(Refusal::malformed(format!(
                "the parameter {name:?} is not known here; known: {}",
                self.asked.join(", ")
            ))),
        }
    }
}

/// The draft version that a writer saw, and whether a header says it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected {
    pub(super) version: u64,
    pub(super) by_header: bool,
}

/// Takes the draft version from the body or from `If-Match`.
pub(super) fn expected(headers: &HeaderMap, in_body: Option<u64>) -> Result<Expected, Refusal> {
    let in_header = single(headers, &IF_MATCH)?.map(|tag| {
        // A tag that is none of ours matches nothing: no draft has this version.
        let version = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
        version.and_then(|v| v.parse().ok()).unwrap_or(u64::MAX)
    });
    let (version, by_header) = match (in_header, in_body) {
        (Some(header), Some(body)) if header != body => {
            return Err(Refusal::malformed(
                "If-Match and expectedRevision name different versions",
            ));
        }
        (Some(version), _) => (version, true),
        (None, Some(version)) => (version, false),
        (None, None) => {
            let code = Code::PreconditionRequired;
            return Err(Refusal::new(code, code.sentence()));
        }
    };
    Ok(Expected { version, by_header })
}

/// A header that may stand once, as text.
pub(super) fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(Some)
            .map_err(|_| Refusal::malformed(format!("the header {name} is not plain text"))),
        _ => Err(Refusal::malformed(format!(
            "the header {name} stands more than once"
        ))),
    }
}
