//! Syncs of one device that several threads share.
//!
//! Rules
//! 1. One sync at a time. A caller is served by any sync that started after its call did: its writes were complete
//!    then.
//! 2. The first sync that fails stops this device for good, before any other may start: an operating system reports a
//!    lost write to one sync only, so no later sync may count as successful. A thread that writes to the device
//!    stops it in the same way when a write fails ([`SharedSync::stop`]), and checks before a write whether it is
//!    stopped ([`SharedSync::check`]).

use crate::error::{Error, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};
use crate::sync::poison::Poison;
use highwater_storage::Device;
use std::sync::Arc;

/// A device and its syncs.
pub(super) struct SharedSync {
    device: Arc<dyn Device>,
    /// Syncs ever started.
    started: AtomicU64,
    /// Number of the last sync that succeeded; held while one runs.
    finished: Mutex<u64>,
    failed: Poison,
}

impl SharedSync {
    pub(super) fn new(device: Arc<dyn Device>) -> SharedSync {
        SharedSync { device, started: AtomicU64::new(0), finished: Mutex::new(0), failed: Poison::default() }
    }

    pub(super) fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Stops the device for good: no later [`sync`](Self::sync) or [`check`](Self::check) succeeds.
    pub(super) fn stop(&self, error: &Error) {
        self.failed.set(&error.to_string());
    }

    /// # Errors
    /// [`Error::Poisoned`] once the device is stopped.
    pub(super) fn check(&self) -> Result<()> {
        self.failed.check()
    }

    /// Makes what the caller has written durable; returns whether this call synced the device itself.
    ///
    /// # Errors
    /// The sync's error, or [`Error::Poisoned`] after an earlier one.
    pub(super) fn sync(&self) -> Result<bool> {
        self.sync_since(self.started.load(SeqCst))
    }

    /// As `sync`, for a caller that had written everything when `before` syncs had started.
    fn sync_since(&self, before: u64) -> Result<bool> {
        let mut finished = self.finished.lock();
        self.failed.check()?;
        if *finished > before {
            return Ok(false);
        }
        let number = self.started.fetch_add(1, SeqCst) + 1;
        debug_assert!(before < number, "rule 1: sync {number} serves a caller after {before}");
        self.device.sync().map_err(|error| {
            self.failed.set(&error.to_string());
            Error::Storage(error)
        })?;
        debug_assert!(*finished < number, "sync {number} ends after sync {}", *finished);
        *finished = number;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_storage::{Counted, Faults, MemoryDevice, Placement};

    #[test]
    fn a_sync_serves_those_who_came_before_it_started() {
        let counted = Counted::new(Arc::new(MemoryDevice::new()));
        let shared = SharedSync::new(counted.clone());
        assert!(shared.sync().unwrap() && shared.sync().unwrap());
        assert!(!shared.sync_since(0).unwrap() && !shared.sync_since(1).unwrap());
        assert!(shared.sync_since(2).unwrap(), "the second sync had started when this caller's writes completed");
        let own = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..8).map(|_| scope.spawn(|| shared.sync().unwrap())).collect();
            calls.into_iter().map(|call| u64::from(call.join().unwrap())).sum::<u64>()
        });
        assert_eq!(counted.counts().syncs, 3 + own);
    }

    #[test]
    fn after_a_failure_no_sync_passes() {
        let faults = Faults::new();
        let device = faults.wrap(Arc::new(MemoryDevice::new()));
        device.set_len_bytes(4096).unwrap();
        let shared = SharedSync::new(device);
        faults.power_off_after(0);
        drop(shared.device().write_at(0, &[1; 512], Placement::Other));
        assert!(matches!(shared.sync(), Err(Error::Storage(_))));
        assert!(matches!(shared.sync(), Err(Error::Poisoned(_))));
    }
}
