//! Columns and what they hold, the same on both databases (architecture.md "Rules"): JSON is
//! text, so that its bytes stay as they are, and every number is a 64-bit integer.

use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use sluicegate_core::ids::Hash;
use sluicegate_core::time::Instant;
use sluicegate_core::value::{self, Value};

use super::StoreError;

/// A fault of the database itself, in its words, or of what a column holds.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
pub(super) fn fault(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::ColumnDecode { .. } => StoreError::Corrupt(error.to_string()),
        _ => StoreError::Database(error.to_string()),
    }
}

/// Integers of ours stay below 2^53 (U1), so they fit both ways.
pub(super) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn nat(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Any serializable thing as the JSON text of a column.
pub(super) fn json<T: serde::Serialize>(thing: &T) -> Result<String, StoreError> {
    serde_json::to_string(thing).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// A column's JSON text as the thing it says.
pub(super) fn thing<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// A column's JSON text as a normalised value (J1).
pub(super) fn document(text: &str) -> Result<Value, StoreError> {
    value::read(text).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// Reads columns by name.
pub(super) trait Columns {
    fn text(&self, name: &'static str) -> Result<String, StoreError>;
    fn maybe_text(&self, name: &'static str) -> Result<Option<String>, StoreError>;
    fn number(&self, name: &'static str) -> Result<u64, StoreError>;
    fn maybe_number(&self, name: &'static str) -> Result<Option<u64>, StoreError>;
    fn bytes(&self, name: &'static str) -> Result<Vec<u8>, StoreError>;

    fn instant(&self, name: &'static str) -> Result<Instant, StoreError> {
        self.number(name).map(Instant)
    }

    fn maybe_instant(&self, name: &'static str) -> Result<Option<Instant>, StoreError> {
        Ok(self.maybe_number(name)?.map(Instant))
    }

    fn hash(&self, name: &'static str) -> Result<Hash, StoreError> {
        let text = self.text(name)?;
        Hash::parse(&text).ok_or_else(|| StoreError::Corrupt(format!("{name} is no hash")))
    }

    fn json<T: serde::de::DeserializeOwned>(&self, name: &'static str) -> Result<T, StoreError> {
        thing(&self.text(name)?)
    }

    fn document(&self, name: &'static str) -> Result<Value, StoreError> {
        document(&self.text(name)?)
    }
}

macro_rules! columns_of {
    ($row:ty) => {
        impl Columns for $row {
            fn text(&self, name: &'static str) -> Result<String, StoreError> {
                self.try_get(name).map_err(fault)
            }

            fn maybe_text(&self, name: &'static str) -> Result<Option<String>, StoreError> {
                self.try_get(name).map_err(fault)
            }

            fn number(&self, name: &'static str) -> Result<u64, StoreError> {
                self.try_get::<i64, _>(name).map(nat).map_err(fault)
            }

            fn maybe_number(&self, name: &'static str) -> Result<Option<u64>, StoreError> {
                let number: Option<i64> = self.try_get(name).map_err(fault)?;
                Ok(number.map(nat))
            }

            fn bytes(&self, name: &'static str) -> Result<Vec<u8>, StoreError> {
                self.try_get(name).map_err(fault)
            }
        }
    };
}

columns_of!(SqliteRow);
columns_of!(PgRow);
