//! The space that a small closed store releases ([`crate::space`], at rest).
//!
//! Rules
//! 1. Unneeded are free segments, the space between the batches and the end of other segments, and region 0 after its
//!    pages and slots. The last block of a segment is kept: its footer is needed also when it is free ([`super::scan`],
//!    rules 6 and 7). A hole may read as any bytes: they are no header of the segment's life (rule 4 there).
//! 2. An opening reserves all released space before it writes anything ([`wake`]): otherwise other files could take it,
//!    and a later batch would find the disk full. Only stores whose batches take at most [`SMALL_BYTES`] release space,
//!    because the opening has to find the same ranges: the close first makes the end of every segment durable, whose
//!    summary says how far the batches reach. Of a larger store an opening reserves the free segments, because programs
//!    that copy files leave holes where nothing was written.
//! 3. If [`WORTH_BYTES`] are dead, segments are cleaned, as far as free segments have space: so the live images of the
//!    store are in few segments, also after it was large.
//! 4. On a device of fixed length nothing is released.
//!
//! [`wake`]: OutOfPlace::wake

use super::OutOfPlace;
use super::format::{self, BLOCK_BYTES, SLOTS_AT};
use crate::error::Result;
use highwater_storage::AlignedBuf;
use std::ops::Range;

/// Size of a small store, for rule 2: the pages of a small database, with other pages in the same batches.
const SMALL_BYTES: u64 = 4 << 20;
/// Dead bytes that are worth two syncs.
const WORTH_BYTES: u64 = 64 << 10;

impl OutOfPlace {
    /// Releases what is not needed at rest. No thread writes any more.
    pub(super) fn rest(&self) -> Result<()> {
        if self.device().has_fixed_len() {
            return Ok(());
        }
        let seal = || (0..self.groups()).try_for_each(|group| self.seal_short(group));
        seal()?;
        self.gather()?;
        seal()?;
        self.free_cleared()?;
        if !self.is_small() {
            return Ok(());
        }
        self.stats.data_syncs.add(u64::from(self.data.sync()?));
        for range in self.idle_ranges() {
            // A file system that cannot discard keeps the space.
            let _ = self.device().discard(range.start, range.end - range.start);
        }
        Ok(())
    }

    /// Reserves the space that [`rest`](OutOfPlace::rest) may have released, or a program that copied the file (rule
    /// 2). Durable with the next sync.
    pub(super) fn wake(&self) -> highwater_storage::Result<()> {
        if self.device().has_fixed_len() {
            return Ok(());
        }
        let ranges = if self.is_small() { self.idle_ranges() } else { self.free_ranges() };
        ranges.iter().try_for_each(|range| self.device().reserve(range.start, range.end - range.start))
    }

    /// Bytes that all batches take.
    fn batch_bytes(&self) -> u64 {
        self.segments.used_bytes().iter().map(|(_, bytes)| bytes).sum()
    }

    fn is_small(&self) -> bool {
        self.batch_bytes() <= SMALL_BYTES
    }

    /// Cleans segments (rule 3).
    fn gather(&self) -> Result<()> {
        let mut buffer = self.cleaning.lock();
        for _ in 0..self.segments.usage().segments {
            let usage = self.segments.usage();
            let is_worth_it = self.batch_bytes().saturating_sub(usage.live_bytes) >= WORTH_BYTES;
            let has_room = usage.free as usize > self.groups();
            if !is_worth_it || !has_room || !self.clean_with(&mut buffer)? {
                break;
            }
            self.free_cleared()?;
        }
        Ok(())
    }

    /// The free segments without their last blocks (rule 1).
    fn free_ranges(&self) -> Vec<Range<u64>> {
        let free = self.segments.used_bytes().into_iter().filter(|(_, used_bytes)| *used_bytes == 0);
        let start = |segment| self.geometry.start_of(segment);
        free.map(|(segment, _)| start(segment)..start(segment + 1) - BLOCK_BYTES as u64).collect()
    }

    /// The ranges that are not needed (rule 1). None in a segment whose end cannot be read.
    fn idle_ranges(&self) -> Vec<Range<u64>> {
        let (geometry, block) = (self.geometry, BLOCK_BYTES as u64);
        let mut ranges = Vec::from([Range { start: SLOTS_AT[1] + block, end: geometry.segment_bytes }]);
        for (segment, used_bytes) in self.segments.used_bytes() {
            let (start, end) = (geometry.start_of(segment), geometry.start_of(segment + 1));
            let mut end_bytes = block;
            if used_bytes > 0 {
                let mut last = AlignedBuf::zeroed(BLOCK_BYTES);
                if self.device().read_at(end - block, &mut last).is_err() {
                    continue;
                }
                let footer = format::parse_footer(&last, geometry.identity(segment));
                end_bytes = footer.map_or(block, |footer| footer.end_bytes() as u64);
            }
            ranges.push((start + used_bytes).next_multiple_of(block)..end.saturating_sub(end_bytes));
        }
        ranges.retain(|range| range.start < range.end);
        ranges
    }
}
