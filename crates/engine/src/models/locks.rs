//! The lock table's waits. In each model every wait must end: a lost wake-up is a deadlock of the schedule.

use super::explore;
use crate::error::Error;
use crate::lock::{Holder, LockMode, LockSystem, RowName};
use crate::sync::atomic::{AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use crate::sync::interrupt::{Interrupt, Patience};
use crate::sync::poison::Poison;
use crate::sync::thread;
use crate::types::{IndexId, TxnId};
use shuttle::rand::{Rng, thread_rng};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const INDEX: IndexId = IndexId(7);
/// A wait that does not time out.
const FOR_EVER: Duration = Duration::from_secs(1 << 20);
/// A wait that times out whenever the schedule has it so.
const LIMITED: Duration = Duration::from_secs(20);

fn system() -> Arc<LockSystem> {
    LockSystem::open(Arc::default(), &Arc::default())
}

fn active(id: u64) -> Arc<Holder> {
    let holder = Holder::default();
    holder.trx_id.store(id, SeqCst);
    Arc::new(holder)
}

fn row(key: &[u8]) -> RowName<'_> {
    RowName { index: INDEX, key }
}

/// Rows that know who is inside.
#[derive(Default)]
struct Rows {
    inside: [AtomicU32; 2],
}

impl Rows {
    fn enter(&self, at: usize) {
        assert_eq!(self.inside[at].fetch_add(1, SeqCst), 0, "two hold row {at} exclusively");
    }

    fn leave(&self, at: usize) {
        self.inside[at].fetch_sub(1, SeqCst);
    }
}

/// One holds a row and releases it; two wait for it, for a limited time: the lock may be granted while a wait times
/// out. A thread that was served holds the row alone; one that gave up holds nothing and keeps no other thread from it.
pub fn granted_and_timed_out_at_once() {
    explore(600, || {
        let (system, rows) = (system(), Arc::new(Rows::default()));
        let first = active(1);
        assert!(system.try_lock_row(&first, row(b"r"), LockMode::Exclusive));
        rows.enter(0);
        let waiters: Vec<_> = (2..4)
            .map(|id| {
                let (system, rows) = (system.clone(), rows.clone());
                thread::spawn(move || {
                    let me = active(id);
                    match system.wait_row(&me, row(b"r"), LockMode::Exclusive, None, LIMITED) {
                        Ok(()) => {
                            rows.enter(0);
                            rows.leave(0);
                        }
                        Err(Error::LockWaitTimeout) => {}
                        Err(error) => panic!("{error}"),
                    }
                    system.release_all(&me);
                })
            })
            .collect();
        rows.leave(0);
        system.release_all(&first);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        assert!(system.is_empty());
    });
}

/// A row becomes free while one waits for it for a limited time and two for ever, the last to read it, and threads that
/// run may take it first; the second of them comes too late, and the row is handed over. Those who wait for ever are
/// served even if others pass them or give up before them.
pub fn a_row_is_taken_while_its_front_wakes() {
    explore(600, || {
        let (system, rows) = (system(), Arc::new(Rows::default()));
        let first = active(1);
        assert!(system.try_lock_row(&first, row(b"r"), LockMode::Exclusive));
        rows.enter(0);
        let wanted = [(LIMITED, LockMode::Exclusive), (FOR_EVER, LockMode::Exclusive), (FOR_EVER, LockMode::Shared)];
        let waiters: Vec<_> = wanted
            .into_iter()
            .zip(2..)
            .map(|((timeout, mode), id)| {
                let (system, rows) = (system.clone(), rows.clone());
                thread::spawn(move || {
                    let me = active(id);
                    let result = system.wait_row(&me, row(b"r"), mode, None, timeout);
                    assert!(result.is_ok() || timeout == LIMITED, "{result:?}");
                    if result.is_ok() {
                        rows.enter(0);
                        rows.leave(0);
                    }
                    system.release_all(&me);
                })
            })
            .collect();
        rows.leave(0);
        system.release_all(&first);
        // By its id: it holds the row explicitly only where others wait.
        let passer = active(5);
        system.blocks_row(&passer, row(b"r"), LockMode::Exclusive);
        system.release_all(&passer);
        for id in 6..8 {
            let passer = active(id);
            if system.try_lock_row(&passer, row(b"r"), LockMode::Exclusive) {
                rows.enter(0);
                rows.leave(0);
            }
            system.release_all(&passer);
        }
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        assert!(system.is_empty());
    });
}

/// Two lock two rows the other way round, a third waits for one of them, and a transaction ends while it is chosen as
/// victim. No thread waits for ever, and no two threads hold the same row.
pub fn a_victim_is_chosen_while_locks_are_granted() {
    explore(600, || {
        let (system, rows) = (system(), Arc::new(Rows::default()));
        let threads: Vec<_> = [[0usize, 1], [1, 0], [1, 0]]
            .into_iter()
            .zip(1..)
            .map(|(order, id)| {
                let (system, rows) = (system.clone(), rows.clone());
                thread::spawn(move || {
                    let me = active(id);
                    me.weight.store(id % 2, Relaxed);
                    let mut held = Vec::new();
                    for at in order {
                        match system.wait_row(&me, row(&[at as u8]), LockMode::Exclusive, None, FOR_EVER) {
                            Ok(()) => {
                                rows.enter(at);
                                held.push(at);
                            }
                            Err(Error::Deadlock) => break,
                            Err(error) => panic!("{error}"),
                        }
                    }
                    held.iter().for_each(|at| rows.leave(*at));
                    system.release_all(&me);
                    held.len()
                })
            })
            .collect();
        let held: Vec<usize> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(held.contains(&2), "all were victims: {held:?}");
        assert!(system.is_empty());
    });
}

/// A transaction that holds a row by its id ends while another makes that lock explicit and waits for it.
pub fn an_implicit_lock_ends_while_it_becomes_explicit() {
    explore(600, || {
        let system = system();
        let holder = active(9);
        let waiters: Vec<_> = (1..3)
            .map(|id| {
                let (system, holder) = (system.clone(), holder.clone());
                thread::spawn(move || {
                    let me = active(id);
                    let implicit = Some((TxnId(9), &holder));
                    system.wait_row(&me, row(b"r"), LockMode::Exclusive, implicit, FOR_EVER).unwrap();
                    system.release_all(&me);
                })
            })
            .collect();
        system.release_all(&holder);
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        assert!(system.is_empty());
    });
}

/// Inserts wait for the ranges of two transactions that end.
pub fn inserts_wait_for_ranges_that_go() {
    explore(600, || {
        let system = system();
        let owners = [active(1), active(2)];
        owners.iter().for_each(|owner| system.lock_point(owner, INDEX, b"k"));
        let inserters: Vec<_> = (3..5)
            .map(|id| {
                let system = system.clone();
                thread::spawn(move || {
                    let me = active(id);
                    system.wait_insert(&me, INDEX, b"k", FOR_EVER).unwrap();
                    assert!(!system.blocks_insert(&me, INDEX, b"k"), "it was granted, and there is a range");
                    system.release_all(&me);
                })
            })
            .collect();
        let second = {
            let (system, owner) = (system.clone(), owners[1].clone());
            thread::spawn(move || system.release_all(&owner))
        };
        system.release_all(&owners[0]);
        second.join().unwrap();
        inserters.into_iter().for_each(|inserter| inserter.join().unwrap());
        assert!(system.is_empty());
    });
}

/// The database stops while transactions begin to wait: each gets the error, none waits on.
pub fn stopping_wakes_every_waiter() {
    explore(600, || {
        let poison = Arc::<Poison>::default();
        let system = LockSystem::open(Arc::default(), &poison);
        let holder = active(1);
        assert!(system.try_lock_row(&holder, row(b"r"), LockMode::Exclusive));
        system.lock_point(&holder, INDEX, b"k");
        let waiters: Vec<_> = (2..5)
            .map(|id| {
                let system = system.clone();
                thread::spawn(move || {
                    let me = active(id);
                    let result = match id % 2 {
                        0 => system.wait_row(&me, row(b"r"), LockMode::Shared, None, FOR_EVER),
                        _ => system.wait_insert(&me, INDEX, b"k", FOR_EVER),
                    };
                    assert!(matches!(result, Err(Error::Poisoned(_))), "{result:?}");
                    system.release_all(&me);
                })
            })
            .collect();
        poison.set("a model");
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
        system.release_all(&holder);
        assert!(system.is_empty());
    });
}

/// Two wait for a row and one for a range; a thread interrupts them at any moment, also before they wait, while the row
/// is released and while the others wait on. One that is granted its lock leaves the interruption to its next wait.
pub fn an_interruption_comes_at_any_moment() {
    explore(600, || {
        let poison = Arc::<Poison>::default();
        let system = LockSystem::open(Arc::default(), &poison);
        let (holder, interrupt) = (active(1), Arc::<Interrupt>::default());
        assert!(system.try_lock_row(&holder, row(b"r"), LockMode::Exclusive));
        system.lock_point(&holder, INDEX, b"k");
        let waiters: Vec<_> = (2..5)
            .map(|id| {
                let (system, interrupt) = (system.clone(), interrupt.clone());
                thread::spawn(move || {
                    let me = active(id);
                    let by = if id == 3 { None } else { Some(&interrupt) };
                    let patience = Patience { timeout: FOR_EVER, interrupt: by };
                    let result = match id {
                        4 => system.wait_insert(&me, INDEX, b"k", patience),
                        _ => system.wait_row(&me, row(b"r"), LockMode::Exclusive, None, patience),
                    };
                    system.release_all(&me);
                    match result {
                        Ok(()) => 0,
                        Err(Error::Interrupted) if id != 3 => 1,
                        Err(error) => panic!("{error}"),
                    }
                })
            })
            .collect();
        interrupt.raise();
        poison.wake_interrupted();
        system.release_all(&holder);
        let taken: u32 = waiters.into_iter().map(|waiter| waiter.join().unwrap()).sum();
        assert_eq!(taken + u32::from(interrupt.is_raised()), 1, "an interruption is taken once");
        assert!(system.is_empty());
    });
}

/// One waits for ever for a row that is not released before it was interrupted.
pub fn an_interruption_is_not_missed() {
    explore(600, || {
        let poison = Arc::<Poison>::default();
        let system = LockSystem::open(Arc::default(), &poison);
        let (holder, interrupt) = (active(1), Arc::<Interrupt>::default());
        assert!(system.try_lock_row(&holder, row(b"r"), LockMode::Exclusive));
        let waiter = {
            let (system, interrupt) = (system.clone(), interrupt.clone());
            thread::spawn(move || {
                let patience = Patience { timeout: FOR_EVER, interrupt: Some(&interrupt) };
                system.wait_row(&active(2), row(b"r"), LockMode::Shared, None, patience)
            })
        };
        interrupt.raise();
        poison.wake_interrupted();
        assert!(matches!(waiter.join().unwrap(), Err(Error::Interrupted)));
        system.release_all(&holder);
        assert!(system.is_empty());
    });
}

/// Transactions lock at random, shared and exclusively, for limited times, and end: also in the middle, as a session
/// that is dropped does.
pub fn sessions_come_and_go() {
    explore(600, || {
        let (system, rows) = (system(), Arc::new(Rows::default()));
        let threads: Vec<_> = (1..4)
            .map(|id| {
                let (system, rows) = (system.clone(), rows.clone());
                thread::spawn(move || (0..2).for_each(|_| one_session(&system, &rows, id)))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(system.is_empty());
    });
}

fn one_session(system: &LockSystem, rows: &Rows, id: u64) {
    let me = active(id);
    let mut held = BTreeSet::new();
    for _ in 0..thread_rng().gen_range(1..4) {
        let at = thread_rng().gen_range(0..2);
        let mode = if thread_rng().gen_bool(0.6) { LockMode::Exclusive } else { LockMode::Shared };
        match system.wait_row(&me, row(&[at as u8]), mode, None, LIMITED) {
            Ok(()) if mode == LockMode::Exclusive && held.insert(at) => rows.enter(at),
            Ok(()) | Err(Error::LockWaitTimeout) => {}
            Err(Error::Deadlock) => break,
            Err(error) => panic!("{error}"),
        }
    }
    held.iter().for_each(|at| rows.leave(*at));
    system.release_all(&me);
}
