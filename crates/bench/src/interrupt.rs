//! A request to stop, for the whole process: Ctrl-C or SIGTERM while the laboratory works.
//!
//! Rules
//! 1. Work that takes longer than a second calls [`check`] in between; the error is then returned as any other, and
//!    everything that was set up is undone by its owner.
//! 2. A request is never taken back.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Asks all work in this process to stop.
pub fn request() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Whether to stop.
pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// An error when to stop.
///
/// # Errors
/// [`Error::Interrupted`].
pub fn check() -> Result<()> {
    if is_requested() { Err(Error::Interrupted) } else { Ok(()) }
}
