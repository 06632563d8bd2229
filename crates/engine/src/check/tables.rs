//! Trees, rows, secondary entries, overflow chains.
//!
//! Rules
//! 1. One walk per tree. The walk of the rows adds up a digest for each index, the walk of an index takes its entries off it;
//!    what is left over differs.
//! 2. Delete-marked rows and entries count for nothing (purge takes them); they only have to be well-formed.

use super::report::CheckCounts;
use super::{Checker, Place};
use crate::btree::BTree;
use crate::btree::check::{TreeCounts, Visitor, reason_of};
use crate::error::{Error, Result};
use crate::page::{Node, header};
use crate::space::{ROOT_CATALOG, SEGMENT_CATALOG};
use crate::table::catalog::CATALOG_INDEX;
use crate::table::handle::TableShared;
use crate::table::key::KeyLayout;
use crate::table::schema::PRIMARY;
use crate::table::value::Value;
use crate::table::version::TableVersion;
use crate::txn::overflow::read_link;
use crate::txn::stored::{DELETE_MARKED, EntryValue, OVERFLOW, OverflowRef, ROW_HEADER_BYTES, RowHeader};
use crate::txn::{MAX_ROW_BYTES, TableTrees};
use crate::types::{PageNo, RollPtr, SegmentId};
use std::hash::Hasher;

/// Buckets of a digest.
const BUCKETS: usize = 1 << 14;

/// See [`super`].
pub(super) struct Digest {
    sums: Vec<u64>,
    /// Live rows less live entries.
    pub(super) surplus: i64,
}

impl Digest {
    fn new() -> Digest {
        Digest { sums: vec![0; BUCKETS], surplus: 0 }
    }

    fn add(&mut self, entry: &[u8], prefix_bytes: usize) {
        let hash = hash(entry, prefix_bytes);
        let sum = &mut self.sums[bucket(hash)];
        *sum = sum.wrapping_add(hash);
        self.surplus += 1;
    }

    fn take(&mut self, entry: &[u8], prefix_bytes: usize) {
        let hash = hash(entry, prefix_bytes);
        let sum = &mut self.sums[bucket(hash)];
        *sum = sum.wrapping_sub(hash);
        self.surplus -= 1;
    }

    /// Whether rows and entries are the same.
    fn is_even(&self) -> bool {
        self.surplus == 0 && self.sums.iter().all(|sum| *sum == 0)
    }

    /// Whether rows and entries differ where this entry is counted.
    pub(super) fn differs_at(&self, entry: &[u8], prefix_bytes: usize) -> bool {
        self.sums[bucket(hash(entry, prefix_bytes))] != 0
    }
}

fn hash(entry: &[u8], prefix_bytes: usize) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(entry);
    hasher.write_usize(prefix_bytes);
    hasher.finish()
}

fn bucket(hash: u64) -> usize {
    (hash >> 32) as usize % BUCKETS
}

/// A key in words: its values, or its bytes if they are none.
pub fn show_key(layout: &KeyLayout, key: &[u8]) -> String {
    match layout.decode(key) {
        Ok((values, _)) => {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            format!("({})", values.join(", "))
        }
        Err(_) => format!("{key:02x?}"),
    }
}

impl Checker<'_> {
    /// Walks the catalog's tree.
    pub(super) fn check_catalog(&mut self) -> Result<()> {
        let place = Place { table: None, index: Some("catalog".to_string()) };
        let tree = self.subject.catalog.tree();
        if self.subject.space.root(ROOT_CATALOG) != Some(tree.root()) || tree.id() != CATALOG_INDEX {
            self.find(Some(PageNo(0)), &place, "the file header names another root");
        }
        let walk = Walk { checker: self, segment: SEGMENT_CATALOG, place };
        let ctx = walk.checker.subject.ctx;
        let mut visitor = Plain(walk);
        let counts = tree.walk(ctx, &mut visitor)?;
        self.count_tree(&counts);
        Ok(())
    }

    /// Walks a table's trees and compares them.
    pub(super) fn check_table(&mut self, table: &TableShared) -> Result<()> {
        let rows = table.current.read().clone();
        let bound = table.entry.lock().record.auto_increment_bound;
        let mut digests = self.check_rows(&rows, bound)?;
        for (i, digest) in digests.iter_mut().enumerate() {
            self.check_index(&rows, i, digest)?;
            if !digest.is_even() {
                self.compare(&rows, i, digest)?;
            }
        }
        self.report.counts.tables += 1;
        Ok(())
    }

    fn count_tree(&mut self, tree: &TreeCounts) {
        let CheckCounts { trees, tree_levels_max, leaf_bytes_used, .. } = &mut self.report.counts;
        *trees += 1;
        *tree_levels_max = tree.levels.max(*tree_levels_max);
        *leaf_bytes_used += tree.leaf_bytes_used;
    }

    fn check_rows(&mut self, rows: &TableVersion, bound: u64) -> Result<Vec<Digest>> {
        let place = Place::of(rows.name(), PRIMARY);
        let tree: &BTree = &rows.clustered;
        let ctx = self.subject.ctx;
        let next_id = self.subject.txns.next_id();
        let mut visitor = RowVisitor {
            walk: Walk { checker: self, segment: tree.segment(), place },
            rows,
            next_id,
            digests: rows.indexes.iter().map(|_| Digest::new()).collect(),
            largest: None,
            key: Vec::new(),
            row: Vec::new(),
            scratch: Vec::new(),
        };
        let counts = tree.walk(ctx, &mut visitor)?;
        let RowVisitor { walk, digests, largest, .. } = visitor;
        if let Some(largest) = largest
            && largest >= bound
            && bound != u64::MAX
        {
            let text = format!("a row has the auto-increment number {largest}, the catalog's bound is {bound}");
            walk.checker.find(None, &walk.place, text);
        }
        self.count_tree(&counts);
        Ok(digests)
    }

    fn check_index(&mut self, rows: &TableVersion, i: usize, digest: &mut Digest) -> Result<()> {
        let tree: &BTree = &rows.indexes[i].tree;
        let place = Place::of(rows.name(), rows.index_name(i));
        let ctx = self.subject.ctx;
        let next_id = self.subject.txns.next_id();
        let mut visitor = EntryVisitor {
            walk: Walk { checker: self, segment: tree.segment(), place },
            rows,
            i,
            next_id,
            digest,
            key: Vec::new(),
            last: Vec::new(),
            last_prefix_bytes: None,
        };
        let counts = tree.walk(ctx, &mut visitor)?;
        self.count_tree(&counts);
        Ok(())
    }

    /// Claims the pages of a chain; with `out`, also appends its data. Stops (false, and a finding) where it is broken.
    /// `whole`: the chain's front has not been freed, so its length is known.
    pub(super) fn check_chain(
        &mut self,
        reference: OverflowRef,
        segment: SegmentId,
        place: &Place,
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        out.clear();
        let total = reference.total_bytes as usize;
        let mut next = reference.first;
        // Of a chain whose front is gone, the first page that is left says which one it is.
        let mut position = whole.then_some(0);
        while next != PageNo(0) {
            let before = out.len();
            if !self.claim(next, segment, place) {
                self.find_on_page(next, segment, place, "more than one overflow chain leads here");
                return Ok(false);
            }
            match read_link(self.subject.ctx, next, reference.stamp, position, out) {
                Ok((following, at)) if out.len() > before && out.len() <= total => {
                    (next, position) = (following, Some(at + 1));
                }
                Ok(_) => {
                    let text = format!("the overflow chain of a row of {total} bytes has {} here", out.len());
                    self.find_on_page(next, segment, place, text);
                    return Ok(false);
                }
                Err(error) => {
                    let reason = reason_of(error)?;
                    self.find_on_page(next, segment, place, reason);
                    return Ok(false);
                }
            }
        }
        if whole && out.len() != total {
            let text = format!("the overflow chain from here has {} bytes, its row {total}", out.len());
            self.find_on_page(reference.first, segment, place, text);
            return Ok(false);
        }
        Ok(true)
    }
}

/// What all walks do: claim pages, note problems.
struct Walk<'w, 'a> {
    checker: &'w mut Checker<'a>,
    segment: SegmentId,
    place: Place,
}

impl Walk<'_, '_> {
    fn enter(&mut self, page: PageNo) -> bool {
        self.checker.claim(page, self.segment, &self.place)
    }

    fn problem(&mut self, page: PageNo, reason: String) {
        if page.0 < self.checker.subject.space.page_count() {
            self.checker.find_on_page(page, self.segment, &self.place, reason);
        }
    }
}

struct Plain<'w, 'a>(Walk<'w, 'a>);

impl Visitor for Plain<'_, '_> {
    fn enter(&mut self, page: PageNo) -> Result<bool> {
        Ok(self.0.enter(page))
    }
    fn leaf(&mut self, _page: PageNo, _page_bytes: &[u8]) -> Result<()> {
        Ok(())
    }
    fn problem(&mut self, page: PageNo, reason: String) {
        self.0.problem(page, reason);
    }
}

/// Looks at every row.
struct RowVisitor<'w, 'a> {
    walk: Walk<'w, 'a>,
    rows: &'w TableVersion,
    next_id: u64,
    digests: Vec<Digest>,
    /// Largest value in the auto-increment column.
    largest: Option<u64>,
    key: Vec<u8>,
    row: Vec<u8>,
    scratch: Vec<u8>,
}

impl Visitor for RowVisitor<'_, '_> {
    fn enter(&mut self, page: PageNo) -> Result<bool> {
        Ok(self.walk.enter(page))
    }

    fn leaf(&mut self, page: PageNo, page_bytes: &[u8]) -> Result<()> {
        let leaf = Node::new(page_bytes);
        for slot in 0..leaf.count() {
            leaf.key_into(slot, &mut self.key);
            if let Some(reason) = self.row(leaf.value(slot))? {
                let text = format!("row {}: {reason}", show_key(&self.rows.key, &self.key));
                // Its overflow pages, if it has any, may not have been reached.
                self.walk.checker.damaged.insert(self.rows.overflow);
                self.walk.checker.find(Some(page), &self.walk.place, text);
            }
        }
        Ok(())
    }

    fn problem(&mut self, page: PageNo, reason: String) {
        self.walk.checker.damaged.insert(self.rows.overflow);
        self.walk.problem(page, reason);
    }
}

impl RowVisitor<'_, '_> {
    /// Checks the row whose key is in `key`; says what is wrong with it.
    fn row(&mut self, value: &[u8]) -> Result<Option<String>> {
        let header = match RowHeader::decode(value) {
            Ok(header) => header,
            Err(error) => return Ok(Some(error.to_string())),
        };
        if let Some(reason) = self.header(value, &header) {
            return Ok(Some(reason));
        }
        let payload = &value[ROW_HEADER_BYTES..];
        if !header.is_overflow() {
            return Ok(self.contents(payload, &header));
        }
        let mut row = std::mem::take(&mut self.row);
        let whole = self.read_overflow(payload, &mut row);
        let reason = match whole {
            Ok(true) => Ok(self.contents(&row, &header)),
            Ok(false) => Ok(Some("its overflow pages are damaged".to_string())),
            Err(Error::Corrupt(reason)) => Ok(Some(reason)),
            Err(error) => Err(error),
        };
        self.row = row;
        reason
    }

    fn header(&self, value: &[u8], header: &RowHeader) -> Option<String> {
        if header.flags & !(DELETE_MARKED | OVERFLOW) != 0 || value[1] != 0 || value[14..16] != [0, 0] {
            return Some("its header has bits of no meaning".to_string());
        }
        if header.trx_id.0 >= self.next_id {
            return Some(format!("it is of transaction {}, ids are below {}", header.trx_id, self.next_id));
        }
        let page = header.roll_ptr.page();
        let pages = self.walk.checker.subject.space.page_count();
        if header.roll_ptr != RollPtr::NONE && (page == PageNo(0) || page.0 >= pages) {
            return Some(format!("its roll pointer leads to page {page}"));
        }
        None
    }

    fn read_overflow(&mut self, payload: &[u8], row: &mut Vec<u8>) -> Result<bool> {
        let reference = OverflowRef::decode(payload)?;
        if reference.total_bytes as usize > MAX_ROW_BYTES {
            return Err(Error::Corrupt(format!("an overflow row of {} bytes", reference.total_bytes)));
        }
        let place = Place { index: None, ..self.walk.place.clone() };
        self.walk.checker.report.counts.rows_overflow += 1;
        self.walk.checker.check_chain(reference, self.rows.overflow, &place, true, row)
    }

    /// Checks the row itself and adds its entries to the digests.
    fn contents(&mut self, row: &[u8], header: &RowHeader) -> Option<String> {
        if let Err(error) = self.rows.row(row).verify() {
            return Some(error.to_string());
        }
        self.scratch.clear();
        self.rows.key_of(row, &mut self.scratch);
        if self.scratch != self.key {
            return Some(format!("its columns make the key {}", show_key(&self.rows.key, &self.scratch)));
        }
        if let Some(column) = self.rows.definition.auto_increment {
            self.largest = self.largest.max(self.rows.counted(row, column));
        }
        let counts = &mut self.walk.checker.report.counts;
        if header.is_delete_marked() {
            counts.rows_delete_marked += 1;
            return None;
        }
        counts.rows += 1;
        for (i, digest) in self.digests.iter_mut().enumerate() {
            self.scratch.clear();
            let entry = self.rows.entry(i, &self.key, row, &mut self.scratch);
            digest.add(&self.scratch, entry.prefix_bytes);
        }
        None
    }
}

/// Looks at every entry of an index.
struct EntryVisitor<'w, 'a> {
    walk: Walk<'w, 'a>,
    rows: &'w TableVersion,
    i: usize,
    next_id: u64,
    digest: &'w mut Digest,
    key: Vec<u8>,
    /// The live entry before.
    last: Vec<u8>,
    last_prefix_bytes: Option<usize>,
}

impl Visitor for EntryVisitor<'_, '_> {
    fn enter(&mut self, page: PageNo) -> Result<bool> {
        Ok(self.walk.enter(page))
    }

    fn leaf(&mut self, page: PageNo, page_bytes: &[u8]) -> Result<()> {
        let max_trx_id = header::max_trx_id(page_bytes);
        if max_trx_id >= self.next_id {
            let text = format!("it was changed by transaction {max_trx_id}, ids are below {}", self.next_id);
            self.walk.checker.find(Some(page), &self.walk.place, text);
        }
        let leaf = Node::new(page_bytes);
        for slot in 0..leaf.count() {
            leaf.key_into(slot, &mut self.key);
            if let Some(reason) = self.entry(leaf.value(slot)) {
                let text = format!("entry {}: {reason}", show_key(&self.rows.indexes[self.i].key, &self.key));
                self.walk.checker.find(Some(page), &self.walk.place, text);
            }
        }
        Ok(())
    }

    fn problem(&mut self, page: PageNo, reason: String) {
        self.walk.problem(page, reason);
    }
}

impl EntryVisitor<'_, '_> {
    /// Checks the entry whose key is in `key`; says what is wrong with it.
    fn entry(&mut self, value: &[u8]) -> Option<String> {
        let entry = match EntryValue::decode(value, self.key.len()) {
            Ok(entry) => entry,
            Err(error) => return Some(error.to_string()),
        };
        if value[0] & !DELETE_MARKED != 0 {
            return Some("its value has bits of no meaning".to_string());
        }
        let counts = &mut self.walk.checker.report.counts;
        if entry.delete_marked {
            counts.entries_delete_marked += 1;
            return self.malformed(entry.prefix_bytes);
        }
        counts.entries += 1;
        self.digest.take(&self.key, entry.prefix_bytes);
        let reason = self.duplicate(entry.prefix_bytes);
        std::mem::swap(&mut self.last, &mut self.key);
        self.last_prefix_bytes = Some(entry.prefix_bytes);
        // The caller shows the key.
        if reason.is_some() {
            self.key.clone_from(&self.last);
        }
        reason
    }

    /// Live entries need not be asked this: the digest tells.
    fn malformed(&self, prefix_bytes: usize) -> Option<String> {
        let whole = |layout: &KeyLayout, key: &[u8]| layout.decode(key).is_ok_and(|(_, used)| used == key.len());
        let (columns, key) = self.key.split_at(prefix_bytes);
        let good = whole(&self.rows.indexes[self.i].key, columns) && whole(&self.rows.key, key);
        (!good).then(|| "it does not decode".to_string())
    }

    /// In a unique index, whether the live entry before has the same columns, none of them NULL.
    fn duplicate(&self, prefix_bytes: usize) -> Option<String> {
        if !self.rows.definition.indexes[self.i].unique || self.last_prefix_bytes != Some(prefix_bytes) {
            return None;
        }
        let columns = &self.key[..prefix_bytes];
        if self.last.get(..prefix_bytes) != Some(columns) {
            return None;
        }
        let (values, _) = self.rows.indexes[self.i].key.decode(columns).ok()?;
        (!values.contains(&Value::Null)).then(|| "the index is unique, but two rows have this entry".to_string())
    }
}
