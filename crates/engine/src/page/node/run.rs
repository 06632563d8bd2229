//! Runs of insertions, which show whether a page is being filled in ascending order. `last_insert` and `run` of the
//! header.
//!
//! Terms
//! - Front: the highest slot of an insertion of the run; -1 for a run that has just lost that record.
//! - An insertion continues the run if it is directly after the front, or late: a few slots before it. So nearly
//!   ordered keys are a run too: numbers drawn by several threads, or the lines of an order in another order.
//!
//! Rules
//! 1. A single random insertion may look late by chance, many in a row do not. The allowed lateness depends on the
//!    number of records of a full page, and a run with late insertions counts only from a length that random insertions
//!    do not reach. On pages with few records no insertion counts as late.
//! 2. This affects only the split point of a page.

use super::layout::*;
use crate::page::bytes::{PageBytes, put_u16};
use std::ops::Range;

/// In `run`: an insertion was late.
const LATE: u16 = 1 << 15;
/// Most slots that an insertion may be late by.
const MAX_LATE: usize = 16;
/// Fewest records of a full page that knows late insertions.
const LATE_RECORDS: usize = 8;
/// Insertions of a run after which its leaf counts as filled in ascending order.
const ASCENDING_RUN: u16 = 16;
/// From how many insertions on a run counts where a page is cut; and one with late ones.
const MIN: usize = 3;
const MIN_LATE: usize = 16;

/// A run that fills a page, as an insertion meets it that continues with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ascent {
    /// The slot after the front.
    pub end: usize,
    /// Number of slots before `end` at which the next insertions are expected: 0 if all came in order.
    pub late_by: usize,
}

/// The run of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AscendingRun {
    front: u16,
    len: u16,
    has_late: bool,
}

impl AscendingRun {
    /// None is known.
    pub(super) const NONE: AscendingRun = AscendingRun { front: NO_SLOT, len: 0, has_late: false };

    #[inline(always)]
    pub(super) fn of<B: PageBytes + ?Sized>(page: &B) -> AscendingRun {
        let run = page.u16_at(RUN);
        AscendingRun { front: page.u16_at(LAST_INSERT), len: run & !LATE, has_late: run & LATE != 0 }
    }

    /// Of a page to which `records` were appended, so that it has `count`.
    pub(super) fn of_appended(records: usize, count: usize) -> AscendingRun {
        AscendingRun { front: (count as u16).wrapping_sub(1), len: (records as u16).min(!LATE), has_late: false }
    }

    #[inline(always)]
    pub(super) fn write(self, page: &mut [u8]) {
        put_u16(page, LAST_INSERT, self.front);
        put_u16(page, RUN, self.len | if self.has_late { LATE } else { 0 });
    }

    /// The slot after the front.
    #[inline(always)]
    pub(super) fn end(self) -> usize {
        self.front.wrapping_add(1) as usize
    }

    /// After an insertion at `slot` into a page that holds `full` records when it is full.
    #[inline(always)]
    pub(super) fn inserted(self, slot: usize, full: impl FnOnce() -> usize) -> AscendingRun {
        let len = (self.len + 1).min(!LATE);
        if slot == self.end() {
            AscendingRun { front: slot as u16, len, ..self }
        } else if self.is_late(slot, full) {
            AscendingRun { front: self.front + 1, len, has_late: true }
        } else {
            AscendingRun { front: slot as u16, len: 1, has_late: false }
        }
    }

    /// After the record at `slot` was removed.
    #[inline(always)]
    pub(super) fn removed(self, slot: usize) -> AscendingRun {
        let moves = self.front != NO_SLOT && slot <= self.front as usize;
        if moves { AscendingRun { front: self.front.wrapping_sub(1), ..self } } else { self }
    }

    /// After all records but those of `range` were removed.
    pub(super) fn kept(self, range: &Range<usize>) -> AscendingRun {
        if self.front != NO_SLOT && range.contains(&(self.front as usize)) {
            AscendingRun { front: self.front - range.start as u16, ..self }
        } else {
            AscendingRun::NONE
        }
    }

    /// The ascending run that an insertion at `slot` of a page that is full with `count` records continues, if the run
    /// is long enough.
    #[inline]
    pub(super) fn ascent_at(self, slot: usize, count: usize) -> Option<Ascent> {
        let is_next = slot == self.end();
        if slot == 0 || !(is_next || self.is_late(slot, || count)) {
            return None;
        }
        let late_by = if is_next && !self.has_late { 0 } else { late_by(count) };
        let enough = if late_by == 0 { MIN } else { MIN_LATE };
        (usize::from(self.len) >= count.min(enough)).then_some(Ascent { end: self.end(), late_by })
    }

    /// Whether a run of at least [`ASCENDING_RUN`] insertions fills the end of a page of `count` records.
    #[inline]
    pub(super) fn fills_end(self, count: usize) -> bool {
        self.len >= ASCENDING_RUN && count >= ASCENDING_RUN as usize && self.end() == count
    }

    #[inline(always)]
    fn is_late(self, slot: usize, full: impl FnOnce() -> usize) -> bool {
        let end = self.end();
        slot < end && end - slot <= MAX_LATE && end - slot <= late_by(full())
    }
}

/// Maximum lateness, in slots, of an insertion on a page that is full with this many records.
#[inline(always)]
fn late_by(full: usize) -> usize {
    if full < LATE_RECORDS { 0 } else { (full / 3).min(MAX_LATE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(slots: impl IntoIterator<Item = usize>) -> (AscendingRun, usize) {
        let slots: Vec<_> = slots.into_iter().collect();
        (slots.iter().fold(AscendingRun::NONE, |run, slot| run.inserted(*slot, || slots.len())), slots.len())
    }

    #[test]
    fn insertions_in_order_are_a_run_without_late_ones() {
        let (run, count) = run(0..30);
        assert_eq!(run.ascent_at(30, count), Some(Ascent { end: 30, late_by: 0 }));
        assert_eq!(run.ascent_at(10, count), None);
    }

    #[test]
    fn insertions_a_little_behind_the_front_go_on_with_the_run() {
        // Each second one comes before the last.
        let (run, count) = run((0..40).map(|n| if n >= 20 && n % 2 == 1 { n - 1 } else { n }));
        let ascent = Some(Ascent { end: 40, late_by: 13 });
        assert_eq!((run.ascent_at(40, count), run.ascent_at(38, count)), (ascent, ascent));
        assert_eq!(run.ascent_at(20, count), None);
    }

    #[test]
    fn pages_of_few_records_know_no_late_ones() {
        let (run, count) = run([0, 1, 2, 3, 3]);
        assert_eq!((run.len, run.ascent_at(4, count)), (1, None));
    }

    #[test]
    fn records_in_no_order_are_no_run() {
        let mut rng = fastrand::Rng::with_seed(9);
        let mut mistaken = 0;
        for _ in 0..2000 {
            let (run, count) = run((0..60).map(|n| rng.usize(0..=n)));
            mistaken += usize::from((0..=count).any(|slot| run.ascent_at(slot, count).is_some()));
        }
        assert!(mistaken <= 4, "{mistaken} of 2000 pages");
    }

    #[test]
    fn any_header_gives_an_answer() {
        for (front, len) in [(0, 0), (u16::MAX, u16::MAX), (u16::MAX - 1, 7), (5, LATE)] {
            let (len, has_late) = (len & !LATE, len & LATE != 0);
            let run = AscendingRun { front, len, has_late };
            for (slot, count) in [(0, 0), (3, 2), (65_535, 65_535), (4, 300)] {
                let _ = (run.inserted(slot, || count), run.removed(slot), run.ascent_at(slot, count));
            }
        }
    }
}
