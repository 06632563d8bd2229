//! The calls that an [`InterruptHandle`] interrupts.

use super::database::Database;
use super::interrupt_handle::InterruptHandle;
use super::read_txn::ReadTxn;
use super::write_txn::{HAS_NOT_ENDED, WriteTxn};
use std::sync::Arc;

impl WriteTxn {
    /// A handle with which another thread interrupts this transaction.
    pub fn interrupt_handle(&mut self) -> InterruptHandle {
        let txn = self.txn.as_mut().expect(HAS_NOT_ENDED);
        let interrupt = txn.interrupt.get_or_insert_default().clone();
        InterruptHandle { interrupt, poison: Arc::clone(&self.inner.ctx.poison) }
    }
}

impl ReadTxn {
    /// A handle with which another thread interrupts this transaction's scans.
    pub fn interrupt_handle(&mut self) -> InterruptHandle {
        self.txn.interrupt_handle()
    }
}

impl Database {
    /// A handle with which another thread interrupts calls of a database handle that is [made with
    /// it](Self::with_interrupt).
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle { interrupt: Arc::default(), poison: Arc::clone(&self.inner.ctx.poison) }
    }

    /// This database, by a handle whose schema changes, and the transactions that are begun on it, can be interrupted.
    ///
    /// ```
    /// # use highwater::{Database, Error, Options, Schema, Type, values};
    /// # use std::{thread, time::Duration};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let table = db.create_table("t", Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
    /// let mut reader = db.snapshot()?;
    /// reader.get(&table, &values![1])?;
    /// let handle = db.interrupt_handle();
    /// let change = db.with_interrupt(&handle);
    /// let dropped = thread::spawn(move || change.drop_table("t")); // it waits for the reader
    /// handle.interrupt();
    /// assert!(matches!(dropped.join().unwrap(), Err(Error::Interrupted)));
    /// assert!(db.has_table("t"));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    #[must_use]
    pub fn with_interrupt(&self, handle: &InterruptHandle) -> Database {
        Database { interrupt: Some(Arc::clone(&handle.interrupt)), ..self.clone() }
    }

    /// The same transaction, which is interrupted as calls of this handle are.
    #[inline]
    pub(super) fn interruptible(&self, mut txn: WriteTxn) -> WriteTxn {
        if self.interrupt.is_some() {
            txn.txn.as_mut().expect(HAS_NOT_ENDED).interrupt.clone_from(&self.interrupt);
        }
        txn
    }
}
