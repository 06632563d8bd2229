//! Transactions that are run again after a conflict.
//!
//! Rules
//! 1. A failed attempt is rolled back before the next one, and no other transaction sees any part of it.
//! 2. The transaction itself records whether another attempt may succeed, independent of the closure's error: after a
//!    deadlock or a write conflict it is run again. After a lock wait that timed out or was refused it is not run
//!    again, because the caller has waited its whole timeout. After a begun commit it is not run again, because the
//!    commit may have happened.
//! 3. The first new attempt follows at once, the others after a growing random pause; otherwise two transactions could
//!    conflict each time.
//! 4. A deadlock victim never counts as successful, even if its closure returns success.

use super::database::Database;
use super::read_txn::ReadTxn;
use super::write_txn::WriteTxn;
use crate::error::{Error, Result};
use crate::sync::thread;
use crate::txn::{Access, TxnOptions};
use std::time::Duration;

/// Maximum number of runs of a transaction.
const MAX_ATTEMPTS: u32 = 100;
/// The longest pause before the third attempt; it doubles with each, up to the greatest.
const PAUSE: Duration = Duration::from_micros(100);
const MAX_PAUSE: Duration = Duration::from_millis(50);

impl Database {
    /// Begins a transaction under REPEATABLE READ.
    ///
    /// # Errors
    /// The database is closed or has stopped after a failure.
    pub fn begin(&self) -> Result<WriteTxn> {
        self.begin_with(TxnOptions::default())
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// As [`begin`](Database::begin); [`Error::Usage`] if the database was opened to be read only.
    pub fn begin_with(&self, options: TxnOptions) -> Result<WriteTxn> {
        self.check_writes_wanted()?;
        let mut txn = WriteTxn::begin(self.open.local(), &self.with_own_timeout(options), Access::ReadWrite)?;
        txn.hide_expired();
        Ok(self.interruptible(txn))
    }

    /// Begins a transaction that reads one snapshot: what had committed at its first read. It takes no row locks.
    /// Among SERIALIZABLE transactions it is serializable too.
    ///
    /// # Errors
    /// As [`begin`](Database::begin).
    pub fn snapshot(&self) -> Result<ReadTxn> {
        let options = self.with_own_timeout(TxnOptions::default());
        let mut txn = WriteTxn::begin(self.open.local(), &options, Access::ReadOnly)?;
        txn.hide_expired();
        Ok(ReadTxn::new(self.interruptible(txn)))
    }

    /// This database, by a handle whose calls wait this long for a lock, instead of as the option
    /// `lock_wait_timeout_ms` says: schema changes, checks and repairs (each of their waits), and the transactions that
    /// are begun on it, if [`TxnOptions`] does not say otherwise.
    ///
    /// ```
    /// # use highwater::{Database, Error, Options, Schema, Type};
    /// # use std::time::Duration;
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Database::open(dir.path(), Options::default())?;
    /// let table = db.create_table("log", Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
    /// let mut reader = db.snapshot()?;
    /// reader.scan(&table).count()?;
    /// let impatient = db.with_lock_wait_timeout(Duration::from_millis(50));
    /// assert!(matches!(impatient.drop_table("log"), Err(Error::LockWaitTimeout)));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    #[must_use]
    pub fn with_lock_wait_timeout(&self, timeout: Duration) -> Database {
        Database { lock_wait_timeout: Some(timeout), ..self.clone() }
    }

    /// Runs `work` in a transaction and commits it. If `work` returns an error the transaction is rolled back; after a
    /// deadlock or a write conflict, which another attempt may not meet, `work` is run again, up to 100 times
    /// ([`WriteTxn::attempt`] says which run it is). (After a lock wait that timed out it is not: the caller has waited
    /// as long as `lock_wait_timeout_ms` says.) So `work` changes nothing but the database, or what it resets at
    /// each run.
    ///
    /// [`try_transact`](Self::try_transact) is the same for closures with errors of their own.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).column("cents", Type::I64).primary_key(&["id"]);
    /// # let accounts = db.create_table("accounts", schema)?;
    /// # db.transact(|txn| { txn.insert(&accounts, &values![1, 500])?; txn.insert(&accounts, &values![2, 0]) })?;
    /// let moved = db.transact(|txn| {
    ///     let Some(from) = txn.get_for_update(&accounts, &values![1])? else { return Ok(false) };
    ///     if from.i64("cents") < 200 {
    ///         return Ok(false);
    ///     }
    ///     txn.modify(&accounts, &values![1], |row, set| set.put("cents", row.i64("cents") - 200))?;
    ///     txn.modify(&accounts, &values![2], |row, set| set.put("cents", row.i64("cents") + 200))
    /// })?;
    /// assert!(moved);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// The last error of `work`, or of the commit.
    pub fn transact<R>(&self, work: impl FnMut(&mut WriteTxn) -> Result<R>) -> Result<R> {
        self.transact_with(&TxnOptions::default(), work)
    }

    /// As [`transact`](Self::transact), with options.
    ///
    /// # Errors
    /// As [`transact`](Self::transact) and [`begin_with`](Self::begin_with).
    pub fn transact_with<R>(&self, options: &TxnOptions, work: impl FnMut(&mut WriteTxn) -> Result<R>) -> Result<R> {
        // Also an error of another transaction that the closure has run.
        self.run_until_done(options, work, |error: &Error| error.is_retryable() && !error.is_lock_refused())
    }

    /// As [`transact`](Self::transact), for a closure with an error of its own: any type that an [`Error`] can be made
    /// into, by `?`. The closure returns it to roll the transaction back, and the caller gets it. A deadlock or a write
    /// conflict that the transaction met leads to another run, independent of the error that the closure returns.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let schema = Schema::new().column("id", Type::U64).column("cents", Type::I64).primary_key(&["id"]);
    /// # let accounts = db.create_table("accounts", schema)?;
    /// # db.transact(|txn| txn.insert(&accounts, &values![1, 500]))?;
    /// #[derive(Debug, thiserror::Error)]
    /// enum PayError {
    ///     #[error("there are only {cents} cents")]
    ///     TooLittle { cents: i64 },
    ///     #[error(transparent)]
    ///     Database(#[from] highwater::Error),
    /// }
    ///
    /// let pay = |price: i64| {
    ///     db.try_transact(|txn| {
    ///         let cents = txn.get_for_update(&accounts, &values![1])?.map_or(0, |account| account.i64("cents"));
    ///         if cents < price {
    ///             return Err(PayError::TooLittle { cents });
    ///         }
    ///         txn.update(&accounts, &values![1], &[("cents", (cents - price).into())])?;
    ///         Ok(txn.attempt())
    ///     })
    /// };
    /// assert_eq!(pay(200).unwrap(), 1);
    /// assert!(matches!(pay(400), Err(PayError::TooLittle { cents: 300 })));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// The last error of `work`; those of [`begin`](Self::begin) and [`commit`](WriteTxn::commit), made into the
    /// closure's.
    pub fn try_transact<R, E: From<Error>>(
        &self,
        work: impl FnMut(&mut WriteTxn) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        self.try_transact_with(&TxnOptions::default(), work)
    }

    /// As [`try_transact`](Self::try_transact), with options.
    ///
    /// # Errors
    /// As [`try_transact`](Self::try_transact) and [`begin_with`](Self::begin_with).
    pub fn try_transact_with<R, E: From<Error>>(
        &self,
        options: &TxnOptions,
        work: impl FnMut(&mut WriteTxn) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        self.run_until_done(options, work, |_| false)
    }

    /// `leads_to_another` says of an error that the transaction knows nothing of whether another attempt follows it.
    fn run_until_done<R, E: From<Error>>(
        &self,
        options: &TxnOptions,
        mut work: impl FnMut(&mut WriteTxn) -> std::result::Result<R, E>,
        leads_to_another: impl Fn(&E) -> bool,
    ) -> std::result::Result<R, E> {
        let mut attempt = 1;
        loop {
            let mut txn = self.begin_with(options.clone())?;
            txn.attempt = attempt;
            let error = match work(&mut txn) {
                Ok(done) if !txn.is_deadlock_victim() => return Ok(txn.commit().map(|()| done)?),
                Ok(_) => Error::Deadlock.into(),
                Err(error) => error,
            };
            let is_retryable = txn.met_another() || leads_to_another(&error);
            if !is_retryable || attempt == MAX_ATTEMPTS {
                return Err(error);
            }
            txn.rollback()?;
            thread::sleep(pause_before(attempt));
            attempt += 1;
        }
    }
}

impl WriteTxn {
    /// Number of the present run of the closure of a [`transact`](Database::transact), from 1 on. For a transaction
    /// that was begun otherwise it is 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    fn is_deadlock_victim(&self) -> bool {
        self.txn.as_ref().is_some_and(|txn| txn.is_deadlock_victim())
    }

    fn met_another(&self) -> bool {
        self.txn.as_ref().is_some_and(|txn| txn.met_another())
    }
}

/// The pause after this many attempts (rule 3).
fn pause_before(attempts: u32) -> Duration {
    let greatest = match attempts {
        1 => Duration::ZERO,
        _ => (PAUSE * 2_u32.saturating_pow(attempts.min(20) - 2)).min(MAX_PAUSE),
    };
    greatest.mul_f64(fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        assert_eq!(pause_before(1), Duration::ZERO);
        for (attempts, greatest) in [(2, PAUSE), (3, 2 * PAUSE), (11, MAX_PAUSE * 2), (99, MAX_PAUSE)] {
            assert!((0..100).all(|_| pause_before(attempts) <= greatest), "{attempts}");
        }
        assert!((0..100).any(|_| pause_before(99) > MAX_PAUSE / 2));
    }
}
