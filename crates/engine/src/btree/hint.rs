//! Leaf hints: the leaf of a tree that this thread used last.
//!
//! Transactions often use the same leaf again: a row is read and then changed, lines of an order are inserted one after
//! another. A hint saves the descent.
//!
//! Rules
//! 1. A hint is a page number and nothing else. It is used only if the page, read without a latch, is a leaf of the
//!    tree whose fences cover the key, if it was compared with its parent since it was read in, and if it is unchanged
//!    when it is latched. Each key belongs to one leaf of a tree, and a freed page is formatted as free, so such a page
//!    is the right leaf.
//! 2. Hints belong to one opened tree (`id_generator`), so a hint never leads to a page of a dropped tree or another
//!    database. The slot of a tree does not depend on other databases of the process, so a single-threaded run of a
//!    database is deterministic.
//! 3. A thread with wrong hints uses none for a while: a wrong hint costs a seventh of a descent.
//!
//! Differs from InnoDB: no shared adaptive hash index, so nothing to latch or to invalidate.

use crate::sync::IdGenerator;
use crate::types::PageNo;
use std::cell::Cell;

/// Trees a thread remembers a leaf of.
const SLOTS: usize = 32;
/// Misses (less hits) after which hints are not used for a while.
const CREDIT_MAX: u8 = 8;
/// Descents between two hints used without credit.
const PAUSE: u8 = 16;

#[derive(Clone, Copy, Default)]
struct Hint {
    serial: u64,
    page: u32,
    credit: u8,
    pause: u8,
}

thread_local! {
    static HINTS: [Cell<Hint>; SLOTS] =
        const { [const { Cell::new(Hint { serial: 0, page: 0, credit: 0, pause: 0 }) }; SLOTS] };
}

/// A number no other opened tree of this process has, for the tree that was opened in its database as number `count`.
pub(super) fn new_serial(count: usize) -> u64 {
    static NEXT: IdGenerator = IdGenerator::new();
    NEXT.next() * SLOTS as u64 + (count % SLOTS) as u64
}

/// The slot of this tree's hints.
#[inline]
fn slot_of(serial: u64) -> usize {
    serial as usize % SLOTS
}

/// The leaf this thread used last, if it is worth checking.
#[inline]
pub(super) fn ask(serial: u64) -> Option<PageNo> {
    HINTS.with(|hints| {
        let slot = &hints[slot_of(serial)];
        let mut hint = slot.get();
        if hint.serial != serial {
            return None;
        }
        if hint.credit > 0 {
            return Some(PageNo(hint.page));
        }
        hint.pause = hint.pause.wrapping_add(1) % PAUSE;
        slot.set(hint);
        (hint.pause == 0).then_some(PageNo(hint.page))
    })
}

/// Notes that the hint led to the leaf sought.
#[inline]
pub(super) fn note_hit(serial: u64) {
    HINTS.with(|hints| {
        let slot = &hints[slot_of(serial)];
        debug_assert_eq!(slot.get().serial, serial, "rule 2: the hint that was right is another tree's");
        slot.set(Hint { credit: CREDIT_MAX, ..slot.get() });
    });
}

/// Notes the leaf a descent ended at; `missed` when a hint was wrong.
#[inline]
pub(super) fn note_descent(serial: u64, page: PageNo, missed: bool) {
    HINTS.with(|hints| {
        let slot = &hints[slot_of(serial)];
        let mut hint = slot.get();
        if hint.serial != serial {
            hint = Hint { serial, credit: CREDIT_MAX, ..Hint::default() };
        }
        hint.page = page.0;
        hint.credit = hint.credit.saturating_sub(u8::from(missed));
        debug_assert!(hint.credit <= CREDIT_MAX, "rule 3: a credit of {}", hint.credit);
        slot.set(hint);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btree::BTree;
    use crate::db::open_parts::OpenParts;
    use crate::testing::small_parts;
    use crate::types::{IndexId, SegmentId};

    #[test]
    fn a_thread_that_jumps_about_stops_asking_and_tries_again() {
        let serial = new_serial(0);
        assert_eq!(ask(serial), None);
        let mut asked = 0;
        for page in 0..1000 {
            let missed = ask(serial).is_some();
            asked += u32::from(missed);
            note_descent(serial, PageNo(page), missed);
        }
        assert!((8..90).contains(&asked), "{asked}");
        while ask(serial).is_none() {}
        note_hit(serial);
        assert_eq!(ask(serial), Some(PageNo(999)));
    }

    #[test]
    fn trees_that_share_a_slot_do_not_share_hints() {
        let (serial, other) = (new_serial(5), new_serial(5 + SLOTS));
        note_descent(serial, PageNo(7), false);
        assert_eq!(ask(other), None);
        assert_eq!(ask(serial), Some(PageNo(7)));
    }

    #[test]
    fn trees_of_a_database_share_no_slot_while_others_are_opened() {
        let (own, other) = (small_parts(), small_parts());
        let open = |parts: &OpenParts| {
            let tree = BTree::open(parts.space.clone(), IndexId(7), SegmentId(20), PageNo(3));
            tree.search().serial()
        };
        let slot_of = |n| {
            (0..n).map(|_| open(&other)).for_each(drop);
            slot_of(open(&own))
        };
        let slots: std::collections::HashSet<_> = (0..SLOTS).map(slot_of).collect();
        assert_eq!(slots.len(), SLOTS);
    }
}
