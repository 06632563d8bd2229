//! Range locks of one index: intervals of keys into which nobody but their owner may insert.

use std::ops::Bound;

/// One interval, held by the transaction in `slot`.
#[derive(Debug)]
pub(crate) struct Range {
    slot: u32,
    number: u64,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
}

impl Range {
    pub(crate) fn new(slot: u32, number: u64, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Range {
        Range { slot, number, lower: lower.map(<[u8]>::to_vec), upper: upper.map(<[u8]>::to_vec) }
    }

    /// Grows the interval to take in another one that touches it.
    pub(crate) fn extend(&mut self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) {
        if starts_before(lower, as_slice(&self.lower)) {
            self.lower = lower.map(<[u8]>::to_vec);
        }
        if ends_after(upper, as_slice(&self.upper)) {
            self.upper = upper.map(<[u8]>::to_vec);
        }
    }

    fn covers(&self, key: &[u8]) -> bool {
        let above = match &self.lower {
            Bound::Included(lower) => lower.as_slice() <= key,
            Bound::Excluded(lower) => lower.as_slice() < key,
            Bound::Unbounded => true,
        };
        above
            && match &self.upper {
                Bound::Included(upper) => key <= upper.as_slice(),
                Bound::Excluded(upper) => key < upper.as_slice(),
                Bound::Unbounded => true,
            }
    }
}

/// A bound, borrowed.
pub(crate) fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

fn starts_before(a: Bound<&[u8]>, b: Bound<&[u8]>) -> bool {
    match (a, b) {
        (_, Bound::Unbounded) => false,
        (Bound::Unbounded, _) => true,
        (Bound::Included(a), Bound::Excluded(b)) => a <= b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a < b,
    }
}

fn ends_after(a: Bound<&[u8]>, b: Bound<&[u8]>) -> bool {
    match (a, b) {
        (_, Bound::Unbounded) => false,
        (Bound::Unbounded, _) => true,
        (Bound::Included(a), Bound::Excluded(b)) => a >= b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a > b,
    }
}

/// The range locks of one index and the inserts that wait for them.
#[derive(Debug, Default)]
pub(crate) struct IndexRanges {
    ranges: Vec<Range>,
    /// Slots of the transactions whose insert waits.
    pub(crate) waiting: Vec<u32>,
}

impl IndexRanges {
    /// Transactions other than `slot` whose ranges cover `key`.
    pub(crate) fn blockers<'a>(&'a self, slot: u32, key: &'a [u8]) -> impl Iterator<Item = u32> + 'a {
        self.ranges.iter().filter(move |range| range.slot != slot && range.covers(key)).map(|range| range.slot)
    }

    /// Whether a range of `slot` covers `key`.
    pub(crate) fn has_range_over(&self, slot: u32, key: &[u8]) -> bool {
        self.ranges.iter().any(|range| range.slot == slot && range.covers(key))
    }

    pub(crate) fn add(&mut self, range: Range) {
        self.ranges.push(range);
    }

    pub(crate) fn find(&mut self, slot: u32, number: u64) -> Option<&mut Range> {
        // The newest are asked for most.
        self.ranges.iter_mut().rev().find(|range| range.slot == slot && range.number == number)
    }

    /// Drops every range of `slot`; returns how many.
    pub(crate) fn remove_all_of(&mut self, slot: u32) -> usize {
        let before = self.ranges.len();
        self.ranges.retain(|range| range.slot != slot);
        before - self.ranges.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_covers_what_lies_between_its_bounds() {
        let range = Range::new(1, 1, Bound::Excluded(b"b"), Bound::Included(b"d"));
        let covered: Vec<&str> =
            ["a", "b", "ba", "c", "d", "da"].into_iter().filter(|k| range.covers(k.as_bytes())).collect();
        assert_eq!(covered, ["ba", "c", "d"]);
    }

    #[test]
    fn extending_only_grows() {
        let mut range = Range::new(1, 1, Bound::Excluded(b"b"), Bound::Included(b"d"));
        range.extend(Bound::Excluded(b"d"), Bound::Excluded(b"f"));
        assert!(range.covers(b"ez") && !range.covers(b"f") && !range.covers(b"b"));
        range.extend(Bound::Included(b"b"), Bound::Excluded(b"c"));
        assert!(range.covers(b"b") && range.covers(b"e"));
        range.extend(Bound::Excluded(b"b"), Bound::Unbounded);
        assert!(range.covers(b"b") && range.covers(b"z"));
    }

    #[test]
    fn own_ranges_do_not_block() {
        let mut ranges = IndexRanges::default();
        ranges.add(Range::new(1, 1, Bound::Unbounded, Bound::Unbounded));
        ranges.add(Range::new(2, 2, Bound::Included(b"k"), Bound::Included(b"k")));
        assert_eq!(ranges.blockers(1, b"k").collect::<Vec<_>>(), [2]);
        assert_eq!(ranges.blockers(2, b"a").collect::<Vec<_>>(), [1]);
        assert_eq!((ranges.remove_all_of(1), ranges.is_empty()), (1, false));
    }
}
