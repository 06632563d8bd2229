//! Client threads: each runs transaction after transaction until the run ends.
//!
//! Rules
//! 1. Clients begin together, once each has its thread.
//! 2. A client that ends for any reason is counted down, so that the driver never waits for it.
//! 3. A transaction that meets a conflict is retried after a wait ([`backoff`]), until it succeeds or the run stops.

use super::RunOptions;
use super::recorder::Recorder;
use crate::backoff;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::workload::Client;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// State that clients and driver share.
pub(super) struct Shared {
    pub(super) recorders: Vec<Mutex<Recorder>>,
    pub(super) stop: AtomicBool,
    pub(super) measuring: AtomicBool,
    /// Transactions still to start, when the run is limited by them.
    events_left: AtomicU64,
    events_limited: bool,
    running: Mutex<usize>,
    finished: Condvar,
    /// Open once every client has its thread.
    gate: Mutex<bool>,
    opened: Condvar,
    pub(super) failure: Mutex<Option<Error>>,
}

impl Shared {
    pub(super) fn new(options: &RunOptions, kinds: usize) -> Shared {
        Shared {
            recorders: (0..options.threads).map(|_| Mutex::new(Recorder::new(kinds))).collect(),
            stop: AtomicBool::new(false),
            measuring: AtomicBool::new(false),
            events_left: AtomicU64::new(options.events),
            events_limited: options.events > 0,
            running: Mutex::new(options.threads),
            finished: Condvar::new(),
            gate: Mutex::new(false),
            opened: Condvar::new(),
            failure: Mutex::new(None),
        }
    }

    /// `None` if no more transactions may start; otherwise whether the next one is measured (not in the warm-up).
    fn next_counts(&self) -> Option<bool> {
        if self.stop.load(Relaxed) || interrupt::is_requested() {
            return None;
        }
        let counts = self.measuring.load(Relaxed);
        if counts && self.events_limited {
            self.events_left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).ok()?;
        }
        Some(counts)
    }

    fn client_loop(&self, client: &mut dyn Client, recorder: &Mutex<Recorder>) -> Result<()> {
        while let Some(counts) = self.next_counts() {
            let (started, mut errors) = (Instant::now(), 0);
            let outcome = loop {
                match client.run() {
                    Err(error) if error.is_retryable() => errors += 1,
                    other => break other?,
                }
                if self.stop.load(Relaxed) {
                    if counts {
                        recorder.lock().give_up(started.elapsed(), errors);
                    }
                    return Ok(());
                }
                backoff::pause(errors);
            };
            let Some(outcome) = outcome else { return Ok(()) };
            if counts {
                recorder.lock().record(&outcome, started.elapsed(), errors);
            }
        }
        Ok(())
    }

    /// Runs a client until the end, then counts it down.
    pub(super) fn client_thread(&self, mut client: Box<dyn Client>, recorder: &Mutex<Recorder>) {
        // Counted down even if the client panics; otherwise the driver would wait forever.
        struct Leave<'a>(&'a Shared);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                *self.0.running.lock() -= 1;
                self.0.finished.notify_all();
            }
        }
        let leave = Leave(self);
        let mut open = self.gate.lock();
        self.opened.wait_while(&mut open, |open| !*open);
        drop(open);
        if let Err(error) = self.client_loop(&mut *client, recorder) {
            self.stop.store(true, Relaxed);
            self.failure.lock().get_or_insert(error);
        }
        drop(leave);
    }

    /// Lets the clients begin.
    pub(super) fn open_gate(&self) {
        *self.gate.lock() = true;
        self.opened.notify_all();
    }

    /// Ends the run before it begins: `missing` clients have no thread.
    pub(super) fn call_off(&self, missing: usize, error: Error) {
        self.stop.store(true, Relaxed);
        self.failure.lock().get_or_insert(error);
        *self.running.lock() -= missing;
    }

    /// Waits until `deadline` or until every client has finished; returns the number of running clients.
    pub(super) fn wait_until(&self, deadline: Option<Instant>) -> usize {
        let mut running = self.running.lock();
        while *running > 0 {
            match deadline {
                None => self.finished.wait(&mut running),
                Some(deadline) => {
                    if self.finished.wait_until(&mut running, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        *running
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    /// A store that refuses every transaction at once.
    #[derive(Default)]
    struct Refused(Arc<AtomicU64>);

    impl Client for Refused {
        fn run(&mut self) -> Result<Option<crate::workload::Outcome>> {
            self.0.fetch_add(1, Relaxed);
            Err(highwater::Error::WriteConflict.into())
        }
    }

    #[test]
    fn what_is_refused_again_and_again_waits_and_counts_in_the_latencies() {
        let shared = Shared::new(&RunOptions::default(), 1);
        shared.measuring.store(true, Relaxed);
        let (mut client, recorder) = (Refused::default(), Mutex::new(Recorder::new(1)));
        let tries = client.0.clone();
        std::thread::scope(|scope| {
            scope.spawn(|| shared.client_loop(&mut client, &recorder).unwrap());
            while tries.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(100));
            shared.stop.store(true, Relaxed);
        });
        let recorder = recorder.into_inner();
        let (latencies, tries) = (recorder.all_latencies(), tries.load(Relaxed));
        assert_eq!((recorder.transactions(), latencies.len(), recorder.errors), (0, 1, tries));
        assert!(latencies.max() > 90_000_000, "{} ns", latencies.max());
        assert!(tries < 1_000, "{tries} tries");
    }
}
