//! `action` (wire-format.md G4).

use serde::Serialize;

use super::{FailurePolicy, Mapping};
use crate::graph::node::{optional_integer, optional_text};
use crate::ids::ActionId;
use crate::value::{JsonError, Object, Place};

/// A node that invokes a pinned action contract. Its time limit is the contract's.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionNode {
    /// Which action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionReference>,
    /// How the input is built; none: the incoming envelope as it is (M1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mappings: Option<Vec<Mapping>>,
    /// What happens when an attempt fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
}

/// An action's exact contract version.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActionReference {
    /// The action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_id: Option<ActionId>,
    /// The contract version, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_version: Option<i64>,
}

impl ActionNode {
    pub(super) fn read(object: &mut Object<'_>) -> Result<Self, JsonError> {
        Ok(Self {
            action: object
                .optional("action")
                .map(|place| ActionReference::read(&place))
                .transpose()?,
            mappings: Mapping::read_list(object.optional("mappings"))?,
            failure_policy: FailurePolicy::read(object.optional("failurePolicy"))?,
        })
    }
}

impl ActionReference {
    fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let reference = Self {
            action_id: optional_text(object.optional("actionId"))?.map(ActionId::from),
            contract_version: optional_integer(object.optional("contractVersion"))?,
        };
        object.done()?;
        Ok(reference)
    }
}
