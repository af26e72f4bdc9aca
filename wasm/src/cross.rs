//! Values across the border without loss (wire-format.md §11, J1, J4): absent stays absent,
//! `__proto__` stays an own member, and what JSON does not have is refused, never rounded to
//! `null` as `JSON.stringify` would.
//!
//! Free JSON is read here, member by member, and not by `serde-wasm-bindgen`: that takes a
//! lone surrogate for U+FFFD, an undefined item for null, a map, a date and an instance of a class
//! for what their members say, and knows neither the place of a fault nor a bound. Going out, free
//! JSON is `JSON.parse` of its text: setting a member `__proto__` on an object would set its
//! prototype instead. `tests/npm/crossing.test.mjs` holds each of these. What has no member
//! names but ours goes out through `serde-wasm-bindgen` ([`give`]).

use js_sys::{Array, JSON, Reflect};
use serde::Serialize;
use sluicegate_core::code::Code;
use sluicegate_core::limits::Limits;
use sluicegate_core::value::{self, JsonError, Map, Number, Value};
use wasm_bindgen::prelude::*;

use crate::refusal::Refusal;

#[wasm_bindgen(raw_module = "./border.js")]
extern "C" {
    /// A number of [`kind`]. Never throws, as the two below.
    #[wasm_bindgen(js_name = kindOf)]
    fn kind_of(value: &JsValue) -> u32;
    #[wasm_bindgen(js_name = namesOf)]
    fn names_of(object: &JsValue) -> Option<Array>;
    #[wasm_bindgen(js_name = lengthOf)]
    fn length_of(array: &JsValue) -> f64;
}

/// What `kindOf` tells; from `TEXT` on, a string of that many UTF-16 units more.
mod kind {
    pub(super) const UNDEFINED: u32 = 0;
    pub(super) const NULL: u32 = 1;
    pub(super) const FALSE: u32 = 2;
    pub(super) const TRUE: u32 = 3;
    pub(super) const NUMBER: u32 = 4;
    pub(super) const ARRAY: u32 = 5;
    pub(super) const OBJECT: u32 = 6;
    pub(super) const HALF_PAIR: u32 = 7;
    pub(super) const OTHER: u32 = 8;
    pub(super) const TEXT: u32 = 9;
}

/// UTF-16 units of all strings in one argument. Memory that cannot be had is a trap, after
/// which nothing works any more; a proxy can go on for ever.
const UNITS: u32 = 1 << 26;
/// Values in one argument, for the same reason.
const VALUES: u32 = 1 << 22;

/// A JavaScript value as a normalised value of ours.
pub(crate) fn from_js(from: &JsValue) -> Result<Value, Refusal> {
    let mut value = Reader::default()
        .read(from)?
        .ok_or_else(|| refuse(Code::JsonWrongType, &[], "undefined is not JSON; use null"))?;
    value::normalise(&mut value)?;
    Ok(value)
}

/// As [`from_js`], of a value that must be an object.
pub(crate) fn object_from_js(from: &JsValue) -> Result<Map<String, Value>, Refusal> {
    match from_js(from)? {
        Value::Object(members) => Ok(members),
        _ => Err(refuse(Code::JsonWrongType, &[], "an object is needed here")),
    }
}

/// As [`from_js`], of a value that must be an array.
pub(crate) fn array_from_js(from: &JsValue) -> Result<Vec<Value>, Refusal> {
    match from_js(from)? {
        Value::Array(items) => Ok(items),
        _ => Err(refuse(Code::JsonWrongType, &[], "an array is needed here")),
    }
}

/// A JavaScript string as a text of ours; half a surrogate pair is refused, not replaced.
pub(crate) fn text_from_js(from: &JsValue) -> Result<String, Refusal> {
    match kind_of(from) {
        kind @ (kind::HALF_PAIR | kind::TEXT..) => Reader::default().text(kind, from),
        _ => Err(refuse(Code::JsonWrongType, &[], "a string is needed here")),
    }
}

/// A value of ours as a plain JavaScript value. It goes through text, for `JSON.parse` makes
/// every member an own one and reads a double exactly as it was written.
pub(crate) fn to_js(value: &Value) -> Result<JsValue, JsValue> {
    JSON::parse(&value::canonical(value))
}

/// As [`to_js`], of something that may hold free JSON.
pub(crate) fn give_free<T: Serialize>(thing: &T) -> Result<JsValue, JsValue> {
    to_js(&value::to_answer(thing).map_err(Refusal::from)?)
}

/// Something whose member names are all ours.
pub(crate) fn give<T: Serialize>(thing: &T) -> Result<JsValue, JsValue> {
    Ok(thing.serialize(&serde_wasm_bindgen::Serializer::json_compatible())?)
}

/// One argument, as far as it was read.
#[derive(Default)]
struct Reader {
    path: Vec<String>,
    values: u32,
    units: u32,
}

impl Reader {
    /// `None` for `undefined`: an object's member is then absent.
    fn read(&mut self, from: &JsValue) -> Result<Option<Value>, Refusal> {
        self.values += 1;
        if self.values > VALUES {
            return Err(self.refuse(Code::WorkflowLimitExceeded, "too many values for one call"));
        }
        Ok(Some(match kind_of(from) {
            kind::UNDEFINED => return Ok(None),
            kind::NULL => Value::Null,
            kind::FALSE => Value::Bool(false),
            kind::TRUE => Value::Bool(true),
            kind::NUMBER => {
                let number = from.as_f64().and_then(Number::from_f64);
                Value::Number(number.ok_or_else(|| self.wrong("NaN and infinity are not JSON"))?)
            }
            kind::ARRAY => self.items(from)?,
            kind::OBJECT => self.members(from)?,
            kind @ (kind::HALF_PAIR | kind::TEXT..) => Value::String(self.text(kind, from)?),
            kind::OTHER => {
                return Err(self.wrong(
                    "only null, booleans, numbers, strings, arrays and plain objects are JSON",
                ));
            }
        }))
    }

    fn items(&mut self, array: &JsValue) -> Result<Value, Refusal> {
        self.deeper()?;
        let length = length_of(array);
        if length < 0.0 {
            return Err(self.wrong("this array does not tell its length"));
        }
        let mut items = Vec::new();
        let mut index = 0u32;
        while f64::from(index) < length {
            self.path.push(index.to_string());
            let item = Reflect::get_u32(array, index)
                .map_err(|_| self.wrong("this item cannot be read"))?;
            let item = self.read(&item)?;
            items.push(item.ok_or_else(|| self.wrong("undefined is not JSON; use null"))?);
            self.path.pop();
            index += 1;
        }
        Ok(Value::Array(items))
    }

    fn members(&mut self, object: &JsValue) -> Result<Value, Refusal> {
        self.deeper()?;
        let names =
            names_of(object).ok_or_else(|| self.wrong("this object does not tell its members"))?;
        let mut members = Map::new();
        for at in 0..names.length() {
            let key = names.get(at);
            let name = self.text(kind_of(&key), &key)?;
            self.path.push(name.clone());
            let member =
                Reflect::get(object, &key).map_err(|_| self.wrong("this member cannot be read"))?;
            if let Some(member) = self.read(&member)? {
                members.insert(name, member);
            }
            self.path.pop();
        }
        Ok(Value::Object(members))
    }

    /// A string whose kind is known.
    fn text(&mut self, kind: u32, text: &JsValue) -> Result<String, Refusal> {
        let Some(length) = kind.checked_sub(kind::TEXT) else {
            let detail = "a string holds half of a surrogate pair";
            return Err(self.refuse(Code::JsonLoneSurrogate, detail));
        };
        self.units = self.units.saturating_add(length);
        if self.units > UNITS {
            return Err(self.refuse(Code::WorkflowLimitExceeded, "too much text for one call"));
        }
        text.as_string()
            .ok_or_else(|| self.wrong("a string is needed here"))
    }

    fn deeper(&self) -> Result<(), Refusal> {
        if self.path.len() < Limits::JSON_DEPTH {
            return Ok(());
        }
        let detail = "more than 64 containers are nested, or a container holds itself";
        Err(self.refuse(Code::JsonTooDeep, detail))
    }

    fn wrong(&self, detail: &str) -> Refusal {
        self.refuse(Code::JsonWrongType, detail)
    }

    fn refuse(&self, code: Code, detail: &str) -> Refusal {
        refuse(code, &self.path, detail)
    }
}

fn refuse(code: Code, path: &[String], detail: &str) -> Refusal {
    let escape = |token: &String| format!("/{}", token.replace('~', "~0").replace('/', "~1"));
    Refusal::from(JsonError {
        code,
        pointer: path.iter().map(escape).collect(),
        position: None,
        detail: detail.to_owned(),
    })
}
