//! Runs and audit chains that happened elsewhere (wire-format.md §11): folded to a picture, checked.

use sluicegate_core::audit::{self, Head};
use sluicegate_core::code::Code;
use sluicegate_core::ids::Hash;
use sluicegate_core::plan::Plan;
use sluicegate_core::run;
use sluicegate_core::value::{Place, Value};
use wasm_bindgen::prelude::*;

use crate::cross::{array_from_js, from_js, give, give_free};
use crate::refusal::Refusal;

/// A run as a picture on its graph, after as many of its events as are given.
#[wasm_bindgen(js_name = foldEvents)]
pub fn fold_events(plan: &JsValue, events: &JsValue) -> Result<JsValue, JsValue> {
    let plan = Plan::read(&from_js(plan)?).map_err(Refusal::from)?;
    let run = run::fold_events(&plan, &array_from_js(events)?).map_err(Refusal::from)?;
    give_free(&run::overlay(&plan, &run))
}

/// Whether an audit chain is whole, from its first entry on, and ends at its head, where one is
/// given (H2, H3).
#[wasm_bindgen(js_name = verifyAudit)]
pub fn verify_audit(entries: &JsValue, head: Option<JsValue>) -> Result<JsValue, JsValue> {
    let entries = array_from_js(entries)?;
    let head = match head {
        Some(head) => Some(head_of(&from_js(&head)?)?),
        None => None,
    };
    give(&audit::verify(&entries, head, None))
}

fn head_of(head: &Value) -> Result<Head, Refusal> {
    let mut object = Place::root(head).object()?;
    let sequence = object.required("sequence")?;
    let hash = object.required("hash")?;
    object.done()?;
    let wrong = |place: &Place<'_>, detail| place.error(Code::JsonWrongType, detail);
    Ok(Head {
        sequence: (sequence.value().as_u64())
            .ok_or_else(|| wrong(&sequence, "an integer from 0 is needed here"))?,
        hash: Hash::parse(hash.text()?)
            .ok_or_else(|| wrong(&hash, "`sha256:` and 64 hexadecimal digits are needed here"))?,
    })
}
