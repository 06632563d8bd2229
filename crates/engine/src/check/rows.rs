//! The check of each row of a table.

use super::checker::FindingPlace;
use super::digest::Digest;
use super::walk::{TreeWalk, show_key};
use crate::btree::check::Visitor;
use crate::error::{Error, Result};
use crate::page::Node;
use crate::row::format::{DELETE_MARKED, OVERFLOW, OverflowRef, ROW_HEADER_BYTES, RowHeader};
use crate::space::layout::{EXTENT_PAGES, MAX_EXTENTS};
use crate::table::version::TableVersion;
use crate::txn::TableTrees;
use crate::txn::overflow_columns::{ColumnRef, OverflowRow};
use crate::types::{PageNo, RollPtr};
use std::collections::HashMap;

/// Looks at every row.
pub(super) struct RowVisitor<'w, 'a> {
    pub walk: TreeWalk<'w, 'a>,
    pub rows: &'w TableVersion,
    pub next_id: u64,
    pub digests: Vec<Digest>,
    /// Largest value in the auto-increment column.
    pub largest: Option<u64>,
    pub key: Vec<u8>,
    pub scratch: Vec<u8>,
}

impl Visitor for RowVisitor<'_, '_> {
    fn enter(&mut self, page: PageNo) -> Result<bool> {
        self.walk.enter(page)
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
    /// Checks the row whose key is in `key`; returns what is wrong with it.
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
        match self.read_overflow(payload) {
            Ok(Some(row)) => Ok(self.contents(&row, &header)),
            Ok(None) => Ok(Some("its overflow pages are damaged".to_string())),
            Err(Error::Corrupt(reason)) => Ok(Some(reason)),
            Err(error) => Err(error),
        }
    }

    fn header(&self, value: &[u8], header: &RowHeader) -> Option<String> {
        if header.flags & !(DELETE_MARKED | OVERFLOW) != 0 || value[1] != 0 || value[14..16] != [0, 0] {
            return Some("its header has unknown flag bits".to_string());
        }
        if header.trx_id.0 >= self.next_id {
            return Some(format!(
                "it belongs to transaction {}, but transaction ids are below {}",
                header.trx_id, self.next_id
            ));
        }
        // Undo that is purged may have been beyond the present end of the file: the pointer stays as it was.
        let page = header.roll_ptr.page();
        if header.roll_ptr != RollPtr::NONE && (page == PageNo(0) || page.0 >= MAX_EXTENTS * EXTENT_PAGES) {
            return Some(format!("its roll pointer leads to page {page}"));
        }
        None
    }

    /// The whole row; `None` if one of its chains is broken, which was reported then.
    fn read_overflow(&mut self, payload: &[u8]) -> Result<Option<Vec<u8>>> {
        let stored = OverflowRow::decode(payload)?;
        let place = FindingPlace { index: None, ..self.walk.place.clone() };
        self.walk.checker.report.counts.rows_overflow += 1;
        let (mut chains, mut is_whole) = (HashMap::new(), true);
        for ColumnRef { chain, .. } in stored.refs() {
            let mut bytes = Vec::new();
            // The others are checked nevertheless: their pages are in use.
            is_whole &= self.walk.checker.check_chain(chain, self.rows.overflow, &place, true, &mut bytes)?;
            chains.insert(chain.first, bytes);
        }
        let take = |chain: OverflowRef, out: &mut Vec<u8>| {
            *out = chains.remove(&chain.first).unwrap_or_default();
            Ok(())
        };
        if is_whole { self.rows.layouts.whole_row(payload, take).map(Some) } else { Ok(None) }
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
            if !self.rows.is_comparable(i) {
                continue;
            }
            self.scratch.clear();
            let made = match self.rows.entry(i, &self.key, row, &mut self.scratch) {
                Ok(made) => made,
                Err(error) => return Some(error.to_string()),
            };
            let entry_bytes = self.scratch.len();
            self.rows.covered(i, row, &mut self.scratch);
            let (entry, covered) = self.scratch.split_at(entry_bytes);
            digest.add(entry, made.prefix_bytes, covered);
        }
        None
    }
}
