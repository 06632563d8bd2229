//! Scans that show rows in their pages, without a copy.

use super::scan::{Scan, ScanIter};
use crate::error::{Error, Result};
use crate::table::RowRef;
use crate::txn::RowInPlace;
use std::ops::ControlFlow;

impl Scan<'_, '_> {
    /// Hands each row to `look`, until it says stop; returns how many it was shown. The fastest way through a table,
    /// since rows are read in place, without a copy. Meanwhile their page is latched, and a thread that would change it
    /// waits: `look` only computes. It cannot call the database ([`Error::Usage`]), and must not wait for a thread that
    /// does, as for a mutex that such a thread holds. For everything else there is [`iter`](Self::iter).
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # use std::ops::ControlFlow;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("amount", Type::U64).primary_key(&["id"]);
    /// let orders = db.create_table("orders", schema)?;
    /// db.transact(|txn| (0..9u64).try_for_each(|id| txn.insert(&orders, &values![id, id * 10]).map(drop)))?;
    /// let (amount, mut sum) = (orders.column("amount")?, 0);
    /// let seen = db.snapshot()?.scan(&orders).from(&values![5u64]).visit(|row| {
    ///     sum += row.u64(amount);
    ///     if sum < 150 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    /// assert_eq!((seen, sum), (3, 50 + 60 + 70));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`iter`](Self::iter) and [`ScanIter::next_ref`].
    pub fn visit(self, mut look: impl FnMut(RowRef<'_>) -> ControlFlow<()>) -> Result<u64> {
        self.try_visit(|row| Ok::<_, Error>(look(row)))
    }

    /// As [`visit`](Self::visit), for a closure that can fail: an error of its own stops the scan, and is what this
    /// returns.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # use std::ops::ControlFlow;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).column("line", Type::Text(80)).primary_key(&["id"]);
    /// # let lines = db.create_table("lines", schema)?;
    /// # db.transact(|txn| txn.insert_many(&lines, [values![1u64, "a"], values![2u64, "b"]]))?;
    /// type Failed = Box<dyn std::error::Error>;
    /// fn write(db: &Database, lines: &highwater::Table, mut to: impl std::io::Write) -> Result<u64, Failed> {
    ///     db.snapshot()?.scan(lines).try_visit(|row| {
    ///         writeln!(to, "{}", row.str("line"))?;
    ///         Ok(ControlFlow::Continue(()))
    ///     })
    /// }
    /// let mut text = Vec::new();
    /// assert_eq!(write(&db, &lines, &mut text).unwrap(), 2);
    /// assert_eq!(text, b"a\nb\n");
    /// assert!(write(&db, &lines, &mut [0u8; 3][..]).is_err());
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `look`; those of [`visit`](Self::visit), made into the closure's.
    pub fn try_visit<E: From<Error>>(
        self,
        mut look: impl FnMut(RowRef<'_>) -> std::result::Result<ControlFlow<()>, E>,
    ) -> std::result::Result<u64, E> {
        let (rows, _) = self.start(false)?;
        let ScanIter { txn, version, projected, cursor } = rows;
        let Some(mut cursor) = cursor else { return Ok(0) };
        let layouts = projected.as_ref().unwrap_or(&version.layouts);
        let (mut shown, mut failed) = (0, None);
        txn.look(&mut cursor, &mut |row: RowInPlace<'_>| {
            let looked = layouts.read(row.payload).map_err(E::from).and_then(|row| {
                shown += 1;
                look(row)
            });
            looked.unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        })?;
        failed.map_or(Ok(shown), Err)
    }
}
