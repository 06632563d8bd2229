//! The size of the ring: its limits, for its growth (`growth`) and its shrinking (`shrinking`).

use super::format;
use crate::error::{Error, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use highwater_storage::Device;
use std::time::Instant;

/// The sizes that the ring may have.
pub(super) struct RingSize {
    /// Size up to which the log may grow, and to which it shrinks.
    max_bytes: AtomicU64,
    /// Time of the device's last refusal of growth.
    pub(super) growth_refused: Mutex<Option<Instant>>,
}

impl RingSize {
    pub(super) fn new(max_bytes: u64) -> RingSize {
        RingSize { max_bytes: AtomicU64::new(max_bytes), growth_refused: Mutex::default() }
    }

    /// Bytes that the log has at most, from its start on; what it has, if its size is fixed.
    pub(super) fn max_bytes(&self) -> u64 {
        self.max_bytes.load(Relaxed)
    }

    /// Changes how large the log may be: a smaller one grows to it, a larger one shrinks when a generation begins, at
    /// the closing or the next opening.
    ///
    /// # Errors
    /// [`Error::BadOption`] for a device of fixed length.
    pub(super) fn set_max_bytes(&self, device: &dyn Device, max_bytes: u64) -> Result<()> {
        if device.has_fixed_len() {
            let reason = "the redo log is on a device and has all of it".to_string();
            return Err(Error::BadOption { option: "log-file-size".to_string(), reason });
        }
        self.max_bytes.store(format::whole_blocks(max_bytes), Relaxed);
        Ok(())
    }
}
