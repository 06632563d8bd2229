//! The gate of a database: it separates writing transactions, schema changes and checks.
//!
//! A transaction is inside the gate from its first write to its end, a schema change from its begin to its end. A check
//! waits until both have left, a switch of the change buffering until schema changes have left.
//!
//! Rules
//! 1. It is one lock for all tables. With a lock for each table, a check would exclude writers from one table while it
//!    waits for another: a transaction that writes both would wait for the check, and the check for it.
//! 2. A waiting check bars new transactions and schema changes, in turns (rule 2 of `table/lock.rs`). A transaction
//!    that is inside is never barred.
//! 3. A transaction that has locked rows passes a waiting check, because a transaction inside may wait for those rows.
//!    So a transaction that is outside and holds no row waits for its turn before it locks its first row; otherwise
//!    transactions that lock and then write would delay a check for ever.
//! 4. While a check is inside, transactions can lock rows, because the check waits for no transaction.
//! 5. Every wait ends by a timeout, when the database stops, and when it is interrupted.

use crate::error::Result;
use crate::sync::interrupt::Patience;
use crate::sync::notify::Notify;
use crate::sync::poison::{OnStop, Poison};
use crate::table::lock::{Change, TableLock, TableLockMode};
use std::sync::Arc;

/// The modes of the lock, as the gate uses them: no-write keeps schema changes out, exclusive everybody.
const WRITER: TableLockMode = TableLockMode::Read;
const SCHEMA_CHANGE: TableLockMode = TableLockMode::Write;

pub(crate) struct Gate {
    lock: TableLock,
    /// Wakes the thread that removes what has expired, when a schema change has ended.
    expiry_wake: Notify,
}

impl OnStop for Gate {
    fn stopped(&self) {
        self.lock.wake_all();
    }

    fn interrupted(&self) {
        self.lock.wake_all();
    }
}

/// A schema change that is inside.
pub(crate) struct SchemaChange<'g>(&'g Gate);

impl Drop for SchemaChange<'_> {
    fn drop(&mut self) {
        self.0.lock.unlock(SCHEMA_CHANGE);
        self.0.expiry_wake.wake();
    }
}

impl Gate {
    pub(super) fn new(poison: &Arc<Poison>) -> Arc<Gate> {
        let gate = Arc::new(Gate { lock: TableLock::new(Arc::clone(poison)), expiry_wake: Notify::default() });
        poison.wake_on_stop(&gate);
        gate
    }

    /// Ends the pause of the thread that removes what has expired.
    pub(super) fn expiry_wake(&self) -> &Notify {
        &self.expiry_wake
    }

    /// A transaction enters, before its first write; `holds_rows` says whether it has row locks (rule 3).
    #[inline]
    pub(super) fn enter_writer<'p>(
        &self,
        patience: impl Into<Patience<'p>>,
        holds_rows: impl FnOnce() -> bool,
    ) -> Result<()> {
        match self.lock.try_lock(WRITER) {
            true => Ok(()),
            false if holds_rows() => self.lock.lock_first(WRITER, patience),
            false => self.lock.lock("", WRITER, patience),
        }
    }

    #[inline]
    pub(super) fn leave_writer(&self) {
        self.lock.unlock(WRITER);
    }

    /// A transaction that is not inside is about to lock rows (rule 3).
    #[inline]
    pub(super) fn await_turn<'p>(
        &self,
        patience: impl Into<Patience<'p>>,
        holds_rows: impl FnOnce() -> bool,
    ) -> Result<()> {
        if self.lock.is_barred() && !holds_rows() { self.lock.await_turn(patience) } else { Ok(()) }
    }

    pub(super) fn enter_schema_change<'p>(&self, patience: impl Into<Patience<'p>>) -> Result<SchemaChange<'_>> {
        self.lock.lock("", SCHEMA_CHANGE, patience)?;
        Ok(SchemaChange(self))
    }

    /// Keeps schema changes out until the guard is dropped.
    pub(super) fn without_schema_changes(&self, patience: Patience<'_>) -> Result<Change<'_>> {
        let closed = self.lock.change(patience)?;
        closed.no_write(patience)?;
        Ok(closed)
    }

    /// Keeps writing transactions and schema changes out until the guard is dropped.
    pub(super) fn alone(&self, patience: Patience<'_>) -> Result<Change<'_>> {
        let closed = self.lock.change(patience)?;
        closed.exclusive(patience)?;
        Ok(closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const LONG: Duration = Duration::from_secs(30);

    /// Rule 3: while a check waits for one that is inside, a transaction with locked rows enters at any time; one
    /// without waits for its turn, before it locks a row too.
    #[test]
    fn who_has_locked_rows_enters_before_a_check_that_waits() {
        let gate = Gate::new(&Arc::default());
        gate.enter_writer(LONG, || false).unwrap();
        let check = {
            let gate = gate.clone();
            std::thread::spawn(move || gate.alone(LONG.into()).map(drop))
        };
        while !gate.lock.is_barred() {
            std::thread::yield_now();
        }
        let (begin, mut barred) = (Instant::now(), [0, 0]);
        let misses_a_bar = |barred: &[u32; 2]| barred.contains(&0) && begin.elapsed() < LONG / 2;
        while begin.elapsed() < Duration::from_millis(900) || misses_a_bar(&barred) {
            gate.enter_writer(Duration::ZERO, || true).unwrap();
            gate.leave_writer();
            gate.await_turn(Duration::ZERO, || true).unwrap();
            match gate.enter_writer(Duration::ZERO, || false) {
                Ok(()) => gate.leave_writer(),
                Err(_) => barred[0] += 1,
            }
            barred[1] += u32::from(gate.await_turn(Duration::ZERO, || false).is_err());
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(barred.iter().all(|times| *times > 0), "{barred:?}");
        gate.leave_writer();
        check.join().unwrap().unwrap();
    }

    #[test]
    fn a_switch_waits_for_schema_changes_only_and_a_check_for_both() {
        let gate = Gate::new(&Arc::default());
        gate.enter_writer(LONG, || false).unwrap();
        drop(gate.without_schema_changes(LONG.into()).unwrap());
        let change = gate.enter_schema_change(LONG).unwrap();
        assert!(gate.without_schema_changes(Duration::from_millis(5).into()).is_err());
        gate.leave_writer();
        assert!(gate.alone(Duration::from_millis(5).into()).is_err());
        drop(change);
        let alone = gate.alone(LONG.into()).unwrap();
        assert!(gate.enter_schema_change(Duration::ZERO).is_err());
        assert!(gate.enter_writer(Duration::ZERO, || true).is_err());
        gate.await_turn(Duration::ZERO, || false).unwrap();
        drop(alone);
        drop(gate.enter_schema_change(Duration::ZERO).unwrap());
    }
}
