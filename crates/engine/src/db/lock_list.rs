//! The list of row locks and their owners, for observers of a database in use.
//!
//! Rules
//! 1. The list is collected part by part, so it is not of one moment: a lock may be released before its owner is
//!    listed.
//! 2. An implicit lock, that is a row which its owner has changed, is listed only while another transaction waits for
//!    it.

use super::database::Database;
use super::write_txn::{HAS_NOT_ENDED, WriteTxn};
use crate::error::{Error, Result};
use crate::lock::{Holder, LockMode, LockWaitEvent, RowLock};
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::IndexId;
use std::collections::HashMap;
use std::sync::Arc;

/// A lock on a row, or a request that waits for one ([`Database::row_locks`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLockInfo {
    /// The row's table; empty if it was dropped meanwhile.
    pub table: String,
    /// Bytes of the row's primary key, as the [raw API](crate::raw) has them; empty: the table's
    /// [numbers](WriteTxn::lock_numbers).
    pub key: Vec<u8>,
    /// The transaction that holds or requests it: [`TxnWatch::owner`].
    pub owner: u64,
    /// How.
    pub mode: LockMode,
    /// Whether it waits.
    pub is_waiting: bool,
}

/// A view of a running transaction for other threads ([`WriteTxn::watch`]).
#[derive(Clone, Debug)]
pub struct TxnWatch(Arc<Holder>);

impl TxnWatch {
    /// A number by which its locks are listed. A transaction that begins after it may have the same one.
    pub fn owner(&self) -> u64 {
        self.0.owner.0
    }

    /// Number of the transaction, as [`WriteTxn::id`]; 0: it has written nothing, or has ended.
    pub fn id(&self) -> u64 {
        self.0.trx_id.load(Relaxed)
    }

    /// Undo records that it has written: about how many rows it has changed.
    pub fn undo_records(&self) -> u64 {
        self.0.weight.load(Relaxed)
    }
}

impl WriteTxn {
    /// A view of the transaction for other threads.
    pub fn watch(&self) -> TxnWatch {
        TxnWatch(Arc::clone(&self.txn.as_ref().expect(HAS_NOT_ENDED).holder))
    }
}

impl Database {
    /// Each thread that waits for a lock calls `tell` when the wait begins, with the transactions for which it waits,
    /// and when the wait has ended. A server with a pool of threads has another one work meanwhile; a replica that
    /// commits in the order of a log ends a later transaction that is in the way of an earlier one. It is called in the
    /// midst of a statement: it must not use the database, and must not panic. It stays while the database is open.
    ///
    /// ```
    /// # use highwater::{Database, LockWaitEvent, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).column("left", Type::U64).primary_key(&["id"]);
    /// # let seats = db.create_table("seats", schema)?;
    /// # db.transact(|txn| txn.insert(&seats, &values![1, 3]).map(drop))?;
    /// let (tell, told) = std::sync::mpsc::channel();
    /// db.observe_lock_waits(move |event| match event {
    ///     LockWaitEvent::Begins { owners } => tell.send(owners.to_vec()).unwrap(),
    ///     LockWaitEvent::Ends => tell.send(Vec::new()).unwrap(),
    /// })?;
    /// assert!(db.observe_lock_waits(|_| ()).is_err());
    /// let (mut one, mut other) = (db.begin()?, db.begin()?);
    /// one.update(&seats, &values![1], &[(1, 2.into())])?;
    /// std::thread::scope(|scope| {
    ///     let waiting = scope.spawn(|| other.get_for_update(&seats, &values![1]));
    ///     assert_eq!(told.recv().unwrap(), [one.watch().owner()]);
    ///     one.commit()?;
    ///     assert!(told.recv().unwrap().is_empty());
    ///     waiting.join().unwrap()
    /// })?;
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] if there is one already.
    pub fn observe_lock_waits(&self, tell: impl Fn(LockWaitEvent<'_>) + Send + Sync + 'static) -> Result<()> {
        match self.inner.txn_system().locks.observe_waits(Box::new(tell)) {
            true => Ok(()),
            false => Err(Error::Usage("the waits for locks are observed already".to_string())),
        }
    }

    /// Explicit locks on rows and requests that wait for them, about `max` at most. A row that is locked because its
    /// owner has changed it is among them only while another transaction waits for it.
    ///
    /// ```
    /// use highwater::{Database, LockMode, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let table = db.create_table("t", Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
    /// db.transact(|txn| txn.insert(&table, &values![7]).map(drop))?;
    /// let mut txn = db.begin()?;
    /// txn.get_for_update(&table, &values![7])?;
    /// let locks = db.row_locks(1000);
    /// assert_eq!((locks.len(), &locks[0].table[..], locks[0].mode), (1, "t", LockMode::Exclusive));
    /// assert_eq!(locks[0].owner, txn.watch().owner());
    /// # Ok::<(), highwater::Error>(())
    /// ```
    pub fn row_locks(&self, max: usize) -> Vec<RowLockInfo> {
        let tables: HashMap<IndexId, String> = self
            .inner
            .registry
            .all()
            .iter()
            .map(|table| (table.current.read().clustered.id(), table.name.to_string()))
            .collect();
        let info = |RowLock { index, key, owner, mode, is_waiting }| {
            let table = tables.get(&index).cloned().unwrap_or_default();
            RowLockInfo { table, key, owner: owner.0, mode, is_waiting }
        };
        self.inner.txns.locks.list_rows(max).into_iter().map(info).collect()
    }

    /// The [owners](TxnWatch::owner) that wait: for a row, or to insert into a range that another has locked.
    pub fn lock_waiters(&self) -> Vec<u64> {
        self.inner.txns.locks.waiting().into_iter().map(|owner| owner.0).collect()
    }
}
