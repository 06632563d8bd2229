//! Tables: types, values, schema, row and key encoding, catalog, the handle through which transactions maintain a table's trees.

pub(crate) mod auto_increment;
pub mod catalog;
pub mod datetime;
pub mod decimal;
pub(crate) mod handle;
pub mod key;
pub(crate) mod lock;
pub(crate) mod record;
pub mod row;
pub mod schema;
#[cfg(test)]
pub(crate) mod testing;
pub mod types;
pub mod value;
pub(crate) mod version;

pub use datetime::DateTime;
pub use decimal::Decimal;
pub use handle::Table;
pub use row::{Changes, Row, RowLayout, RowRef};
pub use schema::{Column, IndexDefinition, Schema, TableDefinition};
pub use types::Type;
pub use value::{Value, ValueRef};
