//! The life of a transaction: begin, first write, failure and end.
//!
//! Rules
//! 1. Each row operation is a statement: if it fails, its changes are undone before the error is returned. A deadlock
//!    rolls the whole transaction back.
//! 2. A transaction without a write has no id, no undo and no redo; its commit costs nothing.
//! 3. A transaction whose rollback fails stays active, its rows locked, until the database is opened again. So does one
//!    that is dropped without [`TxnSystem::commit`] or [`TxnSystem::rollback`]; its owner (`db`) ends every one.

use super::options::{Access, Isolation, TxnOptions};
use super::read::ViewHandle;
use super::rollback;
use super::row_closure::check_outside_row_closure;
use super::savepoint::Savepoint;
use super::system::TxnSystem;
use super::transaction::{ExpiryTime, Txn, TxnState};
use super::yield_cpu::yield_cpu;
use crate::error::{Error, Result};
use crate::lock::LockWait;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::{Lsn, TxnId};
use crate::undo::{UndoLog, UndoPlace, record::TxnState as UndoState};
use std::time::Duration;

impl TxnSystem {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Error::Usage`] from inside a row closure.
    pub(crate) fn begin(&self, options: &TxnOptions, access: Access) -> Result<Box<Txn>> {
        check_outside_row_closure()?;
        let mut txn = self.spare();
        txn.check_ended();
        txn.renew_serial();
        txn.state = TxnState::Active;
        txn.savepoints.clear();
        txn.isolation = options.isolation;
        txn.access = access;
        txn.expiry_time = ExpiryTime::NotChecked;
        txn.met_conflict = false;
        txn.logs_changes = false;
        txn.first_committer_wins = options.first_committer_wins && options.isolation == Isolation::RepeatableRead;
        txn.flush_log = options.flush_log_at_trx_commit;
        txn.lock_timeout = options.lock_wait_timeout_ms.map_or_else(|| self.lock_timeout(), Duration::from_millis);
        txn.lock_wait = LockWait::Default;
        txn.duplicate_lock = None;
        if options.snapshot_at_begin && options.isolation == Isolation::RepeatableRead {
            txn.open_view(self);
        }
        txn.check_state();
        Ok(txn)
    }

    /// Makes every change durable (as `flush_log_at_trx_commit` says) and visible.
    ///
    /// # Errors
    /// [`Error::Usage`] if the transaction was rolled back already. After any other error it is unknown whether it
    /// committed until the database is opened again.
    pub(crate) fn commit(&self, txn: Box<Txn>) -> Result<()> {
        self.commit_lsn(txn).map(drop)
    }

    /// As [`commit`](Self::commit); says up to which LSN the log has the commit, if anything was changed.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(crate) fn commit_lsn(&self, mut txn: Box<Txn>) -> Result<Option<Lsn>> {
        let finished = txn.check_active().and_then(|()| {
            let finished = txn.finish(self, UndoState::Committed);
            finished.inspect_err(|_| txn.state = TxnState::Broken)
        });
        let lsn = match finished {
            Ok(lsn) => lsn,
            Err(error) => {
                // A rollback that fails leaves the transaction active; recovery will undo it.
                let _ = self.rollback(txn);
                return Err(error);
            }
        };
        let flush_log = txn.flush_log;
        self.retire(txn);
        match lsn {
            Some(lsn) => {
                self.stats.trx_commits.inc();
                self.ctx.log.commit(lsn, flush_log)?;
                if !self.ctx.log.syncs_commits(flush_log) {
                    yield_cpu();
                }
            }
            None => self.ctx.poison.check()?,
        }
        Ok(lsn)
    }

    /// Undoes everything.
    ///
    /// # Errors
    /// I/O; the rows stay locked then until the database is opened again.
    pub(crate) fn rollback(&self, mut txn: Box<Txn>) -> Result<()> {
        check_outside_row_closure()?;
        if txn.undo.is_some() {
            self.stats.trx_rollbacks.inc();
            txn.unprepare(self)?;
            rollback::roll_back_all(self, &mut txn)?;
        }
        self.retire(txn);
        Ok(())
    }

    /// Undoes everything since `savepoint`, which stays. Later savepoints are removed.
    ///
    /// # Errors
    /// [`Error::Usage`] for a savepoint of another transaction or a removed savepoint; I/O, after which the transaction
    /// can only be rolled back.
    pub(crate) fn rollback_to(&self, txn: &mut Txn, savepoint: Savepoint) -> Result<()> {
        txn.check_active()?;
        if savepoint.txn_serial != txn.serial {
            return Err(Error::Usage("the savepoint is not one of this transaction".to_string()));
        }
        if txn.savepoints.is_removed(savepoint.number) {
            let reason = "the savepoint no longer exists: the transaction was rolled back to an earlier savepoint";
            return Err(Error::Usage(reason.to_string()));
        }
        txn.changes += 1;
        rollback::roll_back_to(self, txn, savepoint.at).inspect_err(|_| txn.state = TxnState::Broken)?;
        txn.savepoints.remove_after(savepoint.number);
        debug_assert!(!txn.savepoints.is_removed(savepoint.number), "the savepoint that is rolled back to is removed");
        Ok(())
    }

    pub(super) fn retire(&self, mut txn: Box<Txn>) {
        txn.end(self);
        txn.buffers.trim();
        txn.check_ended();
        self.keep_spare(txn);
    }
}

impl Txn {
    /// Prepares the transaction for writes: assigns an id and a stream.
    pub(crate) fn prepare_write(&mut self, system: &TxnSystem) -> Result<()> {
        debug_assert_eq!(self.state, TxnState::Active, "the transaction {} writes", self.id);
        self.changes += 1;
        if self.undo.is_some() {
            return Ok(());
        }
        if self.access == Access::ReadOnly {
            return Err(Error::Usage("the transaction is read-only".to_string()));
        }
        if self.first_committer_wins {
            self.open_view(system);
        }
        let stream = system.undo.bind()?;
        match system.activate(&self.holder, self.shard) {
            Ok(id) => {
                self.undo = Some(UndoLog::new(stream));
                self.id = id;
                self.check_state();
                Ok(())
            }
            Err(error) => {
                system.undo.release(stream);
                Err(error)
            }
        }
    }

    /// Refuses locking reads of a read-only transaction, and opens the view that first-committer-wins compares with.
    pub(crate) fn prepare_locking_read(&mut self, system: &TxnSystem) -> Result<()> {
        if self.access == Access::ReadOnly {
            return Err(Error::Usage("a read-only transaction takes no row locks".to_string()));
        }
        if self.first_committer_wins {
            self.open_view(system);
        }
        Ok(())
    }

    /// Opens the transaction's view if it has none.
    pub(crate) fn open_view(&mut self, system: &TxnSystem) -> &ViewHandle {
        let shard = self.shard;
        self.view.get_or_insert_with(|| system.open_view(shard))
    }

    /// Sees what `other` sees.
    pub(crate) fn share_view(&mut self, system: &TxnSystem, other: &mut Txn) {
        debug_assert!(self.view.is_none(), "a transaction changes its view after it has read");
        self.view = Some(other.open_view(system).clone());
    }

    /// Undoes a failed statement, or after a deadlock the whole transaction. Returns the error to report.
    pub(crate) fn undo_statement(&mut self, system: &TxnSystem, before: Option<UndoPlace>, error: Error) -> Error {
        self.met_conflict |= matches!(error, Error::WriteConflict);
        debug_assert_ne!(self.state, TxnState::Prepared, "a statement of a prepared transaction fails");
        let undone = if matches!(error, Error::Deadlock) {
            system.stats.trx_rollbacks.inc();
            let undone = rollback::roll_back_all(system, self);
            if undone.is_ok() {
                self.state = TxnState::RolledBack;
                self.end(system);
                self.check_state();
            }
            undone
        } else {
            rollback::roll_back_to(system, self, before)
        };
        match undone {
            Ok(()) => error,
            Err(failure) => {
                self.state = TxnState::Broken;
                failure
            }
        }
    }

    /// After the error of a read that waits for locks: undoes the whole transaction if it was a deadlock, else nothing.
    /// Returns the error to report.
    pub(crate) fn after_read_error(&mut self, system: &TxnSystem, error: Error) -> Error {
        match error {
            Error::Deadlock => self.undo_statement(system, None, error),
            error => {
                self.met_conflict |= matches!(error, Error::WriteConflict);
                error
            }
        }
    }

    /// Writes the transaction's end and leaves the active set; see the order in `system.rs`.
    pub(crate) fn finish(&mut self, system: &TxnSystem, state: UndoState) -> Result<Option<Lsn>> {
        let Some(mut undo) = self.undo.take() else { return Ok(None) };
        debug_assert_ne!(self.id, TxnId(0), "rule 2: a transaction that has not written has undo");
        if undo.start().is_none() {
            system.undo.release(undo.into_stream());
            system.deactivate(self.id, self.shard);
            return Ok(None);
        }
        let is_prepared = self.state == TxnState::Prepared;
        let number = match system.begin_commit(self.id, self.shard, is_prepared) {
            Ok(number) => number,
            Err(error) => {
                self.undo = Some(undo);
                return Err(error);
            }
        };
        let lsn = match undo.finish(&system.ctx, self.id, state, number) {
            Ok(lsn) => lsn,
            Err(error) => {
                system.abort_commit(self.id, self.shard);
                self.undo = Some(undo);
                return Err(error);
            }
        };
        let records = undo.purge_pending_records();
        self.own_versions = None;
        let stream = undo.into_stream();
        system.note_ended(&stream, number, records);
        system.undo.release(stream);
        system.deactivate(self.id, self.shard);
        Ok(lsn)
    }

    /// Releases locks and view, and prepares the memory for the next transaction.
    fn end(&mut self, system: &TxnSystem) {
        self.check_left(system);
        system.locks.release_all(&self.holder);
        self.auto_increment_locks.clear();
        (self.view, self.statement) = (None, None);
        self.interrupt = None;
        self.holder.weight.store(0, Relaxed);
        self.id = TxnId(0);
    }
}
