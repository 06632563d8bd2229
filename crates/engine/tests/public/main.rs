//! Tests through the public API, on databases in memory.

mod backup;
mod backup_beside;
mod bank;
mod check_beside;
mod damaged_pages;
mod ddl;
mod ddl_beside;
mod hot_row;
mod insert_many;
mod keys;
mod model;
mod opening;
mod page_store;
mod point_in_time;
mod rows;
mod support;
mod transact;
mod transactions;
mod visit;
