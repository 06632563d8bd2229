//! Redo log: a ring on a device of its own, group commit, checkpoints, and the scan that recovery starts from.
//! Knows bytes and LSNs, never pages.
//!
//! Terms: a *group* is the redo of one mini-transaction. An *LSN* counts the bytes of groups (with their frames) ever
//! appended; a group's end LSN is the next one's start. The *checkpoint* is the LSN recovery starts from. A *generation*
//! is one life of the log, from `start` to the next one. *Written* bytes were given to the device, *durable* ones synced.
//!
//! Rules
//! 1. `checkpoint <= durable <= written <= end <= reserved end <= checkpoint + capacity`, always.
//! 2. Room in the ring is reserved before a mini-transaction latches anything, so `append` never waits for a checkpoint.
//! 3. Appending is a mutex around: take the LSN, copy into the log buffer, `in_order`. The device is never touched under
//!    it, except that who finds the buffer full writes it out (which takes no latch, so it always ends).
//! 4. One thread at a time, the owner of the I/O mutex, writes and syncs; it takes all that was appended so far.
//! 5. The last, partly filled block is written again as it fills. Its older bytes do not change, so a torn write of it
//!    loses nothing that was durable.
//! 6. Each block that is written says up to where the log was durable then, and so does each header. A log that ends
//!    below such a mark is damaged, not torn (`damage`).
//! 7. The first failed write or sync stops the database: nothing is written after it, every call and every waiter gets
//!    [`Error::Poisoned`](crate::Error::Poisoned).
//!
//! Lock order: `turn` < I/O mutex < buffer mutex; the queue mutexes of `space` and `group` are leaves.
//!
//! Differs from InnoDB: a block's header carries no checksum of the block and no place of its first group (a group
//! carries one checksum, which covers its place and generation); no separate writer and flusher threads (a committing thread leads, so one client pays no hand-over).

mod append;
mod buffer;
pub mod checkpoint;
mod damage;
pub mod format;
mod group;
mod scan;
mod space;
mod writer;

#[cfg(test)]
mod log_test;

pub use checkpoint::Remains;
pub use damage::Damage;
pub use scan::{Scan, Window, Windows};
pub use space::Reservation;

use crate::error::Result;
use crate::stats::Stats;
use crate::sync::poison::{OnStop, Poison};
use crate::types::Lsn;
use buffer::LogBuffer;
use format::Geometry;
use group::Group;
use highwater_storage::{AlignedBuf, Device};
use parking_lot::Mutex;
use space::Space;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The smallest log buffer; a mini-transaction of up to this much redo always fits one.
const LEAST_BUFFER_BYTES: usize = 1 << 20;

/// The redo log of one database.
pub struct Log {
    device: Arc<dyn Device>,
    geometry: Geometry,
    database_id: u64,
    flush_log_at_trx_commit: u64,
    stats: Arc<Stats>,
    /// The database's: what stops the log stops every call.
    poison: Arc<Poison>,
    space: Space,
    buffer: LogBuffer,
    /// Written and durable LSN; change only under the I/O mutex.
    written: AtomicU64,
    durable: AtomicU64,
    checkpoint: AtomicU64,
    io: Mutex<Io>,
    group: Group,
}

/// What the one thread that does I/O owns.
struct Io {
    /// The log buffer that is not being appended to.
    spare: AlignedBuf,
    /// The newest header on the device.
    header: format::Header,
    started: bool,
}

impl OnStop for Log {
    fn stopped(&self) {
        self.space.close();
        self.group.wake_all();
    }
}

impl Log {
    /// Lays an empty log of `size_bytes` onto the device (header + ring), durable on return. Every block is written, so
    /// that later syncs have nothing but the redo itself to make durable.
    ///
    /// # Errors
    /// [`Error::BadOption`](crate::Error::BadOption) for a size too small for a log, or an I/O error.
    pub fn create(device: Arc<dyn Device>, size_bytes: u64, database_id: u64) -> Result<()> {
        checkpoint::create(&*device, size_bytes, database_id)
    }

    /// Opens an existing log and scans it from its last checkpoint. Nothing may be appended before `start`.
    ///
    /// # Errors
    /// [`Error::Incompatible`](crate::Error::Incompatible) if it is no redo log, another database's or a newer version's,
    /// [`Error::Corrupt`](crate::Error::Corrupt) if it was cut short, both of its headers are damaged or it was synced further
    /// than it can be read, or an I/O error.
    pub fn open(
        device: Arc<dyn Device>,
        buffer_bytes: usize,
        flush_log_at_trx_commit: u64,
        database_id: u64,
        stats: Arc<Stats>,
        poison: Arc<Poison>,
    ) -> Result<(Arc<Log>, Scan)> {
        let (header, is_sure) = checkpoint::read_header(&*device, database_id)?;
        let geometry = Geometry::new(header.size_bytes);
        // What a killed process wrote may not be durable yet; recovery is about to build on it.
        let since = Instant::now();
        device.sync()?;
        stats.log_syncs.inc();
        stats.log_sync_us.add(since.elapsed().as_micros() as u64);
        let scan = Scan::run(&*device, geometry, &header, is_sure)?;
        if let Some(damage) = scan.damage {
            return Err(damage.error(&*device));
        }
        let longest_group = buffer_bytes.max(LEAST_BUFFER_BYTES).min(geometry.capacity_bytes() as usize);
        let end = scan.end_lsn;
        let log = Arc::new(Log {
            device,
            geometry,
            database_id,
            flush_log_at_trx_commit,
            stats,
            poison,
            space: Space::new(longest_group as u64, geometry.capacity_bytes()),
            buffer: LogBuffer::new(longest_group, end),
            written: AtomicU64::new(end.0),
            durable: AtomicU64::new(end.0),
            checkpoint: AtomicU64::new(scan.checkpoint_lsn.0),
            io: Mutex::new(Io { spare: LogBuffer::memory(longest_group), header, started: false }),
            group: Group::default(),
        });
        log.poison.wake_on_stop(&log);
        Ok((log, scan))
    }

    /// End of the last append.
    #[inline]
    pub fn end_lsn(&self) -> Lsn {
        self.buffer.end_lsn()
    }

    /// Everything before this is written (not necessarily durable).
    pub fn written_lsn(&self) -> Lsn {
        Lsn(self.written.load(Ordering::Acquire))
    }

    /// Everything before this is durable.
    #[inline]
    pub fn durable_lsn(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// LSN of the last checkpoint.
    pub fn checkpoint_lsn(&self) -> Lsn {
        Lsn(self.checkpoint.load(Ordering::Acquire))
    }

    /// Bytes of a log that is created with `size_bytes`: whole blocks.
    pub fn size_created(size_bytes: u64) -> u64 {
        format::whole_blocks(size_bytes)
    }

    /// Reads what the scan found, from the checkpoint on.
    pub fn windows(&self, scan: &Scan) -> Windows<'_> {
        let header = self.io.lock().header;
        Windows::new(&*self.device, self.geometry, &header, scan)
    }

    /// Number of the present generation: one more at each [`start`](Log::start) and [`finish`](Log::finish).
    pub fn generation(&self) -> u64 {
        self.io.lock().header.generation
    }

    /// Bytes of the log on its device, headers and ring.
    pub fn size_bytes(&self) -> u64 {
        self.io.lock().header.size_bytes
    }

    /// Bytes of redo, reserved or appended, that fit between a checkpoint and the end of the log.
    pub fn capacity_bytes(&self) -> u64 {
        self.geometry.capacity_bytes()
    }

    /// Called (from `reserve`, with no lock of the log's users held) whenever a caller has to wait for a checkpoint, and
    /// again from time to time while it waits. It must not call `reserve`. The last call of this function counts.
    pub fn on_pressure(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.space.set_pressure(wake);
    }
}
