//! Long calls during which a close, a fail-stop, a fork or a signal occurs: each call with each event. A call ends with
//! the error that says what has happened, or as if nothing had; never with a report of damage, and never not at all.
//! The database opens afterwards, is sound, and has what was acknowledged. A part of the tests tries a part of the
//! calls.
//!
//! To add a call or an event: one entry of [`calls::CALLS`], one of [`events::EVENTS`].

mod calls;
mod child;
mod events;
mod world;

use calls::{CALLS, Call};
use events::{EVENTS, Event};
use highwater::internals::test_part::is_tried;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use world::World;

/// Far longer than anything here takes, on a busy machine too.
const TIMEOUT: Duration = Duration::from_secs(100);

/// Runs `run` on a thread; fails if it does not come to its end.
fn within<R: Send + 'static>(what: &str, run: impl FnOnce() -> R + Send + 'static) -> R {
    let (send, receive) = channel();
    let thread = thread::Builder::new().name(what.to_string()).spawn(move || drop(send.send(run()))).unwrap();
    match receive.recv_timeout(TIMEOUT) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("{what} did not come to its end"),
        Err(RecvTimeoutError::Disconnected) => std::panic::resume_unwind(thread.join().unwrap_err()),
    }
}

fn run(call: &Call, event: &Event) {
    let what = format!("{} during a {}", call.name, event.name);
    let mut world = World::new();
    let held = (call.hold)(&world);
    let (call_in, call_run) = (world.share(), call.run);
    let (send, result) = channel();
    world.reads.slow_down();
    let thread = thread::Builder::new().name(what.clone());
    let thread = thread.spawn(move || drop(send.send(call_run(&call_in)))).unwrap();
    world.await_progress();
    let begin = Instant::now();
    let held = (event.strike)(&mut world, held, &thread, &what);
    world.reads.speed_up();
    // What it waited for, if it did not end by the event.
    within(&format!("releasing what {what} waits for"), move || held.into_iter().for_each(calls::Held::release));
    let result = match result.recv_timeout(TIMEOUT) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("{what} did not come to its end"),
        Err(RecvTimeoutError::Disconnected) => std::panic::resume_unwind(thread.join().unwrap_err()),
    };
    thread.join().unwrap();
    let expected = (event.expects)(call);
    assert!(expected.contains(&events::Outcome::of(&result)), "{what}: {result:?} after {:?}", begin.elapsed());
    within(&format!("opening after {what}"), move || world.verify());
}

fn run_all(event: &str) {
    let event = EVENTS.iter().find(|known| known.name == event).unwrap();
    let calls = (0..).zip(CALLS).filter(|(n, _)| is_tried(*n));
    calls.for_each(|(_, call)| run(call, event));
}

#[test]
fn long_calls_during_a_close() {
    run_all("close");
}

#[test]
fn long_calls_during_a_fail_stop() {
    run_all("fail-stop");
}

#[test]
fn long_calls_during_a_fork() {
    run_all("fork");
}

#[test]
fn long_calls_during_signals() {
    run_all("signal");
}
