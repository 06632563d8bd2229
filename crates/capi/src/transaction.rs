//! Transactions and snapshots.
//!
//! Rules
//! 1. A transaction ends by a commit or a rollback; its handle must be freed afterwards in any case. Freeing rolls back
//!    a transaction that has not ended.
//! 2. Its cursors share it: after its end their next call fails.

use crate::database::highwater_db;
use crate::failure::{Failure, Result, done, highwater_code, highwater_error};
use crate::handle::{self, Out, chosen, new, opaque, structure};
use highwater::config::FlushLog;
use highwater::{InterruptHandle, Isolation, LockMode, LockWait, ReadTxn, Savepoint, TxnOptions, WriteTxn};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// A transaction, or a snapshot. One thread at a time may use it and its cursors; a second one gets `HIGHWATER_USAGE`.
pub struct highwater_txn {
    _opaque: [u8; 0],
}

opaque!(highwater_txn, Arc<Transaction>, b"hw__trxn");

/// The isolation level of a transaction. docs/design/isolation.md has the anomalies that each level prevents.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum highwater_isolation {
    /// All plain reads see what had committed at the first one.
    HIGHWATER_REPEATABLE_READ = 0,
    /// Each plain read sees what had committed when it began.
    HIGHWATER_READ_COMMITTED = 1,
    /// Plain reads see the newest rows, committed or not.
    HIGHWATER_READ_UNCOMMITTED = 2,
    /// Plain reads lock what they read.
    HIGHWATER_SERIALIZABLE = 3,
}

/// The durability of a commit.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum highwater_durability {
    /// As the database's option `flush_log_at_trx_commit` says.
    HIGHWATER_DURABILITY_DEFAULT = 0,
    /// Its redo is written and synced: the commit survives a power cut.
    HIGHWATER_DURABILITY_SYNC = 1,
    /// Its redo is written: the commit survives the end of the process.
    HIGHWATER_DURABILITY_WRITE = 2,
    /// Nothing: its redo is written and synced within a second.
    HIGHWATER_DURABILITY_NONE = 3,
}

/// Options of a transaction. All zeros are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct highwater_txn_options {
    /// A `highwater_isolation`.
    pub isolation: i32,
    /// A `highwater_durability`.
    pub durability: i32,
    /// Longest wait for a lock, in milliseconds; 0: as the database's option `lock_wait_timeout_ms` says.
    pub lock_wait_timeout_ms: u64,
    /// Whether a write to a row that another transaction has changed after the snapshot fails with
    /// `HIGHWATER_WRITE_CONFLICT`.
    pub first_committer_wins: bool,
    /// Whether the snapshot is taken at the begin, not at the first read.
    pub snapshot_at_begin: bool,
}

/// The mode in which a read locks the rows that it finds.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum highwater_lock {
    /// Not at all.
    HIGHWATER_LOCK_NONE = 0,
    /// Shared, until the transaction ends.
    HIGHWATER_LOCK_SHARED = 1,
    /// Exclusively, until the transaction ends.
    HIGHWATER_LOCK_EXCLUSIVE = 2,
}

/// The behavior of a call at locks of other transactions.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum highwater_wait {
    /// It waits, as long as the transaction's options say.
    HIGHWATER_WAIT_DEFAULT = 0,
    /// It fails with `HIGHWATER_LOCK_NOT_AVAILABLE`.
    HIGHWATER_NOWAIT = 1,
    /// A read passes over rows that are locked.
    HIGHWATER_SKIP_LOCKED = 2,
}

use highwater_durability::*;
use highwater_isolation::*;
use highwater_lock::*;
use highwater_wait::*;

/// The state that the handles of a transaction and of its cursors share.
pub(crate) struct Transaction {
    open: Mutex<Option<Open>>,
    interrupt: InterruptHandle,
}

/// A transaction that has not ended.
pub(crate) struct Open {
    /// The engine's.
    pub kind: Kind,
    savepoints: Vec<Savepoint>,
}

/// The two kinds of transactions.
pub(crate) enum Kind {
    /// One that reads and writes.
    Write(Box<WriteTxn>),
    /// One that reads a snapshot.
    Read(Box<ReadTxn>),
}

impl Transaction {
    fn writing(mut txn: WriteTxn) -> Arc<Transaction> {
        let interrupt = txn.interrupt_handle();
        Transaction::new(Kind::Write(Box::new(txn)), interrupt)
    }

    fn reading(mut txn: ReadTxn) -> Arc<Transaction> {
        let interrupt = txn.interrupt_handle();
        Transaction::new(Kind::Read(Box::new(txn)), interrupt)
    }

    fn new(kind: Kind, interrupt: InterruptHandle) -> Arc<Transaction> {
        Arc::new(Transaction { open: Mutex::new(Some(Open { kind, savepoints: Vec::new() })), interrupt })
    }

    fn slot(&self) -> Result<parking_lot::MutexGuard<'_, Option<Open>>> {
        let busy = || Failure::Usage("another thread uses the transaction at this moment".to_string());
        self.open.try_lock().ok_or_else(busy)
    }

    /// Works with the transaction, if it has not ended.
    ///
    /// # Errors
    /// It has ended, or another thread uses it; those of `work`.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Kind) -> Result<R>) -> Result<R> {
        self.with_open(|open| work(&mut open.kind))
    }

    fn with_open<R>(&self, work: impl FnOnce(&mut Open) -> Result<R>) -> Result<R> {
        match &mut *self.slot()? {
            Some(open) => work(open),
            None => Err(ended()),
        }
    }

    /// As [`with`](Self::with), if it may write.
    ///
    /// # Errors
    /// It is a snapshot, or as [`with`](Self::with).
    pub(crate) fn write<R>(&self, work: impl FnOnce(&mut WriteTxn) -> Result<R>) -> Result<R> {
        self.with(|kind| match kind {
            Kind::Write(txn) => work(txn),
            Kind::Read(_) => Err(Failure::Usage("a snapshot only reads; begin a transaction".to_string())),
        })
    }

    fn take(&self) -> Result<Kind> {
        self.slot()?.take().map(|open| open.kind).ok_or_else(ended)
    }
}

fn ended() -> Failure {
    Failure::Usage("the transaction has ended".to_string())
}

fn options(given: &highwater_txn_options) -> Result<TxnOptions> {
    let isolations = [
        (HIGHWATER_REPEATABLE_READ as i32, Isolation::RepeatableRead),
        (HIGHWATER_READ_COMMITTED as i32, Isolation::ReadCommitted),
        (HIGHWATER_READ_UNCOMMITTED as i32, Isolation::ReadUncommitted),
        (HIGHWATER_SERIALIZABLE as i32, Isolation::Serializable),
    ];
    let isolation = chosen(given.isolation, "highwater_isolation", &isolations)?;
    let durabilities = [
        (HIGHWATER_DURABILITY_DEFAULT as i32, None),
        (HIGHWATER_DURABILITY_SYNC as i32, Some(FlushLog::Sync)),
        (HIGHWATER_DURABILITY_WRITE as i32, Some(FlushLog::Write)),
        (HIGHWATER_DURABILITY_NONE as i32, Some(FlushLog::EverySecond)),
    ];
    let flush_log_at_trx_commit = chosen(given.durability, "highwater_durability", &durabilities)?;
    let lock_wait_timeout_ms = Some(given.lock_wait_timeout_ms).filter(|timeout| *timeout != 0);
    let highwater_txn_options { first_committer_wins, snapshot_at_begin, .. } = *given;
    Ok(TxnOptions { isolation, lock_wait_timeout_ms, first_committer_wins, snapshot_at_begin, flush_log_at_trx_commit })
}

/// The lock of a read.
///
/// # Errors
/// It is no `highwater_lock`.
pub(crate) fn lock_mode(lock: i32) -> Result<LockMode> {
    let locks = [
        (HIGHWATER_LOCK_NONE as i32, LockMode::None),
        (HIGHWATER_LOCK_SHARED as i32, LockMode::Shared),
        (HIGHWATER_LOCK_EXCLUSIVE as i32, LockMode::Exclusive),
    ];
    chosen(lock, "highwater_lock", &locks)
}

/// The wait policy for locks; with a timeout above 0 a wait lasts at most this long.
///
/// # Errors
/// `wait` is not a `highwater_wait`; a timeout for a policy that does not wait.
pub(crate) fn lock_wait(wait: i32, timeout_ms: u64) -> Result<LockWait> {
    let waits = [
        (HIGHWATER_WAIT_DEFAULT as i32, LockWait::Default),
        (HIGHWATER_NOWAIT as i32, LockWait::NoWait),
        (HIGHWATER_SKIP_LOCKED as i32, LockWait::SkipLocked),
    ];
    match (chosen(wait, "highwater_wait", &waits)?, timeout_ms) {
        (wait, 0) => Ok(wait),
        (LockWait::Default, ms) => Ok(LockWait::Timeout(Duration::from_millis(ms))),
        _ => Err(Failure::Usage("a timeout was given for a call that does not wait".to_string())),
    }
}

/// Begins a transaction that reads and writes; null options are the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_begin(
    db: *mut highwater_db,
    txn_options: *const highwater_txn_options,
    txn: *mut *mut highwater_txn,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (out, db) = (Out::handle(txn, "the transaction")?, handle::get(db)?);
        let given = structure(txn_options, "the options")?.map(options).transpose()?;
        out.put(new(Transaction::writing(db.begin_with(given.unwrap_or_default())?)));
        Ok(())
    })
}

/// Begins a transaction that reads one snapshot: what had committed at its first read. It takes no locks and is ended
/// by `highwater_txn_free`.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_snapshot(
    db: *mut highwater_db,
    txn: *mut *mut highwater_txn,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (out, db) = (Out::handle(txn, "the snapshot")?, handle::get(db)?);
        out.put(new(Transaction::reading(db.snapshot()?)));
        Ok(())
    })
}

/// Another transaction that reads the same snapshot, for another thread.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_same_snapshot(
    snapshot: *mut highwater_txn,
    txn: *mut *mut highwater_txn,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (out, snapshot) = (Out::handle(txn, "the snapshot")?, handle::get(snapshot)?);
        let other = snapshot.with(|kind| match kind {
            Kind::Read(txn) => Ok(txn.same_snapshot()?),
            Kind::Write(_) => Err(Failure::Usage("the transaction is not a snapshot".to_string())),
        })?;
        out.put(new(Transaction::reading(other)));
        Ok(())
    })
}

/// Commits a transaction: its changes are visible, and durable as its options say, when it returns `HIGHWATER_OK`. It
/// has ended then, also when the call fails; only `highwater_txn_free` is left to be called.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_commit(txn: *mut highwater_txn, error: *mut *mut highwater_error) -> highwater_code {
    done(error, || match handle::get(txn)?.take()? {
        Kind::Write(txn) => Ok(txn.commit()?),
        Kind::Read(txn) => {
            drop(txn);
            Ok(())
        }
    })
}

/// Rolls a transaction back. It has ended then; only `highwater_txn_free` is left to be called.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_rollback(txn: *mut highwater_txn, error: *mut *mut highwater_error) -> highwater_code {
    done(error, || match handle::get(txn)?.take()? {
        Kind::Write(txn) => Ok(txn.rollback()?),
        Kind::Read(txn) => {
            drop(txn);
            Ok(())
        }
    })
}

/// Frees a transaction, and rolls it back if it has not ended. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_txn_free(txn: *mut highwater_txn) {
    let _ = std::panic::catch_unwind(|| {
        // Its cursors may outlive it: it ends here. It does not wait: in a forked process no thread releases them.
        if let Ok(Some(transaction)) = handle::take(txn) {
            let open = transaction.open.try_lock().and_then(|mut open| open.take());
            drop(open);
        }
    });
}

/// Marks this point of the transaction.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_savepoint(
    txn: *mut highwater_txn,
    savepoint: *mut u64,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let (txn, out) = (handle::get(txn)?, Out::new(savepoint, "the savepoint")?);
        let number = txn.with_open(|open| match &mut open.kind {
            Kind::Write(txn) => {
                open.savepoints.push(txn.savepoint());
                Ok(open.savepoints.len() as u64)
            }
            Kind::Read(_) => Err(Failure::Usage("a snapshot has no savepoints".to_string())),
        })?;
        out.put(number);
        Ok(())
    })
}

/// Undoes what was done since a savepoint. Later savepoints are gone then; locks stay.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_rollback_to(
    txn: *mut highwater_txn,
    savepoint: u64,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        handle::get(txn)?.with_open(|open| {
            let at = usize::try_from(savepoint).ok().and_then(|number| number.checked_sub(1));
            let point = at.and_then(|at| open.savepoints.get(at)).copied();
            let point = point.ok_or_else(|| Failure::Usage(format!("there is no savepoint {savepoint}")))?;
            match &mut open.kind {
                Kind::Write(txn) => Ok(txn.rollback_to(point)?),
                Kind::Read(_) => Err(Failure::Usage("a snapshot has no savepoints".to_string())),
            }
        })
    })
}

/// Sets the behavior of the following calls, writes included, at locks of other transactions: a `highwater_wait`. With
/// `timeout_ms` above 0, `HIGHWATER_WAIT_DEFAULT` waits this many milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_set_lock_wait(
    txn: *mut highwater_txn,
    wait: i32,
    timeout_ms: u64,
    error: *mut *mut highwater_error,
) -> highwater_code {
    done(error, || {
        let wait = lock_wait(wait, timeout_ms)?;
        handle::get(txn)?.write(|txn| {
            txn.set_lock_wait(wait);
            Ok(())
        })
    })
}

/// Interrupts the transaction's call that waits or scans, or its next such call: the call fails with
/// `HIGHWATER_INTERRUPTED`. May be called by any thread while the handle is not freed.
#[unsafe(no_mangle)]
pub extern "C" fn highwater_interrupt(txn: *const highwater_txn, error: *mut *mut highwater_error) -> highwater_code {
    done(error, || {
        handle::get(txn)?.interrupt.interrupt();
        Ok(())
    })
}
