//! Scans: cursors over the rows of a table, in key order or in the order of a secondary index, forward or backward.
//!
//! Rules
//! 1. A cursor holds no latch between calls. It delivers what its view sees (snapshot scans), the newest version,
//!    locked (locking scans; under SERIALIZABLE every scan is one), or the newest version as it is (dirty scans: READ
//!    UNCOMMITTED); its position is a key.
//! 2. A secondary entry delivers a row iff the entry is that of the row's visible (locked, newest) version, so a row
//!    that has moved in the index is delivered once; a dirty scan can meet it twice, or miss it.
//! 3. A snapshot scan under READ COMMITTED has a view of its own, or its statement's; under REPEATABLE READ it uses the
//!    transaction's.
//! 4. A cursor that delivers only keys does not look up the row if the entry certainly belongs to the visible version:
//!    no change of its leaf is newer than the view. Then, and only then, it also delivers the covered columns
//!    ([`RowCursor::covered`]).
//! 5. Pages are read ahead (`scan_read_ahead.rs`).
//! 6. The leaves of the next few rows of a batch of entries are prefetched ([`RowPrefetcher`]).
//! 7. Batches start small and grow to a leaf. Those of locking scans stay small, because their rows are locked before
//!    the caller requests them. With `one_by_one` a scan locks only requested rows.
//! 8. An entry that the caller's filter rejects delivers nothing: its row is neither looked up nor locked. The filter
//!    sees the key of the entry, which is the same in every version of the row that has the entry.

use super::row_prefetcher::RowPrefetcher;
use super::scan_batch::{Fill, Item, ItemKind, ReadMode, RowBatch, ScanPosition};
use super::scan_options::ScanOptions;
use super::versions::{StoredRow, VersionWalk, Visibility, resolve};
use super::view::ViewHandle;
use super::visible_entries::{LONG_WALK, VisibleEntryCache};
use crate::error::{Error, Result};
use crate::lock::{LockMode, LockWait};
use crate::row::format::RowHeader;
use crate::txn::expiry::is_expired;
use crate::txn::options::Isolation;
use crate::txn::overflow_columns::{Entries, Wanted};
use crate::txn::row_op::RowOp;
use crate::txn::system::TxnSystem;
use crate::txn::table_trees::TableTrees;
use crate::txn::transaction::Txn;
use crate::txn::write::unblock;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

const FIRST_BATCH: usize = 4;
const FIRST_LOCKING_BATCH: usize = 1;
const MAX_LOCKING_BATCH: usize = 16;

/// Whether an entry, of which it gets the key, may deliver its row; [`ControlFlow::Break`] ends the scan.
pub(crate) type EntryFilter<'f> = dyn FnMut(&[u8]) -> Result<ControlFlow<(), bool>> + 'f;

/// The place of the current row's payload.
enum Payload {
    InBatch(Range<usize>),
    InRow,
}

/// A running scan. It belongs to the transaction that opened it.
pub(crate) struct RowCursor {
    pub(super) table: Arc<dyn TableTrees>,
    pub(super) index: Option<usize>,
    pub(super) read_mode: ReadMode,
    lock_wait: Option<LockWait>,
    one_by_one: bool,
    txn_serial: u64,
    /// The time by which its rows are expired; `None`: they do not expire.
    pub(super) now: Option<i64>,
    /// Of a snapshot scan under READ COMMITTED.
    pub(super) view: Option<ViewHandle>,
    pub(super) position: ScanPosition,
    pub(super) batch: RowBatch,
    pub(super) batch_limit: usize,
    pub(super) remaining: usize,
    pub(super) is_limited: bool,
    pub(super) keys_only: bool,
    /// Columns that are read, if they are on overflow pages; `None`: all.
    pub(super) columns: Option<Box<[usize]>>,
    /// Pages that were read into the pool until the last batch, by any thread.
    pub(super) pages_read: u64,
    /// Leaves that the scan has left.
    pub(super) leaves: usize,
    /// Leaves that the scan has requested and not yet passed.
    pub(super) ahead: usize,
    row: Vec<u8>,
    entry: Vec<u8>,
    seen: VisibleEntryCache,
    rows_ahead: RowPrefetcher,
    key: Range<usize>,
    /// The covered columns of the current entry, if it was delivered without its row.
    covered: Option<Range<usize>>,
    /// Start of the row's key in `key`.
    prefix_bytes: usize,
    payload: Payload,
}

impl TxnSystem {
    /// Begins a scan of a table.
    ///
    /// # Errors
    /// [`Error::Usage`] for locks in a read-only transaction, or after a deadlock.
    pub(crate) fn scan(
        &self,
        txn: &mut Txn,
        table: Arc<dyn TableTrees>,
        options: &ScanOptions<'_>,
    ) -> Result<RowCursor> {
        txn.check_active()?;
        let lock = txn.lock_of_read(options.lock);
        let now = txn.time_for(self, &*table);
        let mut view = None;
        let read_mode = match txn.isolation {
            _ if lock != LockMode::None => {
                txn.prepare_locking_read(self)?;
                ReadMode::Locked(lock)
            }
            Isolation::ReadUncommitted => ReadMode::Newest,
            Isolation::RepeatableRead => {
                txn.open_view(self);
                ReadMode::Snapshot
            }
            Isolation::ReadCommitted | Isolation::Serializable => {
                view = Some(txn.open_read_view(self));
                ReadMode::Snapshot
            }
        };
        let has_view = view.is_some() || txn.view.is_some();
        debug_assert!(has_view || read_mode != ReadMode::Snapshot, "rule 3: a snapshot scan has no view");
        let first = if lock == LockMode::None { FIRST_BATCH } else { FIRST_LOCKING_BATCH };
        Ok(RowCursor {
            table,
            index: options.index,
            read_mode,
            lock_wait: options.lock_wait,
            one_by_one: options.one_by_one,
            txn_serial: txn.serial,
            now,
            view,
            position: ScanPosition::new(options.lower, options.upper, options.reverse),
            batch: RowBatch::default(),
            batch_limit: first,
            remaining: options.limit,
            is_limited: options.limit != usize::MAX,
            keys_only: options.keys_only,
            columns: options.columns.or(options.keys_only.then_some(&[])).map(Box::from),
            pages_read: self.ctx.stats.pages_read.get(),
            leaves: 0,
            ahead: 0,
            row: Vec::new(),
            entry: Vec::new(),
            seen: VisibleEntryCache::default(),
            rows_ahead: RowPrefetcher::default(),
            key: 0..0,
            covered: None,
            prefix_bytes: 0,
            payload: Payload::InRow,
        })
    }
}

impl RowCursor {
    /// The error of a damaged page, with the scan that met it.
    #[cold]
    pub(crate) fn name_damage(&self, error: Error) -> Error {
        match error {
            Error::CorruptPage { page, kind, reason } => {
                let index = self.index.map_or("PRIMARY", |i| self.table.index_name(i));
                let by = format!("met by a scan of table {}, index {index}", self.table.name());
                Error::damaged_page(page, kind, format!("{reason}; {by}"))
            }
            error => error,
        }
    }

    /// Moves to the next row; returns false at the end. `txn` is the transaction that opened the cursor.
    ///
    /// # Errors
    /// Lock waits, [`Error::WriteConflict`], I/O, corruption, another transaction's cursor.
    #[inline]
    pub(crate) fn next(&mut self, system: &TxnSystem, txn: &mut Txn) -> Result<bool> {
        self.next_where(system, txn, None)
    }

    /// As [`next`](Self::next), past the entries that the filter refuses (rule 8).
    ///
    /// # Errors
    /// As [`next`](Self::next); those of the filter.
    pub(crate) fn next_where(
        &mut self,
        system: &TxnSystem,
        txn: &mut Txn,
        filter: Option<&mut EntryFilter<'_>>,
    ) -> Result<bool> {
        self.check(txn)?;
        if self.remaining == 0 {
            return Ok(false);
        }
        let found = txn.with_lock_wait(self.lock_wait, |txn| self.advance(system, txn, filter));
        let found = found.map_err(|error| txn.after_read_error(system, error))?;
        if found {
            system.stats.rows_read.inc();
            self.remaining -= 1;
        }
        Ok(found)
    }

    /// Checks that the transaction has not ended, and is the one that opened the cursor.
    pub(super) fn check(&self, txn: &Txn) -> Result<()> {
        txn.check_active()?;
        if txn.serial != self.txn_serial {
            return Err(Error::Usage("the cursor belongs to another transaction".to_string()));
        }
        Ok(())
    }

    /// Reads by the view that is shared, if one is and it needs one; else shares its own.
    pub(crate) fn share_view(&mut self, shared: &mut Option<ViewHandle>) {
        debug_assert_eq!(self.position.leaf_records(), 0, "rule 1: a scan changes its view after it has read");
        match shared {
            Some(view) => self.view = self.view.is_some().then(|| view.clone()),
            None => shared.clone_from(&self.view),
        }
    }

    /// Whether it has copied rows that it has not delivered.
    pub(crate) fn is_ahead(&self) -> bool {
        !self.batch.is_delivered()
    }

    /// Whether it may have passed the place of a row that is inserted right after the current one: it has copied rows
    /// that it has not delivered, or has read a leaf to its end.
    pub(crate) fn may_be_past_new_rows(&self) -> bool {
        self.is_ahead() || self.position.has_left_leaf()
    }

    /// Key of the current row.
    pub(crate) fn key(&self) -> &[u8] {
        &self.batch.bytes[self.key.start + self.prefix_bytes..self.key.end]
    }

    /// Key of the current entry of a secondary scan: index columns, then the row's key.
    pub(crate) fn entry(&self) -> &[u8] {
        &self.batch.bytes[self.key.clone()]
    }

    /// The covered columns of the current entry, if it was delivered without its row (rule 4).
    pub(crate) fn covered(&self) -> Option<&[u8]> {
        self.covered.clone().map(|covered| &self.batch.bytes[covered])
    }

    /// Payload of the current row.
    pub(crate) fn payload(&self) -> &[u8] {
        match &self.payload {
            Payload::InBatch(range) => &self.batch.bytes[range.clone()],
            Payload::InRow => &self.row,
        }
    }

    fn advance(&mut self, system: &TxnSystem, txn: &mut Txn, mut filter: Option<&mut EntryFilter<'_>>) -> Result<bool> {
        loop {
            while self.batch.next < self.batch.items.len() {
                self.batch.next += 1;
                if let Some(filter) = &mut filter {
                    match self.ask(self.batch.next - 1, *filter)? {
                        ControlFlow::Continue(true) => {}
                        ControlFlow::Continue(false) => continue,
                        ControlFlow::Break(()) => return Ok(false),
                    }
                }
                if self.deliver(system, txn, self.batch.next - 1)? {
                    return Ok(true);
                }
            }
            if self.position.done {
                return Ok(false);
            }
            self.refill(system, txn)?;
        }
    }

    fn refill(&mut self, system: &TxnSystem, txn: &mut Txn) -> Result<()> {
        txn.check_interrupt()?;
        self.expect_leaves(system);
        let tree = self.index.map_or_else(|| self.table.clustered(), |i| self.table.index(i));
        loop {
            let visibility = visibility(self.read_mode, self.view.as_ref(), txn);
            let fill = Fill {
                system,
                txn,
                tree,
                clustered: self.index.is_none(),
                read_mode: self.read_mode,
                visibility,
                limit: self.batch_limit.min(self.remaining),
                keys_only: self.keys_only,
            };
            let Err(blocked) = self.position.fill(&mut self.batch, &fill) else { break };
            unblock(system, txn, &*self.table, (tree, self.position.conflict_key()), blocked)?;
        }
        let (rows, limit) = (self.batch.items.len(), self.batch_limit.min(self.remaining));
        debug_assert!(rows <= limit, "rule 7: {rows} rows are read, and maybe locked, of {limit}");
        self.batch_limit = match self.read_mode {
            ReadMode::Locked(_) if self.one_by_one => 1,
            ReadMode::Locked(_) => (self.batch_limit * 2).min(MAX_LOCKING_BATCH),
            ReadMode::Snapshot | ReadMode::Newest => self.batch_limit.saturating_mul(4),
        };
        self.rows_ahead.begin_batch();
        self.read_ahead(system);
        Ok(())
    }

    /// The verdict of the filter on item `n` of the batch.
    fn ask(&mut self, n: usize, filter: &mut EntryFilter<'_>) -> Result<ControlFlow<(), bool>> {
        let Item { key, kind, .. } = &self.batch.items[n];
        let ItemKind::Entry { .. } = kind else { return Ok(ControlFlow::Continue(true)) };
        let answer = filter(&self.batch.bytes[key.clone()])?;
        if answer.is_break() {
            self.remaining = 0;
        }
        Ok(answer)
    }

    /// Makes item `n` of the batch the current row, if there is a row for it.
    fn deliver(&mut self, system: &TxnSystem, txn: &mut Txn, n: usize) -> Result<bool> {
        let Item { key, value, kind } = &self.batch.items[n];
        debug_assert_eq!(n + 1, self.batch.next, "an item is delivered out of its turn");
        self.key = key.clone();
        self.covered = None;
        match *kind {
            ItemKind::Row(header) => {
                self.prefix_bytes = 0;
                let value = value.clone();
                self.deliver_row(system, txn, header, value)
            }
            ItemKind::Entry { prefix_bytes, certain } => {
                self.prefix_bytes = prefix_bytes;
                self.payload = Payload::InRow;
                if self.is_of_entry(certain) {
                    self.covered = Some(value.clone());
                    return Ok(true);
                }
                self.deliver_entry(system, txn, n, certain)
            }
        }
    }

    /// Whether an entry is delivered without its row: rule 4, and the row does not expire.
    #[inline]
    pub(super) fn is_of_entry(&self, certain: bool) -> bool {
        self.keys_only && certain && self.now.is_none()
    }

    fn deliver_row(
        &mut self,
        system: &TxnSystem,
        txn: &Txn,
        mut header: RowHeader,
        value: Range<usize>,
    ) -> Result<bool> {
        let visibility = visibility(self.read_mode, self.view.as_ref(), txn);
        let wanted = wanted(self.columns.as_deref(), self.index);
        debug_assert_eq!(
            visibility.is_some(),
            self.read_mode == ReadMode::Snapshot,
            "rule 1: a {:?} scan",
            self.read_mode
        );
        match visibility {
            Some(visibility) if !visibility.sees(header.trx_id) => {
                self.row.clear();
                self.row.extend_from_slice(&self.batch.bytes[value]);
                self.payload = Payload::InRow;
                let key = &self.batch.bytes[self.key.clone()];
                let row = StoredRow { wanted, now: self.now, ..StoredRow::new(&system.ctx, &*self.table, key) };
                Ok(row.visible_version(visibility, &mut header, &mut self.row)?.exists)
            }
            _ if header.is_delete_marked() => Ok(false),
            _ if is_expired(&*self.table, &header, &self.batch.bytes[value.clone()], self.now)? => Ok(false),
            _ if self.keys_only => Ok(true),
            None if header.is_overflow() && self.read_mode == ReadMode::Newest => {
                // Nothing keeps the overflow pages of this version: the row is read again with what they hold.
                self.payload = Payload::InRow;
                let key = &self.batch.bytes[self.key.clone()];
                let row = StoredRow { wanted, now: self.now, ..StoredRow::new(&system.ctx, &*self.table, key) };
                row.uncommitted(&mut self.row)
            }
            _ if header.is_overflow() => {
                self.row.clear();
                self.row.extend_from_slice(&self.batch.bytes[value]);
                self.payload = Payload::InRow;
                resolve(&system.ctx, &*self.table, wanted, &header, &mut self.row).map(|()| true)
            }
            _ => {
                self.payload = Payload::InBatch(value);
                Ok(true)
            }
        }
    }

    fn deliver_entry(&mut self, system: &TxnSystem, txn: &mut Txn, n: usize, certain: bool) -> Result<bool> {
        let way = match self.read_mode {
            ReadMode::Locked(_) => None,
            ReadMode::Snapshot | ReadMode::Newest => {
                self.rows_ahead.way(n, &self.batch, &system.ctx, self.table.clustered())
            }
        };
        let entry = &self.batch.bytes[self.key.clone()];
        let key = &entry[self.prefix_bytes..];
        let table = &*self.table;
        let wanted = wanted(self.columns.as_deref(), self.index);
        let row = StoredRow { way, wanted, now: self.now, ..StoredRow::new(&system.ctx, table, key) };
        let found = |exists| VersionWalk { exists, ..VersionWalk::default() };
        let walk = match self.read_mode {
            ReadMode::Snapshot => {
                let Some(visibility) = visibility(self.read_mode, self.view.as_ref(), txn) else {
                    return Err(Error::Usage("the cursor has lost its view".to_string()));
                };
                self.seen.renew(txn.undo.as_ref().map_or(0, |undo| undo.records));
                if self.seen.rules_out(key, entry) {
                    return Ok(false);
                }
                row.visible(visibility, &mut self.row)?
            }
            ReadMode::Locked(lock) => {
                found(RowOp { system, txn, table, key }.get_locked(lock, wanted, &mut self.row)?)
            }
            ReadMode::Newest => found(row.uncommitted(&mut self.row)?),
        };
        if walk.exists && !certain {
            self.entry.clear();
            table.entry(self.index.unwrap_or_default(), key, &self.row, &mut self.entry)?;
        }
        if walk.steps >= LONG_WALK && !certain {
            self.seen.note(key, walk.exists.then_some(&self.entry));
        }
        Ok(walk.exists && (certain || self.entry == entry))
    }
}

/// The columns that a scan reads from overflow pages: the requested ones and those of its index.
pub(super) fn wanted(columns: Option<&[usize]>, index: Option<usize>) -> Wanted<'_> {
    Wanted { columns, entries: index.map_or(Entries::None, Entries::Of) }
}

/// The visibility of a snapshot scan: by its own view or the transaction's.
pub(super) fn visibility<'v>(
    read_mode: ReadMode,
    own_view: Option<&'v ViewHandle>,
    txn: &'v Txn,
) -> Option<Visibility<'v>> {
    let handle = own_view.or(txn.view.as_ref()).filter(|_| read_mode == ReadMode::Snapshot)?;
    Some(Visibility { view: &handle.view, own: txn.id })
}
