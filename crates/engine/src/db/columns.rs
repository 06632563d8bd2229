//! Reads of some columns of rows.
//!
//! Rule: the result has exactly the named columns in their named order, as in a SELECT. So no value can be accessed
//! that was not read. Long columns that are not named are not read.

use super::read_txn::ReadTxn;
use super::scan::Scan;
use super::write_txn::{StatementContext, WriteTxn};
use crate::error::Result;
use crate::lock::LockMode;
use crate::table::{Row, Table, ValueRef};
use crate::txn::Wanted;

impl WriteTxn {
    /// As [`get`](Self::get), but only these columns of the row, by their positions in the table: the row has them in
    /// this order, and no others. A long column that is not among them is not read.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("seen", Type::U64)
    ///     .column("picture", Type::Binary(1 << 20)).primary_key(&["id"]);
    /// let pictures = db.create_table("pictures", schema)?;
    /// let mut txn = db.begin()?;
    /// txn.insert(&pictures, &values![7u64, 0u64, &[1u8; 500_000][..]])?;
    /// // Neither of them reads or writes the picture.
    /// txn.modify(&pictures, &values![7u64], |row, set| set.put(1, row.u64(1) + 1))?;
    /// let seen = txn.get_columns(&pictures, &values![7u64], &[1])?.unwrap().u64(0);
    /// assert_eq!(seen, 1);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get); `BadValue` for a column that the table does not have.
    pub fn get_columns(&mut self, table: &Table, key: &[ValueRef<'_>], columns: &[usize]) -> Result<Option<Row>> {
        let wanted = Wanted { columns: Some(columns), ..Wanted::ALL };
        let set_key = |call: &mut StatementContext<'_>| {
            call.version.layouts.check_columns(columns)?;
            call.encode_key(key)
        };
        let found = self.read_by(table, set_key, LockMode::None, wanted)?;
        found.map(|(version, row)| version.layouts.to_row_of(row, columns)).transpose()
    }
}

impl ReadTxn {
    /// As [`get`](Self::get), but only these columns of the row; see [`WriteTxn::get_columns`].
    ///
    /// # Errors
    /// As [`get`](Self::get); `BadValue` for a column that the table does not have.
    pub fn get_columns(&mut self, table: &Table, key: &[ValueRef<'_>], columns: &[usize]) -> Result<Option<Row>> {
        self.txn.get_columns(table, key, columns)
    }
}

impl<'v> Scan<'_, 'v> {
    /// Only these columns, by their positions in the table: its rows have them in this order, and no others. A long
    /// column that is not among them is not read: what a scan of it would cost is what the others cost.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("picture", Type::Binary(1 << 20))
    ///     .column("title", Type::Text(80)).primary_key(&["id"]);
    /// let pictures = db.create_table("pictures", schema)?;
    /// db.transact(|txn| txn.insert(&pictures, &values![7u64, &[1u8; 500_000][..], "Sunset"]).map(drop))?;
    /// let mut read = db.snapshot()?;
    /// let mut titles = read.scan(&pictures).columns(&[2, 0]).iter()?;
    /// let row = titles.next().unwrap()?;
    /// assert_eq!((row.columns(), row.str(0), row.u64(1)), (2, "Sunset", 7));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    pub fn columns(mut self, columns: &'v [usize]) -> Self {
        self.columns = Some(columns);
        self
    }
}
