//! Synchronisation: the primitives, the page latch, the fail-stop switch, the bell of a background thread.
//!
//! Rules
//! 1. The engine takes mutexes, condition variables, atomics, threads and their locals from here. So a model checker
//!    can put its own in their place and run the engine's code as it is ([`checked`]). Left out are counters that
//!    decide nothing (`stats`), and threads that are not waited for by engine code.
//! 2. A file that loom checks by itself names its primitives through its parent (`super::`), which the model replaces.

#[cfg(any(test, shuttle))]
#[cfg_attr(test, allow(dead_code, reason = "the files that loom checks need less of it than the engine"))]
pub mod checked;
pub mod latch;
#[cfg(not(shuttle))]
mod native;
pub mod poison;
mod serial;
pub mod spread;
pub mod wake;

#[cfg(shuttle)]
pub use checked::shuttle_primitives::*;
#[cfg(not(shuttle))]
pub use native::*;
pub use serial::Serials;
use std::sync::OnceLock;

static PROCESSORS: OnceLock<usize> = OnceLock::new();

/// How many processors there are for this process; asked once, since the answer is read from files.
pub fn processors() -> usize {
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

/// Answers for a machine with so many processors, unless their number has been asked: for models of large machines.
pub fn pretend_processors(count: usize) {
    let _ = PROCESSORS.set(count);
}

#[cfg(test)]
mod sync_test;
