//! Looking up several rows at once.
//!
//! Rule: the rows are read one after the other, as single look-ups read them; while pages are missing, those of the
//! next keys are read ahead. So the answers are those of single look-ups, and the disk has several reads to do.

use super::read_txn::ReadTxn;
use super::write_txn::{Call, WriteTxn};
use crate::error::Result;
use crate::table::lock::Mode;
use crate::table::{Row, Table, ValueRef};
use crate::txn::TableTrees;

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
        let (mut rows, mut named) = (Vec::with_capacity(keys.len()), 1);
        for (n, key) in keys.iter().enumerate() {
            let pages_read = self.pages_read();
            rows.push(self.get(table, key.as_ref())?);
            if self.pages_read() > pages_read && named <= n + 1 {
                named = (n + 1 + AHEAD).min(keys.len());
                // What is wrong with a key its own look-up says.
                keys[n + 1..named].iter().for_each(|key| drop(self.want(table, key.as_ref())));
            }
        }
        Ok(rows)
    }

    /// Pages that were read into the pool so far, by any thread.
    fn pages_read(&self) -> u64 {
        self.inner.txn_system().ctx.stats.pages_read.get()
    }

    /// Has the page of a row read ahead.
    fn want(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<()> {
        let mut call = self.call(table, Mode::Read)?;
        call.encode_key(key)?;
        let Call { system, version, key, .. } = call;
        version.clustered().want_leaf(&system.ctx, key);
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
}
