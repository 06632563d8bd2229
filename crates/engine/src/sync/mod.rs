//! Synchronisation: the primitives, the page latch, the fail-stop switch, interruption, the notification of a
//! background thread.
//!
//! Rules
//! 1. The engine takes mutexes, condition variables, atomics, threads and thread locals from here. So a model checker
//!    can substitute its own and run the unchanged engine code ([`checked`]). Exceptions are counters that decide
//!    nothing (`stats`), and threads for which engine code does not wait.
//! 2. A file that loom checks by itself names its primitives through its parent (`super::`), which the model replaces.

#[cfg(any(all(test, target_pointer_width = "64"), shuttle))]
#[cfg_attr(test, allow(dead_code, reason = "the files that loom checks need less of it than the engine"))]
pub(crate) mod checked;
#[cfg(not(shuttle))]
mod condvar;
pub(crate) mod event;
mod id_generator;
pub(crate) mod interrupt;
pub(crate) mod latch;
#[cfg(not(shuttle))]
mod native;
pub(crate) mod notify;
pub(crate) mod poison;
pub(crate) mod sharded;

#[cfg(shuttle)]
pub(crate) use checked::shuttle_primitives::*;
pub(crate) use id_generator::IdGenerator;
#[cfg(not(shuttle))]
pub(crate) use native::*;
use std::sync::OnceLock;

static PROCESSORS: OnceLock<usize> = OnceLock::new();

/// The number of processors of this process; determined once, since it is read from files.
pub(crate) fn cpu_count() -> usize {
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

/// Sets the number of processors, unless it has been determined before: for models of large machines.
pub fn override_cpu_count(count: usize) {
    let _ = PROCESSORS.set(count);
}

#[cfg(test)]
mod sync_test;
