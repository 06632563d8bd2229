//! The events.

use crate::calls::{Call, Held};
use crate::child;
use crate::within;
use crate::world::World;
use highwater::{Error, Result};
use highwater_storage::{FaultKind, Operation};
use std::os::unix::thread::JoinHandleExt;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Well,
    Closed,
    Stopped,
    Otherwise,
}

impl Outcome {
    pub(crate) fn of(result: &Result<()>) -> Outcome {
        match result {
            Ok(()) => Outcome::Well,
            Err(Error::Closed) => Outcome::Closed,
            // The second is of the thread that meets the failure itself.
            Err(Error::Poisoned(_) | Error::Storage(_)) => Outcome::Stopped,
            Err(_) => Outcome::Otherwise,
        }
    }
}

/// Lets the event happen while the thread makes its call; releases what of `held` it has not ended.
type Strike = fn(&mut World, Vec<Held>, &JoinHandle<()>, &str) -> Vec<Held>;

pub(crate) struct Event {
    pub name: &'static str,
    pub strike: Strike,
    /// The ends that a call may come to.
    pub expects: fn(&Call) -> &'static [Outcome],
}

pub(crate) const EVENTS: &[Event] = &[
    Event { name: "close", strike: close, expects: closed },
    Event { name: "fail-stop", strike: fail_stop, expects: stopped },
    Event { name: "fork", strike: fork, expects: |_| WELL },
    Event { name: "signal", strike: signal, expects: |_| WELL },
];

const WELL: &[Outcome] = &[Outcome::Well];

fn close(world: &mut World, held: Vec<Held>, _: &JoinHandle<()>, what: &str) -> Vec<Held> {
    let _ = world.commit();
    let db = world.shared().db.clone();
    within(&format!("closing during {what}"), move || db.close()).unwrap();
    assert!(matches!(world.shared().db.begin(), Err(Error::Closed)));
    held
}

/// What waits for no transaction may come to its end while the database is being closed.
fn closed(call: &Call) -> &'static [Outcome] {
    match (call.uses_database, call.waits) {
        (false, _) => WELL,
        (true, true) => &[Outcome::Closed],
        (true, false) => &[Outcome::Closed, Outcome::Well],
    }
}

fn stopped(call: &Call) -> &'static [Outcome] {
    match (call.uses_database, call.keeps_writers_out) {
        (false, _) => WELL,
        (true, true) => &[Outcome::Stopped, Outcome::Well],
        (true, false) => &[Outcome::Stopped],
    }
}

/// The redo log cannot be written any more. The first thread that has to makes the database stop.
fn fail_stop(world: &mut World, held: Vec<Held>, _: &JoinHandle<()>, what: &str) -> Vec<Held> {
    for operation in [Operation::Write, Operation::Sync] {
        world.faults.fail(operation, 1, FaultKind::ErrorForGood);
    }
    let begin = Instant::now();
    while !matches!(world.shared().db.begin(), Err(Error::Poisoned(_))) {
        assert!(begin.elapsed() < crate::TIMEOUT, "nothing was written during {what}");
        let _ = world.commit();
    }
    held
}

/// A child process has the handle and cannot use it; here everything continues.
fn fork(world: &mut World, held: Vec<Held>, _: &JoinHandle<()>, what: &str) -> Vec<Held> {
    child::is_refused_everything(world, held, what)
}

/// Every system call in which the thread waits is interrupted.
fn signal(_: &mut World, held: Vec<Held>, thread: &JoinHandle<()>, _: &str) -> Vec<Held> {
    extern "C" fn nothing(_: libc::c_int) {}
    let handler = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: all fields are integers or may be null; without SA_RESTART system calls end with EINTR.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    // SAFETY: the handler does nothing; no other thread uses this signal.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) }, 0);
    for _ in 0..100 {
        if thread.is_finished() {
            break;
        }
        // SAFETY: the thread was not joined, so its handle is valid.
        unsafe { libc::pthread_kill(thread.as_pthread_t(), libc::SIGUSR1) };
        thread::sleep(Duration::from_millis(1));
    }
    held
}
