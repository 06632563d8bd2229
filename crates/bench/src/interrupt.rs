//! A request to stop the whole process, by Ctrl-C or SIGTERM.
//!
//! Rules
//! 1. Work that takes longer than a second calls [`check`] repeatedly, and returns its error like any other error; each
//!    owner undoes its set-up.
//! 2. A request is never withdrawn.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Asks all work in this process to stop.
pub fn request() {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// Whether a stop was requested.
pub fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// Returns an error if a stop was requested.
///
/// # Errors
/// [`Error::Interrupted`].
pub fn check() -> Result<()> {
    if is_requested() { Err(Error::Interrupted) } else { Ok(()) }
}
