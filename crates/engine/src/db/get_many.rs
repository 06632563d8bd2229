//! Looking up several rows at once, and prefetching rows.
//!
//! Rules
//! 1. The rows are read one after another, like single look-ups; while pages are missing, the pages of the next keys
//!    are read ahead. So the answers are those of single look-ups, and the disk has several concurrent reads.
//! 2. Prefetching does not read the row: it locks nothing, and no answer depends on it.

use super::read_txn::ReadTxn;
use super::write_txn::WriteTxn;
use crate::error::Result;
use crate::table::lock::TableLockMode;
use crate::table::{Row, Table, ValueRef};
use crate::txn::{TableTrees, check_outside_row_closure};

/// Keys whose pages are read ahead together.
const AHEAD: usize = 32;

impl WriteTxn {
    /// The rows of several primary keys, in the order of the keys; `None` where there is none. As one
    /// [`get`](Self::get) after the other, but when the pages are not in the buffer pool several are read at once.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(80)).primary_key(&["id"]);
    /// # let users = db.create_table("users", schema)?;
    /// let mut txn = db.begin()?;
    /// txn.insert(&users, &values![7u64, "Ada"])?;
    /// let found = txn.get_many(&users, &[values![7u64], values![8u64]])?;
    /// assert!(found[0].is_some() && found[1].is_none());
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get), for the first key that has one.
    pub fn get_many<'v, K: AsRef<[ValueRef<'v>]>>(&mut self, table: &Table, keys: &[K]) -> Result<Vec<Option<Row>>> {
        // Without keys no other call checks this.
        self.inner.check_running()?;
        let (mut rows, mut named) = (Vec::with_capacity(keys.len()), 1);
        for (n, key) in keys.iter().enumerate() {
            let pages_read = self.pages_read();
            rows.push(self.get(table, key.as_ref())?);
            if self.pages_read() > pages_read && named <= n + 1 {
                named = (n + 1 + AHEAD).min(keys.len());
                // A wrong key is an error of its own look-up.
                drop(self.request_leaves(table, &keys[n + 1..named]));
            }
        }
        Ok(rows)
    }

    /// Pages that were read into the pool so far, by any thread.
    fn pages_read(&self) -> u64 {
        self.inner.txn_system().ctx.stats.pages_read.get()
    }

    /// Names rows by their primary keys that this transaction will read or change soon. Pages of theirs that are not in
    /// the buffer pool are read concurrently while the transaction continues; else each would be read, and waited for,
    /// when its row is reached. A few dozen rows at a time are enough.
    ///
    /// A hint: nothing is locked, and no answer changes. While all pages that are used are in the buffer pool it does
    /// nothing. Without `read_io_threads` it does nothing at all.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).column("left", Type::U64).primary_key(&["id"]);
    /// # let stock = db.create_table("stock", schema)?;
    /// # (0..100).try_for_each(|id: u64| db.transact(|txn| txn.insert(&stock, &values![id, 10u64]).map(drop)))?;
    /// let order = [(7u64, 2), (48, 1), (93, 5)];
    /// let mut txn = db.begin()?;
    /// txn.prefetch(&stock, order.iter().map(|(id, _)| values![*id]))?;
    /// for (id, count) in order {
    ///     txn.modify(&stock, &values![id], |row, set| set.put(1, row.u64(1) - count))?;
    /// }
    /// txn.commit()?;
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// `BadValue` if a key does not fit, as far as the keys are looked at; of table and transaction those of
    /// [`get`](Self::get). No I/O error.
    pub fn prefetch<'v, K: AsRef<[ValueRef<'v>]>>(
        &mut self,
        table: &Table,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        check_outside_row_closure()?;
        self.inner.check_running()?;
        let keys = keys.into_iter();
        let rows = keys.size_hint().0.max(1);
        if self.inner.txn_system().ctx.pool.misses(rows) { self.request_leaves(table, keys) } else { Ok(()) }
    }

    /// Requests the pages of rows.
    fn request_leaves<'v, K: AsRef<[ValueRef<'v>]>>(
        &mut self,
        table: &Table,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        let mut call = self.call(table, TableLockMode::Read)?;
        let mut leaves = Vec::new();
        for key in keys {
            call.encode_key(key.as_ref())?;
            leaves.extend(call.version.clustered().leaf_ahead(&call.system.ctx, call.key));
        }
        call.system.ctx.pool.request(&leaves);
        Ok(())
    }
}

impl ReadTxn {
    /// The rows of several primary keys, as [`WriteTxn::get_many`].
    ///
    /// # Errors
    /// As [`get`](Self::get), for the first key that has one.
    pub fn get_many<'v, K: AsRef<[ValueRef<'v>]>>(&mut self, table: &Table, keys: &[K]) -> Result<Vec<Option<Row>>> {
        self.txn.get_many(table, keys)
    }

    /// Names rows that will be read soon, as [`WriteTxn::prefetch`].
    ///
    /// # Errors
    /// As [`WriteTxn::prefetch`].
    pub fn prefetch<'v, K: AsRef<[ValueRef<'v>]>>(
        &mut self,
        table: &Table,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<()> {
        self.txn.prefetch(table, keys)
    }
}
