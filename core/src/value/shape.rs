//! Reading a known shape out of a value with exact pointers (J4, J7): graphs, fixtures and
//! request bodies all go through here, so an unknown member is never dropped silently.

use super::{JsonError, Map, Value, pointer::escape};
use crate::code::Code;

/// A value together with where it stands in its document.
#[derive(Debug, Clone)]
pub struct Place<'v> {
    value: &'v Value,
    pointer: String,
}

/// An object at a place. Members are asked for by name; [`Object::done`] refuses the rest.
#[derive(Debug)]
pub struct Object<'v> {
    members: &'v Map<String, Value>,
    pointer: String,
    asked: Vec<&'static str>,
}

impl<'v> Place<'v> {
    /// The whole document.
    #[must_use]
    pub fn root(value: &'v Value) -> Self {
        Self {
            value,
            pointer: String::new(),
        }
    }
    /// The value itself.
    #[must_use]
    pub fn value(&self) -> &'v Value {
        self.value
    }
    /// Its JSON Pointer.
    #[must_use]
    pub fn pointer(&self) -> &str {
        &self.pointer
    }
    /// An error at this place.
    pub fn error(&self, code: Code, detail: impl Into<String>) -> JsonError {
        JsonError {
            code,
            pointer: self.pointer.clone(),
            position: None,
            detail: detail.into(),
        }
    }
    /// As an object; else `json.wrong-type`.
    pub fn object(&self) -> Result<Object<'v>, JsonError> {
        let Value::Object(members) = self.value else {
            return Err(self.error(Code::JsonWrongType, "an object is needed here"));
        };
        Ok(Object {
            members,
            pointer: self.pointer.clone(),
            asked: Vec::new(),
        })
    }
    /// As an array's items; else `json.wrong-type`.
    pub fn array(&self) -> Result<Vec<Place<'v>>, JsonError> {
        let Value::Array(items) = self.value else {
            return Err(self.error(Code::JsonWrongType, "an array is needed here"));
        };
        Ok(items
            .iter()
            .enumerate()
            .map(|(i, value)| Place {
                value,
                pointer: format!("{}/{i}", self.pointer),
            })
            .collect())
    }
    /// An object's members whatever their names, in canonical order of the map.
    pub fn entries(&self) -> Result<Vec<(&'v str, Place<'v>)>, JsonError> {
        let Value::Object(members) = self.value else {
            return Err(self.error(Code::JsonWrongType, "an object is needed here"));
        };
        Ok(members
            .iter()
            .map(|(k, value)| {
                (
                    k.as_str(),
                    Place {
                        value,
                        pointer: format!("{}/{}", self.pointer, escape(k)),
                    },
                )
            })
            .collect())
    }
    /// As a string.
    pub fn text(&self) -> Result<&'v str, JsonError> {
        self.value
            .as_str()
            .ok_or_else(|| self.error(Code::JsonWrongType, "a string is needed here"))
    }
    /// As an integer that an `i64` holds.
    pub fn integer(&self) -> Result<i64, JsonError> {
        self.value
            .as_i64()
            .ok_or_else(|| self.error(Code::JsonWrongType, "an integer is needed here"))
    }
    /// As a boolean.
    pub fn boolean(&self) -> Result<bool, JsonError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.error(Code::JsonWrongType, "true or false is needed here"))
    }
}

impl<'v> Object<'v> {
    /// A member that must be there; else `json.missing-member` at the object.
    pub fn required(&mut self, name: &'static str) -> Result<Place<'v>, JsonError> {
        self.optional(name).ok_or_else(|| JsonError {
            code: Code::JsonMissingMember,
            pointer: self.pointer.clone(),
            position: None,
            detail: format!("the member {name:?} is missing"),
        })
    }
    /// A member that may be absent. A present `null` is a value, not an absence.
    pub fn optional(&mut self, name: &'static str) -> Option<Place<'v>> {
        self.asked.push(name);
        self.members.get(name).map(|value| Place {
            value,
            pointer: format!("{}/{}", self.pointer, escape(name)),
        })
    }
    /// Refuses members that were not asked for: `json.unknown-member`, naming the pointer
    /// and the members that are known.
    pub fn done(self) -> Result<(), JsonError> {
        match self
            .members
            .keys()
            .find(|k| !self.asked.contains(&k.as_str()))
        {
            None => Ok(()),
            Some(k) => Err(JsonError {
                code: Code::JsonUnknownMember,
                pointer: format!("{}/{}", self.pointer, escape(k)),
                position: None,
                detail: format!(
                    "the member {k:?} is not known here; known: {}",
                    self.asked.join(", ")
                ),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn j4_members_that_nobody_asked_for_are_refused_by_pointer() {
        let value = json!({"a": {"b": 1, "x/y": 2}});
        let mut root = Place::root(&value).object().unwrap();
        let mut inner = root.required("a").unwrap().object().unwrap();
        assert_eq!(inner.required("b").unwrap().integer().unwrap(), 1);
        let missing = inner.required("c").unwrap_err();
        assert_eq!(
            (missing.code, missing.pointer.as_str()),
            (Code::JsonMissingMember, "/a")
        );
        let unknown = inner.done().unwrap_err();
        assert_eq!(
            (unknown.code, unknown.pointer.as_str()),
            (Code::JsonUnknownMember, "/a/x~1y")
        );
        root.done().unwrap();
    }

    #[test]
    fn j7_wrong_types_name_the_place() {
        let value = json!({"a": [1, "x"]});
        let a = Place::root(&value).object().unwrap().required("a").unwrap();
        let items = a.array().unwrap();
        let wrong = items[1].integer().unwrap_err();
        assert_eq!(
            (wrong.code, wrong.pointer.as_str()),
            (Code::JsonWrongType, "/a/1")
        );
        assert_eq!(a.object().unwrap_err().pointer, "/a");
        assert_eq!(items[1].text().unwrap(), "x");
    }
}
