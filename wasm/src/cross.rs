//! Values across the border without loss (wire-format.md §11, J1, J4): absent stays absent,
//! `__proto__` stays an own member, and what JSON does not have is refused, never rounded to
//! `null` as `JSON.stringify` would.
//!
//! Free JSON crosses as text in one step each way. Coming in, `border.js` writes it and the core's
//! own reader reads it: asking for each member from here takes several times as long, and
//! `serde-wasm-bindgen`, which asks so, takes a lone surrogate for U+FFFD, an undefined item for
//! null, a map, a date and an instance of a class for what their members say, and knows neither the
//! place of a fault nor a bound. Going out, `JSON.parse` makes every member an own one, where setting
//! a member `__proto__` would set a prototype. `tests/npm/crossing.test.mjs` holds each of these.
//! What has no member names but ours goes out through `serde-wasm-bindgen` ([`give`]).

use js_sys::{Array, JSON};
use serde::Serialize;
use sluicegate_core::code::Code;
use sluicegate_core::value::{self, JsonError, Map, Value, escape};
use wasm_bindgen::prelude::*;

use crate::refusal::Refusal;

#[wasm_bindgen(raw_module = "./border.js")]
extern "C" {
    /// The JSON text of a value, or an array of a fault's number and its path. Never throws.
    #[wasm_bindgen(js_name = textOf)]
    fn text_of(value: &JsValue) -> JsValue;
}

/// Why a value has no JSON text, by the number that `textOf` gives.
const FAULTS: [(Code, &str); 7] = [
    (
        Code::JsonWrongType,
        "only null, booleans, numbers, strings, arrays and plain objects are JSON",
    ),
    (Code::JsonWrongType, "NaN and infinity are not JSON"),
    (Code::JsonWrongType, "undefined is not JSON; use null"),
    (Code::JsonWrongType, "this place cannot be read"),
    (
        Code::JsonTooDeep,
        "more than 64 containers are nested, or a container holds itself",
    ),
    (
        Code::WorkflowLimitExceeded,
        "too many values for one call; split the work",
    ),
    (
        Code::WorkflowLimitExceeded,
        "too much text for one call; split the work",
    ),
];

/// A JavaScript value as a normalised value of ours.
pub(crate) fn from_js(from: &JsValue) -> Result<Value, Refusal> {
    let crossed = text_of(from);
    if let Some(text) = crossed.as_string() {
        return Ok(value::read(&text)?);
    }
    let fault: Array = crossed.unchecked_into();
    let number = fault.get(0).as_f64().unwrap_or_default() as usize;
    let (code, detail) = FAULTS.get(number).copied().unwrap_or(FAULTS[0]);
    let path = fault.iter().skip(1).filter_map(|token| token.as_string());
    Err(Refusal::from(JsonError {
        code,
        pointer: path.map(|token| format!("/{}", escape(&token))).collect(),
        position: None,
        detail: detail.to_owned(),
    }))
}

/// As [`from_js`], of a value that must be an object.
pub(crate) fn object_from_js(from: &JsValue) -> Result<Map<String, Value>, Refusal> {
    match from_js(from)? {
        Value::Object(members) => Ok(members),
        _ => Err(refuse("an object is needed here")),
    }
}

/// As [`from_js`], of a value that must be an array.
pub(crate) fn array_from_js(from: &JsValue) -> Result<Vec<Value>, Refusal> {
    match from_js(from)? {
        Value::Array(items) => Ok(items),
        _ => Err(refuse("an array is needed here")),
    }
}

/// A JavaScript string as a text of ours; half a surrogate pair is refused, not replaced.
pub(crate) fn text_from_js(from: &JsValue) -> Result<String, Refusal> {
    match from_js(from)? {
        Value::String(text) => Ok(text),
        _ => Err(refuse("a string is needed here")),
    }
}

/// A value of ours as a plain JavaScript value. It goes through text, for `JSON.parse` makes
/// every member an own one and reads a double exactly as it was written.
pub(crate) fn to_js(value: &Value) -> Result<JsValue, JsValue> {
    JSON::parse(&value::canonical(value))
}

/// As [`to_js`], of something that may hold free JSON. It goes straight into text.
pub(crate) fn give_free<T: Serialize>(thing: &T) -> Result<JsValue, JsValue> {
    let text = serde_json::to_string(thing).map_err(|error| refuse(&error.to_string()))?;
    JSON::parse(&text)
}

/// Something whose member names are all ours.
pub(crate) fn give<T: Serialize>(thing: &T) -> Result<JsValue, JsValue> {
    Ok(thing.serialize(&serde_wasm_bindgen::Serializer::json_compatible())?)
}

fn refuse(detail: &str) -> Refusal {
    Refusal::from(JsonError {
        code: Code::JsonWrongType,
        pointer: String::new(),
        position: None,
        detail: detail.to_owned(),
    })
}
