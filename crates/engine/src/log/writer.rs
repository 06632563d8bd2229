//! Appending, writing and syncing, under the buffer mutex and the I/O mutex.
//!
//! Rules
//! 1. The checksum of a payload is computed before the buffer mutex is taken; under the mutex only the LSN, generation
//!    and length are mixed in.
//! 2. After the database has stopped, the log still assigns LSNs, so that a mini-transaction in its last step can end.
//!    Its bytes are dropped, and no page with such an LSN can be written (`flush_to` fails).
//! 3. All syncs of the device hold the I/O mutex, and a failed sync stops the database before the mutex is released: an
//!    operating system reports a lost write to one sync only, so the next sync could succeed wrongly.
//! 4. Commits that do not wait for a sync leave redo in the page cache. It is written to the device soon, because the
//!    sync that runs once a second holds the I/O mutex, for which commits wait.
//! 5. A header is synced before anything relies on it, and has the LSN that was durable when it was written.
//! 6. On a device that prefers discards, the blocks of the ring that neither header nor a reader (`keep`) needs are
//!    discarded. Discards, like all writes of the ring, hold the I/O mutex: a block is discarded before it is written
//!    again, or not at all.

use super::buffer::{Active, LogBuffer};
use super::format::{self, BLOCK_BYTES, DATA_BYTES, FRAME_BYTES, LogHeader, RING_START, block_floor, blocks_of};
use super::group::Durable;
use super::reservation::Reservation;
use super::ring::Ring;
use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::types::Lsn;
use highwater_storage::{AlignedBuf, Placement, Write};
use std::time::Instant;

/// Redo that commits leave in the page cache before the device begins with it.
const WRITE_BACK_BYTES: u64 = 1 << 20;
/// One discard covers at least this part of the ring, so that whole erase units become empty together. More than this
/// part is free while the checkpoint age is below the sync watermark.
const DISCARD_PART: u64 = 16;

/// State of the one thread that performs I/O.
pub(super) struct Io {
    /// The log buffer that is not being appended to.
    pub(super) spare: AlignedBuf,
    /// The newest header on the device.
    pub(super) header: LogHeader,
    pub(super) started: bool,
    /// LSN up to which the device was asked to begin writeback; what was synced since may reach further.
    pub(super) begun: u64,
    /// Up to this LSN of the next lap, what has its place was discarded (rule 6).
    pub(super) discarded: u64,
    /// Size of the prepared file. If commits wait for syncs, every byte of it has been written.
    pub(super) made_bytes: u64,
}

/// The ring and the thread that writes it.
pub(super) struct RingWriter {
    ring: Ring,
    database_id: u64,
    /// For the next header; see `note_store_mark`.
    store_mark: AtomicU64,
    io: Mutex<Io>,
}

impl RingWriter {
    /// A writer after `header`, the newest on the device, for groups of up to `longest_group` bytes.
    pub(super) fn new(ring: Ring, header: LogHeader, longest_group: usize) -> RingWriter {
        let io = Io {
            spare: LogBuffer::memory(longest_group),
            header,
            started: false,
            begun: 0,
            discarded: 0,
            made_bytes: header.size_bytes,
        };
        let (database_id, store_mark) = (header.database_id, AtomicU64::new(header.store_mark));
        RingWriter { ring, database_id, store_mark, io: Mutex::new(io) }
    }

    #[inline]
    pub(super) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// The I/O mutex.
    pub(super) fn lock(&self) -> MutexGuard<'_, Io> {
        self.io.lock()
    }

    /// The newest header on the device.
    pub(super) fn header(&self) -> LogHeader {
        self.io.lock().header
    }

    /// The page store's mark in the newest header, or a later one.
    pub(super) fn store_mark(&self) -> u64 {
        self.store_mark.load(Ordering::Acquire)
    }

    /// Notes in all later headers what the page store needs to know at the next opening.
    pub(super) fn note_store_mark(&self, mark: u64) {
        self.store_mark.store(mark, Ordering::Release);
    }

    /// Checks rule 1 of the log; the caller owns the I/O mutex. The values that other threads change meanwhile only
    /// grow, so of two values the lower bound is read first.
    pub(super) fn check_state(&self, io: &Io) {
        if !cfg!(debug_assertions) || !io.started || self.ring.poison().is_set() {
            return;
        }
        let (checkpoint, durable, written) =
            (self.ring.checkpoint_lsn(), self.ring.durable_lsn(), self.ring.written_lsn());
        let end = self.ring.end_lsn();
        debug_assert!(checkpoint <= durable, "the checkpoint {checkpoint} is above what is durable, {durable}");
        debug_assert!(durable <= written, "{durable} is durable, {written} is written");
        debug_assert!(written <= end, "{written} is written, the log ends at {end}");
        self.ring.space().check_reserved(end, || self.ring.poison().is_set());
        let (reserved, limit) =
            (self.ring.space().reserved_end(), self.ring.oldest_needed().0 + self.ring.space().capacity());
        debug_assert!(
            reserved.0 <= limit || self.ring.poison().is_set(),
            "{reserved} is reserved, the ring ends at {limit}"
        );
        debug_assert!(io.begun <= written.0, "the device began with {}, {written} is written", io.begun);
        let header = &io.header;
        debug_assert_eq!(header.database_id, self.database_id, "the header is another database's");
        debug_assert!(header.durable_lsn <= durable, "{header:?} was written while {durable} was durable");
        debug_assert!(checkpoint <= header.checkpoint_lsn, "no header has the checkpoint {checkpoint}: {header:?}");
        debug_assert_eq!(io.spare.len() as u64 % format::BLOCK_BYTES, 0, "the spare buffer has whole blocks");
    }

    /// Appends one mini-transaction atomically and returns its end LSN. Runs `in_order(start, end)` before the next
    /// append may get its LSN (the flush list is kept in LSN order there). No I/O unless the log buffer is full.
    ///
    /// The payload is not empty and no longer than what was reserved: anything else is a bug of the caller and stops
    /// the log.
    pub(super) fn append(&self, reservation: Reservation<'_>, payload: &[u8], in_order: impl FnOnce(Lsn, Lsn)) -> Lsn {
        let bytes = FRAME_BYTES + payload.len();
        if payload.is_empty() || bytes as u64 > reservation.bytes() {
            let (has, may) = (payload.len(), reservation.bytes() - FRAME_BYTES as u64);
            self.ring.poison().set(&format!("a mini-transaction of {has} bytes reserved {may} bytes of redo"));
        }
        let crc = crc32c::crc32c(payload);
        let mut active = self.lock_with_room(bytes);
        let start = active.end();
        if self.ring.poison().is_set() {
            active.skip(bytes);
        } else {
            let frame = format::frame(crc, payload.len() as u32, start, active.generation);
            active.push(&frame);
            active.push(payload);
        }
        let end = active.end();
        debug_assert_eq!(start.0 + bytes as u64, end.0, "a group ends where the next one starts");
        in_order(start, end);
        self.ring.buffer().publish(&active, end);
        drop(active);
        let used = reservation.bytes().min(bytes as u64);
        reservation.consume(used);
        self.ring.space().check_reserved(end, || self.ring.poison().is_set());
        end
    }

    /// Locks the buffer with space for `bytes` (unless the database has stopped).
    #[inline]
    fn lock_with_room(&self, bytes: usize) -> MutexGuard<'_, Active> {
        loop {
            let active = self.ring.buffer().lock();
            if active.fits(bytes) || self.ring.poison().is_set() {
                return active;
            }
            drop(active);
            self.write_out_if_full(bytes);
        }
    }

    #[cold]
    fn write_out_if_full(&self, bytes: usize) {
        let mut io = self.io.lock();
        if !self.ring.buffer().lock().fits(bytes) {
            // A failure stops the database, which ends the caller's loop.
            let _ = self.write_out(&mut io);
        }
    }

    /// Writes all redo so far to the device, up to `lsn` at least, unless that is written.
    ///
    /// # Errors
    /// [`Error::Poisoned`], or the I/O error that stops the database.
    pub(super) fn write_to(&self, lsn: Lsn) -> Result<()> {
        self.ring.poison().check()?;
        if self.ring.written_lsn() >= lsn {
            return Ok(());
        }
        self.ring.check_not_beyond_end(lsn)?;
        let mut io = self.io.lock();
        if self.ring.written_lsn() >= lsn {
            return self.ring.poison().check();
        }
        self.write_out(&mut io)?;
        self.begin_write_back(&mut io)
    }

    /// Rule 4, for blocks that are whole, once there are enough: the last one is written again.
    fn begin_write_back(&self, io: &mut Io) -> Result<()> {
        let (from, end) =
            (io.begun.max(block_floor(self.ring.durable_lsn().0)), block_floor(self.ring.written_lsn().0));
        let bytes = blocks_of(end.saturating_sub(from)) * BLOCK_BYTES;
        if bytes < WRITE_BACK_BYTES {
            return Ok(());
        }
        io.begun = end;
        let (offset, before_end) = self.ring.geometry().block_place(from);
        let first = bytes.min(before_end);
        let begun = self.ring.device().begin_write_back(offset, first);
        let at_start =
            || if bytes > first { self.ring.device().begin_write_back(RING_START, bytes - first) } else { Ok(()) };
        self.ring.stop_on_failure(begun.and_then(|()| at_start()))
    }

    /// Writes all that was appended so far.
    pub(super) fn write_out(&self, io: &mut Io) -> Result<()> {
        self.check_state(io);
        let from = self.ring.written_lsn().0;
        let batch = {
            let mut active = self.ring.buffer().lock();
            self.ring.poison().check()?;
            if active.end().0 == from {
                return Ok(());
            }
            active.take(&mut io.spare)
        };
        debug_assert_eq!(batch.base, block_floor(from), "what follows the written redo is written next");
        debug_assert!(from < batch.end, "nothing is written, up to {from}");
        let blocks = batch.blocks(&mut io.spare, &io.header, self.ring.durable_lsn());
        self.write_blocks(batch.base, blocks)?;
        self.ring.stats().redo_bytes.add(batch.end - from);
        self.ring.set_written(Lsn(batch.end));
        self.check_state(io);
        Ok(())
    }

    /// Writes blocks to their place in the ring; two pieces where the ring starts over.
    fn write_blocks(&self, base: u64, blocks: &[u8]) -> Result<()> {
        let end = base + blocks.len() as u64 / BLOCK_BYTES * DATA_BYTES;
        debug_assert!(
            end <= block_floor(self.ring.oldest_needed().0) + self.ring.geometry().lap(),
            "blocks up to {end} overwrite redo that is needed from {} on",
            self.ring.oldest_needed()
        );
        let (offset, before_end) = self.ring.geometry().block_place(base);
        let (first, second) = blocks.split_at(blocks.len().min(before_end as usize));
        let result = if second.is_empty() {
            self.ring.device().write_at(offset, first, Placement::Redo)
        } else {
            let write = |offset, data| Write { offset, data, placement: Placement::Redo };
            self.ring.device().write_batch(&[write(offset, first), write(RING_START, second)])
        };
        self.ring.count_write(if second.is_empty() { 1 } else { 2 }, blocks.len());
        self.ring.stop_on_failure(result)
    }

    /// Makes all that was written durable.
    pub(super) fn sync(&self, io: &mut Io) -> Result<()> {
        self.check_state(io);
        let written = self.ring.written_lsn();
        self.ring.poison().check()?;
        let since = Instant::now();
        self.ring.stop_on_failure(self.ring.device().sync())?;
        self.ring.stats().log_syncs.inc();
        self.ring.stats().log_sync_us.add(since.elapsed().as_micros() as u64);
        self.ring.set_durable(written);
        self.check_state(io);
        Ok(())
    }

    pub(super) fn write_header(&self, io: &mut Io, header: LogHeader) -> Result<()> {
        self.ring.poison().check()?;
        self.check_state(io);
        debug_assert!(header.can_follow(&io.header), "{header:?} is written after {:?}", io.header);
        let header = LogHeader { store_mark: self.store_mark(), ..header };
        let mut block = AlignedBuf::zeroed(BLOCK_BYTES as usize);
        header.encode(&mut block);
        self.ring.count_write(1, block.len());
        self.ring.stop_on_failure(self.ring.device().write_at(header.offset(), &block, Placement::Redo))?;
        self.sync(io)?;
        let older = std::mem::replace(&mut io.header, header);
        if self.ring.device().prefers_discards() {
            self.discard_before(io, older.checkpoint_lsn.min(self.ring.space().kept()));
        }
        Ok(())
    }

    /// Discards what is in front of a checkpoint and has not been written again (rule 6).
    fn discard_before(&self, io: &mut Io, checkpoint: Lsn) {
        // As LSNs of the next lap, which have the same places.
        let from = format::block_ceil(self.ring.written_lsn().0).max(io.discarded);
        let geometry = self.ring.geometry();
        let to = format::block_floor(checkpoint.0) + geometry.lap();
        if to < from + geometry.lap() / DISCARD_PART {
            return;
        }
        debug_assert!(to <= self.ring.written_lsn().0 + geometry.lap(), "redo up to {to} was not written");
        let (offset, before_end) = geometry.block_place(from);
        let bytes = (to - from) / DATA_BYTES * BLOCK_BYTES;
        let first = bytes.min(before_end);
        // Advice: a refusal changes nothing.
        let _ = self.ring.device().discard(offset, first);
        if bytes > first {
            let _ = self.ring.device().discard(RING_START, bytes - first);
        }
        io.discarded = to;
    }
}

impl Durable for RingWriter {
    type Error = Error;

    #[inline]
    fn durable_lsn(&self) -> Lsn {
        self.ring.durable_lsn()
    }

    #[inline]
    fn has_stopped(&self) -> bool {
        self.ring.poison().is_set()
    }

    #[inline]
    fn check(&self) -> Result<()> {
        self.ring.poison().check()
    }

    fn write_and_sync(&self, lsn: Lsn) -> Result<()> {
        let mut io = self.io.lock();
        if self.ring.durable_lsn() >= lsn {
            return self.ring.poison().check();
        }
        self.write_out(&mut io)?;
        self.sync(&mut io)
    }
}
