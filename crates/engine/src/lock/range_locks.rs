//! Range locks of one index: intervals of keys into which only their owner may insert.
//!
//! Rules
//! 1. The intervals of one owner are disjoint and do not touch: an interval that touches others is joined with them
//!    when it is added.
//! 2. All intervals are in one interval tree, so the intervals over a key are found in logarithmic time for any number
//!    of owners and intervals. The intervals of one owner are also in a separate map, to find the neighbours to join.
//! 3. Bounds are *cuts*: positions between keys. So the cut before k and the cut after k differ.

use super::holder::OwnerId;
use super::interval_tree::IntervalTree;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// A place between keys.
#[derive(Clone, Debug)]
pub(crate) enum KeyBound {
    /// Before every key.
    Start,
    /// Just before a key.
    Before(Arc<[u8]>),
    /// Just behind a key.
    After(Arc<[u8]>),
    /// Behind every key.
    End,
}

impl KeyBound {
    /// Where an interval with this lower bound begins.
    pub(crate) fn lower(bound: Bound<&[u8]>) -> KeyBound {
        match bound {
            Bound::Included(key) => KeyBound::Before(key.into()),
            Bound::Excluded(key) => KeyBound::After(key.into()),
            Bound::Unbounded => KeyBound::Start,
        }
    }

    /// Where an interval with this upper bound ends.
    pub(crate) fn upper(bound: Bound<&[u8]>) -> KeyBound {
        match bound {
            Bound::Included(key) => KeyBound::After(key.into()),
            Bound::Excluded(key) => KeyBound::Before(key.into()),
            Bound::Unbounded => KeyBound::End,
        }
    }

    /// Class, key, side: what cuts are ordered by.
    fn order(&self) -> (u8, &[u8], u8) {
        match self {
            KeyBound::Start => (0, &[], 0),
            KeyBound::Before(key) => (1, key, 0),
            KeyBound::After(key) => (1, key, 1),
            KeyBound::End => (2, &[], 0),
        }
    }

    /// Whether the cut is before `key`.
    pub(crate) fn is_before(&self, key: &[u8]) -> bool {
        self.order() <= (1, key, 0)
    }
}

impl Ord for KeyBound {
    fn cmp(&self, other: &KeyBound) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for KeyBound {
    fn partial_cmp(&self, other: &KeyBound) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for KeyBound {
    fn eq(&self, other: &KeyBound) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for KeyBound {}

/// The range locks of one index.
#[derive(Debug, Default)]
pub(crate) struct IndexRanges {
    all: IntervalTree,
    /// For each owner, where its intervals begin and end.
    owned: HashMap<OwnerId, BTreeMap<KeyBound, KeyBound>>,
}

impl IndexRanges {
    /// Whether a transaction other than `me` has a range over `key`.
    pub(crate) fn is_blocked(&self, me: OwnerId, key: &[u8]) -> bool {
        self.all.any_over(key, |owner| owner != me)
    }

    /// Transactions other than `me` whose ranges cover `key`.
    pub(crate) fn blockers(&self, me: OwnerId, key: &[u8]) -> Vec<OwnerId> {
        let mut found = Vec::new();
        self.all.any_over(key, |owner| {
            if owner != me {
                found.push(owner);
            }
            false
        });
        found
    }

    /// Whether `owner` has ranges here.
    pub(crate) fn has_ranges_of(&self, owner: OwnerId) -> bool {
        self.owned.contains_key(&owner)
    }

    /// Adds an interval to those of `owner`, joined with the ones it touches.
    pub(crate) fn add(&mut self, owner: OwnerId, mut lower: KeyBound, mut upper: KeyBound) {
        if lower >= upper {
            return;
        }
        let owned = self.owned.entry(owner).or_default();
        while let Some((low, high)) = owned.range(..=&upper).next_back() {
            if *high < lower {
                break;
            }
            if *low <= lower && *high >= upper {
                return;
            }
            let low = low.clone();
            let high = owned.remove(&low).expect("it was found just now");
            self.all.remove(owner, &low);
            (lower, upper) = (lower.min(low), upper.max(high));
        }
        let is_apart = |(low, high): (&KeyBound, &KeyBound)| *high < lower || upper < *low;
        debug_assert!(owned.range(..=&upper).next_back().is_none_or(is_apart), "rule 1: an interval touches {lower:?}");
        self.all.insert(owner, lower.clone(), upper.clone());
        owned.insert(lower, upper);
    }

    /// Drops up to `limit` intervals of `owner`; whether it has more.
    pub(crate) fn remove_some_of(&mut self, owner: OwnerId, limit: usize) -> bool {
        let Some(owned) = self.owned.get_mut(&owner) else { return false };
        for _ in 0..limit {
            match owned.pop_first() {
                Some((lower, _)) => self.all.remove(owner, &lower),
                None => break,
            }
        }
        let more = !owned.is_empty();
        if !more {
            self.owned.remove(&owner);
        }
        more
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.owned.is_empty()
    }

    /// Nodes looked at so far.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.all.steps()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn add(ranges: &mut IndexRanges, owner: u64, lower: Bound<&[u8]>, upper: Bound<&[u8]>) {
        ranges.add(OwnerId(owner), KeyBound::lower(lower), KeyBound::upper(upper));
    }

    fn covered(ranges: &IndexRanges, keys: &[&str]) -> Vec<String> {
        keys.iter().filter(|k| ranges.is_blocked(OwnerId(0), k.as_bytes())).map(|k| (*k).to_string()).collect()
    }

    #[test]
    fn a_range_covers_what_lies_between_its_bounds() {
        let mut ranges = IndexRanges::default();
        add(&mut ranges, 1, Bound::Excluded(b"b"), Bound::Included(b"d"));
        assert_eq!(covered(&ranges, &["a", "b", "ba", "c", "d", "da"]), ["ba", "c", "d"]);
        add(&mut ranges, 1, Bound::Excluded(b"d"), Bound::Excluded(b"f"));
        assert_eq!(covered(&ranges, &["b", "d", "ez", "f"]), ["d", "ez"]);
        add(&mut ranges, 1, Bound::Excluded(b"x"), Bound::Excluded(b"x"));
        assert_eq!(ranges.owned[&OwnerId(1)].len(), 1, "what touches is joined, what is empty is left out");
        add(&mut ranges, 1, Bound::Unbounded, Bound::Unbounded);
        assert_eq!(covered(&ranges, &["", "b", "z"]), ["", "b", "z"]);
        assert_eq!(ranges.owned[&OwnerId(1)].len(), 1);
    }

    #[test]
    fn own_ranges_do_not_block() {
        let mut ranges = IndexRanges::default();
        add(&mut ranges, 1, Bound::Unbounded, Bound::Unbounded);
        add(&mut ranges, 2, Bound::Included(b"k"), Bound::Included(b"k"));
        assert_eq!(ranges.blockers(OwnerId(1), b"k"), [OwnerId(2)]);
        assert_eq!(ranges.blockers(OwnerId(2), b"a"), [OwnerId(1)]);
        assert!(!ranges.remove_some_of(OwnerId(1), 9));
        assert!(!ranges.is_blocked(OwnerId(2), b"a") && !ranges.is_empty());
    }

    /// One owner of many points, and many owners of overlapping ranges: a question looks at a few intervals.
    #[test]
    fn a_key_is_found_in_few_steps_among_many_ranges() {
        let n = 4000u64;
        let mut points = IndexRanges::default();
        for i in 0..n {
            let key = (i * 7919 % n).to_be_bytes();
            add(&mut points, 1, Bound::Included(&key), Bound::Included(&key));
            assert!(!points.is_blocked(OwnerId(1), &i.to_be_bytes()));
        }
        assert!(points.steps() < n * 100, "{} steps", points.steps());
        let mut wide = IndexRanges::default();
        for i in 0..n {
            add(&mut wide, i, Bound::Included(&i.to_be_bytes()), Bound::Included(&(i + 10).to_be_bytes()));
        }
        for i in 10..n {
            assert_eq!(wide.blockers(OwnerId(i), &i.to_be_bytes()).len(), 10);
        }
        for i in 0..n {
            assert!(!wide.remove_some_of(OwnerId(i), 1));
        }
        assert!(wide.is_empty() && wide.steps() < n * 300, "{} steps", wide.steps());
    }

    type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

    fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
        let key = proptest::collection::vec(0u8..3, 0..3);
        prop_oneof![
            4 => key.clone().prop_map(Bound::Included),
            4 => key.prop_map(Bound::Excluded),
            1 => Just(Bound::Unbounded),
        ]
    }

    #[derive(Clone, Debug)]
    enum Step {
        Add(u64, Bound<Vec<u8>>, Bound<Vec<u8>>),
        Remove(u64, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (1u64..5, bound(), bound()).prop_map(|(owner, low, high)| Step::Add(owner, low, high)),
            1 => (1u64..5, 1usize..4).prop_map(|(owner, limit)| Step::Remove(owner, limit)),
        ]
    }

    fn within(key: &[u8], (low, high): &Bounds) -> bool {
        let above = match low {
            Bound::Included(low) => low.as_slice() <= key,
            Bound::Excluded(low) => low.as_slice() < key,
            Bound::Unbounded => true,
        };
        above
            && match high {
                Bound::Included(high) => key <= high.as_slice(),
                Bound::Excluded(high) => key < high.as_slice(),
                Bound::Unbounded => true,
            }
    }

    proptest! {
        /// Against a list of bounds that is walked through.
        #[test]
        fn ranges_block_as_a_plain_list_of_them_does(steps in proptest::collection::vec(step(), 0..60)) {
            let mut ranges = IndexRanges::default();
            let mut plain: Vec<(u64, Bounds)> = Vec::new();
            let keys: Vec<Vec<u8>> = (0..4u8).flat_map(|a| (0..4u8).map(move |b| vec![a, b]))
                .chain((0..4u8).map(|a| vec![a])).chain([vec![]]).collect();
            for step in steps {
                match step {
                    Step::Add(owner, low, high) => {
                        fn slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
                            bound.as_ref().map(Vec::as_slice)
                        }
                        add(&mut ranges, owner, slice(&low), slice(&high));
                        plain.push((owner, (low, high)));
                    }
                    Step::Remove(owner, limit) => {
                        while ranges.remove_some_of(OwnerId(owner), limit) {}
                        plain.retain(|(of, _)| *of != owner);
                    }
                }
                for key in &keys {
                    for me in 1..5 {
                        let blocking = plain.iter().filter(|(owner, range)| *owner != me && within(key, range));
                        let mut expected: Vec<u64> = blocking.map(|(owner, _)| *owner).collect();
                        expected.sort_unstable();
                        expected.dedup();
                        let blockers = ranges.blockers(OwnerId(me), key);
                        let mut found: Vec<u64> = blockers.iter().map(|owner| owner.0).collect();
                        found.sort_unstable();
                        prop_assert_eq!(&found, &expected);
                        prop_assert_eq!(ranges.is_blocked(OwnerId(me), key), !expected.is_empty());
                    }
                }
            }
        }
    }
}
