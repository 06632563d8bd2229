//! Tests through the public API, on databases in memory.

mod api;
mod ddl;
mod ddl_beside;
mod hot_row;
mod model;
mod support;
