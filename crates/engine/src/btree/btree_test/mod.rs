//! Trees over a small pool in memory: against a map, under threads, and with damaged pages.

mod damage;
mod operations;
mod sibling;
mod threads;

use super::{BTree, Leaf, Seek};
use crate::context::Context;
use crate::db::open_parts::OpenParts;
use crate::error::{Error, Result};
use crate::page::header::PageType;
use crate::page::{Node, PageOp};
use crate::testing::{open, small_options, small_parts};
use crate::types::{IndexId, PageNo};
use fastrand::Rng;
use highwater_storage::StorageSet;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

pub(super) struct Fixture {
    pub parts: OpenParts,
    pub tree: BTree,
}

pub(super) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

impl Fixture {
    pub(super) fn new() -> Fixture {
        Fixture::over(small_parts())
    }

    pub(super) fn with_page_size(page_size: u64) -> Fixture {
        let buffer_pool_size = page_size * 256;
        Fixture::over(open(
            StorageSet::memory(),
            crate::config::Options {
                page_size: crate::config::PageSize::Bytes(page_size),
                buffer_pool_size,
                ..small_options()
            },
        ))
    }

    pub(super) fn over(parts: OpenParts) -> Fixture {
        let tree = new_tree(&parts, 100);
        Fixture { parts, tree }
    }

    /// The same for keys of up to this many bytes.
    pub(super) fn with_max_key_bytes(self, max_key_bytes: usize) -> Fixture {
        Fixture { parts: self.parts, tree: self.tree.with_max_key_bytes(max_key_bytes) }
    }

    pub(super) fn ctx(&self) -> &Context {
        &self.parts.ctx
    }

    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        put(self.ctx(), &self.tree, key, value)
    }

    pub(super) fn delete(&self, key: &[u8]) -> Result<bool> {
        delete(self.ctx(), &self.tree, key)
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
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
        assert_eq!(pages, self.parts.space.pages_of(self.tree.segment()));
        let expected: Pairs = model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        assert!(forward(self.ctx(), &self.tree, Seek::First) == expected);
        let mut reversed = backward(self.ctx(), &self.tree, Seek::Last);
        reversed.reverse();
        assert!(reversed == expected);
    }

    /// Bytes used on the leaves, in percent.
    pub(super) fn leaf_fill(&self) -> u64 {
        let report = self.tree.check(self.ctx()).unwrap();
        assert_eq!(report.problems, vec![]);
        report.leaf_bytes_used * 100 / (report.leaves * (self.ctx().pool.page_bytes() as u64 - 54))
    }
}

pub(super) fn new_tree(parts: &OpenParts, id: u32) -> BTree {
    parts.space.prepare(&parts.ctx).unwrap();
    let segment = parts.space.new_segment();
    let mut mtr = parts.ctx.mtr_with(4096, 1).unwrap();
    let tree = BTree::create(parts.space.clone(), &mut mtr, IndexId(id), segment).unwrap();
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

pub(super) fn delete(ctx: &Context, tree: &BTree, key: &[u8]) -> Result<bool> {
    let mut mtr = ctx.mtr()?;
    let leaf = tree.leaf_mut(&mut mtr, key)?;
    let Ok(slot) = leaf.search(&mtr, key) else { return Ok(false) };
    let before = leaf.used_bytes(&mtr);
    leaf.remove(&mut mtr, slot);
    let underfull = leaf.underfull(&mtr, before);
    mtr.commit();
    if underfull {
        tree.shrink(ctx, key)?;
    }
    Ok(true)
}

pub(super) fn pairs_of(leaf: &Leaf<'_>) -> Pairs {
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

pub(super) fn random_key(rng: &mut Rng, longest: usize) -> Vec<u8> {
    let len = match rng.usize(0..20) {
        0 => rng.usize(0..=longest),
        1..5 => rng.usize(0..40),
        _ => rng.usize(0..5),
    };
    (0..len).map(|_| [0u8, 1, 2, 3, 200, 255][rng.usize(0..6)]).collect()
}

pub(super) fn random_value(rng: &mut Rng, longest: usize) -> Vec<u8> {
    let len = if rng.usize(0..20) == 0 { rng.usize(0..=longest) } else { rng.usize(0..60) };
    vec![rng.u8(..); len]
}
