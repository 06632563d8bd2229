//! The bench: workloads, the stores they run on, the driver that runs and measures them, their results and reports.
//!
//! Rules
//! 1. A workload is written once, against [`store::Store`]; each store implements it.
//! 2. [`run`](run::run) measures; [`result`] is its result; [`report`] draws it. Workloads measure nothing themselves.
//! 3. Nothing here prints to standard output; callers pass the receiver of the lines.
//! 4. The bench does not know experiments, nor the set-up and start of servers.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!(
    "benchmarks, the laboratory and the command highwater are for Linux of 64 bits; elsewhere use the library, the \
     crate highwater"
);

mod backoff;
pub mod concurrent_clients;
pub mod cpu;
pub mod environment;
mod error;
pub mod interrupt;
pub mod online_index;
pub mod peers;
pub mod report;
pub mod result;
pub mod run;
pub mod shrink;
pub mod store;
pub mod summary;
mod threads;
pub mod workload;

pub use error::{Error, Result};
