//! Tests through the public API, on databases in memory.

mod api;
mod ddl;
mod model;
mod support;
