//! The distinction between a damaged log and the end of the log, for the scan.
//!
//! After a power cut, the blocks after the end may have any part of the writes since the last sync, in any order, with
//! groups that verify. So a valid group after the end proves nothing. But each block's mark, and each header, has the
//! LSN up to which the log was synced when it was written, and synced redo survives. So a mark above the end proves
//! that earlier bytes were damaged.
//!
//! Detected: any damage between the checkpoint and the newest readable mark. That mark has the LSN that was durable
//! when the last write began, or when the log had been idle for a while ([`super::Log::mark_durable`]), or at the last
//! checkpoint. Later damage, in the redo of the last sync before a crash, looks like a torn write; it is detected if a
//! page or a doublewrite copy newer than the log's end was flushed.
//!
//! Rules
//! 1. The search for marks begins at the block of the end and stops after [`GAP_BLOCKS`] blocks in a row without a
//!    mark: every synced block has a mark, so only damage of that length hides the marks. If the newest header may be
//!    damaged, the search covers the whole ring, because the ring may have overwritten redo that the older header
//!    needs.
//! 2. A mark of the next generation proves that the header of that generation is lost.

use super::format::{self, BLOCK_BYTES, DATA_BYTES, LogGeometry, LogHeader};
use crate::error::{Error, Result};
use crate::types::Lsn;
use highwater_storage::{AlignedBuf, Device};

/// Blocks without a mark after which none is expected any more: 64 MiB.
const GAP_BLOCKS: u64 = 16384;
/// Blocks read at once.
const CHUNK_BLOCKS: u64 = 64;

/// The log was synced beyond the point up to which it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// File offset of the first group that does not verify.
    pub offset: u64,
    /// The LSN of that place.
    pub lsn: Lsn,
    /// The log was durable at least up to there.
    pub durable_lsn: Lsn,
    /// The log continued in a generation whose header is damaged.
    pub header_lost: bool,
}

impl LogDamage {
    /// A message about the damage.
    pub fn describe(&self, file: &str) -> String {
        let LogDamage { offset, lsn, durable_lsn, header_lost } = self;
        if *header_lost {
            return format!(
                "{file} is damaged: its newest header cannot be read; the older header says that the log ends at LSN \
                 {lsn}, but there are blocks written later: committed changes are lost; restore a backup"
            );
        }
        format!(
            "{file} is damaged at byte {offset}: the redo from LSN {lsn} on cannot be read, but it was durable up to \
             LSN {durable_lsn} at least: committed changes are lost; restore a backup"
        )
    }

    pub(super) fn error(&self, device: &dyn Device) -> Error {
        Error::Corrupt(self.describe(&device.name()))
    }
}

/// Finds the proof that the log did not end at `end`. `is_sure`: `header` is known to be the newest.
pub(super) fn behind(
    device: &dyn Device,
    geometry: LogGeometry,
    header: &LogHeader,
    end: Lsn,
    is_sure: bool,
) -> Result<Option<LogDamage>> {
    let mut search = Search { header, durable: header.durable_lsn, header_lost: false, without_mark: 0 };
    let gap = if is_sure { GAP_BLOCKS } else { u64::MAX };
    let (mut next, last) = (format::block_floor(end.0), format::block_floor(header.checkpoint_lsn.0) + geometry.lap());
    let mut chunk = AlignedBuf::zeroed((CHUNK_BLOCKS * BLOCK_BYTES) as usize);
    while next < last && search.without_mark < gap {
        let (offset, before_end) = geometry.block_place(next);
        let blocks = CHUNK_BLOCKS.min(before_end / BLOCK_BYTES).min((last - next) / DATA_BYTES);
        let bytes = &mut chunk[..(blocks * BLOCK_BYTES) as usize];
        device.read_at(offset, bytes)?;
        for block in bytes.chunks_exact(BLOCK_BYTES as usize) {
            search.look_at(block, next);
            next += DATA_BYTES;
        }
    }
    let Search { durable, header_lost, .. } = search;
    let damage = LogDamage { offset: geometry.offset_of(end), lsn: end, durable_lsn: durable, header_lost };
    Ok((header_lost || durable > end).then_some(damage))
}

struct Search<'h> {
    header: &'h LogHeader,
    durable: Lsn,
    header_lost: bool,
    without_mark: u64,
}

impl Search<'_> {
    fn look_at(&mut self, block: &[u8], lsn: u64) {
        let LogHeader { generation, database_id, .. } = *self.header;
        self.without_mark += 1;
        if let Some(durable) = format::mark(block, lsn, generation, database_id) {
            self.durable = self.durable.max(durable);
            self.without_mark = 0;
        }
        self.header_lost |= format::mark(block, lsn, generation + 1, database_id).is_some();
    }
}

#[cfg(test)]
#[path = "damage_test.rs"]
mod tests;
