//! Tests through the public API, on databases in memory.

mod backup;
mod bank;
mod concurrent_backup;
mod concurrent_check;
mod concurrent_ddl;
mod damaged_pages;
mod ddl;
mod hot_row;
mod insert_many;
mod interrupt;
mod keys;
mod long_columns;
mod model;
mod online_index;
mod opening;
mod page_store;
mod point_in_time;
mod prepared;
mod prepared_cuts;
mod queue;
mod rows;
mod support;
mod transact;
mod transactions;
mod visit;
