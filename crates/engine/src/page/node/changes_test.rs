//! Changes of a leaf by key: against a map, applied again, within the space that was promised, and damaged.

use crate::page::header::{self, PageType};
use crate::page::node::{self, LeafChange, Node};
use crate::page::op::PageOp;
use crate::testing::is_tried;
use crate::types::PageNo;
use fastrand::Rng;
use proptest::prelude::*;
use std::collections::BTreeMap;

const PAGE: PageNo = PageNo(77);
const PAGE_BYTES: usize = 4096;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// A change with bytes of its own.
#[derive(Clone, Debug)]
enum Owned {
    Put(Vec<u8>, Vec<u8>),
    Flag(Vec<u8>, u8),
    Remove(Vec<u8>),
}

impl Owned {
    fn as_change(&self) -> LeafChange<'_> {
        match self {
            Owned::Put(key, value) => LeafChange::Put { key, value },
            Owned::Flag(key, flag) => LeafChange::Flag { key, flag: *flag },
            Owned::Remove(key) => LeafChange::Remove { key },
        }
    }

    fn apply(&self, map: &mut Map) {
        match self {
            Owned::Put(key, value) => drop(map.insert(key.clone(), value.clone())),
            Owned::Flag(key, flag) => drop(map.get_mut(key).map(|value| value[0] = *flag)),
            Owned::Remove(key) => drop(map.remove(key)),
        }
    }
}

fn encoded(changes: &[Owned]) -> Vec<u8> {
    let mut list = Vec::new();
    changes.iter().for_each(|change| change.as_change().encode(&mut list));
    let decoded: Vec<_> = node::changes(&list).map(Result::unwrap).collect();
    assert_eq!(decoded, changes.iter().map(Owned::as_change).collect::<Vec<_>>());
    list
}

fn op(changes: &[u8], canonical: bool, max_trx_id: u64) -> PageOp<'_> {
    PageOp::LeafChanges { max_trx_id, canonical, changes }
}

fn apply(page: &mut [u8], changes: &[Owned], canonical: bool) -> Result<(), String> {
    op(&encoded(changes), canonical, 9).apply(page).map_err(|error| error.to_string())
}

/// Few keys, so that changes meet; of many lengths; some share more than others.
fn random_key(rng: &mut Rng) -> Vec<u8> {
    let mut key = b"all".to_vec();
    if rng.u32(..10) > 0 {
        key.extend_from_slice(b" keys share this");
    }
    let len = rng.usize(..4);
    key.extend((0..len).map(|_| rng.u8(b'a'..b'd')));
    if rng.u32(..4) == 0 {
        let len = rng.usize(..40);
        key.extend(std::iter::repeat_n(b'x', len));
    }
    key
}

/// As all values of one index do, they differ in their first byte alone.
fn value_of(key: &[u8], flag: u8) -> Vec<u8> {
    let mut value = vec![key.len() as u8; key.len() % 5 + 1];
    value[0] = flag;
    value
}

fn random_change(rng: &mut Rng) -> Owned {
    let key = random_key(rng);
    match rng.u32(..10) {
        0..=4 => Owned::Put(key.clone(), value_of(&key, 0)),
        5..=7 => Owned::Flag(key, rng.u8(..2)),
        _ => Owned::Remove(key),
    }
}

fn random_list(rng: &mut Rng, max: usize) -> Vec<Owned> {
    let len = rng.usize(1..max);
    (0..len).map(|_| random_change(rng)).collect()
}

/// A leaf after random changes, and its records.
fn random_leaf(rng: &mut Rng) -> (Vec<u8>, Map) {
    let mut page = vec![0xaa; PAGE_BYTES];
    PageOp::Format { page_type: PageType::Leaf, level: 0, owner: 5 }.apply(&mut page).unwrap();
    let fences = [(None, None), (Some(&b"all"[..]), Some(&b"am"[..])), (Some(&b"all"[..]), None)];
    let (lower, upper) = fences[rng.usize(..3)];
    PageOp::NodeFormat { lower, upper, upper_child: PageNo(0) }.apply(&mut page).unwrap();
    let mut map = Map::new();
    for _ in 0..rng.usize(..400) {
        let change = random_change(rng);
        if Node::new(&page).free_bytes() >= change.as_change().max_bytes() {
            apply(&mut page, std::slice::from_ref(&change), false).unwrap();
            change.apply(&mut map);
        }
    }
    (page, map)
}

/// The longest beginning of the list that the leaf certainly takes.
fn fitting<'l>(page: &[u8], list: &'l [Owned]) -> &'l [Owned] {
    let mut left = Node::new(page).free_bytes();
    let fits = |change: &&Owned| {
        let bytes = change.as_change().max_bytes();
        let fits = bytes <= left;
        left -= if fits { bytes } else { 0 };
        fits
    };
    &list[..list.iter().take_while(fits).count()]
}

fn assert_is(page: &[u8], map: &Map) {
    node::check(page, PAGE).unwrap();
    let node = Node::new(page);
    let records: Map = (0..node.count()).map(|slot| (node.key(slot), node.value(slot).to_vec())).collect();
    assert_eq!((node.count(), &records), (map.len(), map));
    assert_eq!(header::max_trx_id(page), 9);
}

/// The bytes of a page that mean something: all but those between slots and heap.
fn meaning(page: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let free = Node::new(page).contiguous_bytes();
    let heap_start = u16::from_le_bytes([page[header::HEADER_BYTES + 2], page[header::HEADER_BYTES + 3]]);
    let slots_end = usize::from(heap_start) - free;
    (page[..slots_end].to_vec(), page[slots_end + free..].to_vec())
}

#[test]
fn a_list_makes_of_a_leaf_what_it_makes_of_a_map() {
    let mut rng = Rng::with_seed(1);
    for _ in 0..2000 {
        let (mut page, mut map) = random_leaf(&mut rng);
        let (list, canonical) = (random_list(&mut rng, 200), rng.bool());
        let list = fitting(&page, &list);
        apply(&mut page, list, canonical).unwrap();
        list.iter().for_each(|change| change.apply(&mut map));
        assert_is(&page, &map);
    }
}

/// What recovery does with a leaf that has some of the changes when the list was logged again.
#[test]
fn a_list_that_was_applied_before_gives_the_same_page() {
    let mut rng = Rng::with_seed(2);
    for round in 0..2000 {
        let (page, _) = random_leaf(&mut rng);
        let (list, later) = (random_list(&mut rng, 120), random_list(&mut rng, 60));
        let list = fitting(&page, &list);
        let mut once = page.clone();
        apply(&mut once, list, true).unwrap();
        let had = &list[if round % 3 == 0 { 0 } else { rng.usize(..=list.len()) }..];
        let mut again = page.clone();
        had.iter().for_each(|change| apply(&mut again, std::slice::from_ref(change), false).unwrap());
        apply(&mut again, list, true).unwrap();
        assert!(meaning(&once) == meaning(&again), "{} of {} were there", had.len(), list.len());
        // Later changes name slots, and their free space was checked on one of the two pages.
        for change in &later {
            let done = apply(&mut once, std::slice::from_ref(change), false);
            assert_eq!(done, apply(&mut again, std::slice::from_ref(change), false));
        }
        assert!(meaning(&once) == meaning(&again));
        assert_eq!(Node::new(&once).free_bytes(), Node::new(&again).free_bytes());
    }
}

/// Carried forward twice, with changes in between, against applied once in memory.
#[test]
fn a_list_that_was_carried_forward_twice_gives_the_same_page() {
    let mut rng = Rng::with_seed(3);
    for _ in 0..1000 {
        let (page, _) = random_leaf(&mut rng);
        let list = random_list(&mut rng, 200);
        let list = fitting(&page, &list);
        let (first, second) = list.split_at(rng.usize(..=list.len()));
        let (second, third) = second.split_at(rng.usize(..=second.len()));
        let carried = [first, second].concat();
        let mut merged = page.clone();
        apply(&mut merged, &carried, true).unwrap();
        apply(&mut merged, third, false).unwrap();
        let mut recovered = page.clone();
        for (part, canonical) in [(first, false), (first, true), (second, false), (&carried[..], true), (third, false)]
        {
            apply(&mut recovered, part, canonical).unwrap();
        }
        assert!(meaning(&merged) == meaning(&recovered));
    }
}

#[test]
fn a_list_that_does_not_fit_leaves_the_leaf_as_it_was() {
    let mut rng = Rng::with_seed(4);
    let mut refused = 0;
    for _ in 0..1000 {
        let (mut page, _) = random_leaf(&mut rng);
        let before = page.clone();
        let list: Vec<Owned> =
            (0..rng.usize(100..400)).map(|n| Owned::Put(format!("all {n:030}").into(), vec![7])).collect();
        if apply(&mut page, &list, rng.bool()).is_err() {
            refused += 1;
            assert!(page == before);
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn damaged_leaves_and_lists_never_panic() {
    for seed in (0..20_000).filter(|seed| is_tried(*seed)) {
        let mut rng = Rng::with_seed(seed);
        let (mut page, _) = random_leaf(&mut rng);
        let mut list = encoded(&random_list(&mut rng, 20));
        for _ in 0..rng.usize(..6) {
            let at = rng.usize(..PAGE_BYTES);
            page[if rng.bool() { at } else { header::HEADER_BYTES + at % 40 }] = rng.u8(..);
        }
        if rng.bool() {
            let at = rng.usize(..list.len());
            list[at] = rng.u8(..);
            list.truncate(rng.usize(..=list.len()));
        }
        let before = page.clone();
        if op(&list, rng.bool(), 9).apply(&mut page).is_err() {
            assert!(page == before, "a refused list changed the page");
        }
    }
}

proptest! {
    #[test]
    fn any_list_decodes_or_is_refused(
        list in proptest::collection::vec(any::<u8>(), 0..80),
        canonical in any::<bool>(),
    ) {
        let decoded: Vec<_> = node::changes(&list).collect();
        prop_assert!(decoded.iter().rev().skip(1).all(Result::is_ok));
        let (mut page, _) = random_leaf(&mut Rng::with_seed(list.len() as u64));
        let before = page.clone();
        let applied = op(&list, canonical, 9).apply(&mut page).is_ok();
        prop_assert!(applied || page == before);
        prop_assert!(!applied || decoded.iter().all(Result::is_ok));
    }
}
