//! A measurement of one storage engine that is compared with others: its specification, the measurement ([`measure`]),
//! its result.
//!
//! Rules
//! 1. Request and answer are JSON. The laboratory writes requests, the program `highwater-peers` answers; neither
//!    knows the other. Servers are measured by the laboratory itself, by the same code.
//! 2. Workloads that run on the same data name the same data ([`PeerWorkload::data`]); equal sizes and seeds load equal
//!    rows.

mod cell;
mod expected;
mod index_scan;
mod process;
mod redb_benchmark;
mod verify;

pub use cell::{Database, measure};
pub(crate) use process::space_bytes;
pub use process::sync_folder;
pub use verify::contents;

use crate::error::{Error, Result};
use crate::result::{Condition, RunResult};
use crate::workload::{Load, sysbench, tpcc, ycsb};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A workload by which engines are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeerWorkload {
    /// TPC-C.
    Tpcc,
    /// YCSB A.
    YcsbA,
    /// YCSB B.
    YcsbB,
    /// YCSB C.
    YcsbC,
    /// YCSB D.
    YcsbD,
    /// YCSB E.
    YcsbE,
    /// YCSB F.
    YcsbF,
    /// sysbench's write-only transactions, on tables with two secondary indexes.
    WriteOnly,
    /// One row by its primary key.
    PointReads,
    /// A hundred rows by a secondary index.
    IndexScans,
    /// Loading sysbench's tables, two secondary indexes included.
    BulkLoad,
    /// The benchmark of redb's README.
    Redb,
}

highwater_storage::names!(PeerWorkload {
    Tpcc => "tpcc",
    YcsbA => "ycsb-a",
    YcsbB => "ycsb-b",
    YcsbC => "ycsb-c",
    YcsbD => "ycsb-d",
    YcsbE => "ycsb-e",
    YcsbF => "ycsb-f",
    WriteOnly => "write-only",
    PointReads => "point-reads",
    IndexScans => "index-scans",
    BulkLoad => "bulk-load",
    Redb => "redb",
});

const WAREHOUSE_BYTES: u64 = 100 << 20;
const YCSB_RECORD_BYTES: u64 = 1_060;
const SYSBENCH_ROW_BYTES: u64 = 240;
const SYSBENCH_TABLES: u64 = 4;
const SECONDARY_INDEXES: usize = 2;

impl PeerWorkload {
    /// The data it runs on; workloads with equal data can run on the same load.
    pub fn data(self) -> &'static str {
        match self {
            PeerWorkload::Tpcc => "tpcc",
            PeerWorkload::WriteOnly | PeerWorkload::PointReads | PeerWorkload::IndexScans | PeerWorkload::BulkLoad => {
                "sysbench"
            }
            PeerWorkload::Redb => "redb",
            _ => "ycsb",
        }
    }

    /// Whether it writes, so that durability matters.
    pub fn writes(self) -> bool {
        !matches!(self, PeerWorkload::YcsbC | PeerWorkload::PointReads | PeerWorkload::IndexScans)
    }

    /// The workload over about this many bytes of rows. For [`PeerWorkload::IndexScans`] it is the workload that loads
    /// its data. [`PeerWorkload::Redb`] has none.
    pub fn load(self, data_bytes: u64, seed: u64) -> Option<Load> {
        let letter = match self {
            PeerWorkload::Tpcc => {
                let warehouses = (data_bytes / WAREHOUSE_BYTES).max(1);
                return Some(Load::Tpcc(tpcc::Config { warehouses, seed, ..tpcc::Config::default() }));
            }
            PeerWorkload::Redb => return None,
            PeerWorkload::YcsbA => ycsb::Letter::A,
            PeerWorkload::YcsbB => ycsb::Letter::B,
            PeerWorkload::YcsbC => ycsb::Letter::C,
            PeerWorkload::YcsbD => ycsb::Letter::D,
            PeerWorkload::YcsbE => ycsb::Letter::E,
            PeerWorkload::YcsbF => ycsb::Letter::F,
            _ => return Some(self.sysbench(data_bytes, seed)),
        };
        let records = (data_bytes / YCSB_RECORD_BYTES).max(1_000);
        Some(Load::Ycsb(ycsb::Config { letter, records, seed }))
    }

    fn sysbench(self, data_bytes: u64, seed: u64) -> Load {
        let write = matches!(self, PeerWorkload::WriteOnly | PeerWorkload::BulkLoad);
        Load::Sysbench(sysbench::Config {
            profile: if write { sysbench::Profile::WriteOnly } else { sysbench::Profile::PointSelect },
            tables: SYSBENCH_TABLES,
            table_size: (data_bytes / SYSBENCH_ROW_BYTES / SYSBENCH_TABLES).max(1_000),
            secondary_indexes: SECONDARY_INDEXES,
            rand_type: sysbench::RandType::Uniform,
            seed,
            ..sysbench::Config::default()
        })
    }
}

/// The task: a load or a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// Load the data into an empty folder, and measure that.
    Load,
    /// Run the workload on loaded data.
    Run,
}

/// The verification after the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// The workload's own conditions, the number of rows and their digest.
    Rows,
    /// As `Rows`; and every secondary index must lead to the same rows.
    Indexes,
}

/// The specification of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Name of the engine.
    pub subject: String,
    /// The workload.
    pub workload: PeerWorkload,
    /// The task: a load or a run.
    pub task: Task,
    /// Folder of the database.
    pub folder: PathBuf,
    /// Approximate bytes of rows.
    pub data_bytes: u64,
    /// Memory that the engine may use for data.
    pub cache_bytes: u64,
    /// Whether the data are larger than the memory. Then no row is cached at the start; otherwise all rows are.
    pub beyond_memory: bool,
    /// Whether a commit waits until it is durable.
    pub durable: bool,
    /// Number of clients, or of threads of a load.
    pub clients: usize,
    /// Seconds before the measurement.
    pub warmup_s: f64,
    /// Seconds measured.
    pub seconds: f64,
    /// The verification after the measurement.
    pub verify: Verify,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Options of Highwater by name, for Highwater only.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Digest of the loaded rows, if it is known: a read-only workload must not change it.
    #[serde(default)]
    pub loaded_digest: Option<String>,
}

/// The kernel's counters of the engine's process during the measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Bytes read from devices.
    pub read_bytes: u64,
    /// Bytes written to devices, or made dirty in the page cache to be written. The kernel counts the whole folio of
    /// which a part was made dirty: small writes to large files count many times over.
    pub written_bytes: u64,
    /// Bytes written to the database's device by all processes; absent if the kernel does not report them.
    #[serde(default)]
    pub device_written_bytes: Option<u64>,
    /// Seconds of processor time.
    pub cpu_s: f64,
    /// The same for a server's clients; absent if the clients are in the engine's process.
    #[serde(default)]
    pub client_cpu_s: Option<f64>,
    /// Share of all processors' time that other processes used; absent if the kernel does not report it.
    #[serde(default)]
    pub cpu_others_pct: Option<f64>,
    /// Instructions in user mode; absent if there is no counter.
    #[serde(default)]
    pub instructions: Option<u64>,
}

/// The contents of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Rows of all tables.
    pub rows: u64,
    /// Entries of all secondary indexes; absent if they were not read.
    pub entries: Option<u64>,
    /// Digest of all rows, their order aside: the same rows have the same digest on every engine.
    pub digest: String,
}

/// The result of a measurement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Answer {
    /// Version of the engine.
    pub version: String,
    /// The run, or the load.
    pub run: RunResult,
    /// Transactions of the warm-up.
    #[serde(default)]
    pub warmup_transactions: u64,
    /// Rows that were loaded.
    pub loaded_rows: u64,
    /// The kernel's counters of the run, or of load and close; for a server's process until the close.
    pub process: Process,
    /// Bytes written to the device until the database was closed and synced, warm-up and run included.
    #[serde(default)]
    pub device_written_bytes_closed: Option<u64>,
    /// Seconds of the close.
    pub close_s: f64,
    /// Most memory the process had, mapped files included.
    pub peak_memory_bytes: u64,
    /// Disk space of the closed database.
    pub space_bytes: u64,
    /// The contents after the measurement.
    pub contents: Contents,
    /// The verified conditions.
    pub conditions: Vec<Condition>,
    /// Steps of redb's benchmark, in its order: name, value, unit.
    #[serde(default)]
    pub steps: Vec<(String, f64, String)>,
}

/// Reads a request or an answer.
///
/// # Errors
/// [`Error::File`], [`Error::Usage`].
pub fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::file(path, e))?;
    serde_json::from_str(&text).map_err(|e| Error::Usage(format!("{}: {e}", path.display())))
}

/// Writes a request or an answer.
///
/// # Errors
/// [`Error::File`], [`Error::Usage`].
pub fn write<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Error::Usage(format!("as JSON: {e}")))?;
    std::fs::write(path, text).map_err(|e| Error::file(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_on_the_same_data_load_the_same() {
        for one in PeerWorkload::ALL {
            for other in PeerWorkload::ALL.into_iter().filter(|other| other.data() == one.data()) {
                let identity =
                    |workload: PeerWorkload| workload.load(64 << 20, 1).map(|load| load.embedded().identity());
                assert_eq!(identity(one), identity(other), "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn names_are_those_of_the_json() {
        for one in PeerWorkload::ALL {
            assert_eq!(serde_json::to_string(&one).unwrap(), format!("\"{}\"", one.name()));
        }
    }
}
