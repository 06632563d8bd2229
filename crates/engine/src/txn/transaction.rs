//! A transaction: its states and its whole life.
//!
//! ```text
//! Active --commit-----------------------> ended
//!   |  \--rollback----------------------> ended
//!   |--prepare---> Prepared --commit or rollback-> ended (every other call: an error; see `prepared.rs`)
//!   |--deadlock--> RolledBack --rollback-> ended      (every other call: an error)
//!   \--failed rollback--> Broken --rollback-> ended if the rollback succeeds now
//! ```
//! Rules
//! 1. Each row operation is a statement: if it fails, its changes are undone before the error is returned. A deadlock
//!    rolls the whole transaction back.
//! 2. A transaction without a write has no id, no undo and no redo; its commit costs nothing.
//! 3. A transaction whose rollback fails stays active, its rows locked, until the database is opened again. So does one
//!    that is dropped without [`TxnSystem::commit`] or [`TxnSystem::rollback`]; its owner (`db`) ends every one.

use super::expiry::ExpiryTime;
use super::options::{Access, Isolation, TxnOptions};
use super::read::{OwnVersions, ViewHandle};
use super::rollback;
use super::row_closure::check_outside_row_closure;
use super::savepoint::{Savepoint, Savepoints};
use super::statement::Statement;
use super::system::TxnSystem;
use super::yield_cpu::yield_cpu;
use crate::config::FlushLog;
use crate::error::{Error, Result};
use crate::lock::{Holder, LockMode, LockWait};
use crate::row::format::{OverflowRef, RowHeader};
use crate::sync::IdGenerator;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::interrupt::Interrupt;
use crate::types::{Lsn, TxnId};
use crate::undo::{UndoLog, UndoPlace, record::TxnState as UndoState};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TxnState {
    #[default]
    Active,
    Prepared,
    RolledBack,
    Broken,
}

/// A transaction. Its memory is reused for the next one, so that its buffers grow once.
#[derive(Debug, Default)]
pub struct Txn {
    pub(crate) state: TxnState,
    pub(crate) isolation: Isolation,
    access: Access,
    pub(super) expiry_time: ExpiryTime,
    pub(crate) first_committer_wins: bool,
    /// Whether one of its calls has met a write conflict.
    met_conflict: bool,
    /// What its commit does with its redo, if it says.
    pub(super) flush_log: Option<FlushLog>,
    /// How long it waits for a lock, if the statement does not say otherwise.
    pub(super) lock_timeout: Duration,
    /// What the statement does about a lock of another transaction.
    pub(crate) lock_wait: LockWait,
    /// By which other threads interrupt it.
    pub(crate) interrupt: Option<Arc<Interrupt>>,
    /// Tells transactions of this process apart, read-only ones too.
    pub(crate) serial: u64,
    /// Id once it has written, else 0.
    pub(crate) id: TxnId,
    pub(crate) holder: Arc<Holder>,
    /// Its shard of the active set, and its list of views.
    pub(super) shard: usize,
    pub(crate) undo: Option<UndoLog>,
    /// What rollbacks of a part of it remember.
    pub(super) own_versions: Option<Box<OwnVersions>>,
    pub(crate) view: Option<ViewHandle>,
    pub(super) statement: Option<Statement>,
    /// How an insertion locks the row that is its duplicate; `None`: as a plain read.
    pub(crate) duplicate_lock: Option<LockMode>,
    /// Key of the last duplicate whose lock was asked for so.
    pub(crate) duplicate_key: Vec<u8>,
    /// Whether it may have changed rows of tables that log their changes.
    pub(crate) logs_changes: bool,
    /// Counts what may have changed rows: row operations and rollbacks to savepoints.
    pub(crate) changes: u64,
    savepoints: Savepoints,
    pub(crate) buffers: RowBuffers,
}

/// Scratch memory of row operations.
#[derive(Debug, Default)]
pub(crate) struct RowBuffers {
    /// Row before the operation.
    pub(crate) old_row: Vec<u8>,
    /// Row after it.
    pub(crate) new_row: Vec<u8>,
    /// Stored value: header and payload.
    pub(crate) value: Vec<u8>,
    /// Undo record, and the moved entries in it.
    pub(crate) record: Vec<u8>,
    pub(crate) entries: Vec<u8>,
    /// Secondary entry keys, old and new.
    pub(crate) old_entry: Vec<u8>,
    pub(crate) new_entry: Vec<u8>,
    /// Value of an entry.
    pub(crate) entry_value: Vec<u8>,
    /// Indexes whose entries may change.
    pub(crate) changed: Vec<usize>,
    /// Overflow chains that the operation's undo record names.
    pub(crate) chains: Vec<OverflowRef>,
}

impl RowBuffers {
    /// Releases what rows larger than usual have taken.
    fn trim(&mut self) {
        for buffer in [&mut self.old_row, &mut self.new_row, &mut self.value, &mut self.record, &mut self.entries] {
            if buffer.capacity() > KEPT_ROW_BYTES {
                *buffer = Vec::new();
            }
        }
    }
}

impl TxnSystem {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Error::Usage`] from inside a row closure.
    pub fn begin(&self, options: &TxnOptions, access: Access) -> Result<Box<Txn>> {
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
        Ok(txn)
    }

    /// Makes every change durable (as `flush_log_at_trx_commit` says) and visible.
    ///
    /// # Errors
    /// [`Error::Usage`] if the transaction was rolled back already. After any other error it is unknown whether it
    /// committed until the database is opened again.
    pub fn commit(&self, txn: Box<Txn>) -> Result<()> {
        self.commit_lsn(txn).map(drop)
    }

    /// As [`commit`](Self::commit); says up to which LSN the log has the commit, if anything was changed.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_lsn(&self, mut txn: Box<Txn>) -> Result<Option<Lsn>> {
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
    pub fn rollback(&self, mut txn: Box<Txn>) -> Result<()> {
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
    /// [`Error::Usage`] for a savepoint of another transaction or one that was removed; I/O, after which the
    /// transaction can only be rolled back.
    pub fn rollback_to(&self, txn: &mut Txn, savepoint: Savepoint) -> Result<()> {
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

/// Most bytes of a buffer for rows that is kept for the next transaction.
pub(crate) const KEPT_ROW_BYTES: usize = 64 << 10;

/// Ids that the memory of a transaction takes at once.
const IDS: u64 = 1 << 20;

impl Txn {
    /// Gives the transaction a serial that no other has.
    #[inline]
    fn renew_serial(&mut self) {
        static NEXT: IdGenerator = IdGenerator::new();
        self.serial += 1;
        if self.serial.is_multiple_of(IDS) || self.serial == 1 {
            self.serial = NEXT.next() * IDS + 1;
        }
    }

    /// A transaction that has not begun, in this shard of the active set.
    pub(crate) fn new(shard: usize) -> Txn {
        Txn { shard, ..Txn::default() }
    }

    /// What it sees of others.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Its number, from its first write on.
    pub fn number(&self) -> Option<u64> {
        (self.id != TxnId(0)).then_some(self.id.0)
    }

    /// Marks the present state, to be rolled back to.
    pub fn savepoint(&mut self) -> Savepoint {
        Savepoint { at: self.position(), txn_serial: self.serial, number: self.savepoints.take() }
    }

    /// Refuses calls that the transaction cannot serve in its state.
    #[inline]
    pub(crate) fn check_active(&self) -> Result<()> {
        check_outside_row_closure()?;
        self.check_state();
        match self.state {
            TxnState::Active => Ok(()),
            TxnState::Prepared => Err(Error::Usage("the transaction is prepared: it can only be ended".to_string())),
            TxnState::RolledBack => Err(Error::Usage("the transaction was rolled back; begin a new one".to_string())),
            TxnState::Broken => Err(Error::Usage("the transaction could not be rolled back".to_string())),
        }
    }

    /// Whether it was rolled back to end a deadlock.
    pub(crate) fn is_deadlock_victim(&self) -> bool {
        self.state == TxnState::RolledBack
    }

    /// Whether it has met another transaction in a way that a second attempt may not: a deadlock or a write conflict.
    pub(crate) fn met_another(&self) -> bool {
        self.met_conflict || self.is_deadlock_victim()
    }

    /// Whether it wrote the version of this row.
    #[inline]
    pub(crate) fn wrote(&self, header: &RowHeader) -> bool {
        header.trx_id == self.id && self.id != TxnId(0)
    }

    /// Whether writes lock ranges.
    pub(crate) fn locks_ranges(&self) -> bool {
        self.isolation.locks_ranges()
    }

    /// Whether it may have locked rows, or ranges of keys, that it has not written: others may wait for it.
    pub(crate) fn holds_rows(&self) -> bool {
        self.holder.has_locks()
    }

    /// How a read that asks for `lock` locks: a plain one under SERIALIZABLE is a shared one.
    #[inline]
    pub(crate) fn lock_of_read(&self, lock: LockMode) -> LockMode {
        match (self.isolation, lock) {
            (Isolation::Serializable, LockMode::None) => LockMode::Shared,
            (_, lock) => lock,
        }
    }

    /// Makes the transaction one that can write: gives it an id and a stream.
    pub(crate) fn prepare_write(&mut self, system: &TxnSystem) -> Result<()> {
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
        self.view = Some(other.open_view(system).clone());
    }

    /// Undo position of this moment; `None`: before the first write.
    pub(crate) fn position(&self) -> Option<UndoPlace> {
        let undo = self.undo.as_ref()?;
        undo.start().map(|_| undo.tail())
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
        (self.view, self.statement) = (None, None);
        self.interrupt = None;
        self.holder.weight.store(0, Relaxed);
        self.id = TxnId(0);
    }
}
