//! Statements: their waits for locks of other transactions; for statements of several calls, their view and their undo.
//!
//! Rules
//! 1. Under READ COMMITTED all plain reads of a statement see one moment: that of its first read. A call outside a
//!    statement is its own statement.
//! 2. Each statement ends before the next one begins, and before the transaction ends (an end ends it too).
//! 3. Undoing a statement restores the state of the transaction before it, except its locks. Auto-increment locks end
//!    with the statement.

use super::auto_increment_lock;
use super::options::Isolation;
use super::read::ViewHandle;
use super::row_closure::check_outside_row_closure;
use super::system::TxnSystem;
use super::table_trees::TableTrees;
use super::transaction::{Statement, Txn, TxnState};
use crate::error::{Error, Result};
use crate::lock::{LockMode, LockWait};
use crate::sync::interrupt::Patience;
use std::time::Duration;

impl Txn {
    /// Begins a statement.
    ///
    /// # Errors
    /// [`Error::Usage`] in another one, or if the transaction cannot continue.
    pub(crate) fn begin_statement(&mut self) -> Result<()> {
        self.check_active()?;
        if self.statement.is_some() {
            return Err(Error::Usage("a statement has begun already; end it first".to_string()));
        }
        self.statement = Some(Statement { before: self.savepoint(), view: None });
        Ok(())
    }

    /// The view of a plain read that is not of the transaction's snapshot: the statement's, or one of this moment.
    pub(super) fn open_read_view(&mut self, system: &TxnSystem) -> ViewHandle {
        let shard = self.shard;
        match &mut self.statement {
            Some(statement) => statement.view.get_or_insert_with(|| system.open_view(shard)).clone(),
            None => system.open_view(shard),
        }
    }
}

/// The behavior at locks of others.
impl Txn {
    /// The mode in which an insertion locks its duplicate row: the requested mode, or that of a plain read, because the
    /// detection of the duplicate is a read.
    pub(super) fn lock_of_duplicate(&self) -> LockMode {
        self.duplicate_lock.unwrap_or_else(|| self.lock_of_read(LockMode::None))
    }

    /// The row of this key is the duplicate of an insertion.
    pub(super) fn note_duplicate(&mut self, key: &[u8]) {
        if self.duplicate_lock.is_some() {
            self.duplicate_key.clear();
            self.duplicate_key.extend_from_slice(key);
        }
    }

    /// Keeps others from inserting the row of a key, which does not exist for it. Its leaf is latched.
    pub(super) fn lock_absence(&self, system: &TxnSystem, table: &dyn TableTrees, key: &[u8]) {
        if self.locks_ranges() {
            system.locks.lock_point(&self.holder, table.clustered().id(), key);
        }
    }

    /// The timeout of its waits for locks of rows, ranges and tables. (Tables are not skipped.)
    pub(crate) fn patience(&self) -> Patience<'_> {
        let timeout = match self.lock_wait {
            LockWait::Default | LockWait::SkipLocked => self.lock_timeout,
            LockWait::Timeout(timeout) => timeout,
            LockWait::NoWait => Duration::ZERO,
        };
        Patience { timeout, interrupt: self.interrupt.as_ref() }
    }

    /// At a step of a long call: takes an interruption.
    #[inline]
    pub(crate) fn check_interrupt(&self) -> Result<()> {
        self.interrupt.as_ref().map_or(Ok(()), |interrupt| interrupt.check())
    }

    /// Runs a statement with a policy of its own for locks of others.
    #[inline]
    pub(crate) fn with_lock_wait<R>(&mut self, own: Option<LockWait>, run: impl FnOnce(&mut Txn) -> R) -> R {
        let Some(own) = own else { return run(self) };
        let outer = std::mem::replace(&mut self.lock_wait, own);
        let done = run(self);
        self.lock_wait = outer;
        done
    }

    /// Whether locking reads pass rows that others have locked.
    pub(crate) fn skips_locked(&self) -> bool {
        self.lock_wait == LockWait::SkipLocked
    }

    /// Whether locking reads lock ranges: see [`LockWait::SkipLocked`].
    pub(crate) fn reads_lock_ranges(&self) -> bool {
        self.locks_ranges() && (self.isolation == Isolation::Serializable || !self.skips_locked())
    }
}

impl TxnSystem {
    /// Ends a statement; what it did stays or is undone.
    ///
    /// # Errors
    /// [`Error::Usage`] outside of a statement; undoing, I/O: the transaction can only be rolled back then.
    pub(crate) fn end_statement(&self, txn: &mut Txn, keeps: bool) -> Result<()> {
        check_outside_row_closure()?;
        let statement = txn.statement.take();
        auto_increment_lock::unlock_all(self, txn);
        // A deadlock has undone it already, with all else, and has ended it.
        if txn.state == TxnState::RolledBack {
            return Ok(());
        }
        let none = || Error::Usage("no statement has begun".to_string());
        let statement = statement.ok_or_else(none)?;
        if keeps { Ok(()) } else { self.rollback_to(txn, statement.before) }
    }
}
