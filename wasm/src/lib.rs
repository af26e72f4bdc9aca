//! The npm package: JavaScript bindings to the core (wire-format.md §11). Nothing is decided
//! here; every function brings its arguments under J1 and J4, calls the core and hands the
//! answer back. Its types stand in `npm/index.d.ts`, for people write better ones.

mod cross;
mod refusal;
pub mod run;
pub mod workflow;

use cross::{from_js, give, object_from_js, text_from_js, to_js};
use refusal::Refusal;
use serde::Serialize;
use serde_json::json;
use sluicegate_core::code::Code;
use sluicegate_core::gate::Expr;
use sluicegate_core::mapping;
use sluicegate_core::schema::{Compatibility, Failure, Fault, Schema, compare};
use sluicegate_core::value::{self, Pointer};
use wasm_bindgen::prelude::*;

/// The value of an I-JSON text, by J1 and J4.
#[wasm_bindgen(js_name = parseText)]
pub fn parse_text(text: &JsValue) -> Result<JsValue, JsValue> {
    to_js(&value::read(&text_from_js(text)?).map_err(Refusal::from)?)
}

/// The canonical form of an I-JSON text (J2).
#[wasm_bindgen(js_name = canonicalizeText)]
pub fn canonicalize_text(text: &JsValue) -> Result<String, JsValue> {
    let value = value::read(&text_from_js(text)?).map_err(Refusal::from)?;
    Ok(value::canonical(&value))
}

/// `sha256:` and the hash of an I-JSON text's canonical form (J2).
#[wasm_bindgen(js_name = hashText)]
pub fn hash_text(text: &JsValue) -> Result<String, JsValue> {
    let value = value::read(&text_from_js(text)?).map_err(Refusal::from)?;
    Ok(value::hash(&value).to_string())
}

/// What a JSON Pointer reads (J3); `value` is absent where nothing was found.
#[wasm_bindgen(js_name = readPointer)]
pub fn read_pointer(value: &JsValue, pointer: &JsValue) -> Result<JsValue, JsValue> {
    let value = from_js(value)?;
    let pointer = Pointer::parse(&text_from_js(pointer)?).map_err(Refusal::from)?;
    to_js(&match pointer.read(&value) {
        Some(found) => json!({ "found": true, "value": found }),
        None => json!({ "found": false }),
    })
}

/// What is wrong with a schema; empty: it is in the subset (S1–S4).
#[wasm_bindgen(js_name = acceptSchema)]
pub fn accept_schema(schema: &JsValue) -> Result<JsValue, JsValue> {
    let faults = Schema::accept(&from_js(schema)?).err().unwrap_or_default();
    let told = |fault: Fault| ToldFault {
        code: fault.code,
        path: fault.pointer,
        message: fault.message,
    };
    give(&faults.into_iter().map(told).collect::<Vec<_>>())
}

/// A fault of a schema as it is told.
#[derive(Serialize)]
struct ToldFault {
    code: Code,
    path: String,
    message: String,
}

/// How a value fits a schema.
#[derive(Serialize)]
struct Fit {
    valid: bool,
    errors: Vec<Failure>,
}

/// Whether a value fits a schema, and every assertion that fails (G4).
#[wasm_bindgen(js_name = validateValue)]
pub fn validate_value(schema: &JsValue, value: &JsValue) -> Result<JsValue, JsValue> {
    let errors = accepted(schema)?.validate(&from_js(value)?);
    give(&Fit {
        valid: errors.is_empty(),
        errors,
    })
}

/// A value that a schema accepts; `undefined` where none was found.
#[wasm_bindgen(js_name = exampleValue)]
pub fn example_value(schema: &JsValue) -> Result<JsValue, JsValue> {
    match accepted(schema)?.example() {
        Some(example) => to_js(&example),
        None => Ok(JsValue::UNDEFINED),
    }
}

/// Whether every, no, or perhaps some value of the source fits the target (S6).
#[wasm_bindgen(js_name = compareSchemas)]
pub fn compare_schemas(source: &JsValue, target: &JsValue) -> Result<String, JsValue> {
    let word = match compare(&accepted(source)?, &accepted(target)?) {
        Compatibility::Compatible => "compatible",
        Compatibility::Incompatible => "incompatible",
        Compatibility::Unknown => "unknown",
    };
    Ok(word.to_owned())
}

/// Evaluates gate logic against an input (L1–L5).
#[wasm_bindgen(js_name = evaluateGate)]
pub fn evaluate_gate(expr: &JsValue, input: &JsValue) -> Result<bool, JsValue> {
    let expr = Expr::parse(&from_js(expr)?, None).map_err(Refusal::first)?;
    Ok(expr.evaluate(&from_js(input)?).map_err(Refusal::from)?)
}

/// The text of a template whose variables are given by name (M3).
#[wasm_bindgen(js_name = renderTemplate)]
pub fn render_template(template: &JsValue, variables: &JsValue) -> Result<String, JsValue> {
    let variables = object_from_js(variables)?;
    let text = mapping::render_template(&text_from_js(template)?, &variables);
    Ok(text.map_err(Refusal::first)?)
}

/// A schema of the subset; the first fault is thrown.
fn accepted(schema: &JsValue) -> Result<Schema, JsValue> {
    Ok(Schema::accept(&from_js(schema)?).map_err(Refusal::first)?)
}
