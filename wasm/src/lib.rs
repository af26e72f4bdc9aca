//! The npm package: JavaScript bindings to the core (wire-format.md §11). Nothing is decided
//! here; every function brings its arguments under J1 and J4, calls the core and hands the
//! answer back.

mod cross;
mod refusal;
pub mod workflow;

use cross::{from_js, object_from_js, text_from_js, to_js};
use refusal::Refusal;
use serde_json::json;
use sluicegate_core::gate::Expr;
use sluicegate_core::mapping;
use sluicegate_core::schema::{Compatibility, Schema, compare};
use sluicegate_core::value::{self, Pointer};
use wasm_bindgen::prelude::*;

/// What crosses the border, and what is thrown.
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };
export interface SluicegateError extends Error { readonly name: "SluicegateError"; readonly code: string; readonly pointer?: string; readonly issues?: Issue[]; readonly errors?: { readonly nodeId: string; readonly pointer?: string; readonly reason: string }[]; }
export interface SchemaFault { readonly code: string; readonly path: string; readonly message: string; }
export interface ValidationFailure { readonly path: string; readonly keyword: string; readonly message: string; }
"#;

/// The value of an I-JSON text, by J1 and J4.
#[wasm_bindgen(js_name = parseText, unchecked_return_type = "Json")]
pub fn parse_text(
    #[wasm_bindgen(unchecked_param_type = "string")] text: &JsValue,
) -> Result<JsValue, JsValue> {
    to_js(&value::read(&text_from_js(text)?).map_err(Refusal::from)?)
}

/// The canonical form of an I-JSON text (J2).
#[wasm_bindgen(js_name = canonicalizeText)]
pub fn canonicalize_text(
    #[wasm_bindgen(unchecked_param_type = "string")] text: &JsValue,
) -> Result<String, JsValue> {
    let value = value::read(&text_from_js(text)?).map_err(Refusal::from)?;
    Ok(value::canonical(&value))
}

/// `sha256:` and the hash of an I-JSON text's canonical form (J2).
#[wasm_bindgen(js_name = hashText)]
pub fn hash_text(
    #[wasm_bindgen(unchecked_param_type = "string")] text: &JsValue,
) -> Result<String, JsValue> {
    let value = value::read(&text_from_js(text)?).map_err(Refusal::from)?;
    Ok(value::hash(&value).to_string())
}

/// What a JSON Pointer reads (J3); `value` is absent where nothing was found.
#[wasm_bindgen(js_name = readPointer, unchecked_return_type = "{ found: boolean; value?: Json }")]
pub fn read_pointer(
    #[wasm_bindgen(unchecked_param_type = "Json")] value: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "string")] pointer: &JsValue,
) -> Result<JsValue, JsValue> {
    let value = from_js(value)?;
    let pointer = Pointer::parse(&text_from_js(pointer)?).map_err(Refusal::from)?;
    to_js(&match pointer.read(&value) {
        Some(found) => json!({ "found": true, "value": found }),
        None => json!({ "found": false }),
    })
}

/// What is wrong with a schema; empty: it is in the subset (S1–S4).
#[wasm_bindgen(js_name = acceptSchema, unchecked_return_type = "SchemaFault[]")]
pub fn accept_schema(
    #[wasm_bindgen(unchecked_param_type = "Json")] schema: &JsValue,
) -> Result<JsValue, JsValue> {
    let faults = Schema::accept(&from_js(schema)?).err().unwrap_or_default();
    to_js(
        &faults
            .iter()
            .map(|f| json!({ "code": f.code.as_str(), "path": f.pointer, "message": f.message }))
            .collect(),
    )
}

/// Whether a value fits a schema, and every assertion that fails (G4).
#[wasm_bindgen(js_name = validateValue, unchecked_return_type = "{ valid: boolean; errors: ValidationFailure[] }")]
pub fn validate_value(
    #[wasm_bindgen(unchecked_param_type = "Json")] schema: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "Json")] value: &JsValue,
) -> Result<JsValue, JsValue> {
    let errors = accepted(schema)?.validate(&from_js(value)?);
    to_js(&json!({ "valid": errors.is_empty(), "errors": errors }))
}

/// A value that a schema accepts; `undefined` where none was found.
#[wasm_bindgen(js_name = exampleValue, unchecked_return_type = "Json | undefined")]
pub fn example_value(
    #[wasm_bindgen(unchecked_param_type = "Json")] schema: &JsValue,
) -> Result<JsValue, JsValue> {
    match accepted(schema)?.example() {
        Some(example) => to_js(&example),
        None => Ok(JsValue::UNDEFINED),
    }
}

/// Whether every, no, or perhaps some value of the source fits the target (S6).
#[wasm_bindgen(js_name = compareSchemas, unchecked_return_type = "\"compatible\" | \"incompatible\" | \"unknown\"")]
pub fn compare_schemas(
    #[wasm_bindgen(unchecked_param_type = "Json")] source: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "Json")] target: &JsValue,
) -> Result<String, JsValue> {
    let word = match compare(&accepted(source)?, &accepted(target)?) {
        Compatibility::Compatible => "compatible",
        Compatibility::Incompatible => "incompatible",
        Compatibility::Unknown => "unknown",
    };
    Ok(word.to_owned())
}

/// Evaluates gate logic against an input (L1–L5).
#[wasm_bindgen(js_name = evaluateGate)]
pub fn evaluate_gate(
    #[wasm_bindgen(unchecked_param_type = "Json")] expr: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "Json")] input: &JsValue,
) -> Result<bool, JsValue> {
    let expr = Expr::parse(&from_js(expr)?, None).map_err(Refusal::first)?;
    Ok(expr.evaluate(&from_js(input)?).map_err(Refusal::from)?)
}

/// The text of a template whose variables are given by name (M3).
#[wasm_bindgen(js_name = renderTemplate)]
pub fn render_template(
    #[wasm_bindgen(unchecked_param_type = "string")] template: &JsValue,
    #[wasm_bindgen(unchecked_param_type = "{ [name: string]: Json }")] variables: &JsValue,
) -> Result<String, JsValue> {
    let variables = object_from_js(variables)?;
    let text = mapping::render_template(&text_from_js(template)?, &variables);
    Ok(text.map_err(Refusal::first)?)
}

/// A schema of the subset; the first fault is thrown.
fn accepted(schema: &JsValue) -> Result<Schema, JsValue> {
    Ok(Schema::accept(&from_js(schema)?).map_err(Refusal::first)?)
}
