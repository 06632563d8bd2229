//! What is free and who owns what, in memory; derived from the extent maps.
//!
//! Rules
//! 1. `free` and `bare` hold exactly the extents without owner; `bare` those whose place on the device may have been given
//!    back, which are not taken. `shared` holds those with both an owned and an unowned chunk. `unowned_chunks` counts the
//!    unowned chunks of `free` and `shared`.
//! 2. `partial[segment]` holds exactly the extents in which the segment owns a chunk with a free page.
//! 3. Allocation prefers: the page after `near`, then the segment's own free pages, then a chunk of a shared extent
//!    (small segments), then a whole extent; a chunk again if a whole extent would be more than may be taken.
//! 4. `emptied` holds free extents of which something is logged, and the end of the log when the last page of it was given
//!    back: nothing logged of the extent lies behind that. Who takes a chunk of an extent takes it out.
//! 5. A chunk whose last used page is freed belongs to nobody: what its owner on disk says counts only while a page of it
//!    is used.

use super::layout::{CHUNK_PAGES, CHUNKS, ENTRIES_AT, ENTRY_BYTES, EXTENT_PAGES, Layout, OWNERS_AT, chunk_mask};
use super::reserve::Purpose;
use super::{SEGMENT_SYSTEM, header};
use crate::error::{Error, Result};
use crate::page::{self, PageType};
use crate::types::{Lsn, PageNo, SegmentId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::time::{Duration, Instant};

/// A segment up to this size grows by chunks.
const SMALL_SEGMENT_PAGES: u32 = 32;

/// What an extent map says of one extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// A bit for each page: in use.
    pub used: u64,
    /// Segment that owns each chunk, 0 = nobody.
    pub owners: [u32; CHUNKS as usize],
}

#[derive(Default)]
struct Segment {
    pages: u32,
    partial: BTreeSet<u32>,
    extents: BTreeSet<u32>,
}

/// Free extents by the end of the log when they became free.
#[derive(Default)]
struct Emptied {
    at: BTreeMap<u32, Lsn>,
    in_order: BTreeSet<(Lsn, u32)>,
}

impl Emptied {
    fn note(&mut self, extent: u32, end_of_log: Lsn) {
        self.forget(extent);
        self.at.insert(extent, end_of_log);
        self.in_order.insert((end_of_log, extent));
    }

    fn forget(&mut self, extent: u32) {
        if let Some(lsn) = self.at.remove(&extent) {
            self.in_order.remove(&(lsn, extent));
        }
    }

    fn next_due(&mut self, checkpoint: Lsn) -> Option<u32> {
        let (_, extent) = self.in_order.first().copied().filter(|(lsn, _)| *lsn <= checkpoint)?;
        self.forget(extent);
        Some(extent)
    }
}

pub struct State {
    extents: Vec<Extent>,
    free: BTreeSet<u32>,
    bare: BTreeSet<u32>,
    /// Where the next run of `bare` is looked for.
    bare_from: u32,
    shared: BTreeSet<u32>,
    emptied: Emptied,
    unowned_chunks: u32,
    /// When no room could be had last, and what for; `None` once it could.
    pub full_since: Option<(Instant, Purpose)>,
    segments: HashMap<u32, Segment>,
    /// Next segment number to hand out.
    pub next_segment: u32,
    /// Root slots of page 0.
    pub roots: [PageNo; header::ROOTS],
}

impl Extent {
    /// Chunks (bit per chunk) that `owner` owns.
    fn chunks_of(&self, owner: u32) -> u8 {
        (0..CHUNKS).filter(|c| self.owners[*c as usize] == owner).fold(0, |set, c| set | 1 << c)
    }

    /// The extent without the owners of chunks of which no page is used.
    fn without_idle_owners(mut self) -> Extent {
        for chunk in (0..CHUNKS).filter(|chunk| self.used & chunk_mask(1 << chunk) == 0) {
            self.owners[chunk as usize] = 0;
        }
        self
    }

    /// Free pages in chunks that `owner` owns.
    fn free_pages(&self, owner: u32) -> u64 {
        !self.used & chunk_mask(self.chunks_of(owner))
    }
}

impl State {
    /// No extents yet.
    pub fn new() -> State {
        State {
            extents: Vec::new(),
            free: BTreeSet::new(),
            bare: BTreeSet::new(),
            bare_from: 0,
            emptied: Emptied::default(),
            unowned_chunks: 0,
            full_since: None,
            shared: BTreeSet::new(),
            segments: HashMap::new(),
            next_segment: 0,
            roots: [PageNo(0); header::ROOTS],
        }
    }

    pub fn extents(&self) -> u32 {
        self.extents.len() as u32
    }

    pub fn extent(&self, number: u32) -> Option<Extent> {
        self.extents.get(number as usize).copied()
    }

    /// Chunks that can be taken.
    pub fn unowned_chunks(&self) -> u32 {
        self.unowned_chunks
    }

    /// Whether room for `purpose` was refused not longer than `time` ago. A refusal says nothing of those who may take more.
    pub fn is_full(&self, purpose: Purpose, time: Duration) -> bool {
        self.full_since.is_some_and(|(at, refused)| purpose <= refused && at.elapsed() < time)
    }

    /// Extents whose place is to be reserved before they can be taken.
    pub fn bare_extents(&self) -> usize {
        self.bare.len()
    }

    /// The next extents, up to `limit`, that follow each other and cannot be taken before their place is reserved.
    pub fn bare_run(&self, limit: u32) -> Range<u32> {
        let next = self.bare.range(self.bare_from..).next().or_else(|| self.bare.first());
        let Some(&first) = next else { return 0..0 };
        let end = (first..first.saturating_add(limit)).find(|number| !self.bare.contains(number));
        first..end.unwrap_or(first.saturating_add(limit))
    }

    /// The place of this one cannot be reserved now: the next run begins behind it.
    pub fn skip_bare(&mut self, number: u32) {
        self.bare_from = number + 1;
    }

    /// The place of these extents is reserved: they can be taken.
    pub fn note_reserved(&mut self, extents: Range<u32>) {
        for number in extents {
            if self.bare.remove(&number) {
                self.free.insert(number);
                self.unowned_chunks += CHUNKS;
            }
        }
    }

    /// The next extent whose last change lies before the checkpoint, set aside to be discarded. The first `keep` free ones are
    /// left out, now and until they are emptied again.
    pub fn next_to_discard(&mut self, checkpoint: Lsn, keep: usize) -> Option<u32> {
        loop {
            let extent = self.emptied.next_due(checkpoint)?;
            if self.set_bare(extent, keep) {
                // The device gets room back.
                self.full_since = None;
                return Some(extent);
            }
        }
    }

    /// An extent has just become free; `end_of_log` was read since the last mtr that gave back a page of it was committed.
    pub fn note_emptied(&mut self, extent: u32, end_of_log: Lsn) {
        debug_assert!(self.is_free_extent(extent));
        self.emptied.note(extent, end_of_log);
    }

    /// Sets a free extent aside, to be discarded, unless it is one of the first `keep`.
    pub fn set_bare(&mut self, number: u32, keep: usize) -> bool {
        if self.free.range(..number).take(keep).count() < keep || !self.free.remove(&number) {
            return false;
        }
        self.unowned_chunks -= CHUNKS;
        self.bare.insert(number)
    }

    /// Adds the extents that a map describes, `here` of which the file has. Those that nobody owns may have been discarded.
    pub fn add_group(&mut self, layout: &Layout, group: u32, here: u32, map: &[u8]) -> Result<()> {
        let page_no = layout.map_page(group);
        if page::header::page_type(map)? != PageType::ExtentMap {
            return Err(Error::corrupt_page(page_no, "an extent map should be here"));
        }
        for index in 0..layout.group_extents() {
            let extent = read_entry(map, index as usize);
            if index < here {
                self.extents.push(extent.without_idle_owners());
                self.index_extent(self.extents() - 1);
                self.set_bare(self.extents() - 1, 0);
            } else if extent.used != 0 || extent.owners != [0; CHUNKS as usize] {
                let number = group * layout.group_extents() + index;
                return Err(Error::Corrupt(format!("the data file is cut: extent {number} is in use but not there")));
            }
        }
        Ok(())
    }

    /// Adds free extents up to `total` (new groups' first chunk belongs to the system).
    pub fn add_free(&mut self, layout: &Layout, total: u32) {
        for number in self.extents()..total {
            let mut extent = Extent::default();
            if number % layout.group_extents() == 0 {
                extent.used = 0b11;
                extent.owners[0] = SEGMENT_SYSTEM.0;
            }
            self.extents.push(extent);
            self.index_extent(number);
        }
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

    /// Takes a page for a segment; `None` if none is free but in the last `keep` unowned chunks.
    pub fn take(&mut self, segment: SegmentId, near: Option<PageNo>, keep: u32) -> Option<PageNo> {
        let page = self.take_near(segment.0, near).or_else(|| self.take_own(segment.0)).or_else(|| {
            self.give_chunks(segment.0, keep)?;
            self.take_own(segment.0)
        })?;
        self.mark(page, segment.0);
        Some(page)
    }

    fn take_near(&self, owner: u32, near: Option<PageNo>) -> Option<PageNo> {
        let near = near?;
        let number = near.0 / EXTENT_PAGES;
        let free = self.extents.get(number as usize)?.free_pages(owner);
        let after = free & u64::MAX.checked_shl(near.0 % EXTENT_PAGES)?;
        let bit = if after != 0 { after } else { free };
        (bit != 0).then(|| PageNo(number * EXTENT_PAGES + bit.trailing_zeros()))
    }

    fn take_own(&self, owner: u32) -> Option<PageNo> {
        let number = *self.segments.get(&owner)?.partial.first()?;
        let free = self.extents[number as usize].free_pages(owner);
        Some(PageNo(number * EXTENT_PAGES + free.trailing_zeros()))
    }

    /// Gives the segment a chunk or, once it is not small, a whole extent, so that `keep` chunks are left.
    fn give_chunks(&mut self, owner: u32, keep: u32) -> Option<()> {
        let spare = self.unowned_chunks.saturating_sub(keep);
        if spare == 0 {
            return None;
        }
        let small = spare < CHUNKS || self.segments.get(&owner).is_none_or(|s| s.pages < SMALL_SEGMENT_PAGES);
        let shared = if small { self.shared.first().copied() } else { None };
        let number = shared.or_else(|| self.free.first().copied()).or_else(|| self.shared.first().copied())?;
        self.emptied.forget(number);
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
        Some(())
    }

    fn mark(&mut self, page: PageNo, owner: u32) {
        let number = page.0 / EXTENT_PAGES;
        let extent = &mut self.extents[number as usize];
        extent.used |= 1 << (page.0 % EXTENT_PAGES);
        let full = extent.free_pages(owner) == 0;
        let segment = self.segments.entry(owner).or_default();
        segment.pages += 1;
        if full {
            segment.partial.remove(&number);
        }
    }

    /// The page is free again, and its chunk too if no page of it is used; true if the extent is now free as a whole.
    pub fn clear(&mut self, page: PageNo) -> bool {
        let number = page.0 / EXTENT_PAGES;
        let Some(owner) = self.owner(page) else { return false };
        let extent = &mut self.extents[number as usize];
        extent.used &= !(1 << (page.0 % EXTENT_PAGES));
        let segment = self.segments.entry(owner.0).or_default();
        segment.pages -= 1;
        segment.partial.insert(number);
        let chunk = 1 << (page.0 % EXTENT_PAGES / CHUNK_PAGES);
        extent.used & chunk_mask(chunk) == 0 && self.release_chunks(number, chunk)
    }

    /// Owner of a used page.
    pub fn owner(&self, page: PageNo) -> Option<SegmentId> {
        let extent = self.extents.get((page.0 / EXTENT_PAGES) as usize)?;
        let bit = page.0 % EXTENT_PAGES;
        (extent.used >> bit & 1 == 1).then(|| SegmentId(extent.owners[(bit / CHUNK_PAGES) as usize]))
    }

    /// Used pages of a segment, ascending.
    pub fn pages_of(&self, segment: SegmentId) -> Vec<PageNo> {
        let Some(owned) = self.segments.get(&segment.0) else { return Vec::new() };
        let used = |number: &u32| {
            let extent = self.extents[*number as usize];
            let bits = extent.used & chunk_mask(extent.chunks_of(segment.0));
            let first = number * EXTENT_PAGES;
            (0..EXTENT_PAGES).filter(move |b| bits >> b & 1 == 1).map(move |b| PageNo(first + b))
        };
        owned.extents.iter().flat_map(used).collect()
    }

    /// Segments that own a chunk, with their used pages.
    pub fn segments(&self) -> Vec<(SegmentId, u32)> {
        let mut all: Vec<_> = self.segments.iter().map(|(id, s)| (SegmentId(*id), s.pages)).collect();
        all.sort_unstable();
        all
    }

    /// Up to `limit` extents in which the segment owns chunks, and which chunks.
    pub fn extents_of(&self, segment: SegmentId, limit: usize) -> Vec<(u32, u8)> {
        let owned = self.segments.get(&segment.0);
        let extents = owned.into_iter().flat_map(|s| s.extents.iter().take(limit));
        extents.map(|n| (*n, self.extents[*n as usize].chunks_of(segment.0))).collect()
    }

    /// Takes chunks away from their owner; true if the extent is now free as a whole.
    pub fn release_chunks(&mut self, number: u32, chunks: u8) -> bool {
        let extent = &mut self.extents[number as usize];
        let mask = chunk_mask(chunks);
        let pages = (extent.used & mask).count_ones();
        let owner = extent.owners[chunks.trailing_zeros() as usize];
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
        self.is_free_extent(number)
    }

    /// Whether nobody owns any of the extent.
    pub fn is_free_extent(&self, number: u32) -> bool {
        self.free.contains(&number)
    }
}

/// Reads the entry of the `index`th extent of a map's group; zeros if the page is too short.
pub fn read_entry(map: &[u8], index: usize) -> Extent {
    let at = ENTRIES_AT + index * ENTRY_BYTES;
    let entry: &[u8; ENTRY_BYTES] = map.get(at..).and_then(<[u8]>::first_chunk).unwrap_or(&[0; ENTRY_BYTES]);
    let owner = |c: usize| {
        let at = OWNERS_AT + c * 4;
        u32::from_le_bytes(std::array::from_fn(|i| entry[at + i]))
    };
    Extent { used: u64::from_le_bytes(std::array::from_fn(|i| entry[i])), owners: std::array::from_fn(owner) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(extents: u32) -> State {
        let mut state = State::new();
        state.add_free(&Layout::new(4096), extents);
        state
    }

    #[test]
    fn small_segments_share_an_extent_and_large_ones_do_not() {
        let mut state = state(8);
        let (a, b) = (SegmentId(20), SegmentId(21));
        let first_a = state.take(a, None, 0).unwrap();
        let first_b = state.take(b, None, 0).unwrap();
        assert_eq!(first_a.0 / EXTENT_PAGES, first_b.0 / EXTENT_PAGES);
        let pages: Vec<_> = (0..200).map(|_| state.take(a, None, 0).unwrap()).collect();
        assert!(pages.iter().all(|p| state.owner(*p) == Some(a)));
        let unique: BTreeSet<_> = pages.iter().chain([&first_a, &first_b]).collect();
        assert_eq!(unique.len(), 202);
        assert_eq!(state.pages_of(a).len(), 201);
    }

    #[test]
    fn an_emptied_chunk_goes_to_another_segment_and_the_last_chunks_are_kept() {
        let mut state = state(2);
        let (a, b) = (SegmentId(30), SegmentId(31));
        let pages: Vec<_> = std::iter::from_fn(|| state.take(a, None, 3)).collect();
        assert_eq!((pages.len(), state.unowned_chunks()), ((2 * 8 - 1 - 3) * 8, 3));
        assert_eq!(state.take(b, None, 3), None);
        pages[8..16].iter().for_each(|p| assert!(!state.clear(*p)));
        assert_eq!(state.unowned_chunks(), 4);
        let again: Vec<_> = std::iter::from_fn(|| state.take(b, None, 3)).collect();
        assert_eq!(again, pages[8..16]);
        let emptied = pages[..8].iter().chain(&pages[16..]).chain(&again).filter(|p| state.clear(**p)).count();
        assert_eq!(emptied, 1, "the other extent has a map");
        assert_eq!((state.unowned_chunks(), state.segments().len()), (15, 1));
    }

    #[test]
    fn discarded_extents_are_taken_only_once_they_are_reserved() {
        let mut state = state(6);
        assert!(!state.set_bare(2, 2) && state.set_bare(4, 2) && state.set_bare(5, 2) && !state.set_bare(5, 0));
        let taken = std::iter::from_fn(|| state.take(SegmentId(30), None, 0)).count();
        assert_eq!((taken, state.bare_run(9), state.bare_run(1)), (4 * 64 - 8, 4..6, 4..5));
        state.note_reserved(4..6);
        assert_eq!((state.unowned_chunks(), state.bare_run(9)), (16, 0..0));
        assert!(state.take(SegmentId(30), None, 0).is_some_and(|page| page.0 >= 4 * 64));
    }

    #[test]
    fn an_extent_that_is_taken_again_is_not_discarded_before_it_is_emptied_again() {
        let mut state = state(6);
        let seg = SegmentId(30);
        let pages: Vec<_> = std::iter::from_fn(|| state.take(seg, None, 0)).collect();
        let in_last = |p: &&PageNo| p.0 / EXTENT_PAGES == 5;
        assert!(pages.iter().filter(in_last).filter(|p| state.clear(**p)).count() == 1);
        state.note_emptied(5, Lsn(100));
        assert_eq!(state.next_to_discard(Lsn(99), 0), None);
        let again: Vec<_> = std::iter::from_fn(|| state.take(seg, None, 0)).collect();
        assert_eq!(again.len(), 64);
        assert!(again.iter().filter(|p| state.clear(**p)).count() == 1);
        state.note_emptied(5, Lsn(200));
        assert_eq!(state.next_to_discard(Lsn(199), 0), None);
        assert_eq!((state.next_to_discard(Lsn(200), 0), state.next_to_discard(Lsn(300), 0)), (Some(5), None));
    }

    #[test]
    fn pages_come_back_and_dropping_frees_everything() {
        let mut state = state(4);
        let seg = SegmentId(30);
        let free = state.unowned_chunks();
        let pages: Vec<_> = (0..100).map(|_| state.take(seg, None, 0).unwrap()).collect();
        assert!(pages.iter().step_by(2).all(|p| !state.clear(*p)));
        assert_eq!(state.pages_of(seg).len(), 50);
        let again: Vec<_> = (0..50).map(|_| state.take(seg, None, 0).unwrap()).collect();
        assert!(again.iter().all(|p| pages.contains(p)));
        while let Some((extent, chunks)) = state.extents_of(seg, 1).pop() {
            state.release_chunks(extent, chunks);
        }
        assert!(state.pages_of(seg).is_empty());
        assert_eq!(state.unowned_chunks(), free);
        while state.take(seg, None, 0).is_some() {}
        assert_eq!(state.pages_of(seg).len(), 4 * 64 - 8);
    }
}
