//! Truncation in memory: the unused part at the file's end, and its removal from the state.

use super::super::layout::{CHUNK_PAGES, CHUNKS, EXTENT_PAGES, SEGMENT_SYSTEM, SpaceLayout};
use super::{SMALL_SEGMENT_PAGES, SpaceState};
use crate::types::{Lsn, PageNo};

impl SpaceState {
    /// Number of extents that the file needs: up to the last extent that is not empty or has redo after `checkpoint`,
    /// and more to have `keep` free ones, a number that depends on the size. A group stays or is removed with its map.
    pub(crate) fn needed_extents(&self, layout: &SpaceLayout, checkpoint: Lsn, keep: impl Fn(u32) -> u32) -> u32 {
        let is_needed = |number: &u32| !self.is_empty_extent(*number) || self.freed.is_behind(*number, checkpoint);
        let mut needed = (1..self.extents()).rev().find(is_needed).map_or(1, |last| last + 1);
        let mut free = self.unowned_below(needed, keep(self.extents()) as usize);
        while needed < self.extents() && free < keep(needed) as usize {
            free += usize::from(!layout.begins_group(needed));
            needed += 1;
        }
        needed
    }

    /// Extents below `end` without owner, counted up to `limit`.
    fn unowned_below(&self, end: u32, limit: usize) -> usize {
        self.free.range(..end).take(limit).count() + self.untouched.range(..end).take(limit).count()
    }

    /// Of the extents below `end` whose place is to be reserved the lowest ones: as many as `keep` free ones lack.
    pub(crate) fn lacking_below(&self, end: u32, keep: u32) -> Vec<u32> {
        let lacking = (keep as usize).saturating_sub(self.free.range(..end).take(keep as usize).count());
        self.untouched.range(..end).take(lacking).copied().collect()
    }

    /// Number of extents of the file if all chunks with an owner were adjacent, followed by `keep` free extents.
    pub(crate) fn gapless_extents(&self, layout: &SpaceLayout, keep: impl Fn(u32) -> u32) -> u32 {
        let unowned = self.unowned_chunks + self.untouched.len() as u32 * CHUNKS;
        let maps = layout.groups(self.extents());
        self.extents_for((self.extents() * CHUNKS).saturating_sub(unowned + maps), layout, keep)
    }

    /// The same if the used pages of each segment were adjacent, in whole extents unless the segment is small, and no
    /// free extents after them.
    pub(crate) fn packed_extents(&self, layout: &SpaceLayout) -> u32 {
        let of_users = self.segments.iter().filter(|(owner, _)| **owner != SEGMENT_SYSTEM.0);
        let chunks = of_users.map(|(_, segment)| match segment.pages {
            pages @ ..=SMALL_SEGMENT_PAGES => pages.div_ceil(CHUNK_PAGES),
            pages => pages.div_ceil(EXTENT_PAGES) * CHUNKS,
        });
        self.extents_for(chunks.sum(), layout, |_| 0)
    }

    fn extents_for(&self, chunks: u32, layout: &SpaceLayout, keep: impl Fn(u32) -> u32) -> u32 {
        let owned = chunks.div_ceil(CHUNKS);
        let end = (owned + keep(owned)).min(self.extents());
        end + layout.groups(end)
    }

    /// The used pages of the last extent below `end` that is not empty, and its number.
    pub(crate) fn last_used_below(&self, end: u32) -> Option<(u32, Vec<PageNo>)> {
        let extent = (0..end.min(self.extents())).rev().find(|number| !self.is_empty_extent(*number))?;
        let used = self.extents[extent as usize].used;
        let pages = (0..EXTENT_PAGES).filter(|bit| used >> bit & 1 == 1);
        Some((extent, pages.map(|bit| PageNo(extent * EXTENT_PAGES + bit)).collect()))
    }

    /// The lowest extents below `end`, up to `limit`, whose place is to be reserved.
    pub(crate) fn bare_below(&self, end: u32, limit: usize) -> Vec<u32> {
        self.untouched.range(..end).take(limit).copied().collect()
    }

    /// The extents from `end` on, all of them empty, are no more.
    pub(crate) fn cut(&mut self, end: u32) {
        for number in (end..self.extents()).rev() {
            debug_assert!(self.is_empty_extent(number), "extent {number} is in use");
            self.freed.remove(number);
            let of_system = self.extents[number as usize].chunks_of(SEGMENT_SYSTEM.0);
            if of_system != 0 {
                self.release_chunks(number, of_system);
            }
            if !self.untouched.remove(&number) {
                self.free.remove(&number);
                self.unowned_chunks -= CHUNKS;
            }
            self.extents.pop();
        }
        self.check_state();
        self.found = self.found.start.min(end)..self.found.end.min(end);
    }
}
