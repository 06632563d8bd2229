//! Live counters of a mount.

use super::file_system::Shared;
use super::traffic::{PageCount, Traffic};
use crate::model::Wear;
use crate::replay::result::{StreamResult, Totals, streams_of};
use crate::ssd::counters::Counters;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Counters at one moment. One of these is one line of `--json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MountSample {
    /// Seconds since the counters began.
    pub elapsed_s: f64,
    /// Since the counters began.
    pub totals: Totals,
    /// By stream, since the counters began.
    pub streams: Vec<StreamResult>,
    /// By region and kind of page, since the counters began; empty if pages are not classified.
    pub pages: Vec<PageCount>,
    /// Since the previous sample.
    pub interval: Interval,
    /// Wear of the flash, in its life.
    pub wear: Option<Wear>,
    /// Memory or disk that the data takes.
    pub stored_bytes: u64,
}

/// Rates between two samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its length.
    pub seconds: f64,
    /// 4 KiB blocks the host wrote per second.
    pub written_blocks_per_s: f64,
    /// 4 KiB blocks the host read per second.
    pub read_blocks_per_s: f64,
    /// Flushes per second.
    pub flushes_per_s: f64,
    /// Medium writes over host writes.
    pub write_amplification: f64,
}

/// Takes samples.
pub struct Sampler {
    start: Counters,
    pages: Vec<PageCount>,
    previous: Counters,
    began: Instant,
    last: Instant,
}

impl Sampler {
    /// Counts from now on.
    pub fn new(shared: &Shared) -> Sampler {
        let (counters, now) = (shared.disk.counters(), Instant::now());
        let pages = shared.traffic.as_ref().map(Traffic::counts).unwrap_or_default();
        Sampler { start: counters, pages, previous: counters, began: now, last: now }
    }

    /// A sample.
    pub fn take(&mut self, shared: &Shared) -> MountSample {
        let (now, counters) = (Instant::now(), shared.disk.counters());
        let (since, step) = (counters.since(&self.start), counters.since(&self.previous));
        let seconds = (now - self.last).as_secs_f64();
        let per_s = |n: u64| n as f64 / seconds.max(1e-9);
        (self.previous, self.last) = (counters, now);
        MountSample {
            elapsed_s: (now - self.began).as_secs_f64(),
            totals: Totals::of(&since),
            streams: streams_of(&since),
            pages: self.pages_since(shared),
            interval: Interval {
                seconds,
                written_blocks_per_s: per_s(step.host_blocks()),
                read_blocks_per_s: per_s(step.read_blocks),
                flushes_per_s: per_s(step.flushes),
                write_amplification: step.write_amplification(),
            },
            wear: shared.disk.wear(),
            stored_bytes: shared.disk.stored_bytes(),
        }
    }

    /// By region and kind of page, since the counters began.
    pub(super) fn pages_since(&self, shared: &Shared) -> Vec<PageCount> {
        let mut rows = shared.traffic.as_ref().map(Traffic::counts).unwrap_or_default();
        for row in &mut rows {
            let before = self.pages.iter().find(|p| p.region == row.region && p.kind == row.kind);
            if let Some(before) = before {
                row.reads -= before.reads;
                row.read_bytes -= before.read_bytes;
                row.writes -= before.writes;
                row.written_bytes -= before.written_bytes;
            }
        }
        rows.retain(|r| r.reads + r.writes > 0);
        rows
    }
}
