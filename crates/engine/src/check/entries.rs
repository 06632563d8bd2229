//! The check of each entry of a secondary index. A digest of all live entries is compared with the rows' afterwards.

use super::digest::Digest;
use super::walk::{TreeWalk, show_key};
use crate::btree::check::Visitor;
use crate::error::Result;
use crate::page::{Node, header};
use crate::row::format::{DELETE_MARKED, EntryValue};
use crate::table::key::KeyLayout;
use crate::table::value::Value;
use crate::table::version::TableVersion;
use crate::types::PageNo;

pub(super) struct EntryVisitor<'w, 'a> {
    pub walk: TreeWalk<'w, 'a>,
    pub rows: &'w TableVersion,
    pub i: usize,
    pub next_id: u64,
    pub digest: &'w mut Digest,
    pub key: Vec<u8>,
    /// Key of the previous live entry.
    pub last: Vec<u8>,
    pub last_prefix_bytes: Option<usize>,
}

impl Visitor for EntryVisitor<'_, '_> {
    fn enter(&mut self, page: PageNo) -> Result<bool> {
        self.walk.enter(page)
    }

    fn leaf(&mut self, page: PageNo, page_bytes: &[u8]) -> Result<()> {
        let max_trx_id = header::max_trx_id(page_bytes);
        if max_trx_id >= self.next_id {
            let text =
                format!("it was changed by transaction {max_trx_id}, but transaction ids are below {}", self.next_id);
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
    /// The problem with the entry whose key is `self.key`, if any.
    fn entry(&mut self, value: &[u8]) -> Option<String> {
        let entry = match EntryValue::decode(value, self.key.len()) {
            Ok(entry) => entry,
            Err(error) => return Some(error.to_string()),
        };
        if value[0] & !DELETE_MARKED != 0 {
            return Some("its value has unknown flag bits".to_string());
        }
        let counts = &mut self.walk.checker.report.counts;
        if entry.delete_marked {
            counts.entries_delete_marked += 1;
            return self.malformed(entry.prefix_bytes);
        }
        counts.entries += 1;
        let covered = match self.rows.is_comparable(self.i) {
            true => {
                self.digest.take(&self.key, entry.prefix_bytes, entry.covered);
                None
            }
            false => self.covered(entry.covered),
        };
        let reason = covered.or_else(|| self.duplicate(entry.prefix_bytes));
        std::mem::swap(&mut self.last, &mut self.key);
        self.last_prefix_bytes = Some(entry.prefix_bytes);
        // The caller's message names the key.
        if reason.is_some() {
            self.key.clone_from(&self.last);
        }
        reason
    }

    /// The problem with the covered columns of a live entry. Only for an index that is not compared with the rows; for
    /// other indexes the digest checks them.
    fn covered(&self, covered: &[u8]) -> Option<String> {
        self.rows.indexes[self.i].covered.decode(covered).err().map(|error| error.to_string())
    }

    /// The problem with the key of a delete-marked entry. The digest checks the keys of live entries.
    fn malformed(&self, prefix_bytes: usize) -> Option<String> {
        let whole = |layout: &KeyLayout, key: &[u8]| layout.decode(key).is_ok_and(|(_, used)| used == key.len());
        let (columns, key) = self.key.split_at(prefix_bytes);
        let good = whole(&self.rows.indexes[self.i].key, columns) && whole(&self.rows.key, key);
        (!good).then(|| "it does not decode".to_string())
    }

    /// In a unique index, an error if the previous live entry has the same columns, none of them NULL.
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
