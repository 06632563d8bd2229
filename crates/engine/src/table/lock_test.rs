//! The table lock: who continues, who waits, and for how long.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(20);

fn no_write(lock: &TableLock, timeout: Duration) -> Result<Change<'_>> {
    let change = lock.change(timeout)?;
    change.no_write(timeout)?;
    Ok(change)
}

fn exclusive(lock: &TableLock, timeout: Duration) -> Result<Change<'_>> {
    let change = lock.change(timeout)?;
    change.exclusive(timeout)?;
    Ok(change)
}

/// Until a newcomer waits in vain: the removal bars all, in turns, while it waits.
fn await_bar(lock: &TableLock) {
    while lock.lock("t", TableLockMode::Read, SHORT).is_ok() {
        lock.unlock(TableLockMode::Read);
        assert!(lock.state.lock().removal_waits, "the removal bars no thread");
    }
}

#[test]
fn readers_go_on_during_a_build_and_writers_wait() {
    let lock = TableLock::default();
    lock.lock("t", TableLockMode::Read, LONG).unwrap();
    let build = no_write(&lock, LONG).unwrap();
    lock.lock("t", TableLockMode::Read, SHORT).unwrap();
    assert!(matches!(lock.lock("t", TableLockMode::Write, SHORT), Err(Error::LockWaitTimeout)));
    assert!(matches!(lock.upgrade(SHORT), Err(Error::LockWaitTimeout)));
    drop(build);
    lock.upgrade(SHORT).unwrap();
    assert!(matches!(no_write(&lock, SHORT), Err(Error::LockWaitTimeout)));
    lock.unlock(TableLockMode::Write);
    drop(no_write(&lock, SHORT).unwrap());
    // The build that gave up is forgotten.
    lock.lock("t", TableLockMode::Write, SHORT).unwrap();
}

#[test]
fn a_removal_waits_for_everybody_and_those_who_come_later_learn_of_it() {
    let lock = Arc::new(TableLock::default());
    let dropped = Arc::new(AtomicBool::new(false));
    lock.lock("t", TableLockMode::Write, LONG).unwrap();
    let remover = {
        let (lock, dropped) = (lock.clone(), dropped.clone());
        std::thread::spawn(move || {
            let guard = exclusive(&lock, LONG).unwrap();
            dropped.store(true, Ordering::SeqCst);
            guard.set_dropped();
        })
    };
    while !lock.state.lock().exclusive {
        std::thread::yield_now();
    }
    await_bar(&lock);
    assert!(!dropped.load(Ordering::SeqCst));
    lock.unlock(TableLockMode::Write);
    remover.join().unwrap();
    let error = lock.lock("t", TableLockMode::Read, SHORT).unwrap_err();
    assert_eq!(error.to_string(), "table t was dropped");
}

/// A reader takes no mutex; a removal must see him nevertheless, also if he ends on another thread.
#[test]
fn a_removal_waits_for_readers_and_bars_new_ones() {
    let lock = Arc::new(TableLock::default());
    lock.lock("t", TableLockMode::Read, LONG).unwrap();
    assert!(matches!(exclusive(&lock, SHORT), Err(Error::LockWaitTimeout)));
    lock.lock("t", TableLockMode::Read, SHORT).unwrap();
    lock.unlock(TableLockMode::Read);
    let remover = {
        let lock = lock.clone();
        std::thread::spawn(move || exclusive(&lock, LONG).map(|guard| guard.set_dropped()).is_ok())
    };
    while !lock.state.lock().exclusive {
        std::thread::yield_now();
    }
    await_bar(&lock);
    let other = lock.clone();
    std::thread::spawn(move || other.unlock(TableLockMode::Read)).join().unwrap();
    assert!(remover.join().unwrap());
    assert!(matches!(lock.lock("t", TableLockMode::Read, SHORT), Err(Error::TableDropped { .. })));
}

/// Rule 6.
#[test]
fn one_that_has_read_writes_before_a_removal_that_waits() {
    let lock = Arc::new(TableLock::default());
    lock.lock("t", TableLockMode::Read, LONG).unwrap();
    let remover = {
        let lock = lock.clone();
        std::thread::spawn(move || {
            let removal = exclusive(&lock, LONG).unwrap();
            assert!(matches!(lock.lock("t", TableLockMode::Write, SHORT), Err(Error::LockWaitTimeout)));
            drop(removal);
        })
    };
    while !lock.state.lock().exclusive {
        std::thread::yield_now();
    }
    await_bar(&lock);
    lock.upgrade(LONG).unwrap();
    lock.unlock(TableLockMode::Write);
    remover.join().unwrap();
    lock.lock("t", TableLockMode::Write, SHORT).unwrap();
}

#[test]
fn stopping_wakes_waiters() {
    let poison = Arc::<Poison>::default();
    let lock = Arc::new(TableLock::new(Arc::clone(&poison)));
    lock.lock("t", TableLockMode::Write, LONG).unwrap();
    let waits = |run: fn(&TableLock) -> Result<()>| {
        let lock = lock.clone();
        std::thread::spawn(move || run(&lock))
    };
    let remover = waits(|lock| exclusive(lock, LONG).map(drop));
    while !lock.state.lock().exclusive {
        std::thread::yield_now();
    }
    let newcomer = waits(|lock| lock.lock("t", TableLockMode::Read, LONG));
    let started = Instant::now();
    poison.set("a test");
    lock.wake_all();
    for waiter in [remover, newcomer] {
        assert!(!matches!(waiter.join().unwrap(), Err(Error::LockWaitTimeout)));
    }
    assert!(started.elapsed() < LONG);
    assert!(matches!(exclusive(&lock, LONG), Err(Error::Poisoned(_))));
}

/// A reader that stays does not stop the others: they pass while the removal waits for it, which gives up in the end.
#[test]
fn others_pass_a_removal_that_waits_for_an_idle_reader() {
    let lock = Arc::new(TableLock::default());
    lock.lock("t", TableLockMode::Read, LONG).unwrap();
    let remover = {
        let lock = lock.clone();
        std::thread::spawn(move || exclusive(&lock, LONG / 6).map(drop))
    };
    while !lock.is_barred() {
        std::thread::yield_now();
    }
    for mode in [TableLockMode::Read, TableLockMode::Write, TableLockMode::Read, TableLockMode::Write] {
        lock.lock("t", mode, LONG / 12).unwrap();
        lock.unlock(mode);
    }
    assert!(!remover.is_finished());
    assert!(matches!(remover.join().unwrap(), Err(Error::LockWaitTimeout)));
    lock.lock("t", TableLockMode::Write, SHORT).unwrap();
}

/// No thread is barred at that moment, and it is not waited for the end of the turn.
#[test]
fn a_removal_comes_soon_after_the_last_reader_has_gone() {
    // On busy processors a thread may sleep too long, but not each time.
    assert!((0..5).any(|_| removal_after_the_last_reader() < Duration::from_millis(700)));
}

fn removal_after_the_last_reader() -> Duration {
    let lock = Arc::new(TableLock::default());
    lock.lock("t", TableLockMode::Read, LONG).unwrap();
    let remover = {
        let lock = lock.clone();
        std::thread::spawn(move || exclusive(&lock, LONG).map(|_| Instant::now()).unwrap())
    };
    // The fourth bar is over: transactions pass for more than two seconds.
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(2_000) || lock.is_barred() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let gone = Instant::now();
    lock.unlock(TableLockMode::Read);
    remover.join().unwrap() - gone
}

/// A transaction for which others may wait is admitted before a removal that waits, and after a removal that holds the
/// lock.
#[test]
fn a_transaction_that_others_wait_for_goes_first() {
    let lock = Arc::new(TableLock::default());
    lock.lock("t", TableLockMode::Read, LONG).unwrap();
    let (has, goes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let remover = {
        let (lock, has, goes) = (lock.clone(), has.clone(), goes.clone());
        std::thread::spawn(move || {
            let guard = exclusive(&lock, LONG).unwrap();
            has.store(true, Ordering::SeqCst);
            while !goes.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            drop(guard);
        })
    };
    // At once, whatever the turn is.
    for _ in 0..20 {
        lock.lock_first(TableLockMode::Read, Duration::ZERO).unwrap();
        lock.unlock(TableLockMode::Read);
        std::thread::sleep(Duration::from_millis(5));
    }
    lock.unlock(TableLockMode::Read);
    while !has.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    assert!(matches!(lock.lock_first(TableLockMode::Read, SHORT), Err(Error::LockWaitTimeout)));
    lock.await_turn(Duration::ZERO).unwrap();
    goes.store(true, Ordering::SeqCst);
    remover.join().unwrap();
    lock.lock_first(TableLockMode::Read, SHORT).unwrap();
}

#[test]
fn schema_changes_come_one_at_a_time_and_wait_no_longer_than_they_say() {
    let lock = Arc::new(TableLock::default());
    let first = lock.change(LONG).unwrap();
    assert!(matches!(lock.change(SHORT), Err(Error::LockWaitTimeout)));
    lock.lock("t", TableLockMode::Write, SHORT).unwrap();
    lock.unlock(TableLockMode::Write);
    let second = {
        let lock = lock.clone();
        std::thread::spawn(move || lock.change(LONG).map(drop))
    };
    drop(first);
    second.join().unwrap().unwrap();
    drop(lock.change(SHORT).unwrap());
}
