//! The end of the thread that removes expired rows (`expiry.rs`).

use super::gate::Gate;
use super::handle_thread::HandleThread;
use crate::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Removes expired rows until it is dropped.
pub(super) struct ExpiryThread {
    pub(super) stops: Arc<AtomicBool>,
    pub(super) gate: Arc<Gate>,
    pub(super) thread: HandleThread,
}

impl ExpiryThread {
    /// Ends the thread, and waits for it where that can be.
    pub(super) fn stop(&self) {
        if self.thread.is_here() {
            self.stops.store(true, Ordering::Release);
            self.gate.expiry_wake().wake();
            self.thread.join();
        }
    }
}

impl Drop for ExpiryThread {
    fn drop(&mut self) {
        self.stop();
    }
}
