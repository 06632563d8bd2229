//! A transaction: its states and its whole life.
//!
//! ```text
//! Active --commit()----------------------------> ended
//!   |  \--rollback(), drop---------------------> ended
//!   |--deadlock--> RolledBack --rollback(), drop-> ended      (every other call: an error)
//!   \--failed rollback--> Broken --rollback(), drop-> ended if the rollback succeeds now
//! ```
//! Rules
//! 1. Each row operation is a statement: if it fails, what it changed is undone before the error is returned. A deadlock
//!    rolls the whole transaction back.
//! 2. A transaction without a write has no id, no undo and nothing in the log; committing it costs nothing.
//! 3. A transaction whose rollback fails stays active, its rows locked, until the database is opened again.
//! 4. Row closures run under a page latch: a thread must not call into the engine from one. It gets an error if it does.

use super::lock::Holder;
use super::read::ViewHandle;
use super::system::TxnSystem;
use super::undo::record::State as UndoState;
use super::undo::{Place, Recovered, UndoLog};
use super::{rollback, table_trees::TableTrees};
use crate::error::{Error, Result};
use crate::types::{Lsn, TxnId};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// What a transaction sees of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each read sees what had committed when it began.
    ReadCommitted,
    /// All snapshot reads see what had committed at the first one; writes and locking reads see the newest committed row,
    /// locking range reads keep others from inserting into the range.
    #[default]
    RepeatableRead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrxOptions {
    /// What it sees.
    pub isolation: Isolation,
    /// Milliseconds it waits for a row lock.
    pub lock_wait_timeout_ms: u64,
    /// Refuse to change or lock a row that changed after the snapshot ([`Error::WriteConflict`]); REPEATABLE READ only.
    pub first_committer_wins: bool,
    /// Refuse every write and locking read.
    pub read_only: bool,
}

impl Default for TrxOptions {
    fn default() -> TrxOptions {
        TrxOptions {
            isolation: Isolation::RepeatableRead,
            lock_wait_timeout_ms: 50_000,
            first_committer_wins: false,
            read_only: false,
        }
    }
}

/// A point to roll back to.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    /// Undo position; `None`: before the first write.
    pub(crate) at: Option<Place>,
    txn_serial: u64,
    /// Counts the savepoints of its transaction, from 1.
    number: u64,
}

/// The savepoints of a transaction: how many there were, and which a rollback to an earlier one has removed.
#[derive(Debug, Default)]
pub(crate) struct Savepoints {
    taken: u64,
    /// Runs of removed ones, in order and apart: the number before the first, and the last.
    removed: Vec<(u64, u64)>,
}

impl Savepoints {
    fn take(&mut self) -> u64 {
        self.taken += 1;
        self.taken
    }

    fn is_removed(&self, number: u64) -> bool {
        let runs = self.removed.partition_point(|(before, _)| *before < number);
        runs.checked_sub(1).is_some_and(|run| number <= self.removed[run].1)
    }

    /// Removes those after `number`, which is there.
    fn remove_after(&mut self, number: u64) {
        while self.removed.pop_if(|(before, _)| *before >= number).is_some() {}
        if self.taken > number {
            self.removed.push((number, self.taken));
        }
    }

    fn clear(&mut self) {
        self.taken = 0;
        self.removed.clear();
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Active,
    RolledBack,
    Broken,
}

/// Everything of a transaction but the system it belongs to; reused from one transaction to the next, so that its buffers
/// grow once.
#[derive(Debug, Default)]
pub(crate) struct TxnBody {
    pub(crate) state: State,
    pub(crate) options: TrxOptions,
    /// Tells transactions of this process apart, read-only ones too.
    pub(crate) serial: u64,
    /// Id once it has written, else 0.
    pub(crate) id: TxnId,
    pub(crate) holder: Arc<Holder>,
    /// Its shard of the active set.
    pub(crate) shard: usize,
    pub(crate) undo: Option<UndoLog>,
    pub(crate) view: Option<ViewHandle>,
    pub(crate) savepoints: Savepoints,
    pub(crate) buffers: Buffers,
}

/// Scratch memory of row operations.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
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
    /// Indexes whose entries may change.
    pub(crate) changed: Vec<usize>,
    /// Keys met on the way.
    pub(crate) key: Vec<u8>,
}

/// A row closure: gets the present payload, writes the new one, says whether there is a change.
pub type RowChange<'f> = dyn FnMut(&[u8], &mut Vec<u8>) -> Result<bool> + 'f;

thread_local! {
    static IN_ROW_CLOSURE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a row closure, under a latch, with the engine closed to this thread.
pub(crate) fn closed<R>(run: impl FnOnce() -> R) -> R {
    struct Reopen;
    impl Drop for Reopen {
        fn drop(&mut self) {
            IN_ROW_CLOSURE.set(false);
        }
    }
    IN_ROW_CLOSURE.set(true);
    let _reopen = Reopen;
    run()
}

/// Refuses a call from inside a row closure.
pub(crate) fn check_open() -> Result<()> {
    if IN_ROW_CLOSURE.get() {
        return Err(Error::Usage("the database was called from inside a closure that changes a row".to_string()));
    }
    Ok(())
}

/// A transaction. Dropping it rolls it back.
pub struct Txn {
    pub(crate) system: Arc<TxnSystem>,
    /// Taken when the transaction ends.
    pub(crate) body: Option<Box<TxnBody>>,
}

impl TxnSystem {
    /// Begins a transaction.
    ///
    /// # Errors
    /// [`Error::Usage`] from inside a row closure.
    pub fn begin(self: &Arc<Self>, options: TrxOptions) -> Result<Txn> {
        check_open()?;
        let mut body = self.spare_body();
        body.serial = next_serial();
        body.state = State::Active;
        body.savepoints.clear();
        body.options = options;
        body.options.first_committer_wins &= options.isolation == Isolation::RepeatableRead;
        Ok(Txn { system: Arc::clone(self), body: Some(body) })
    }
}

fn next_serial() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

impl TxnBody {
    /// Refuses calls that the transaction cannot serve in its state.
    #[inline]
    pub(crate) fn check_active(&self) -> Result<()> {
        check_open()?;
        match self.state {
            State::Active => Ok(()),
            State::RolledBack => Err(Error::Usage("the transaction was rolled back; begin a new one".to_string())),
            State::Broken => Err(Error::Usage("the transaction could not be rolled back".to_string())),
        }
    }

    pub(crate) fn lock_timeout(&self) -> Duration {
        Duration::from_millis(self.options.lock_wait_timeout_ms)
    }

    /// Whether locking reads lock ranges.
    pub(crate) fn locks_ranges(&self) -> bool {
        self.options.isolation == Isolation::RepeatableRead
    }

    /// Makes the transaction one that can write: gives it an id and a stream.
    pub(crate) fn prepare_write(&mut self, system: &TxnSystem) -> Result<()> {
        if self.undo.is_some() {
            return Ok(());
        }
        if self.options.read_only {
            return Err(Error::Usage("the transaction is read-only".to_string()));
        }
        if self.options.first_committer_wins {
            self.open_view(system);
        }
        let stream = system.undo.bind()?;
        match system.activate(&self.holder, self.shard) {
            Ok(id) => {
                self.undo = Some(UndoLog::new(stream));
                self.id = id;
                Ok(())
            }
            Err(error) => {
                system.undo.release(stream);
                Err(error)
            }
        }
    }

    /// Opens the transaction's view if it has none.
    pub(crate) fn open_view(&mut self, system: &TxnSystem) -> &ViewHandle {
        self.view.get_or_insert_with(|| system.open_view())
    }

    /// Undo position of this moment; `None`: before the first write.
    pub(crate) fn position(&self) -> Option<Place> {
        let undo = self.undo.as_ref()?;
        undo.start().map(|_| undo.tail())
    }

    /// Becomes a transaction that a crash cut off.
    pub(crate) fn adopt(&mut self, recovered: Recovered, holder: Arc<Holder>, shard: usize) {
        self.id = recovered.id;
        (self.holder, self.shard) = (holder, shard);
        self.undo = Some(UndoLog::recovered(recovered.stream, recovered.header));
    }

    /// Writes the transaction's end and leaves the active set; see the order in `system.rs`.
    pub(crate) fn finish(&mut self, system: &TxnSystem, state: UndoState) -> Result<Option<Lsn>> {
        let Some(undo) = self.undo.take() else { return Ok(None) };
        if undo.start().is_none() {
            system.undo.release(undo.into_stream());
            system.deactivate(self.id, self.shard);
            return Ok(None);
        }
        let number = match system.begin_commit(self.id, self.shard) {
            Ok(number) => number,
            Err(error) => {
                self.undo = Some(undo);
                return Err(error);
            }
        };
        let lsn = match undo.finish(&system.ctx, state, number) {
            Ok(lsn) => lsn,
            Err(error) => {
                system.abort_commit(self.id, self.shard);
                self.undo = Some(undo);
                return Err(error);
            }
        };
        let records = undo.unpurged_records();
        let stream = undo.into_stream();
        system.note_ended(&stream, number, records);
        system.undo.release(stream);
        system.deactivate(self.id, self.shard);
        Ok(lsn)
    }

    /// Lets go of locks and view, and makes the body fit for the next transaction.
    pub(crate) fn end(&mut self, system: &TxnSystem) {
        system.locks.release_all(&self.holder);
        self.view = None;
        self.holder.weight.store(0, Relaxed);
        self.id = TxnId(0);
    }
}

impl Txn {
    /// Its id, 0 before its first write.
    #[cfg(test)]
    pub fn id(&self) -> TxnId {
        self.body.as_ref().map_or(TxnId(0), |body| body.id)
    }

    /// Whether it can still be used: false after a deadlock.
    #[cfg(test)]
    pub fn is_active(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.state == State::Active)
    }

    /// Under REPEATABLE READ, fixes the snapshot now instead of at the first read.
    #[cfg(test)]
    pub fn open_view(&mut self) {
        let (system, body) = self.parts();
        if body.options.isolation == Isolation::RepeatableRead {
            body.open_view(system);
        }
    }

    /// The two halves, to be borrowed apart.
    #[inline]
    pub(crate) fn parts(&mut self) -> (&TxnSystem, &mut TxnBody) {
        let body = self
            .body
            .as_mut()
            .expect("only `commit`, `rollback` and `drop` take the body, and they take the transaction");
        (&self.system, body)
    }

    /// Runs one row operation as a statement: if it fails, what it changed is undone.
    pub(crate) fn statement<R>(&mut self, run: impl FnOnce(&TxnSystem, &mut TxnBody) -> Result<R>) -> Result<R> {
        let (system, body) = self.parts();
        body.check_active()?;
        system.delay_for_purge();
        body.prepare_write(system)?;
        let before = body.position();
        run(system, body).map_err(|error| undo_statement(system, body, before, error))
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`], [`Error::KeyTooLong`], [`Error::RowTooLarge`], lock waits, [`Error::WriteConflict`], I/O.
    pub fn insert(&mut self, rows: &dyn TableTrees, key: &[u8], payload: &[u8]) -> Result<()> {
        self.statement(|system, body| super::write::insert(system, body, rows, key, payload))
    }

    /// Changes the row with this key: `change` gets the present payload and writes the new one; it says whether there is a
    /// change at all. It may be called more than once, and runs under a page latch: it must not call into the database.
    /// Returns whether the row exists.
    ///
    /// # Errors
    /// As [`Txn::insert`], and those of `change`.
    pub fn update(&mut self, rows: &dyn TableTrees, key: &[u8], change: &mut RowChange<'_>) -> Result<bool> {
        self.statement(|system, body| super::write::update(system, body, rows, key, change))
    }

    /// Deletes the row with this key. Returns whether there was one.
    ///
    /// # Errors
    /// Lock waits, [`Error::WriteConflict`], I/O.
    pub fn delete(&mut self, rows: &dyn TableTrees, key: &[u8]) -> Result<bool> {
        self.statement(|system, body| super::write::delete(system, body, rows, key))
    }

    /// Marks the present state, to be rolled back to.
    pub fn savepoint(&mut self) -> Savepoint {
        let (_, body) = self.parts();
        Savepoint { at: body.position(), txn_serial: body.serial, number: body.savepoints.take() }
    }

    /// Undoes everything since `savepoint`, which stays. Later savepoints are removed.
    ///
    /// # Errors
    /// [`Error::Usage`] for a savepoint of another transaction or one that was removed; I/O, after which the transaction can only be rolled back.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let (system, body) = self.parts();
        body.check_active()?;
        if savepoint.txn_serial != body.serial {
            return Err(Error::Usage("the savepoint is not one of this transaction".to_string()));
        }
        if body.savepoints.is_removed(savepoint.number) {
            let reason = "the savepoint is gone: the transaction was rolled back to an earlier one since";
            return Err(Error::Usage(reason.to_string()));
        }
        rollback::roll_back_to(system, body, savepoint.at).inspect_err(|_| body.state = State::Broken)?;
        body.savepoints.remove_after(savepoint.number);
        Ok(())
    }

    /// Makes every change durable (as `flush_log_at_trx_commit` has it) and visible.
    ///
    /// # Errors
    /// [`Error::Usage`] if the transaction was rolled back already. After any other error whether it committed is
    /// known only once the database is opened again.
    pub fn commit(mut self) -> Result<()> {
        let (system, body) = self.parts();
        body.check_active()?;
        let lsn = match body.finish(system, UndoState::Committed) {
            Ok(lsn) => lsn,
            Err(error) => {
                body.state = State::Broken;
                return Err(error);
            }
        };
        self.retire();
        match lsn {
            Some(lsn) => {
                self.system.stats.trx_commits.inc();
                self.system.ctx.log.commit(lsn)
            }
            None => self.system.ctx.poison.check(),
        }
    }

    /// Undoes everything.
    ///
    /// # Errors
    /// I/O; the rows stay locked then until the database is opened again.
    pub fn rollback(mut self) -> Result<()> {
        self.end_by_rollback()
    }

    fn end_by_rollback(&mut self) -> Result<()> {
        let Some(body) = self.body.as_mut() else { return Ok(()) };
        check_open()?;
        if body.undo.is_some() {
            self.system.stats.trx_rollbacks.inc();
            if let Err(error) = rollback::roll_back_all(&self.system, body) {
                body.state = State::Broken;
                return Err(error);
            }
        }
        self.retire();
        Ok(())
    }

    fn retire(&mut self) {
        if let Some(mut body) = self.body.take() {
            body.end(&self.system);
            self.system.keep_spare(body);
        }
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        // A rollback that fails leaves the transaction active; recovery will undo it.
        let _ = self.end_by_rollback();
        if let Some(body) = self.body.as_mut() {
            body.view = None;
        }
    }
}

/// Undoes a failed statement, or after a deadlock the whole transaction. Returns the error to report.
fn undo_statement(system: &TxnSystem, body: &mut TxnBody, before: Option<Place>, error: Error) -> Error {
    let undone = if matches!(error, Error::Deadlock) {
        system.stats.trx_rollbacks.inc();
        let undone = rollback::roll_back_all(system, body);
        if undone.is_ok() {
            body.state = State::RolledBack;
            body.end(system);
        }
        undone
    } else {
        rollback::roll_back_to(system, body, before)
    };
    match undone {
        Ok(()) => error,
        Err(failure) => {
            body.state = State::Broken;
            failure
        }
    }
}

/// As [`undo_statement`] for reads that wait for locks: only a deadlock has anything to undo.
pub(crate) fn after_read_error(system: &TxnSystem, body: &mut TxnBody, error: Error) -> Error {
    match error {
        Error::Deadlock => {
            let before = body.position();
            undo_statement(system, body, before, error)
        }
        error => error,
    }
}
