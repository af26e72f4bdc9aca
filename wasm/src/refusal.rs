//! The JavaScript door of the stable codes: refusals become a thrown `SluicegateError` with
//! `code`, `message` and, where there is one, `pointer` (wire-format.md §11).

use crate::cross::to_js;
use serde_json::json;
use sluicegate_core::code::Code;
use sluicegate_core::gate::{self, GateError};
use sluicegate_core::mapping;
use sluicegate_core::plan::PlanError;
use sluicegate_core::schema;
use sluicegate_core::simulate::Refused;
use sluicegate_core::validate::Issue;
use sluicegate_core::value::{JsonError, Value};
use wasm_bindgen::JsValue;

/// What is thrown.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: Code,
    message: String,
    pointer: Option<String>,
    /// A list that says more, with the member's name: a graph's `issues`, fixtures' `errors`.
    list: Option<(&'static str, Value)>,
}

impl Refusal {
    /// The first of several faults; there is always one.
    pub(crate) fn first<F: Into<Self>>(faults: Vec<F>) -> Self {
        faults.into_iter().next().map_or(
            Self {
                code: Code::JsonSyntax,
                message: String::from("refused"),
                pointer: None,
                list: None,
            },
            Into::into,
        )
    }
}

impl Refusal {
    /// A graph with errors, where a plan is needed.
    pub(crate) fn of_graph(issues: &[Issue]) -> Self {
        Self {
            code: Code::WorkflowGraphInvalid,
            message: String::from("the graph has errors; `issues` names them"),
            pointer: None,
            list: Some(("issues", json!(issues))),
        }
    }

    /// A plan that cannot be loaded, though it was compiled just now.
    pub(crate) fn of_plan(error: &PlanError) -> Self {
        Self {
            code: Code::WorkflowGraphInvalid,
            message: error.to_string(),
            pointer: None,
            list: None,
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        let (code, pointer, list) = match refused {
            Refused::Input { code, pointer, .. } => (code, Some(format!("/input{pointer}")), None),
            Refused::Fixtures(errors) => {
                let list = Some(("errors", json!(errors)));
                (Code::WorkflowFixturesInvalid, None, list)
            }
            Refused::Broken(_) => (Code::RecoveryInconsistent, None, None),
        };
        Self {
            code,
            message,
            pointer,
            list,
        }
    }
}

impl From<JsonError> for Refusal {
    fn from(error: JsonError) -> Self {
        Self {
            code: error.code,
            message: error.detail,
            pointer: Some(error.pointer),
            list: None,
        }
    }
}

impl From<schema::Fault> for Refusal {
    fn from(fault: schema::Fault) -> Self {
        Self {
            code: fault.code,
            message: fault.message,
            pointer: Some(fault.pointer),
            list: None,
        }
    }
}

impl From<gate::Fault> for Refusal {
    fn from(fault: gate::Fault) -> Self {
        Self {
            code: fault.code,
            message: fault.message,
            pointer: Some(fault.pointer),
            list: None,
        }
    }
}

impl From<mapping::Fault> for Refusal {
    fn from(fault: mapping::Fault) -> Self {
        Self {
            code: fault.code,
            message: fault.message,
            pointer: None,
            list: None,
        }
    }
}

impl From<GateError> for Refusal {
    fn from(error: GateError) -> Self {
        Self {
            code: error.code,
            message: error.message,
            pointer: None,
            list: None,
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
        if let Some((member, list)) = &refusal.list
            && let Ok(list) = to_js(list)
        {
            let _ = js_sys::Reflect::set(&error, &(*member).into(), &list);
        }
        error.into()
    }
}
