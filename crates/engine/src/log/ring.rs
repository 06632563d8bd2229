//! The ring: the log's device, buffer, positions and free space.
//!
//! It only knows where the log is; what writes it is above (`writer`).

use super::buffer::LogBuffer;
use super::format::{LogGeometry, LogHeader};
use super::space::LogSpace;
use crate::error::{Error, Result};
use crate::stats::Stats;
use crate::sync::RwLock;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::poison::Poison;
use crate::sync::sharded::CachePadded;
use crate::types::Lsn;
use highwater_storage::Device;
use std::sync::Arc;

/// The bounds of an opened log: the last checkpoint and the end of its redo.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogBounds {
    pub(super) checkpoint: Lsn,
    pub(super) end: Lsn,
}

/// The ring on its device, and the redo that is not yet there.
pub(super) struct Ring {
    device: Arc<dyn Device>,
    /// Changes under the I/O mutex, when the ring grows or shrinks.
    geometry: RwLock<LogGeometry>,
    space: LogSpace,
    buffer: CachePadded<LogBuffer>,
    /// Written and durable LSN; change only under the I/O mutex.
    written: CachePadded<AtomicU64>,
    durable: CachePadded<AtomicU64>,
    checkpoint: AtomicU64,
    stats: Arc<Stats>,
    /// The switch of the whole database: a failure of the log stops every call.
    poison: Arc<Poison>,
}

impl Ring {
    /// The ring of `header`, for groups of up to `longest_group` bytes.
    pub(super) fn new(
        device: Arc<dyn Device>,
        header: &LogHeader,
        longest_group: usize,
        bounds: LogBounds,
        stats: Arc<Stats>,
        poison: Arc<Poison>,
    ) -> Ring {
        let (geometry, end) = (LogGeometry::of(header), bounds.end);
        Ring {
            device,
            geometry: RwLock::new(geometry),
            space: LogSpace::new(longest_group as u64, geometry.capacity_bytes()),
            buffer: CachePadded(LogBuffer::new(longest_group, end)),
            written: CachePadded(AtomicU64::new(end.0)),
            durable: CachePadded(AtomicU64::new(end.0)),
            checkpoint: AtomicU64::new(bounds.checkpoint.0),
            stats,
            poison,
        }
    }

    pub(super) fn device(&self) -> &dyn Device {
        &*self.device
    }

    #[inline]
    pub(super) fn buffer(&self) -> &LogBuffer {
        &self.buffer
    }

    #[inline]
    pub(super) fn space(&self) -> &LogSpace {
        &self.space
    }

    pub(super) fn stats(&self) -> &Stats {
        &self.stats
    }

    #[inline]
    pub(super) fn poison(&self) -> &Poison {
        &self.poison
    }

    /// End of the last append.
    #[inline]
    pub(super) fn end_lsn(&self) -> Lsn {
        self.buffer.end_lsn()
    }

    /// Everything before this is written (not necessarily durable).
    pub(super) fn written_lsn(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    /// Everything before this is durable.
    #[inline]
    pub(super) fn durable_lsn(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// LSN of the last checkpoint.
    pub(super) fn checkpoint_lsn(&self) -> Lsn {
        Lsn(self.checkpoint.load(Ordering::Acquire))
    }

    /// Everything before `lsn` is written; the caller owns the I/O mutex, here and below.
    pub(super) fn set_written(&self, lsn: Lsn) {
        debug_assert!(self.written_lsn() <= lsn, "what is written moves back to {lsn}");
        self.written.store(lsn.0, Ordering::Release);
    }

    /// Everything before `lsn` is durable.
    pub(super) fn set_durable(&self, lsn: Lsn) {
        debug_assert!(self.durable_lsn() <= lsn, "what is durable moves back to {lsn}");
        self.durable.store(lsn.0, Ordering::Release);
    }

    /// The last checkpoint is at `lsn`.
    pub(super) fn set_checkpoint(&self, lsn: Lsn) {
        debug_assert!(self.checkpoint_lsn() <= lsn, "the checkpoint moves back to {lsn}");
        self.checkpoint.store(lsn.0, Ordering::Release);
    }

    /// The LSN of the oldest redo that recovery or a reader needs.
    pub(super) fn oldest_needed(&self) -> Lsn {
        self.checkpoint_lsn().min(self.space.kept())
    }

    /// The positions of blocks.
    pub(super) fn geometry(&self) -> LogGeometry {
        *self.geometry.read()
    }

    /// Changes the positions of blocks from now on.
    pub(super) fn set_geometry(&self, geometry: LogGeometry) {
        *self.geometry.write() = geometry;
    }

    /// Bytes of the log on its device, headers and ring.
    pub(super) fn size_bytes(&self) -> u64 {
        self.geometry().size_bytes()
    }

    pub(super) fn check_not_beyond_end(&self, lsn: Lsn) -> Result<()> {
        let end = self.end_lsn();
        if lsn <= end { Ok(()) } else { Err(Error::Usage(format!("LSN {lsn} is beyond the end of the log at {end}"))) }
    }

    pub(super) fn count_write(&self, writes: u64, bytes: usize) {
        self.stats.log_writes.add(writes);
        self.stats.bytes_written_redo.add(bytes as u64);
    }

    /// Stops the database if the device failed.
    pub(super) fn stop_on_failure(&self, result: highwater_storage::Result<()>) -> Result<()> {
        result.map_err(|error| {
            self.poison.set(&error.to_string());
            Error::Storage(error)
        })
    }
}
