//! Interruption: one thread asks another to end a wait or a long call.
//!
//! Rules
//! 1. An interruption is pending until a wait or a step of a long call takes it ([`Interrupt::check`]): an interruption
//!    before the wait is not lost, and each ends one call.
//! 2. A waiting thread checks it under the mutex of its condition variable; the thread that raises it takes that mutex
//!    afterwards, and wakes.

use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct Interrupt(AtomicBool);

impl Interrupt {
    pub(crate) fn raise(&self) {
        self.0.store(true, SeqCst);
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(SeqCst)
    }

    /// Forgets it.
    pub(crate) fn clear(&self) {
        self.0.store(false, SeqCst);
    }

    /// Takes it.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if it is raised.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_raised() && self.0.swap(false, SeqCst) { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// The timeout of a wait for a lock, and the interrupt that ends the wait earlier.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience<'i> {
    pub timeout: Duration,
    pub interrupt: Option<&'i Arc<Interrupt>>,
}

impl From<Duration> for Patience<'_> {
    fn from(timeout: Duration) -> Self {
        Patience { timeout, interrupt: None }
    }
}

impl Patience<'_> {
    /// The same patience with another timeout.
    #[must_use]
    pub(crate) fn with_timeout(self, timeout: Duration) -> Self {
        Patience { timeout, ..self }
    }

    /// Takes an interruption.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub(crate) fn check(self) -> Result<()> {
        self.interrupt.map_or(Ok(()), |interrupt| interrupt.check())
    }
}
