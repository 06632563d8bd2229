//! The pace of writers: above the async watermark a mini-transaction may have to wait before it starts.
//!
//! A limit ("wall") moves through the log at the speed that the page cleaner allows; a mini-transaction starts once the
//! end of the log is before it. So the redo rate is the allowed one for any number of threads, and all are slowed
//! alike.
//!
//! Rules
//! 1. A thread that waits here holds no latch. The wall always moves, so no thread waits for ever.
//! 2. While there is no limit, the cost is one load of a word that rarely changes.

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::types::Lsn;
use std::time::{Duration, Instant};

/// Redo that may be written at once after a pause, as time at the allowed rate.
const BURST_S: f64 = 0.02;
/// Redo beyond the allowed rate that still has to be waited for, likewise.
const DEBT_S: f64 = 0.2;
/// Time that a waiter sleeps before it reads the LSN limit again.
const MAX_NAP: Duration = Duration::from_millis(10);
/// No thread waits longer than this.
const MAX_WAIT: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Throttle {
    limited: AtomicBool,
    limit: Mutex<Option<LsnLimit>>,
}

#[derive(Clone, Copy, Debug)]
struct LsnLimit {
    lsn: f64,
    since: Instant,
    bytes_per_s: f64,
}

impl LsnLimit {
    fn lsn_at(&self, now: Instant) -> f64 {
        self.lsn + now.duration_since(self.since).as_secs_f64() * self.bytes_per_s
    }
}

impl Throttle {
    /// Sets the redo that may be written per second from now on; `None` = no limit.
    pub(super) fn set(&self, bytes_per_s: Option<f64>, end_lsn: Lsn) {
        if bytes_per_s.is_none() && !self.limited.load(Relaxed) {
            return;
        }
        let mut limit = self.limit.lock();
        *limit = bytes_per_s.map(|bytes_per_s| {
            let (now, end) = (Instant::now(), end_lsn.0 as f64);
            let before = limit.map_or(end, |w| w.lsn_at(now));
            let lsn = before.clamp(end - bytes_per_s * DEBT_S, end + bytes_per_s * BURST_S);
            LsnLimit { lsn, since: now, bytes_per_s }
        });
        self.limited.store(limit.is_some(), Relaxed);
    }

    /// Waits until the next mini-transaction may start; returns how long that took, if it had to wait.
    #[inline]
    pub(super) fn wait(&self, end_lsn: impl Fn() -> Lsn) -> Option<Duration> {
        if self.limited.load(Relaxed) { self.wait_for_limit(end_lsn) } else { None }
    }

    #[cold]
    fn wait_for_limit(&self, end_lsn: impl Fn() -> Lsn) -> Option<Duration> {
        let start = Instant::now();
        let mut waited = false;
        while start.elapsed() < MAX_WAIT {
            let Some(limit) = *self.limit.lock() else { break };
            let ahead = end_lsn().0 as f64 - limit.lsn_at(Instant::now());
            if ahead <= 0.0 {
                break;
            }
            waited = true;
            let nap = Duration::try_from_secs_f64(ahead / limit.bytes_per_s.max(1.0)).unwrap_or(MAX_NAP);
            crate::sync::thread::sleep(nap.min(MAX_NAP));
        }
        waited.then(|| start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn without_a_limit_no_thread_waits() {
        let throttle = Throttle::default();
        assert_eq!(throttle.wait(|| Lsn(u64::MAX)), None);
        throttle.set(Some(1.0), Lsn(1000));
        assert!(throttle.wait(|| Lsn(1010)).is_some());
        throttle.set(None, Lsn(1000));
        assert_eq!(throttle.wait(|| Lsn(u64::MAX)), None);
    }

    #[test]
    fn any_number_of_threads_keeps_to_the_rate() {
        for threads in [1, 16] {
            let mut rates = Vec::new();
            // Threads that get no processor write less, but not each time.
            let is_kept = (0..20).any(|_| {
                let rate = rate_of(threads);
                rates.push(rate);
                (2e5..1.3e6).contains(&rate)
            });
            assert!(is_kept, "{threads} threads wrote {rates:?} bytes per second");
        }
    }

    /// Bytes per second that so many threads write at a limit of a million.
    fn rate_of(threads: usize) -> f64 {
        let (throttle, end) = (Throttle::default(), AtomicU64::new(1 << 30));
        let written = AtomicU64::new(0);
        throttle.set(Some(1e6), Lsn(1 << 30));
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while start.elapsed() < Duration::from_millis(300) {
                        throttle.wait(|| Lsn(end.load(Relaxed)));
                        end.fetch_add(500, Relaxed);
                        written.fetch_add(500, Relaxed);
                    }
                });
            }
        });
        written.load(Relaxed) as f64 / start.elapsed().as_secs_f64()
    }
}
