//! A session: a connection's transactions and statements.
//!
//! Rules
//! 1. A statement is begun once, by whichever table comes first, and ended once; the end of a transaction ends it too.
//! 2. After a deadlock the transaction is rolled back already: the statement's end is not an error, and what is left to
//!    do is the rollback.

use crate::abi::SessionOptions;
use crate::database::Database;
use crate::failure::{Code, guarded};
use crate::information::{Connection, OpenTxn};
use crate::temporary::PostponedDrops;
use highwater::config::FlushLog;
use highwater::{Error, InterruptHandle, Isolation, LockWait, PreparedTxn, Result, Savepoint, TxnOptions, WriteTxn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

static NEXT_SERIAL: AtomicU64 = AtomicU64::new(1);

/// A connection's session.
pub struct Session {
    inner: highwater::Session,
    is_in_statement: bool,
    /// Number of its transaction, unique in the process.
    pub(crate) serial: u64,
    /// Its transaction's number in the list of locks.
    lock_owner: u64,
    savepoints: Vec<Savepoint>,
    pub(crate) prepared: Option<PreparedTxn>,
    /// The result of `hw_commit_ordered`.
    pub(crate) ordered: Option<Result<u64>>,
    /// The part that other connections see.
    connection: Arc<Connection>,
    postponed: Arc<PostponedDrops>,
}

/// A handle that interrupts a session from another thread.
pub struct Interrupt(InterruptHandle);

impl SessionOptions {
    fn txn_options(&self) -> TxnOptions {
        TxnOptions {
            isolation: match self.isolation {
                0 => Isolation::ReadUncommitted,
                1 => Isolation::ReadCommitted,
                3 => Isolation::Serializable,
                _ => Isolation::RepeatableRead,
            },
            lock_wait_timeout_ms: None,
            first_committer_wins: self.first_committer_wins != 0,
            snapshot_at_begin: self.snapshot_at_begin != 0,
            flush_log_at_trx_commit: match self.flush_log {
                0 => Some(FlushLog::EverySecond),
                1 => Some(FlushLog::Sync),
                2 => Some(FlushLog::Write),
                _ => None,
            },
        }
    }

    fn lock_wait(&self) -> LockWait {
        match (self.skip_locked, self.lock_timeout_ms) {
            (0, 0) => LockWait::NoWait,
            (0, ms) => LockWait::Timeout(Duration::from_millis(ms)),
            _ => LockWait::SkipLocked,
        }
    }
}

impl Session {
    /// The open transaction, or a new one.
    ///
    /// # Errors
    /// As that of a session of the engine; or the session's transaction is prepared.
    #[inline]
    pub fn txn(&mut self) -> Result<&mut WriteTxn> {
        if self.prepared.is_some() {
            return Err(Error::Usage("the session's transaction is prepared".to_string()));
        }
        self.inner.txn()
    }

    /// Prepares the open transaction; the session has none afterwards.
    pub(crate) fn prepare(&mut self, xid: highwater::Xid) -> Result<()> {
        self.leave_statement();
        self.connection.set(None);
        self.prepared = self.inner.prepare(xid)?;
        Ok(())
    }

    fn begin(&mut self, options: &SessionOptions) -> Result<()> {
        let is_new = !self.inner.is_open();
        if is_new {
            self.serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
            self.inner.set_options(options.txn_options());
            self.leave_statement();
            self.savepoints.clear();
        }
        self.inner.set_lock_wait(options.lock_wait());
        if is_new {
            let watch = self.txn()?.watch();
            self.lock_owner = watch.owner();
            self.connection.set(Some(OpenTxn { watch, isolation: options.isolation, began: Instant::now() }));
        }
        Ok(())
    }

    fn begin_statement(&mut self, options: &SessionOptions) -> Result<()> {
        let is_in_statement = std::mem::take(&mut self.is_in_statement) && self.inner.is_open();
        self.begin(options)?;
        if !is_in_statement {
            self.inner.interrupt_handle().clear();
            self.txn()?.begin_statement()?;
        }
        self.is_in_statement = true;
        Ok(())
    }

    fn end_statement(&mut self, keep: bool) -> Result<()> {
        if !std::mem::take(&mut self.is_in_statement) || !self.inner.is_open() {
            return Ok(());
        }
        let txn = self.inner.txn()?;
        if keep { txn.end_statement() } else { txn.undo_statement() }
    }

    pub(crate) fn leave_statement(&mut self) {
        self.is_in_statement = false;
    }

    fn commit(&mut self) -> Result<()> {
        self.leave_statement();
        self.connection.set(None);
        let ended = self.commit_open();
        self.postponed.go_on();
        ended
    }

    fn commit_open(&mut self) -> Result<()> {
        if let Some(ordered) = self.ordered.take() {
            return ordered.map(|_| ());
        }
        match self.prepared.take() {
            Some(prepared) => prepared.commit(),
            None => self.inner.commit(),
        }
    }

    fn rollback(&mut self) -> Result<()> {
        self.leave_statement();
        self.connection.set(None);
        let ended = self.rollback_open();
        self.postponed.go_on();
        ended
    }

    fn rollback_open(&mut self) -> Result<()> {
        self.ordered = None;
        match self.prepared.take() {
            Some(prepared) => prepared.rollback(),
            None => self.inner.rollback(),
        }
    }

    fn savepoint(&mut self) -> Result<u64> {
        let savepoint = self.txn()?.savepoint();
        self.savepoints.push(savepoint);
        Ok(self.savepoints.len() as u64 - 1)
    }

    fn rollback_to(&mut self, savepoint: u64) -> Result<()> {
        let at = usize::try_from(savepoint).unwrap_or(usize::MAX);
        let found = self.savepoints.get(at).copied();
        let savepoint = found.ok_or_else(|| Error::Usage("there is no such savepoint".to_string()))?;
        self.end_statement(true)?;
        self.savepoints.truncate(at + 1);
        self.txn()?.rollback_to(savepoint)
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_session_new(database: &Database, connection: u64, out: &mut Option<Box<Session>>) -> i32 {
    guarded(|| {
        *out = Some(Box::new(Session {
            inner: database.db.session(),
            is_in_statement: false,
            serial: 0,
            lock_owner: 0,
            savepoints: Vec::new(),
            prepared: None,
            ordered: None,
            connection: database.connections.add(connection),
            postponed: Arc::clone(&database.postponed),
        }));
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_session_free(session: Option<Box<Session>>) {
    guarded(|| {
        drop(session);
        Ok(Code::Ok)
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_session_interrupt(session: &Session) -> Box<Interrupt> {
    Box::new(Interrupt(session.inner.interrupt_handle()))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_interrupt_raise(interrupt: &Interrupt) {
    guarded(|| {
        interrupt.0.interrupt();
        Ok(Code::Ok)
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_interrupt_free(interrupt: Option<Box<Interrupt>>) {
    drop(interrupt);
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_begin(session: &mut Session, options: &SessionOptions) -> i32 {
    guarded(|| session.begin(options).map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_statement_begin(session: &mut Session, options: &SessionOptions) -> i32 {
    guarded(|| session.begin_statement(options).map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_statement_end(session: &mut Session, keep: u32) -> i32 {
    guarded(|| session.end_statement(keep != 0).map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_savepoint(session: &mut Session, savepoint: &mut u64) -> i32 {
    guarded(|| {
        *savepoint = session.savepoint()?;
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_rollback_to(session: &mut Session, savepoint: u64) -> i32 {
    guarded(|| session.rollback_to(savepoint).map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_commit(session: &mut Session) -> i32 {
    guarded(|| session.commit().map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_rollback(session: &mut Session) -> i32 {
    guarded(|| session.rollback().map(|()| Code::Ok))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_lock_owner(session: &Session) -> u64 {
    session.lock_owner
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_transaction_id(session: &mut Session) -> u64 {
    if session.inner.is_open() { session.txn().ok().and_then(|txn| txn.id()).unwrap_or(0) } else { 0 }
}
