//! The log: its parts, its opening, and its calls, each of which a part implements.

use super::checkpoint::Checkpoints;
use super::commit::GroupCommit;
use super::format::{self, LogGeometry, LogHeader};
use super::headers::{self, LogRemains};
use super::reservation::{self, EndRedo, Reservation};
use super::ring::{LogBounds, Ring};
use super::ring_size::RingSize;
use super::scan::{self, RecoveryScan, Windows};
use super::stream;
use super::writer::RingWriter;
use crate::config::FlushLog;
use crate::error::Result;
use crate::stats::Stats;
use crate::sync::poison::{OnStop, Poison};
use crate::types::Lsn;
use highwater_storage::Device;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// The smallest log buffer; a mini-transaction of up to this much redo always fits one.
const MIN_BUFFER_BYTES: usize = 1 << 20;

/// The redo log of one database.
pub struct Log {
    checkpoints: Checkpoints,
}

impl OnStop for Log {
    fn stopped(&self) {
        self.commits().stopped();
    }
}

/// Opening, and logs that are not open.
impl Log {
    /// Creates an empty log of `size_bytes` on the device (headers and ring), durable on return. Every block is
    /// written, so that later syncs have nothing but the redo itself to make durable.
    ///
    /// # Errors
    /// [`BadOption`](crate::Error::BadOption) for a size too small for a log, or an I/O error.
    pub fn create(device: Arc<dyn Device>, size_bytes: u64, database_id: u64) -> Result<()> {
        headers::create(&*device, size_bytes, database_id)
    }

    /// Opens an existing log and scans it from its last checkpoint. Nothing may be appended before `start`. From then
    /// on the log has `max_bytes` at most: it shrinks to them, or may grow to them. Without them, and on a device of
    /// fixed length, it keeps its size.
    ///
    /// # Errors
    /// [`Incompatible`](crate::Error::Incompatible) if it is not a redo log, another database's or a newer
    /// version's, [`Corrupt`](crate::Error::Corrupt) if it was cut short, both of its headers are damaged or it
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
        let (header, is_sure) = headers::read_header(&*device, database_id)?;
        let geometry = LogGeometry::of(&header);
        // Writes of a killed process may not be durable yet, and recovery builds on them.
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
        let bounds = LogBounds { checkpoint: scan.checkpoint_lsn, end: scan.end_lsn };
        let ring = Ring::new(device, &header, longest_group, bounds, stats, poison.clone());
        let commit = GroupCommit::new(RingWriter::new(ring, header, longest_group), flush_log_at_trx_commit);
        let log = Arc::new(Log { checkpoints: Checkpoints::new(commit, RingSize::new(max_bytes)) });
        poison.wake_on_stop(&log);
        Ok((log, scan))
    }

    /// Whether the device has held a log.
    ///
    /// # Errors
    /// An I/O error, or [`Incompatible`](crate::Error::Incompatible) for a log of another version.
    pub fn remains(device: &dyn Device) -> Result<LogRemains> {
        headers::remains(device)
    }

    /// Bytes of a log that is created with `size_bytes`: whole blocks.
    pub fn size_created(size_bytes: u64) -> u64 {
        format::whole_blocks(size_bytes)
    }

    /// Bytes of a log that holds this redo between its checkpoint and its end: at least `min_bytes`.
    pub fn size_for(lsns: &Range<Lsn>, min_bytes: u64) -> u64 {
        stream::size_for(lsns, min_bytes)
    }

    /// Makes the device a log as a crash would leave it: of `wanted`'s size, database and generation, with its
    /// checkpoint there and the groups up to `wanted.durable_lsn`, which `read` gives. Durable on return.
    ///
    /// # Errors
    /// An error of `read` or of the device.
    pub fn rebuild(device: &dyn Device, wanted: LogHeader, read: impl FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        stream::rebuild(device, wanted, read)
    }

    /// The header of the log on a device.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn header(device: &dyn Device, database_id: u64) -> Result<LogHeader> {
        headers::read_header(device, database_id).map(|(header, _)| header)
    }
}

/// Its parts, from the outermost on.
impl Log {
    #[inline]
    fn commits(&self) -> &GroupCommit {
        self.checkpoints.commit()
    }

    #[inline]
    pub(super) fn writer(&self) -> &RingWriter {
        self.checkpoints.writer()
    }

    #[inline]
    pub(super) fn ring(&self) -> &Ring {
        self.checkpoints.ring()
    }
}

/// The positions and the size of the log.
impl Log {
    /// End of the last append.
    #[inline]
    pub fn end_lsn(&self) -> Lsn {
        self.ring().end_lsn()
    }

    /// Everything before this is written (not necessarily durable).
    pub fn written_lsn(&self) -> Lsn {
        self.ring().written_lsn()
    }

    /// Everything before this is durable.
    #[inline]
    pub fn durable_lsn(&self) -> Lsn {
        self.ring().durable_lsn()
    }

    /// LSN of the last checkpoint.
    pub fn checkpoint_lsn(&self) -> Lsn {
        self.ring().checkpoint_lsn()
    }

    /// Reads what the scan found, from the checkpoint on.
    pub fn windows(&self, scan: &RecoveryScan) -> Windows<'_> {
        Windows::new(self.ring().device(), self.ring().geometry(), &self.writer().header(), scan)
    }

    /// Hands the mini-transactions of `lsns`, written in `generation`, to `take`, each with its frame; says up to where
    /// the ring still has them. Nothing is appended meanwhile.
    ///
    /// # Errors
    /// An I/O error, that of `take`.
    pub fn copy_groups(
        &self,
        lsns: Range<Lsn>,
        generation: u64,
        take: impl FnMut(Lsn, &[u8]) -> Result<()>,
    ) -> Result<Lsn> {
        let header = LogHeader { generation, ..self.writer().header() };
        scan::copy_groups(self.ring().device(), self.ring().geometry(), &header, lsns, take)
    }

    /// Number of the present generation: one more at each [`start`](Log::start) and [`finish`](Log::finish).
    pub fn generation(&self) -> u64 {
        self.writer().header().generation
    }

    /// Bytes of the log on its device, headers and ring.
    pub fn size_bytes(&self) -> u64 {
        self.ring().size_bytes()
    }

    /// Bytes that the log has at most, from its start on; what it has, if its size is fixed.
    pub fn max_bytes(&self) -> u64 {
        self.checkpoints.size().max_bytes()
    }

    /// Changes how large the log may be: a smaller one grows to it, a larger one shrinks when a generation begins, at
    /// the closing or the next opening.
    ///
    /// # Errors
    /// [`BadOption`](crate::Error::BadOption) for a device of fixed length.
    pub fn set_max_bytes(&self, max_bytes: u64) -> Result<()> {
        self.checkpoints.size().set_max_bytes(self.ring().device(), max_bytes)
    }

    /// Bytes of redo, reserved or appended, that fit between a checkpoint and the end of the log.
    pub fn capacity_bytes(&self) -> u64 {
        self.ring().space().capacity()
    }

    /// Changes it, for commits that begin after this returns. Redo that earlier commits left unsynced is synced within
    /// a second.
    pub fn set_flush_log_at_trx_commit(&self, flush_log: FlushLog) {
        self.commits().set_flush_log_at_trx_commit(flush_log);
    }

    /// Called (from `reserve`, with no lock of the log's users held) whenever a caller has to wait for a checkpoint,
    /// and again from time to time while it waits. It must not call `reserve`. Only the last function set is called.
    pub fn on_pressure(&self, wake: Box<dyn Fn() + Send + Sync>) {
        self.ring().space().set_pressure(wake);
    }

    /// The positions of blocks.
    #[cfg(test)]
    pub(super) fn geometry(&self) -> LogGeometry {
        self.ring().geometry()
    }

    /// Threads that wait for another thread's sync.
    #[cfg(test)]
    pub(crate) fn waiting_for_sync(&self) -> usize {
        self.commits().waiting_for_sync()
    }
}

/// Redo space and appending.
impl Log {
    /// Waits until `bytes` of redo fit without overwriting what the last checkpoint needs. The caller holds no latch.
    ///
    /// # Errors
    /// [`LogTooSmall`](crate::Error::LogTooSmall) if it can never fit, [`Poisoned`](crate::Error::Poisoned), or
    /// [`Usage`](crate::Error::Usage) before `start`.
    #[inline]
    pub fn reserve(&self, bytes: u64) -> Result<Reservation<'_>> {
        self.ring().reserve(bytes)
    }

    /// As [`Log::reserve`], without waiting: `None` if there is no space now.
    #[inline]
    pub fn reserve_at_once(&self, bytes: u64) -> Option<Reservation<'_>> {
        self.ring().reserve_at_once(bytes)
    }

    /// A thread that waits for a page holds no redo space.
    #[inline]
    pub fn expect_nothing_reserved(&self) {
        reservation::expect_nothing_reserved();
    }

    /// Reserves `bytes` for the end of a prepared transaction; `None` if enough is kept for others. May wait as
    /// [`reserve`](Log::reserve).
    ///
    /// # Errors
    /// As [`reserve`](Log::reserve).
    pub fn keep_for_end(&self, bytes: u64) -> Result<Option<EndRedo>> {
        self.ring().keep_for_end(bytes)
    }

    /// Uses the space that was kept for a transaction's end.
    pub fn use_kept(&self, kept: EndRedo) -> Reservation<'_> {
        self.ring().use_kept(kept)
    }

    /// Keeps the space of an end that has not used it for its next try.
    pub fn keep_again(&self, unused: Reservation<'_>) -> EndRedo {
        self.ring().keep_again(unused)
    }

    /// Appends one mini-transaction atomically and returns its end LSN. Runs `in_order(start, end)` before the next
    /// append may get its LSN (the flush list is kept in LSN order there). No I/O unless the log buffer is full.
    ///
    /// The payload is not empty and no longer than what was reserved: anything else is a bug of the caller and stops
    /// the log.
    #[inline]
    pub fn append(&self, reservation: Reservation<'_>, payload: &[u8], in_order: impl FnOnce(Lsn, Lsn)) -> Lsn {
        self.writer().append(reservation, payload, in_order)
    }
}

/// Durability.
impl Log {
    /// Returns when everything before `lsn` is written and synced (one leader syncs for all waiting threads).
    ///
    /// # Errors
    /// [`Poisoned`](crate::Error::Poisoned), the I/O error that stops the database, or [`Usage`](crate::Error::Usage)
    /// for an LSN beyond the end of the log.
    pub fn flush_to(&self, lsn: Lsn) -> Result<()> {
        self.commits().flush_to(lsn)
    }

    /// Returns when everything before `lsn` is written, durable or not.
    ///
    /// # Errors
    /// As [`flush_to`](Log::flush_to).
    pub fn write_to(&self, lsn: Lsn) -> Result<()> {
        self.writer().write_to(lsn)
    }

    /// Whether a commit that asks for this waits until its redo is synced.
    pub fn syncs_commits(&self, asked: Option<FlushLog>) -> bool {
        self.commits().syncs_commits(asked)
    }

    /// Waits as a commit at `lsn` must: as the transaction requests, or else as `flush_log_at_trx_commit` requires.
    ///
    /// # Errors
    /// As [`flush_to`](Log::flush_to).
    pub fn commit(&self, lsn: Lsn, asked: Option<FlushLog>) -> Result<()> {
        self.commits().commit(lsn, asked)
    }

    /// Closing has begun: no thread writes the log once a second any more. The caller must flush all redo that was
    /// appended before this; a later commit makes itself durable, or fails.
    pub fn begin_closing(&self) {
        self.commits().begin_closing();
    }

    /// Background step, once a second: writes and syncs what there is, if commits may wait for it.
    ///
    /// # Errors
    /// As [`flush_to`](Log::flush_to).
    pub fn sync_step(&self) -> Result<()> {
        self.commits().sync_step()
    }
}

/// Generations, checkpoints, the size of the ring.
impl Log {
    /// Begins a new generation at `end_lsn`, rounded up to a block (all pages up to it are durable): a checkpoint
    /// there, and appending allowed. A log that is too large shrinks (`shrinking`).
    ///
    /// # Errors
    /// [`Usage`](crate::Error::Usage) if started already or `end_lsn` is before the scan's end, or the I/O error that
    /// stops the database.
    pub fn start(&self, end_lsn: Lsn) -> Result<()> {
        self.checkpoints.start(end_lsn)
    }

    /// Number and first LSN of the generation that [`start`](Log::start) begins at `end_lsn`.
    pub fn next_generation(&self, end_lsn: Lsn) -> (u64, Lsn) {
        self.checkpoints.next_generation(end_lsn)
    }

    /// Makes `lsn` the checkpoint, at which recovery starts (all older changes are durable in the data file). `lsn` is
    /// the start of a group or the end of the log. Frees space in the ring and wakes the threads that wait for it. An
    /// LSN before the present checkpoint changes nothing.
    ///
    /// # Errors
    /// [`Usage`](crate::Error::Usage) for an LSN beyond the end or before `start`,
    /// [`Poisoned`](crate::Error::Poisoned), or the I/O error that stops the database.
    pub fn checkpoint(&self, lsn: Lsn) -> Result<()> {
        self.checkpoints.checkpoint(lsn)
    }

    /// Ends the log at `end`, its checkpoint: begins a generation in which nothing is appended any more. If a thread
    /// has appended meanwhile, nothing changes. A log of more than `keep_bytes` shrinks to them, if that makes it half
    /// as large or less and no reader needs what it holds (`shrinking`). The file ends where the log does, also after a
    /// growth that never finished. Returns whether the log has ended.
    ///
    /// # Errors
    /// [`Poisoned`](crate::Error::Poisoned), or the I/O error that stops the database.
    pub fn finish(&self, end: Lsn, keep_bytes: u64) -> Result<bool> {
        self.checkpoints.finish(end, keep_bytes)
    }

    /// The page store's mark in the newest header, or a later one.
    pub fn store_mark(&self) -> u64 {
        self.writer().store_mark()
    }

    /// Notes in all later headers what the page store needs to know at the next opening. Noted after a checkpoint's LSN
    /// was determined, it covers everything that the checkpoint relies on.
    pub fn note_store_mark(&self, mark: u64) {
        self.writer().note_store_mark(mark);
    }

    /// Makes everything durable and notes the durable LSN in the header, unless a header has it. So damage before that
    /// LSN is not mistaken for a torn write (`damage`). For a log that has been idle; a busy log notes it in every
    /// block it writes.
    ///
    /// # Errors
    /// [`Poisoned`](crate::Error::Poisoned), or the I/O error that stops the database.
    pub fn mark_durable(&self) -> Result<()> {
        self.checkpoints.mark_durable()
    }

    /// Grows the ring, or prepares a piece of the file for it, if growth is due and possible; returns whether the call
    /// must be repeated at once. One thread calls it.
    ///
    /// # Errors
    /// [`Poisoned`](crate::Error::Poisoned), or the I/O error that stops the database.
    pub fn growth_step(&self) -> Result<bool> {
        self.checkpoints.size().growth_step(self.writer(), self.commits().syncs_commits(None))
    }

    /// Releases the place of the ring of a log that has ended at `end`, unless a reader needs what it holds (rule 5).
    /// This is advice: a refusal changes nothing.
    pub fn release_ring(&self, end: Lsn) {
        RingSize::release_ring(self.ring(), end);
    }

    /// Reserves the space of the ring of a log that has just been started. Zeros are not written to it, as they are to
    /// the new part of a growing ring, because the opening would have to wait for them. So in the first lap a sync may
    /// also write the file system's metadata.
    ///
    /// # Errors
    /// [`DiskFull`](crate::Error::DiskFull) if the disk has no space for it, another I/O error.
    pub fn reserve_ring(&self) -> Result<()> {
        RingSize::reserve_ring(self.ring())
    }
}
