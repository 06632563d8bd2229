//! The laboratory: what is measured ([`subject`]), where and by what steps ([`measure`]), and what for
//! ([`experiment`]).
//!
//! Rules
//! 1. Each of the three uses only those before it. Workloads, stores and the driver are the bench's
//!    (`highwater-bench`).
//! 2. Nothing here prints to standard output; callers hand in a [`Watch`](measure::Watch).

pub mod experiment;
pub mod measure;
pub mod subject;

pub use highwater_bench::{Error, Result};
