//! Two clocks. *Virtual*: the completion times of requests advance the clock; nothing waits. *Real*: a request
//! completes at the time that the model computes.
//!
//! Rule: a clock is monotonic; it starts at 0.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A source of time for a device that serves requests.
pub enum Clock {
    /// Advanced by completions only: requests run as fast as the processor allows.
    Virtual(AtomicU64),
    /// The machine's monotonic clock.
    Real(Instant),
}

/// Below this the real clock yields instead of sleeping: a sleep overshoots by about as much.
const SLEEP_SLACK: Duration = Duration::from_micros(60);

impl Clock {
    /// A virtual clock at 0.
    pub fn virtual_time() -> Clock {
        Clock::Virtual(AtomicU64::new(0))
    }

    /// A real clock that starts now.
    pub fn real_time() -> Clock {
        Clock::Real(Instant::now())
    }

    /// Nanoseconds since the clock began.
    pub fn now_ns(&self) -> u64 {
        match self {
            Clock::Virtual(now) => now.load(Ordering::Relaxed),
            Clock::Real(start) => start.elapsed().as_nanos() as u64,
        }
    }

    /// Returns when the clock has reached `at_ns`.
    pub fn wait_until(&self, at_ns: u64) {
        match self {
            Clock::Virtual(now) => _ = now.fetch_max(at_ns, Ordering::Relaxed),
            Clock::Real(start) => sleep_until(*start + Duration::from_nanos(at_ns)),
        }
    }
}

fn sleep_until(at: Instant) {
    loop {
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        match left.checked_sub(SLEEP_SLACK) {
            Some(long) if !long.is_zero() => std::thread::sleep(long),
            _ => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_moves_with_completions_and_never_back() {
        let clock = Clock::virtual_time();
        clock.wait_until(5_000_000_000);
        clock.wait_until(3);
        assert_eq!(clock.now_ns(), 5_000_000_000);
    }

    #[test]
    fn real_time_waits() {
        let clock = Clock::real_time();
        clock.wait_until(3_000_000);
        assert!(clock.now_ns() >= 3_000_000);
    }
}
