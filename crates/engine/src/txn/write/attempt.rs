//! One attempt to change a leaf: latch, check, and either change it or report the obstacle.
//!
//! Rules
//! 1. An attempt changes nothing before it has checked all conditions: the row is free, the undo page is latched and
//!    has space, the leaf has space.
//! 2. A missing condition is resolved with no latch held ([`unblock`]), and the attempt starts again from the root.
//! 3. If the last page of its undo stream cannot be read, a transaction without writes releases the stream and binds
//!    another.

use crate::btree::BTree;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::lock::{Holder, LockMode, LockWait, RowName};
use crate::mtr::{Mtr, PageHandle};
use crate::pool::held_latches;
use crate::row::format::RowHeader;
use crate::txn::system::TxnSystem;
use crate::txn::table_trees::TableTrees;
use crate::txn::transaction::{Txn, TxnState};
use crate::types::{IndexId, PageNo, TxnId};
use crate::undo::{Bound, UndoLog};
use std::sync::Arc;

/// The reason why an attempt stopped.
#[derive(Debug)]
pub(crate) enum Blocked {
    Fail(Error),
    /// The row is locked by another transaction, by its id (`implicit`) or explicitly.
    WaitRow {
        index: IndexId,
        mode: LockMode,
        implicit: Option<(TxnId, Arc<Holder>)>,
    },
    /// Another transaction has locked the range the key falls into.
    WaitInsert {
        index: IndexId,
    },
    /// A page that must be latched below another is not in the pool.
    Load(PageNo),
    /// The undo page has no space for a record of this many bytes.
    ExtendUndo(usize),
    /// The leaf has no space for this many bytes.
    MakeRoom(usize),
    /// Others have taken the extents that were ready.
    NoExtent,
    /// The row or its new version is an overflow row: pages have to be read or written first.
    Overflow(RowHeader),
    /// The row is expired: an insertion deletes it first.
    Expired,
}

impl From<Error> for Blocked {
    fn from(error: Error) -> Blocked {
        Blocked::Fail(error)
    }
}

pub(crate) type Attempt<T> = std::result::Result<T, Blocked>;

/// Provides what an attempt at `key` of `tree`, one of `table`, lacked. The caller holds no latch.
pub(crate) fn unblock(
    system: &TxnSystem,
    txn: &mut Txn,
    table: &dyn TableTrees,
    (tree, key): (&BTree, &[u8]),
    blocked: Blocked,
) -> Result<()> {
    held_latches::expect_none("an operation waits for what it lacks (rule 2)");
    debug_assert_eq!(txn.state, TxnState::Active, "the transaction {} waits for what it lacks", txn.id);
    match blocked {
        Blocked::WaitRow { index, .. } | Blocked::WaitInsert { index }
            if matches!(txn.lock_wait, LockWait::NoWait | LockWait::SkipLocked) =>
        {
            Err(not_available(table, index))
        }
        Blocked::Fail(error) => Err(error),
        Blocked::WaitRow { index, mode, implicit } => {
            let implicit = implicit.as_ref().map(|(id, holder)| (*id, holder));
            system.locks.wait_row(&txn.holder, RowName { index, key }, mode, implicit, txn.patience())
        }
        Blocked::WaitInsert { index } => system.locks.wait_insert(&txn.holder, index, key, txn.patience()),
        Blocked::Load(page) => system.ctx.pool.load(page).or_else(|error| leave_stream(system, txn, page, error)),
        Blocked::ExtendUndo(bytes) => match txn.undo.as_mut() {
            Some(undo) => undo.extend(&system.undo, bytes).or_else(|error| match error.page() {
                Some(page) => leave_stream(system, txn, page, error),
                None => Err(error),
            }),
            None => Err(Error::Usage("the transaction has no undo log".to_string())),
        },
        Blocked::MakeRoom(bytes) => tree.make_room(&system.ctx, key, bytes),
        Blocked::NoExtent => system.space.prepare(&system.ctx),
        Blocked::Overflow(_) | Blocked::Expired => Err(Error::Corrupt("a row changed while it was locked".to_string())),
    }
}

/// Rule 3; `page` cannot be read.
#[cold]
fn leave_stream(system: &TxnSystem, txn: &mut Txn, page: PageNo, error: Error) -> Result<()> {
    match &mut txn.undo {
        Some(undo) if error.is_damage() && undo.start().is_none() && undo.tail().page == page => {
            let other = UndoLog::new(system.undo.bind()?);
            let stream = std::mem::replace(undo, other).into_stream();
            system.undo.mark_unusable(stream.number);
            system.undo.release(stream);
            system.note_stream_skipped(&error);
            Ok(())
        }
        _ => Err(error),
    }
}

#[cold]
fn not_available(table: &dyn TableTrees, index: IndexId) -> Error {
    let at = (0..table.index_count()).find(|i| table.index(*i).id() == index);
    let index = at.map_or("PRIMARY", |i| table.index_name(i)).to_string();
    Error::LockNotAvailable { table: table.name().to_string(), index: Some(index) }
}

/// As [`unblock`], for rollback, which waits for no lock and has its undo.
pub(crate) fn unblock_rollback(ctx: &Context, tree: &BTree, key: &[u8], blocked: Blocked) -> Result<()> {
    match blocked {
        Blocked::Load(page) => ctx.pool.load(page),
        Blocked::MakeRoom(bytes) => tree.make_room(ctx, key, bytes),
        Blocked::Fail(error) => Err(error),
        blocked => Err(Error::Corrupt(format!("rollback was stopped by {blocked:?}"))),
    }
}

/// Whether the transaction may lock the row in `mode`, which it does where others wait for the row; the row's leaf is
/// latched.
#[inline]
pub(crate) fn check_lockable(
    system: &TxnSystem,
    txn: &Txn,
    row: RowName<'_>,
    header: &RowHeader,
    mode: LockMode,
) -> Attempt<()> {
    if txn.wrote(header) {
        return Ok(());
    }
    let implicit = system.holder_of(header.trx_id).map(|holder| (header.trx_id, holder));
    if implicit.is_some() || system.locks.blocks_row(&txn.holder, row, mode) {
        return Err(Blocked::WaitRow { index: row.index, mode, implicit });
    }
    if txn.first_committer_wins
        && let Some(view) = &txn.view
        && !view.view.sees(header.trx_id)
    {
        return Err(Blocked::Fail(Error::WriteConflict));
    }
    Ok(())
}

/// Whether the transaction may insert `key`; the leaf that takes it is latched exclusively.
#[inline]
pub(crate) fn check_gap_lockable(system: &TxnSystem, txn: &Txn, index: IndexId, key: &[u8]) -> Attempt<()> {
    if system.locks.blocks_insert(&txn.holder, index, key) {
        return Err(Blocked::WaitInsert { index });
    }
    Ok(())
}

/// Latches the undo page for a record of `bytes`.
#[inline]
pub(crate) fn latch_undo(txn: &Txn, mtr: &mut Mtr<'_>, bytes: usize) -> Attempt<PageHandle> {
    match txn.undo.as_ref().map(|undo| undo.latch(mtr, bytes)) {
        Some(Bound::Ready(latched)) => Ok(latched),
        Some(Bound::Absent(page)) => Err(Blocked::Load(page)),
        Some(Bound::Full) => Err(Blocked::ExtendUndo(bytes)),
        None => Err(Blocked::Fail(Error::Usage("the transaction has no undo log".to_string()))),
    }
}
