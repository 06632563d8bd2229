//! The result of a run: one JSON schema for every workload.
//!
//! Rules
//! 1. Field names stay the same across releases and carry their unit.
//! 2. Counts are of the measured part of the run (after the warm-up) unless the name says otherwise.
//! 3. The report draws the series `intervals`.

use crate::counter;
use crate::error::{Error, Result};
use crate::store::StoreStats;
use highwater_device::usage::DeviceUsage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A consistency condition and whether it holds.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Condition {
    /// Its number in the specification.
    pub condition: String,
    /// Its text.
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
    /// Zero in results of earlier builds.
    #[serde(default)]
    pub p999: f64,
    pub max: f64,
}

/// Pages read and flushed, as far as the store counts them. `flushed_flush_list` is the sum of the four reasons that
/// follow it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Pages {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_lru_list: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_flush_list: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_dirty_pct: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_checkpoint_age: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_idle: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_filled: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_sync: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_neighbor: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_single_page: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed_shutdown: Option<u64>,
}

/// The reasons of flushes from the flush list.
const FLUSH_LIST: [&str; 5] = [
    counter!(pages_flushed_dirty_pct),
    counter!(pages_flushed_checkpoint_age),
    counter!(pages_flushed_idle),
    counter!(pages_flushed_bulk_load),
    counter!(pages_flushed_sync),
];

impl From<&StoreStats> for Pages {
    fn from(growth: &StoreStats) -> Pages {
        let [dirty_pct, checkpoint_age, idle, filled, sync] = FLUSH_LIST.map(|name| growth.get(name));
        Pages {
            read: growth.get(counter!(pages_read)),
            flushed: growth.get(counter!(pages_flushed)),
            flushed_lru_list: growth.get(counter!(pages_flushed_lru_list)),
            flushed_flush_list: growth.sum(&FLUSH_LIST),
            flushed_dirty_pct: dirty_pct,
            flushed_checkpoint_age: checkpoint_age,
            flushed_idle: idle,
            flushed_filled: filled,
            flushed_sync: sync,
            flushed_neighbor: growth.get(counter!(pages_flushed_neighbor)),
            flushed_single_page: growth.get(counter!(pages_flushed_single_page)),
            flushed_shutdown: growth.get(counter!(pages_flushed_shutdown)),
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

/// The results of one kind of transaction.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct KindResult {
    /// Committed, and rolled back because the workload demanded it.
    pub transactions: u64,
    /// Of those, rolled back because the workload demanded it.
    pub rolled_back: u64,
    /// Latency of those.
    pub latency_us: LatencyUs,
}

/// One interval of the run. A value that the store does not count is absent.
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
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pool_pages_free: Option<u64>,
    /// Dirty frames at the end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pool_pages_dirty: Option<u64>,
    /// Frames that hold a page at the end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pool_pages_data: Option<u64>,
    /// Bytes between the last checkpoint and the end of the log, at the end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub checkpoint_age_bytes: Option<u64>,
    /// Syncs of the redo log in the interval.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub log_syncs: Option<u64>,
    /// Microseconds in these syncs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub log_sync_us: Option<u64>,
    /// Share of all processors' time that the hypervisor withheld in the interval, in percent; absent if the kernel
    /// does not report it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu_withheld_pct: Option<f64>,
    /// Pages read and flushed in the interval.
    pub pages: Pages,
    /// Bytes written in the interval, by placement.
    pub bytes_written: BTreeMap<String, u64>,
}

/// The result of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct RunResult {
    /// Name of the workload.
    pub workload: String,
    /// The options of the workload, the driver and the store, and the durability of commits.
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
    /// Transactions that failed with a retryable error (deadlock, lock wait timeout, write conflict).
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
    /// Growth during the run of every counter that the store has (gauges: value at the end).
    pub counters: BTreeMap<String, u64>,
    /// The use of the emulated device; absent if there is none.
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

impl Interval {
    /// The store's part of an interval, from the growth of its counters.
    pub fn counted(growth: &StoreStats) -> Interval {
        Interval {
            pool_pages_free: growth.get(counter!(pool_pages_free)),
            pool_pages_dirty: growth.get(counter!(pool_pages_dirty)),
            pool_pages_data: growth.get(counter!(pool_pages_data)),
            checkpoint_age_bytes: growth.get(counter!(checkpoint_age_bytes)),
            log_syncs: growth.get(counter!(log_syncs)),
            log_sync_us: growth.get(counter!(log_sync_us)),
            pages: growth.into(),
            bytes_written: growth.bytes_written(),
            ..Interval::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StatsSnapshot;

    #[test]
    fn json_has_the_promised_fields_and_reads_back() {
        let pages = Pages::from(&StoreStats::from(StatsSnapshot::default()));
        let result =
            RunResult { new_orders_per_min: Some(1.5), consistency: Some(vec![]), pages, ..RunResult::default() };
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
            "/pages/flushed_filled",
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
}
