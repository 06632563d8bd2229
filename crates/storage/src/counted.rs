//! A device that counts its operations.
//!
//! Rule: only successful operations are counted.

use crate::{Device, Placement, Read, ReadCallback, Result, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Wraps a device and counts its operations and bytes.
pub struct Counted {
    inner: Arc<dyn Device>,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: [AtomicU64; Placement::ALL.len()],
    syncs: AtomicU64,
    discarded_bytes: AtomicU64,
}

/// The counts of a [`Counted`] device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes; each of a batch counts.
    pub writes: u64,
    /// Bytes written, by [`Placement`].
    pub written_bytes: [u64; Placement::ALL.len()],
    /// Syncs.
    pub syncs: u64,
    /// Bytes discarded.
    pub discarded_bytes: u64,
}

impl Counts {
    /// Bytes written with `placement`.
    pub fn written_as(&self, placement: Placement) -> u64 {
        self.written_bytes[placement as usize]
    }

    /// Bytes written in all.
    pub fn total_written_bytes(&self) -> u64 {
        self.written_bytes.iter().sum()
    }
}

impl Counted {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Device>) -> Arc<Counted> {
        Arc::new(Counted {
            inner,
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            written_bytes: Default::default(),
            syncs: AtomicU64::new(0),
            discarded_bytes: AtomicU64::new(0),
        })
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        Counts {
            reads: self.reads.load(Relaxed),
            read_bytes: self.read_bytes.load(Relaxed),
            writes: self.writes.load(Relaxed),
            written_bytes: std::array::from_fn(|i| self.written_bytes[i].load(Relaxed)),
            syncs: self.syncs.load(Relaxed),
            discarded_bytes: self.discarded_bytes.load(Relaxed),
        }
    }

    fn count_read(&self, len: usize) {
        self.reads.fetch_add(1, Relaxed);
        self.read_bytes.fetch_add(len as u64, Relaxed);
    }

    fn count_write(&self, len: usize, placement: Placement) {
        self.writes.fetch_add(1, Relaxed);
        self.written_bytes[placement as usize].fetch_add(len as u64, Relaxed);
    }
}

impl Device for Counted {
    crate::pass_on!();

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        self.inner.set_len_bytes(len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read_at(offset, buf)?;
        self.count_read(buf.len());
        Ok(())
    }

    fn read_batch(&self, reads: &mut [Read<'_>], done: &mut ReadCallback<'_>) {
        self.inner.read_batch(reads, &mut |index, result| {
            if let Ok(bytes) = &result {
                self.count_read(bytes.len());
            }
            done(index, result);
        });
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> Result<()> {
        self.inner.write_at(offset, data, placement)?;
        self.count_write(data.len(), placement);
        Ok(())
    }

    fn write_batch(&self, writes: &[Write<'_>]) -> Result<()> {
        self.inner.write_batch(writes)?;
        writes.iter().for_each(|w| self.count_write(w.data.len(), w.placement));
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()?;
        self.syncs.fetch_add(1, Relaxed);
        Ok(())
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.reserve(offset, len)
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.discard(offset, len)?;
        self.discarded_bytes.fetch_add(len, Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    #[test]
    fn counts_bytes_by_placement_and_only_successes() {
        let device = Counted::new(Arc::new(MemoryDevice::limited(1000)));
        device.set_len_bytes(1000).unwrap();
        device.write_at(0, &[0; 10], Placement::Redo).unwrap();
        let batch = |offset| Write { offset, data: &[1; 20], placement: Placement::IndexLeaf };
        device.write_batch(&[batch(10), batch(30)]).unwrap();
        assert!(device.write_at(990, &[0; 20], Placement::Redo).is_err());
        device.read_at(0, &mut [0; 7]).unwrap();
        let (mut within, mut beyond) = ([0; 20], [0; 20]);
        let mut reads = [Read { offset: 10, buf: &mut within }, Read { offset: 990, buf: &mut beyond }];
        let mut heard = Vec::new();
        device.read_batch(&mut reads, &mut |n, result| heard.push((n, result.is_ok_and(|bytes| bytes == [1; 20]))));
        assert_eq!(heard, [(0, true), (1, false)]);
        device.sync().unwrap();
        device.discard(0, 5).unwrap();
        let counts = device.counts();
        assert_eq!((counts.reads, counts.read_bytes, counts.writes, counts.syncs), (2, 27, 3, 1));
        assert_eq!(counts.written_as(Placement::Redo), 10);
        assert_eq!(counts.written_as(Placement::IndexLeaf), 40);
        assert_eq!((counts.total_written_bytes(), counts.discarded_bytes), (50, 5));
    }
}
