//! The differing rows and entries of an index whose digests differ.
//!
//! Rules
//! 1. Only rows and entries in the digest's differing buckets are looked up in the other tree.
//! 2. At most [`MAX`] of each kind are named; lookups that end on a damaged page are counted, not named.

use super::bitmap::Bitmap;
use super::checker::{Checker, FindingPlace, Subject};
use super::digest::Digest;
use super::walk::show_key;
use crate::btree::check::{Visitor, reason_of};
use crate::btree::{BTree, Seek};
use crate::context::Context;
use crate::error::Result;
use crate::page::Node;
use crate::row::format::{EntryValue, ROW_HEADER_BYTES, RowHeader};
use crate::table::version::TableVersion;
use crate::txn::{TableTrees, Wanted, resolve};
use crate::types::PageNo;

/// Findings, and failed lookups, per index and direction.
const MAX_FINDINGS: usize = 100;

impl Checker<'_> {
    /// Finds the rows without entry and the entries without row of index `i`.
    pub(super) fn compare(&mut self, rows: &TableVersion, i: usize, digest: &Digest) -> Result<()> {
        debug_assert!(!digest.is_even(), "rule 1: an index is compared whose entries are those of its rows");
        let before = self.report.findings.len();
        let place = FindingPlace::of(rows.name(), rows.index_name(i));
        let subject = self.subject;
        let mut forward = Comparison::new(subject, rows, i, digest, Direction::RowsToEntries);
        rows.clustered.walk(subject.ctx, &mut forward)?;
        let to_entries = forward.outcome();
        let mut backward = Comparison::new(subject, rows, i, digest, Direction::EntriesToRows);
        rows.indexes[i].tree.walk(subject.ctx, &mut backward)?;
        let to_rows = backward.outcome();
        for (page, text) in to_entries.found.into_iter().chain(to_rows.found) {
            self.find(Some(page), &place, text);
        }
        let full = to_entries.is_full || to_rows.is_full;
        let failed = [
            (to_entries.failed, "rows cannot be compared with their entries"),
            (to_rows.failed, "entries cannot be compared with their rows"),
        ];
        for (count, text) in failed.into_iter().filter(|(count, _)| *count > 0) {
            let least = if count >= MAX_FINDINGS { "at least " } else { "" };
            self.find(None, &place, format!("{least}{count} {text}: a page on the path is damaged"));
        }
        if full || self.report.findings.len() == before {
            let text = format!("rows and entries differ: {} more rows than entries in all", digest.surplus);
            self.find(None, &place, text);
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    RowsToEntries,
    EntriesToRows,
}

/// The result of one direction of the comparison.
#[derive(Default)]
struct Outcome {
    found: Vec<(PageNo, String)>,
    failed: usize,
    /// There may be more.
    is_full: bool,
}

/// Goes through one tree and looks into the other.
struct Comparison<'c> {
    ctx: &'c Context,
    rows: &'c TableVersion,
    i: usize,
    digest: &'c Digest,
    direction: Direction,
    seen: Bitmap,
    outcome: Outcome,
    key: Vec<u8>,
    entry: Vec<u8>,
    row: Vec<u8>,
}

impl<'c> Comparison<'c> {
    fn new(subject: &Subject<'c>, rows: &'c TableVersion, i: usize, digest: &'c Digest, direction: Direction) -> Self {
        Comparison {
            ctx: subject.ctx,
            rows,
            i,
            digest,
            direction,
            seen: Bitmap::new(subject.space.page_count()),
            outcome: Outcome::default(),
            key: Vec::new(),
            entry: Vec::new(),
            row: Vec::new(),
        }
    }

    fn outcome(self) -> Outcome {
        let (found, failed) = (self.outcome.found.len(), self.outcome.failed);
        debug_assert!(found.max(failed) <= MAX_FINDINGS, "rule 2: {found} are named, {failed} are counted");
        self.outcome
    }

    fn tree(&self) -> &'c BTree {
        &self.rows.indexes[self.i].tree
    }

    /// Compares the row in `key` with its entry; returns what is missing.
    fn row(&mut self, value: &[u8]) -> Result<Option<String>> {
        let Ok(header) = RowHeader::decode(value) else { return Ok(None) };
        if header.is_delete_marked() || !self.read_row(&header, &value[ROW_HEADER_BYTES..])? {
            return Ok(None);
        }
        self.entry.clear();
        let made = self.rows.entry(self.i, &self.key, &self.row, &mut self.entry)?;
        let mut covered = Vec::new();
        self.rows.covered(self.i, &self.row, &mut covered);
        if !self.digest.differs_at(&self.entry, made.prefix_bytes, &covered) {
            return Ok(None);
        }
        let leaf = self.tree().leaf(self.ctx, Seek::Covers(&self.entry))?;
        let found = leaf.search(&self.entry).ok().map(|slot| EntryValue::decode(leaf.value(slot), self.entry.len()));
        Ok(match found {
            Some(Ok(found)) if found.delete_marked => Some("its entry is delete-marked"),
            Some(Ok(found)) if found.prefix_bytes == made.prefix_bytes && found.covered == covered => None,
            Some(Ok(found)) if found.prefix_bytes == made.prefix_bytes => Some("its entry covers other values"),
            Some(_) => Some("its entry does not decode"),
            None => Some("it has no entry"),
        }
        .map(|reason| format!("row {}: {reason}", show_key(&self.rows.key, &self.key))))
    }

    /// Reads the row into `row`; false if that is not possible (which the walk of the rows has reported).
    fn read_row(&mut self, header: &RowHeader, payload: &[u8]) -> Result<bool> {
        self.row.clear();
        self.row.extend_from_slice(payload);
        if header.is_overflow()
            && let Err(error) = resolve(self.ctx, self.rows, Wanted::ALL, header, &mut self.row)
        {
            return reason_of(error).map(|_| false);
        }
        Ok(self.rows.row(&self.row).verify().is_ok())
    }

    /// Compares the entry in `entry` with its row; returns what is wrong.
    fn entry(&mut self, value: &[u8]) -> Result<Option<String>> {
        let Ok(found) = EntryValue::decode(value, self.entry.len()) else { return Ok(None) };
        if found.delete_marked || !self.digest.differs_at(&self.entry, found.prefix_bytes, found.covered) {
            return Ok(None);
        }
        self.key.clear();
        self.key.extend_from_slice(&self.entry[found.prefix_bytes..]);
        let reason = self.row_of_entry(found.prefix_bytes)?;
        Ok(reason.map(|reason| {
            let columns = show_key(&self.rows.indexes[self.i].key, &self.entry);
            format!("entry {columns} of row {}: {reason}", show_key(&self.rows.key, &self.key))
        }))
    }

    fn row_of_entry(&mut self, prefix_bytes: usize) -> Result<Option<&'static str>> {
        let leaf = self.rows.clustered.leaf(self.ctx, Seek::Covers(&self.key))?;
        let Ok(slot) = leaf.search(&self.key) else { return Ok(Some("there is no such row")) };
        let value = leaf.value(slot).to_vec();
        drop(leaf);
        let Ok(header) = RowHeader::decode(&value) else { return Ok(None) };
        if header.is_delete_marked() {
            return Ok(Some("the row is deleted"));
        }
        if !self.read_row(&header, &value[ROW_HEADER_BYTES..])? {
            return Ok(None);
        }
        let mut expected = Vec::new();
        let made = self.rows.entry(self.i, &self.key, &self.row, &mut expected)?;
        let same = expected == self.entry && made.prefix_bytes == prefix_bytes;
        Ok((!same).then_some("the row has another entry"))
    }
}

impl Visitor for Comparison<'_> {
    fn enter(&mut self, page: PageNo) -> Result<bool> {
        Ok(self.seen.insert(page))
    }

    fn leaf(&mut self, page: PageNo, page_bytes: &[u8]) -> Result<()> {
        let leaf = Node::new(page_bytes);
        for slot in 0..leaf.count() {
            if self.outcome.found.len() >= MAX_FINDINGS || self.outcome.failed >= MAX_FINDINGS {
                self.outcome.is_full = true;
                return Ok(());
            }
            let compared = match self.direction {
                Direction::RowsToEntries => {
                    leaf.key_into(slot, &mut self.key);
                    self.row(leaf.value(slot))
                }
                Direction::EntriesToRows => {
                    leaf.key_into(slot, &mut self.entry);
                    self.entry(leaf.value(slot))
                }
            };
            match compared {
                Ok(None) => {}
                Ok(Some(text)) => self.outcome.found.push((page, text)),
                Err(error) => {
                    reason_of(error)?;
                    self.outcome.failed += 1;
                }
            }
        }
        Ok(())
    }

    /// The first walk has reported it.
    fn problem(&mut self, _page: PageNo, _reason: String) {}
}
