//! `highwater bench WORKLOAD`: load (or find loaded), run, measure, check, report.
//!
//! Rules
//! 1. The folder stays. If it has the data that the options require, they are reused; other data are refused. `--fresh`
//!    first removes a benchmark's database (and nothing else).
//! 2. The configuration in the result has the effective value of every option of the workload, the driver and the
//!    engine, and the durability of commits ([`crate::bench_setting`]). A value that differs from an option fixed at
//!    the creation is refused.
//! 3. With `--device` the database is on an emulated disk in this process ([`crate::device::target`]) and is removed
//!    afterwards.
//! 4. SIGINT and SIGTERM end the measurement: its summary is written and the database closed; the check of the
//!    consistency conditions is skipped or ends. Before the measurement they end the command as an error, the database
//!    closed. A second signal ends the process at once.
//! 5. A violated consistency condition is exit status 1.

use crate::bench_online_index::{self, OnlineIndexArgs};
use crate::bench_setting;
use crate::bench_shrink::{self, ShrinkArgs};
use crate::concurrent_backup::ConcurrentBackup;
use crate::concurrent_readers::ConcurrentReaders;
use crate::device::target::TargetOptions;
use crate::engine_options::{EngineOptions, tell_recovery};
use crate::failure::Failure;
use crate::fresh::remove_benchmark;
use crate::metrics::{self, MetricsServer};
use crate::output::{Json, Lines, json_must_be_writable, must_be_writable, must_differ, write_json};
use crate::progress::Progress;
use crate::signals;
use crate::transaction_options::TransactionOptions;
use crate::workload_options::{SysbenchOptions, TpccOptions, UserTableOptions, YcsbOptions};
use clap::{Args, Subcommand};
use highwater::{Database, Options, PurgeWatch};
use highwater_bench::interrupt;
use highwater_bench::report;
use highwater_bench::result::RunResult;
use highwater_bench::run::{RunOptions, load as load_run, run as drive};
use highwater_bench::store::embedded::Embedded;
use highwater_bench::summary::{self, Zeros};
use highwater_bench::workload::{self, Load, Workload, load_or_reuse, loaded_identity};
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  highwater bench tpcc --warehouses 2 --threads 4 --seconds 20 --dir /tmp/tpcc --report tpcc.html
  highwater bench sysbench read_write --tables 4 --table-size 100000 --threads 8 --seconds 60 --dir /tmp/sb
  highwater bench user-table --bytes 500M --device samsung-pm953-960gb --capacity 2G --json -";

const SYSBENCH_EXAMPLES: &str = "\
Examples:
  highwater bench sysbench read_write --tables 4 --table-size 100000 --threads 8 --seconds 60 --dir /tmp/sb
  highwater bench sysbench point_select --table-size 1M --rand-type pareto --seconds 30 --dir /tmp/sb --fresh
  highwater bench sysbench write_only --events 100000 --flush-neighbors 1 --dir /tmp/sb --json neighbors.json
  highwater bench sysbench --table-size 1M --secondary-indexes 4 --create-indexes before --load-only --dir /tmp/sb";

const TPCC_EXAMPLES: &str = "\
Examples:
  highwater bench tpcc --warehouses 2 --threads 4 --seconds 20 --dir /tmp/tpcc --report tpcc.html
  highwater bench tpcc --mix 10/10/1/1/1 --warmup 30 --seconds 300 --buffer-pool-size 1G --dir /tmp/tpcc
  highwater bench tpcc --seconds 60 --dir /tmp/tpcc --redo-archive /tmp/redo --backup-to /tmp/backup
  highwater bench tpcc --seconds 20 --dir /tmp/tpcc --backup-to /tmp/backup --backup-pairs 10
  highwater bench tpcc --transaction-isolation serializable --threads 4 --seconds 20 --dir /tmp/tpcc
  highwater bench tpcc --device samsung-pm953-960gb --capacity 2G --seconds 30 --json -";

const YCSB_EXAMPLES: &str = "\
Examples:
  highwater bench ycsb a --records 1M --threads 8 --seconds 60 --dir /tmp/ycsb
  highwater bench ycsb e --records 1M --threads 4 --seconds 30 --dir /tmp/ycsb --json -
  highwater bench ycsb a --records 1M --seconds 30 --dir /tmp/ycsb --reader-processes 4";

const USER_TABLE_EXAMPLES: &str = "\
Examples:
  highwater bench user-table --bytes 500M --dir /tmp/user
  highwater bench user-table --bytes 2G --rows-per-transaction 100 --threads 4 --dir /tmp/user --fresh --json -";

const SHRINK_EXAMPLES: &str = "\
Examples:
  highwater bench shrink --bytes 2G --threads 2 --dir /tmp/shrink
  highwater bench shrink --percent 50 --page-store out-of-place --dir /tmp/shrink --fresh --json -";

const ONLINE_INDEX_EXAMPLES: &str = "\
Examples:
  highwater bench online-index --rows 1M --threads 4 --rebuild --dir /tmp/online
  highwater bench online-index --rows 1M --buffer-pool-size 64M --dir /tmp/online --json -";

/// Run a workload
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    workload: BenchWorkload,
}

#[derive(Debug, Subcommand)]
enum BenchWorkload {
    /// sysbench's OLTP profiles
    #[command(after_help = SYSBENCH_EXAMPLES)]
    Sysbench {
        #[command(flatten)]
        workload: SysbenchOptions,
        #[command(flatten)]
        common: Common,
    },
    /// A TPC-C-like load; afterwards the specification's consistency conditions
    #[command(after_help = TPCC_EXAMPLES)]
    Tpcc {
        #[command(flatten)]
        workload: TpccOptions,
        #[command(flatten)]
        common: Common,
    },
    /// YCSB's core workloads A to F
    #[command(after_help = YCSB_EXAMPLES)]
    Ycsb {
        #[command(flatten)]
        workload: YcsbOptions,
        #[command(flatten)]
        common: Common,
    },
    /// Inserts into the `user` table with its NAME_INDEX until the given number of bytes is in it
    #[command(after_help = USER_TABLE_EXAMPLES)]
    UserTable {
        #[command(flatten)]
        workload: UserTableOptions,
        #[command(flatten)]
        common: Common,
    },
    /// Deletes most rows of the `user` table while clients update the rest, and shows the size of the files
    #[command(after_help = SHRINK_EXAMPLES)]
    Shrink(ShrinkArgs),
    /// Builds an index of a large table while clients change the table: how long it takes, and how long they wait
    #[command(after_help = ONLINE_INDEX_EXAMPLES)]
    OnlineIndex(OnlineIndexArgs),
}

/// Options of every workload.
#[derive(Args, Clone, Debug)]
struct Common {
    /// Folder of the database; created if it does not exist, kept afterwards, and reused if it holds the data of the
    /// same workload
    #[arg(long, value_name = "DIR", required_unless_present = "device")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    target: TargetOptions,
    /// Client threads
    #[arg(long, short = 't', default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    threads: u64,
    /// Seconds to measure (0 = no limit) [default: 10, or no limit with --events or for user-table]
    #[arg(long, alias = "time", value_parser = seconds)]
    seconds: Option<f64>,
    /// Transactions to measure (0 = no limit)
    #[arg(long, default_value = "0", value_parser = crate::engine_options::size)]
    events: u64,
    /// Seconds to run before measuring; not with user-table
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = seconds)]
    warmup: f64,
    /// Seconds between two interval lines
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = interval)]
    report_interval: f64,
    /// Threads that load the data [default: one per processor]
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u64).range(1..=1000))]
    load_threads: Option<u64>,
    /// Load the data, report how long that took and what was read and written, and stop
    #[arg(long)]
    load_only: bool,
    /// Seed of the random numbers of the run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Remove the benchmark database that is in the folder and load it again; refused if it has other tables
    #[arg(long)]
    fresh: bool,
    /// Write the result as JSON to FILE; with -, write only the JSON to stdout
    #[arg(long, value_name = "FILE")]
    json: Option<Json>,
    /// Write a report with charts to FILE: one HTML page that needs no network
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Show counters that are 0 too
    #[arg(long)]
    all_counters: bool,
    /// Serve the engine's counters to Prometheus at http://ADDRESS:PORT/metrics during the run; port 0 selects a free
    /// port
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = metrics::address)]
    metrics_listen: Option<SocketAddr>,
    #[command(flatten)]
    transaction: TransactionOptions,
    #[command(flatten)]
    backup: ConcurrentBackup,
    #[command(flatten)]
    readers: ConcurrentReaders,
    #[command(flatten)]
    engine: EngineOptions,
}

/// A number of seconds on the command line.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    if (0.0..=1e7).contains(&value) { Ok(value) } else { Err(format!("{text} is not between 0 and 10000000")) }
}

fn interval(text: &str) -> Result<f64, String> {
    let value = seconds(text)?;
    if value >= 0.01 { Ok(value) } else { Err(format!("{text} is less than 0.01")) }
}

impl Common {
    fn lines(&self) -> Lines {
        Lines { stdout_taken: self.json == Some(Json::Stdout) }
    }

    fn zeros(&self) -> Zeros {
        if self.all_counters { Zeros::Shown } else { Zeros::Hidden }
    }

    /// Puts what the driver cannot know into the configuration.
    fn describe(&self, result: &mut RunResult, database: &Database) {
        bench_setting::describe(result, database, self.dir.as_deref());
        result.config.extend(self.place());
        result.config.extend(self.transaction.describe());
        result.config.insert("reader_processes".into(), self.readers.processes().to_string());
    }

    /// The database: in its folder, or on an emulated disk.
    fn open(&self, options: Options) -> Result<Embedded, Failure> {
        match (&self.dir, &self.target.device) {
            (_, Some(device)) => self.target.open(device, &options),
            (Some(dir), None) => {
                if self.fresh {
                    remove_benchmark(dir, options.log_dir.as_deref())?;
                }
                Ok(Embedded::new(Database::open(dir, options)?))
            }
            (None, None) => Err(Failure::Usage("one of --dir and --device is needed".into())),
        }
    }

    /// The location of the data, for the configuration.
    fn place(&self) -> Vec<(String, String)> {
        match (&self.dir, &self.target.device) {
            (_, Some(device)) => self.target.describe(device),
            (Some(dir), None) => vec![("dir".into(), dir.display().to_string())],
            (None, None) => Vec::new(),
        }
    }

    fn serve_metrics(&self, database: &Database) -> Result<Option<MetricsServer>, Failure> {
        let Some(address) = self.metrics_listen else { return Ok(None) };
        let database = database.clone();
        let server = MetricsServer::start(address, move |format| database.metrics_text(format))?;
        tell!("Metrics at http://{}/metrics", server.address());
        Ok(Some(server))
    }

    fn load_threads(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, |n| n.get());
        self.load_threads.map_or_else(processors, |n| n as usize)
    }

    fn run_options(&self, endless: bool) -> RunOptions {
        let default = if endless || self.events > 0 { 0.0 } else { 10.0 };
        RunOptions {
            threads: self.threads as usize,
            seconds: self.seconds.unwrap_or(default),
            events: self.events,
            warmup_s: self.warmup,
            report_interval_s: self.report_interval,
            keep_interrupted: true,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] says why and with which exit status.
pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    match &args.workload {
        BenchWorkload::Sysbench { workload, common } => {
            bench(&Load::Sysbench(workload.config(common.seed)), common, true)
        }
        BenchWorkload::Tpcc { workload, common } => {
            let config = workload.config(common.seed, common.load_threads());
            bench(&Load::Tpcc(config), common, !workload.skip_consistency)
        }
        BenchWorkload::Ycsb { workload, common } => bench(&Load::Ycsb(workload.config(common.seed)), common, true),
        BenchWorkload::UserTable { workload, common } => {
            bench(&Load::UserTable(workload.config(common.seed)), common, true)
        }
        BenchWorkload::Shrink(args) => bench_shrink::run(args),
        BenchWorkload::OnlineIndex(args) => bench_online_index::run(args),
    }
}

fn bench(load: &Load, common: &Common, conditions: bool) -> Result<(), Failure> {
    if load.embedded().is_bounded() && common.warmup > 0.0 {
        let reason = "this workload ends once its bytes are inserted: --warmup would insert some of them unmeasured";
        return Err(Failure::Usage(reason.into()));
    }
    must_differ(common.json.as_ref(), common.report.as_deref())?;
    json_must_be_writable(common.json.as_ref())?;
    if let Some(path) = &common.report {
        must_be_writable(path)?;
    }
    let options = common.engine.options(&[])?;
    signals::stop(None)?;
    let store = common.open(options)?;
    common.engine.must_agree_with(store.database())?;
    tell_recovery(store.database());
    tell!("{}", bench_setting::flushing(store.database()));
    let metrics = common.serve_metrics(store.database())?;
    let result = measure(&store, &*load.embedded(), common, conditions);
    drop(metrics);
    let closed = store.database().clone().close();
    let result = result?;
    let text = match common.load_only {
        true => summary::load_summary(&result, load.units(), common.zeros()),
        false => summary::summary(&result, common.zeros()),
    };
    write_results(&result, &text, common).and(closed.map_err(Failure::from))
}

fn measure(
    store: &Embedded,
    workload: &dyn Workload<Embedded>,
    common: &Common,
    conditions: bool,
) -> Result<RunResult, Failure> {
    let lines = common.lines();
    if common.load_only {
        no_other_tables(store)?;
        let progress = LoadProgress::new(workload.load_units());
        let mut result = load_run(store, workload, common.load_threads(), &progress)?;
        common.describe(&mut result, store.database());
        return Ok(result);
    }
    let load_s = load(store, workload, common.load_threads())?;
    lines.write(&format!("Running {} with {} threads", workload.name(), common.threads));
    let (mut purge, mut problem) = (PurgeWatch::default(), None);
    let mut interval = |line: &str| {
        lines.write(line);
        if let Some(warning) = purge.look(&store.database().purge_state()) {
            lines.write(&format!("Warning: {warning}"));
        }
        let before = std::mem::replace(&mut problem, store.database().archive_problem());
        problem.iter().filter(|_| problem != before).for_each(|text| lines.write(&format!("Warning: {text}")));
    };
    let client = store.clone().with_transactions(common.transaction.options());
    let run = || Ok(drive(&client, workload, &common.run_options(workload.is_bounded()), &mut interval)?);
    let (database, readers) = (store.database(), &common.readers);
    let mut result = readers.run_concurrently(database, common.dir.as_deref(), lines, || {
        common.backup.run_concurrently(database, lines, run)
    })?;
    result.load_s = load_s;
    common.describe(&mut result, store.database());
    let checked = conditions && !interrupt::is_requested();
    let found = if checked { workload.conditions(store) } else { Ok(Vec::new()) };
    match found {
        Err(error) if !matches!(error, highwater_bench::Error::Interrupted) => return Err(error.into()),
        Ok(found) if checked || !interrupt::is_requested() => {
            result.consistency = (!found.is_empty()).then_some(found);
        }
        _ => {
            result.config.insert("ended_by".into(), "signal".into());
            lines.write("Ended by a signal; consistency conditions are not checked");
        }
    }
    Ok(result)
}

fn write_results(result: &RunResult, text: &str, common: &Common) -> Result<(), Failure> {
    common.lines().write(&format!("\n{}", text.trim_end()));
    if let Some(json) = &common.json {
        write_json(json, &result.to_json()?)?;
    }
    if let Some(path) = &common.report {
        report::write(result, path)?;
    }
    if result.is_consistent() { Ok(()) } else { Err(Failure::NotFine) }
}

/// Loads the data unless they are there; returns the seconds it took.
///
/// # Errors
/// [`Failure::Usage`] when the folder holds something else.
pub(crate) fn load(
    store: &Embedded,
    workload: &dyn Workload<Embedded>,
    threads: usize,
) -> Result<Option<f64>, Failure> {
    no_other_tables(store)?;
    let started = Instant::now();
    let progress = LoadProgress::new(workload.load_units());
    let loaded = load_or_reuse(store, workload, threads, &progress)?;
    drop(progress);
    if !loaded {
        tell!("Using the existing data");
        return Ok(None);
    }
    let seconds = started.elapsed().as_secs_f64();
    if workload.load_units() > 0 {
        tell!("Loaded {} rows in {seconds:.1} s", workload.load_units());
    }
    Ok(Some(seconds))
}

/// Refuses a database with tables that are not a benchmark's finished load.
fn no_other_tables(store: &Embedded) -> Result<(), Failure> {
    if loaded_identity(store)?.is_none() && !store.database().tables().is_empty() {
        let reason = "the database holds tables, but no finished load of a benchmark; use another folder, or load \
                      again with --fresh";
        return Err(Failure::Usage(reason.into()));
    }
    Ok(())
}

pub(crate) struct LoadProgress {
    shown: Mutex<(Progress, u64)>,
}

impl LoadProgress {
    /// Of a load of this many rows.
    pub(crate) fn new(total: u64) -> LoadProgress {
        LoadProgress { shown: Mutex::new((Progress::new("loading", total), 0)) }
    }
}

impl workload::Progress for LoadProgress {
    fn advance(&self, units: u64) {
        let mut shown = self.shown.lock();
        shown.1 += units;
        let rows = shown.1;
        shown.0.at(rows, rows);
    }
}
