//! From evidence to choice: pure functions.
//!
//! The physics
//! - On flash every place costs the same: contiguous writes save only a few microseconds of commands. A neighbor that
//!   is flushed early is an additional write, so no neighbor is flushed.
//! - On a disk with a moving arm a separate page costs milliseconds, an adjacent page almost nothing. A neighbor
//!   flushed now saves a seek later. Both conditions must hold, so that a busy machine is not mistaken for seeks.
//! - An extent (64 pages) is flushed as a whole if writing it at once is cheaper than another seek.

use super::{DEPTHS, Evidence};
use crate::config::FlushNeighbors;

/// A page in a place of its own that costs less than this is not a seek: the shortest seeks of disks take about a
/// millisecond.
const MIN_SEEK_US: f64 = 500.0;
/// From this ratio of scattered to contiguous time on neighbors are flushed.
const CONTIGUOUS_GAIN: f64 = 4.0;
/// From this ratio on the whole extent is flushed.
const EXTENT_GAIN: f64 = 12.0;
/// Writes in flight where an arm moves: the disk sorts them (32 is what SATA queues).
const DISK_DEPTH: u32 = 32;
/// Writes in flight at least, independent of the measurement: a measurement on a busy machine must not make flushing
/// serial.
const SHALLOWEST: u32 = 8;
/// Writes in flight where more of them still help at the largest depth measured.
const DEEPEST: u32 = 128;
/// A depth within this share of the best time is good enough; a deeper queue only makes reads wait.
const WORTHWHILE_GAIN: f64 = 1.10;

/// The choice that follows from the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The mode of flushing neighbors; never `Auto`.
    pub flush_neighbors: FlushNeighbors,
    /// Page writes in flight at most.
    pub write_depth: u32,
}

pub(crate) fn choose(evidence: &Evidence) -> Choice {
    let flush_neighbors = neighbors(evidence);
    let write_depth = if flush_neighbors == FlushNeighbors::Off { flash_depth(evidence) } else { DISK_DEPTH };
    Choice { flush_neighbors, write_depth }
}

fn neighbors(evidence: &Evidence) -> FlushNeighbors {
    match evidence.gain() {
        _ if evidence.place_us() < MIN_SEEK_US => FlushNeighbors::Off,
        gain if gain >= EXTENT_GAIN => FlushNeighbors::Extent,
        gain if gain >= CONTIGUOUS_GAIN => FlushNeighbors::Contiguous,
        _ => FlushNeighbors::Off,
    }
}

fn flash_depth(evidence: &Evidence) -> u32 {
    let timed = || DEPTHS.into_iter().zip(evidence.at_depth_us).filter(|(_, us)| *us > 0);
    let Some(best) = timed().map(|(_, us)| us).min() else { return DEEPEST };
    let good = timed().find(|(_, us)| f64::from(*us) <= f64::from(best) * WORTHWHILE_GAIN).map(|(depth, _)| depth);
    match good {
        Some(depth) if depth < DEPTHS[DEPTHS.len() - 1] => depth.max(SHALLOWEST),
        _ => DEEPEST,
    }
}
