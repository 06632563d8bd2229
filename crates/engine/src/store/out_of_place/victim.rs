//! The choice of the next segment to clean, a pure function.
//!
//! Cost-benefit of Rosenblum and Ousterhout's log-structured file system (1992): cleaning a segment of which the share
//! `u` is live reads it and writes `u` of it, and gains `1 - u`, for as long as its cold pages leave it alone:
//! `benefit / cost = (1 - u) * age / (1 + u)`. Here the square root of the age is used: segments hold pages with
//! similar lifetimes, so their age matters less. `highwater lab run page-store`, which runs TPC-C, then writes 1.18
//! bytes for each flushed byte at a fill of 0.5, and 1.20 with the age itself.

use super::capacity::{self, Sizes};

/// The state of a segment that may be cleaned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub segment: u32,
    pub life: u64,
    /// Bytes of images that the page map points at.
    pub live_bytes: u64,
    /// Batches begun since its newest one.
    pub age: u64,
}

/// The segment to clean; `None` if no cleaning would free space.
pub(super) fn choose(candidates: impl Iterator<Item = Candidate>, sizes: Sizes) -> Option<Candidate> {
    let score = |candidate: &Candidate| {
        let live = candidate.live_bytes as f64 / sizes.segment_room as f64;
        (1.0 - live) * ((candidate.age + 1) as f64).sqrt() / (1.0 + live)
    };
    let gains = candidates.filter(|candidate| capacity::copies_leave_room(candidate.live_bytes, sizes));
    gains.max_by(|a, b| score(a).total_cmp(&score(b)))
}

#[cfg(test)]
#[path = "victim_test.rs"]
mod tests;
