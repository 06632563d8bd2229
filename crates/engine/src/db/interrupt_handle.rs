//! Interrupts calls from another thread.

use crate::sync::interrupt::Interrupt;
use crate::sync::poison::Poison;
use std::sync::Arc;

/// Interrupts a transaction, or schema changes, from any thread, as SQL's KILL QUERY does. Clones interrupt the same.
///
/// A call that waits (for a lock of a row, a range or a table, for its turn to change a table) ends at once with
/// [`Error::Interrupted`](crate::Error::Interrupted); a scan, a count, an insertion of many rows or an index build ends
/// at its next step. What the call changed is undone. The transaction keeps its locks, its earlier changes and its
/// snapshot, and continues: commit it or roll it back. A schema change that is interrupted leaves nothing.
///
/// An interruption is not lost: if no call waits or scans at that time, it ends the next such call, once.
/// [`clear`](Self::clear) takes it back. A call that needs no wait, and a commit or a rollback, is never interrupted.
#[derive(Clone)]
pub struct InterruptHandle {
    pub(super) interrupt: Arc<Interrupt>,
    pub(super) poison: Arc<Poison>,
}

impl std::fmt::Debug for InterruptHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InterruptHandle").field("is_pending", &self.is_pending()).finish_non_exhaustive()
    }
}

impl InterruptHandle {
    /// Ends the call that waits or scans, or the next such call.
    ///
    /// ```
    /// # use highwater::{Database, Error, Options, Schema, Type, values};
    /// # use std::thread;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).column("n", Type::U64).primary_key(&["id"]);
    /// # let table = db.create_table("t", schema)?;
    /// # db.transact(|txn| txn.insert(&table, &values![1, 1]).map(drop))?;
    /// let (mut holder, mut waiter) = (db.begin()?, db.begin()?);
    /// holder.update(&table, &values![1], &[(1, 2.into())])?;
    /// let handle = waiter.interrupt_handle();
    /// let other = thread::spawn(move || handle.interrupt());
    /// let waited = waiter.update(&table, &values![1], &[(1, 3.into())]);
    /// assert!(matches!(waited, Err(Error::Interrupted)));
    /// # other.join().unwrap();
    /// holder.commit()?;
    /// waiter.update(&table, &values![1], &[(1, 3.into())])?; // it continues
    /// waiter.commit()?;
    /// # Ok::<(), highwater::Error>(())
    /// ```
    pub fn interrupt(&self) {
        self.interrupt.raise();
        self.poison.wake_interrupted();
    }

    /// Whether there is an interruption that has not ended a call.
    pub fn is_pending(&self) -> bool {
        self.interrupt.is_raised()
    }

    /// Forgets an interruption that has not ended a call.
    pub fn clear(&self) {
        self.interrupt.clear();
    }
}
