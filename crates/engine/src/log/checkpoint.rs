//! Starting a generation, moving the checkpoint, ending the log.
//!
//! Rules
//! 1. A checkpoint is never above the durable LSN, never decreases, and is at the start of a group (or at the end of
//!    the log).
//! 2. A generation begins at a block boundary, so no block has valid groups of two generations. The generation that a
//!    clean close begins has no groups.

use super::commit::GroupCommit;
use super::format::{self, LogHeader};
use super::ring::Ring;
use super::ring_size::RingSize;
use super::writer::RingWriter;
use crate::error::{Error, Result};
use crate::sync::event::event;
use crate::sync::poison::CLOSED;
use crate::types::Lsn;

/// The generations of the log and the checkpoints in them.
pub(super) struct Checkpoints {
    commit: GroupCommit,
    size: RingSize,
}

impl Checkpoints {
    pub(super) fn new(commit: GroupCommit, size: RingSize) -> Checkpoints {
        Checkpoints { commit, size }
    }

    #[inline]
    pub(super) fn commit(&self) -> &GroupCommit {
        &self.commit
    }

    #[inline]
    pub(super) fn writer(&self) -> &RingWriter {
        self.commit.writer()
    }

    #[inline]
    pub(super) fn ring(&self) -> &Ring {
        self.commit.ring()
    }

    pub(super) fn size(&self) -> &RingSize {
        &self.size
    }

    /// Begins a new generation at `end_lsn`, rounded up to a block (all pages up to it are durable): a checkpoint
    /// there, and appending allowed. A log that is too large shrinks (`shrinking`).
    ///
    /// # Errors
    /// [`Error::Usage`] if started already or `end_lsn` is before the scan's end, or the I/O error that stops the
    /// database.
    pub(super) fn start(&self, end_lsn: Lsn) -> Result<()> {
        let mut io = self.writer().lock();
        if io.started || end_lsn < self.ring().end_lsn() {
            let why = if io.started { "it was started already" } else { "its records continue beyond that LSN" };
            return Err(Error::Usage(format!("cannot start the redo log at LSN {end_lsn}: {why}")));
        }
        let start = Lsn(format::block_ceil(end_lsn.0));
        let generation = io.header.generation + 1;
        let header = LogHeader { generation, checkpoint_lsn: start, durable_lsn: start, ..io.header.next() };
        self.size.begin_generation(self.writer(), &mut io, header)?;
        io.started = true;
        let mut active = self.ring().buffer().lock();
        active.restart(start, generation);
        self.ring().set_written(start);
        self.ring().set_durable(start);
        self.ring().set_checkpoint(start);
        self.ring().buffer().publish(&active, start);
        self.ring().space().open(start);
        Ok(())
    }

    /// Number and first LSN of the generation that [`start`](Checkpoints::start) begins at `end_lsn`.
    pub(super) fn next_generation(&self, end_lsn: Lsn) -> (u64, Lsn) {
        (self.writer().header().generation + 1, Lsn(format::block_ceil(end_lsn.0)))
    }

    /// Makes `lsn` the checkpoint, at which recovery starts (all older changes are durable in the data file). `lsn` is
    /// the start of a group or the end of the log. Frees space in the ring and wakes the threads that wait for it. An
    /// LSN before the present checkpoint changes nothing.
    ///
    /// # Errors
    /// [`Error::Usage`] for an LSN beyond the end or before `start`, [`Error::Poisoned`], or the I/O error that stops
    /// the database.
    pub(super) fn checkpoint(&self, lsn: Lsn) -> Result<()> {
        self.ring().poison().check()?;
        self.ring().check_not_beyond_end(lsn)?;
        if lsn <= self.ring().checkpoint_lsn() {
            return Ok(());
        }
        self.commit.flush_to(lsn)?;
        let mut io = self.writer().lock();
        if !io.started {
            return Err(Error::Usage("the redo log has not been started yet".into()));
        }
        if lsn <= self.ring().checkpoint_lsn() {
            return self.ring().poison().check();
        }
        let header = LogHeader { checkpoint_lsn: lsn, durable_lsn: self.ring().durable_lsn(), ..io.header.next() };
        self.writer().write_header(&mut io, header)?;
        self.ring().set_checkpoint(lsn);
        self.ring().stats().checkpoints.inc();
        drop(io);
        event!(DEBUG, lsn = lsn.0, "checkpoint");
        self.ring().space().checkpointed(|| self.ring().checkpoint_lsn());
        Ok(())
    }

    /// Ends the log at `end`, its checkpoint: begins a generation in which nothing is appended any more. If a thread
    /// has appended meanwhile, nothing changes. A log of more than `keep_bytes` shrinks to them, if that makes it half
    /// as large or less and no reader needs what it holds (`shrinking`). The file ends where the log does, also after a
    /// growth that never finished. Returns whether the log has ended.
    ///
    /// # Errors
    /// [`Error::Poisoned`], or the I/O error that stops the database.
    pub(super) fn finish(&self, end: Lsn, keep_bytes: u64) -> Result<bool> {
        let mut io = self.writer().lock();
        if !io.started || self.ring().checkpoint_lsn() != end || self.ring().buffer().lock().end() != end {
            return self.ring().poison().check().map(|()| false);
        }
        let header = LogHeader { generation: io.header.generation + 1, ..io.header.next() };
        let keep_bytes = format::whole_blocks(keep_bytes);
        let may_shrink = !self.ring().device().has_fixed_len() && self.ring().space().kept() >= end;
        if may_shrink && format::is_size_possible(keep_bytes) && keep_bytes <= self.ring().size_bytes() / 2 {
            RingSize::begin_smaller(self.writer(), &mut io, header, keep_bytes)?;
        } else {
            self.writer().write_header(&mut io, header)?;
        }
        RingSize::cut_file(self.ring())?;
        // A group appended from now on would be of the old generation and would be lost: it must not be acknowledged.
        self.ring().poison().set(CLOSED);
        Ok(true)
    }

    /// Makes the log durable and writes the durable LSN to the header, unless a header has it already. So damage before
    /// that LSN is not mistaken for a torn write (`damage`). For an idle log; a busy log writes the durable LSN in
    /// every block.
    ///
    /// # Errors
    /// [`Error::Poisoned`], or the I/O error that stops the database.
    pub(super) fn mark_durable(&self) -> Result<()> {
        self.commit.flush_to(self.ring().end_lsn())?;
        let mut io = self.writer().lock();
        let durable_lsn = self.ring().durable_lsn();
        let is_noted = io.header.durable_lsn >= durable_lsn && io.header.store_mark == self.writer().store_mark();
        if !io.started || is_noted {
            return self.ring().poison().check();
        }
        let header = LogHeader { durable_lsn, ..io.header.next() };
        self.writer().write_header(&mut io, header)
    }
}
