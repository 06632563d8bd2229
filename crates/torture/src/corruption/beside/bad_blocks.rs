//! A device some of whose bytes cannot be read until they are written again.

use highwater_storage::{Device, Placement, Result, StorageError};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;

/// The device, and where it is bad.
pub(super) struct BadBlocks {
    pub(super) inner: Arc<dyn Device>,
    pub(super) bad: Arc<Mutex<Range<u64>>>,
}

impl BadBlocks {
    fn touches(&self, offset: u64, len: usize) -> bool {
        let bad = self.bad.lock();
        offset < bad.end && bad.start < offset + len as u64
    }
}

impl Device for BadBlocks {
    highwater_storage::pass_on!();

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        self.inner.set_len_bytes(len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if self.touches(offset, buf.len()) {
            let source = std::io::Error::other("a bad block");
            return Err(StorageError { operation: "read", device: self.name(), offset, len: buf.len() as u64, source });
        }
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> Result<()> {
        self.inner.write_at(offset, data, placement)?;
        if self.touches(offset, data.len()) {
            *self.bad.lock() = 0..0;
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.discard(offset, len)
    }
}
