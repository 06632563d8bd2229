//! Transactions that are run again when they met others.
//!
//! Rules
//! 1. What failed is rolled back before it is run again, and nothing of it is seen by anybody.
//! 2. Only errors that another attempt may not meet lead to one ([`Error::is_retryable`]), and of those no lock wait
//!    that timed out, and none that was refused: it has taken the time that a caller is ready to wait. After a commit
//!    began there is none, since it may have happened.
//! 3. The first new attempt follows at once, the others after a random pause that grows: two transactions that meet
//!    each time would else go on doing so.

use super::database::Database;
use super::write_txn::WriteTxn;
use crate::error::Result;
use crate::sync::thread;
use crate::txn::TxnOptions;
use std::time::Duration;

/// How often a transaction is run at most.
const MAX_ATTEMPTS: u32 = 100;
/// The longest pause before the third attempt; it doubles with each, up to the greatest.
const PAUSE: Duration = Duration::from_micros(100);
const MAX_PAUSE: Duration = Duration::from_millis(50);

impl Database {
    /// Runs `work` in a transaction and commits it. If `work` returns an error the transaction is rolled back; after a
    /// deadlock or a write conflict, which another attempt may not meet, `work` is run again, up to 100 times. (After a
    /// lock wait that timed out it is not: the caller has waited as long as `lock_wait_timeout_ms` says.) So `work`
    /// changes nothing but the database, or what it sets anew at each run.
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
    ///     if from.i64(1) < 200 {
    ///         return Ok(false);
    ///     }
    ///     txn.modify(&accounts, &values![1], |row, set| set.put(1, row.i64(1) - 200))?;
    ///     txn.modify(&accounts, &values![2], |row, set| set.put(1, row.i64(1) + 200))
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
    pub fn transact_with<R>(
        &self,
        options: &TxnOptions,
        mut work: impl FnMut(&mut WriteTxn) -> Result<R>,
    ) -> Result<R> {
        let mut attempt = 1;
        loop {
            let mut txn = self.begin_with(options.clone())?;
            let error = match work(&mut txn) {
                Ok(done) => return txn.commit().map(|()| done),
                Err(error) => error,
            };
            let leads_to_another = error.is_retryable() && !error.is_lock_refused();
            if !leads_to_another || attempt == MAX_ATTEMPTS {
                return Err(error);
            }
            txn.rollback()?;
            thread::sleep(pause_before(attempt));
            attempt += 1;
        }
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
