//! Reading rows: the newest version, the visible one, or the newest with a lock.
//!
//! Rules
//! 1. A row is copied under its leaf's latch; undo pages and overflow pages are read after the latch is released.
//! 2. Undo records of versions that an open view does not see cannot be purged, and no record does without which a visible
//!    version could not be built. So a walk that stops at the first visible version never meets a purged record.
//! 3. Whoever reads an overflow row's newest version without a lock or a view on it checks afterwards that the row is still
//!    the same: a rollback or purge may have freed the chain meanwhile.

use super::view::ReadView;
use crate::btree::Seek;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::txn::lock::{LockMode, RowName};
use crate::txn::overflow;
use crate::txn::stored::{OverflowRef, ROW_HEADER_BYTES, RowHeader};
use crate::txn::system::TxnSystem;
use crate::txn::table_trees::TableTrees;
use crate::txn::transaction::{Isolation, Txn, TxnBody, after_read_error};
use crate::txn::undo::record::Kind;
use crate::txn::undo::{place_of, with_record};
use crate::txn::write::attempt::{Stop, claim, settle};
use crate::txn::write::lock_absence;
use crate::types::{RollPtr, TxnId};

/// What a version walk needs to know of the reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<'v> {
    /// His view.
    pub(crate) view: &'v ReadView,
    /// His own id, or 0.
    pub(crate) own: TxnId,
}

impl Sight<'_> {
    /// Whether a version of `trx_id` is visible.
    #[inline]
    pub(crate) fn sees(&self, trx_id: TxnId) -> bool {
        self.view.sees(trx_id) || (trx_id == self.own && self.own != TxnId(0))
    }
}

/// Copies the newest version of a row as it is stored: its header, and its payload into `out`.
pub(crate) fn stored_row(
    ctx: &Context,
    rows: &dyn TableTrees,
    key: &[u8],
    out: &mut Vec<u8>,
) -> Result<Option<RowHeader>> {
    let leaf = rows.clustered().leaf(ctx, Seek::Covers(key))?;
    let Ok(slot) = leaf.search(key) else { return Ok(None) };
    let value = leaf.value(slot);
    let header = RowHeader::decode(value)?;
    out.clear();
    out.extend_from_slice(&value[ROW_HEADER_BYTES..]);
    Ok(Some(header))
}

/// Replaces the payload of `version` by its row, if it is an overflow reference. False: the row is no longer at `newest`,
/// what was read may be anything, start again.
pub(crate) fn resolve_unlocked(
    ctx: &Context,
    rows: &dyn TableTrees,
    key: &[u8],
    newest: &RowHeader,
    version: &RowHeader,
    payload: &mut Vec<u8>,
) -> Result<bool> {
    if !version.is_overflow() {
        return Ok(true);
    }
    let read = resolve(ctx, version, payload);
    let leaf = rows.clustered().leaf(ctx, Seek::Covers(key))?;
    let same = match leaf.search(key) {
        Ok(slot) => RowHeader::decode(leaf.value(slot))? == *newest,
        Err(_) => false,
    };
    drop(leaf);
    if same { read.map(|()| true) } else { Ok(false) }
}

/// Replaces the payload by its row, if it is an overflow reference.
pub(crate) fn resolve(ctx: &Context, version: &RowHeader, payload: &mut Vec<u8>) -> Result<()> {
    if version.is_overflow() {
        let reference = OverflowRef::decode(payload)?;
        overflow::read(ctx, reference, payload)?;
    }
    Ok(())
}

/// Turns a version (header and stored payload) into the one before. False if there is none.
pub(crate) fn step_back(ctx: &Context, key: &[u8], header: &mut RowHeader, payload: &mut Vec<u8>) -> Result<bool> {
    if header.roll_ptr == RollPtr::NONE {
        return Ok(false);
    }
    let place = place_of(header.roll_ptr);
    ctx.stats.version_steps.inc();
    with_record(ctx, place, |record| {
        let (_, recorded_key) = record.row()?;
        if recorded_key != key {
            return Err(Error::corrupt_page(place.page, "a row points to the undo record of another one"));
        }
        if record.kind == Kind::Insert {
            return Ok(false);
        }
        let change = record.change()?;
        if record.kind == Kind::Update {
            change.apply(payload)?;
        }
        *header = change.old;
        Ok(true)
    })
}

/// What a walk to a visible version found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    /// Whether the row exists there.
    pub(crate) exists: bool,
    /// Versions that were stepped over.
    pub(crate) steps: usize,
}

/// Walks from a version (header and stored payload) to the first visible one and reads its overflow pages.
pub(crate) fn visible_version(
    ctx: &Context,
    sight: Sight<'_>,
    key: &[u8],
    header: &mut RowHeader,
    payload: &mut Vec<u8>,
) -> Result<Walk> {
    let mut steps = 0;
    while !sight.sees(header.trx_id) {
        if !step_back(ctx, key, header, payload)? {
            return Ok(Walk { exists: false, steps });
        }
        steps += 1;
    }
    let walk = Walk { exists: !header.is_delete_marked(), steps };
    if walk.exists {
        resolve(ctx, header, payload)?;
    }
    Ok(walk)
}

/// The visible version of a row; its payload replaces `out`.
pub(crate) fn visible_row(
    ctx: &Context,
    sight: Sight<'_>,
    rows: &dyn TableTrees,
    key: &[u8],
    out: &mut Vec<u8>,
) -> Result<Walk> {
    match stored_row(ctx, rows, key, out)? {
        Some(mut header) => visible_version(ctx, sight, key, &mut header, out),
        None => Ok(Walk::default()),
    }
}

/// The newest version of a row, locked for this transaction; its payload replaces `out`. False if there is none (then its
/// absence is locked, under REPEATABLE READ).
pub(crate) fn locked_row(
    system: &TxnSystem,
    body: &mut TxnBody,
    rows: &dyn TableTrees,
    key: &[u8],
    mode: LockMode,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let header = loop {
        match try_lock(system, body, rows, key, mode, out) {
            Ok(Some(header)) => break header,
            Ok(None) => return Ok(false),
            Err(stop) => settle(system, body, rows.clustered(), key, stop)?,
        }
    };
    resolve(&system.ctx, &header, out)?;
    Ok(true)
}

fn try_lock(
    system: &TxnSystem,
    body: &TxnBody,
    rows: &dyn TableTrees,
    key: &[u8],
    mode: LockMode,
    out: &mut Vec<u8>,
) -> std::result::Result<Option<RowHeader>, Stop> {
    let tree = rows.clustered();
    let leaf = tree.leaf(&system.ctx, Seek::Covers(key))?;
    let Ok(slot) = leaf.search(key) else {
        lock_absence(system, body, rows, key);
        return Ok(None);
    };
    let value = leaf.value(slot);
    let header = RowHeader::decode(value)?;
    lock_latched_row(system, body, RowName { index: tree.id(), key }, &header, mode)?;
    if header.is_delete_marked() {
        lock_absence(system, body, rows, key);
        return Ok(None);
    }
    out.clear();
    out.extend_from_slice(&value[ROW_HEADER_BYTES..]);
    Ok(Some(header))
}

/// Locks a row whose leaf is latched; a delete-marked one only has to be free.
pub(crate) fn lock_latched_row(
    system: &TxnSystem,
    body: &TxnBody,
    row: RowName<'_>,
    header: &RowHeader,
    mode: LockMode,
) -> std::result::Result<(), Stop> {
    claim(system, body, row, header, mode)?;
    let own = header.trx_id == body.id && body.id != TxnId(0);
    if own || header.is_delete_marked() || system.locks.try_lock_row(&body.holder, row, mode) {
        return Ok(());
    }
    Err(Stop::WaitRow { index: row.index, mode, implicit: None })
}

impl TxnBody {
    /// Refuses locking reads where they make no sense, and opens what first-committer-wins compares with.
    pub(crate) fn prepare_locking_read(&mut self, system: &TxnSystem) -> Result<()> {
        if self.options.read_only {
            return Err(Error::Usage("a read-only transaction takes no row locks".to_string()));
        }
        if self.options.first_committer_wins {
            self.open_view(system);
        }
        Ok(())
    }
}

impl Txn {
    /// Reads a row into `out` (replacing it): by the snapshot, or the newest version with a lock. Returns whether the row
    /// exists.
    ///
    /// # Errors
    /// Lock waits, [`Error::WriteConflict`], I/O, corruption.
    pub fn get(&mut self, rows: &dyn TableTrees, key: &[u8], lock: LockMode, out: &mut Vec<u8>) -> Result<bool> {
        let (system, body) = self.parts();
        body.check_active()?;
        system.stats.rows_read.inc();
        if lock != LockMode::None {
            body.prepare_locking_read(system)?;
            return locked_row(system, body, rows, key, lock, out).map_err(|e| after_read_error(system, body, e));
        }
        if body.options.isolation == Isolation::RepeatableRead {
            body.open_view(system);
        }
        match &body.view {
            Some(handle) => {
                let sight = Sight { view: &handle.view, own: body.id };
                Ok(visible_row(&system.ctx, sight, rows, key, out)?.exists)
            }
            None => {
                let handle = system.open_view();
                let sight = Sight { view: &handle.view, own: body.id };
                Ok(visible_row(&system.ctx, sight, rows, key, out)?.exists)
            }
        }
    }
}
