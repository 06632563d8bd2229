//! The C API: the engine's typed API as functions of C, declared by `include/highwater.h`.
//!
//! Rules
//! 1. Functions, structures and constants have the same names here as in C, `highwater_...`; the header is generated
//!    from them (`tests/header.rs`).
//! 2. Every function that can fail is `guarded` (`failure.rs`): an error, and also a panic, becomes a code and an
//!    object that the caller owns.
//! 3. Pointers of C become references in `handle.rs` and `value.rs` and nowhere else. Detectably wrong pointers are
//!    refused; the header requires of the caller that all others stay valid and unchanged during the call.
//! 4. A handle keeps the objects that it needs alive, so freeing another handle never makes it dangle. After a close of
//!    the database its calls fail.
//! 5. A mutex protects objects that only one thread at a time may use. A call tries the mutex and does not wait: a
//!    second thread gets an error.
//! 6. This is not a library for Rust programs, which use the engine itself: only items of the header are `pub`.

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
