//! The table lock: keeps schema changes and transactions apart. In memory only.
//!
//! Modes: *read* and *write* are held by transactions from their first use of a table to their end; *no-write* by an
//! index build (readers go on, writers wait); *exclusive* by a removal (all others wait).
//!
//! Rules
//! 1. A transaction that has read may write later without giving its read lock back ([`TableLock::upgrade`]). An index
//!    build may have come in between, so it takes the table's newest version then.
//! 2. Schema changes of a table come one at a time (its `changing` mutex), and new transactions queue behind a waiting
//!    one, but for those that read the snapshot of one that holds the lock ([`TableLock::lock_beside`]).
//! 3. Every wait ends by a timeout, so a transaction that waits for its own lock gets an error and does not wait for
//!    ever.
//! 4. A lock taken on a dropped table is an error that says so.
//! 5. Transactions count themselves at the place of their thread and take no mutex, unless `barred` says that their
//!    mode is: a removal that has come or waits bars all, an index build bars writers. Who counts himself looks at that
//!    afterwards, a schema change looks at the counts after it has set it (both sequentially consistent), so one of
//!    them sees the other. Only the sum of the places counts: a transaction may end on another thread. Who comes in
//!    while his mode is barred holds the mutex, so that no place is looked at before he is counted in and another one
//!    after the one whom he knows of is counted out.
//! 6. From no-write to exclusive there is no moment without either ([`SchemaGuard::exclusive`]). But a transaction that
//!    has read and now writes goes first, since the removal waits for it: then what was built meanwhile lacks its
//!    writes, and the guard says so.
//! 7. When the database stops, every waiter is woken and gets the error that says so.

use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicU8, AtomicU32, Ordering::SeqCst};
use crate::sync::poison::Poison;
use crate::sync::spread::Spread;
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct TableLock {
    users: Spread<Users>,
    /// Who has to look at the state: [`NOBODY`], [`WRITERS`] or [`ALL`].
    barred: AtomicU8,
    state: Mutex<LockState>,
    changed: Condvar,
    poison: Arc<Poison>,
}

/// Transactions that hold the lock and were counted at one place.
#[derive(Debug, Default)]
struct Users {
    readers: AtomicU32,
    writers: AtomicU32,
}

impl Users {
    fn of(&self, mode: Mode) -> &AtomicU32 {
        match mode {
            Mode::Read => &self.readers,
            Mode::Write => &self.writers,
        }
    }
}

/// Values of `barred`, each of which bars those that the one before bars.
const NOBODY: u8 = 0;
const WRITERS: u8 = 1;
const ALL: u8 = 2;

#[derive(Debug, Default)]
struct LockState {
    /// A build holds or waits for no-write.
    no_write: bool,
    /// A removal holds or waits for exclusive.
    exclusive: bool,
    dropped: bool,
    /// A transaction became a writer since exclusive was asked for.
    was_written: bool,
}

/// What a transaction does with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Read,
    /// Reads and writes.
    Write,
}

impl Mode {
    /// The least value of `barred` that bars it.
    fn bar(self) -> u8 {
        match self {
            Mode::Read => ALL,
            Mode::Write => WRITERS,
        }
    }
}

impl LockState {
    fn barred(&self) -> u8 {
        match (self.exclusive || self.dropped, self.no_write) {
            (true, _) => ALL,
            (false, true) => WRITERS,
            (false, false) => NOBODY,
        }
    }
}

impl TableLock {
    /// The lock of a table of the database that `poison` stops; its maker arranges that [`TableLock::wake_all`] is
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
    pub(crate) fn lock(&self, table: &str, mode: Mode, timeout: Duration) -> Result<()> {
        if self.enter(mode) { Ok(()) } else { self.lock_slowly(table, mode, timeout) }
    }

    /// Takes the lock beside a schema change that waits. The caller knows of a transaction that holds it in this mode,
    /// and holds it until this returns.
    pub(crate) fn lock_beside(&self, mode: Mode) {
        // Who waits adds the places up under the mutex: he sees this one, or still the one that is held (rule 5).
        let _state = self.state.lock();
        self.users.own().of(mode).fetch_add(1, SeqCst);
    }

    /// Takes the lock unless its mode is barred; says whether it did.
    pub(crate) fn try_lock(&self, mode: Mode) -> bool {
        self.enter(mode)
    }

    /// Counts a transaction in; false if its mode is barred.
    #[inline]
    fn enter(&self, mode: Mode) -> bool {
        self.users.own().of(mode).fetch_add(1, SeqCst);
        let enters = self.barred.load(SeqCst) < mode.bar();
        if !enters {
            self.leave(mode);
        }
        enters
    }

    #[cold]
    fn lock_slowly(&self, table: &str, mode: Mode, timeout: Duration) -> Result<()> {
        let mut state = self.state.lock();
        self.wait(&mut state, timeout, |s| !(s.exclusive || s.no_write && mode == Mode::Write))?;
        check_dropped(&state, table)?;
        // Before a schema change can bar it: that takes the mutex.
        self.users.own().of(mode).fetch_add(1, SeqCst);
        Ok(())
    }

    /// Counts a transaction out.
    #[inline]
    fn leave(&self, mode: Mode) {
        self.users.own().of(mode).fetch_sub(1, SeqCst);
        if self.barred.load(SeqCst) != NOBODY {
            drop(self.state.lock());
            self.changed.notify_all();
        }
    }

    /// Whether no transaction holds the lock in this mode. Asked while the mode is barred: then no place counts one out
    /// whom another has not counted in.
    fn has_none(&self, mode: Mode) -> bool {
        self.users.iter().fold(0u32, |sum, users| sum.wrapping_add(users.of(mode).load(SeqCst))) == 0
    }

    /// Turns a read lock into a write lock.
    pub(crate) fn upgrade(&self, timeout: Duration) -> Result<()> {
        if !self.enter(Mode::Write) {
            let mut state = self.state.lock();
            // A removal that waits also waits for our read lock: we must not wait for it.
            self.wait(&mut state, timeout, |s| !s.no_write)?;
            state.was_written = true;
            self.users.own().writers.fetch_add(1, SeqCst);
        }
        self.leave(Mode::Read);
        Ok(())
    }

    /// Gives a transaction's lock back.
    #[inline]
    pub(crate) fn unlock(&self, mode: Mode) {
        self.leave(mode);
    }

    /// Whether a schema change holds or waits for the lock.
    #[cfg(test)]
    pub(crate) fn is_barred(&self) -> bool {
        self.barred.load(SeqCst) != NOBODY
    }

    /// Keeps writers out until the guard is dropped. The caller holds the table's `changing` mutex, or no schema change
    /// is going on.
    pub(crate) fn no_write(&self, timeout: Duration) -> Result<SchemaGuard<'_>> {
        let mut state = self.state.lock();
        state.no_write = true;
        self.barred.store(state.barred(), SeqCst);
        let guard = SchemaGuard(self);
        match self.wait(&mut state, timeout, |_| self.has_none(Mode::Write)) {
            Ok(()) => Ok(guard),
            Err(error) => {
                drop(state);
                Err(error)
            }
        }
    }

    /// Keeps all others out until the guard is dropped. The caller holds the table's `changing` mutex.
    pub(crate) fn exclusive(&self, timeout: Duration) -> Result<SchemaGuard<'_>> {
        let guard = SchemaGuard(self);
        guard.exclusive(timeout)?;
        Ok(guard)
    }

    fn wait(
        &self,
        state: &mut MutexGuard<'_, LockState>,
        timeout: Duration,
        free: impl Fn(&LockState) -> bool,
    ) -> Result<()> {
        let deadline = Instant::now().checked_add(timeout);
        while !free(state) {
            self.poison.check()?;
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
fn check_dropped(state: &LockState, table: &str) -> Result<()> {
    if state.dropped { Err(Error::TableDropped { table: table.to_string() }) } else { Ok(()) }
}

/// Held by a schema change.
#[derive(Debug)]
pub(crate) struct SchemaGuard<'l>(&'l TableLock);

impl SchemaGuard<'_> {
    /// Keeps all others out from now on. Says whether a transaction wrote the table since this was asked for (rule 6).
    pub(crate) fn exclusive(&self, timeout: Duration) -> Result<bool> {
        let lock = self.0;
        let mut state = lock.state.lock();
        *state = LockState { exclusive: true, no_write: false, was_written: false, ..*state };
        lock.barred.store(state.barred(), SeqCst);
        lock.changed.notify_all();
        lock.wait(&mut state, timeout, |_| lock.has_none(Mode::Write) && lock.has_none(Mode::Read))?;
        Ok(state.was_written)
    }

    /// The table is gone: those who wait or come later get an error.
    pub(crate) fn set_dropped(&self) {
        self.0.state.lock().dropped = true;
    }
}

impl Drop for SchemaGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.no_write = false;
        state.exclusive = false;
        self.0.barred.store(state.barred(), SeqCst);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    const LONG: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn readers_go_on_during_a_build_and_writers_wait() {
        let lock = TableLock::default();
        lock.lock("t", Mode::Read, LONG).unwrap();
        let build = lock.no_write(LONG).unwrap();
        lock.lock("t", Mode::Read, SHORT).unwrap();
        assert!(matches!(lock.lock("t", Mode::Write, SHORT), Err(Error::LockWaitTimeout)));
        assert!(matches!(lock.upgrade(SHORT), Err(Error::LockWaitTimeout)));
        drop(build);
        lock.upgrade(SHORT).unwrap();
        assert!(matches!(lock.no_write(SHORT), Err(Error::LockWaitTimeout)));
        lock.unlock(Mode::Write);
        drop(lock.no_write(SHORT).unwrap());
        // The build that gave up is forgotten.
        lock.lock("t", Mode::Write, SHORT).unwrap();
    }

    #[test]
    fn a_removal_waits_for_everybody_and_those_who_come_later_learn_of_it() {
        let lock = Arc::new(TableLock::default());
        let dropped = Arc::new(AtomicBool::new(false));
        lock.lock("t", Mode::Write, LONG).unwrap();
        let remover = {
            let (lock, dropped) = (lock.clone(), dropped.clone());
            std::thread::spawn(move || {
                let guard = lock.exclusive(LONG).unwrap();
                dropped.store(true, Ordering::SeqCst);
                guard.set_dropped();
            })
        };
        while !lock.state.lock().exclusive {
            std::thread::yield_now();
        }
        assert!(matches!(lock.lock("t", Mode::Read, SHORT), Err(Error::LockWaitTimeout)));
        assert!(!dropped.load(Ordering::SeqCst));
        lock.unlock(Mode::Write);
        remover.join().unwrap();
        let error = lock.lock("t", Mode::Read, SHORT).unwrap_err();
        assert_eq!(error.to_string(), "table t was dropped");
    }

    /// A reader takes no mutex; a removal must see him nevertheless, also if he ends on another thread.
    #[test]
    fn a_removal_waits_for_readers_and_bars_new_ones() {
        let lock = Arc::new(TableLock::default());
        lock.lock("t", Mode::Read, LONG).unwrap();
        assert!(matches!(lock.exclusive(SHORT), Err(Error::LockWaitTimeout)));
        lock.lock("t", Mode::Read, SHORT).unwrap();
        lock.unlock(Mode::Read);
        let remover = {
            let lock = lock.clone();
            std::thread::spawn(move || lock.exclusive(LONG).map(|guard| guard.set_dropped()).is_ok())
        };
        while !lock.state.lock().exclusive {
            std::thread::yield_now();
        }
        let other = lock.clone();
        let barred = std::thread::spawn(move || {
            let barred = other.lock("t", Mode::Read, SHORT);
            other.unlock(Mode::Read);
            barred
        });
        assert!(matches!(barred.join().unwrap(), Err(Error::LockWaitTimeout)));
        assert!(remover.join().unwrap());
        assert!(matches!(lock.lock("t", Mode::Read, SHORT), Err(Error::TableDropped { .. })));
    }

    /// Between a build and the removal that follows it no transaction begins to write; one that has read goes first,
    /// and the removal learns of it.
    #[test]
    fn no_write_becomes_exclusive_without_a_gap() {
        let lock = Arc::new(TableLock::default());
        let build = lock.no_write(LONG).unwrap();
        assert!(!build.exclusive(LONG).unwrap());
        assert!(matches!(lock.lock("t", Mode::Write, SHORT), Err(Error::LockWaitTimeout)));
        drop(build);

        lock.lock("t", Mode::Read, LONG).unwrap();
        let build = lock.no_write(LONG).unwrap();
        let reader = {
            let lock = lock.clone();
            std::thread::spawn(move || {
                lock.upgrade(LONG).unwrap();
                lock.unlock(Mode::Write);
            })
        };
        assert!(build.exclusive(LONG).unwrap());
        reader.join().unwrap();
        drop(build);
        lock.lock("t", Mode::Write, SHORT).unwrap();
    }

    #[test]
    fn stopping_wakes_who_waits() {
        let poison = Arc::<Poison>::default();
        let lock = Arc::new(TableLock::new(Arc::clone(&poison)));
        lock.lock("t", Mode::Write, LONG).unwrap();
        let waits = |run: fn(&TableLock) -> Result<()>| {
            let lock = lock.clone();
            std::thread::spawn(move || run(&lock))
        };
        let remover = waits(|lock| lock.exclusive(LONG).map(drop));
        while !lock.state.lock().exclusive {
            std::thread::yield_now();
        }
        let newcomer = waits(|lock| lock.lock("t", Mode::Read, LONG));
        let started = Instant::now();
        poison.set("a test");
        lock.wake_all();
        for waiter in [remover, newcomer] {
            assert!(!matches!(waiter.join().unwrap(), Err(Error::LockWaitTimeout)));
        }
        assert!(started.elapsed() < LONG);
        assert!(matches!(lock.exclusive(LONG), Err(Error::Poisoned(_))));
    }
}
