//! The table lock: keeps schema changes and transactions apart. In memory only.
//!
//! Modes: *read* and *write* are held by transactions from their first use of a table to their end; *no-write* by an
//! index build (readers go on, writers wait); *exclusive* by a removal (all others wait).
//!
//! Rules
//! 1. A transaction that has read may write later without giving its read lock back ([`TableLock::upgrade`]). An index
//!    build may have come in between, so it takes the table's newest version then.
//! 2. Schema changes come one at a time (the database's schema mutex), and new transactions queue behind a waiting one.
//! 3. Every wait ends by a timeout, so a transaction that waits for its own lock gets an error and does not wait for
//!    ever.
//! 4. A lock taken on a dropped table is an error that says so.
//! 5. Reading transactions count themselves at the place of their thread and take no mutex, unless `is_barred` says
//!    that a removal has come or waits: who counts himself looks at that afterwards, a removal looks at the counts
//!    after it has set it (both sequentially consistent), so one of them sees the other. Only the sum of the places
//!    counts: a transaction may end on another thread.
//! 6. When the database stops, every waiter is woken and gets the error that says so.

use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use crate::sync::poison::Poison;
use crate::sync::spread::{Apart, PLACES, place};
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct TableLock {
    readers: [Apart<AtomicU32>; PLACES],
    /// Whether readers have to look at the state.
    is_barred: AtomicBool,
    state: Mutex<LockState>,
    changed: Condvar,
    poison: Arc<Poison>,
}

#[derive(Debug, Default)]
struct LockState {
    writers: u32,
    /// A build holds or waits for no-write.
    no_write: bool,
    /// A removal holds or waits for exclusive.
    exclusive: bool,
    dropped: bool,
}

/// What a transaction does with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    Read,
    /// Reads and writes.
    Write,
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
        if mode == Mode::Read {
            self.readers[place()].fetch_add(1, SeqCst);
            if !self.is_barred.load(SeqCst) {
                return Ok(());
            }
            self.leave();
        }
        self.lock_slowly(table, mode, timeout)
    }

    fn lock_slowly(&self, table: &str, mode: Mode, timeout: Duration) -> Result<()> {
        let mut state = self.state.lock();
        if state.exclusive || state.dropped || (state.no_write && mode == Mode::Write) {
            let free = |s: &LockState| !(s.exclusive || s.no_write && mode == Mode::Write);
            self.wait(&mut state, timeout, free)?;
            check_dropped(&state, table)?;
        }
        match mode {
            // Before a removal can come: it takes the mutex.
            Mode::Read => drop(self.readers[place()].fetch_add(1, SeqCst)),
            Mode::Write => state.writers += 1,
        }
        Ok(())
    }

    /// Counts a reader out.
    #[inline]
    fn leave(&self) {
        self.readers[place()].fetch_sub(1, SeqCst);
        if self.is_barred.load(SeqCst) {
            drop(self.state.lock());
            self.changed.notify_all();
        }
    }

    /// Whether no transaction reads. Asked while readers are barred: then no place counts one out whom another has not
    /// counted in.
    fn has_no_reader(&self) -> bool {
        self.readers.iter().fold(0u32, |sum, place| sum.wrapping_add(place.load(SeqCst))) == 0
    }

    /// Turns a read lock into a write lock.
    pub(crate) fn upgrade(&self, timeout: Duration) -> Result<()> {
        let mut state = self.state.lock();
        // A removal that waits also waits for our read lock: we must not wait for it.
        self.wait(&mut state, timeout, |s| !s.no_write)?;
        state.writers += 1;
        drop(state);
        self.leave();
        Ok(())
    }

    /// Gives a transaction's lock back.
    #[inline]
    pub(crate) fn unlock(&self, mode: Mode) {
        if mode == Mode::Read {
            return self.leave();
        }
        let mut state = self.state.lock();
        state.writers -= 1;
        if state.no_write || state.exclusive {
            self.changed.notify_all();
        }
    }

    /// Keeps writers out until the guard is dropped. The caller holds the schema mutex.
    pub(crate) fn no_write(&self, timeout: Duration) -> Result<SchemaGuard<'_>> {
        let mut state = self.state.lock();
        state.no_write = true;
        let guard = SchemaGuard(self);
        match self.wait(&mut state, timeout, |s| s.writers == 0) {
            Ok(()) => Ok(guard),
            Err(error) => {
                drop(state);
                Err(error)
            }
        }
    }

    /// Keeps all others out until the guard is dropped. The caller holds the schema mutex.
    pub(crate) fn exclusive(&self, timeout: Duration) -> Result<SchemaGuard<'_>> {
        let mut state = self.state.lock();
        state.exclusive = true;
        self.is_barred.store(true, SeqCst);
        let guard = SchemaGuard(self);
        match self.wait(&mut state, timeout, |s| s.writers == 0 && self.has_no_reader()) {
            Ok(()) => Ok(guard),
            Err(error) => {
                drop(state);
                Err(error)
            }
        }
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
        self.0.is_barred.store(state.dropped, SeqCst);
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
