//! Change of a row in place, and of the entries that it moves.

use super::attempt::{Attempt, Blocked, latch_undo};
use super::version::{REWRITTEN_BYTES, RecordPos, name_chains};
use crate::error::Result;
use crate::lock::LockMode;
use crate::mtr::Mtr;
use crate::row::diff::DiffRange;
use crate::row::format::{OVERFLOW, ROW_HEADER_BYTES, RowHeader};
use crate::txn::overflow_columns::{Outside, OverflowRow, Wanted, load};
use crate::txn::row_closure::closed;
use crate::txn::row_op::{RowChange, RowOp};
use crate::txn::table_trees::TableTrees;
use crate::txn::transaction::RowBuffers;
use crate::undo::{self, NewChange};

/// A changed part that begins at most this many bytes into the row goes into one operation with the header: the bytes
/// between them cost less than a second operation does. (Fixed-size columns are in front of the row.)
const NEAR_BYTES: usize = 40;

/// The result of an update's search.
enum Found {
    Nothing,
    Unchanged,
    Changed,
}

/// A new version whose overflow pages are written.
#[derive(Clone, Copy)]
struct Prepared {
    /// Header of the version it replaces.
    old: RowHeader,
    /// Flags of the new one.
    flags: u8,
}

impl RowOp<'_> {
    pub(crate) fn update_row(&mut self, change: &mut RowChange<'_>) -> Result<bool> {
        let system = self.system;
        let mut prepared = None;
        let found = loop {
            let mut mtr = system.ctx.mtr()?;
            let blocked = match self.try_update(&mut mtr, change, prepared) {
                Ok(Found::Changed) => {
                    mtr.commit();
                    break Found::Changed;
                }
                Ok(found) => break found,
                Err(blocked) => blocked,
            };
            mtr.abandon();
            match blocked {
                Blocked::Overflow(old) if prepared.is_none() => match self.prepare_overflow(change, old)? {
                    Some(flags) => prepared = Some(Prepared { old, flags }),
                    None => break Found::Unchanged,
                },
                blocked => self.unblock(blocked)?,
            }
        };
        match found {
            Found::Nothing => return Ok(false),
            Found::Unchanged => return Ok(true),
            Found::Changed => system.stats.rows_updated.inc(),
        }
        if !self.txn.buffers.changed.is_empty() {
            self.move_entries()?;
        }
        Ok(true)
    }

    fn try_update(
        &mut self,
        mtr: &mut Mtr<'_>,
        change: &mut RowChange<'_>,
        prepared: Option<Prepared>,
    ) -> Attempt<Found> {
        let leaf = self.table.clustered().leaf_mut(mtr, self.key)?;
        let Ok(slot) = leaf.search(mtr, self.key) else {
            self.lock_absence();
            return Ok(Found::Nothing);
        };
        let value = leaf.value(mtr, slot);
        let old = RowHeader::decode(value)?;
        self.check_lockable(&old)?;
        if old.is_delete_marked() {
            self.lock_absence();
            return Ok(Found::Nothing);
        }
        let payload = &value[ROW_HEADER_BYTES..];
        if self.is_expired(&old, payload)? {
            self.lock_absence();
            return Ok(Found::Nothing);
        }
        if let Some(prepared) = prepared {
            if prepared.old != old {
                return Err(Blocked::Overflow(old));
            }
            return self.change_row(mtr, RecordPos { leaf, slot }, Some(prepared.flags));
        }
        let max_inline_bytes = self.max_inline_bytes();
        let buffers = &mut self.txn.buffers;
        buffers.new_row.clear();
        let changed = if old.is_overflow() { Ok(true) } else { closed(|| change(payload, &mut buffers.new_row, None)) };
        if matches!(changed, Ok(true)) && !old.is_overflow() && buffers.new_row.len() <= max_inline_bytes {
            return self.change_row(mtr, RecordPos { leaf, slot }, None).or_else(|blocked| self.keep_as_read(blocked));
        }
        buffers.old_row.clear();
        buffers.old_row.extend_from_slice(payload);
        self.lock_as_it_is()?;
        match changed {
            Ok(true) => Err(Blocked::Overflow(old)),
            Ok(false) => Ok(Found::Unchanged),
            Err(error) => Err(Blocked::Fail(error)),
        }
    }

    /// Locks the row explicitly, because it was read and is not changed now. Its leaf is latched.
    fn lock_as_it_is(&self) -> Attempt<()> {
        let name = self.name();
        if self.system.locks.try_lock_row(&self.txn.holder, name, LockMode::Exclusive) {
            return Ok(());
        }
        Err(Blocked::WaitRow { index: name.index, mode: LockMode::Exclusive, implicit: None })
    }

    /// Locks the row that was read: the obstacle that stopped the attempt may become an error (of a full disk, for
    /// example), and a transaction that must not see another row later needs the lock.
    fn keep_as_read(&self, blocked: Blocked) -> Attempt<Found> {
        if self.txn.locks_ranges() {
            self.lock_as_it_is()?;
        }
        Err(blocked)
    }

    /// Runs `change` outside the latch, on a locked row of which the old or the new version has columns on overflow
    /// pages. Leaves both rows, with the columns of their entries, in `old_row` and `new_row` and the stored new value
    /// in `value`; returns its flags, `None` if nothing changes.
    fn prepare_overflow(&mut self, change: &mut RowChange<'_>, old: RowHeader) -> Result<Option<u8>> {
        let RowOp { system, table, .. } = *self;
        let buffers = &mut self.txn.buffers;
        let columns = match old.is_overflow() {
            true => load(&system.ctx, table, Wanted::ENTRIES, &mut buffers.old_row)?,
            false => Vec::new(),
        };
        let mut outside = Outside { ctx: &system.ctx, columns: &columns, kept: Vec::new() };
        buffers.new_row.clear();
        if !closed(|| change(&buffers.old_row, &mut buffers.new_row, Some(&mut outside)))? {
            return Ok(None);
        }
        let kept = outside.kept;
        let new_row = std::mem::take(&mut buffers.new_row);
        let flags = self.store_row(&new_row, &kept);
        self.txn.buffers.new_row = new_row;
        flags.map(Some)
    }

    /// Applies an update. The new row is in `new_row`; with `prepared`, the flags of the new version, the old row is in
    /// `old_row` and the stored new value in `value`.
    fn change_row(&mut self, mtr: &mut Mtr<'_>, pos: RecordPos, prepared: Option<u8>) -> Attempt<Found> {
        let (table, key, RecordPos { leaf, slot }) = (self.table, self.key, pos);
        let old_value = leaf.value(mtr, slot);
        let old = RowHeader::decode(old_value)?;
        let old_payload = &old_value[ROW_HEADER_BYTES..];
        let flags = prepared.unwrap_or(0);
        let buffers = &mut self.txn.buffers;
        let (old_row, new_payload) = match prepared {
            Some(_) => (&buffers.old_row[..], &buffers.value[ROW_HEADER_BYTES..]),
            None => (old_payload, &buffers.new_row[..]),
        };
        buffers.changed.clear();
        buffers.changed.extend((0..table.index_count()).filter(|i| table.entry_changes(*i, old_row, &buffers.new_row)));
        let entries_changed = !buffers.changed.is_empty();
        let splice = DiffRange::of(old_payload, new_payload);
        let moved = entries_changed && {
            let rows = [old_row, &buffers.new_row[..]];
            put_moved_entries(table, &buffers.changed, key, rows, &mut buffers.entries)?;
            2 + buffers.entries.len() + splice.cut(old_payload).len() < old_payload.len()
        };
        let entries = moved.then_some(&buffers.entries[..]);
        let middle = if entries_changed && !moved { DiffRange::WHOLE } else { splice };
        let new = if flags & OVERFLOW != 0 { Some(OverflowRow::decode(new_payload)?) } else { None };
        name_chains(&old, old_payload, new.as_ref(), &mut buffers.chains)?;
        let chains = &buffers.chains[..];
        buffers.record.clear();
        let old_middle = middle.cut(old_payload);
        let change = NewChange {
            delete: false,
            table: table.id(),
            key,
            old,
            entries_changed,
            middle,
            old_middle,
            chains,
            entries,
        };
        undo::put_change(&mut buffers.record, &change);
        let growth = new_payload.len().saturating_sub(old_payload.len());
        let old_bytes = old_payload.len();
        if entries_changed && prepared.is_none() {
            buffers.old_row.clear();
            buffers.old_row.extend_from_slice(old_payload);
        }
        let undo_page = latch_undo(self.txn, mtr, self.txn.buffers.record.len())?;
        if growth > 0 && !leaf.fits_growth(mtr, slot, growth) {
            return Err(Blocked::MakeRoom(growth));
        }
        let header = self.append_undo(mtr, undo_page, flags);
        let RowBuffers { record: scratch, value, new_row, .. } = &mut self.txn.buffers;
        let payload = if prepared.is_some() { &value[ROW_HEADER_BYTES..] } else { new_row };
        NewVersion { header, payload, splice, old_bytes }.write(mtr, pos, scratch);
        let (stored_header, stored) = leaf.value(mtr, slot).split_at(ROW_HEADER_BYTES);
        debug_assert!(stored_header == header.encode() && stored == payload, "a leaf has another row than was written");
        Ok(Found::Changed)
    }

    /// Delete-marks old and inserts new entries after an update; the rows are in `old_row` and `new_row`.
    fn move_entries(&mut self) -> Result<()> {
        for n in 0..self.txn.buffers.changed.len() {
            let buffers = &mut self.txn.buffers;
            let i = buffers.changed[n];
            let (mut old, mut new) = (std::mem::take(&mut buffers.old_entry), std::mem::take(&mut buffers.new_entry));
            old.clear();
            new.clear();
            let moved = self.move_entry(i, &mut old, &mut new);
            (self.txn.buffers.old_entry, self.txn.buffers.new_entry) = (old, new);
            moved?;
        }
        Ok(())
    }

    /// As [`move_entries`](Self::move_entries), of index `i`; an entry whose key stays the same gets its new value.
    fn move_entry(&mut self, i: usize, old: &mut Vec<u8>, new: &mut Vec<u8>) -> Result<()> {
        let (table, new_row) = (self.table, std::mem::take(&mut self.txn.buffers.new_row));
        let moved = table.entry(i, self.key, &self.txn.buffers.old_row, old).and_then(|_| {
            let made = table.entry(i, self.key, &new_row, new)?;
            if old != new {
                self.delete_mark_entry(i, old)?;
                return self.insert_entry(i, new, made, &new_row);
            }
            if self.covered_changes(i, &new_row) { self.rewrite_entry(i, new, made, &new_row) } else { Ok(()) }
        });
        self.txn.buffers.new_row = new_row;
        moved
    }

    /// Whether covered columns of the entry of index `i` change; its key stays.
    fn covered_changes(&mut self, i: usize, new_row: &[u8]) -> bool {
        let RowBuffers { entry_value: both, old_row, .. } = &mut self.txn.buffers;
        both.clear();
        self.table.covered(i, old_row, both);
        let old_bytes = both.len();
        self.table.covered(i, new_row, both);
        let (old, new) = both.split_at(old_bytes);
        old != new
    }
}

/// Replaces `out` with the old entries of the indexes in `changed` that go, as undo keeps them: without the row's key.
fn put_moved_entries(
    table: &dyn TableTrees,
    changed: &[usize],
    key: &[u8],
    [old_row, new_row]: [&[u8]; 2],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.clear();
    let (mut entry, mut new_entry) = (Vec::new(), Vec::new());
    for &i in changed {
        entry.clear();
        let made = table.entry(i, key, old_row, &mut entry)?;
        if table.may_keep_key(i) {
            new_entry.clear();
            table.entry(i, key, new_row, &mut new_entry)?;
            if new_entry == entry {
                continue;
            }
        }
        undo::put_entry(out, table.index(i).id(), &entry[..made.prefix_bytes]);
    }
    Ok(())
}

/// The new version of a stored row.
struct NewVersion<'a> {
    header: RowHeader,
    payload: &'a [u8],
    /// Difference between `payload` and the old one.
    splice: DiffRange,
    /// Length of the old payload.
    old_bytes: usize,
}

impl NewVersion<'_> {
    #[inline]
    fn write(&self, mtr: &mut Mtr<'_>, RecordPos { leaf, slot }: RecordPos, scratch: &mut Vec<u8>) {
        let (header, DiffRange { prefix, suffix }) = (self.header.encode(), self.splice);
        let (removed, added) = (self.old_bytes - suffix - prefix, self.splice.cut(self.payload));
        if prefix <= NEAR_BYTES {
            scratch.clear();
            scratch.extend_from_slice(&header);
            scratch.extend_from_slice(&self.payload[..prefix + added.len()]);
            leaf.splice(mtr, slot, 0, ROW_HEADER_BYTES + prefix + removed, scratch);
            return;
        }
        leaf.splice(mtr, slot, 0, REWRITTEN_BYTES, &header[..REWRITTEN_BYTES]);
        if removed > 0 || !added.is_empty() {
            leaf.splice(mtr, slot, ROW_HEADER_BYTES + prefix, removed, added);
        }
    }
}
