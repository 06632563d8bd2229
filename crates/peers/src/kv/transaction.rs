//! Rows and index entries read and written in a transaction of a key-value engine.
//!
//! Rule: a scan that fetches rows by their keys (by an index, or to lock them) reads [`FIRST_KEYS`] keys first and then
//! twice as many each time, up to [`MAX_KEYS`]: a scan that ends early has read few too many. In a snapshot every
//! entry has its row.

use super::catalog::KvTable;
use super::{KvRead, KvWrite, Range};
use crate::failure::{duplicate, failed};
use crate::layout::{Layout, RowBytes};
use highwater::ValueRef;
use highwater_bench::store::{Read, RowChanges, RowView, Scan, Transaction};
use highwater_bench::{Error, Result};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Keys that are read before the first row is fetched.
const FIRST_KEYS: usize = 16;
/// Keys that are read at once at most.
const MAX_KEYS: usize = 256;
/// Most columns of a table: a `u64` has a bit for each changed column.
const MAX_COLUMNS: usize = 64;

/// Buffers of a client.
#[derive(Default)]
pub(crate) struct Scratch {
    key: Vec<u8>,
    other_key: Vec<u8>,
    old: Vec<u8>,
    new: Vec<u8>,
    keys: Vec<u8>,
    ends: Vec<usize>,
}

type Table<T> = Arc<KvTable<T>>;

/// A snapshot, or a transaction that may write.
pub(crate) struct KvTxn<'s, T> {
    txn: T,
    scratch: &'s mut Scratch,
}

impl<'s, T: KvRead> KvTxn<'s, T> {
    pub(super) fn new(txn: T, scratch: &'s mut Scratch) -> KvTxn<'s, T> {
        KvTxn { txn, scratch }
    }
}

fn get<R: KvRead, T>(
    read: &mut R,
    scratch: &mut Scratch,
    table: &Table<R::Tree>,
    key: &[ValueRef<'_>],
    look: impl FnOnce(&RowBytes<'_>) -> T,
) -> Result<Option<T>> {
    scratch.key.clear();
    table.layout.push_parts(None, key, &mut scratch.key)?;
    let key = &scratch.key;
    read.get(&table.rows, key, |value| look(&RowBytes { layout: &table.layout, key, value }))
}

/// Makes `key` the first key after all that begin with it; empty if there is none.
fn after_prefix(key: &mut Vec<u8>) {
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            return;
        }
    }
}

/// The bounds of a scan, in `key` and `other_key`.
fn bounds(layout: &Layout, index: Option<usize>, scan: &Scan<'_>, scratch: &mut Scratch) -> Result<()> {
    let n = scan.prefix.len();
    for (bound, key) in [(scan.from, &mut scratch.key), (scan.to, &mut scratch.other_key)] {
        key.clear();
        layout.push_parts(index, scan.prefix, key)?;
        if let Some(value) = bound {
            layout.push_parts_from(index, n, &[value], key)?;
        }
    }
    after_prefix(&mut scratch.other_key);
    Ok(())
}

fn scan<R: KvRead>(
    read: &mut R,
    scratch: &mut Scratch,
    table: &Table<R::Tree>,
    scan: &Scan<'_>,
    visit: impl FnMut(&RowBytes<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let layout = &table.layout;
    let index = scan.index.map(|name| layout.index(name)).transpose()?;
    bounds(layout, index, scan, scratch)?;
    let limit = if scan.limit == 0 { usize::MAX } else { scan.limit };
    if index.is_some() || scan.for_update {
        return scan_keys(read, scratch, table, index, scan, limit, visit);
    }
    let mut visit = visit;
    let range = Range { from: &scratch.key, to: &scratch.other_key, reverse: scan.reverse, newest: false };
    let mut left = limit;
    read.scan(&table.rows, &range, |key, value| {
        left -= 1;
        match visit(&RowBytes { layout, key, value }) {
            ControlFlow::Continue(()) if left > 0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    })
}

/// Reads keys, some at a time, and fetches their rows.
fn scan_keys<R: KvRead>(
    read: &mut R,
    scratch: &mut Scratch,
    table: &Table<R::Tree>,
    index: Option<usize>,
    wanted: &Scan<'_>,
    limit: usize,
    mut visit: impl FnMut(&RowBytes<'_>) -> ControlFlow<()>,
) -> Result<()> {
    let layout = &table.layout;
    let tree = index.map_or(&table.rows, |index| &table.entries[index]);
    let (mut left, mut batch) = (limit, FIRST_KEYS);
    while left > 0 {
        let Scratch { key, other_key, new, keys, ends, .. } = &mut *scratch;
        keys.clear();
        ends.clear();
        let (range, max) = (Range { from: key, to: other_key, reverse: wanted.reverse, newest: wanted.for_update }, {
            if limit == usize::MAX { batch } else { left.min(MAX_KEYS) }
        });
        read.scan(tree, &range, |found, _| {
            keys.extend_from_slice(found);
            ends.push(keys.len());
            if ends.len() < max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let mut start = 0;
        for end in ends.iter() {
            let found = &keys[start..*end];
            start = *end;
            new.clear();
            match index {
                Some(index) => layout.push_primary_of(index, found, new),
                None => new.extend_from_slice(found),
            }
            let show = |value: &[u8]| visit(&RowBytes { layout, key: new, value });
            let shown = match wanted.for_update {
                true => read.get_for_update(&table.rows, new, show)?,
                false => read.get(&table.rows, new, show)?,
            };
            match shown {
                Some(ControlFlow::Break(())) => return Ok(()),
                Some(ControlFlow::Continue(())) => left -= 1,
                // Another transaction removed it since its key was read.
                None if wanted.for_update => {}
                None => return Err(failed(&layout.name, "an entry of an index leads to no row")),
            }
        }
        if ends.len() < max {
            return Ok(());
        }
        let last = &keys[ends.iter().rev().nth(1).map_or(0, |end| *end)..];
        let bound = if wanted.reverse { &mut *other_key } else { &mut *key };
        bound.clear();
        bound.extend_from_slice(last);
        if !wanted.reverse {
            bound.push(0);
        }
        batch = (batch * 2).min(MAX_KEYS);
    }
    Ok(())
}

impl<R: KvRead> Read for KvTxn<'_, R> {
    type Table = Table<R::Tree>;
    type Row<'r> = RowBytes<'r>;

    fn get<T>(
        &mut self,
        table: &Self::Table,
        key: &[ValueRef<'_>],
        look: impl FnOnce(&RowBytes<'_>) -> T,
    ) -> Result<Option<T>> {
        get(&mut self.txn, self.scratch, table, key, look)
    }

    fn scan(
        &mut self,
        table: &Self::Table,
        wanted: &Scan<'_>,
        visit: impl FnMut(&RowBytes<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        scan(&mut self.txn, self.scratch, table, wanted, visit)
    }

    fn finish(self) -> Result<()> {
        self.txn.finish()
    }
}

impl<W: KvWrite> KvTxn<'_, W> {
    /// The next number of the auto-increment column.
    fn next_number(&mut self, table: &Table<W::Tree>, column: usize) -> Result<u64> {
        if table.next.load(Relaxed) == 0 {
            let mut last = 0;
            let all = Range { from: b"", to: b"", reverse: true, newest: true };
            self.txn.scan(&table.rows, &all, |key, value| {
                last = RowBytes { layout: &table.layout, key, value }.number(column) as u64;
                ControlFlow::Break(())
            })?;
            let _ = table.next.compare_exchange(0, last + 1, Relaxed, Relaxed);
        }
        Ok(table.next.fetch_add(1, Relaxed))
    }

    /// Reads the row of `scratch.key` into `scratch.old`; false when there is none.
    fn read_old(&mut self, table: &Table<W::Tree>, key: &[ValueRef<'_>]) -> Result<bool> {
        let Scratch { key: bytes, old, .. } = &mut *self.scratch;
        bytes.clear();
        table.layout.push_parts(None, key, bytes)?;
        let found = self.txn.get_for_update(&table.rows, bytes, |value| {
            old.clear();
            old.extend_from_slice(value);
        })?;
        Ok(found.is_some())
    }
}

impl<W: KvWrite> Transaction for KvTxn<'_, W> {
    type Changes<'c> = Changes<'c>;

    fn insert(&mut self, table: &Self::Table, row: &[ValueRef<'_>]) -> Result<Option<u64>> {
        let layout = &table.layout;
        let given = layout.auto_increment.filter(|column| row[*column].is_null());
        let number = given.map(|column| self.next_number(table, column)).transpose()?;
        let mut filled = [ValueRef::Null; MAX_COLUMNS];
        let row = match given.zip(number) {
            Some((column, number)) => {
                filled[..row.len()].copy_from_slice(row);
                filled[column] = number.into();
                &filled[..row.len()]
            }
            None => row,
        };
        let Scratch { key, other_key, new, .. } = &mut *self.scratch;
        key.clear();
        new.clear();
        layout.push_primary(row, key)?;
        layout.push_value(row, new)?;
        if !self.txn.insert(&table.rows, key, new)? {
            return Err(duplicate(&layout.name));
        }
        for (n, tree) in table.entries.iter().enumerate() {
            other_key.clear();
            layout.push_entry(n, &RowBytes { layout, key, value: new }, other_key);
            self.txn.put(tree, other_key, b"")?;
        }
        Ok(number)
    }

    fn update(&mut self, table: &Self::Table, key: &[ValueRef<'_>], set: &[(usize, ValueRef<'_>)]) -> Result<bool> {
        self.modify(table, key, |_, changes| set.iter().for_each(|(column, value)| changes.put(*column, *value)))
    }

    fn modify<F>(&mut self, table: &Self::Table, key: &[ValueRef<'_>], mut change: F) -> Result<bool>
    where
        F: FnMut(&RowBytes<'_>, &mut Changes<'_>),
    {
        if !self.read_old(table, key)? {
            return Ok(false);
        }
        let layout = &table.layout;
        let Scratch { key, other_key, old, new, keys, .. } = &mut *self.scratch;
        new.clear();
        new.extend_from_slice(old);
        let before = RowBytes { layout, key, value: old };
        let mut changes = Changes { layout, value: new, columns: 0, failure: None };
        change(&before, &mut changes);
        let columns = changes.columns;
        changes.failure.map_or(Ok(()), Err)?;
        self.txn.put(&table.rows, key, new)?;
        let after = RowBytes { layout, key, value: new };
        for (n, tree) in table.entries.iter().enumerate().filter(|(n, _)| layout.columns_of(*n) & columns != 0) {
            let (old_entry, new_entry) = (&mut *other_key, &mut *keys);
            old_entry.clear();
            new_entry.clear();
            layout.push_entry(n, &before, old_entry);
            layout.push_entry(n, &after, new_entry);
            if old_entry != new_entry {
                self.txn.delete(tree, old_entry)?;
                self.txn.put(tree, new_entry, b"")?;
            }
        }
        Ok(true)
    }

    fn delete(&mut self, table: &Self::Table, key: &[ValueRef<'_>]) -> Result<bool> {
        if !self.read_old(table, key)? {
            return Ok(false);
        }
        let layout = &table.layout;
        let Scratch { key, other_key, old, .. } = &mut *self.scratch;
        self.txn.delete(&table.rows, key)?;
        for (n, tree) in table.entries.iter().enumerate() {
            other_key.clear();
            layout.push_entry(n, &RowBytes { layout, key, value: old }, other_key);
            self.txn.delete(tree, other_key)?;
        }
        Ok(true)
    }

    fn rollback(self) -> Result<()> {
        self.txn.rollback()
    }
}

/// New values of a row that is being changed.
pub(crate) struct Changes<'c> {
    layout: &'c Layout,
    value: &'c mut Vec<u8>,
    /// The columns put, as bits.
    columns: u64,
    failure: Option<Error>,
}

impl RowChanges for Changes<'_> {
    fn put(&mut self, column: usize, value: ValueRef<'_>) {
        self.columns |= 1 << column;
        if let Err(error) = self.layout.change(column, value, self.value) {
            self.failure.get_or_insert(error);
        }
    }
}

impl RowView for RowBytes<'_> {
    fn u64(&self, column: usize) -> u64 {
        self.number(column) as u64
    }

    fn i64(&self, column: usize) -> i64 {
        self.number(column)
    }

    fn str(&self, column: usize) -> &str {
        simdutf8::basic::from_utf8(self.bytes(column)).unwrap_or_default()
    }

    fn bytes(&self, column: usize) -> &[u8] {
        RowBytes::bytes(self, column)
    }

    fn unscaled(&self, column: usize) -> i64 {
        self.number(column)
    }

    fn is_null(&self, column: usize) -> bool {
        RowBytes::is_null(self, column)
    }
}
