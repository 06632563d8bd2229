//! A device that is full at a chosen length, to simulate a full disk.
//!
//! Rule: only growth beyond the limit fails; existing bytes can be read, written and truncated.

use crate::{Device, Placement, Read, ReadCallback, Result, StorageError, Write};
use std::io::ErrorKind;
use std::sync::Arc;

/// Wraps a device that cannot grow beyond a limit.
pub struct Limited {
    inner: Arc<dyn Device>,
    limit_bytes: u64,
}

impl Limited {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Device>, limit_bytes: u64) -> Arc<Limited> {
        Arc::new(Limited { inner, limit_bytes })
    }
}

impl Device for Limited {
    crate::pass_on!();

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        if len > self.limit_bytes && len > self.inner.len_bytes()? {
            let (device, source) = (self.name(), std::io::Error::from(ErrorKind::StorageFull));
            return Err(StorageError { operation: "set length", device, offset: 0, len, source });
        }
        self.inner.set_len_bytes(len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read_at(offset, buf)
    }

    fn read_batch(&self, reads: &mut [Read<'_>], done: &mut ReadCallback<'_>) {
        self.inner.read_batch(reads, done);
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> Result<()> {
        self.inner.write_at(offset, data, placement)
    }

    fn write_batch(&self, writes: &[Write<'_>]) -> Result<()> {
        self.inner.write_batch(writes)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.reserve(offset, len)
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.discard(offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    #[test]
    fn it_grows_to_its_limit_and_no_further() {
        let inner = Arc::new(MemoryDevice::new());
        let device = Limited::new(inner.clone(), 8192);
        device.set_len_bytes(8192).unwrap();
        assert!(device.set_len_bytes(8193).unwrap_err().is_full());
        device.write_at(4096, &[7; 4096], Placement::Other).unwrap();
        inner.set_len_bytes(16384).unwrap();
        // What is there already may be cut or kept.
        device.set_len_bytes(16384).unwrap();
        device.set_len_bytes(12288).unwrap();
        assert_eq!(device.len_bytes().unwrap(), 12288);
    }
}
