//! Tests through the public API, on databases in memory.

mod backup;
mod bank;
mod changes;
mod changes_cuts;
mod changes_full_disk;
mod collations;
mod concurrent_backup;
mod concurrent_check;
mod concurrent_ddl;
mod cursors;
mod damaged_pages;
mod ddl;
mod delete_range;
mod dump;
mod encryption;
mod hot_row;
mod index_forms;
mod insert_many;
mod interrupt;
mod json;
mod keys;
mod lock_list;
mod long_columns;
mod long_keys;
mod model;
mod online_index;
mod opening;
mod page_store;
mod point_in_time;
mod prepared;
mod prepared_copies;
mod prepared_cuts;
mod queue;
mod raw;
mod raw_ahead;
mod raw_entries;
mod reader_changes;
mod readers;
mod rows;
mod runtime_options;
mod space;
mod statements;
mod statistics;
mod support;
mod table_change;
#[path = "../../src/db/testing.rs"]
mod testing;
#[cfg(target_os = "linux")]
mod threads;
mod transact;
mod transactions;
mod visit;

// What `testing.rs` uses, by the names that they have in the engine.
use highwater::{Database, Options, Result, Schema, Type, WriteTxn};
