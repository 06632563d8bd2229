//! What a run leaves behind: one JSON schema for every workload.
//!
//! Rules
//! 1. Field names stay the same across releases and carry their unit.
//! 2. Counts are of the measured part of the run (after the warm-up) unless the name says otherwise.
//! 3. `intervals` is the series the report draws.

use crate::error::{Error, Result};
use highwater::stats::{CounterRow, StatsSnapshot};
use highwater_device::usage::DeviceUsage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A consistency condition and whether it holds.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Condition {
    /// Its number in the specification.
    pub condition: String,
    /// What it says.
    pub text: String,
    /// Whether it holds.
    pub holds: bool,
    /// The first violation found, empty when it holds.
    pub detail: String,
}

/// Latency percentiles in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq)]
#[allow(missing_docs)]
pub struct LatencyUs {
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// Pages read and flushed. `flushed_flush_list` is the sum of the four reasons that follow it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Pages {
    pub read: u64,
    pub flushed: u64,
    pub flushed_lru_list: u64,
    pub flushed_flush_list: u64,
    pub flushed_dirty_pct: u64,
    pub flushed_checkpoint_age: u64,
    pub flushed_idle: u64,
    pub flushed_sync: u64,
    pub flushed_neighbor: u64,
    pub flushed_single_page: u64,
    pub flushed_shutdown: u64,
}

impl From<&StatsSnapshot> for Pages {
    fn from(stats: &StatsSnapshot) -> Pages {
        Pages {
            read: stats.pages_read,
            flushed: stats.pages_flushed,
            flushed_lru_list: stats.pages_flushed_lru_list,
            flushed_flush_list: stats.pages_flushed_flush_list(),
            flushed_dirty_pct: stats.pages_flushed_dirty_pct,
            flushed_checkpoint_age: stats.pages_flushed_checkpoint_age,
            flushed_idle: stats.pages_flushed_idle,
            flushed_sync: stats.pages_flushed_sync,
            flushed_neighbor: stats.pages_flushed_neighbor,
            flushed_single_page: stats.pages_flushed_single_page,
            flushed_shutdown: stats.pages_flushed_shutdown,
        }
    }
}

/// Statements by sysbench's classes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Queries {
    pub read: u64,
    pub write: u64,
    pub other: u64,
}

impl Queries {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.read + self.write + self.other
    }
}

/// What one kind of transaction did.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct KindResult {
    /// Committed, and rolled back because the workload demanded it.
    pub transactions: u64,
    /// Of those, rolled back because the workload demanded it.
    pub rolled_back: u64,
    /// Latency of those.
    pub latency_us: LatencyUs,
}

/// One interval of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Interval {
    /// End of the interval, seconds since the measured part began.
    pub at_s: f64,
    /// Length in seconds.
    pub length_s: f64,
    /// Transactions per second.
    pub tps: f64,
    /// Statements in the interval.
    pub queries: Queries,
    /// Errors per second.
    pub errors_per_s: f64,
    /// Latency in the interval.
    pub latency_us: LatencyUs,
    /// Frames on the free list at the end.
    pub pool_pages_free: u64,
    /// Dirty frames at the end.
    pub pool_pages_dirty: u64,
    /// Frames that hold a page at the end.
    pub pool_pages_data: u64,
    /// Bytes between the last checkpoint and the end of the log, at the end.
    pub checkpoint_age_bytes: u64,
    /// Syncs of the redo log in the interval.
    #[serde(default)]
    pub log_syncs: u64,
    /// Microseconds spent in them; 0 where the subject does not count them.
    #[serde(default)]
    pub log_sync_us: u64,
    /// How much of all processors' time the hypervisor withheld in the interval, in percent; absent where the kernel does not say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu_withheld_pct: Option<f64>,
    /// Pages read and flushed in the interval.
    pub pages: Pages,
    /// Bytes written in the interval, by placement.
    pub bytes_written: BTreeMap<String, u64>,
}

/// Everything about a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct RunResult {
    /// Name of the workload.
    pub workload: String,
    /// Every option of the workload, the driver and the store, and what was durable.
    pub config: BTreeMap<String, String>,
    /// Seconds measured.
    pub elapsed_s: f64,
    /// Transactions finished.
    pub transactions: u64,
    /// Transactions per second.
    pub tps: f64,
    /// Committed new orders per minute (TPC-C only).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub new_orders_per_min: Option<f64>,
    /// Transactions that failed and could be tried again (deadlock, lock wait timeout, write conflict).
    pub errors: u64,
    /// Transactions rolled back because the workload demanded it.
    pub rolled_back: u64,
    /// Statements.
    pub queries: Queries,
    /// Latency of all transactions.
    pub latency_us: LatencyUs,
    /// By kind of transaction.
    pub kinds: BTreeMap<String, KindResult>,
    /// Transactions by thread, for fairness.
    pub transactions_by_thread: Vec<u64>,
    /// Seconds each thread spent in transactions.
    pub execution_s_by_thread: Vec<f64>,
    /// Seconds the load took; absent when loaded data were reused.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub load_s: Option<f64>,
    /// Pages read and flushed.
    pub pages: Pages,
    /// Bytes written, by placement.
    pub bytes_written: BTreeMap<String, u64>,
    /// Every counter's growth during the run (gauges: value at the end).
    pub counters: BTreeMap<String, u64>,
    /// What the emulated device did; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device: Option<DeviceUsage>,
    /// Consistency conditions (TPC-C only).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub consistency: Option<Vec<Condition>>,
    /// The series over time.
    pub intervals: Vec<Interval>,
}

impl RunResult {
    /// Whether every condition checked holds.
    pub fn is_consistent(&self) -> bool {
        self.consistency.iter().flatten().all(|c| c.holds)
    }

    /// The result as JSON text.
    ///
    /// # Errors
    /// None in practice: every key is text.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|e| Error::Usage(format!("cannot write the result as JSON: {e}")))
    }

    /// Reads a result.
    ///
    /// # Errors
    /// [`Error::File`] or [`Error::Usage`] for text that is not a result.
    pub fn from_file(path: &Path) -> Result<RunResult> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, e))?;
        serde_json::from_str(&text).map_err(|e| Error::Usage(format!("{}: not a result: {e}", path.display())))
    }
}

/// Growth of every counter between two moments; gauges as at the end.
pub fn counters(earlier: &StatsSnapshot, now: &StatsSnapshot) -> BTreeMap<String, u64> {
    let growth = now.since(earlier);
    let rows = growth.table().into_iter().zip(now.table());
    let value =
        |grown: &CounterRow, now: &CounterRow| if now.doc.starts_with("Gauge: ") { now.value } else { grown.value };
    rows.map(|(grown, now)| (now.name.to_string(), value(&grown, &now))).collect()
}

/// The counters `bytes_written_*`, by placement.
pub fn bytes_written(growth: &StatsSnapshot) -> BTreeMap<String, u64> {
    let rows = growth.table().into_iter();
    rows.filter_map(|row| Some((row.name.strip_prefix("bytes_written_")?.to_string(), row.value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_promised_fields_and_reads_back() {
        let result = RunResult { new_orders_per_min: Some(1.5), consistency: Some(vec![]), ..RunResult::default() };
        let json = result.to_json().unwrap();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        for field in [
            "/workload",
            "/config",
            "/elapsed_s",
            "/transactions",
            "/tps",
            "/new_orders_per_min",
            "/errors",
            "/latency_us/p50",
            "/latency_us/p95",
            "/latency_us/p99",
            "/latency_us/max",
            "/pages/read",
            "/pages/flushed",
            "/pages/flushed_lru_list",
            "/pages/flushed_flush_list",
            "/pages/flushed_dirty_pct",
            "/pages/flushed_checkpoint_age",
            "/pages/flushed_idle",
            "/pages/flushed_sync",
            "/pages/flushed_neighbor",
            "/pages/flushed_single_page",
            "/pages/flushed_shutdown",
            "/bytes_written",
            "/consistency",
            "/intervals",
        ] {
            assert!(value.pointer(field).is_some(), "{field} is missing");
        }
        assert_eq!(serde_json::from_str::<RunResult>(&json).unwrap(), result);
    }

    #[test]
    fn gauges_are_values_and_counters_growth() {
        let earlier =
            StatsSnapshot { pages_read: 5, pool_pages_free: 100, bytes_written_redo: 1, ..Default::default() };
        let now = StatsSnapshot { pages_read: 8, pool_pages_free: 70, bytes_written_redo: 9, ..Default::default() };
        let found = counters(&earlier, &now);
        assert_eq!((found["pages_read"], found["pool_pages_free"]), (3, 70));
        assert_eq!(bytes_written(&now.since(&earlier))["redo"], 8);
    }
}
