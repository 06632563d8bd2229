//! Tests through the public API, on databases in memory.

mod api;
mod ddl;
mod ddl_beside;
mod model;
mod support;
