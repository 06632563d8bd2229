//! The C API: the engine's typed API as functions of C, declared by `include/highwater.h`.
//!
//! Rules
//! 1. What C sees has the name that C sees: functions, structures and constants are called `highwater_...` here too,
//!    and the header is made of them (`tests/header.rs`).
//! 2. Every function that can fail is `guarded` (`failure.rs`): its error becomes a code and an object of the
//!    caller, and so does a panic.
//! 3. Pointers of C become references in `handle.rs` and `value.rs` and nowhere else. What can be seen to be wrong is
//!    refused; that the rest lives, and is not changed meanwhile, is the header's rule for its caller.
//! 4. A handle keeps alive what it needs: none dangles because another one was freed. After the database was closed its
//!    calls fail.
//! 5. A mutex protects what one thread at a time may use; it is tried, and not waited for: a second thread gets an
//!    error.
//! 6. This is not a library for Rust, which has the engine itself: only what the header declares is `pub`.

#![allow(non_camel_case_types, reason = "rule 1")]

pub mod changes;
pub mod cursor;
pub mod database;
pub mod failure;
mod handle;
pub mod query;
pub mod rows;
pub mod schema;
pub mod table;
pub mod transaction;
pub mod upkeep;
pub mod value;
