//! The log: its parts, opening it, how far it is.

use super::buffer::LogBuffer;
use super::format::LogGeometry;
use super::group::CommitGroup;
use super::scan::{RecoveryScan, Windows};
use super::space::LogSpace;
use super::{checkpoint, format};
use crate::config::FlushLog;
use crate::error::{Error, Result};
use crate::stats::Stats;
use crate::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, Ordering::Relaxed};
use crate::sync::poison::{OnStop, Poison};
use crate::sync::sharded::CachePadded;
use crate::sync::{Mutex, RwLock};
use crate::types::Lsn;
use highwater_storage::{AlignedBuf, Device};
use std::sync::Arc;
use std::time::Instant;

/// The smallest log buffer; a mini-transaction of up to this much redo always fits one.
const MIN_BUFFER_BYTES: usize = 1 << 20;

const SYNC: u8 = FlushLog::Sync as u8;
const WRITE: u8 = FlushLog::Write as u8;

/// The redo log of one database.
pub struct Log {
    pub(super) device: Arc<dyn Device>,
    /// Changes under the I/O mutex, when the ring grows or shrinks.
    geometry: RwLock<LogGeometry>,
    /// Size up to which the log may grow, and to which it shrinks.
    max_bytes: AtomicU64,
    /// When the device last had no room for growth.
    pub(super) growth_refused: Mutex<Option<Instant>>,
    /// No thread will write what commits do not wait for; see `begin_closing`.
    pub(super) is_closing: AtomicBool,
    pub(super) database_id: u64,
    /// [`FlushLog`] as a number.
    flush_log_at_trx_commit: AtomicU8,
    /// Whether a commit returned whose redo may not be durable, though the others wait for theirs.
    pub(super) owes_sync: AtomicBool,
    pub(super) stats: Arc<Stats>,
    /// The switch of the whole database: a failure of the log stops every call.
    pub(super) poison: Arc<Poison>,
    pub(super) space: LogSpace,
    pub(super) buffer: CachePadded<LogBuffer>,
    /// Written and durable LSN; change only under the I/O mutex.
    pub(super) written: CachePadded<AtomicU64>,
    pub(super) durable: CachePadded<AtomicU64>,
    pub(super) checkpoint: AtomicU64,
    /// For the next header; see [`Log::note_store_mark`].
    pub(super) store_mark: AtomicU64,
    pub(super) io: Mutex<Io>,
    pub(super) group: CommitGroup,
}

/// What the one thread that does I/O owns.
pub struct Io {
    /// The log buffer that is not being appended to.
    pub(super) spare: AlignedBuf,
    /// The newest header on the device.
    pub(super) header: format::LogHeader,
    pub(super) started: bool,
    /// The device was told to begin with the blocks up to this LSN; what was synced since may reach further.
    pub(super) begun: u64,
    /// Up to this LSN of the next lap, what has its place was discarded (`checkpoint`, rule 4).
    pub(super) discarded: u64,
    /// Size of the file that was made, every byte of it written where commits wait for syncs.
    pub(super) made_bytes: u64,
}

impl OnStop for Log {
    fn stopped(&self) {
        self.space.close();
        self.group.wake_all();
    }
}

impl Log {
    /// Creates an empty log of `size_bytes` on the device (headers and ring), durable on return. Every block is
    /// written, so that later syncs have nothing but the redo itself to make durable.
    ///
    /// # Errors
    /// [`Error::BadOption`](crate::Error::BadOption) for a size too small for a log, or an I/O error.
    pub fn create(device: Arc<dyn Device>, size_bytes: u64, database_id: u64) -> Result<()> {
        checkpoint::create(&*device, size_bytes, database_id)
    }

    /// Opens an existing log and scans it from its last checkpoint. Nothing may be appended before `start`. From then
    /// on the log has `max_bytes` at most: it shrinks to them, or may grow to them. Without them, and on a device of
    /// fixed length, it keeps its size.
    ///
    /// # Errors
    /// [`Error::Incompatible`](crate::Error::Incompatible) if it is no redo log, another database's or a newer
    /// version's, [`Error::Corrupt`](crate::Error::Corrupt) if it was cut short, both of its headers are damaged or it
    /// was synced further than it can be read, or an I/O error.
    pub fn open(
        device: Arc<dyn Device>,
        buffer_bytes: usize,
        flush_log_at_trx_commit: FlushLog,
        database_id: u64,
        max_bytes: Option<u64>,
        stats: Arc<Stats>,
        poison: Arc<Poison>,
    ) -> Result<(Arc<Log>, RecoveryScan)> {
        let (header, is_sure) = checkpoint::read_header(&*device, database_id)?;
        let geometry = LogGeometry::of(&header);
        // What a killed process wrote may not be durable yet; recovery is about to build on it.
        let since = Instant::now();
        device.sync()?;
        stats.log_syncs.inc();
        stats.log_sync_us.add(since.elapsed().as_micros() as u64);
        let scan = RecoveryScan::run(&*device, geometry, &header, is_sure)?;
        if let Some(damage) = scan.damage {
            return Err(damage.error(&*device));
        }
        let asked_bytes = max_bytes.map(format::whole_blocks).filter(|_| !device.has_fixed_len());
        let max_bytes = asked_bytes.unwrap_or(header.size_bytes);
        let max_capacity = LogGeometry::new(max_bytes).capacity_bytes();
        let longest_group = buffer_bytes.max(MIN_BUFFER_BYTES).min(max_capacity as usize);
        let end = scan.end_lsn;
        let log = Arc::new(Log {
            device,
            geometry: RwLock::new(geometry),
            max_bytes: AtomicU64::new(max_bytes),
            growth_refused: Mutex::default(),
            is_closing: AtomicBool::new(false),
            database_id,
            flush_log_at_trx_commit: AtomicU8::new(flush_log_at_trx_commit as u8),
            owes_sync: AtomicBool::new(false),
            stats,
            poison,
            space: LogSpace::new(longest_group as u64, geometry.capacity_bytes()),
            buffer: CachePadded(LogBuffer::new(longest_group, end)),
            written: CachePadded(AtomicU64::new(end.0)),
            durable: CachePadded(AtomicU64::new(end.0)),
            checkpoint: AtomicU64::new(scan.checkpoint_lsn.0),
            store_mark: AtomicU64::new(header.store_mark),
            io: Mutex::new(Io {
                spare: LogBuffer::memory(longest_group),
                header,
                started: false,
                begun: 0,
                discarded: 0,
                made_bytes: header.size_bytes,
            }),
            group: CommitGroup::default(),
        });
        log.poison.wake_on_stop(&log);
        Ok((log, scan))
    }

    /// Rule 1 of the log, for the owner of the I/O mutex. What others change meanwhile only grows, so what is to be
    /// smaller is read first.
    pub(super) fn check_state(&self, io: &Io) {
        if !cfg!(debug_assertions) || !io.started || self.poison.is_set() {
            return;
        }
        let (checkpoint, durable, written) = (self.checkpoint_lsn(), self.durable_lsn(), self.written_lsn());
        let end = self.end_lsn();
        debug_assert!(checkpoint <= durable, "the checkpoint {checkpoint} is above what is durable, {durable}");
        debug_assert!(durable <= written, "{durable} is durable, {written} is written");
        debug_assert!(written <= end, "{written} is written, the log ends at {end}");
        self.space.check_reserved(end, || self.poison.is_set());
        let (reserved, limit) = (self.space.reserved_end(), self.oldest_needed().0 + self.capacity_bytes());
        debug_assert!(reserved.0 <= limit || self.poison.is_set(), "{reserved} is reserved, the ring ends at {limit}");
        debug_assert!(io.begun <= written.0, "the device began with {}, {written} is written", io.begun);
        let header = &io.header;
        debug_assert_eq!(header.database_id, self.database_id, "the header is another database's");
        debug_assert!(header.durable_lsn <= durable, "{header:?} was written while {durable} was durable");
        debug_assert!(checkpoint <= header.checkpoint_lsn, "no header has the checkpoint {checkpoint}: {header:?}");
        debug_assert_eq!(io.spare.len() as u64 % format::BLOCK_BYTES, 0, "the spare buffer has whole blocks");
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
    pub fn windows(&self, scan: &RecoveryScan) -> Windows<'_> {
        let header = self.io.lock().header;
        Windows::new(&*self.device, self.geometry(), &header, scan)
    }

    /// Number of the present generation: one more at each [`start`](Log::start) and [`finish`](Log::finish).
    pub fn generation(&self) -> u64 {
        self.io.lock().header.generation
    }

    /// Bytes of the log on its device, headers and ring.
    pub fn size_bytes(&self) -> u64 {
        self.geometry().size_bytes()
    }

    /// Bytes that the log has at most, from its start on; what it has, if its size is fixed.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes.load(Relaxed)
    }

    /// Changes how large the log may be: a smaller one grows to it, a larger one shrinks when a generation begins, at
    /// the closing or the next opening.
    ///
    /// # Errors
    /// [`Error::BadOption`] for a device of fixed length.
    pub fn set_max_bytes(&self, max_bytes: u64) -> Result<()> {
        if self.device.has_fixed_len() {
            let reason = "the redo log is on a device and has all of it".to_string();
            return Err(Error::BadOption { option: "log-file-size".to_string(), reason });
        }
        self.max_bytes.store(format::whole_blocks(max_bytes), Relaxed);
        Ok(())
    }

    /// What commits do with their redo, if they do not say.
    #[inline]
    pub(super) fn flush_log_at_trx_commit(&self) -> FlushLog {
        match self.flush_log_at_trx_commit.load(Relaxed) {
            SYNC => FlushLog::Sync,
            WRITE => FlushLog::Write,
            _ => FlushLog::EverySecond,
        }
    }

    /// Changes it, for commits that begin after this returns. What earlier ones left to be synced is synced within a
    /// second.
    pub fn set_flush_log_at_trx_commit(&self, flush_log: FlushLog) {
        self.flush_log_at_trx_commit.store(flush_log as u8, Relaxed);
        // Behind the change: a commit that found the old value has appended before.
        self.owes_sync.store(true, Ordering::Release);
    }

    /// Bytes of redo, reserved or appended, that fit between a checkpoint and the end of the log.
    pub fn capacity_bytes(&self) -> u64 {
        self.space.capacity()
    }

    /// Where blocks lie.
    pub(super) fn geometry(&self) -> LogGeometry {
        *self.geometry.read()
    }

    /// Lets blocks lie elsewhere from now on; the caller owns the I/O mutex (`_io`).
    pub(super) fn set_geometry(&self, _io: &mut Io, geometry: LogGeometry) {
        *self.geometry.write() = geometry;
    }

    /// Threads that wait for another thread's sync.
    #[cfg(test)]
    pub(crate) fn waiting_for_sync(&self) -> usize {
        self.group.waiting()
    }

    /// Called (from `reserve`, with no lock of the log's users held) whenever a caller has to wait for a checkpoint,
    /// and again from time to time while it waits. It must not call `reserve`. Only the last function set is called.
    pub fn on_pressure(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.space.set_pressure(wake);
    }
}
