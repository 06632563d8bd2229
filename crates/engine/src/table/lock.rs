//! The table lock: keeps schema changes and transactions apart. In memory only.
//!
//! Modes: *read* and *write* are held by transactions from their first use of a table to their end; *no-write* by the
//! begin and the end of an index build (readers continue, writers wait); *exclusive* by a removal and by the end of a
//! rebuild (all others wait).
//!
//! Rules
//! 1. A transaction that has read may write later without releasing its read lock ([`TableLock::upgrade`]). An index
//!    build may have come in between, so it takes the table's newest version then.
//! 2. Schema changes of a table run one at a time ([`TableLock::change`]). A schema change that waits for transactions
//!    bars new ones in turns ([`Turns`]), except those that read the snapshot of a lock holder
//!    ([`TableLock::lock_shared_with_waiter`]). So an idle transaction delays the others but does not stop them, and a
//!    cycle of waits through a waiting schema change lasts no longer than the bar.
//! 3. Every wait ends by a timeout, so a transaction that waits for its own lock gets an error and does not wait for
//!    ever. A schema change has one timeout for all transactions together.
//! 4. Locking a table that was dropped, or that a change has moved to another lock, is an error with that reason.
//! 5. Transactions increment the count in the shard of their thread and take no mutex, unless `barred` includes their
//!    mode: an active or waiting removal bars all, an index build bars writers. A transaction reads `barred` after it
//!    has incremented its count, a schema change reads the counts after it has set `barred` (both sequentially
//!    consistent), so one of them sees the other. Only the sum of the shards is valid, because a transaction may end on
//!    another thread. A transaction that enters while its mode is barred holds the mutex. Otherwise a schema change
//!    could read one shard before this transaction is counted, and another shard after the end of the transaction whose
//!    snapshot it shares, and miss both.
//! 6. A transaction that has read and now writes passes a waiting removal, because the removal waits for it.
//! 7. When the database stops, every waiter is woken and gets an error; so does an interrupted waiter.

use super::turns::Turns;
use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicU8, AtomicU32, Ordering::SeqCst};
use crate::sync::interrupt::Patience;
use crate::sync::poison::Poison;
use crate::sync::sharded::Sharded;
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval at which a schema change that lets transactions pass checks whether any of them holds the lock.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(crate) struct TableLock {
    users: Sharded<Users>,
    /// The transactions that must read the state: [`NONE_BARRED`], [`WRITERS`] or [`ALL`].
    barred: AtomicU8,
    state: Mutex<LockState>,
    changed: Condvar,
    poison: Arc<Poison>,
}

/// Transactions that hold the lock and were counted in one shard.
#[derive(Debug, Default)]
struct Users {
    readers: AtomicU32,
    writers: AtomicU32,
}

impl Users {
    fn of(&self, mode: TableLockMode) -> &AtomicU32 {
        match mode {
            TableLockMode::Read => &self.readers,
            TableLockMode::Write => &self.writers,
        }
    }
}

/// Values of `barred`, each of which also bars those that the previous one bars.
const NONE_BARRED: u8 = 0;
const WRITERS: u8 = 1;
const ALL: u8 = 2;

/// The reason why a table no longer exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gone {
    Dropped,
    /// It has another name, other columns or other trees, and other handles.
    Changed,
}

#[derive(Debug, Default)]
struct LockState {
    /// A schema change runs, or waits for transactions.
    changing: bool,
    /// A build holds no-write, or bars writers while it waits for it.
    no_write: bool,
    /// A removal holds exclusive, or bars all while it waits for it.
    exclusive: bool,
    /// A removal waits for exclusive; it may bar no thread at the moment.
    removal_waits: bool,
    /// The reason why the table no longer exists, if it does not.
    gone: Option<Gone>,
}

/// The mode in which a transaction locks a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TableLockMode {
    Read,
    /// Reads and writes.
    Write,
}

impl TableLockMode {
    /// The least value of `barred` that bars it.
    fn bar(self) -> u8 {
        match self {
            TableLockMode::Read => ALL,
            TableLockMode::Write => WRITERS,
        }
    }
}

impl LockState {
    fn barred(&self) -> u8 {
        match (self.exclusive || self.gone.is_some(), self.no_write) {
            (true, _) => ALL,
            (false, true) => WRITERS,
            (false, false) => NONE_BARRED,
        }
    }

    /// Checks rule 2: only a running schema change bars transactions, and `barred` says which.
    fn check(&self, barred: u8) {
        debug_assert!(self.changing || !self.no_write, "writers are barred, and no schema change is at work");
        debug_assert!(self.changing || !self.exclusive, "all are barred, and no schema change is at work");
        debug_assert!(self.changing || !self.removal_waits, "a schema change waits that is not at work");
        debug_assert_eq!(self.barred(), barred, "transactions do not read who is barred: {self:?}");
    }
}

impl TableLock {
    /// The lock of a table of the database that `poison` stops; the caller arranges that [`TableLock::wake_all`] is
    /// called then.
    pub(crate) fn new(poison: Arc<Poison>) -> TableLock {
        TableLock { poison, ..TableLock::default() }
    }

    /// Wakes every waiter; each looks for the reason.
    pub(crate) fn wake_all(&self) {
        // A thread that has looked and not begun to wait holds the mutex.
        drop(self.state.lock());
        self.changed.notify_all();
    }

    /// Takes the lock for a transaction. `table` is for the message.
    #[inline]
    pub(crate) fn lock<'p>(&self, table: &str, mode: TableLockMode, patience: impl Into<Patience<'p>>) -> Result<()> {
        if self.enter(mode) { Ok(()) } else { self.lock_slowly(table, mode, patience.into()) }
    }

    /// Whether the table is still used under this lock.
    ///
    /// # Errors
    /// `TableDropped` or `TableChanged` if it is not.
    pub(crate) fn check(&self, table: &str) -> Result<()> {
        check_gone(&self.state.lock(), table)
    }

    /// Takes the lock although a schema change waits. The caller knows a transaction that holds the lock in this mode
    /// until this returns.
    pub(crate) fn lock_shared_with_waiter(&self, mode: TableLockMode) {
        // A waiter adds the shards up under the mutex: it sees this one, or still the one that is held (rule 5).
        let _state = self.state.lock();
        self.users.local().of(mode).fetch_add(1, SeqCst);
    }

    /// Takes the lock unless its mode is barred; returns whether it did.
    pub(crate) fn try_lock(&self, mode: TableLockMode) -> bool {
        self.enter(mode)
    }

    /// Counts a transaction in; false if its mode is barred.
    #[inline]
    fn enter(&self, mode: TableLockMode) -> bool {
        self.users.local().of(mode).fetch_add(1, SeqCst);
        let enters = self.barred.load(SeqCst) < mode.bar();
        if !enters {
            self.leave(mode);
        }
        enters
    }

    #[cold]
    fn lock_slowly(&self, table: &str, mode: TableLockMode, patience: Patience<'_>) -> Result<()> {
        let mut state = self.state.lock();
        self.wait(&mut state, patience, |s| !(s.exclusive || s.no_write && mode == TableLockMode::Write))?;
        check_gone(&state, table)?;
        // Before a schema change can bar it: that takes the mutex.
        self.users.local().of(mode).fetch_add(1, SeqCst);
        Ok(())
    }

    /// Counts a transaction out.
    #[inline]
    fn leave(&self, mode: TableLockMode) {
        self.users.local().of(mode).fetch_sub(1, SeqCst);
        if self.barred.load(SeqCst) != NONE_BARRED {
            drop(self.state.lock());
            self.changed.notify_all();
        }
    }

    /// Whether no transaction holds the lock in this mode. Called while the mode is barred: then no shard counts the
    /// end of a transaction whose begin another shard, read earlier, had not counted yet (rule 5).
    fn is_unused(&self, mode: TableLockMode) -> bool {
        self.users.iter().fold(0u32, |sum, users| sum.wrapping_add(users.of(mode).load(SeqCst))) == 0
    }

    /// Turns a read lock into a write lock.
    pub(crate) fn upgrade<'p>(&self, patience: impl Into<Patience<'p>>) -> Result<()> {
        if !self.enter(TableLockMode::Write) {
            let mut state = self.state.lock();
            // Rule 6: it waits for a build only.
            self.wait(&mut state, patience.into(), |s| !s.no_write)?;
            self.users.local().writers.fetch_add(1, SeqCst);
        }
        self.leave(TableLockMode::Read);
        Ok(())
    }

    /// Releases a transaction's lock.
    #[inline]
    pub(crate) fn unlock(&self, mode: TableLockMode) {
        self.leave(mode);
    }

    /// Whether a schema change holds the lock or bars transactions.
    #[inline]
    pub(crate) fn is_barred(&self) -> bool {
        self.barred.load(SeqCst) != NONE_BARRED
    }

    /// Waits while a removal that waits for the lock bars transactions; does not wait for a removal that holds it.
    #[cold]
    pub(crate) fn await_turn<'p>(&self, patience: impl Into<Patience<'p>>) -> Result<()> {
        self.wait(&mut self.state.lock(), patience.into(), |s| !(s.exclusive && s.removal_waits))
    }

    /// Takes the lock for a transaction for which others may wait: before a removal that waits, but after a removal
    /// that holds the lock.
    #[cold]
    pub(crate) fn lock_first<'p>(&self, mode: TableLockMode, patience: impl Into<Patience<'p>>) -> Result<()> {
        let mut state = self.state.lock();
        self.wait(&mut state, patience.into(), |s| !s.exclusive || s.removal_waits)?;
        self.users.local().of(mode).fetch_add(1, SeqCst);
        Ok(())
    }

    /// Begins a schema change, once no other one runs. It keeps no thread out yet.
    pub(crate) fn change<'p>(&self, patience: impl Into<Patience<'p>>) -> Result<Change<'_>> {
        let mut state = self.state.lock();
        self.wait(&mut state, patience.into(), |s| !s.changing)?;
        let is_open = !state.no_write && !state.exclusive && !state.removal_waits;
        debug_assert!(is_open, "the schema change before has left the lock closed: {state:?}");
        state.changing = true;
        Ok(Change(self))
    }

    /// Waits until `is_free`. Transactions are barred meanwhile, in turns, and remain barred at the end; `bar` says
    /// which.
    fn wait_in_turns(
        &self,
        state: &mut MutexGuard<'_, LockState>,
        patience: Patience<'_>,
        turns: Turns,
        bar: impl Fn(&mut LockState, bool),
        is_free: impl Fn() -> bool,
    ) -> Result<()> {
        let begin = Instant::now();
        for turn in turns {
            let left = patience.timeout.saturating_sub(begin.elapsed());
            self.set(state, |s| bar(s, true));
            let waited = self.wait(state, patience.with_timeout(left.min(turn.bar)), |_| is_free());
            if !matches!(waited, Err(Error::LockWaitTimeout)) || left <= turn.bar {
                return waited;
            }
            self.set(state, |s| bar(s, false));
            let pass = turn.pass.min(patience.timeout.saturating_sub(begin.elapsed()));
            self.let_pass(state, patience.with_timeout(pass), &is_free)?;
        }
        Err(Error::LockWaitTimeout)
    }

    /// Lets transactions pass for a time, or until no thread seems to hold the lock.
    fn let_pass(
        &self,
        state: &mut MutexGuard<'_, LockState>,
        patience: Patience<'_>,
        seems_free: impl Fn() -> bool,
    ) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < patience.timeout && !seems_free() {
            match self.wait(state, patience.with_timeout(LOOK_INTERVAL), |_| false) {
                Err(Error::LockWaitTimeout) => {}
                stopped => return stopped,
            }
        }
        Ok(())
    }

    /// Changes who is barred.
    fn set(&self, state: &mut LockState, change: impl FnOnce(&mut LockState)) {
        change(state);
        self.barred.store(state.barred(), SeqCst);
        state.check(self.barred.load(SeqCst));
        self.changed.notify_all();
    }

    fn wait(
        &self,
        state: &mut MutexGuard<'_, LockState>,
        patience: Patience<'_>,
        free: impl Fn(&LockState) -> bool,
    ) -> Result<()> {
        let deadline = Instant::now().checked_add(patience.timeout);
        while !free(state) {
            self.poison.check()?;
            patience.check()?;
            let timed_out = match deadline {
                Some(deadline) => self.changed.wait_until(state, deadline).timed_out(),
                None => {
                    self.changed.wait(state);
                    false
                }
            };
            if timed_out && !free(state) {
                return Err(Error::LockWaitTimeout);
            }
        }
        Ok(())
    }
}

#[cold]
fn check_gone(state: &LockState, table: &str) -> Result<()> {
    let table = || table.to_string();
    match state.gone {
        None => Ok(()),
        Some(Gone::Dropped) => Err(Error::TableDropped { table: table() }),
        Some(Gone::Changed) => Err(Error::TableChanged { table: table() }),
    }
}

/// A schema change. Until it is dropped no other schema change runs, and the transactions that it blocks stay blocked.
#[derive(Debug)]
pub(crate) struct Change<'l>(&'l TableLock);

impl Change<'_> {
    /// Keeps writers out from now on.
    pub(crate) fn no_write<'p>(&self, patience: impl Into<Patience<'p>>) -> Result<()> {
        self.no_write_in(Turns::default(), patience.into())
    }

    /// As [`no_write`](Self::no_write); no writer waits for longer than half a second meanwhile.
    pub(crate) fn no_write_briefly(&self, patience: Patience<'_>) -> Result<()> {
        self.no_write_in(Turns::short(), patience)
    }

    fn no_write_in(&self, turns: Turns, patience: Patience<'_>) -> Result<()> {
        let lock = self.0;
        let mut state = lock.state.lock();
        debug_assert!(state.changing, "rule 2: a schema change that has not begun bars writers");
        let unwritten = || lock.is_unused(TableLockMode::Write);
        lock.wait_in_turns(&mut state, patience, turns, |s, bars| s.no_write = bars, unwritten)?;
        debug_assert!(state.no_write, "rule 2: a schema change has kept writers out, and lets them in again");
        Ok(())
    }

    /// Keeps all others out from now on.
    pub(crate) fn exclusive<'p>(&self, patience: impl Into<Patience<'p>>) -> Result<()> {
        self.exclusive_in(Turns::default(), patience.into())
    }

    /// As [`exclusive`](Self::exclusive); no transaction waits for longer than half a second meanwhile.
    pub(crate) fn exclusive_briefly(&self, patience: Patience<'_>) -> Result<()> {
        self.exclusive_in(Turns::short(), patience)
    }

    fn exclusive_in(&self, turns: Turns, patience: Patience<'_>) -> Result<()> {
        let lock = self.0;
        let mut state = lock.state.lock();
        debug_assert!(state.changing, "rule 2: a schema change that has not begun bars all");
        state.removal_waits = true;
        let is_unused = || lock.is_unused(TableLockMode::Write) && lock.is_unused(TableLockMode::Read);
        let waited = lock.wait_in_turns(&mut state, patience, turns, |s, bars| s.exclusive = bars, is_unused);
        state.removal_waits = false;
        debug_assert!(waited.is_err() || state.exclusive, "rule 2: a schema change is alone, and lets others in");
        waited
    }

    /// Lets all others in again.
    pub(crate) fn open(&self) {
        self.0.set(&mut self.0.state.lock(), |s| (s.no_write, s.exclusive) = (false, false));
    }

    /// No transaction uses the table, and none begins to, while it is removed.
    fn check_barred(&self) {
        let state = self.0.state.lock();
        debug_assert!(state.changing && state.exclusive, "rule 4: a table goes that others use");
        debug_assert!(state.gone.is_none(), "rule 4: a table goes twice");
    }

    /// The table is gone: present and later waiters get an error.
    pub(crate) fn set_dropped(&self) {
        self.check_barred();
        self.0.state.lock().gone = Some(Gone::Dropped);
    }

    /// The table is used under another lock from now on: present and later waiters get an error.
    pub(crate) fn set_changed(&self) {
        self.check_barred();
        self.0.state.lock().gone = Some(Gone::Changed);
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.open();
        let mut state = self.0.state.lock();
        debug_assert!(state.changing && !state.removal_waits, "rule 2: a schema change ends twice");
        state.changing = false;
        state.check(self.0.barred.load(SeqCst));
        drop(state);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
#[path = "lock_test.rs"]
mod tests;
