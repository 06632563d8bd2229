//! Ranges cover the keys between their cuts, also where they touch, and are found in few steps.

use super::*;
use proptest::prelude::*;
use std::ops::Bound;

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
