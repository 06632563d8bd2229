//! Group commit: the wait of a commit for durability, and the writes and syncs by the leader.
//!
//! Rules
//! 1. The leader takes all redo appended before it starts; a thread that appended later waits for the next leader.
//!    There is no delay option: a leader starts as soon as the device is free.
//! 2. `durable` is stored before the threads that wait for it are woken.

use super::group::CommitGroup;
use super::ring::Ring;
use super::writer::RingWriter;
use crate::config::FlushLog;
use crate::error::Result;
use crate::sync::atomic::{AtomicBool, AtomicU8, Ordering, Ordering::Relaxed};
use crate::types::Lsn;

const SYNC: u8 = FlushLog::Sync as u8;
const WRITE: u8 = FlushLog::Write as u8;

/// The writer and the threads that wait for it.
pub(super) struct GroupCommit {
    writer: RingWriter,
    group: CommitGroup,
    /// [`FlushLog`] as a number.
    flush_log_at_trx_commit: AtomicU8,
    /// Whether a commit returned whose redo may not be durable, though the others wait for theirs.
    owes_sync: AtomicBool,
    /// No thread will write what commits do not wait for; see `begin_closing`.
    is_closing: AtomicBool,
}

impl GroupCommit {
    pub(super) fn new(writer: RingWriter, flush_log_at_trx_commit: FlushLog) -> GroupCommit {
        GroupCommit {
            writer,
            group: CommitGroup::default(),
            flush_log_at_trx_commit: AtomicU8::new(flush_log_at_trx_commit as u8),
            owes_sync: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(super) fn writer(&self) -> &RingWriter {
        &self.writer
    }

    #[inline]
    pub(super) fn ring(&self) -> &Ring {
        self.writer.ring()
    }

    /// Wakes every waiting thread: the database has stopped.
    pub(super) fn stopped(&self) {
        self.ring().space().close();
        self.group.wake_all();
    }

    /// Threads that wait for another thread's sync.
    #[cfg(test)]
    pub(super) fn waiting_for_sync(&self) -> usize {
        self.group.waiting()
    }

    /// Returns when everything before `lsn` is written and synced (one leader syncs for all waiting threads).
    ///
    /// # Errors
    /// `Poisoned`, the I/O error that stops the database, or `Usage` for an LSN beyond the end of the log.
    pub(super) fn flush_to(&self, lsn: Lsn) -> Result<()> {
        self.ring().poison().check()?;
        if self.ring().durable_lsn() >= lsn {
            return Ok(());
        }
        self.ring().check_not_beyond_end(lsn)?;
        self.group.flush_to(&self.writer, lsn)
    }

    /// Whether a commit that asks for this waits until its redo is synced.
    pub(super) fn syncs_commits(&self, asked: Option<FlushLog>) -> bool {
        asked.unwrap_or(self.flush_log_at_trx_commit()) == FlushLog::Sync
    }

    /// Waits as a commit at `lsn` must: as the transaction requests, or else as `flush_log_at_trx_commit` requires.
    ///
    /// # Errors
    /// As [`GroupCommit::flush_to`].
    pub(super) fn commit(&self, lsn: Lsn, asked: Option<FlushLog>) -> Result<()> {
        let flush_log = asked.unwrap_or(self.flush_log_at_trx_commit());
        if asked.is_some() && flush_log != FlushLog::Sync {
            self.owes_sync.store(true, Ordering::Release);
        }
        match flush_log {
            FlushLog::EverySecond if self.is_closing.load(Ordering::Acquire) => self.flush_to(lsn),
            FlushLog::EverySecond => self.ring().poison().check(),
            FlushLog::Write => self.writer.write_to(lsn),
            FlushLog::Sync => self.flush_to(lsn),
        }
    }

    /// Closing has begun: no thread writes the log once a second any more. The caller must flush all redo that was
    /// appended before this; a later commit makes itself durable, or fails.
    pub(super) fn begin_closing(&self) {
        // A thread that appends after this locks the mutex after this thread, and sees it.
        let _appending = self.ring().buffer().lock();
        self.is_closing.store(true, Ordering::Release);
    }

    /// Background step, once a second: writes and syncs what there is, if commits may wait for it.
    ///
    /// # Errors
    /// As [`GroupCommit::flush_to`].
    pub(super) fn sync_step(&self) -> Result<()> {
        // Commits read neighboring data: it is written only if it has to be.
        let owes_sync = self.owes_sync.load(Ordering::Relaxed) && self.owes_sync.swap(false, Ordering::AcqRel);
        match owes_sync || self.flush_log_at_trx_commit() != FlushLog::Sync {
            true => self.flush_to(self.ring().end_lsn()),
            false => self.ring().poison().check(),
        }
    }

    /// The default durability of commits.
    #[inline]
    pub(super) fn flush_log_at_trx_commit(&self) -> FlushLog {
        match self.flush_log_at_trx_commit.load(Relaxed) {
            SYNC => FlushLog::Sync,
            WRITE => FlushLog::Write,
            _ => FlushLog::EverySecond,
        }
    }

    /// Changes it, for commits that begin after this returns. Redo that earlier commits left unsynced is synced within
    /// a second.
    pub(super) fn set_flush_log_at_trx_commit(&self, flush_log: FlushLog) {
        self.flush_log_at_trx_commit.store(flush_log as u8, Relaxed);
        // Behind the change: a commit that found the old value has appended before.
        self.owes_sync.store(true, Ordering::Release);
    }
}
