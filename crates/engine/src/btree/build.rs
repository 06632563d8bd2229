//! Building a tree from sorted records, page by page, from the leaves up.
//!
//! Rules
//! 1. The tree is empty and no other thread uses it until `finish` has returned. Each page is a separate
//!    mini-transaction; the root, formatted last, makes them a tree. After a crash, or if a builder is dropped, the
//!    pages are garbage in the tree's segment, which its owner drops.
//! 2. Pages are filled up to the fill factor; a page always ends at a record where its records and fences fit.
//! 3. Nothing is latched between two records.

use super::structure::{Missing, NodeBounds, NodeContents, TreeStructure};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::page::node::{CHILD_BYTES, common_prefix, record_bytes, shortest_separator};
use crate::page::op::pack_record;
use crate::types::PageNo;
use std::ops::Range;

/// Takes sorted records and makes a tree of them.
pub(crate) struct Builder<'t, 'c> {
    tree: &'t TreeStructure,
    ctx: &'c Context,
    levels: Vec<Pending>,
    target_bytes: usize,
    max_trx_id: u64,
    records: u64,
}

/// Records of one level that are not on a page yet. On an inner level each record is a child with its upper fence as
/// the key (the last one's may be infinite: `open_end`).
#[derive(Default)]
struct Pending {
    lower: Option<Vec<u8>>,
    bytes: Vec<u8>,
    records: Vec<PendingRecord>,
    key_bytes: usize,
    value_bytes: usize,
    shortest_key: usize,
    open_end: bool,
    /// Whether a page of this level was written.
    emitted: bool,
}

/// The place of a pending record.
#[derive(Clone, Copy)]
struct PendingRecord {
    at: usize,
    key_len: usize,
    value_len: usize,
}

impl Pending {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        let place = PendingRecord { at: self.bytes.len(), key_len: key.len(), value_len: value.len() };
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.records.push(place);
        self.key_bytes += key.len();
        self.value_bytes += value.len();
        self.shortest_key = if self.records.len() == 1 { key.len() } else { self.shortest_key.min(key.len()) };
    }

    fn key(&self, record: usize) -> &[u8] {
        let place = self.records[record];
        &self.bytes[place.at..place.at + place.key_len]
    }

    fn value(&self, record: usize) -> &[u8] {
        let place = self.records[record];
        &self.bytes[place.at + place.key_len..place.at + place.key_len + place.value_len]
    }

    fn last_key(&self) -> &[u8] {
        self.records.len().checked_sub(1).map_or(&[], |last| self.key(last))
    }

    /// Bytes all pending records and fences take on a page that ends at `upper`; never less than they really do.
    fn estimated_bytes(&self, upper: &[u8]) -> usize {
        let lower = self.lower.as_deref();
        let prefix_len = lower.map_or(0, |lower| common_prefix(lower, upper));
        let spared = prefix_len.min(self.shortest_key);
        let count = self.records.len();
        let fences = lower.map_or(0, <[u8]>::len) + upper.len();
        // Heads are part of the slots, but a short suffix does not use all of its own.
        let heads = count * 4.min(self.shortest_key - spared.min(self.shortest_key));
        fences + count * record_bytes(0, 0) + self.key_bytes + self.value_bytes - count * spared - heads
    }

    /// Exact bytes of the records `range` with a prefix of `prefix_len` bytes.
    fn exact_bytes(&self, range: Range<usize>, prefix_len: usize) -> usize {
        self.records[range]
            .iter()
            .map(|place| record_bytes(place.key_len.saturating_sub(prefix_len), place.value_len))
            .sum()
    }

    /// Forgets the first `count` records; what follows begins at `lower`.
    fn drop_front(&mut self, count: usize, lower: Vec<u8>) {
        let kept: Vec<_> =
            (count..self.records.len()).map(|at| (self.key(at).to_vec(), self.value(at).to_vec())).collect();
        let open_end = self.open_end;
        *self = Pending { lower: Some(lower), open_end, emitted: true, ..Pending::default() };
        kept.iter().for_each(|(key, value)| self.push(key, value));
    }

    /// The child of a record of an inner level.
    fn child(&self, record: usize) -> PageNo {
        PageNo(self.value(record).first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }
}

/// One page to be written: the first `take` pending records, and the upper fence they end at.
struct PageEmission {
    take: usize,
    upper: Option<Vec<u8>>,
}

impl<'t, 'c> Builder<'t, 'c> {
    /// Starts building an empty tree. Pages are filled to `fill_percent` (10 to 100); leaves get `max_trx_id`.
    pub(super) fn new(tree: &'t TreeStructure, ctx: &'c Context, fill_percent: usize, max_trx_id: u64) -> Self {
        let target_bytes = capacity_bytes(ctx) * fill_percent.clamp(10, 100) / 100;
        Builder { tree, ctx, levels: vec![Pending::default()], target_bytes, max_trx_id, records: 0 }
    }
}

fn capacity_bytes(ctx: &Context) -> usize {
    ctx.pool.page_bytes() - crate::page::node::SLOTS
}

impl Builder<'_, '_> {
    /// Adds the next record. Keys come in strictly ascending order.
    ///
    /// # Errors
    /// [`Error::Usage`] for a key out of order, [`Error::KeyTooLong`], [`Error::RowTooLarge`], a full disk.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check(key, value)?;
        let pending = &self.levels[0];
        if pending.records.len() > 1 {
            let separator = shortest_separator(pending.last_key(), key);
            let with_this = pending.estimated_bytes(separator) + record_bytes(key.len(), value.len());
            if with_this > self.target_bytes {
                let separator = separator.to_vec();
                self.emit_all(0, Some(separator))?;
            }
        }
        self.levels[0].push(key, value);
        self.records += 1;
        Ok(())
    }

    fn check(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let limits = self.tree.limits();
        let value_limit = limits.max_value_bytes(key.len());
        if key.len() > limits.max_key_bytes {
            return Err(Error::KeyTooLong {
                key: "a key".to_string(),
                bytes: key.len(),
                limit_bytes: limits.max_key_bytes,
            });
        }
        if value.len() > value_limit {
            return Err(Error::RowTooLarge { bytes: value.len(), limit_bytes: value_limit });
        }
        let pending = &self.levels[0];
        let below = if pending.records.is_empty() { pending.lower.as_deref() } else { Some(pending.last_key()) };
        let is_first_of_page = pending.records.is_empty();
        if below.is_some_and(|below| if is_first_of_page { key < below } else { key <= below }) {
            return Err(Error::Usage("records for an index build are not in ascending key order".to_string()));
        }
        Ok(())
    }

    /// Writes what is left and the root; returns how many records the tree has.
    ///
    /// # Errors
    /// A full disk, no free frame.
    pub(crate) fn finish(mut self) -> Result<u64> {
        let mut level = 0;
        while level < self.levels.len() {
            let is_top = level + 1 == self.levels.len() && !self.levels[level].emitted;
            self.levels[level].open_end = level > 0;
            if is_top && self.fits_root(level) {
                self.write_root(level)?;
                break;
            }
            self.emit_all(level, None)?;
            level += 1;
        }
        Ok(self.records)
    }

    /// Writes all pending records of a level, the last page ending at `upper`.
    fn emit_all(&mut self, level: usize, upper: Option<Vec<u8>>) -> Result<()> {
        while !self.levels[level].records.is_empty() {
            let emission = self.plan(level, upper.as_deref());
            self.emit(level, emission)?;
        }
        Ok(())
    }

    /// As many pending records as fit one page.
    fn plan(&self, level: usize, upper: Option<&[u8]>) -> PageEmission {
        let pending = &self.levels[level];
        let capacity = capacity_bytes(self.ctx);
        let count = pending.records.len();
        let mut take = count;
        loop {
            let end = self.end_of(level, take, upper);
            if take == 1 || self.page_bytes(level, take, end.as_deref()) <= capacity {
                let bytes = self.page_bytes(level, take, end.as_deref());
                debug_assert!(bytes <= capacity, "rule 2: {bytes} bytes are to fit {capacity}");
                return PageEmission { take, upper: end };
            }
            take -= 1;
        }
    }

    /// The upper fence of a page with the first `take` pending records.
    fn end_of(&self, level: usize, take: usize, upper: Option<&[u8]>) -> Option<Vec<u8>> {
        let pending = &self.levels[level];
        let is_all = take == pending.records.len();
        if level == 0 {
            return match is_all {
                true => upper.map(<[u8]>::to_vec),
                false => Some(shortest_separator(pending.key(take - 1), pending.key(take)).to_vec()),
            };
        }
        (!(is_all && pending.open_end)).then(|| pending.key(take - 1).to_vec())
    }

    /// Exact bytes of a page with the first `take` pending records.
    fn page_bytes(&self, level: usize, take: usize, upper: Option<&[u8]>) -> usize {
        let pending = &self.levels[level];
        let lower = pending.lower.as_deref();
        let prefix_len = lower.zip(upper).map_or(0, |(lower, upper)| common_prefix(lower, upper));
        let fences = lower.map_or(0, <[u8]>::len) + upper.map_or(0, <[u8]>::len);
        // On an inner page the last child has no record.
        let records = if level == 0 { take } else { take - 1 };
        fences + pending.exact_bytes(0..records, prefix_len)
    }

    /// Bounds and packed records of a page.
    fn contents(&self, level: usize, emission: &PageEmission) -> (NodeBounds, Vec<u8>) {
        let pending = &self.levels[level];
        let upper_child = if level == 0 { PageNo(0) } else { pending.child(emission.take - 1) };
        let bounds = NodeBounds { lower: pending.lower.clone(), upper: emission.upper.clone(), upper_child };
        let prefix_len = bounds.prefix_len();
        let records = if level == 0 { emission.take } else { emission.take - 1 };
        let mut packed = Vec::new();
        for record in 0..records {
            pack_record(&mut packed, &pending.key(record)[prefix_len..], pending.value(record));
        }
        (bounds, packed)
    }

    /// Writes one page and hands it to the level above.
    fn emit(&mut self, level: usize, emission: PageEmission) -> Result<()> {
        let (bounds, packed) = self.contents(level, &emission);
        let max_trx_id = if level == 0 { self.max_trx_id } else { 0 };
        let contents = NodeContents { level: level as u8, bounds: &bounds, packed: &packed, max_trx_id };
        let page = self.write_page(&contents)?;
        debug_assert!(emission.take > 0, "a page of level {level} takes no record");
        debug_assert!(
            emission.upper.is_some() || self.levels[level].records.len() == emission.take,
            "a page without end"
        );
        let upper = emission.upper.unwrap_or_default();
        self.levels[level].drop_front(emission.take, upper.clone());
        if level + 1 == self.levels.len() {
            self.levels.push(Pending::default());
        }
        self.add_child(level + 1, &upper, page)
    }

    fn write_page(&self, contents: &NodeContents<'_>) -> Result<PageNo> {
        loop {
            let mut mtr = self.tree.mtr(self.ctx, 1)?;
            let page = match self.tree.allocate(&mut mtr, None) {
                Ok(page) => page,
                Err(Missing::Failed(error)) => return Err(error),
                Err(_) => continue,
            };
            let latched = mtr.new_page(page);
            self.tree.write_node(&mut mtr, latched, contents);
            mtr.commit();
            self.ctx.pool.note_bulk_loaded(page);
            return Ok(page);
        }
    }

    fn add_child(&mut self, level: usize, upper: &[u8], child: PageNo) -> Result<()> {
        let pending = &self.levels[level];
        if pending.records.len() > 1 {
            let so_far = pending.estimated_bytes(pending.last_key());
            if so_far + record_bytes(upper.len(), CHILD_BYTES) > self.target_bytes {
                self.emit_all(level, None)?;
            }
        }
        self.levels[level].push(upper, &child.0.to_le_bytes());
        Ok(())
    }

    fn fits_root(&self, level: usize) -> bool {
        let take = self.levels[level].records.len();
        take == 0 || self.page_bytes(level, take, None) <= capacity_bytes(self.ctx)
    }

    fn write_root(&self, level: usize) -> Result<()> {
        let take = self.levels[level].records.len();
        if take == 0 {
            return Ok(());
        }
        let (bounds, packed) = self.contents(level, &PageEmission { take, upper: None });
        let max_trx_id = if level == 0 { self.max_trx_id } else { 0 };
        let mut mtr = self.tree.mtr(self.ctx, 0)?;
        let root = mtr.fix_x(self.tree.root())?;
        let contents = NodeContents { level: level as u8, bounds: &bounds, packed: &packed, max_trx_id };
        self.tree.write_node(&mut mtr, root, &contents);
        debug_assert!(
            crate::page::node::is_unbounded(mtr.page(root)),
            "rule 5 of the tree: a root is built with fences"
        );
        mtr.commit();
        Ok(())
    }
}
