//! Lock wait policies of statements.

use super::scan::Scan;
use super::write_txn::{HAS_NOT_ENDED, WriteTxn};
use crate::error::{Error, Result};
use crate::lock::{LockMode, LockWait};
use crate::table::{Row, Table, ValueRef};
use std::time::Duration;

impl WriteTxn {
    /// Sets the behavior of the following statements, writes included, at locks of other transactions. A statement can
    /// override it. A transaction begins with [`LockWait::Default`].
    ///
    /// ```
    /// # use highwater::{Database, Error, LockWait, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).column("left", Type::U64).primary_key(&["id"]);
    /// # let seats = db.create_table("seats", schema)?;
    /// # db.transact(|txn| txn.insert(&seats, &values![1, 3]).map(drop))?;
    /// let (mut one, mut other) = (db.begin()?, db.begin()?);
    /// one.update(&seats, &values![1], &[(1, 2.into())])?;
    /// other.set_lock_wait(LockWait::NoWait);
    /// let refused = other.update(&seats, &values![1], &[(1, 2.into())]);
    /// assert!(matches!(refused, Err(Error::LockNotAvailable { table, .. }) if table == "seats"));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    pub fn set_lock_wait(&mut self, wait: LockWait) {
        self.txn.as_mut().expect(HAS_NOT_ENDED).lock_wait = wait;
    }

    /// The newest committed row of a primary key, locked as said until the transaction ends; `None` if there is none,
    /// or if it is locked and `wait` is [`LockWait::SkipLocked`]. With [`LockMode::None`] it is [`get`](Self::get).
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update); `LockNotAvailable` with [`LockWait::NoWait`].
    pub fn get_locked(
        &mut self,
        table: &Table,
        key: &[ValueRef<'_>],
        lock: LockMode,
        wait: LockWait,
    ) -> Result<Option<Row>> {
        self.with_lock_wait(Some(wait), |txn| txn.read_row(table, key, lock))
    }

    /// Runs a statement with a policy of its own.
    pub(super) fn with_lock_wait<R>(&mut self, own: Option<LockWait>, run: impl FnOnce(&mut WriteTxn) -> R) -> R {
        let Some(own) = own else { return run(self) };
        let outer = self.txn.as_mut().map(|txn| std::mem::replace(&mut txn.lock_wait, own));
        let done = run(self);
        if let (Some(txn), Some(outer)) = (&mut self.txn, outer) {
            txn.lock_wait = outer;
        }
        done
    }

    /// The error of a wait for a table.
    #[cold]
    pub(super) fn table_wait_error(&self, table: &str, error: Error) -> Error {
        let wait = self.txn.as_ref().map(|txn| txn.lock_wait);
        match error {
            Error::LockWaitTimeout if wait == Some(LockWait::NoWait) => {
                Error::LockNotAvailable { table: table.to_string(), index: None }
            }
            error => error,
        }
    }
}

impl Scan<'_, '_> {
    /// The locking scan does not wait: a row that another transaction has locked is
    /// [`Error::LockNotAvailable`](crate::Error::LockNotAvailable). As SQL's NOWAIT.
    pub fn nowait(mut self) -> Self {
        self.lock_wait = Some(LockWait::NoWait);
        self
    }

    /// The locking scan passes rows that other transactions have locked, as SQL's SKIP LOCKED: see
    /// [`LockWait::SkipLocked`]. Its rows are locked [one by one](Self::one_by_one). Several workers that take jobs
    /// from a table so never wait for each other, and none gets a job that another one has:
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("what", Type::Text(80)).primary_key(&["id"]);
    /// let jobs = db.create_table("jobs", schema)?;
    /// db.transact(|txn| txn.insert_many(&jobs, [values![1u64, "wash"], values![2u64, "dry"]]))?;
    ///
    /// let (mut one, mut other) = (db.begin()?, db.begin()?);
    /// let first = one.scan(&jobs).for_update().skip_locked().first()?.unwrap();
    /// let second = other.scan(&jobs).for_update().skip_locked().first()?.unwrap();
    /// assert_eq!((first.str(1), second.str(1)), ("wash", "dry"));
    /// one.delete(&jobs, &values![first.u64(0)])?;
    /// one.commit()?; // done; a worker that dies instead leaves the job to the others
    /// # Ok::<(), highwater::Error>(())
    /// ```
    pub fn skip_locked(mut self) -> Self {
        self.lock_wait = Some(LockWait::SkipLocked);
        self.one_by_one()
    }

    /// Each wait of the locking scan for a lock lasts this long at most.
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_wait = Some(LockWait::Timeout(timeout));
        self
    }

    /// Locks each row when it is asked for. Else a locking scan locks up to 16 rows ahead, which costs less, but rows
    /// that are never asked for stay locked too.
    pub fn one_by_one(mut self) -> Self {
        self.one_by_one = true;
        self
    }
}
