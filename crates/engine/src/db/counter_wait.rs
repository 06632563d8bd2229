//! A move of a table's auto-increment counter that waits while the statement of another transaction has locked it.

use crate::error::Result;
use crate::lock::OwnerId;
use crate::table::auto_increment::Moved;
use crate::table::handle::TableShared;
use crate::txn::{TableTrees, Txn, TxnSystem, auto_increment_lock};

/// Moves a table's counter as `attempt` does, which gets the transaction's number; waits while the statement of another
/// transaction has locked it.
#[inline]
pub(super) fn move_counter<R>(
    (system, txn): (&TxnSystem, &mut Txn),
    (table, trees): (&TableShared, &dyn TableTrees),
    mut attempt: impl FnMut(OwnerId) -> Result<Moved<R>>,
) -> Result<R> {
    loop {
        match attempt(txn.holder.owner)? {
            Moved::To(done) => return Ok(done),
            Moved::IsLocked => await_counter((system, txn), (table, trees))?,
        }
    }
}

/// Waits for the table's auto-increment lock, and releases it.
#[cold]
fn await_counter((system, txn): (&TxnSystem, &mut Txn), (table, trees): (&TableShared, &dyn TableTrees)) -> Result<()> {
    auto_increment_lock::lock(system, txn, trees)?;
    // The transaction that had locked the counter does not have the lock any more.
    let noted = table.set_counter_locked_by(None);
    auto_increment_lock::unlock(system, txn, trees);
    noted
}
