//! A device that adds what is asked of it to a hash.

use highwater_storage::{Device, Placement, Result, Write};
use parking_lot::Mutex;
use std::sync::Arc;

/// A hash of everything that happened, in order (FNV-1a, 64 bits); clones add to the same.
#[derive(Clone, Debug)]
pub struct History(Arc<Mutex<u64>>);

impl Default for History {
    fn default() -> History {
        History(Arc::new(Mutex::new(0xcbf2_9ce4_8422_2325)))
    }
}

impl History {
    /// Adds some numbers.
    pub fn add(&self, numbers: &[u64]) {
        let mut hash = self.0.lock();
        for byte in numbers.iter().flat_map(|number| number.to_le_bytes()) {
            *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// What it is now.
    pub fn hash(&self) -> u64 {
        *self.0.lock()
    }
}

/// The device below, observed.
pub struct Observed {
    inner: Arc<dyn Device>,
    number: u64,
    history: History,
}

impl Observed {
    /// Device `number` of a set.
    pub fn wrap(inner: Arc<dyn Device>, number: u64, history: &History) -> Arc<dyn Device> {
        Arc::new(Observed { inner, number, history: history.clone() })
    }

    fn note(&self, operation: u64, offset: u64, len: u64) {
        self.history.add(&[self.number, operation, offset, len]);
    }

    fn note_bytes(&self, operation: u64, offset: u64, data: &[u8]) {
        self.history.add(&[self.number, operation, offset, data.len() as u64, crc32c::crc32c(data).into()]);
    }
}

impl Device for Observed {
    highwater_storage::pass_on!();

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        self.note(0, 0, len);
        self.inner.set_len_bytes(len)
    }

    /// Threads read when a database is opened, so reads are no part of the hash.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> Result<()> {
        self.note_bytes(1, offset, data);
        self.inner.write_at(offset, data, placement)
    }

    fn write_batch(&self, writes: &[Write<'_>]) -> Result<()> {
        writes.iter().for_each(|write| self.note_bytes(2, write.offset, write.data));
        self.inner.write_batch(writes)
    }

    fn sync(&self) -> Result<()> {
        self.note(3, 0, 0);
        self.inner.sync()
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.note(4, offset, len);
        self.inner.reserve(offset, len)
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.note(5, offset, len);
        self.inner.discard(offset, len)
    }
}
