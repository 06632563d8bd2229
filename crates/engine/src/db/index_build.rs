//! Filling a new index from the rows of its table, in bounded memory.
//!
//! The rows are read in the order of the primary key; their entries are gathered and sorted. If all of them fit
//! [`batch_bytes`], the tree is built from its leaves up. Otherwise batch after batch is inserted in order: each goes
//! through the tree once from left to right, so pages are read and written in order, and nothing is written but the
//! tree itself.
//!
//! Rules
//! 1. The table's lock keeps writers out; the index is not in use. So nothing here is undone or locked: on an error the
//!    caller drops the whole tree.
//! 2. Every row visible now gets its entry. Older versions get none: snapshots from before the build do not use the
//!    index.
//! 3. Uniqueness is checked at the end, on neighbours in the finished tree.
//! 4. While pages are missing from the pool, the next leaves are read ahead: of the rows as those of any scan, and of
//!    the tree for the check of uniqueness. Not where a batch goes through the tree: the pool is full of pages that the
//!    batch has changed, so leaves that were read ahead would be evicted first, and be read twice.
//!
//! Differs from InnoDB: no merge sort through a temporary file. That needs the space of the index twice and a second
//! way to disk beside the page space; this reads tree pages again for each batch.

use super::scan::Range;
use super::write_txn::WriteTxn;
use crate::btree::{BTree, LeafMut, Seek, Walk};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{MTR_REDO_BYTES, Mtr};
use crate::page::PageBytes;
use crate::table::Table;
use crate::table::value::Value;
use crate::table::version::TableVersion;
use crate::txn::stored::{ENTRY_VALUE_BYTES, entry_value};
use crate::txn::{LockMode, TableTrees};

/// Bytes of entries held in memory at once, at least and at most.
const LEAST_BATCH_BYTES: usize = 1 << 20;
pub(super) const MOST_BATCH_BYTES: usize = 64 << 20;
/// The part of the buffer pool's size that they take beside the pool.
const POOL_PART: usize = 4;
/// How full the pages of a tree built from its leaves are: some room for later insertions.
const FILL_PERCENT: usize = 90;
/// Redo of one mini-transaction of insertions.
const REDO_BYTES: usize = MTR_REDO_BYTES / 2;

/// Bytes of entries held in memory at once.
pub(super) fn batch_bytes(ctx: &Context) -> usize {
    let pool_bytes = ctx.pool.frame_count() * ctx.pool.page_bytes();
    (pool_bytes / POOL_PART).clamp(LEAST_BATCH_BYTES, MOST_BATCH_BYTES)
}

/// Fills the last index of `version` from the rows of `table`, with up to `batch_bytes` of entries in memory.
pub(crate) fn build(
    ctx: &Context,
    mut txn: WriteTxn,
    table: &Table,
    version: &TableVersion,
    batch_bytes: usize,
) -> Result<()> {
    let index = version.index_count() - 1;
    let (read, _) = txn.use_for_scan(table, None)?;
    let all = Range {
        low: Vec::new(),
        high: None,
        reverse: false,
        lock: LockMode::None,
        limit: usize::MAX,
        keys_only: false,
    };
    let mut cursor = txn.cursor(&read, None, &all)?;
    let mut batch = Batch::default();
    let mut key = Vec::new();
    while txn.next(&mut cursor)? {
        let row = cursor.payload();
        key.clear();
        version.key_of(row, &mut key);
        version.check_keys(&key, row)?;
        batch.add(version, index, &key, row);
        if batch.memory_bytes() >= batch_bytes {
            batch.insert(ctx, version.index(index))?;
        }
    }
    batch.finish(ctx, version.index(index))?;
    txn.rollback()?;
    if version.definition.indexes[index].unique { check_unique(ctx, version, index) } else { Ok(()) }
}

/// A key in the batch's bytes.
#[derive(Clone, Copy)]
struct Key {
    /// Its first eight bytes as a number, zeros behind a shorter key: decides most comparisons.
    word: u64,
    /// A batch has a few MiB more than [`MOST_BATCH_BYTES`] at most.
    start: u32,
    len: u32,
    /// Length of the index columns.
    prefix_bytes: u32,
}

impl Key {
    #[inline]
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..][..self.len as usize]
    }

    fn value(self) -> [u8; ENTRY_VALUE_BYTES] {
        entry_value(self.prefix_bytes as usize)
    }
}

/// Entries on their way into the tree.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    keys: Vec<Key>,
    /// Whether an earlier batch is in the tree.
    inserted: bool,
}

impl Batch {
    fn add(&mut self, version: &TableVersion, index: usize, key: &[u8], row: &[u8]) {
        let start = self.bytes.len();
        let entry = version.entry(index, key, row, &mut self.bytes);
        let len = self.bytes.len() - start;
        let word = self.bytes[..].word_at(start, len.min(size_of::<u64>()));
        self.keys.push(Key { word, start: start as u32, len: len as u32, prefix_bytes: entry.prefix_bytes as u32 });
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.keys.len() * size_of::<Key>()
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.keys.sort_unstable_by(|a, b| a.word.cmp(&b.word).then_with(|| a.of(bytes).cmp(b.of(bytes))));
    }

    /// Puts the last batch into the tree.
    fn finish(&mut self, ctx: &Context, tree: &BTree) -> Result<()> {
        if self.inserted {
            return self.insert(ctx, tree);
        }
        self.sort();
        let mut builder = tree.builder(ctx, FILL_PERCENT, 0);
        for key in &self.keys {
            builder.push(key.of(&self.bytes), &key.value())?;
        }
        builder.finish().map(drop)
    }

    /// Puts a batch into the tree and forgets it.
    fn insert(&mut self, ctx: &Context, tree: &BTree) -> Result<()> {
        self.sort();
        self.inserted = true;
        let Batch { bytes, keys, .. } = self;
        let mut done = 0;
        while done < keys.len() {
            let inserted = insert_into_leaf(ctx, tree, bytes, &keys[done..])?;
            if inserted == 0 {
                let key = keys[done].of(bytes);
                tree.make_room(ctx, key, key.len() + ENTRY_VALUE_BYTES)?;
            }
            done += inserted;
        }
        bytes.clear();
        keys.clear();
        Ok(())
    }
}

/// Inserts the first of `keys` that belong to one leaf and fit it; returns how many.
fn insert_into_leaf(ctx: &Context, tree: &BTree, bytes: &[u8], keys: &[Key]) -> Result<usize> {
    let (mut mtr, leaf) = leaf_to_fill(ctx, tree, keys[0].of(bytes))?;
    let (mut inserted, mut redo_bytes) = (0, 0);
    for entry in keys {
        let (key, value) = (entry.of(bytes), entry.value());
        let beyond = leaf.upper(&mtr).is_some_and(|upper| key >= upper);
        if beyond || redo_bytes > REDO_BYTES || !leaf.fits(&mtr, key.len(), value.len()) {
            break;
        }
        match leaf.search(&mtr, key) {
            Err(slot) => leaf.insert(&mut mtr, slot, key, &value),
            Ok(_) => {
                mtr.commit();
                return Err(Error::Corrupt("two rows of a table have the same primary key".to_string()));
            }
        }
        redo_bytes += key.len() + value.len() + 64;
        inserted += 1;
    }
    if inserted == 0 {
        mtr.abandon();
    } else {
        tree.note_room(&mut mtr, leaf.latched);
        mtr.commit();
    }
    Ok(inserted)
}

/// The leaf that covers `key`, and its extent map, which will say how much room it has left.
fn leaf_to_fill<'c>(ctx: &'c Context, tree: &BTree, key: &[u8]) -> Result<(Mtr<'c>, LeafMut)> {
    loop {
        let mut mtr = ctx.mtr()?;
        let leaf = tree.leaf_mut(&mut mtr, key)?;
        match tree.keep_free_class(&mut mtr, leaf.latched) {
            Ok(()) => return Ok((mtr, leaf)),
            Err(map) => {
                mtr.abandon();
                ctx.pool.load(map)?;
            }
        }
    }
}

/// Looks for neighbours with the same index columns, none of them NULL.
fn check_unique(ctx: &Context, version: &TableVersion, index: usize) -> Result<()> {
    let (tree, layout) = (version.index(index), &version.indexes[index].key);
    let (mut last, mut key, mut next) = (Vec::new(), Vec::new(), None::<Vec<u8>>);
    let mut walk = Walk::new(ctx, tree);
    loop {
        let seek = next.as_deref().map_or(Seek::First, Seek::Covers);
        walk.go_on(ctx, seek, Seek::Last);
        let leaf = tree.leaf(ctx, seek)?;
        for slot in 0..leaf.len() {
            leaf.key_into(slot, &mut key);
            let prefix = match *leaf.value(slot) {
                [_, low, high] => usize::from(u16::from_le_bytes([low, high])).min(key.len()),
                _ => key.len(),
            };
            key.truncate(prefix);
            if key == last && !layout.decode(&key)?.0.contains(&Value::Null) {
                let index = version.index_name(index).to_string();
                return Err(Error::DuplicateKey { table: version.name().to_string(), index });
            }
            std::mem::swap(&mut key, &mut last);
        }
        match leaf.upper() {
            Some(upper) => next = Some(upper.to_vec()),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "index_build_test.rs"]
mod tests;
