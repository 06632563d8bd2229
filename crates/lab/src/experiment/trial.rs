//! One measurement of a workload on a subject at a place, as most experiments take it.

use super::{Bench, Cell, DeviceChoice, Measured};
use crate::error::Result;
use crate::place::{Place, Want};
use crate::result::RunResult;
use crate::run::RunOptions;
use crate::subject::{Load, Settings};
use highwater_device::ssd::counters::Counters;

/// What to measure.
pub(super) struct Trial<'a> {
    pub cell: &'a Cell,
    pub load: Load,
    pub settings: Settings,
    pub device: &'a DeviceChoice,
    pub log: Option<DeviceChoice>,
    pub data_bytes: u64,
    pub mounted: bool,
    pub options: RunOptions,
}

/// What was measured.
pub(super) struct Taken {
    pub result: RunResult,
    pub device: Option<Counters>,
}

impl Trial<'_> {
    /// Makes the place, runs the workload, stops the subject, removes the place.
    pub(super) fn take(&self, lab: &mut Bench<'_>) -> Result<Taken> {
        let installed = self.cell.kind()?.find().map_err(|missing| crate::Error::Usage(missing.to_string()))?;
        let want = Want {
            installed: &installed,
            load: &self.load,
            settings: &self.settings,
            device: self.device,
            log: self.log.as_ref(),
            data_bytes: self.data_bytes,
            mounted: self.mounted,
        };
        let place = Place::prepare(lab, &want)?;
        lab.step("starting")?;
        let running = place.start()?;
        lab.step("measuring")?;
        let before = place.data_counters();
        let result = running.run(&self.load, &self.options, &mut |line| lab.tick(line));
        let device = place.data_counters().zip(before).map(|(now, before)| now.since(&before));
        // What failed first is what to tell.
        let stopped = running.stop();
        let result = result?;
        stopped?;
        place.close()?;
        Ok(Taken { result, device })
    }
}

impl Taken {
    /// Growth of a counter during the measurement; of a gauge its value at the end.
    pub(super) fn counter(&self, name: &str) -> f64 {
        self.result.counters.get(name).copied().unwrap_or(0) as f64
    }

    /// Growth of a counter per second.
    pub(super) fn rate(&self, name: &str) -> f64 {
        self.counter(name) / self.result.elapsed_s.max(1e-9)
    }

    /// Pages flushed from the flush list, whatever the reason.
    pub(super) fn flush_list(&self) -> f64 {
        ["dirty_pct", "checkpoint_age", "idle", "sync"].iter().map(|why| self.counter(&format!("pages_flushed_{why}"))).sum()
    }

    /// The values every experiment keeps.
    pub(super) fn measured(&self) -> Measured {
        let mut measured = Measured::default();
        let r = &self.result;
        for (name, value) in [
            ("tps", r.tps),
            ("elapsed_s", r.elapsed_s),
            ("transactions", r.transactions as f64),
            ("latency_p99_us", r.latency_us.p99),
            ("pages_read", self.counter("pages_read")),
            ("pages_flushed", self.counter("pages_flushed")),
            ("pages_flushed_lru_list", self.counter("pages_flushed_lru_list")),
            ("pages_flushed_flush_list", self.flush_list()),
            ("pages_flushed_neighbor", self.counter("pages_flushed_neighbor")),
            ("pages_flushed_single_page", self.counter("pages_flushed_single_page")),
            ("pages_flushed_sync", self.counter("pages_flushed_sync")),
            ("pages_dirty_at_end", self.counter("pool_pages_dirty")),
            ("redo_bytes", self.counter("redo_bytes")),
        ] {
            measured.put(name, value);
        }
        if let Some(device) = &self.device {
            measured.put("device_host_written_bytes", device.hbmw() as f64);
            measured.put("device_media_written_bytes", device.mbmw() as f64);
            measured.put("device_read_bytes", device.read_blocks as f64 * 4096.0);
        }
        for name in ["subject_version", "flush_neighbors", "innodb_flush_neighbors"] {
            if let Some(value) = r.config.get(name) {
                measured.info.insert(name.into(), value.clone());
            }
        }
        measured
    }
}
