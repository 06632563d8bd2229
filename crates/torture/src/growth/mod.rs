//! The growth of an operation's cost with its size, and of the purge backlog under skewed loads.
//!
//! Rules
//! 1. Each operation is done at N, 2N and 4N, over a database in memory, most of them in the calling thread with the
//!    engine's background steps in between. Preparations are not counted.
//! 2. The cost is the processor time of the process, if the system reports it: other programs affect it little.
//! 3. N log N takes 4 to 5 times as long at 4N as at N, a quadratic operation 16 times: [`MAX_RATIO`] is in between. N
//!    is chosen so that the constant part is small compared with the part that grows.
//! 4. A busy machine makes times longer, never shorter. So the smallest of several rounds counts, and an operation that
//!    is within the limit in any round is not measured again.

mod operations;
mod steady;

use highwater_bench::Result;
pub use operations::OPERATIONS;
use std::time::{Duration, Instant};
pub use steady::{Load, STEADY, Steady};

/// Maximum ratio of the costs at 4N and at N.
pub const MAX_RATIO: f64 = 9.0;
/// Maximum number of measurements of each size.
const MAX_ROUNDS: u32 = 5;

/// An operation, and its size N.
#[derive(Clone, Copy, Debug)]
pub struct Growing {
    /// Name.
    pub name: &'static str,
    /// The unit of N.
    pub of: &'static str,
    /// The size N.
    pub size: usize,
    /// Runs the operation at a size.
    pub(crate) run: fn(usize) -> Result<Duration>,
}

/// The smallest times of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// At N, 2N and 4N.
    pub times: [Duration; 3],
    /// Number of measurements of each size.
    pub rounds: u32,
}

impl Growth {
    /// The ratio of the times at 4N and at N.
    pub fn ratio(&self) -> f64 {
        self.times[2].as_secs_f64() / self.times[0].as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Whether the growth is at most N log N, with tolerance.
    pub fn is_bounded(&self) -> bool {
        self.ratio() <= MAX_RATIO
    }
}

impl Growing {
    /// N, `scale` times as large.
    pub fn size_at(&self, scale: f64) -> usize {
        ((self.size as f64 * scale) as usize).max(1)
    }

    /// Measures it.
    ///
    /// # Errors
    /// The engine's.
    pub fn measure(&self, scale: f64) -> Result<Growth> {
        let size = self.size_at(scale);
        let mut growth = Growth { times: [Duration::MAX; 3], rounds: 0 };
        while growth.rounds < MAX_ROUNDS && (growth.rounds == 0 || !growth.is_bounded()) {
            for (times, least) in growth.times.iter_mut().enumerate() {
                *least = (self.run)(size << times)?.min(*least);
            }
            growth.rounds += 1;
        }
        Ok(growth)
    }
}

/// Processor time of this process so far, if the system has it.
fn processor_time() -> Option<Duration> {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        // A thread may have ended meanwhile.
        if let Ok(text) = std::fs::read_to_string(task.ok()?.path().join("schedstat")) {
            nanoseconds += text.split(' ').next()?.parse::<u64>().ok()?;
        }
    }
    Some(Duration::from_nanos(nanoseconds))
}

/// Runs `work`; returns its processor time, or its wall time if the former is unknown.
fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let (processor, since) = (processor_time(), Instant::now());
    work()?;
    let elapsed = since.elapsed();
    let used = processor.zip(processor_time()).map(|(before, now)| now.saturating_sub(before));
    // Threads that have ended took their time with them.
    Ok(used.filter(|used| !used.is_zero()).unwrap_or(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growing(run: fn(usize) -> Result<Duration>) -> Growth {
        Growing { name: "", of: "", size: 1000, run }.measure(1.0).unwrap()
    }

    #[test]
    fn a_quadratic_operation_is_told_from_one_that_is_not() {
        let linear = growing(|n| Ok(Duration::from_nanos(n as u64)));
        let log = growing(|n| Ok(Duration::from_nanos((n as f64 * (n as f64).log2()) as u64)));
        let quadratic = growing(|n| Ok(Duration::from_nanos((n * n) as u64)));
        assert!(linear.is_bounded() && log.is_bounded() && !quadratic.is_bounded(), "{linear:?} {log:?} {quadratic:?}");
        assert_eq!((linear.rounds, quadratic.rounds), (1, MAX_ROUNDS));
        // Half of it quadratic at N.
        assert!(!growing(|n| Ok(Duration::from_nanos((n * 1000 + n * n) as u64))).is_bounded());
    }

    #[test]
    fn work_takes_processor_time() {
        let spin = || {
            let since = Instant::now();
            while since.elapsed() < Duration::from_millis(60) {
                std::hint::spin_loop();
            }
            Ok(())
        };
        // Others may have the processor, but not for ever.
        assert!((0..100).any(|_| timed(spin).unwrap() > Duration::from_millis(5)));
    }
}
