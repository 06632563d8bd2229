//! Trees over a small pool in memory: against a map, under threads, and with damaged pages.

use super::{BTree, Leaf, Seek};
use crate::context::Context;
use crate::db::core::Core;
use crate::error::{Error, Result};
use crate::page::header::PageType;
use crate::page::{Node, PageOp};
use crate::testing::{open, small_core, small_options};
use crate::types::{IndexId, PageNo};
use highwater_storage::StorageSet;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

pub(super) struct Fixture {
    pub(super) core: Core,
    pub(super) tree: BTree,
}

pub(super) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

impl Fixture {
    pub(super) fn new() -> Fixture {
        Fixture::over(small_core())
    }

    fn with_page_size(page_size: u64) -> Fixture {
        let buffer_pool_size = page_size * 256;
        Fixture::over(open(
            StorageSet::memory(),
            crate::config::Options { page_size, buffer_pool_size, ..small_options() },
        ))
    }

    pub(super) fn over(core: Core) -> Fixture {
        let tree = new_tree(&core, 100);
        Fixture { core, tree }
    }

    pub(super) fn ctx(&self) -> &Context {
        &self.core.ctx
    }

    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        put(self.ctx(), &self.tree, key, value)
    }

    pub(super) fn delete(&self, key: &[u8]) -> Result<bool> {
        delete(self.ctx(), &self.tree, key)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let leaf = self.tree.leaf(self.ctx(), Seek::Covers(key)).unwrap();
        leaf.search(key).ok().map(|slot| leaf.value(slot).to_vec())
    }

    /// Verifies the tree, that its pages are exactly its segment's, and that it holds what the map holds.
    pub(super) fn assert_is(&self, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
        let report = self.tree.check(self.ctx()).unwrap();
        assert_eq!(report.problems, vec![]);
        assert_eq!(report.records, model.len() as u64);
        let mut pages = report.pages;
        pages.sort();
        assert_eq!(pages, self.core.space.pages_of(self.tree.segment()));
        let expected: Pairs = model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert!(forward(self.ctx(), &self.tree, Seek::First) == expected);
        let mut reversed = backward(self.ctx(), &self.tree, Seek::Last);
        reversed.reverse();
        assert!(reversed == expected);
    }

    /// Bytes used on the leaves, in percent.
    fn leaf_fill(&self) -> u64 {
        let report = self.tree.check(self.ctx()).unwrap();
        assert_eq!(report.problems, vec![]);
        report.leaf_bytes_used * 100 / (report.leaves * (self.ctx().pool.page_bytes() as u64 - 54))
    }
}

fn new_tree(core: &Core, id: u32) -> BTree {
    core.space.prepare(&core.ctx).unwrap();
    let segment = core.space.new_segment();
    let mut mtr = core.ctx.mtr_with(4096, 1).unwrap();
    let tree = BTree::create(core.space.clone(), &mut mtr, IndexId(id), segment).unwrap();
    mtr.commit();
    tree
}

/// Inserts or replaces, as a row operation does.
pub(super) fn put(ctx: &Context, tree: &BTree, key: &[u8], value: &[u8]) -> Result<()> {
    loop {
        let mut mtr = ctx.mtr()?;
        let leaf = tree.leaf_mut(&mut mtr, key)?;
        let need = match leaf.search(&mtr, key) {
            Ok(slot) => {
                let old = leaf.value(&mtr, slot).len();
                let growth = value.len().saturating_sub(old);
                if growth == 0 || leaf.fits_growth(&mtr, slot, growth) {
                    leaf.splice(&mut mtr, slot, 0, old, value);
                    mtr.commit();
                    return Ok(());
                }
                growth
            }
            Err(slot) => {
                if leaf.fits(&mtr, key.len(), value.len()) {
                    leaf.insert(&mut mtr, slot, key, value);
                    mtr.commit();
                    return Ok(());
                }
                key.len() + value.len()
            }
        };
        mtr.abandon();
        tree.make_room(ctx, key, need)?;
    }
}

fn delete(ctx: &Context, tree: &BTree, key: &[u8]) -> Result<bool> {
    let mut mtr = ctx.mtr()?;
    let leaf = tree.leaf_mut(&mut mtr, key)?;
    let Ok(slot) = leaf.search(&mtr, key) else { return Ok(false) };
    leaf.remove(&mut mtr, slot);
    let underfull = leaf.underfull(&mtr);
    mtr.commit();
    if underfull {
        tree.shrink(ctx, key)?;
    }
    Ok(true)
}

fn pairs_of(leaf: &Leaf<'_>) -> Pairs {
    let mut key = Vec::new();
    (0..leaf.len())
        .map(|slot| {
            leaf.key_into(slot, &mut key);
            (key.clone(), leaf.value(slot).to_vec())
        })
        .collect()
}

pub(super) fn forward(ctx: &Context, tree: &BTree, from: Seek<'_>) -> Pairs {
    let mut all = Vec::new();
    let mut leaf = tree.leaf(ctx, from).unwrap();
    let mut at_least = Vec::new();
    loop {
        // After a merge the next leaf may begin with keys already seen.
        all.extend(pairs_of(&leaf).into_iter().filter(|(key, _)| *key >= at_least));
        let Some(upper) = leaf.upper().map(<[u8]>::to_vec) else { return all };
        drop(leaf);
        leaf = tree.leaf(ctx, Seek::Covers(&upper)).unwrap();
        at_least = upper;
    }
}

pub(super) fn backward(ctx: &Context, tree: &BTree, from: Seek<'_>) -> Pairs {
    let mut all: Pairs = Vec::new();
    let mut leaf = tree.leaf(ctx, from).unwrap();
    let mut below: Option<Vec<u8>> = None;
    loop {
        let here = pairs_of(&leaf);
        all.extend(here.into_iter().rev().filter(|(key, _)| below.as_ref().is_none_or(|below| key < below)));
        let Some(lower) = leaf.lower().map(<[u8]>::to_vec) else { return all };
        drop(leaf);
        leaf = tree.leaf(ctx, Seek::Before(&lower)).unwrap();
        below = Some(lower);
    }
}

fn random_key(rng: &mut StdRng, longest: usize) -> Vec<u8> {
    let len = match rng.random_range(0..20) {
        0 => rng.random_range(0..=longest),
        1..5 => rng.random_range(0..40),
        _ => rng.random_range(0..5),
    };
    (0..len).map(|_| [0u8, 1, 2, 3, 200, 255][rng.random_range(0..6)]).collect()
}

fn random_value(rng: &mut StdRng, longest: usize) -> Vec<u8> {
    let len = if rng.random_range(0..20) == 0 { rng.random_range(0..=longest) } else { rng.random_range(0..60) };
    vec![rng.random(); len]
}

#[test]
fn random_operations_agree_with_a_map() {
    for (seed, page_size) in [(1, 4096), (2, 4096), (3, 8192), (4, 16384)] {
        let mut rng = StdRng::seed_from_u64(seed);
        let fixture = Fixture::with_page_size(page_size);
        let (key_max, value_max) =
            (BTree::max_key_bytes(page_size as usize), BTree::max_value_bytes(page_size as usize));
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for phase in 0..6 {
            let deletes = [0.1, 0.4, 0.9, 0.2, 0.7, 0.97][phase];
            for _ in 0..1500 {
                if rng.random_bool(deletes) {
                    let pivot = random_key(&mut rng, 20);
                    let Some(key) = model.range(pivot..).next().map(|(key, _)| key.clone()) else { continue };
                    assert!(fixture.delete(&key).unwrap());
                    model.remove(&key);
                } else {
                    let (key, value) = (random_key(&mut rng, key_max), random_value(&mut rng, value_max));
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
        assert_eq!(fixture.core.space.pages_of(fixture.tree.segment()), vec![fixture.tree.root()]);
    }
}

#[test]
fn the_longest_records_split_and_stay() {
    let fixture = Fixture::new();
    let (key_max, value_max) = (BTree::max_key_bytes(4096), BTree::max_value_bytes(4096));
    let mut rng = StdRng::seed_from_u64(77);
    let mut model = BTreeMap::new();
    for _ in 0..400 {
        let mut key = vec![1u8; key_max];
        (0..3).for_each(|_| key[rng.random_range(0..key_max)] = rng.random());
        let value = vec![rng.random(); value_max];
        fixture.put(&key, &value).unwrap();
        model.insert(key, value);
    }
    fixture.assert_is(&model);
    let too_long = vec![0; key_max + 1];
    assert!(matches!(fixture.tree.make_room(fixture.ctx(), &too_long, 10), Err(Error::KeyTooLong { .. })));
    assert!(matches!(fixture.tree.make_room(fixture.ctx(), b"k", 4000), Err(Error::RowTooLarge { .. })));
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

#[test]
fn ascending_insertions_within_prefixes_fill_pages() {
    let fixture = Fixture::new();
    let mut rng = StdRng::seed_from_u64(5);
    let mut next = [0u32; 20];
    for _ in 0..4000 {
        let district = rng.random_range(0..20u8);
        let order = next[district as usize];
        next[district as usize] += 1;
        for line in 0..rng.random_range(5..15u8) {
            let key = [&[0, 1, district][..], &order.to_be_bytes(), &[line]].concat();
            fixture.put(&key, b"an order line with a little of everything").unwrap();
        }
    }
    assert!(fixture.leaf_fill() >= 85, "{} %", fixture.leaf_fill());
}

#[test]
fn random_insertions_fill_pages_as_usual() {
    let fixture = Fixture::new();
    let mut rng = StdRng::seed_from_u64(6);
    (0..20_000).for_each(|_| fixture.put(&rng.random::<u64>().to_be_bytes(), b"a value of some bytes").unwrap());
    assert!((60..80).contains(&fixture.leaf_fill()), "{} %", fixture.leaf_fill());
}

#[test]
fn a_queue_gives_its_pages_back() {
    let fixture = Fixture::new();
    let mut most = 0;
    for n in 0..30_000u32 {
        fixture.put(&n.to_be_bytes(), b"queued").unwrap();
        if n >= 1000 {
            assert!(fixture.delete(&(n - 1000).to_be_bytes()).unwrap());
        }
        if n % 1000 == 0 {
            most = most.max(fixture.core.space.pages_of(fixture.tree.segment()).len());
        }
    }
    assert!(most < 30, "{most} pages for 1000 short records");
    assert_eq!(fixture.tree.check(fixture.ctx()).unwrap().problems, vec![]);
}

#[test]
fn built_trees_equal_inserted_ones() {
    let mut rng = StdRng::seed_from_u64(8);
    for (count, fill) in [(0, 90), (1, 90), (2, 50), (40, 100), (500, 100), (5000, 70), (20_000, 94)] {
        let fixture = Fixture::new();
        let mut model = BTreeMap::new();
        while model.len() < count {
            let key = if rng.random_bool(0.5) {
                rng.random::<u32>().to_be_bytes().to_vec()
            } else {
                random_key(&mut rng, 512)
            };
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
    assert!(matches!(builder.push(b"c", &[0; 1000]), Err(Error::RowTooLarge { .. })));
    builder.finish().unwrap();

    let fixture = Fixture::new();
    let mut builder = fixture.tree.builder(fixture.ctx(), 90, 0);
    (0..20_000u64).for_each(|n| builder.push(&(n * 3).to_be_bytes(), b"a value of some bytes").unwrap());
    builder.finish().unwrap();
    assert!((86..=91).contains(&fixture.leaf_fill()), "{} %", fixture.leaf_fill());
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

/// Threads insert and remove keys of their own while others scan both ways. Keys that are never removed must be in every
/// scan, and every scan must be in order.
#[test]
fn scans_stay_right_under_concurrent_change() {
    const WRITERS: u32 = 3;
    let fixture = Fixture::new();
    let permanent: Vec<Vec<u8>> = (0..300u32).map(|n| (n * 1000).to_be_bytes().to_vec()).collect();
    permanent.iter().for_each(|key| fixture.put(key, b"permanent").unwrap());
    let (done, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let models: Vec<BTreeMap<Vec<u8>, Vec<u8>>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|n| {
                scope.spawn({
                    let fixture = &fixture;
                    move || write_own_keys(fixture, n)
                })
            })
            .collect();
        for reader in 0..2 {
            let (fixture, permanent, done, rounds) = (&fixture, &permanent, &done, &rounds);
            scope.spawn(move || {
                while !done.load(Relaxed) || rounds.load(Relaxed) < 4 {
                    let mut pairs = if reader == 0 {
                        forward(fixture.ctx(), &fixture.tree, Seek::First)
                    } else {
                        backward(fixture.ctx(), &fixture.tree, Seek::Last)
                    };
                    if reader == 1 {
                        pairs.reverse();
                    }
                    assert!(pairs.windows(2).all(|pair| pair[0].0 < pair[1].0), "reader {reader}: out of order");
                    let seen = pairs.iter().filter(|(_, value)| value == b"permanent").map(|(key, _)| key);
                    assert!(seen.eq(permanent.iter()), "reader {reader}: lost a permanent key");
                    rounds.fetch_add(1, Relaxed);
                }
            });
        }
        let models = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        done.store(true, Relaxed);
        models
    });
    let mut model: BTreeMap<_, _> = permanent.into_iter().map(|key| (key, b"permanent".to_vec())).collect();
    models.into_iter().for_each(|own| model.extend(own));
    fixture.assert_is(&model);
}

fn write_own_keys(fixture: &Fixture, writer: u32) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rng = StdRng::seed_from_u64(u64::from(writer));
    let mut own = BTreeMap::new();
    for round in 0..4 {
        for _ in 0..2500 {
            // Never a multiple of 1000 (those are permanent), and of this writer's residue.
            let number = rng.random_range(0..75_000u32) * 4 + writer + 1;
            let key = if number.is_multiple_of(1000) { continue } else { number.to_be_bytes().to_vec() };
            if rng.random_bool(if round % 2 == 0 { 0.2 } else { 0.9 }) {
                let key = own.range(key..).next().map(|(key, _): (&Vec<u8>, &Vec<u8>)| key.clone());
                if let Some(key) = key {
                    assert!(fixture.delete(&key).unwrap());
                    own.remove(&key);
                }
            } else {
                let value = vec![writer as u8; rng.random_range(0..100)];
                fixture.put(&key, &value).unwrap();
                own.insert(key, value);
            }
        }
    }
    own
}

/// Long keys that differ at the end make long separators.
fn tall_key(n: u32) -> Vec<u8> {
    [&[7; 100][..], &n.to_be_bytes()].concat()
}

/// A tree of at least three levels, with its pages by level.
fn tall_tree() -> (Fixture, Vec<PageNo>) {
    let fixture = Fixture::new();
    (0..3000u32).for_each(|n| fixture.put(&tall_key(n), &[1; 100]).unwrap());
    let report = fixture.tree.check(fixture.ctx()).unwrap();
    assert!(report.levels >= 3);
    (fixture, report.pages)
}

/// Every way into the tree at `key`; all must come back, with the damage found or with an answer.
fn use_everything(fixture: &Fixture, key: &[u8]) -> Vec<Error> {
    let (ctx, tree) = (fixture.ctx(), &fixture.tree);
    let mut errors = Vec::new();
    for seek in [Seek::Covers(key), Seek::Before(key), Seek::First, Seek::Last] {
        errors.extend(tree.leaf(ctx, seek).err());
    }
    errors.extend(tree.leaf_mut(&mut ctx.mtr().unwrap(), key).err());
    errors.extend(tree.make_room(ctx, key, 1300).err());
    errors.extend(tree.shrink(ctx, key).err());
    errors.iter().for_each(|error| assert!(matches!(error, Error::CorruptPage { .. }), "{error}"));
    errors
}

/// Changes a page behind the pool's back, on its device: pages are checked when they are read.
fn damage(fixture: &Fixture, page: PageNo, op: &PageOp<'_>) {
    let (pool, data) = (&fixture.ctx().pool, &fixture.core.storage().data);
    pool.flush_all().unwrap();
    pool.evict_all_clean();
    let mut bytes = vec![0; pool.page_bytes()];
    let offset = u64::from(page.0) * bytes.len() as u64;
    data.read_at(offset, &mut bytes).unwrap();
    op.apply(&mut bytes).unwrap();
    crate::page::header::seal(&mut bytes, page);
    data.write_at(offset, &bytes, highwater_storage::Placement::Other).unwrap();
}

#[test]
fn damaged_links_are_found_and_end_no_one_up_in_a_loop() {
    let (fixture, pages) = tall_tree();
    let other = new_tree(&fixture.core, 101);
    let key = [0, 0, 0, 1];
    for child in [fixture.tree.root(), pages[1], other.root(), PageNo(1), PageNo(3_000_000), pages[pages.len() - 1]] {
        let root = fixture.ctx().pool.fix_s(fixture.tree.root()).unwrap();
        let right = Node::new(&root).child(0);
        drop(root);
        // The root's first child, or its first child's first child, leads elsewhere.
        for page in [fixture.tree.root(), right] {
            let guard = fixture.ctx().pool.fix_s(page).unwrap();
            let before = Node::new(&guard).child(0);
            drop(guard);
            if before == child {
                continue;
            }
            damage(&fixture, page, &PageOp::NodeSetChild { slot: 0, child });
            let errors = use_everything(&fixture, &key);
            // Another leaf of the same tree is noticed by the check only.
            let is_leaf_for_leaf = page != fixture.tree.root() && child == pages[pages.len() - 1];
            assert!(!errors.is_empty() || is_leaf_for_leaf, "page {page} leads to {child} unnoticed");
            assert!(!fixture.tree.check(fixture.ctx()).unwrap().problems.is_empty());
            damage(&fixture, page, &PageOp::NodeSetChild { slot: 0, child: before });
        }
    }
    assert_eq!(fixture.tree.check(fixture.ctx()).unwrap().problems, vec![]);
}

#[test]
fn pages_of_the_wrong_kind_are_found() {
    let (fixture, pages) = tall_tree();
    // The walk goes down first: these lead to the lowest keys.
    for page in [pages[1], pages[2]] {
        for (page_type, level, owner) in
            [(PageType::Leaf, 0, 55), (PageType::Undo, 0, 100), (PageType::Free, 0, 0), (PageType::Inner, 9, 100)]
        {
            let before = fixture.ctx().pool.fix_s(page).unwrap().to_vec();
            damage(&fixture, page, &PageOp::Format { page_type, level, owner });
            assert!(!use_everything(&fixture, &[0, 0, 0, 0]).is_empty(), "{page_type:?} {level} {owner}");
            assert!(!fixture.tree.check(fixture.ctx()).unwrap().problems.is_empty());
            let (page_type, level) = (PageType::from_u8(before[16]).unwrap(), before[17]);
            damage(&fixture, page, &PageOp::Format { page_type, level, owner: 100 });
            damage(&fixture, page, &PageOp::Write { offset: 24, bytes: &before[24..] });
        }
    }
    assert_eq!(fixture.tree.check(fixture.ctx()).unwrap().problems, vec![]);
}

#[test]
fn scrambled_pages_never_panic() {
    let (fixture, pages) = tall_tree();
    let mut rng = StdRng::seed_from_u64(21);
    for _ in 0..400 {
        let page = pages[rng.random_range(0..pages.len().min(40))];
        let before = fixture.ctx().pool.fix_s(page).unwrap().to_vec();
        let offset = if rng.random_bool(0.8) { rng.random_range(24..200) } else { rng.random_range(24..4000) };
        let bytes: [u8; 6] = rng.random();
        damage(&fixture, page, &PageOp::Write { offset, bytes: &bytes });
        let key = tall_key(rng.random_range(0..3000u32));
        let _ = fixture.tree.leaf(fixture.ctx(), Seek::Covers(&key)).map(|leaf| pairs_of(&leaf));
        let _ = fixture.tree.leaf(fixture.ctx(), Seek::Before(&key)).map(|leaf| pairs_of(&leaf));
        let _ = fixture.tree.make_room(fixture.ctx(), &key, 10);
        let _ = fixture.tree.check(fixture.ctx()).unwrap();
        damage(&fixture, page, &PageOp::Write { offset: 24, bytes: &before[24..] });
    }
}

#[test]
fn many_threads_share_a_pool_smaller_than_the_data() {
    let fixture = Fixture::new();
    let fixture = Arc::new(fixture);
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let fixture = fixture.clone();
            scope.spawn(move || {
                for n in 0..1500u32 {
                    let key = (n.wrapping_mul(2_654_435_761) ^ thread).to_be_bytes();
                    fixture.put(&[&key[..], &thread.to_be_bytes()].concat(), &[thread as u8; 200]).unwrap();
                }
            });
        }
    });
    let report = fixture.tree.check(fixture.ctx()).unwrap();
    assert_eq!((report.problems, report.records), (vec![], 6000));
    assert!(report.pages.len() > fixture.ctx().pool.frame_count());
}
