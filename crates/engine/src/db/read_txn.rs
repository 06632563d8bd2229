//! Transactions that read one snapshot.

use super::scan::Scan;
use super::write_txn::WriteTxn;
use crate::error::Result;
use crate::table::{Row, RowRef, Table, ValueRef};

/// A transaction that reads one snapshot.
pub struct ReadTxn {
    /// A read-only one; of its calls only the snapshot reads are offered.
    pub(super) txn: WriteTxn,
}

impl ReadTxn {
    pub(crate) fn new(txn: WriteTxn) -> ReadTxn {
        ReadTxn { txn }
    }

    /// The row of a primary key, as the snapshot has it.
    ///
    /// # Errors
    /// `BadValue` if the key does not fit, an I/O error.
    #[inline]
    pub fn get(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<Option<Row>> {
        self.txn.get(table, key)
    }

    /// As [`get`](Self::get), but hands the row to `look` in place instead of copying it.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    pub fn get_with<R>(
        &mut self,
        table: &Table,
        key: &[ValueRef<'_>],
        look: impl FnOnce(RowRef<'_>) -> R,
    ) -> Result<Option<R>> {
        self.txn.get_with(table, key, look)
    }

    /// The first row, in the order of an index, whose leading columns of that index have these values. By a unique
    /// index there is one at most.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("mail", Type::Text(80)).primary_key(&["id"]);
    /// let users = db.create_table("users", schema.unique_index("by_mail", &["mail"]))?;
    /// db.transact(|txn| txn.insert(&users, &values![7u64, "a@b.c"]).map(drop))?;
    /// let found = db.snapshot()?.get_by(&users, "by_mail", &values!["a@b.c"])?;
    /// assert_eq!(found.unwrap().u64(0), 7);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchIndex`](crate::Error::NoSuchIndex), or as [`get`](Self::get).
    pub fn get_by(&mut self, table: &Table, index: &str, values: &[ValueRef<'_>]) -> Result<Option<Row>> {
        self.scan(table).index(index).prefix(values).first()
    }

    /// Another transaction that reads the same snapshot: to look up rows while a scan of this one runs, to run two
    /// scans at once, or to read on several threads.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).column("parent", Type::U64).primary_key(&["id"]);
    /// # let nodes = db.create_table("nodes", schema)?;
    /// # let mut txn = db.begin()?;
    /// # txn.insert(&nodes, &values![1, 1])?;
    /// # txn.commit()?;
    /// let mut read = db.snapshot()?;
    /// let mut parents = read.same_snapshot()?;
    /// let mut rows = read.scan(&nodes).iter()?;
    /// while let Some(row) = rows.next_ref()? {
    ///     assert!(parents.get(&nodes, &values![row.u64(1)])?.is_some());
    /// }
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::snapshot`](crate::Database::snapshot).
    pub fn same_snapshot(&mut self) -> Result<ReadTxn> {
        self.txn.same_snapshot().map(ReadTxn::new)
    }

    /// A scan of a table, to be described further.
    pub fn scan<'v>(&mut self, table: &Table) -> Scan<'_, 'v> {
        self.txn.scan(table)
    }
}
