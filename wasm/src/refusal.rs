//! The JavaScript door of the stable codes: refusals become a thrown `SluicegateError` with
//! `code`, `message` and, where there is one, `pointer` (wire-format.md §11).

use crate::cross::to_js;
use serde_json::json;
use sluicegate_core::code::Code;
use sluicegate_core::gate::{self, GateError};
use sluicegate_core::mapping;
use sluicegate_core::plan::PlanError;
use sluicegate_core::run::Corrupt;
use sluicegate_core::schema;
use sluicegate_core::simulate::Refused;
use sluicegate_core::validate::Issue;
use sluicegate_core::value::{JsonError, Value};
use wasm_bindgen::prelude::*;

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
}

impl From<PlanError> for Refusal {
    /// A value that is no plan, or one that no compiler known here made.
    fn from(error: PlanError) -> Self {
        let (code, pointer) = match error {
            PlanError::Shape(_) => (Code::JsonWrongType, Some(String::new())),
            PlanError::Version { .. } | PlanError::Broken(_) => (Code::WorkflowGraphInvalid, None),
        };
        Self {
            code,
            message: error.to_string(),
            pointer,
            list: None,
        }
    }
}

impl From<Corrupt> for Refusal {
    fn from(corrupt: Corrupt) -> Self {
        Self {
            code: corrupt.code,
            message: corrupt.to_string(),
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

#[wasm_bindgen(raw_module = "./border.js")]
extern "C" {
    /// The class that the package exports.
    type SluicegateError;
    #[wasm_bindgen(constructor)]
    fn new(code: &str, message: &str, pointer: Option<&str>, list: JsValue) -> SluicegateError;
}

impl From<Refusal> for JsValue {
    fn from(refusal: Refusal) -> Self {
        let Refusal {
            code,
            message,
            pointer,
            list,
        } = refusal;
        // The list's own members are ours; only a code of a contract comes from outside, as a text.
        let list = list.and_then(|(member, list)| to_js(&json!({ member: list })).ok());
        let list = list.unwrap_or(JsValue::UNDEFINED);
        SluicegateError::new(code.as_str(), &message, pointer.as_deref(), list).into()
    }
}
