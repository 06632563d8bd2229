//! Free space and owners, in memory; derived from the extent maps.
//!
//! Rules
//! 1. `free` and `untouched` hold exactly the extents without owner; `untouched` those whose space on the device may
//!    have been released, which are not allocated. `shared` holds those with both an owned and an unowned chunk.
//!    `unowned_chunks` counts the unowned chunks of `free` and `shared`.
//! 2. `partial[segment]` holds exactly the extents in which the segment owns a chunk with a free page.
//! 3. Allocation prefers: the page after `near`, then the segment's own free pages, then a chunk of a shared extent
//!    (small segments), then a whole extent; a chunk again if a whole extent would be more than may be taken. While a
//!    compaction runs all of these below `preferred_end` come first, so that no new page keeps the file from being cut.
//! 4. `freed_extents` holds extents with logged changes in which no chunk is owned, except that of a map. For each it
//!    has the end of the log when its last page was freed, or its map was formatted: no logged change of the extent is
//!    later. When a chunk of an extent is allocated, the extent leaves `freed_extents`.
//! 5. A chunk whose last used page is freed has no owner: its owner on disk is valid only while a page of it is used.
//!    When a segment frees its last used page in an extent, its unused chunks of the extent lose their owner too.

use super::extent_map::{Extent, read_entry};
use super::freed_extents::FreedExtents;
use super::header;
use super::layout::{CHUNK_PAGES, CHUNKS, EXTENT_PAGES, SEGMENT_SYSTEM, SpaceLayout, chunk_mask};
use super::reserve::SpacePriority;
use crate::error::{Error, Result};
use crate::page::{self, PageType};
use crate::types::{Lsn, PageNo, SegmentId};
use highwater_storage::StorageError;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::time::{Duration, Instant};

mod check;
mod cut;
mod segments;

/// A segment up to this size grows by chunks.
const SMALL_SEGMENT_PAGES: u32 = 32;

#[derive(Default)]
struct SegmentState {
    pages: u32,
    partial: BTreeSet<u32>,
    extents: BTreeSet<u32>,
}

pub(super) struct SpaceState {
    extents: Vec<Extent>,
    free: BTreeSet<u32>,
    untouched: BTreeSet<u32>,
    /// Extent at which the search for the next run of `untouched` begins.
    bare_from: u32,
    /// Positions of those of `untouched` that were found at the opening, and may still have their space on the device.
    found: Range<u32>,
    /// Number of `untouched` extents that may still be tried for the reserve.
    found_tries: usize,
    shared: BTreeSet<u32>,
    freed: FreedExtents,
    unowned_chunks: u32,
    /// Allocation prefers extents below this one (rule 3).
    preferred_end: u32,
    /// Time and priority of the last refusal of space; `None` after a later success.
    pub full_since: Option<(Instant, SpacePriority)>,
    /// The device's error then.
    pub full_why: String,
    segments: HashMap<u32, SegmentState>,
    /// Next segment number.
    pub next_segment: u32,
    /// Root slots of page 0.
    pub roots: [PageNo; header::ROOTS],
}

impl SpaceState {
    /// No extents yet.
    pub(super) fn new() -> SpaceState {
        SpaceState {
            extents: Vec::new(),
            free: BTreeSet::new(),
            untouched: BTreeSet::new(),
            bare_from: 0,
            found: 0..0,
            found_tries: 0,
            freed: FreedExtents::default(),
            unowned_chunks: 0,
            preferred_end: u32::MAX,
            full_since: None,
            full_why: String::new(),
            shared: BTreeSet::new(),
            segments: HashMap::new(),
            next_segment: 0,
            roots: [PageNo(0); header::ROOTS],
        }
    }

    pub(super) fn extents(&self) -> u32 {
        self.extents.len() as u32
    }

    pub(super) fn extent(&self, number: u32) -> Option<Extent> {
        self.extents.get(number as usize).copied()
    }

    /// Chunks that can be taken.
    pub(super) fn unowned_chunks(&self) -> u32 {
        self.unowned_chunks
    }

    /// Notes a refusal of space.
    pub(super) fn note_full(&mut self, since: (Instant, SpacePriority), source: &StorageError) {
        (self.full_since, self.full_why) = (Some(since), source.source.to_string());
    }

    /// Whether space for `purpose` was refused within the last `time`. A refusal does not count for higher priorities.
    pub(super) fn is_full(&self, purpose: SpacePriority, time: Duration) -> bool {
        self.full_since.is_some_and(|(at, refused)| purpose <= refused && at.elapsed() < time)
    }

    /// Extents whose place is to be reserved before they can be taken.
    pub(super) fn untouched(&self) -> impl Iterator<Item = u32> {
        self.untouched.iter().copied()
    }

    /// Whether an extent is one of those.
    pub(super) fn is_untouched(&self, number: u32) -> bool {
        self.untouched.contains(&number)
    }

    /// Number of untouched extents.
    pub(super) fn untouched_extents(&self) -> usize {
        self.untouched.len()
    }

    /// The next extents, up to `limit`, that follow each other and cannot be taken before their place is reserved.
    pub(super) fn untouched_run(&self, limit: u32) -> Range<u32> {
        let next = self.untouched.range(self.bare_from..).next().or_else(|| self.untouched.first());
        next.map_or(0..0, |first| self.bare_run_at(*first, limit))
    }

    fn bare_run_at(&self, first: u32, limit: u32) -> Range<u32> {
        let end = (first..first.saturating_add(limit)).find(|number| !self.untouched.contains(number));
        first..end.unwrap_or(first.saturating_add(limit))
    }

    /// All of `untouched` may still have their place: it is not known what an earlier process discarded.
    pub(super) fn note_found(&mut self) {
        (self.found, self.found_tries) = (0..self.extents(), self.untouched.len());
        self.check_state();
    }

    /// Whether some of those are left.
    pub(super) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// The next extents of those that were found, up to `limit`, that follow each other and were not reserved since;
    /// they are found no more.
    pub(super) fn next_found(&mut self, limit: u32) -> Range<u32> {
        let Some(&first) = self.untouched.range(self.found.clone()).next() else {
            self.found.start = self.found.end;
            return 0..0;
        };
        let run = self.bare_run_at(first, limit);
        self.found.start = run.end.min(self.found.end);
        run
    }

    /// The reserve could not be made of some; once all were tried, those found stay as they are.
    pub(super) fn note_refused(&mut self) {
        self.found_tries = self.found_tries.saturating_sub(1);
        if self.found_tries == 0 {
            self.found.start = self.found.end;
        }
    }

    /// The place of this one cannot be reserved now: the next run begins after it.
    pub(super) fn skip_untouched(&mut self, number: u32) {
        self.bare_from = number + 1;
    }

    /// The place of these extents is reserved: they can be taken.
    pub(super) fn note_reserved(&mut self, extents: Range<u32>) {
        for number in extents {
            if self.untouched.remove(&number) {
                self.free.insert(number);
                self.unowned_chunks += CHUNKS;
                self.check_extent(number);
            }
        }
    }

    /// The next extent whose last change is before the checkpoint, reserved for discarding. The first `keep` free ones
    /// are left out, now and until they are emptied again.
    pub(super) fn next_to_discard(&mut self, checkpoint: Lsn, keep: usize) -> Option<u32> {
        loop {
            let extent = self.freed.next_due(checkpoint)?;
            debug_assert!(self.is_empty_extent(extent), "extent {extent} is to be discarded, but is in use");
            if self.set_untouched(extent, keep) {
                // The device gets space back.
                self.full_since = None;
                return Some(extent);
            }
        }
    }

    /// An extent has just become empty; `end_of_log` was read since the last mtr that freed a page of it was
    /// committed.
    pub(super) fn note_freed(&mut self, extent: u32, end_of_log: Lsn) {
        debug_assert!(self.is_empty_extent(extent));
        self.freed.note(extent, end_of_log);
    }

    /// Whether an extent that was emptied waits for a checkpoint in this range.
    pub(super) fn awaits_checkpoint(&self, behind: Lsn, up_to: Lsn) -> bool {
        self.freed.any_in(behind, up_to)
    }

    /// Sets a free extent aside, to be discarded, unless it is one of the first `keep`.
    pub(super) fn set_untouched(&mut self, number: u32, keep: usize) -> bool {
        if self.free.range(..number).take(keep).count() < keep || !self.free.remove(&number) {
            return false;
        }
        self.unowned_chunks -= CHUNKS;
        self.untouched.insert(number)
    }

    /// Adds the extents that a map describes, `here` of which the file has. Those without an owner may have been
    /// discarded.
    pub(super) fn add_group(&mut self, layout: &SpaceLayout, group: u32, here: u32, map: &[u8]) -> Result<()> {
        let page_no = layout.map_page(group);
        if page::header::page_type(map)? != PageType::ExtentMap {
            return Err(Error::corrupt_page(page_no, "an extent map should be here"));
        }
        for index in 0..layout.group_extents() {
            let extent = read_entry(map, index as usize).without_idle_owners();
            if index < here {
                if let Some(reason) = extent.contradiction() {
                    let number = group * layout.group_extents() + index;
                    return Err(Error::corrupt_page(page_no, format!("extent {number}: {reason}")));
                }
                self.extents.push(extent);
                self.index_extent(self.extents() - 1);
                self.set_untouched(self.extents() - 1, 0);
            } else if extent.used != 0 {
                let number = group * layout.group_extents() + index;
                return Err(Error::Corrupt(format!(
                    "the data file is truncated: extent {number} is in use but missing"
                )));
            }
        }
        Ok(())
    }

    /// Adds free extents up to `total` (new groups' first chunk belongs to the system).
    pub(super) fn add_free(&mut self, layout: &SpaceLayout, total: u32) {
        for number in self.extents()..total {
            let mut extent = Extent::default();
            if layout.begins_group(number) {
                extent.used = 0b11;
                extent.owners[0] = SEGMENT_SYSTEM.0;
            }
            self.extents.push(extent);
            self.index_extent(number);
        }
        self.check_state();
    }

    fn index_extent(&mut self, number: u32) {
        let extent = self.extents[number as usize];
        for owner in extent.owners.into_iter().filter(|o| *o != 0) {
            let segment = self.segments.entry(owner).or_default();
            if segment.extents.insert(number) {
                segment.pages += (extent.used & chunk_mask(extent.chunks_of(owner))).count_ones();
            }
            if extent.free_pages(owner) != 0 {
                segment.partial.insert(number);
            }
            if owner != SEGMENT_SYSTEM.0 {
                self.next_segment = self.next_segment.max(owner + 1);
            }
        }
        self.unowned_chunks += extent.chunks_of(0).count_ones();
        self.classify(number);
    }

    fn classify(&mut self, number: u32) {
        let unowned = self.extents[number as usize].chunks_of(0);
        self.free.remove(&number);
        self.shared.remove(&number);
        match unowned {
            0 => {}
            0xff => drop(self.free.insert(number)),
            _ => drop(self.shared.insert(number)),
        }
    }

    /// Makes allocation prefer extents below `end` (rule 3).
    pub(super) fn prefer_below(&mut self, end: u32) {
        self.preferred_end = end;
    }

    /// Takes a page for a segment and leaves `keep` unowned chunks; `None` if no other page is free.
    pub(super) fn take(&mut self, segment: SegmentId, near: Option<PageNo>, keep: u32) -> Option<PageNo> {
        let (preferred, end) = (self.preferred_end.min(self.extents()), self.extents());
        let near = near.filter(|near| near.0 / EXTENT_PAGES < preferred);
        let page = self.take_near(segment.0, near).or_else(|| self.take_new(segment.0, keep, preferred));
        let page = page.or_else(|| self.take_new(segment.0, keep, end))?;
        self.mark(page, segment.0);
        debug_assert_eq!(self.owner(page), Some(segment), "page {page} was taken for another segment");
        Some(page)
    }

    /// As [`take`](Self::take), the lowest page that the segment can have below extent `end`.
    pub(super) fn take_below(&mut self, segment: SegmentId, end: u32) -> Option<PageNo> {
        let page = self.take_new(segment.0, 0, end)?;
        self.mark(page, segment.0);
        debug_assert!(page.0 < end * EXTENT_PAGES, "page {page} is not below extent {end}");
        Some(page)
    }

    fn take_new(&mut self, owner: u32, keep: u32, end: u32) -> Option<PageNo> {
        self.take_own(owner, end).or_else(|| {
            self.give_chunks(owner, keep, end)?;
            self.take_own(owner, end)
        })
    }

    fn take_near(&self, owner: u32, near: Option<PageNo>) -> Option<PageNo> {
        let near = near?;
        let number = near.0 / EXTENT_PAGES;
        let free = self.extents.get(number as usize)?.free_pages(owner);
        let after = free & u64::MAX.checked_shl(near.0 % EXTENT_PAGES)?;
        let bit = if after != 0 { after } else { free };
        (bit != 0).then(|| PageNo(number * EXTENT_PAGES + bit.trailing_zeros()))
    }

    fn take_own(&self, owner: u32, end: u32) -> Option<PageNo> {
        let number = *self.segments.get(&owner)?.partial.range(..end).next()?;
        let free = self.extents[number as usize].free_pages(owner);
        Some(PageNo(number * EXTENT_PAGES + free.trailing_zeros()))
    }

    /// Gives the segment a chunk or, once it is not small, a whole extent, below extent `end`, so that `keep` chunks
    /// are left.
    fn give_chunks(&mut self, owner: u32, keep: u32, end: u32) -> Option<()> {
        let spare = self.unowned_chunks.saturating_sub(keep);
        if spare == 0 {
            return None;
        }
        let small = spare < CHUNKS || self.segments.get(&owner).is_none_or(|s| s.pages < SMALL_SEGMENT_PAGES);
        let lowest = |of: &BTreeSet<u32>| of.range(..end).next().copied();
        let shared = if small { lowest(&self.shared) } else { None };
        let number = shared.or_else(|| lowest(&self.free)).or_else(|| lowest(&self.shared))?;
        self.freed.remove(number);
        debug_assert!(!self.untouched.contains(&number), "extent {number} is taken before its place is reserved");
        let extent = &mut self.extents[number as usize];
        let whole = !small && extent.chunks_of(0) == 0xff;
        let mut unowned = extent.owners.iter_mut().filter(|o| **o == 0);
        if whole {
            unowned.for_each(|o| *o = owner);
            self.unowned_chunks -= CHUNKS;
        } else {
            *unowned.next()? = owner;
            self.unowned_chunks -= 1;
        }
        let segment = self.segments.entry(owner).or_default();
        segment.extents.insert(number);
        segment.partial.insert(number);
        self.classify(number);
        self.check_extent(number);
        debug_assert!(self.unowned_chunks >= keep, "{} chunks are left, {keep} were to stay", self.unowned_chunks);
        Some(())
    }

    fn mark(&mut self, page: PageNo, owner: u32) {
        let number = page.0 / EXTENT_PAGES;
        let extent = &mut self.extents[number as usize];
        debug_assert_ne!(extent.free_pages(owner) >> (page.0 % EXTENT_PAGES) & 1, 0, "page {page} is not free");
        extent.used |= 1 << (page.0 % EXTENT_PAGES);
        let full = extent.free_pages(owner) == 0;
        let segment = self.segments.entry(owner).or_default();
        segment.pages += 1;
        if full {
            segment.partial.remove(&number);
        }
        self.check_extent(number);
    }

    /// The page is free again, and its chunk too if no page of it is used (rule 5); true if the extent is now empty.
    pub(super) fn clear(&mut self, page: PageNo) -> bool {
        let number = page.0 / EXTENT_PAGES;
        let Some(owner) = self.owner(page) else { return false };
        let extent = &mut self.extents[number as usize];
        extent.used &= !(1 << (page.0 % EXTENT_PAGES));
        let segment = self.segments.entry(owner.0).or_default();
        segment.pages -= 1;
        segment.partial.insert(number);
        let chunk = 1 << (page.0 % EXTENT_PAGES / CHUNK_PAGES);
        let (used, owned) = (extent.used, extent.chunks_of(owner.0));
        if used & chunk_mask(chunk) != 0 {
            self.check_extent(number);
            return false;
        }
        self.release_chunks(number, if used & chunk_mask(owned) == 0 { owned } else { chunk })
    }

    /// Owner of a used page.
    pub(super) fn owner(&self, page: PageNo) -> Option<SegmentId> {
        let extent = self.extents.get((page.0 / EXTENT_PAGES) as usize)?;
        let bit = page.0 % EXTENT_PAGES;
        (extent.used >> bit & 1 == 1).then(|| SegmentId(extent.owners[(bit / CHUNK_PAGES) as usize]))
    }

    /// Takes chunks away from their owner; true if the extent is now empty.
    pub(super) fn release_chunks(&mut self, number: u32, chunks: u8) -> bool {
        let extent = &mut self.extents[number as usize];
        let mask = chunk_mask(chunks);
        let pages = (extent.used & mask).count_ones();
        let owner = extent.owners[chunks.trailing_zeros() as usize];
        debug_assert_eq!(extent.chunks_of(owner) & chunks, chunks, "the chunks {chunks:#b} have several owners");
        debug_assert_ne!(owner, 0, "chunk of extent {number} that no segment owns");
        extent.used &= !mask;
        (0..CHUNKS as usize).filter(|c| chunks >> c & 1 == 1).for_each(|c| extent.owners[c] = 0);
        self.unowned_chunks += chunks.count_ones();
        let extent = *extent;
        if let Some(segment) = self.segments.get_mut(&owner) {
            segment.pages -= pages;
            if extent.free_pages(owner) == 0 {
                segment.partial.remove(&number);
            }
            if extent.chunks_of(owner) == 0 {
                segment.extents.remove(&number);
            }
            if segment.extents.is_empty() {
                self.segments.remove(&owner);
            }
        }
        self.classify(number);
        self.check_extent(number);
        self.is_empty_extent(number)
    }

    /// Whether no chunk of the extent has an owner, but for that of a map.
    pub(super) fn is_empty_extent(&self, number: u32) -> bool {
        self.extent(number).is_some_and(|extent| extent.chunks_of(0) | extent.chunks_of(SEGMENT_SYSTEM.0) == 0xff)
    }
}

#[cfg(test)]
#[path = "state_test.rs"]
mod tests;
