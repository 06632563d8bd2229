//! What set-ups of tests have in common. The tests of the public API compile this file too: it uses nothing else.

use crate::{Database, Result, Schema, Type, WriteTxn};

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
