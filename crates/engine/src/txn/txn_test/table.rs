//! The table of these tests, and its rows.

use crate::btree::BTree;
use crate::error::Result;
use crate::txn::{ColumnRewrite, IndexEntry, TableTrees, Tables};
use crate::types::{SegmentId, TableId, TxnId};
use std::sync::Arc;

pub(crate) const TABLE: TableId = TableId(9);
pub(crate) const OVERFLOW_SEGMENT: SegmentId = SegmentId(60);

/// Bytes of `rest` that the entries of the first index keep, at most.
const COVERED_BYTES: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) a: Vec<u8>,
    pub(crate) b: Vec<u8>,
    pub(crate) rest: Vec<u8>,
}

pub(crate) fn row(a: &str, b: &str, rest: &str) -> Row {
    Row { a: a.into(), b: b.into(), rest: rest.into() }
}

impl Row {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.a.len() as u8];
        out.extend_from_slice(&self.a);
        out.push(self.b.len() as u8);
        out.extend_from_slice(&self.b);
        out.extend_from_slice(&self.rest);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Row {
        let (a, tail) = bytes[1..].split_at(bytes[0] as usize);
        let (b, rest) = tail[1..].split_at(tail[0] as usize);
        Row { a: a.to_vec(), b: b.to_vec(), rest: rest.to_vec() }
    }

    /// What the entries of the first index keep of it: nothing of what may be on overflow pages.
    fn covered(&self) -> &[u8] {
        if self.rest.len() <= COVERED_BYTES { &self.rest } else { &[] }
    }

    fn column(&self, i: usize) -> &[u8] {
        if i == 0 { &self.a } else { &self.b }
    }
}

/// Where `rest`, the variable-length column 0, begins.
fn head_bytes(row: &[u8]) -> usize {
    let a = usize::from(row[0]);
    2 + a + usize::from(row[1 + a])
}

pub(crate) struct TestTable {
    pub(crate) trees: Vec<BTree>,
}

impl TableTrees for TestTable {
    fn id(&self) -> TableId {
        TABLE
    }
    fn name(&self) -> &str {
        "test"
    }
    fn clustered(&self) -> &BTree {
        &self.trees[0]
    }
    fn overflow_segment(&self) -> SegmentId {
        OVERFLOW_SEGMENT
    }
    fn index_count(&self) -> usize {
        self.trees.len() - 1
    }
    fn index(&self, i: usize) -> &BTree {
        &self.trees[i + 1]
    }
    fn is_before_index(&self, _: usize, _: TxnId) -> bool {
        false
    }
    fn index_name(&self, i: usize) -> &str {
        ["by_a", "by_b"][i]
    }
    fn check_entries(&self) -> Result<()> {
        Ok(())
    }
    fn entry(&self, i: usize, key: &[u8], row: &[u8], out: &mut Vec<u8>) -> Result<IndexEntry> {
        let row = Row::decode(row);
        out.extend_from_slice(row.column(i));
        out.push(0);
        let prefix_bytes = row.column(i).len() + 1;
        out.extend_from_slice(key);
        Ok(IndexEntry { prefix_bytes, unique: i == 1 && prefix_bytes > 1 })
    }
    fn covered(&self, i: usize, row: &[u8], out: &mut Vec<u8>) {
        if self.may_keep_key(i) {
            out.extend_from_slice(Row::decode(row).covered());
        }
    }
    fn entry_changes(&self, i: usize, old_row: &[u8], new_row: &[u8]) -> bool {
        let (old, new) = (Row::decode(old_row), Row::decode(new_row));
        old.column(i) != new.column(i) || self.may_keep_key(i) && old.covered() != new.covered()
    }
    fn may_keep_key(&self, i: usize) -> bool {
        i == 0
    }
    fn entry_needs(&self, _: usize, _: &[u8], _: u16) -> bool {
        false
    }
    fn column_of(&self, _: &[u8], number: u16) -> Option<usize> {
        (number == 0).then_some(2)
    }
    fn column_bytes<'r>(&'r self, row: &'r [u8], number: u16) -> &'r [u8] {
        if number == 0 { &row[head_bytes(row)..] } else { &[] }
    }
    fn rebuild_columns(&self, row: &[u8], column: &mut ColumnRewrite<'_>, out: &mut Vec<u8>) -> Result<()> {
        let (head, rest) = row.split_at(head_bytes(row));
        out.clear();
        out.extend_from_slice(head);
        column(0, rest, out);
        Ok(())
    }
    fn overflow_columns(&self, row: &[u8], moved: &[u16], room: usize) -> Vec<u16> {
        if row.len() > room && moved.is_empty() { vec![0] } else { Vec::new() }
    }
}

pub(crate) struct OneTable(pub(super) Arc<TestTable>);

impl Tables for OneTable {
    fn table(&self, id: TableId) -> Option<Arc<dyn TableTrees>> {
        (id == TABLE).then(|| self.0.clone() as Arc<dyn TableTrees>)
    }
}
