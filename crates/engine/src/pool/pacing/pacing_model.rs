//! A model of users, pages and a device around the real policy, to test the policy in a closed loop and to plot it.
//!
//! Users write redo as fast as the load offers and the policy allows; each `CHANGE_BYTES` of it change a page chosen at
//! random. The device writes each batch of pages in a fixed time. Log space becomes free when the oldest page is
//! written.

use super::policy::{AdaptiveFlusher, Limits, Snapshot, age_pct};
use crate::store::BATCH_PAGES;
use crate::types::Lsn;
use std::collections::VecDeque;

/// Redo of one change.
const CHANGE_BYTES: u64 = 250;
const TICK_S: f64 = 0.005;

/// The modelled load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Redo users would write per second if nothing slowed them.
    pub offered_bytes_per_s: f64,
    /// In one second of every ten they would write this many times more.
    pub burst_factor: f64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Pages that are changed, all in memory.
    pub pages: usize,
    /// Pages the device writes per second.
    pub device_pages_per_s: f64,
    /// Whether users obey the limit; without, they stop only at the end of the log.
    pub pacing: bool,
}

/// A dirty volume of 256 MiB in 16 KiB pages, and an eighth of it for the log.
impl Default for Load {
    fn default() -> Load {
        Load {
            offered_bytes_per_s: 20e6,
            burst_factor: 1.0,
            log_bytes: 32 << 20,
            pages: 16_384,
            device_pages_per_s: 8_000.0,
            pacing: true,
        }
    }
}

/// One second of the model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Redo written.
    pub redo_bytes_per_s: f64,
    /// Pages flushed.
    pub flushed_per_s: f64,
    /// Largest checkpoint age in that second, per cent of the log.
    pub age_pct: f64,
    /// Dirty pages at its end.
    pub dirty: usize,
}

struct Model {
    load: Load,
    end_lsn: u64,
    /// LSN of each page's oldest change; 0 = clean.
    oldest: Vec<u64>,
    /// Dirty pages in order of that LSN; stale entries are skipped.
    list: VecDeque<(u64, usize)>,
    dirty: usize,
    flushed: u64,
    random: u64,
    device_busy_until_s: f64,
    allowance_bytes: f64,
}

/// Runs the model for `seconds`.
pub fn run(load: &Load, limits: Limits, seconds: usize) -> Vec<Sample> {
    let mut model = Model::new(load);
    let mut flusher = AdaptiveFlusher::new(limits);
    (0..seconds).map(|second| model.second(&mut flusher, second)).collect()
}

impl Model {
    fn new(load: &Load) -> Model {
        Model {
            load: *load,
            end_lsn: 1 << 20,
            oldest: vec![0; load.pages],
            list: VecDeque::new(),
            dirty: 0,
            flushed: 0,
            random: 1,
            device_busy_until_s: 0.0,
            allowance_bytes: 0.0,
        }
    }

    fn second(&mut self, flusher: &mut AdaptiveFlusher, second: usize) -> Sample {
        let (start, mut sample) = (self.end_lsn, Sample::default());
        for tick in 0..(1.0 / TICK_S) as usize {
            let now_s = second as f64 + tick as f64 * TICK_S;
            let seen = self.snapshot(now_s);
            sample.age_pct = sample.age_pct.max(age_pct(&seen));
            let plan = flusher.decide(&seen);
            while self.device_busy_until_s <= now_s {
                let flushed = self.flush(plan.flush_before.0, plan.pages);
                sample.flushed_per_s += flushed as f64;
                let took = flushed as f64 / self.load.device_pages_per_s;
                self.device_busy_until_s = self.device_busy_until_s.max(now_s - TICK_S) + took.max(TICK_S / 8.0);
            }
            self.write(second, plan.user_redo_bytes_per_s);
        }
        sample.redo_bytes_per_s = (self.end_lsn - start) as f64;
        sample.dirty = self.dirty;
        sample
    }

    fn snapshot(&mut self, now_s: f64) -> Snapshot {
        while self.list.front().is_some_and(|(lsn, page)| self.oldest[*page] != *lsn) {
            self.list.pop_front();
        }
        let oldest_lsn = Lsn(self.list.front().map_or(self.end_lsn, |(lsn, _)| *lsn));
        Snapshot {
            now_s,
            end_lsn: Lsn(self.end_lsn),
            oldest_lsn,
            held_lsn: oldest_lsn,
            log_capacity_bytes: self.load.log_bytes,
            frames: self.load.pages * 2,
            dirty: self.dirty,
            flushed: self.flushed,
        }
    }

    fn flush(&mut self, before: u64, pages: usize) -> usize {
        let mut flushed = 0;
        while flushed < BATCH_PAGES {
            let Some(&(lsn, page)) = self.list.front() else { break };
            if self.oldest[page] == lsn {
                if lsn >= before && flushed >= pages {
                    break;
                }
                self.oldest[page] = 0;
                self.dirty -= 1;
                self.flushed += 1;
                flushed += 1;
            }
            self.list.pop_front();
        }
        flushed
    }

    fn write(&mut self, second: usize, limit: Option<f64>) {
        let burst = if second % 10 == 5 { self.load.burst_factor } else { 1.0 };
        let offered = self.load.offered_bytes_per_s * burst;
        let rate = if self.load.pacing { limit.unwrap_or(offered).min(offered) } else { offered };
        self.allowance_bytes += rate * TICK_S;
        while self.allowance_bytes >= CHANGE_BYTES as f64 {
            self.allowance_bytes -= CHANGE_BYTES as f64;
            let oldest = self.list.front().map_or(self.end_lsn, |(lsn, _)| *lsn);
            if self.end_lsn + CHANGE_BYTES - oldest > self.load.log_bytes {
                self.allowance_bytes = 0.0;
                return;
            }
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let page = (self.random >> 33) as usize % self.oldest.len();
            if self.oldest[page] == 0 {
                self.oldest[page] = self.end_lsn;
                self.list.push_back((self.end_lsn, page));
                self.dirty += 1;
            }
            self.end_lsn += CHANGE_BYTES;
        }
    }
}
