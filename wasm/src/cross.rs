//! Values across the border without loss (wire-format.md §11, J1, J4): absent stays absent,
//! `__proto__` stays an own member, and what JSON does not have is refused, never rounded to
//! `null` as `JSON.stringify` would.

use crate::refusal::Refusal;
use js_sys::{Array, JSON, JsString, Object, Reflect};
use sluicegate_core::code::Code;
use sluicegate_core::limits::Limits;
use sluicegate_core::value::{self, JsonError, Map, Number, Value};
use wasm_bindgen::{JsCast, JsValue};

/// A JavaScript value as a normalised value of ours.
pub(crate) fn from_js(from: &JsValue) -> Result<Value, Refusal> {
    let mut value = read(from, &mut Vec::new())?
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

/// A JavaScript string as a text of ours; half a surrogate pair is refused, not replaced.
pub(crate) fn text_from_js(from: &JsValue) -> Result<String, Refusal> {
    let text = from
        .dyn_ref::<JsString>()
        .ok_or_else(|| refuse(Code::JsonWrongType, &[], "a string is needed here"))?;
    text_of(text, &[])
}

/// A value of ours as a plain JavaScript value. It goes through text, for `JSON.parse` makes
/// every member an own one and reads a double exactly as it was written.
pub(crate) fn to_js(value: &Value) -> Result<JsValue, JsValue> {
    JSON::parse(&value::canonical(value))
}

/// `None` for `undefined`: an object's member is then absent.
fn read(from: &JsValue, path: &mut Vec<String>) -> Result<Option<Value>, Refusal> {
    if from.is_undefined() {
        return Ok(None);
    }
    if from.is_null() {
        return Ok(Some(Value::Null));
    }
    if let Some(boolean) = from.as_bool() {
        return Ok(Some(Value::Bool(boolean)));
    }
    if let Some(number) = from.as_f64() {
        let number = Number::from_f64(number)
            .ok_or_else(|| refuse(Code::JsonWrongType, path, "NaN and infinity are not JSON"))?;
        return Ok(Some(Value::Number(number)));
    }
    if let Some(text) = from.dyn_ref::<JsString>() {
        return Ok(Some(Value::String(text_of(text, path)?)));
    }
    let array = Array::is_array(from);
    if (array || is_plain(from)) && path.len() >= Limits::JSON_DEPTH {
        let detail = "more than 64 containers are nested, or a container holds itself";
        return Err(refuse(Code::JsonTooDeep, path, detail));
    }
    if array {
        return items(from.unchecked_ref(), path).map(Some);
    }
    if is_plain(from) {
        return members(from.unchecked_ref(), path).map(Some);
    }
    let detail = "only null, booleans, numbers, strings, arrays and plain objects are JSON";
    Err(refuse(Code::JsonWrongType, path, detail))
}

fn items(array: &Array, path: &mut Vec<String>) -> Result<Value, Refusal> {
    let mut items = Vec::new();
    for index in 0..array.length() {
        path.push(index.to_string());
        let item = read(&array.get(index), path)?
            .ok_or_else(|| refuse(Code::JsonWrongType, path, "undefined is not JSON; use null"))?;
        items.push(item);
        path.pop();
    }
    Ok(Value::Array(items))
}

fn members(object: &Object, path: &mut Vec<String>) -> Result<Value, Refusal> {
    let mut members = Map::new();
    for key in Object::keys(object).iter() {
        let name = text_of(key.unchecked_ref(), path)?;
        path.push(name.clone());
        let member = Reflect::get(object, &key)
            .map_err(|_| refuse(Code::JsonWrongType, path, "this member cannot be read"))?;
        if let Some(member) = read(&member, path)? {
            members.insert(name, member);
        }
        path.pop();
    }
    Ok(Value::Object(members))
}

/// Whether this is an object made of its own members alone. A date, a map or an instance of a
/// class has a longer chain of prototypes; reading its members would lose what it is.
fn is_plain(from: &JsValue) -> bool {
    let prototype = |of: &JsValue| Reflect::get_prototype_of(of).map(JsValue::from);
    from.is_object()
        && prototype(from).is_ok_and(|first| {
            first.is_null() || prototype(&first).is_ok_and(|second| second.is_null())
        })
}

fn text_of(text: &JsString, path: &[String]) -> Result<String, Refusal> {
    if text.is_valid_utf16() {
        return Ok(String::from(text));
    }
    let detail = "a string holds half of a surrogate pair";
    Err(refuse(Code::JsonLoneSurrogate, path, detail))
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
