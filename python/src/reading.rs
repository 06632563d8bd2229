//! What the objects of a transaction share, and going through the rows of a scan.
//!
//! Rule: a database that is closed ends its transactions, whose objects may live on: nothing of theirs keeps its folder
//! from being opened again.

use crate::failure::{Failure, Result};
use highwater::{Cursor, Database, InterruptHandle, ReadTxn, RowRef, Seek, WriteTxn};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A transaction, shared by its object and its scans.
pub struct Shared {
    open: Mutex<Option<Kind>>,
    /// To find tables by name; `None` once it is closed.
    db: Mutex<Option<Database>>,
    is_closed: AtomicBool,
    /// For other threads.
    pub interrupt: InterruptHandle,
    txns: Arc<Txns>,
}

/// The transactions of a database, to be ended when it is closed.
#[derive(Default)]
pub struct Txns(Mutex<Vec<Weak<Shared>>>);

/// Transactions that are kept track of before those that are gone are looked for.
const SPARE_TXNS: usize = 64;
/// The mutexes are held for moments; only a forked process may find one that no thread releases.
pub const PATIENCE: Duration = Duration::from_secs(5);

impl Txns {
    fn keep(&self, txn: &Arc<Shared>) {
        let Some(mut txns) = self.0.try_lock_for(PATIENCE) else { return };
        if txns.len() >= SPARE_TXNS && txns.len() == txns.capacity() {
            txns.retain(|txn| txn.strong_count() > 0);
        }
        txns.push(Arc::downgrade(txn));
    }

    /// Ends all.
    pub fn close(&self) {
        let txns = self.0.try_lock_for(PATIENCE).map(|mut txns| std::mem::take(&mut *txns)).unwrap_or_default();
        txns.iter().filter_map(Weak::upgrade).for_each(|txn| txn.close());
    }
}

/// The two kinds of transactions.
pub enum Kind {
    /// One that reads and writes.
    Write(Box<WriteTxn>),
    /// One that reads a snapshot.
    Read(Box<ReadTxn>),
}

impl Shared {
    /// One that reads and writes.
    pub fn writing(db: &Database, txns: &Arc<Txns>, mut txn: WriteTxn) -> Arc<Shared> {
        let interrupt = txn.interrupt_handle();
        Shared::new(db, txns, Kind::Write(Box::new(txn)), interrupt)
    }

    /// One that reads a snapshot.
    pub fn reading(db: &Database, txns: &Arc<Txns>, mut txn: ReadTxn) -> Arc<Shared> {
        let interrupt = txn.interrupt_handle();
        Shared::new(db, txns, Kind::Read(Box::new(txn)), interrupt)
    }

    fn new(db: &Database, txns: &Arc<Txns>, kind: Kind, interrupt: InterruptHandle) -> Arc<Shared> {
        let (open, db) = (Mutex::new(Some(kind)), Mutex::new(Some(db.clone())));
        let (is_closed, txns) = (AtomicBool::new(false), Arc::clone(txns));
        let shared = Arc::new(Shared { open, db, is_closed, interrupt, txns });
        shared.txns.keep(&shared);
        shared
    }

    /// Another one that reads the same snapshot.
    ///
    /// # Errors
    /// It is not a snapshot; as [`with`](Self::with).
    pub fn same_snapshot(&self) -> Result<Arc<Shared>> {
        let other = self.with(|kind| match kind {
            Kind::Read(txn) => Ok(txn.same_snapshot()?),
            Kind::Write(_) => Err(Failure::Usage("the transaction is not a snapshot".to_string())),
        })?;
        Ok(Shared::reading(&self.db()?, &self.txns, other))
    }

    /// The database.
    ///
    /// # Errors
    /// It is closed.
    pub fn db(&self) -> Result<Database> {
        let db = self.db.try_lock().and_then(|db| db.clone());
        db.ok_or(Failure::Engine(highwater::Error::Closed))
    }

    /// Ends the transaction because its database is closed; a call that another thread makes at the moment continues;
    /// that thread's next call returns the error.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let (open, db) = (self.open.try_lock().map(|mut open| open.take()), self.db.try_lock().map(|mut db| db.take()));
        drop((open, db));
    }

    fn slot(&self) -> Result<parking_lot::MutexGuard<'_, Option<Kind>>> {
        let busy = || Failure::Usage("another thread uses the transaction at this moment".to_string());
        self.open.try_lock().ok_or_else(busy)
    }

    /// Works with the transaction.
    ///
    /// # Errors
    /// It has ended, or another thread uses it; those of `work`.
    pub fn with<R>(&self, work: impl FnOnce(&mut Kind) -> Result<R>) -> Result<R> {
        match &mut *self.slot()? {
            Some(kind) => work(kind),
            None => Err(self.ended()),
        }
    }

    /// As [`with`](Self::with), of one that may write.
    ///
    /// # Errors
    /// It is a snapshot, or as [`with`](Self::with).
    pub fn write<R>(&self, work: impl FnOnce(&mut WriteTxn) -> Result<R>) -> Result<R> {
        self.with(|kind| match kind {
            Kind::Write(txn) => work(txn),
            Kind::Read(_) => Err(Failure::Usage("a snapshot only reads; begin a transaction".to_string())),
        })
    }

    /// Takes it out, to end it.
    ///
    /// # Errors
    /// It has ended, or another thread uses it.
    pub fn take(&self) -> Result<Kind> {
        self.slot()?.take().ok_or_else(|| self.ended())
    }

    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        self.open.try_lock().is_none_or(|open| open.is_some())
    }

    fn ended(&self) -> Failure {
        match self.is_closed.load(Ordering::Acquire) {
            true => Failure::Engine(highwater::Error::Closed),
            false => Failure::Usage("the transaction has ended".to_string()),
        }
    }
}

/// The rows of a scan that are still to come.
pub struct Reading {
    cursor: Cursor,
    txn: Arc<Shared>,
    is_reverse: bool,
    has_begun: bool,
    /// How many it may still deliver.
    left: u64,
}

impl Reading {
    /// Rows of a cursor, before the first.
    pub fn new(cursor: Cursor, txn: Arc<Shared>, is_reverse: bool, limit: u64) -> Reading {
        Reading { cursor, txn, is_reverse, has_begun: false, left: limit }
    }

    /// Whether it reads a snapshot, which nothing changes meanwhile.
    ///
    /// # Errors
    /// As [`Shared::with`].
    pub fn is_of_snapshot(&self) -> Result<bool> {
        self.txn.with(|kind| Ok(matches!(kind, Kind::Read(_))))
    }

    /// Passes rows to `take` until it returns false; false at the end of the scan.
    ///
    /// # Errors
    /// Errors of the scan and of `take`.
    pub fn each(&mut self, mut take: impl FnMut(RowRef<'_>) -> Result<bool>) -> Result<bool> {
        let Reading { cursor, txn, is_reverse, has_begun, left } = self;
        txn.with(|kind| {
            while *left > 0 {
                let is_first = !std::mem::replace(has_begun, true);
                let found = match (&mut *kind, *is_reverse) {
                    (Kind::Write(txn), true) if is_first => cursor.seek(&mut **txn, Seek::Last)?,
                    (Kind::Read(txn), true) if is_first => cursor.seek(&mut **txn, Seek::Last)?,
                    (Kind::Write(txn), false) => cursor.next(&mut **txn)?,
                    (Kind::Read(txn), false) => cursor.next(&mut **txn)?,
                    (Kind::Write(txn), true) => cursor.prev(&mut **txn)?,
                    (Kind::Read(txn), true) => cursor.prev(&mut **txn)?,
                };
                let Some(row) = cursor.row()?.filter(|_| found) else {
                    *left = 0;
                    return Ok(false);
                };
                *left -= 1;
                if !take(row)? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}
