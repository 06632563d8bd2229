//! The laboratory: the measured subjects ([`subject`]), the places and steps of measurements ([`measure`]), and the
//! experiments ([`experiment`]).
//!
//! Rules
//! 1. Each of the three uses only those before it. Workloads, stores and the driver are the bench's
//!    (`highwater-bench`).
//! 2. Nothing here prints to standard output; callers pass a [`Watch`](measure::Watch).

pub mod experiment;
pub mod measure;
pub mod subject;

pub use highwater_bench::{Error, Result};
