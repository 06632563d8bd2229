//! Trees under power cuts: what comes back is the tree as it was after some mini-transaction, no older than the last
//! one acknowledged.

use super::*;
use crate::btree::BTree;
use crate::config::Options;
use crate::db::core::Core;
use crate::space::ROOT_CATALOG;
use crate::testing::{open, small_options};
use crate::types::{IndexId, SegmentId};
use highwater_storage::StorageSet;
use std::collections::BTreeMap;

const SEGMENT: SegmentId = SegmentId(50);
const INDEX: IndexId = IndexId(7);

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A small generator of the test's own, so that a seed means the same for ever.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

fn create_tree(core: &Core) -> BTree {
    core.space.prepare(&core.ctx).unwrap();
    let mut mtr = core.ctx.mtr_with(4096, 1).unwrap();
    let tree = BTree::create(core.space.clone(), &mut mtr, INDEX, SEGMENT).unwrap();
    core.space.set_root(&mut mtr, ROOT_CATALOG, tree.root());
    mtr.commit();
    tree
}

fn open_tree(core: &Core) -> Option<BTree> {
    let root = core.space.root(ROOT_CATALOG)?;
    Some(BTree::open(core.space.clone(), INDEX, SEGMENT, root))
}

fn put(core: &Core, tree: &BTree, key: &[u8], value: &[u8]) -> Lsn {
    loop {
        let mut mtr = core.ctx.mtr().unwrap();
        let leaf = tree.leaf_mut(&mut mtr, key).unwrap();
        let fits = match leaf.search(&mtr, key) {
            Ok(slot) => {
                let old = leaf.value(&mtr, slot).len();
                let fits = value.len() <= old || leaf.fits_growth(&mtr, slot, value.len() - old);
                if fits {
                    leaf.splice(&mut mtr, slot, 0, old, value);
                }
                fits
            }
            Err(slot) => {
                let fits = leaf.fits(&mtr, key.len(), value.len());
                if fits {
                    leaf.insert(&mut mtr, slot, key, value);
                }
                fits
            }
        };
        if fits {
            return mtr.commit();
        }
        mtr.abandon();
        tree.make_room(&core.ctx, key, key.len() + value.len()).unwrap();
    }
}

fn delete(core: &Core, tree: &BTree, key: &[u8]) -> Lsn {
    let mut mtr = core.ctx.mtr().unwrap();
    let leaf = tree.leaf_mut(&mut mtr, key).unwrap();
    if let Ok(slot) = leaf.search(&mtr, key) {
        leaf.remove(&mut mtr, slot);
    }
    let underfull = leaf.underfull(&mtr);
    let lsn = mtr.commit();
    if underfull {
        tree.shrink(&core.ctx, key).unwrap();
    }
    lsn
}

fn dump(core: &Core, tree: &BTree) -> Model {
    let mut all = Model::new();
    let mut from: Option<Vec<u8>> = None;
    loop {
        let seek = from.as_deref().map_or(crate::btree::Seek::First, crate::btree::Seek::Covers);
        let leaf = tree.leaf(&core.ctx, seek).unwrap();
        let mut key = Vec::new();
        for slot in 0..leaf.len() {
            leaf.key_into(slot, &mut key);
            all.insert(key.clone(), leaf.value(slot).to_vec());
        }
        match leaf.upper() {
            None => return all,
            Some(upper) => from = Some(upper.to_vec()),
        }
    }
}

fn step(core: &Core, tree: &BTree, random: &mut Random, model: &mut Model) -> Lsn {
    let key = format!("key{:05}", random.below(700)).repeat(1 + random.below(3) as usize).into_bytes();
    if random.below(3) == 0 {
        model.remove(&key);
        delete(core, tree, &key)
    } else {
        let value = vec![random.below(256) as u8; random.below(300) as usize];
        let lsn = put(core, tree, &key, &value);
        model.insert(key, value);
        lsn
    }
}

/// Runs from whatever `storage` holds, cuts the power, and checks what a reopened database shows. Returns it.
fn run_and_cut(storage: StorageSet, options: &Options, seed: u64, mut model: Model) -> (StorageSet, Model) {
    let mut random = Random(seed);
    let core = open(storage, options.clone());
    let tree = open_tree(&core).unwrap_or_else(|| create_tree(&core));
    assert_eq!(dump(&core, &tree), model, "seed {seed}: the tree is not what the last cut left");
    let mut history = vec![(core.ctx.log.end_lsn(), model.clone())];
    let mut acknowledged = core.ctx.log.end_lsn();
    core.ctx.log.flush_to(acknowledged).unwrap();
    for _ in 0..random.below(400) {
        let lsn = step(&core, &tree, &mut random, &mut model);
        history.push((lsn, model.clone()));
        match random.below(40) {
            0..=3 => {
                core.ctx.log.flush_to(lsn).unwrap();
                acknowledged = lsn;
            }
            4 => assert!(core.ctx.pool.flush_oldest(Lsn(u64::MAX), 20).is_ok()),
            5 => checkpoint(&core),
            _ => {}
        }
    }
    let image = core.storage().cut(seed);
    let again = open(image, options.clone());
    let found = dump(&again, &open_tree(&again).unwrap());
    let possible = history.iter().filter(|(lsn, _)| *lsn >= acknowledged);
    let survived = possible.map(|(_, m)| m).find(|m| **m == found);
    assert!(survived.is_some(), "seed {seed}: the tree is no state the history had since LSN {acknowledged}");
    let problems = open_tree(&again).unwrap().check(&again.ctx).unwrap();
    assert!(problems.problems.is_empty(), "seed {seed}: {:?}", problems.problems);
    (again.storage().cut(seed ^ 1), found)
}

fn checkpoint(core: &Core) {
    let target = crate::pool::cleaner::checkpoint_target(&core.ctx.pool, &core.ctx.log);
    core.ctx.log.flush_to(target).unwrap();
    core.ctx.log.checkpoint(target).unwrap();
}

#[test]
fn a_tree_comes_back_as_it_was() {
    for seed in 0..60 {
        let (mut storage, mut model) = (StorageSet::memory(), Model::new());
        for life in 0..3 {
            (storage, model) = run_and_cut(storage, &small_options(), seed * 10 + life, model);
        }
    }
}
