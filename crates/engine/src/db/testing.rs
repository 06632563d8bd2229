//! Common code of tests' set-ups: databases in memory, tables, rows. The tests of the public API compile this file too:
//! it uses nothing else.

use crate::{Database, Options, Result, Schema, Type, WriteTxn};
use highwater_storage::StorageSet;
use std::ops::Deref;

/// An open database, with what it was opened from and how. Every call of a database is one of this.
#[derive(Clone)]
pub(crate) struct TestDb {
    db: Database,
    pub(crate) storage: StorageSet,
    options: Options,
}

impl Deref for TestDb {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.db
    }
}

impl TestDb {
    /// A new database.
    pub(crate) fn new(options: Options) -> TestDb {
        TestDb::on(&StorageSet::memory(), options)
    }

    /// The database of a set in any state.
    pub(crate) fn on(storage: &StorageSet, options: Options) -> TestDb {
        let db = Database::open_storage(storage.clone(), options.clone()).unwrap();
        TestDb { db, storage: storage.clone(), options }
    }

    pub(crate) fn close(self) -> Result<()> {
        self.db.close()
    }

    /// The same database, closed and opened again.
    pub(crate) fn reopen(self) -> TestDb {
        self.db.close().unwrap();
        TestDb::on(&self.storage, self.options)
    }

    /// Opens a copy as a power cut now would leave it; the seed determines the surviving unsynced writes. This database
    /// stays open.
    pub(crate) fn after_power_cut(&self, seed: u64) -> TestDb {
        TestDb::on(&self.storage.cut(seed), self.options.clone())
    }
}

/// The schema of a table with the primary key `id`, an unsigned number, as the first column.
pub(crate) fn by_id() -> Schema {
    Schema::new().column("id", Type::U64).primary_key(&["id"])
}

/// Does this with each item, in one transaction, and commits it.
pub(crate) fn commit_all<T, R>(
    db: &Database,
    items: impl IntoIterator<Item = T>,
    mut call: impl FnMut(&mut WriteTxn, T) -> Result<R>,
) {
    let mut txn = db.begin().unwrap();
    for item in items {
        call(&mut txn, item).unwrap();
    }
    txn.commit().unwrap();
}
