//! Tables of users, over the byte strings of the transaction layer.
//!
//! | file | concept |
//! |---|---|
//! | `types.rs`, `value.rs`, `decimal.rs`, `datetime.rs` | types of columns, values |
//! | `from_value.rs`, `conversions` | columns read as types of the program's own; types of other crates |
//! | `serde_rows` | rows as structs of the program, by serde |
//! | `new_columns.rs` | the input of a new row: values, or the bytes that columns store |
//! | `value_form.rs`, `row_layout.rs`, `row_layouts.rs` | values and rows as bytes |
//! | `row_builder.rs`, `changes.rs`, `row.rs` | rows are built, changed and read |
//! | `overflow_columns.rs`, `unread.rs` | the columns on overflow pages; columns that are read on access |
//! | `json.rs` | validation of `Json` columns |
//! | `key.rs`, `key_part.rs` | keys as bytes that compare as their values do |
//! | `covered.rs` | covered columns of entries |
//! | `schema.rs`, `index.rs` | declarations of tables and indexes |
//! | `definition.rs`, `table_change.rs` | definitions of tables and indexes, and their changes |
//! | `schema_check.rs` | validation of definitions |
//! | `schema_difference.rs` | the differences between a table and a schema |
//! | `record.rs`, `definition_record.rs` | the catalog's records of them, as bytes |
//! | `definition_form.rs` | a definition in JSON |
//! | `catalog.rs`, `catalog_entry.rs`, `catalog_change.rs`, `catalog_trees.rs` | the catalog, which stores them |
//! | `handle.rs`, `version.rs` | open tables: the users' handle, trees and layouts as a transaction uses them |
//! | `lock.rs` | the lock that keeps schema changes and transactions apart |
//! | `turns.rs` | the times for which a waiting schema change bars new transactions |
//! | `statistics.rs` | numbers of a table for a planner |
//! | `auto_increment.rs` | the numbers of auto-increment columns |

pub(crate) mod auto_increment;
pub(crate) mod catalog;
mod catalog_change;
pub(crate) mod catalog_entry;
pub(crate) mod catalog_trees;
mod changes;
mod column_index;
pub mod conversions;
pub(crate) mod covered;
pub(crate) mod date;
pub(crate) mod datetime;
pub(crate) mod decimal;
pub(crate) mod definition;
pub(crate) mod definition_form;
pub(crate) mod definition_record;
mod from_value;
pub(crate) mod handle;
pub(crate) mod index;
mod json;
pub(crate) mod key;
mod key_part;
pub(crate) mod lock;
mod new_columns;
mod overflow_columns;
pub(crate) mod owned_row;
pub(crate) mod record;
pub(crate) mod row;
mod row_builder;
pub(crate) mod row_layout;
pub(crate) mod row_layouts;
pub(crate) mod schema;
mod schema_check;
mod schema_difference;
#[cfg(feature = "serde")]
pub(crate) mod serde_rows;
pub(crate) mod statistics;
pub(crate) mod table_change;
#[cfg(test)]
pub(crate) mod testing;
mod turns;
pub(crate) mod types;
pub(crate) mod unread;
pub(crate) mod uuid;
pub(crate) mod value;
mod value_form;
pub(crate) mod version;

pub use auto_increment::NumberRange;
pub use changes::Changes;
pub use column_index::ColumnIndex;
pub use date::{Date, Time};
pub use datetime::DateTime;
pub use decimal::Decimal;
pub use definition::{Column, IndexColumn, IndexDefinition, TableDefinition};
pub use from_value::FromValue;
pub use handle::Table;
pub use index::Index;
pub(crate) use new_columns::{NewColumns, key_value};
pub use owned_row::Row;
pub use row::RowRef;
pub(crate) use row_layout::RowLayout;
pub use row_layouts::RowLayouts;
pub use schema::Schema;
pub use statistics::{IndexStatistics, TableStatistics};
pub use table_change::TableChange;
pub use types::Type;
pub use uuid::Uuid;
pub use value::{Value, ValueRef};
