//! Statements of several calls, and calls that are done as a whole or not at all.

use super::write_txn::{HAS_NOT_ENDED, WriteTxn};
use crate::error::{Error, Result};
use crate::txn::Savepoint;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

impl WriteTxn {
    /// Runs `work` as one statement: it is done as a whole or, if it returns an error, undone; and under READ COMMITTED
    /// its plain reads, by whichever call, see one moment: that of its first read. (At the other levels reads see what
    /// they see outside of a statement.)
    ///
    /// ```
    /// # use highwater::{Database, Error, Isolation, Options, Schema, TxnOptions, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).column("n", Type::U64).primary_key(&["id"]);
    /// # let table = db.create_table("t", schema)?;
    /// let mut txn = db.begin_with(TxnOptions { isolation: Isolation::ReadCommitted, ..TxnOptions::default() })?;
    /// txn.statement(|txn| {
    ///     let before = txn.scan(&table).count()?;
    ///     # db.transact(|txn| txn.insert(&table, &values![1, 1]).map(drop))?;
    ///     // Another transaction commits a row here.
    ///     assert_eq!(txn.scan(&table).count()?, before);
    ///     Ok::<(), Error>(())
    /// })?;
    /// let failed = txn.statement(|txn| {
    ///     txn.insert(&table, &values![7, 7])?;
    ///     txn.insert(&table, &values![7, 7])
    /// });
    /// assert!(matches!(failed, Err(Error::DuplicateKey { .. })));
    /// assert!(txn.get(&table, &values![7])?.is_none());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `work`, and of undoing it. [`Error::Usage`](crate::Error::Usage) inside another statement.
    pub fn statement<R, E: From<crate::Error>>(
        &mut self,
        work: impl FnOnce(&mut WriteTxn) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        self.begin_statement()?;
        match work(self) {
            Ok(done) => self.end_statement().map(|()| done).map_err(E::from),
            Err(error) => {
                self.undo_statement()?;
                Err(error)
            }
        }
    }

    /// Begins a statement, as [`statement`](Self::statement) does; the end of the transaction ends it too.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) in another one, or after a deadlock.
    pub fn begin_statement(&mut self) -> Result<()> {
        self.inner.check_not_closed()?;
        self.txn.as_mut().expect(HAS_NOT_ENDED).begin_statement()
    }

    /// Ends the statement; what it did stays.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) if none has begun.
    pub fn end_statement(&mut self) -> Result<()> {
        self.finish_statement(true)
    }

    /// Ends the statement and undoes what it did. Its locks stay, as with [`rollback_to`](Self::rollback_to).
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) if none has begun; an I/O error.
    pub fn undo_statement(&mut self) -> Result<()> {
        self.finish_statement(false)
    }

    fn finish_statement(&mut self, keeps: bool) -> Result<()> {
        self.inner.check_not_closed()?;
        self.inner.txn_system().end_statement(self.txn.as_mut().expect(HAS_NOT_ENDED), keeps)
    }

    /// Runs `work`. If it fails or panics, its changes are undone: for a caller that catches the panic the transaction
    /// is in its earlier state, except its locks, or can only be rolled back.
    pub(super) fn all_or_nothing<R, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&mut WriteTxn) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let before = self.savepoint();
        let failed = match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(Ok(done)) => return Ok(done),
            failed => failed,
        };
        let undone = self.undo_to(before);
        match failed {
            Err(panic) => resume_unwind(panic),
            Ok(error) => undone.map_err(E::from).and(error),
        }
    }

    /// After a deadlock all is undone already.
    fn undo_to(&mut self, before: Savepoint) -> Result<()> {
        match self.txn.as_ref().expect(HAS_NOT_ENDED).check_active() {
            Ok(()) => self.rollback_to(before),
            Err(_) => Ok(()),
        }
    }
}
