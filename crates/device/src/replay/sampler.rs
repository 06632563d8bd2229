//! Samples of write amplification over the course of a replay.

use super::result::Sample;
use crate::ssd::counters::Counters;

/// Takes a sample after every given number of host blocks.
pub(super) struct Sampler {
    every_blocks: u64,
    next_blocks: u64,
    start: Counters,
    previous: Counters,
    samples: Vec<Sample>,
}

impl Sampler {
    pub(super) fn new(every_blocks: u64, start: Counters) -> Sampler {
        let every_blocks = every_blocks.max(1);
        Sampler { every_blocks, next_blocks: every_blocks, start, previous: start, samples: Vec::new() }
    }

    /// Whether a sample is due after `host_blocks` written blocks since the start.
    #[inline]
    pub(super) fn is_due(&self, host_blocks: u64) -> bool {
        host_blocks >= self.next_blocks
    }

    /// Takes a sample.
    pub(super) fn take(&mut self, pass: u32, trace_ns: u64, now: Counters) {
        let (so_far, step) = (now.since(&self.start), now.since(&self.previous));
        self.samples.push(Sample {
            pass,
            host_written_bytes: so_far.hbmw(),
            trace_s: trace_ns as f64 / 1e9,
            write_amplification: step.write_amplification(),
            write_amplification_so_far: so_far.write_amplification(),
        });
        self.previous = now;
        self.next_blocks = so_far.host_blocks() + self.every_blocks;
    }

    /// All samples.
    pub(super) fn finish(self) -> Vec<Sample> {
        self.samples
    }
}
