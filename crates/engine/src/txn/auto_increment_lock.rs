//! A table's auto-increment lock: InnoDB's `AUTO-INC`.
//!
//! While a statement holds it, the numbers that the statement takes are consecutive: a replica that repeats the
//! statement with the first of them gives each row the same number.
//!
//! Rules
//! 1. It is an exclusive lock in the lock system, on a name that no row has: the clustered index and an empty key. So
//!    waits for it have a timeout, are interrupted, and deadlocks with row locks are found.
//! 2. It ends with the statement in which it was taken, else with the transaction.
//! 3. A transaction that waited for the lock only to move the counter releases it at once.

use super::system::TxnSystem;
use super::table_trees::TableTrees;
use super::transaction::Txn;
use super::write::{Blocked, unblock};
use crate::error::Result;
use crate::lock::{LockMode, RowName};

/// Rule 1.
fn name(table: &dyn TableTrees) -> RowName<'static> {
    RowName { index: table.clustered().id(), key: &[] }
}

/// Takes the auto-increment lock of a table; waits for it.
///
/// # Errors
/// As a wait for a row; after a deadlock the transaction is rolled back.
pub(crate) fn lock(system: &TxnSystem, txn: &mut Txn, table: &dyn TableTrees) -> Result<()> {
    txn.check_active()?;
    let name = name(table);
    if system.locks.try_lock_row(&txn.holder, name, LockMode::Exclusive) {
        return Ok(());
    }
    let blocked = Blocked::WaitRow { index: name.index, mode: LockMode::Exclusive, implicit: None };
    let waited = unblock(system, txn, table, (table.clustered(), name.key), blocked);
    waited.map_err(|error| txn.after_read_error(system, error))
}

/// As [`lock`], until the statement ends.
///
/// # Errors
/// As [`lock`].
pub(crate) fn lock_for_statement(system: &TxnSystem, txn: &mut Txn, table: &dyn TableTrees) -> Result<()> {
    let index = table.clustered().id();
    if !txn.auto_increment_locks.contains(&index) {
        lock(system, txn, table)?;
        txn.auto_increment_locks.push(index);
    }
    Ok(())
}

/// Releases the auto-increment lock of a table, unless the statement keeps it.
pub(crate) fn unlock(system: &TxnSystem, txn: &Txn, table: &dyn TableTrees) {
    if !txn.auto_increment_locks.contains(&table.clustered().id()) {
        system.locks.release_row(&txn.holder, name(table));
    }
}

/// Rule 2: the end of a statement.
pub(super) fn unlock_all(system: &TxnSystem, txn: &mut Txn) {
    for index in txn.auto_increment_locks.drain(..) {
        system.locks.release_row(&txn.holder, RowName { index, key: &[] });
    }
}
