//! Trees, rows, secondary entries, overflow chains.
//!
//! Rules
//! 1. One walk per tree. The walk of the rows adds up a digest for each index, the walk of an index subtracts its
//!    entries from it; the remainder shows differences.
//! 2. Delete-marked rows and entries are not counted (purge removes them); they only have to be well-formed.

use super::checker::{Checker, FindingPlace};
use super::digest::Digest;
use super::entries::EntryVisitor;
use super::report::{CheckCounts, NotCompared};
use super::rows::RowVisitor;
use super::walk::TreeWalk;
use crate::btree::BTree;
use crate::btree::check::{TreeCounts, Visitor, reason_of};
use crate::error::Result;
use crate::row::format::OverflowRef;
use crate::table::definition::PRIMARY;
use crate::table::handle::TableShared;
use crate::table::version::TableVersion;
use crate::txn::TableTrees;
use crate::txn::overflow::read_link;
use crate::types::{PageNo, SegmentId};

impl Checker<'_> {
    /// Walks the catalog's trees and compares them.
    pub(super) fn check_catalog(&mut self) -> Result<()> {
        let trees = self.subject.catalog.trees();
        for (which, tree) in trees.each() {
            let place = FindingPlace::of_tree(which.name);
            if self.subject.space.root(which.root_slot) != Some(tree.root()) {
                self.find(Some(PageNo(0)), &place, "the file header names another root");
            }
            let walk = TreeWalk { checker: self, segment: which.segment, place };
            let ctx = walk.checker.subject.ctx;
            let mut visitor = Plain(walk);
            let counts = tree.walk(ctx, &mut visitor)?;
            self.count_tree(&counts);
        }
        trees.each_given_up(|(which, error)| {
            let place = FindingPlace::of_tree(which.name);
            let text = format!("{error}; the other tree has the same records; this one is made again at an opening");
            self.damaged.insert(which.segment);
            self.find(error.page(), &place, text);
        });
        if let Some(key) = trees.difference() {
            self.find(
                None,
                &FindingPlace::of_tree("catalog"),
                format!("the two trees of the catalog differ in the record {key:02x?}"),
            );
        }
        Ok(())
    }

    /// Walks a table's trees and compares them.
    pub(super) fn check_table(&mut self, table: &TableShared) -> Result<()> {
        let rows = table.current.read().clone();
        let bound = table.entry.lock().record.auto_increment_bound;
        let mut digests = self.check_rows(&rows, bound)?;
        for (i, digest) in digests.iter_mut().enumerate() {
            self.check_index(&rows, i, digest)?;
            if let Some(collation) = rows.indexes[i].key.unknown_collation() {
                self.report.not_compared.push(NotCompared {
                    table: rows.name().to_string(),
                    index: rows.index_name(i).to_string(),
                    collation: collation.name().to_string(),
                });
                continue;
            }
            if !digest.is_even() {
                self.compare(&rows, i, digest)?;
            }
        }
        self.report.counts.tables += 1;
        Ok(())
    }

    pub(super) fn count_tree(&mut self, tree: &TreeCounts) {
        let CheckCounts { trees, tree_levels_max, leaf_bytes_used, .. } = &mut self.report.counts;
        *trees += 1;
        *tree_levels_max = tree.levels.max(*tree_levels_max);
        *leaf_bytes_used += tree.leaf_bytes_used;
    }

    fn check_rows(&mut self, rows: &TableVersion, bound: u64) -> Result<Vec<Digest>> {
        let place = FindingPlace::of(rows.name(), PRIMARY);
        let tree: &BTree = &rows.clustered;
        let ctx = self.subject.ctx;
        let next_id = self.subject.txns.next_id();
        let mut visitor = RowVisitor {
            walk: TreeWalk { checker: self, segment: tree.segment(), place },
            rows,
            next_id,
            digests: rows.indexes.iter().map(|_| Digest::new()).collect(),
            largest: None,
            key: Vec::new(),
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
        let place = FindingPlace::of(rows.name(), rows.index_name(i));
        let ctx = self.subject.ctx;
        let next_id = self.subject.txns.next_id();
        let mut visitor = EntryVisitor {
            walk: TreeWalk { checker: self, segment: tree.segment(), place },
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
        place: &FindingPlace,
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        out.clear();
        let total = reference.total_bytes as usize;
        let mut next = reference.first;
        // If the front of a chain is freed, the first page left says which one it is.
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
                    let text = format!("the overflow chain of {total} bytes has {} here", out.len());
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
            let text = format!("the overflow chain from here has {} bytes, its row says {total}", out.len());
            self.find_on_page(reference.first, segment, place, text);
            return Ok(false);
        }
        Ok(true)
    }
}

struct Plain<'w, 'a>(TreeWalk<'w, 'a>);

impl Visitor for Plain<'_, '_> {
    fn enter(&mut self, page: PageNo) -> Result<bool> {
        self.0.enter(page)
    }
    fn leaf(&mut self, _page: PageNo, _page_bytes: &[u8]) -> Result<()> {
        Ok(())
    }
    fn problem(&mut self, page: PageNo, reason: String) {
        self.0.problem(page, reason);
    }
}
