//! Operations against a map, and how full pages get.

use super::*;
use crate::page::node::{max_key_bytes, max_long_key_bytes};
use crate::testing::is_tried;

#[test]
fn random_operations_agree_with_a_map() {
    for (seed, page_size) in [(1, 4096), (2, 4096), (3, 8192), (4, 16384)] {
        let mut rng = Rng::with_seed(seed);
        let fixture = Fixture::with_page_size(page_size);
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for phase in 0..6 {
            let deletes = [0.1, 0.4, 0.9, 0.2, 0.7, 0.97][phase];
            for _ in 0..1500 {
                if rng.f64() < deletes {
                    let pivot = random_key(&mut rng, 20);
                    let Some(key) = model.range(pivot..).next().map(|(key, _)| key.clone()) else { continue };
                    assert!(fixture.delete(&key).unwrap());
                    model.remove(&key);
                } else {
                    let key = random_key(&mut rng, fixture.tree.limits().max_key_bytes);
                    let value = random_value(&mut rng, fixture.tree.limits().max_value_bytes(key.len()));
                    fixture.put(&key, &value).unwrap();
                    model.insert(key, value);
                }
            }
            fixture.assert_is(&model);
            for key in model.keys().step_by(7) {
                assert_eq!(fixture.get(key).as_ref(), model.get(key));
            }
        }
        let keys: Vec<_> = model.keys().cloned().collect();
        keys.iter().for_each(|key| assert!(fixture.delete(key).unwrap()));
        fixture.assert_is(&BTreeMap::new());
        assert_eq!(fixture.parts.space.pages_of(fixture.tree.segment()), vec![fixture.tree.root()]);
    }
}

#[test]
fn the_longest_records_split_and_stay() {
    let limits = [4096, 8192, 16384].into_iter().flat_map(|page_bytes| {
        let longest = max_long_key_bytes(page_bytes);
        [1, 8, 100, page_bytes / 8, page_bytes / 6, longest - 1, longest].map(|key_max| (page_bytes, key_max))
    });
    for (page_bytes, key_max) in limits {
        the_longest_records_split(page_bytes, key_max);
    }
}

fn the_longest_records_split(page_bytes: usize, key_max: usize) {
    let fixture = Fixture::with_page_size(page_bytes as u64).with_max_key_bytes(key_max);
    let limits = fixture.tree.limits();
    assert_eq!(limits.max_key_bytes, key_max);
    let mut rng = Rng::with_seed(77);
    let mut model = BTreeMap::new();
    for _ in 0..150 {
        let mut key = vec![1u8; if rng.bool() { key_max } else { rng.usize(1..=key_max) }];
        let bytes = key.len();
        (0..3).for_each(|_| key[rng.usize(0..bytes)] = rng.u8(..));
        let longest = limits.max_value_bytes(key.len());
        let value = vec![rng.u8(..); if rng.u8(..4) > 0 { longest } else { rng.usize(..=longest) }];
        fixture.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    fixture.assert_is(&model);
    let too_long = vec![0; key_max + 1];
    assert!(matches!(fixture.tree.make_room(fixture.ctx(), &too_long, 10), Err(Error::KeyTooLong { .. })));
    let too_large = fixture.tree.make_room(fixture.ctx(), b"k", limits.max_record_bytes + 1);
    assert!(matches!(too_large, Err(Error::RowTooLarge { .. })));
    let keys: Vec<_> = model.keys().cloned().collect();
    keys.iter().for_each(|key| assert!(fixture.delete(key).unwrap()));
    fixture.assert_is(&BTreeMap::new());
}

#[test]
fn ascending_insertions_fill_pages() {
    let fixture = Fixture::new();
    (0..20_000u32).for_each(|n| fixture.put(&n.to_be_bytes(), b"a value of some bytes").unwrap());
    assert!(fixture.leaf_fill() >= 90, "{} %", fixture.leaf_fill());
}

/// How full the leaves are after orders of districts whose lines were written as `arrange` puts them.
fn fill_by_orders(seed: u64, arrange: impl Fn(&mut Rng, &mut [u8])) -> u64 {
    let fixture = Fixture::new();
    let mut rng = Rng::with_seed(seed);
    let mut next = [0u32; 20];
    for _ in 0..4000 {
        let district = rng.u8(0..20);
        let order = next[district as usize];
        next[district as usize] += 1;
        let mut lines: Vec<u8> = (0..rng.u8(5..15)).collect();
        arrange(&mut rng, &mut lines);
        for line in lines {
            let key = [&[0, 1, district][..], &order.to_be_bytes(), &[line]].concat();
            fixture.put(&key, b"an order line with a little of everything").unwrap();
        }
    }
    fixture.leaf_fill()
}

#[test]
fn ascending_insertions_within_prefixes_fill_pages() {
    let fill = fill_by_orders(5, |_, _| {});
    assert!(fill >= 85, "{fill} %");
}

#[test]
fn orders_fill_pages_whatever_the_order_of_their_lines() {
    let fill = fill_by_orders(7, |rng, lines| rng.shuffle(lines));
    assert!(fill >= 80, "{fill} %");
}

/// As several threads insert what numbers they have drawn.
#[test]
fn numbers_nearly_in_order_fill_pages() {
    let fixture = Fixture::new();
    let mut rng = Rng::with_seed(8);
    let mut drawn: Vec<u32> = (0..6).collect();
    for n in 6..20_000u32 {
        let number = std::mem::replace(&mut drawn[rng.usize(0..6)], n);
        fixture.put(&number.to_be_bytes(), b"a value of some bytes").unwrap();
    }
    assert!(fixture.leaf_fill() >= 80, "{} %", fixture.leaf_fill());
}

#[test]
fn random_insertions_fill_pages_as_usual() {
    let fixture = Fixture::new();
    let mut rng = Rng::with_seed(6);
    (0..20_000).for_each(|_| fixture.put(&rng.u64(..).to_be_bytes(), b"a value of some bytes").unwrap());
    assert!((60..80).contains(&fixture.leaf_fill()), "{} %", fixture.leaf_fill());
}

#[test]
fn a_queue_frees_its_pages() {
    let fixture = Fixture::new();
    let mut max = 0;
    for n in 0..30_000u32 {
        fixture.put(&n.to_be_bytes(), b"queued").unwrap();
        if n >= 1000 {
            assert!(fixture.delete(&(n - 1000).to_be_bytes()).unwrap());
        }
        if n % 1000 == 0 {
            max = max.max(fixture.parts.space.pages_of(fixture.tree.segment()).len());
        }
    }
    assert!(max < 30, "{max} pages for 1000 short records");
    assert_eq!(fixture.tree.check(fixture.ctx()).unwrap().problems, vec![]);
}

#[test]
fn built_trees_equal_inserted_ones() {
    let mut rng = Rng::with_seed(8);
    for (count, fill) in [(0, 90), (1, 90), (2, 50), (40, 100), (500, 100), (5000, 70), (20_000, 94)] {
        let fixture = Fixture::new();
        let mut model = BTreeMap::new();
        while model.len() < count {
            let key = if rng.f64() < 0.5 { rng.u32(..).to_be_bytes().to_vec() } else { random_key(&mut rng, 512) };
            model.insert(key, random_value(&mut rng, 300));
        }
        let mut builder = fixture.tree.builder(fixture.ctx(), fill, 33);
        model.iter().for_each(|(key, value)| builder.push(key, value).unwrap());
        assert_eq!(builder.finish().unwrap(), count as u64);
        fixture.assert_is(&model);
        let leaf = fixture.tree.leaf(fixture.ctx(), Seek::First).unwrap();
        assert_eq!(leaf.max_trx_id(), if count == 0 { 0 } else { 33 });
        drop(leaf);
        for _ in 0..300 {
            let (key, value) = (random_key(&mut rng, 100), random_value(&mut rng, 100));
            fixture.put(&key, &value).unwrap();
            model.insert(key, value);
        }
        fixture.assert_is(&model);
    }
}

#[test]
fn a_builder_refuses_disorder_and_fills_as_told() {
    let fixture = Fixture::new();
    let mut builder = fixture.tree.builder(fixture.ctx(), 90, 0);
    builder.push(b"b", b"").unwrap();
    assert!(matches!(builder.push(b"b", b""), Err(Error::Usage(_))));
    assert!(matches!(builder.push(b"a", b""), Err(Error::Usage(_))));
    assert!(matches!(builder.push(&[9; 513], b""), Err(Error::KeyTooLong { .. })));
    assert!(matches!(builder.push(b"c", &[0; 1488]), Err(Error::RowTooLarge { .. })));
    builder.finish().unwrap();

    let fixture = Fixture::new();
    let mut builder = fixture.tree.builder(fixture.ctx(), 90, 0);
    (0..20_000u64).for_each(|n| builder.push(&(n * 3).to_be_bytes(), b"a value of some bytes").unwrap());
    builder.finish().unwrap();
    assert!((86..=91).contains(&fixture.leaf_fill()), "{} %", fixture.leaf_fill());
}

/// Nine of ten records are deleted, in any order, at every size of record and page: what is left fills its leaves.
#[test]
fn leaves_are_merged_by_bytes_whatever_the_size_of_their_records() {
    for page_size in [4096, 8192, 16384] {
        for value_bytes in [8, 60, 150, 400, 1000, 1400] {
            let (fixture, mut rng) = (Fixture::with_page_size(page_size), Rng::with_seed(value_bytes as u64));
            let count = (60 * page_size as usize / (value_bytes + 20)) as u32;
            let mut keys: Vec<u32> = (0..count).collect();
            rng.shuffle(&mut keys);
            keys.iter().for_each(|n| fixture.put(&n.to_be_bytes(), &vec![7; value_bytes]).unwrap());
            rng.shuffle(&mut keys);
            let kept = keys.split_off(keys.len() * 9 / 10);
            keys.iter().for_each(|n| assert!(fixture.delete(&n.to_be_bytes()).unwrap()));
            let fill = fixture.leaf_fill();
            let what = format!("{fill} % of the leaves, pages of {page_size}, records of {value_bytes}");
            assert_eq!(forward(fixture.ctx(), &fixture.tree, Seek::First).len(), kept.len(), "{what}");
            assert!(fill >= 40, "{what}");
        }
    }
}

#[test]
fn positions_tell_whether_a_leaf_changed() {
    let fixture = Fixture::new();
    fixture.put(b"a", b"1").unwrap();
    let leaf = fixture.tree.leaf(fixture.ctx(), Seek::First).unwrap();
    let seen = leaf.version();
    drop(leaf);
    assert!(Leaf::reopen(fixture.ctx(), seen).is_some());
    fixture.put(b"b", b"2").unwrap();
    assert!(Leaf::reopen(fixture.ctx(), seen).is_none());
}

#[test]
fn max_trx_id_rises_and_survives_splits() {
    let fixture = Fixture::new();
    fixture.put(&0u32.to_be_bytes(), b"x").unwrap();
    let mut mtr = fixture.ctx().mtr().unwrap();
    let leaf = fixture.tree.leaf_mut(&mut mtr, b"").unwrap();
    leaf.raise_max_trx_id(&mut mtr, 70);
    leaf.raise_max_trx_id(&mut mtr, 60);
    assert_eq!(leaf.max_trx_id(&mtr), 70);
    mtr.commit();
    (0..2000u32).rev().for_each(|n| fixture.put(&n.to_be_bytes(), b"a value of some bytes").unwrap());
    let mut from = Vec::new();
    loop {
        let leaf = fixture.tree.leaf(fixture.ctx(), Seek::Covers(&from)).unwrap();
        assert_eq!(leaf.max_trx_id(), 70);
        let Some(upper) = leaf.upper() else { break };
        from = upper.to_vec();
    }
}

/// The middle of a page of three large rows depends on where the fourth goes: two and two.
#[test]
fn pages_of_few_large_rows_are_halved_with_the_new_one_counted() {
    let (fixture, mut rng) = (Fixture::with_page_size(4096), Rng::with_seed(9));
    let mut model = BTreeMap::new();
    while model.len() < 400 {
        let (key, value) = (rng.u64(..).to_be_bytes().to_vec(), vec![rng.u8(..); 1200]);
        fixture.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    fixture.assert_is(&model);
    let pages = fixture.parts.space.pages_of(fixture.tree.segment()).len();
    // 2.29 rows to a page; 2.0 if the new one is not counted.
    assert!(pages < 400 * 100 / 218, "{pages} pages");
}

/// Wherever a row goes or grows, its page can be split so that it fits in one step, or is refused.
#[test]
fn rows_of_any_size_find_room_wherever_they_go() {
    for seed in 0..40 {
        let (fixture, mut rng) = (Fixture::with_page_size(4096), Rng::with_seed(seed));
        let mut model = BTreeMap::new();
        for _ in 0..120 {
            let key = format!("{:0width$}", rng.u32(0..300), width = rng.usize(3..6)).into_bytes();
            let len = if rng.bool() { rng.usize(0..1900) } else { rng.usize(0..60) };
            if fixture.put(&key, &vec![rng.u8(..); len]).is_ok() {
                model.insert(key.clone(), fixture.get(&key).unwrap());
            }
        }
        fixture.assert_is(&model);
    }
}

/// A key's prefix of `bytes` bytes, then `end`.
fn long(byte: u8, bytes: usize, end: &str) -> Vec<u8> {
    [&vec![byte; bytes][..], end.as_bytes()].concat()
}

/// A run of short keys before long ones that have much in common: cut after the run, the right page would have no space
/// for the long fence and all later records.
#[test]
fn runs_before_long_keys_find_room() {
    let fixture = Fixture::with_page_size(4096);
    let mut model = BTreeMap::new();
    let mut put = |key: Vec<u8>, value: Vec<u8>| {
        fixture.put(&key, &value).unwrap();
        model.insert(key, value);
    };
    (1..=12).for_each(|n| put(long(b'x', 300, &format!("{n:06}")), vec![7; 12]));
    ["a", "b", "c"].iter().for_each(|key| put(key.as_bytes().to_vec(), vec![7; 11]));
    put(long(b'x', 300, "000000"), vec![7; 12]);
    fixture.assert_is(&model);
}

/// Cut in the middle, the left page would not take two of the longest fences and what is there.
#[test]
fn records_between_the_longest_fences_find_room() {
    let fixture = Fixture::with_page_size(4096);
    let mut model = BTreeMap::new();
    let mut put = |key: Vec<u8>, bytes: usize| {
        let value = vec![7; bytes.min(fixture.tree.limits().max_value_bytes(key.len()))];
        fixture.put(&key, &value).unwrap();
        model.insert(key, value);
    };
    // The last leaf begins at a fence of 510 bytes.
    (0..3).for_each(|n| put(long(b'a', 509, &n.to_string()), 4096));
    put(long(b'a', 509, "2"), 533);
    for (key, bytes) in [(vec![b'd'], 272), (long(b'c', 509, "0"), 4096), (vec![b'b'], 702)] {
        put(key, bytes);
    }
    put(long(b'c', 509, "1"), 4096);
    fixture.assert_is(&model);
}

/// Keys of a few long prefixes, or short ones, in runs and out of order, with values of any size.
#[test]
fn keys_with_long_prefixes_find_room() {
    // By tens, each of which has all sizes.
    for seed in (0..300).filter(|seed| is_tried(seed / 10)) {
        let mut rng = Rng::with_seed(seed);
        let page_bytes = if seed % 10 == 0 { 16384 } else { 4096 };
        let longest = if seed % 3 == 0 { max_long_key_bytes(page_bytes) } else { max_key_bytes(page_bytes) };
        let fixture = Fixture::with_page_size(page_bytes as u64).with_max_key_bytes(longest);
        let prefixes: Vec<usize> = (0..6).map(|_| longest - 6 - rng.usize(..longest / 2)).collect();
        let mut model = BTreeMap::new();
        for _ in 0..40 {
            let byte = rng.u8(b'a'..b'g');
            let prefix = if rng.bool() { rng.usize(1..20) } else { prefixes[usize::from(byte - b'a')] };
            let max = [8, 80, page_bytes][rng.usize(..3)];
            let (is_run, first) = (rng.bool(), rng.u32(..100_000));
            for number in first..first + rng.u32(1..12) {
                let number = if is_run { number } else { rng.u32(..100_000) };
                let key = long(byte, prefix, &format!("{number:06}"));
                let value_max = max.min(fixture.tree.limits().max_value_bytes(key.len()));
                let value = vec![byte; if rng.bool() { value_max } else { rng.usize(..=value_max) }];
                fixture.put(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
        fixture.assert_is(&model);
    }
}

#[test]
fn scans_tell_how_many_leaves_to_expect() {
    let tree = Fixture::new().tree;
    let mut expected = |met: usize| {
        tree.note_leaf_records(met);
        tree.leaves_of(100)
    };
    // An empty leaf says nothing; the first says all; one that is much like it changes nothing; others half.
    assert_eq!([0, 20, 24, 16, 40].map(&mut expected), [None, Some(5), Some(5), Some(5), Some(4)]);
    assert_eq!(tree.leaves_of(1), Some(1));
}
