//! The laboratory: workloads, the driver that runs and measures them, results and reports.
//!
//! Rules
//! 1. A workload is written once, against [`adapter::Store`]; every store is an adapter.
//! 2. [`run`](run::run) measures; [`result`] is what it leaves; [`report`] draws it. Workloads measure nothing themselves.
//! 3. Nothing here prints to standard output; callers hand in where lines go.

pub mod adapter;
mod cpu;
pub mod error;
pub mod experiment;
pub mod interrupt;
pub mod place;
pub mod report;
pub mod result;
pub mod run;
pub mod subject;
pub mod summary;
mod threads;
pub mod workload;

pub use error::{Error, Result};
