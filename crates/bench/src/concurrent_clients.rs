//! Clients that run transactions during some work, to measure their rate and the time of the longest transaction.
//!
//! Rules
//! 1. Clients run from before the work until it has ended. A phase of it counts the transactions that end in it.
//! 2. A transaction that fails with a retryable error is retried; its time begins with the first attempt.
//! 3. The first error of a client ends the work, and so does a request to stop.

use crate::error::{Error, Result};
use crate::interrupt;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The rate and the longest transaction of the clients in a phase.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    /// Transactions in a second, of all clients.
    pub tps: f64,
    /// The longest transaction, in milliseconds.
    pub max_ms: f64,
    /// Length of the phase in seconds.
    pub seconds: f64,
}

/// The client threads.
#[derive(Default)]
pub(crate) struct Clients {
    stop: AtomicBool,
    transactions: AtomicU64,
    /// The longest transaction of the phase.
    max_us: AtomicU64,
    failure: Mutex<Option<Error>>,
}

/// Runs `work` while N clients run. `client` creates the transactions of a client from its number.
///
/// # Errors
/// Those of the work, of the clients (rule 3).
pub(crate) fn with_clients<R, T: FnMut() -> Result<()>>(
    threads: usize,
    client: impl Fn(usize) -> Result<T> + Sync,
    work: impl FnOnce(&Clients) -> Result<R>,
) -> Result<R> {
    let clients = Clients::default();
    let done = std::thread::scope(|scope| {
        for number in 0..threads {
            let (clients, client) = (&clients, &client);
            scope.spawn(move || {
                if let Err(error) = client(number).and_then(|transaction| clients.run(transaction)) {
                    clients.failure.lock().get_or_insert(error);
                }
            });
        }
        let done = work(&clients);
        clients.stop.store(true, Relaxed);
        done
    });
    match clients.failure.lock().take() {
        Some(error) => Err(error),
        None => done,
    }
}

impl Clients {
    fn run(&self, mut transaction: impl FnMut() -> Result<()>) -> Result<()> {
        while !self.stop.load(Relaxed) {
            let since = Instant::now();
            loop {
                match transaction() {
                    Err(error) if error.is_retryable() && !self.stop.load(Relaxed) => {}
                    Err(error) if error.is_retryable() => return Ok(()),
                    done => break done?,
                }
            }
            self.max_us.fetch_max(since.elapsed().as_micros() as u64, Relaxed);
            self.transactions.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    /// Runs `phase`; returns the rate and the longest transaction of the clients.
    ///
    /// # Errors
    /// Those of `phase`.
    pub(crate) fn during(&self, phase: impl FnOnce() -> Result<()>) -> Result<Phase> {
        let (since, before) = (Instant::now(), self.transactions.load(Relaxed));
        self.max_us.store(0, Relaxed);
        phase()?;
        let seconds = since.elapsed().as_secs_f64();
        let tps = (self.transactions.load(Relaxed) - before) as f64 / seconds;
        Ok(Phase { seconds, tps, max_ms: self.max_us.load(Relaxed) as f64 / 1000.0 })
    }

    /// Lets the clients run for this long.
    ///
    /// # Errors
    /// As [`may_go_on`](Self::may_go_on).
    pub(crate) fn pause(&self, seconds: f64) -> Result<()> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while Instant::now() < end {
            self.may_go_on()?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Whether the work is to end.
    pub(crate) fn must_end(&self) -> bool {
        interrupt::is_requested() || self.failure.lock().is_some()
    }

    /// Rule 3.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; a client's.
    pub(crate) fn may_go_on(&self) -> Result<()> {
        interrupt::check()?;
        match self.failure.lock().take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A phase of at least this long, in which a transaction begins and ends.
    fn phase_of(clients: &Clients, seconds: f64) -> Result<Phase> {
        clients.during(|| {
            let before = clients.transactions.load(Relaxed);
            clients.pause(seconds)?;
            // One of each client may have begun before.
            while clients.transactions.load(Relaxed) < before + 3 {
                clients.pause(0.01)?;
            }
            Ok(())
        })
    }

    #[test]
    fn phases_count_what_ends_in_them_and_an_error_ends_the_work() {
        let phases = with_clients(
            2,
            |_| {
                Ok(|| {
                    std::thread::sleep(Duration::from_millis(2));
                    Ok(())
                })
            },
            |clients| Ok([phase_of(clients, 0.2)?, phase_of(clients, 0.2)?]),
        );
        for phase in phases.unwrap() {
            assert!((0.2..60.0).contains(&phase.seconds) && phase.tps * phase.seconds > 0.9, "{phase:?}");
            // Two may have begun before the phase.
            assert!((phase.tps - 1000.0) * phase.seconds < 2.1 && phase.max_ms >= 2.0, "{phase:?}");
        }
        let failed = with_clients(
            1,
            |_| Ok(|| Err(Error::Data("a wrong row".into()))),
            |clients| {
                while !clients.must_end() {
                    std::thread::yield_now();
                }
                clients.pause(60.0)
            },
        );
        assert!(matches!(failed, Err(Error::Data(_))), "{failed:?}");
    }

    /// Rule 2.
    #[test]
    fn a_conflict_is_tried_again() {
        let counted = with_clients(
            1,
            |_| {
                let mut attempts = 0u64;
                Ok(move || {
                    attempts += 1;
                    std::thread::sleep(Duration::from_millis(1));
                    if attempts.is_multiple_of(3) { Ok(()) } else { Err(highwater::Error::WriteConflict.into()) }
                })
            },
            |clients| phase_of(clients, 0.1),
        );
        let phase = counted.unwrap();
        assert!(phase.max_ms >= 3.0 && (phase.tps - 334.0) * phase.seconds < 1.1, "{phase:?}");
    }
}
