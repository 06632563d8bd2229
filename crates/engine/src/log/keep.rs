//! Keeping redo for readers that follow the log (a backup, the archive), and reading it.
//!
//! Rules
//! 1. While a [`KeptRedo`] exists, reservations are limited by the older of the checkpoint and the kept LSN, so the
//!    redo that a reader needs is not overwritten or discarded. Checkpoints continue meanwhile.
//! 2. A reader releases the redo that it has copied. So writers wait for it only if it is a whole ring behind. It takes
//!    no lock that a writer holds while it waits.
//! 3. Only durable redo is read. If a block is rewritten meanwhile, its durable bytes do not change.

use super::format::{self, BLOCK_BYTES, DATA_BYTES, MARK_BYTES};
use super::redo_log::Log;
use super::space::RedoReader;
use crate::error::{Error, Result};
use crate::types::Lsn;
use highwater_storage::AlignedBuf;
use std::ops::Deref;

/// Blocks read at once.
const READ_BLOCKS: u64 = 256;

/// Redo that is not overwritten; released on drop.
pub struct KeptRedo<L: Deref<Target = Log>> {
    log: L,
    reader: RedoReader,
    at: Lsn,
}

impl Log {
    /// Keeps the redo from the last checkpoint on.
    ///
    /// # Errors
    /// [`Error::Usage`] if this reader has some kept.
    pub fn keep<L: Deref<Target = Log>>(log: L, reader: RedoReader) -> Result<KeptRedo<L>> {
        match log.ring().space().keep(reader, || log.checkpoint_lsn()) {
            Some(at) => Ok(KeptRedo { log, reader, at }),
            None => Err(Error::Usage("another backup of this database is running; wait until it has ended".into())),
        }
    }
}

impl<L: Deref<Target = Log>> KeptRedo<L> {
    /// The next byte to read.
    pub fn at(&self) -> Lsn {
        self.at
    }

    /// Reads from there on next. It is kept, or was overwritten: what is read says which.
    pub fn go_to(&mut self, lsn: Lsn) {
        self.at = lsn;
    }

    /// Redo before `lsn` is not kept any more.
    pub fn release(&mut self, lsn: Lsn) {
        self.log.ring().space().keep_from(self.reader, lsn, || self.log.checkpoint_lsn());
    }

    /// Replaces `out` by the redo that follows, as far as it is durable and not beyond `limit`: nothing, or up to
    /// [`READ_BLOCKS`] blocks.
    ///
    /// # Errors
    /// An I/O error.
    pub fn read(&mut self, limit: Lsn, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let end = self.log.durable_lsn().min(limit);
        if end <= self.at {
            return Ok(());
        }
        let first = format::block_floor(self.at.0);
        // Asked after the end: a ring that grows meanwhile leaves what is before the end in its place.
        let (offset, before_end) = self.log.ring().geometry().block_place(first);
        let blocks = format::blocks_of(end.0 - first).min(READ_BLOCKS).min(before_end / BLOCK_BYTES);
        let mut bytes = AlignedBuf::zeroed((blocks * BLOCK_BYTES) as usize);
        self.log.ring().device().read_at(offset, &mut bytes)?;
        let to = end.0.min(first + blocks * DATA_BYTES);
        for (number, block) in bytes.chunks_exact(BLOCK_BYTES as usize).enumerate() {
            let base = first + number as u64 * DATA_BYTES;
            let (from, to) = (self.at.0.max(base) - base, to.min(base + DATA_BYTES) - base);
            out.extend_from_slice(&block[(MARK_BYTES + from) as usize..(MARK_BYTES + to) as usize]);
        }
        self.at = Lsn(to);
        Ok(())
    }
}

impl<L: Deref<Target = Log>> Drop for KeptRedo<L> {
    fn drop(&mut self) {
        self.log.ring().space().keep_nothing(self.reader, || self.log.checkpoint_lsn());
    }
}
