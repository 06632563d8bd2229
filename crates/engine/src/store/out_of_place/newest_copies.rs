//! The choice of the newest copy of each page, while segments are being read (rule 1 of [`super::scan`]).
//!
//! Rules
//! 1. The copy with the highest LSN counts; of those with one LSN the one in the segment with the newest last batch,
//!    and within a segment the later one. That is the one written last: a page is copied with its LSN only by the
//!    cleaner, out of a sealed segment, so the segment of the copy has a batch that is newer than all of the other.
//!    Page 0 is another matter: it changes at openings and closings without redo, so without another LSN, and other
//!    pages may be copied after an older version of it. It counts those changes; the highest count counts
//!    ([`super::scan`], rule 1).
//! 2. A large store lists tens of millions of images. So a page takes 16 bytes here, and threads share the work by page
//!    number: each looks at every image and counts those of its pages.

use super::format;
use super::image::located;
use super::map::{Location, PageMap};
use super::read::SegmentContents;
use crate::sync::atomic::AtomicU64;
use crate::types::{Lsn, PageNo};

/// Threads that count, at most.
const COUNTERS: usize = 8;
/// Bytes of summaries below which one does all.
const SMALL_BYTES: usize = 256 << 10;

/// The copies that count.
pub(super) struct NewestCopies {
    copies: Vec<Copied>,
    /// Per segment, the sequence of its last batch.
    newest_of: Vec<u64>,
    newest_copy: Option<(Lsn, PageNo)>,
    counters: usize,
    /// Every copy of page 0.
    first_page: Vec<(Lsn, Location)>,
}

/// A copy of a page: its LSN, and its location, packed; 0 = there is none.
#[derive(Clone, Copy, Default)]
struct Copied {
    lsn: u64,
    place: u64,
}

/// The pages of one thread.
struct Part<'b> {
    /// Number of the first one.
    first: u32,
    copies: &'b mut [Copied],
    newest_of: &'b [u64],
    newest_copy: Option<(Lsn, PageNo)>,
    first_page: Vec<(Lsn, Location)>,
}

impl NewestCopies {
    /// For `pages` in this many segments, region 0 counted.
    pub(super) fn new(pages: u32, segments: u32) -> NewestCopies {
        let counters = crate::sync::cpu_count().min(COUNTERS);
        let copies = vec![Copied::default(); pages as usize];
        NewestCopies {
            copies,
            newest_of: vec![0; segments.max(1) as usize],
            newest_copy: None,
            counters,
            first_page: Vec::new(),
        }
    }

    /// The last batch of a segment, to be said before its images are counted.
    pub(super) fn note_segment(&mut self, segment: u32, newest: u64) {
        if let Some(of) = self.newest_of.get_mut(segment as usize) {
            *of = newest;
        }
    }

    /// Counts a copy.
    pub(super) fn count(&mut self, page: PageNo, lsn: Lsn, location: Location) {
        let mut all = Part::new(0, &mut self.copies, &self.newest_of);
        all.count(page, lsn, location);
        let Part { newest_copy, first_page, .. } = all;
        self.newest_copy = self.newest_copy.max(newest_copy);
        self.first_page.extend(first_page);
    }

    /// Counts the images of all batches that are `durable`.
    pub(super) fn count_all(&mut self, segments: &[SegmentContents], durable: u64) {
        let bytes: usize = segments.iter().map(|held| held.summary().len()).sum();
        let counters = if bytes < SMALL_BYTES { 1 } else { self.counters };
        let each = self.copies.len().div_ceil(counters).max(1);
        let newest_of = &self.newest_of;
        let parts = self.copies.chunks_mut(each).enumerate();
        let mut parts: Vec<Part<'_>> =
            parts.map(|(n, copies)| Part::new((n * each) as u32, copies, newest_of)).collect();
        match &mut parts[..] {
            [all] => all.count_all(segments, durable),
            parts => crate::sync::thread::scope(|scope| {
                parts.iter_mut().for_each(|part| drop(scope.spawn(|| part.count_all(segments, durable))));
            }),
        }
        let first_page = parts.first_mut().map(|part| std::mem::take(&mut part.first_page));
        let newest = parts.iter().filter_map(|part| part.newest_copy).max();
        self.newest_copy = self.newest_copy.max(newest);
        self.first_page.extend(first_page.into_iter().flatten());
    }

    /// The copies of page 0 with the LSN that counts.
    pub(super) fn first_page(&self) -> impl Iterator<Item = Location> {
        let lsn = self.lsn(PageNo(0));
        self.first_page.iter().filter(move |(of, _)| *of == lsn).map(|(_, location)| *location)
    }

    /// Sets the copy of page 0 that counts.
    pub(super) fn set_first_page(&mut self, location: Location) {
        if let Some(first) = self.copies.first_mut() {
            first.place = location.pack();
        }
    }

    /// LSN of the copy that counts; zero without one.
    pub(super) fn lsn(&self, page: PageNo) -> Lsn {
        self.copies.get(page.0 as usize).map_or(Lsn(0), |copy| Lsn(copy.lsn))
    }

    /// The copy with the newest change of all that were counted.
    pub(super) fn newest_copy(&self) -> Option<(Lsn, PageNo)> {
        self.newest_copy
    }

    pub(super) fn into_map(self) -> PageMap {
        PageMap::of(self.copies.into_iter().map(|copy| AtomicU64::new(copy.place)).collect())
    }
}

impl<'b> Part<'b> {
    fn new(first: u32, copies: &'b mut [Copied], newest_of: &'b [u64]) -> Part<'b> {
        Part { first, copies, newest_of, newest_copy: None, first_page: Vec::new() }
    }
    fn count_all(&mut self, segments: &[SegmentContents], durable: u64) {
        for held in segments {
            let (segment, life) = (held.remains.segment, held.remains.life);
            for batch in format::batches(held.summary()).filter(|batch| batch.sequence <= durable) {
                self.touch(batch.entries().map(|entry| entry.page_no));
                for (entry, location) in located(segment, batch.at, life, batch.entries()) {
                    self.count(entry.page_no, entry.lsn, location);
                }
            }
        }
    }

    /// Reads the entries of these pages in a row: so the processor fetches many of them concurrently, instead of each
    /// after the decision about the previous one.
    fn touch(&self, pages: impl Iterator<Item = PageNo>) {
        let lsn = |page: PageNo| self.copies.get(page.0.wrapping_sub(self.first) as usize).map_or(0, |copy| copy.lsn);
        std::hint::black_box(pages.map(lsn).fold(0, std::ops::BitOr::bitor));
    }

    /// Rule 1.
    fn count(&mut self, page: PageNo, lsn: Lsn, location: Location) {
        let at = page.0.wrapping_sub(self.first) as usize;
        let Some(&Copied { lsn: old_lsn, place }) = self.copies.get(at) else { return };
        if page == PageNo(0) {
            self.first_page.push((lsn, location));
        }
        let is_newer = old_lsn < lsn.0 || old_lsn == lsn.0 && self.is_later(location, place);
        if place == 0 || is_newer {
            self.copies[at] = Copied { lsn: lsn.0, place: location.pack() };
        }
        self.newest_copy = self.newest_copy.max(Some((lsn, page)));
    }

    fn is_later(&self, location: Location, place: u64) -> bool {
        let order = |location: Location| (self.newest_of.get(location.segment as usize).copied(), location.offset);
        Location::unpack(place).is_none_or(|old| order(old) < order(location))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The segment of the copy of one page that counts; copies are given as LSN and segment.
    fn counts(copies: &[(u64, u32)]) -> u32 {
        let mut best = NewestCopies::new(8, 10);
        // The segment with the higher number has the newer last batch, but for the last two.
        (1..10).for_each(|segment| best.note_segment(segment, if segment < 8 { segment.into() } else { 20 - 8 }));
        best.note_segment(8, 99);
        for (lsn, segment) in copies {
            best.count(PageNo(5), Lsn(*lsn), Location::new(*segment, 4096, 4096, 1));
        }
        best.into_map().get(PageNo(5)).unwrap().segment
    }

    #[test]
    fn of_two_copies_with_one_lsn_the_one_written_last_counts() {
        assert_eq!([counts(&[(7, 3), (7, 5)]), counts(&[(7, 5), (7, 3)])], [5, 5]);
        assert_eq!([counts(&[(7, 9), (7, 8)]), counts(&[(7, 8), (7, 9)])], [8, 8]);
        assert_eq!([counts(&[(0, 0), (0, 1)]), counts(&[(0, 1), (0, 0)])], [1, 1], "as created, and a copy of it");
    }

    #[test]
    fn a_copy_of_an_older_version_hides_no_newer_one() {
        // The cleaner copied version 7 while version 8 was being written.
        assert_eq!([counts(&[(8, 3), (7, 5)]), counts(&[(7, 5), (8, 3)])], [3, 3]);
        assert_eq!([counts(&[(7, 2), (8, 3), (7, 5)]), counts(&[(7, 5), (7, 2), (8, 3)])], [3, 3]);
    }
}
