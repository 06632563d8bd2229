//! Shared state of the pool and its page cleaner: work, new limits, the throttle of users.

use super::policy::Limits;
use super::throttle::Throttle;
use crate::config::Options;
use crate::sync::Mutex;
use crate::sync::notify::Notify;
use crate::types::Lsn;
use std::time::Duration;

/// The page cleaner's notification, its limits, and the throttle that it sets.
#[derive(Default)]
pub(crate) struct CleanerControl {
    page_cleaner: Notify,
    throttle: Throttle,
    /// Limits that the page cleaner takes up at its next step.
    new_limits: Mutex<Option<Limits>>,
}

impl CleanerControl {
    /// The notification that wakes the page cleaner.
    pub(crate) fn notify(&self) -> &Notify {
        &self.page_cleaner
    }

    /// Changes what steers flushing.
    pub(crate) fn set_limits(&self, options: &Options) {
        *self.new_limits.lock() = Some(Limits::new(options));
        self.page_cleaner.wake();
    }

    /// The limits that were set since the last call, if any were.
    pub(crate) fn take_limits(&self) -> Option<Limits> {
        self.new_limits.lock().take()
    }

    /// Waits until the next mini-transaction may start; returns how long that took, if it had to wait.
    #[inline]
    pub(crate) fn wait(&self, end_lsn: impl Fn() -> Lsn) -> Option<Duration> {
        self.throttle.wait(end_lsn)
    }

    /// Sets the redo that users may write per second from now on; `None` = no limit.
    pub(crate) fn set_pace(&self, bytes_per_s: Option<f64>, end_lsn: Lsn) {
        self.throttle.set(bytes_per_s, end_lsn);
    }
}
