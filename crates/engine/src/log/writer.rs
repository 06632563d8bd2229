//! Writing and syncing: group commit.
//!
//! Rules
//! 1. The leader takes all redo appended before it starts; a thread that appended later waits for the next leader.
//!    There is no delay option: a leader starts as soon as the device is free.
//! 2. All syncs of the device hold the I/O mutex, and a failed sync stops the database before the mutex is released: an
//!    operating system reports a lost write to one sync only, so the next sync could succeed wrongly.
//! 3. `durable` is stored before the threads that wait for it are woken.
//! 4. Commits that do not wait for a sync leave redo in the page cache. It is written to the device soon, because the
//!    sync that runs once a second holds the I/O mutex, for which commits wait.

use super::format::{BLOCK_BYTES, DATA_BYTES, RING_START, block_floor, blocks_of};
use super::group::Durable;
use super::{Io, Log};
use crate::config::FlushLog;
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering;
use crate::types::Lsn;
use highwater_storage::{Placement, Write};
use std::time::Instant;

/// Redo that commits leave in the page cache before the device begins with it.
const WRITE_BACK_BYTES: u64 = 1 << 20;

impl Log {
    /// Returns when everything before `lsn` is written and synced (one leader syncs for all waiting threads).
    ///
    /// # Errors
    /// [`Error::Poisoned`], the I/O error that stops the database, or [`Error::Usage`] for an LSN beyond the end of the
    /// log.
    pub fn flush_to(&self, lsn: Lsn) -> Result<()> {
        self.poison.check()?;
        if self.durable_lsn() >= lsn {
            return Ok(());
        }
        self.check_not_beyond_end(lsn)?;
        self.group.flush_to(self, lsn)
    }

    /// Returns when everything before `lsn` is written, durable or not.
    ///
    /// # Errors
    /// As [`flush_to`](Log::flush_to).
    pub fn write_to(&self, lsn: Lsn) -> Result<()> {
        self.poison.check()?;
        if self.written_lsn() >= lsn {
            return Ok(());
        }
        self.check_not_beyond_end(lsn)?;
        let mut io = self.io.lock();
        if self.written_lsn() >= lsn {
            return self.poison.check();
        }
        self.write_out(&mut io)?;
        self.begin_write_back(&mut io)
    }

    /// Rule 4, for blocks that are whole, once there are enough: the last one is written again.
    fn begin_write_back(&self, io: &mut Io) -> Result<()> {
        let (from, end) = (io.begun.max(block_floor(self.durable_lsn().0)), block_floor(self.written_lsn().0));
        let bytes = blocks_of(end.saturating_sub(from)) * BLOCK_BYTES;
        if bytes < WRITE_BACK_BYTES {
            return Ok(());
        }
        io.begun = end;
        let (offset, before_end) = self.geometry().block_place(from);
        let first = bytes.min(before_end);
        let begun = self.device.begin_write_back(offset, first);
        let at_start = || if bytes > first { self.device.begin_write_back(RING_START, bytes - first) } else { Ok(()) };
        self.stop_on_failure(begun.and_then(|()| at_start()))
    }

    /// Whether a commit that asks for this waits until its redo is synced.
    pub fn syncs_commits(&self, asked: Option<FlushLog>) -> bool {
        asked.unwrap_or(self.flush_log_at_trx_commit()) == FlushLog::Sync
    }

    /// What a commit at `lsn` must wait for: what the transaction says, or else `flush_log_at_trx_commit`.
    ///
    /// # Errors
    /// As [`flush_to`](Log::flush_to).
    pub fn commit(&self, lsn: Lsn, asked: Option<FlushLog>) -> Result<()> {
        let flush_log = asked.unwrap_or(self.flush_log_at_trx_commit());
        if asked.is_some() && flush_log != FlushLog::Sync {
            self.owes_sync.store(true, Ordering::Release);
        }
        match flush_log {
            FlushLog::EverySecond if self.is_closing.load(Ordering::Acquire) => self.flush_to(lsn),
            FlushLog::EverySecond => self.poison.check(),
            FlushLog::Write => self.write_to(lsn),
            FlushLog::Sync => self.flush_to(lsn),
        }
    }

    /// Closing has begun: nothing writes the log once a second any more. What was appended before this is for the
    /// caller to flush; a commit that is appended afterwards makes itself durable, or fails.
    pub fn begin_closing(&self) {
        // A thread that appends after this locks the mutex after this thread, and sees it.
        let _appending = self.buffer.lock();
        self.is_closing.store(true, Ordering::Release);
    }

    /// Background step, once a second: writes and syncs what there is, if commits may wait for it.
    ///
    /// # Errors
    /// As [`flush_to`](Log::flush_to).
    pub fn sync_step(&self) -> Result<()> {
        // Commits read neighboring data: it is written only if it has to be.
        let owes_sync = self.owes_sync.load(Ordering::Relaxed) && self.owes_sync.swap(false, Ordering::AcqRel);
        match owes_sync || self.flush_log_at_trx_commit() != FlushLog::Sync {
            true => self.flush_to(self.end_lsn()),
            false => self.poison.check(),
        }
    }

    /// An error for an LSN that was never appended: no wait for it would end.
    pub(super) fn check_not_beyond_end(&self, lsn: Lsn) -> Result<()> {
        let end = self.end_lsn();
        if lsn <= end {
            Ok(())
        } else {
            Err(Error::Usage(format!("LSN {lsn} lies beyond the end of the log at {end}")))
        }
    }

    /// Writes all that was appended so far.
    pub(super) fn write_out(&self, io: &mut Io) -> Result<()> {
        self.check_state(io);
        let from = self.written.load(Ordering::Relaxed);
        let batch = {
            let mut active = self.buffer.lock();
            self.poison.check()?;
            if active.end().0 == from {
                return Ok(());
            }
            active.take(&mut io.spare)
        };
        debug_assert_eq!(batch.base, block_floor(from), "what follows the written redo is written next");
        debug_assert!(from < batch.end, "nothing is written, up to {from}");
        let blocks = batch.blocks(&mut io.spare, &io.header, self.durable_lsn());
        self.write_blocks(batch.base, blocks)?;
        self.stats.redo_bytes.add(batch.end - from);
        self.written.store(batch.end, Ordering::Release);
        self.check_state(io);
        Ok(())
    }

    /// Writes blocks to their place in the ring; two pieces where the ring starts over.
    fn write_blocks(&self, base: u64, blocks: &[u8]) -> Result<()> {
        let end = base + blocks.len() as u64 / BLOCK_BYTES * DATA_BYTES;
        debug_assert!(
            end <= block_floor(self.oldest_needed().0) + self.geometry().lap(),
            "blocks up to {end} overwrite redo that is needed from {} on",
            self.oldest_needed()
        );
        let (offset, before_end) = self.geometry().block_place(base);
        let (first, second) = blocks.split_at(blocks.len().min(before_end as usize));
        let result = if second.is_empty() {
            self.device.write_at(offset, first, Placement::Redo)
        } else {
            let write = |offset, data| Write { offset, data, placement: Placement::Redo };
            self.device.write_batch(&[write(offset, first), write(RING_START, second)])
        };
        self.count_write(if second.is_empty() { 1 } else { 2 }, blocks.len());
        self.stop_on_failure(result)
    }

    /// Makes all that was written durable.
    pub(super) fn sync(&self, io: &mut Io) -> Result<()> {
        self.check_state(io);
        let written = self.written.load(Ordering::Relaxed);
        self.poison.check()?;
        let since = Instant::now();
        self.stop_on_failure(self.device.sync())?;
        self.stats.log_syncs.inc();
        self.stats.log_sync_us.add(since.elapsed().as_micros() as u64);
        self.durable.store(written, Ordering::Release);
        self.check_state(io);
        Ok(())
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

impl Durable for Log {
    type Error = Error;

    #[inline]
    fn durable_lsn(&self) -> Lsn {
        Log::durable_lsn(self)
    }

    #[inline]
    fn has_stopped(&self) -> bool {
        self.poison.is_set()
    }

    #[inline]
    fn check(&self) -> Result<()> {
        self.poison.check()
    }

    fn write_and_sync(&self, lsn: Lsn) -> Result<()> {
        let mut io = self.io.lock();
        if self.durable_lsn() >= lsn {
            return self.poison.check();
        }
        self.write_out(&mut io)?;
        self.sync(&mut io)
    }
}
