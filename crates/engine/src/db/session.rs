//! Sessions: consecutive transactions, begun on demand, as in a connection of a server.
//!
//! Rules
//! 1. A session is a [`WriteTxn`] that is begun again: between two transactions it holds no lock of a row or a table,
//!    and no view.
//! 2. The settings of a session (options, lock waits, its interrupt handle) apply to all its transactions.

use super::database::Database;
use super::interrupt_handle::InterruptHandle;
use super::prepared::PreparedTxn;
use super::write_txn::{HAS_NOT_ENDED, WriteTxn};
use crate::error::{Error, Result};
use crate::lock::LockWait;
use crate::txn::{Access, TxnOptions, check_outside_row_closure};
use crate::undo::Xid;

/// A connection's life: any number of transactions, one after another, each begun by the first call that needs it.
///
/// ```
/// # use highwater::{Database, Options, Schema, Type, values};
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Database::open(dir.path(), Options::default())?;
/// # let schema = Schema::new().column("id", Type::U64).column("n", Type::U64).primary_key(&["id"]);
/// # let table = db.create_table("t", schema)?;
/// let mut session = db.session();
/// let handle = session.interrupt_handle(); // for another thread, as long as the session lives
/// session.txn()?.insert(&table, &values![1, 10])?;
/// session.commit()?;
/// session.txn()?.delete(&table, &values![1])?;
/// session.rollback()?;
/// assert!(session.txn()?.get(&table, &values![1])?.is_some());
/// # drop(handle);
/// # Ok::<(), highwater::Error>(())
/// ```
pub struct Session {
    db: Database,
    handle: InterruptHandle,
    options: TxnOptions,
    lock_wait: LockWait,
    /// With a transaction, or as the last one has left it; `None` before the first.
    txn: Option<WriteTxn>,
}

impl Database {
    /// A session: nothing is begun yet. It begins its transactions under REPEATABLE READ, until
    /// [`set_options`](Session::set_options).
    pub fn session(&self) -> Session {
        let handle = self.interrupt_handle();
        let db = self.with_interrupt(&handle);
        Session { db, handle, options: TxnOptions::default(), lock_wait: LockWait::Default, txn: None }
    }
}

impl Session {
    /// The transaction that is open, or a new one. End it by [`commit`](Self::commit) or [`rollback`](Self::rollback).
    ///
    /// # Errors
    /// As [`Database::begin_with`].
    pub fn txn(&mut self) -> Result<&mut WriteTxn> {
        if !self.is_open() {
            self.begin()?;
        }
        self.txn.as_mut().ok_or_else(|| Error::Usage("the session has no transaction".to_string()))
    }

    #[cold]
    fn begin(&mut self) -> Result<()> {
        match &mut self.txn {
            Some(ended) => {
                self.db.check_writes_wanted()?;
                ended.begin_again(&self.db.with_own_timeout(self.options.clone()), Access::ReadWrite)?;
                ended.hide_expired();
            }
            None => self.txn = Some(self.db.begin_with(self.options.clone())?),
        }
        if let Some(txn) = self.txn.take() {
            let mut txn = self.db.interruptible(txn);
            txn.set_lock_wait(self.lock_wait);
            self.txn = Some(txn);
        }
        Ok(())
    }

    /// Whether a transaction is open.
    pub fn is_open(&self) -> bool {
        self.txn.as_ref().is_some_and(|txn| txn.txn.is_some())
    }

    /// The options of the next transactions; the open one keeps its own.
    pub fn set_options(&mut self, options: TxnOptions) {
        self.options = options;
    }

    /// Sets the behavior of statements at locks of other transactions: as [`WriteTxn::set_lock_wait`], for all
    /// transactions of the session.
    pub fn set_lock_wait(&mut self, wait: LockWait) {
        self.lock_wait = wait;
        if let Some(txn) = self.txn.as_mut().filter(|txn| txn.txn.is_some()) {
            txn.set_lock_wait(wait);
        }
    }

    /// A handle with which another thread interrupts the session: its present and later transactions.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.handle.clone()
    }

    /// Commits the open transaction; does nothing without one.
    ///
    /// # Errors
    /// As [`WriteTxn::commit`]; the session has no transaction then, unless the database is closed.
    pub fn commit(&mut self) -> Result<()> {
        self.end(|txn| txn.end_as_committed())
    }

    /// Rolls the open transaction back; does nothing without one.
    ///
    /// # Errors
    /// As [`WriteTxn::rollback`]; the session has no transaction then, unless the database is closed.
    pub fn rollback(&mut self) -> Result<()> {
        self.end(|txn| txn.end_as_rolled_back())
    }

    /// Prepares the open transaction, as [`WriteTxn::prepare`] does; `None` without one, or if it had changed nothing.
    /// The session can begin another transaction then.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, Xid, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let table = db.create_table("t", Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
    /// let mut session = db.session();
    /// session.txn()?.insert(&table, &values![1])?;
    /// let prepared = session.prepare(Xid::new(1, b"order-17", b"")?)?.unwrap();
    /// assert!(!session.is_open());
    /// prepared.commit()?;
    /// assert!(session.txn()?.get(&table, &values![1])?.is_some());
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`WriteTxn::prepare`]; the session has no transaction then.
    pub fn prepare(&mut self, xid: Xid) -> Result<Option<PreparedTxn>> {
        check_outside_row_closure()?;
        match self.txn.take() {
            Some(open) if open.txn.is_some() => open.prepare(xid),
            ended => {
                self.txn = ended;
                Ok(None)
            }
        }
    }

    fn end(&mut self, how: impl FnOnce(&mut WriteTxn) -> Result<()>) -> Result<()> {
        check_outside_row_closure()?;
        let Some(txn) = self.txn.as_mut().filter(|txn| txn.txn.is_some()) else { return Ok(()) };
        let ended = how(txn);
        // A closed database, or a forked child: the transaction is there, with its tables.
        if txn.txn.is_none() {
            txn.release_tables();
        }
        ended
    }
}

/// The ends and the next beginning of a transaction.
impl WriteTxn {
    /// Begins another transaction after the previous one has ended and released its tables.
    pub(super) fn begin_again(&mut self, options: &TxnOptions, access: Access) -> Result<()> {
        self.inner.check_running()?;
        self.check_ended();
        self.schema_version = self.inner.schema_version();
        self.txn = Some(self.inner.txn_system().begin(options, access)?);
        Ok(())
    }

    pub(super) fn end_as_committed(&mut self) -> Result<()> {
        self.check_may_end()?;
        let _open = self.log_changes()?;
        self.inner.txn_system().commit(self.txn.take().expect(HAS_NOT_ENDED))
    }

    pub(super) fn end_as_rolled_back(&mut self) -> Result<()> {
        self.check_may_end()?;
        self.inner.txn_system().rollback(self.txn.take().expect(HAS_NOT_ENDED))
    }

    /// After the transaction has ended: others may change the tables that it used.
    pub(super) fn release_tables(&mut self) {
        debug_assert!(self.txn.is_none(), "rule 1 of the tables: they are released before the transaction has ended");
        self.scratch.iter_mut().for_each(|scratch| scratch.tables.release());
        if std::mem::take(&mut self.is_inside) {
            self.inner.gate.leave_writer();
        }
        self.check_ended();
    }

    /// Rule 1: nothing is held between two transactions.
    fn check_ended(&self) {
        debug_assert!(self.txn.is_none(), "a transaction begins before the last one has ended");
        debug_assert!(!self.is_inside, "a transaction has ended and is inside the gate");
        let holds_any = self.scratch.as_ref().is_some_and(|scratch| scratch.tables.holds_any());
        debug_assert!(!holds_any, "a transaction has ended and locks a table");
    }
}
