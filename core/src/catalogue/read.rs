//! Reading a catalogue that stands in a document, with exact pointers (wire-format.md §11, J4).

use serde::Deserialize;

use super::{ActionDescriptor, AgentRow, Catalogue};
use crate::code::Code;
use crate::ids::{ActionId, AgentId};
use crate::schema::Schema;
use crate::value::{JsonError, Place, Value};

impl Catalogue {
    /// Reads a catalogue. Contracts whose schemas are outside the subset are refused: the rules
    /// that need them would be silent.
    ///
    /// # Errors
    /// The first offender with its pointer; a fault of a schema has its `schema.*` code, a second
    /// row of the same revision or version `id.duplicate`.
    pub fn read(document: &Value) -> Result<Self, JsonError> {
        Self::read_at(&Place::root(document))
    }

    /// As [`Catalogue::read`], for a catalogue inside a larger document.
    ///
    /// # Errors
    /// As [`Catalogue::read`].
    pub fn read_at(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let agents = list(object.optional("agents"), AgentRow::read)?;
        let actions = list(object.optional("actions"), ActionDescriptor::read)?;
        let permissions = object.optional("permissions");
        let permissions = permissions.map(|place| texts(Some(place))).transpose()?;
        object.done()?;
        let (agents, actions) = (
            each_once(agents, |row| (row.agent_id.clone(), row.revision))?,
            each_once(actions, |row| (row.id.clone(), row.contract_version))?,
        );
        Ok(Self {
            agents,
            actions,
            permissions,
        })
    }
}

impl AgentRow {
    fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let row = Self {
            agent_id: AgentId::from(object.required("agentId")?.text()?),
            revision: from_one(&object.required("revision")?)?,
            name: object.required("name")?.text()?.to_owned(),
            status: word(&object.required("status")?)?,
            provider: object.required("provider")?.text()?.to_owned(),
            model: object.required("model")?.text()?.to_owned(),
            structured_output: object.required("structuredOutput")?.boolean()?,
            required_permissions: texts(Some(object.required("requiredPermissions")?))?,
        };
        object.done()?;
        Ok(row)
    }
}

impl ActionDescriptor {
    fn read(place: &Place<'_>) -> Result<Self, JsonError> {
        let mut object = place.object()?;
        let row = Self {
            id: ActionId::from(object.required("id")?.text()?),
            contract_version: from_one(&object.required("contractVersion")?)?,
            description: object.required("description")?.text()?.to_owned(),
            required_permissions: texts(Some(object.required("requiredPermissions")?))?,
            input_schema: schema(&object.required("inputSchema")?)?,
            output_schema: schema(&object.required("outputSchema")?)?,
            timeout_ms: from_one(&object.required("timeoutMs")?)?,
            idempotency: word(&object.required("idempotency")?)?,
            risk: word(&object.required("risk")?)?,
            cancellation: word(&object.required("cancellation")?)?,
            retryable_codes: texts(object.optional("retryableCodes"))?,
        };
        object.done()?;
        Ok(row)
    }
}

/// The rows of a list with the places that they stand at.
fn list<'v, T>(
    list: Option<Place<'v>>,
    read: impl Fn(&Place<'v>) -> Result<T, JsonError>,
) -> Result<Vec<(Place<'v>, T)>, JsonError> {
    let places = list.map(|place| place.array()).transpose()?;
    let rows = places.unwrap_or_default().into_iter();
    rows.map(|place| read(&place).map(|row| (place, row)))
        .collect()
}

/// Which of two rows would count is not for a reader to choose.
fn each_once<T, K: Ord>(
    rows: Vec<(Place<'_>, T)>,
    key: impl Fn(&T) -> K,
) -> Result<Vec<T>, JsonError> {
    let mut seen = std::collections::BTreeSet::new();
    let once = |(place, row): (Place<'_>, T)| {
        if seen.insert(key(&row)) {
            Ok(row)
        } else {
            let detail = "an earlier row has the same id and version; remove one of them";
            Err(place.error(Code::IdDuplicate, detail))
        }
    };
    rows.into_iter().map(once).collect()
}

fn texts(list: Option<Place<'_>>) -> Result<Vec<String>, JsonError> {
    let places = list.map(|place| place.array()).transpose()?;
    let texts = places.unwrap_or_default().into_iter();
    texts.map(|place| place.text().map(str::to_owned)).collect()
}

fn from_one(place: &Place<'_>) -> Result<u64, JsonError> {
    let number = place.value().as_u64().filter(|number| *number > 0);
    number.ok_or_else(|| place.error(Code::JsonWrongType, "an integer from 1 is needed here"))
}

/// One of the words of an enumeration.
fn word<T: for<'d> Deserialize<'d>>(place: &Place<'_>) -> Result<T, JsonError> {
    place.text()?;
    T::deserialize(place.value())
        .map_err(|error| place.error(Code::JsonWrongType, error.to_string()))
}

fn schema(place: &Place<'_>) -> Result<Value, JsonError> {
    match Schema::accept(place.value()) {
        Ok(_) => Ok(place.value().clone()),
        Err(faults) => Err(faults.into_iter().next().map_or_else(
            || place.error(Code::SchemaInvalid, "a schema is needed here"),
            |fault| JsonError {
                pointer: format!("{}{}", place.pointer(), fault.pointer),
                ..place.error(fault.code, fault.message)
            },
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::value::to_value;

    fn sound() -> Value {
        json!({
            "agents": [{"agentId": "writer", "revision": 1, "name": "Writer", "status": "active",
                "provider": "scripted", "model": "m", "structuredOutput": true,
                "requiredPermissions": ["agents.use"]}],
            "actions": [{"id": "claim.read", "contractVersion": 1, "description": "Reads a claim.",
                "requiredPermissions": ["claims.read"], "inputSchema": {"type": "object"},
                "outputSchema": true, "timeoutMs": 1000, "idempotency": "required",
                "risk": "workspace-write", "cancellation": "not-supported",
                "retryableCodes": ["claim.busy"]}],
            "permissions": ["agents.use"],
        })
    }

    fn refusal(document: &Value) -> String {
        let error = Catalogue::read(document).unwrap_err();
        format!("{} {}", error.code.as_str(), error.pointer)
    }

    #[test]
    fn j4_a_catalogue_is_read_whole() {
        let catalogue = Catalogue::read(&sound()).unwrap();
        assert_eq!(to_value(&catalogue).unwrap(), sound());
        assert_eq!(Catalogue::read(&json!({})).unwrap(), Catalogue::default());
    }

    #[test]
    fn j4_a_misfit_names_its_place() {
        let changed = |pointer: &str, value: Value| {
            let mut document = sound();
            *document.pointer_mut(pointer).unwrap() = value;
            refusal(&document)
        };
        assert_eq!(refusal(&json!([[], []])), "json.wrong-type ");
        let row = json!(["writer", 1, "Writer", "active", "scripted", "m", true, []]);
        assert_eq!(changed("/agents/0", row), "json.wrong-type /agents/0");
        for (pointer, value) in [
            ("/agents/0/status", json!({"active": null})),
            ("/agents/0/status", json!("asleep")),
            ("/agents/0/revision", json!(0)),
            ("/actions/0/timeoutMs", json!(0)),
            ("/actions/0/contractVersion", json!(1.5)),
            ("/actions/0/risk", json!(1)),
            ("/permissions", json!(null)),
        ] {
            assert_eq!(
                changed(pointer, value),
                format!("json.wrong-type {pointer}")
            );
        }
        let mut document = sound();
        document["actions"][0]["more"] = json!(1);
        assert_eq!(refusal(&document), "json.unknown-member /actions/0/more");
        document = sound();
        document["agents"][0]
            .as_object_mut()
            .unwrap()
            .remove("name");
        assert_eq!(refusal(&document), "json.missing-member /agents/0");
    }

    #[test]
    fn g7_a_contract_whose_schema_is_outside_the_subset_is_refused() {
        for (name, schema, refused) in [
            (
                "inputSchema",
                json!({"$anchor": "a"}),
                "schema.keyword-unsupported /actions/0/inputSchema/$anchor",
            ),
            (
                "outputSchema",
                json!({"type": "text"}),
                "schema.invalid /actions/0/outputSchema/type",
            ),
            (
                "inputSchema",
                json!(1),
                "schema.invalid /actions/0/inputSchema",
            ),
        ] {
            let mut document = sound();
            document["actions"][0][name] = schema;
            assert_eq!(refusal(&document), refused);
        }
    }

    #[test]
    fn g7_each_version_has_one_row() {
        for list in ["agents", "actions"] {
            let mut document = sound();
            let row = document[list][0].clone();
            document[list].as_array_mut().unwrap().push(row);
            assert_eq!(refusal(&document), format!("id.duplicate /{list}/1"));
            let version = if list == "agents" {
                "revision"
            } else {
                "contractVersion"
            };
            document[list][1][version] = json!(2);
            assert!(Catalogue::read(&document).is_ok());
        }
    }
}
