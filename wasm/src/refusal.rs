//! The JavaScript door of the stable codes: refusals become a thrown `SluicegateError` with
//! `code`, `message` and, where there is one, `pointer` (wire-format.md §11).

use sluicegate_core::code::Code;
use sluicegate_core::gate::{self, GateError};
use sluicegate_core::mapping;
use sluicegate_core::schema;
use sluicegate_core::value::JsonError;
use wasm_bindgen::JsValue;

/// What is thrown.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: Code,
    message: String,
    pointer: Option<String>,
}

impl Refusal {
    /// The first of several faults; there is always one.
    pub(crate) fn first<F: Into<Self>>(faults: Vec<F>) -> Self {
        faults.into_iter().next().map_or(
            Self {
                code: Code::JsonSyntax,
                message: String::from("refused"),
                pointer: None,
            },
            Into::into,
        )
    }
}

impl From<JsonError> for Refusal {
    fn from(error: JsonError) -> Self {
        Self {
            code: error.code,
            message: error.detail,
            pointer: Some(error.pointer),
        }
    }
}

impl From<schema::Fault> for Refusal {
    fn from(fault: schema::Fault) -> Self {
        Self {
            code: fault.code,
            message: fault.message,
            pointer: Some(fault.pointer),
        }
    }
}

impl From<gate::Fault> for Refusal {
    fn from(fault: gate::Fault) -> Self {
        Self {
            code: fault.code,
            message: fault.message,
            pointer: Some(fault.pointer),
        }
    }
}

impl From<mapping::Fault> for Refusal {
    fn from(fault: mapping::Fault) -> Self {
        Self {
            code: fault.code,
            message: fault.message,
            pointer: None,
        }
    }
}

impl From<GateError> for Refusal {
    fn from(error: GateError) -> Self {
        Self {
            code: error.code,
            message: error.message,
            pointer: None,
        }
    }
}

impl From<Refusal> for JsValue {
    fn from(refusal: Refusal) -> Self {
        let error = js_sys::Error::new(&refusal.message);
        error.set_name("SluicegateError");
        let set = |member: &str, text: &str| {
            // Setting a member of an object made just now cannot fail.
            let _ = js_sys::Reflect::set(&error, &member.into(), &text.into());
        };
        set("code", refusal.code.as_str());
        if let Some(pointer) = &refusal.pointer {
            set("pointer", pointer);
        }
        error.into()
    }
}
