//! Temporary tables of the server.
//!
//! Rule: the server drops a temporary table while the transaction that has used it continues. Such a table is dropped
//! when a transaction has ended and none uses it any more, at the latest when the database is opened again: its name is
//! not used a second time.

use highwater::{Error, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What the server calls its temporary tables; none outlives it.
pub(crate) const TEMPORARY: &str = "#sql-temptable-";

/// Temporary tables that are dropped for the server, and in use.
pub(crate) struct PostponedDrops {
    db: highwater::Database,
    has_some: AtomicBool,
    names: Mutex<Vec<String>>,
}

impl PostponedDrops {
    pub(crate) fn new(db: &highwater::Database) -> PostponedDrops {
        // It does not wait for the transaction that drops the table.
        let db = db.with_lock_wait_timeout(Duration::ZERO);
        PostponedDrops { db, has_some: AtomicBool::new(false), names: Mutex::default() }
    }

    /// Drops a temporary table, now or later.
    pub(crate) fn drop_table(&self, name: &str) -> Result<()> {
        match self.db.drop_table(name) {
            Err(Error::LockWaitTimeout | Error::TableInPrepared { .. }) => {
                self.names.lock().push(name.to_string());
                self.has_some.store(true, Ordering::Release);
                Ok(())
            }
            done => done,
        }
    }

    /// A transaction has ended.
    #[inline]
    pub(crate) fn go_on(&self) {
        if self.has_some.load(Ordering::Acquire) {
            self.drop_again();
        }
    }

    #[cold]
    fn drop_again(&self) {
        self.has_some.store(false, Ordering::Release);
        let names = std::mem::take(&mut *self.names.lock());
        for name in names {
            // What goes wrong here is tried again when the database is opened.
            let _ = self.drop_table(&name);
        }
    }
}
