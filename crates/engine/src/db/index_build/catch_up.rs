//! Applying the logged changes of writers to the filled tree.
//!
//! Rules
//! 1. A piece of changes is applied in the order of its entries, which is the order of the tree. Of the changes of one
//!    entry the last one with a value, and the later ones, are applied (rule 1 of `txn/entry_log.rs`).
//! 2. While one piece is applied, writers log the next one. It is smaller if the builder is faster than the writers;
//!    otherwise they are slowed.
//! 3. A changed leaf gets the largest existing transaction id as its max_trx_id, because the log does not have the
//!    transactions of the changes.
//! 4. Unique: an entry that is inserted next to another one with the same columns, in any state, makes these columns
//!    *suspect*. At the end, when no writing transaction is left, the rows are checked. Every pair of equal rows is
//!    then suspect, because one of its entries was inserted after the other. Duplicates among the rows of the view are
//!    detected while the tree is filled.

use super::change_queue::ChangeQueue;
use crate::btree::Seek;
use crate::error::{Error, Result};
use crate::row::format::EntryValue;
use crate::table::Row;
use crate::table::version::TableVersion;
use crate::txn::{EntryChange, EntryLog, LoggedChange, LoggedChanges, StoredEntry, StoredRow, TableTrees, TxnSystem};
use crate::types::TxnId;
use std::collections::HashSet;

/// Bytes of noted changes that are moved to the temporary file, while the tree is filled.
const PIECE_BYTES: usize = if cfg!(test) { 1 << 10 } else { 1 << 20 };
/// Changes that are applied while writers wait.
pub(super) const LAST_CHANGES: usize = 64;
/// Suspect columns from which those that no longer are suspect are sorted out.
const MANY_SUSPECTS: usize = 1 << 14;

/// The changes that remain to be applied, and the suspect entries.
pub(super) struct CatchUp<'b> {
    pub(super) system: &'b TxnSystem,
    /// The table with the new index as its last one.
    pub(super) version: &'b TableVersion,
    pub(super) log: &'b EntryLog,
    queue: ChangeQueue<'b>,
    suspects: HashSet<Vec<u8>>,
    /// Changes of the piece before.
    piece_before: usize,
    /// After `DuplicateKey`: one of the rows that are equal.
    pub(super) duplicate: Option<Row>,
}

impl<'b> CatchUp<'b> {
    pub(super) fn new(
        system: &'b TxnSystem,
        version: &'b TableVersion,
        log: &'b EntryLog,
        queue: ChangeQueue<'b>,
    ) -> CatchUp<'b> {
        CatchUp { system, version, log, queue, suspects: HashSet::new(), piece_before: usize::MAX, duplicate: None }
    }

    /// Moves noted changes to the temporary file, if they are many.
    pub(super) fn keep_back(&mut self) -> Result<()> {
        if self.log.bytes() < PIECE_BYTES {
            return Ok(());
        }
        let noted = self.log.take_noted();
        self.system.stats.index_build_logged_changes.add(noted.count as u64);
        self.queue.push(&noted)
    }

    /// Applies the next piece; returns how many changes it had. None wait in the temporary file once a piece has at
    /// most [`LAST_CHANGES`].
    pub(super) fn round(&mut self) -> Result<usize> {
        if let Some(piece) = self.queue.pop()? {
            self.apply(&piece)?;
            return Ok(usize::MAX);
        }
        let piece = self.log.take_noted();
        self.system.stats.index_build_logged_changes.add(piece.count as u64);
        // Rule 2.
        if piece.count > LAST_CHANGES && piece.count > self.piece_before / 2 {
            self.log.slow_writers();
        }
        self.piece_before = piece.count;
        self.apply(&piece)?;
        Ok(piece.count)
    }

    pub(super) fn apply(&mut self, piece: &LoggedChanges) -> Result<()> {
        let mut changes = piece.decode()?;
        // Stable: those of one entry stay in their order.
        changes.sort_by(|a, b| a.entry.cmp(b.entry));
        for of_entry in changes.chunk_by(|a, b| a.entry == b.entry) {
            let from = of_entry.iter().rposition(|noted| noted.change != EntryChange::Mark).unwrap_or(0);
            of_entry[from..].iter().try_for_each(|noted| self.apply_change(*noted))?;
        }
        if self.suspects.len() > MANY_SUSPECTS {
            self.sort_out_suspects()?;
        }
        Ok(())
    }

    fn index(&self) -> usize {
        self.version.index_count() - 1
    }

    fn apply_change(&mut self, LoggedChange { entry, change }: LoggedChange<'_>) -> Result<()> {
        let stored = StoredEntry { system: self.system, tree: self.version.index(self.index()), entry, log: None };
        // Rule 3.
        let by = TxnId(self.system.next_id() - 1);
        match change {
            EntryChange::Put(value) => {
                stored.restore(by, value)?;
                let columns = &entry[..EntryValue::decode(value, entry.len())?.prefix_bytes];
                if self.is_unique() && !self.suspects.contains(columns) && self.entries_of(columns, 2)?.len() > 1 {
                    self.suspects.insert(columns.to_vec());
                }
                Ok(())
            }
            EntryChange::Mark => stored.set_mark(by, true).map(drop),
            EntryChange::Remove => stored.remove(),
        }
    }

    fn is_unique(&self) -> bool {
        self.version.definition.indexes[self.index()].unique
    }

    /// Keys of the rows that have an entry with these columns, delete-marked or not: up to `max`.
    fn entries_of(&self, columns: &[u8], max: usize) -> Result<Vec<Vec<u8>>> {
        let (tree, ctx) = (self.version.index(self.index()), &self.system.ctx);
        let (mut keys, mut entry, mut from) = (Vec::new(), Vec::new(), columns.to_vec());
        loop {
            let leaf = tree.leaf(ctx, Seek::Covers(&from))?;
            for slot in leaf.search(&from).unwrap_or_else(|slot| slot)..leaf.len() {
                leaf.key_into(slot, &mut entry);
                if !entry.starts_with(columns) || keys.len() == max {
                    return Ok(keys);
                }
                let value = EntryValue::decode(leaf.value(slot), entry.len())?;
                if value.prefix_bytes == columns.len() {
                    keys.push(entry[value.prefix_bytes..].to_vec());
                }
            }
            match leaf.upper() {
                Some(upper) if upper.starts_with(columns) || upper < columns => from = upper.to_vec(),
                _ => return Ok(keys),
            }
        }
    }

    /// Forgets suspect columns that one entry is left of: a pair would become suspect again.
    fn sort_out_suspects(&mut self) -> Result<()> {
        let mut left = HashSet::new();
        for columns in std::mem::take(&mut self.suspects) {
            if self.entries_of(&columns, 2)?.len() > 1 {
                left.insert(columns);
            }
        }
        self.suspects = left;
        // They are left for a reason that a longer wait does not change.
        if self.suspects.len() > MANY_SUSPECTS { self.check_unique() } else { Ok(()) }
    }

    /// The newest version of a row becomes `row`: its index columns, if there is one, and whether no other row may have
    /// them.
    fn newest_columns(&self, key: &[u8], row: &mut Vec<u8>) -> Result<Option<(Vec<u8>, bool)>> {
        if !StoredRow::new(&self.system.ctx, self.version, key).uncommitted(row)? {
            return Ok(None);
        }
        let mut entry = Vec::new();
        let made = self.version.entry(self.index(), key, row, &mut entry)?;
        entry.truncate(made.prefix_bytes);
        Ok(Some((entry, made.unique)))
    }

    /// Whether no two rows have the same columns (rule 4).
    ///
    /// # Errors
    /// [`Error::DuplicateKey`].
    pub(super) fn check_unique(&mut self) -> Result<()> {
        let mut row = Vec::new();
        for columns in std::mem::take(&mut self.suspects) {
            let mut equal = 0;
            for key in self.entries_of(&columns, usize::MAX)? {
                match self.newest_columns(&key, &mut row)? {
                    Some((found, true)) if found == columns => equal += 1,
                    // Rows with a NULL are equal to none.
                    Some((found, false)) if found == columns => break,
                    _ => {}
                }
                if equal > 1 {
                    self.duplicate = Some(self.version.layouts.to_row(&row)?);
                    let index = self.version.index_name(self.index()).to_string();
                    return Err(Error::DuplicateKey { table: self.version.name().to_string(), index });
                }
            }
        }
        Ok(())
    }
}
