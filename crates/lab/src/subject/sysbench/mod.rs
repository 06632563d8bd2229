//! The real sysbench 1.0 on a server: the bench's profiles and options, and its output as a [`RunResult`].
//!
//! Rules
//! 1. sysbench also prepares the data; the database has the identity of the load, as for every workload.
//! 2. Counters of the server are sampled when sysbench prints an interval, so they are of that interval.
//! 3. sysbench 1.0 has no warm-up of its own: a run before the measured one warms up.
//! 4. Configurations that sysbench does not support (more than one secondary index, indexes before the rows) are run by
//!    the bench's driver, with the same statements.
//! 5. sysbench does not report the work of each thread; those lists are empty.

mod output;
mod process;

use super::Server;
use highwater_bench::cpu::CpuTimes;
use highwater_bench::result::{Interval, KindResult, LatencyUs, Queries, RunResult};
use highwater_bench::run::RunOptions;
use highwater_bench::store::mysql::DATABASE;
use highwater_bench::store::{Store, StoreStats};
use highwater_bench::workload::sysbench::{Config, CreateIndexes, RandType, Sysbench};
use highwater_bench::workload::{Progress, Workload, load_once, note_spoiled};
use highwater_bench::{Error, Result};
use std::process::Command;

type OnServer = highwater_bench::store::mysql::MysqlStore;

/// Whether sysbench can run this configuration (rule 4).
pub(super) fn has(config: &Config) -> bool {
    config.secondary_indexes == 1 && config.create_indexes == CreateIndexes::After
}

/// Fills the tables unless they are there.
pub(super) fn load(server: &Server, config: &Config, threads: usize, progress: &dyn Progress) -> Result<()> {
    let workload = Sysbench::new(config.clone());
    let identity = Workload::<OnServer>::identity(&workload);
    load_once(server.store(), &identity, || {
        let mut command = command(server, config)?;
        command.arg(format!("--threads={}", threads.clamp(1, config.tables.max(1) as usize))).arg("prepare");
        // A table is full when its index is made.
        let mut full =
            |line: &str| progress.advance(if line.contains("secondary index") { config.table_size } else { 0 });
        process::run(command, &mut full).map(drop)
    })
    .map(drop)
}

pub(super) fn run(
    server: &Server,
    config: &Config,
    options: &RunOptions,
    line: &mut dyn FnMut(&str),
) -> Result<RunResult> {
    let workload = Sysbench::new(config.clone());
    note_spoiled(server.store(), &workload)?;
    if options.warmup_s > 0.0 {
        let warmup = RunOptions { seconds: options.warmup_s, events: 0, ..options.clone() };
        drive(server, config, &warmup, &mut |_| {})?;
    }
    let driven = drive(server, config, options, line)?;
    let mut result = driven.result(&workload)?;
    result.config.insert("threads".into(), options.threads.to_string());
    result.config.insert("warmup_s".into(), options.warmup_s.to_string());
    result.config.insert("driver".into(), "sysbench 1.0".into());
    Ok(result)
}

/// The command without threads, limits and verb.
fn command(server: &Server, config: &Config) -> Result<Command> {
    let mut command = Command::new(server.sysbench());
    command.arg(format!("oltp_{}", config.profile.name()));
    command.args(["--db-driver=mysql", "--mysql-user=root", "--mysql-ssl=off"]);
    command.arg(format!("--mysql-socket={}", server.socket().display())).arg(format!("--mysql-db={DATABASE}"));
    command.args(profile_options(config)?);
    Ok(command)
}

/// Our options with sysbench's names.
fn profile_options(config: &Config) -> Result<Vec<String>> {
    if config.rand_type == RandType::Zipfian {
        return Err(Error::Usage("sysbench 1.0 has no --rand-type=zipfian; servers cannot run it".into()));
    }
    let numbers = [
        ("tables", config.tables),
        ("table_size", config.table_size),
        ("point_selects", config.point_selects.into()),
        ("simple_ranges", config.simple_ranges.into()),
        ("sum_ranges", config.sum_ranges.into()),
        ("order_ranges", config.order_ranges.into()),
        ("distinct_ranges", config.distinct_ranges.into()),
        ("range_size", config.range_size),
        ("index_updates", config.index_updates.into()),
        ("non_index_updates", config.non_index_updates.into()),
        ("delete_inserts", config.delete_inserts.into()),
    ];
    let options = numbers.iter().map(|(name, value)| format!("--{name}={value}"));
    let random = [format!("--rand-type={}", config.rand_type.name()), format!("--rand-seed={}", config.seed)];
    Ok(options.chain(random).collect())
}

/// The output of sysbench, and the server's counters at each interval.
struct Driven {
    text: String,
    intervals: Vec<Interval>,
    first: StoreStats,
    last: StoreStats,
    cpu: CpuTimes,
}

fn drive(server: &Server, config: &Config, options: &RunOptions, line: &mut dyn FnMut(&str)) -> Result<Driven> {
    let mut command = command(server, config)?;
    command.arg(format!("--threads={}", options.threads.max(1)));
    // sysbench takes whole seconds only.
    command.arg(format!("--time={}", options.seconds.ceil() as u64)).arg(format!("--events={}", options.events));
    command.arg(format!("--report-interval={}", (options.report_interval_s.round() as u64).max(1)));
    command.args(["--percentile=95", "--histogram=on", "run"]);
    let first = server.store().stats();
    let cpu = CpuTimes::now(std::process::id());
    let mut driven = Driven { text: String::new(), intervals: Vec::new(), last: first.clone(), first, cpu };
    driven.text = process::run(command, &mut |text| {
        if let Some(found) = output::interval(text) {
            line(text);
            driven.interval(&found, server.store().stats());
        }
    })?;
    driven.last = server.store().stats();
    Ok(driven)
}

impl Driven {
    fn interval(&mut self, found: &output::IntervalLine, now: StoreStats) {
        let before = self.intervals.last().map_or(0.0, |interval| interval.at_s);
        let length_s = (found.at_s - before).max(1e-9);
        let (growth, cpu) = (now.since(&self.last), CpuTimes::now(std::process::id()));
        let count = |per_s: f64| (per_s * length_s).round() as u64;
        self.intervals.push(Interval {
            at_s: found.at_s,
            length_s,
            tps: found.tps,
            queries: Queries {
                read: count(found.reads_per_s),
                write: count(found.writes_per_s),
                other: count(found.other_per_s),
            },
            errors_per_s: found.errors_per_s,
            latency_us: LatencyUs { p95: found.p95_us, ..LatencyUs::default() },
            cpu_withheld_pct: cpu.since(&self.cpu).withheld_pct,
            ..Interval::counted(&growth)
        });
        self.last = now;
        self.cpu = cpu;
    }

    fn result(self, workload: &Sysbench) -> Result<RunResult> {
        let totals = output::totals(&self.text)?;
        let growth = self.last.since(&self.first);
        let kind = KindResult { transactions: totals.transactions, rolled_back: 0, latency_us: totals.latency_us };
        let name = Workload::<OnServer>::kinds(workload).first().map(|name| name.to_string()).unwrap_or_default();
        Ok(RunResult {
            workload: Workload::<OnServer>::name(workload),
            config: Workload::<OnServer>::options(workload),
            elapsed_s: totals.elapsed_s,
            transactions: totals.transactions,
            tps: totals.transactions as f64 / totals.elapsed_s.max(1e-9),
            errors: totals.errors,
            queries: totals.queries,
            latency_us: totals.latency_us,
            kinds: [(name, kind)].into(),
            pages: (&growth).into(),
            bytes_written: growth.bytes_written(),
            counters: growth.by_name(),
            intervals: self.intervals,
            ..RunResult::default()
        })
    }
}
