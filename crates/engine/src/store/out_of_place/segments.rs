//! The segments: free and open ones, and the live bytes of each. All changes of the page map go through here, because
//! they change the live bytes.
//!
//! States
//!
//! ```text
//! free -> open -> sealed -> emptied -> cleared -> free
//! ```
//!
//! Rules
//! 1. A batch counts as unpublished from before it is written until the map points at its images. Only a sealed
//!    segment without unpublished batches is cleaned, or emptied: what the map does not point at is dead only then. A
//!    segment that is being cleaned is held as if it had one: no other thread cleans it, or uses it again.
//! 2. A segment is emptied when the map points at none of its images. The newer copies are durable, because the map
//!    changes only after the sync of their batch. So the segment may be reused at once.
//! 3. The footer of an emptied segment is made to say so first, and that is synced: so a segment whose footer lists
//!    more than its headers is damaged ([`super::scan`], rule 5), not one that is being used again. Then it is
//!    discarded on the device; then it is free: a later discard would hit what the next owner has written.
//! 4. A copy that the cleaner made takes a page's place only if the map still points at the image that was copied. So
//!    it never hides a newer one, and never brings back a page that was forgotten.
//! 5. A segment that cannot be read is not cleaned until the next opening: its pages stay there, and the readable ones
//!    are read. A bad block costs space and does not stop the store: the file grows by a segment.
//!
//! The mutex is a leaf: a thread that holds it neither waits nor does I/O.

use super::capacity::{FIRST_SEGMENT, Sizes};
use super::map::{Location, PageMap};
use super::victim::{self, Candidate};
use crate::sync::Mutex;
use crate::types::PageNo;
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentPhase {
    Free,
    Open,
    Sealed,
    /// It has no live image; the footer must be marked as empty.
    Emptied,
    /// Its footer is marked as empty, and must be synced.
    Cleared,
}

#[derive(Clone, Copy, Debug)]
struct StoreSegmentState {
    state: SegmentPhase,
    live_bytes: u64,
    /// Bytes that its batches take.
    used_bytes: u64,
    /// Batches in it that are not yet published.
    unpublished: u32,
    life: u64,
    /// Sequence of its newest batch.
    newest: u64,
    /// It could not be read as a whole (rule 5).
    is_unreadable: bool,
}

const FREE: StoreSegmentState = StoreSegmentState {
    state: SegmentPhase::Free,
    live_bytes: 0,
    used_bytes: 0,
    unpublished: 0,
    life: 0,
    newest: 0,
    is_unreadable: false,
};

impl StoreSegmentState {
    fn is_cleanable(&self) -> bool {
        self.state == SegmentPhase::Sealed && self.unpublished == 0 && !self.is_unreadable
    }
}

/// A copy of a page that is durable at a new place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub page_no: PageNo,
    pub to: Location,
    /// The location from which a cleaner copied it (rule 4); `None` for a new copy.
    pub from: Option<Location>,
}

/// A segment that is being cleaned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    pub segment: u32,
    pub life: u64,
}

/// The contents of a segment when the store was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentSummary {
    pub segment: u32,
    pub life: u64,
    /// Sequence of its last batch.
    pub newest: u64,
    pub batches: u64,
    /// Bytes that those take.
    pub bytes: u64,
    pub group: u8,
}

/// The use of the segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// All, region 0 not counted.
    pub segments: u32,
    pub free: u32,
    /// Free after the next two syncs: emptied, cleared, or being released.
    pub coming: u32,
    /// Segments that could not be read and hold pages (rule 5).
    pub unreadable: u32,
    pub live_bytes: u64,
}

/// The segments of a store, and its page map.
pub(super) struct Segments {
    pub map: PageMap,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// By number; region 0 is there and never used.
    table: Vec<StoreSegmentState>,
    free: BTreeSet<u32>,
    live_bytes: u64,
    emptied: Vec<u32>,
    cleared: Vec<u32>,
    /// Taken to be cleared.
    clearing: usize,
    /// Taken to be released.
    releasing: usize,
    unreadable: u32,
}

impl Segments {
    /// `count` segments, region 0 counted, of which some hold something; `map` says what is live.
    pub(super) fn new(count: u32, map: PageMap, remains: &[SegmentSummary]) -> Segments {
        let mut inner = Inner::default();
        inner.grow(count);
        for found in remains {
            let segment = &mut inner.table[found.segment as usize];
            let (life, newest, used_bytes) = (found.life, found.newest, found.bytes);
            *segment = StoreSegmentState { state: SegmentPhase::Sealed, life, newest, used_bytes, ..FREE };
            inner.free.remove(&found.segment);
        }
        map.each(|_, location| inner.add_live(location));
        for found in remains {
            inner.note_emptied(found.segment);
        }
        Segments { map, inner: Mutex::new(inner) }
    }

    /// The store has `count` segments now, region 0 counted.
    pub(super) fn grow(&self, count: u32) {
        self.inner.lock().grow(count);
        self.inner.lock().check_all();
    }

    /// Takes a free segment, unless only `keep` are left.
    pub(super) fn take(&self, keep: usize) -> Option<u32> {
        let mut inner = self.inner.lock();
        let number = (inner.free.len() > keep).then(|| inner.free.pop_first()).flatten()?;
        debug_assert_eq!(inner.table[number as usize].state, SegmentPhase::Free, "segment {number} is in use");
        inner.table[number as usize] = StoreSegmentState { state: SegmentPhase::Open, ..FREE };
        Some(number)
    }

    /// Before a batch is written to an open segment (rule 1), where it ends at `end`; `life` is the sequence of its
    /// first one.
    pub(super) fn begin(&self, number: u32, life: u64, sequence: u64, end: u64) {
        let segment = &mut self.inner.lock().table[number as usize];
        debug_assert_eq!(segment.state, SegmentPhase::Open, "batch {sequence} is written to segment {number}");
        debug_assert!(segment.life == 0 || segment.life == life, "segment {number} begins another life while open");
        debug_assert!(segment.newest < sequence, "batch {sequence} follows batch {}", segment.newest);
        debug_assert!(segment.used_bytes <= end, "a batch ends at {end}, the previous one at {}", segment.used_bytes);
        (segment.life, segment.newest, segment.used_bytes) = (life, sequence, end);
        segment.unpublished += 1;
    }

    /// Nothing more is appended to the segment.
    pub(super) fn seal(&self, number: u32) {
        let mut inner = self.inner.lock();
        debug_assert_eq!(inner.table[number as usize].state, SegmentPhase::Open, "segment {number} is sealed twice");
        inner.table[number as usize].state = SegmentPhase::Sealed;
        inner.note_emptied(number);
        inner.check_segment(number);
    }

    /// Makes durable copies the ones that are found; `segments` names that of each batch they are in, and each that was
    /// held as a victim.
    pub(super) fn publish(&self, moves: &[Move], segments: impl Iterator<Item = u32>) {
        let mut inner = self.inner.lock();
        for Move { page_no, to, from } in moves {
            let segment = &inner.table[to.segment as usize];
            debug_assert!(segment.unpublished > 0, "rule 1: a copy of page {page_no} in {segment:?}");
            debug_assert_eq!(Location::unpack(to.pack()), Some(*to), "a place of page {page_no} is not found again");
            debug_assert!(page_no.0 < self.map.pages(), "rule 6 of the store: page {page_no} was never reserved");
            if from.is_none() || self.map.get(*page_no) == *from {
                let old = self.map.set(*page_no, Some(*to));
                inner.add_live(*to);
                old.into_iter().for_each(|location| inner.remove_live(location));
            }
        }
        for number in segments {
            debug_assert!(inner.table[number as usize].unpublished > 0, "rule 1: segment {number} is published twice");
            inner.table[number as usize].unpublished -= 1;
            inner.note_emptied(number);
            inner.check_segment(number);
        }
    }

    /// Forgets where the pages are.
    pub(super) fn discard(&self, pages: std::ops::Range<u32>) {
        let mut inner = self.inner.lock();
        for page in pages {
            let old = self.map.set(PageNo(page), None);
            old.into_iter().for_each(|location| inner.remove_live(location));
        }
    }

    /// Forgets where the pages after `pages` are, and that there are any.
    pub(super) fn forget_behind(&self, pages: u32) {
        self.discard(pages..self.map.pages().max(pages));
        let _no_change = self.inner.lock();
        self.map.cut(pages);
    }

    /// The free segments at the end after the first `least` are no more, if they are `gain` at least; returns how many
    /// segments there are now, region 0 counted.
    pub(super) fn cut_free(&self, least: u32, gain: u32) -> Option<u32> {
        let mut inner = self.inner.lock();
        let have = inner.table.len() as u32;
        let end = (least..have).rev().find(|number| !inner.free.contains(number)).map_or(least, |last| last + 1);
        if have.saturating_sub(end) < gain.max(1) {
            return None;
        }
        inner.free.split_off(&end);
        inner.table.truncate(end as usize);
        inner.check_all();
        Some(end)
    }

    /// Number of free segments among the first `least`.
    pub(super) fn free_below(&self, least: u32) -> usize {
        self.inner.lock().free.range(..least).count()
    }

    /// Holds the last segment after the first `least` that can be cleaned, as [`take_victim`](Self::take_victim) does.
    pub(super) fn take_last(&self, least: u32) -> Option<Victim> {
        let mut inner = self.inner.lock();
        let found = inner.table.iter_mut().enumerate().skip(least as usize).rev().find(|(_, s)| s.is_cleanable());
        let (number, segment) = found?;
        segment.unpublished = 1;
        Some(Victim { segment: number as u32, life: segment.life })
    }

    /// Holds that of the first `least` segments with the fewest live bytes, if it has `most_live_bytes` at most.
    pub(super) fn take_emptiest(&self, least: u32, most_live_bytes: u64) -> Option<Victim> {
        let mut inner = self.inner.lock();
        let cleanable = inner.table.iter_mut().enumerate().take(least as usize).filter(|(_, s)| s.is_cleanable());
        let (number, segment) = cleanable.min_by_key(|(_, s)| s.live_bytes)?;
        if segment.live_bytes > most_live_bytes {
            return None;
        }
        segment.unpublished = 1;
        Some(Victim { segment: number as u32, life: segment.life })
    }

    /// Segments that are emptied; the caller clears their footers and [notes](Self::note_cleared) it.
    pub(super) fn take_emptied(&self) -> Vec<u32> {
        let mut inner = self.inner.lock();
        inner.clearing += inner.emptied.len();
        std::mem::take(&mut inner.emptied)
    }

    /// The footers of these segments are cleared.
    pub(super) fn note_cleared(&self, emptied: &[u32]) {
        let mut inner = self.inner.lock();
        for number in emptied {
            let state = inner.table[*number as usize].state;
            debug_assert_eq!(state, SegmentPhase::Emptied, "rule 3: segment {number} is cleared");
            inner.table[*number as usize].state = SegmentPhase::Cleared;
            inner.cleared.push(*number);
            inner.check_segment(*number);
        }
        debug_assert!(inner.clearing >= emptied.len(), "{} segments are being cleared", inner.clearing);
        inner.clearing -= emptied.len();
    }

    /// Segments that are cleared; the caller syncs, discards and [releases](Self::release) them.
    pub(super) fn take_cleared(&self) -> Vec<u32> {
        let mut inner = self.inner.lock();
        inner.releasing += inner.cleared.len();
        std::mem::take(&mut inner.cleared)
    }

    /// Makes a segment free that was taken to be released.
    pub(super) fn release(&self, number: u32) {
        let mut inner = self.inner.lock();
        let released = std::mem::replace(&mut inner.table[number as usize], FREE);
        let held = (released.state, released.live_bytes, released.unpublished);
        debug_assert_eq!(held, (SegmentPhase::Cleared, 0, 0), "rules 2 and 3: segment {number} is freed");
        inner.unreadable -= u32::from(released.is_unreadable);
        inner.free.insert(number);
        debug_assert!(inner.releasing > 0, "segment {number} is freed by no one");
        inner.releasing -= 1;
        inner.check_segment(number);
    }

    /// Chooses a segment to clean, when the newest batch is `newest`, and holds it (rule 1) until it is
    /// [published](Self::publish) as a batch is; `None` if none frees space.
    pub(super) fn take_victim(&self, newest: u64, sizes: Sizes) -> Option<Victim> {
        let mut inner = self.inner.lock();
        let numbered = inner.table.iter().enumerate();
        let candidates = numbered.filter(|(_, s)| s.is_cleanable()).map(|(number, s)| Candidate {
            segment: number as u32,
            life: s.life,
            live_bytes: s.live_bytes,
            age: newest.saturating_sub(s.newest),
        });
        let Candidate { segment, life, .. } = victim::choose(candidates, sizes)?;
        inner.table[segment as usize].unpublished = 1;
        Some(Victim { segment, life })
    }

    /// Releases a victim that could not be read.
    pub(super) fn pass_over(&self, Victim { segment, .. }: Victim) {
        let mut inner = self.inner.lock();
        let passed = &mut inner.table[segment as usize];
        debug_assert_eq!(
            (passed.unpublished, passed.is_unreadable),
            (1, false),
            "rule 1: segment {segment} is not held"
        );
        (passed.unpublished, passed.is_unreadable) = (passed.unpublished - 1, true);
        inner.unreadable += 1;
        inner.note_emptied(segment);
    }

    /// Life of a segment.
    pub(super) fn life(&self, number: u32) -> u64 {
        self.inner.lock().table[number as usize].life
    }

    /// Bytes of a sealed segment that are live; 0 if it has another life by now.
    pub(super) fn live_bytes(&self, number: u32, life: u64) -> u64 {
        let segment = self.inner.lock().table[number as usize];
        if segment.state == SegmentPhase::Sealed && segment.life == life { segment.live_bytes } else { 0 }
    }

    /// Bytes that the batches of each segment take, 0 of a free one; region 0 is not there.
    pub(super) fn used_bytes(&self) -> Vec<(u32, u64)> {
        let inner = self.inner.lock();
        let numbered = (0..).zip(&inner.table).skip(FIRST_SEGMENT as usize);
        numbered.map(|(number, segment)| (number, segment.used_bytes)).collect()
    }

    pub(super) fn usage(&self) -> Usage {
        let inner = self.inner.lock();
        let segments = inner.table.len() as u32 - FIRST_SEGMENT;
        let coming = inner.emptied.len() + inner.clearing + inner.cleared.len() + inner.releasing;
        let Inner { unreadable, live_bytes, .. } = *inner;
        Usage { segments, free: inner.free.len() as u32, coming: coming as u32, unreadable, live_bytes }
    }

    /// Whether live bytes are those of the images that the map points at, none of which overlap, and whether every
    /// segment will be used again; in words what is not.
    pub(super) fn problems(&self, segment_bytes: u64) -> Vec<String> {
        let inner = self.inner.lock();
        let mut all = self.map.all();
        all.sort_unstable_by_key(|(_, location)| (location.segment, location.offset));
        let mut problems = Vec::new();
        let mut live = vec![0; inner.table.len()];
        for (at, (page, location)) in all.iter().enumerate() {
            let end = (location.offset + location.bytes) as u64;
            match inner.table.get(location.segment as usize) {
                Some(segment) if end <= segment_bytes && segment.state != SegmentPhase::Free => {}
                _ => problems.push(format!("page {page} is mapped to a place that is not in use: {location:?}")),
            }
            let next = all.get(at + 1).filter(|(_, next)| next.segment == location.segment);
            if let Some((other, _)) = next.filter(|(_, next)| (next.offset as u64) < end) {
                problems.push(format!("pages {page} and {other} are mapped to places that overlap: {location:?}"));
            }
            if let Some(bytes) = live.get_mut(location.segment as usize) {
                *bytes += location.bytes as u64;
            }
        }
        problems.extend(inner.misplaced());
        let counted = inner.table.iter().map(|segment| segment.live_bytes);
        for (number, (counted, found)) in counted.zip(live).enumerate().skip(FIRST_SEGMENT as usize) {
            if counted != found {
                problems.push(format!("segment {number} counts {counted} live bytes, its images take {found}"));
            }
        }
        problems
    }
}

impl Inner {
    fn grow(&mut self, count: u32) {
        let have = self.table.len() as u32;
        self.table.resize(have.max(count) as usize, FREE);
        self.free.extend(have.max(FIRST_SEGMENT)..count);
        if have < FIRST_SEGMENT && count >= FIRST_SEGMENT {
            // Region 0 is never cleaned and never free.
            self.table[0].state = SegmentPhase::Open;
        }
    }

    /// Free segments that no thread finds, and dead ones that no thread empties.
    fn misplaced(&self) -> Vec<String> {
        let numbers = FIRST_SEGMENT..self.table.len() as u32;
        let wrong = numbers.filter(|number| !self.is_found(*number));
        wrong.map(|at| format!("segment {at} is lost to the store: {:?}", self.table[at as usize])).collect()
    }

    /// Whether a thread finds the segment if it is free, and empties it if it is dead.
    fn is_found(&self, number: u32) -> bool {
        let segment = &self.table[number as usize];
        let (is_free, is_dead) = (self.free.contains(&number), segment.live_bytes == 0 && segment.unpublished == 0);
        match segment.state {
            SegmentPhase::Free => is_free,
            SegmentPhase::Open => !is_free,
            SegmentPhase::Sealed => !is_free && !is_dead,
            SegmentPhase::Emptied => !is_free && is_dead,
            SegmentPhase::Cleared => !is_free && is_dead && self.cleared.contains(&number),
        }
    }

    /// A segment whose state was just changed.
    /// The sums are those of the segments.
    fn check_all(&self) {
        if cfg!(debug_assertions) {
            let live_bytes: u64 = self.table.iter().map(|segment| segment.live_bytes).sum();
            debug_assert_eq!(live_bytes, self.live_bytes, "the live bytes of all segments");
            let unreadable = self.table.iter().filter(|segment| segment.is_unreadable).count();
            debug_assert_eq!(unreadable, self.unreadable as usize, "the unreadable segments");
            let free = self.table.iter().filter(|segment| segment.state == SegmentPhase::Free).count();
            debug_assert_eq!(free, self.free.len(), "the free segments");
        }
    }

    fn check_segment(&self, number: u32) {
        debug_assert!(self.is_found(number), "segment {number} is lost: {:?}", self.table[number as usize]);
    }

    fn add_live(&mut self, location: Location) {
        self.table[location.segment as usize].live_bytes += location.bytes as u64;
        self.live_bytes += location.bytes as u64;
    }

    fn remove_live(&mut self, location: Location) {
        let live_bytes = self.table[location.segment as usize].live_bytes;
        debug_assert!(live_bytes >= location.bytes as u64, "{live_bytes} bytes are live, and {location:?} dies");
        self.table[location.segment as usize].live_bytes -= location.bytes as u64;
        self.live_bytes -= location.bytes as u64;
        self.note_emptied(location.segment);
    }

    /// Rules 1 and 2.
    fn note_emptied(&mut self, number: u32) {
        let segment = &mut self.table[number as usize];
        if segment.state == SegmentPhase::Sealed && segment.live_bytes == 0 && segment.unpublished == 0 {
            segment.state = SegmentPhase::Emptied;
            self.emptied.push(number);
        }
    }
}

#[cfg(test)]
#[path = "segments_test.rs"]
mod tests;
