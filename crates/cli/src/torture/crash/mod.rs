//! `highwater torture crash`: kills a running database at random moments and checks it, many times.
//!
//! How a run goes
//! 1. A child process opens the database and runs TPC-C, recording each acknowledged commit outside the database (one
//!    file a client). Meanwhile indexes and tables are created and dropped while writers use them, a table is renamed,
//!    changed and emptied, options are changed, the sizes of pool and log among them, large transactions run, and
//!    random rows are changed whose indexes do not fit in the pool. The runs alternate between the modes of change
//!    buffering, unless the user sets one.
//! 2. The parent kills it with SIGKILL after a random time. In a quarter of the runs a second child is started and
//!    killed within a fraction of a second: in the middle of recovery. Until then a thread of the parent reads
//!    snapshots of the child's database: each must be one moment. Another process follows the change log and keeps a
//!    copy; it is killed too, at other moments ([`follower`]).
//! 3. The parent opens the database (which recovers it) and checks: all acknowledged commits and at most one more of
//!    each client survived (rule 5), and so did each acknowledged change of the table; TPC-C's twelve conditions hold;
//!    no large transaction is there in part; no expired row is read, and no other is missing; the copy by the change
//!    log equals its tables, and the whole database verifies: every entry of every index has its row, and every row its
//!    entries.
//! 4. With an archive of redo (`--redo-archive`) the database is backed up before the first kill. After the last one
//!    the backup and the archive are restored to the end, and the copy is checked in the same way ([`left`]).
//! 5. The first violation ends the command; the folder stays unchanged, for `highwater check` and `inspect`.
//!
//! Rules
//! 1. The seed, which is printed, determines all random choices. (The state at a kill depends on the machine's timing:
//!    a seed repeats the times of the kills, not the states.) It also determines the options of each run, which its
//!    line names ([`super::drawn`]); given options stay. The parent opens the database without the drawn ones.
//! 2. The child dies with its parent: it watches its stdin.
//! 3. With a limit on the data file (`--data-limit`), a transaction that meets it is rolled back and the load
//!    continues: that is not an error.
//! 4. The kill of a process loses no write to the operating system. With `--cut-power` the database is on a mounted
//!    disk whose power is cut instead ([`disk`](super::disk)): the process must stop with an error. Power cuts at
//!    chosen writes are tested on simulated disks (`crates/torture/tests/device_power_cut.rs`, `highwater torture
//!    power`).
//! 5. With `flush_log_at_trx_commit` 0, and with 2 if the power is cut, the last commits may be lost: the surviving
//!    ones are a prefix, which includes all commits before a flush of the log or a schema change.

mod follower;
mod left;
mod process;

use super::disk::CutDisk;
use super::drawn::{self, End};
use crate::bench;
use crate::engine_options::{EngineOptions, size};
use crate::failure::Failure;
use crate::output::Lines;
use clap::Args;
use fastrand::Rng;
use follower::Follower;
use highwater::config::FlushLog;
use highwater::{Database, Error};
use highwater_bench::store::embedded::Embedded;
use highwater_bench::workload::tpcc::{self, Config, Tpcc};
use highwater_bench::workload::{Load, Workload};
use highwater_storage::{Limited, SetOptions, StorageSet};
use highwater_torture::ddl_stress::{self, DdlStress};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The process that follows the change log.
pub(super) use follower::run as follow;
pub(super) use process::child;
use process::{end, end_with_parent, kill, not_started, spawn, spawn_process, still_running, wait_until_ready};

/// Small, so that a short run evicts pages, fills the log and takes checkpoints.
const ENGINE_DEFAULTS: &[(&str, &str)] = &[("buffer_pool_size", "8M"), ("log_file_size", "16M")];

pub(super) const EXAMPLES: &str = "\
Examples:
  highwater torture crash --runs 30 --dir /tmp/torture
  highwater torture crash --runs 100 --dir /tmp/torture --seed 7 --max-run-ms 500 --threads 8
  highwater torture crash --runs 30 --dir /tmp/torture-archive --redo-archive /tmp/torture-redo --log-dir /tmp/log
  highwater torture crash --runs 30 --dir /tmp/torture-full --page-size 4K --data-limit 160M
  sudo highwater torture crash --runs 30 --dir /tmp/torture-cut --cut-power";

#[derive(Args, Clone, Debug)]
pub(super) struct CrashOptions {
    /// Folder for the database and the record of acknowledged commits; made when missing
    #[arg(long)]
    dir: PathBuf,
    /// Number of kills
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    runs: u64,
    /// Seed of the random numbers [default: drawn, and printed]
    #[arg(long)]
    seed: Option<u64>,
    /// Warehouses
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    warehouses: u64,
    /// Client threads of the killed process
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1000))]
    threads: u64,
    /// Longest time before a kill, in milliseconds
    #[arg(
        long,
        default_value_t = 1500,
        value_name = "MILLISECONDS",
        value_parser = clap::value_parser!(u64).range(1..=600_000)
    )]
    max_run_ms: u64,
    /// Run only TPC-C, without concurrent schema changes and large transactions
    #[arg(long)]
    tpcc_only: bool,
    /// Simulate a full disk: the data file cannot grow beyond this size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    data_limit: Option<u64>,
    /// Cut the power of an emulated SSD, mounted below --dir, instead of killing the process; needs root and FUSE
    #[arg(long, conflicts_with = "data_limit")]
    cut_power: bool,
    /// Options that the process to be killed does not change while it runs: those that were given
    #[arg(long, hide = true, value_delimiter = ',')]
    keep_options: Vec<String>,
    #[command(flatten)]
    engine: EngineOptions,
}

impl CrashOptions {
    fn database(&self) -> PathBuf {
        if self.cut_power { self.disk().join("db") } else { self.dir.join("db") }
    }

    /// Mount point of the disk whose power is cut.
    fn disk(&self) -> PathBuf {
        self.dir.join("disk")
    }

    /// The backup after which the archive of redo continues.
    fn backup(&self) -> PathBuf {
        self.dir.join("backup")
    }

    /// The copy of the tables that log their changes.
    fn copy(&self) -> PathBuf {
        self.dir.join("copy")
    }

    fn ends(&self) -> End {
        if self.cut_power { End::PowerCut } else { End::Kill }
    }

    fn acknowledgements(&self) -> PathBuf {
        self.dir.join("acknowledged")
    }

    fn config(&self, seed: u64) -> Config {
        Config {
            warehouses: self.warehouses,
            seed,
            acknowledgements: Some(self.acknowledgements()),
            ..Config::default()
        }
    }

    fn workload(&self, seed: u64) -> Box<dyn Workload<Embedded>> {
        Load::Tpcc(self.config(seed)).embedded()
    }

    fn ddl_stress(&self, seed: u64) -> Option<DdlStress> {
        let (acknowledgements, given_options) = (self.acknowledgements(), self.keep_options.clone());
        (!self.tpcc_only).then_some(DdlStress { acknowledgements, first_client: self.threads, seed, given_options })
    }

    /// Number of clients that record their commits.
    fn recorders(&self) -> u64 {
        self.threads + if self.tpcc_only { 0 } else { ddl_stress::CLIENTS }
    }

    /// Whether a process with these options, besides the given ones, may lose acknowledged commits (rule 5).
    fn may_lose_commits(&self, drawn: &[(&'static str, &'static str)]) -> Result<bool, Failure> {
        let options = self.engine.options(&[ENGINE_DEFAULTS, drawn].concat())?;
        Ok(drawn::may_lose_commits(options.flush_log_at_trx_commit, self.ends()))
    }

    fn open(&self) -> Result<Embedded, Failure> {
        let Some(limit) = self.data_limit else {
            return Ok(Embedded::new(self.engine.open(&self.database(), ENGINE_DEFAULTS, true)?));
        };
        let options = self.engine.options(ENGINE_DEFAULTS)?;
        let set = SetOptions {
            log_dir: options.log_dir.clone(),
            flush_method: options.flush_method,
            cached_redo: options.flush_log_at_trx_commit != FlushLog::Sync,
            create: true,
            encryption_key: options.read_key()?,
        };
        let files = StorageSet::open(&self.database(), &set).map_err(Error::from)?;
        // The data file comes first.
        let mut is_data = true;
        let limited = files.map(|file| if std::mem::take(&mut is_data) { Limited::new(file, limit) } else { file });
        let database = Database::open_storage(limited, options)?;
        self.engine.must_agree_with(&database)?;
        Ok(Embedded::new(database))
    }
}
fn file_failure(path: &Path) -> impl FnOnce(std::io::Error) -> Failure + '_ {
    move |error| Failure::Failed(format!("{}: {error}", path.display()))
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Failed`] names what was lost or broken.
pub(super) fn run(options: &CrashOptions) -> Result<(), Failure> {
    let lines = Lines { stdout_taken: false };
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    lines.write(&format!("seed {seed} (repeat with --seed {seed})"));
    let mut disk = options.cut_power.then(|| CutDisk::new(&options.disk())).transpose()?;
    let ended = crashes(options, seed, lines, &mut disk);
    match (ended, disk) {
        (Err(error), Some(_)) => Err(keep_files(options, error)),
        (ended, _) => ended,
    }
}

/// Copies the database from the disk that is about to be unmounted, for `highwater check` and `inspect`.
fn keep_files(options: &CrashOptions, error: Failure) -> Failure {
    let (from, to) = (options.database(), options.dir.join("db"));
    let copied = std::fs::create_dir_all(&to).and_then(|()| {
        std::fs::read_dir(&from)?.try_for_each(|file| {
            let file = file?;
            match file.file_type()?.is_file() {
                true => std::fs::copy(file.path(), to.join(file.file_name())).map(drop),
                // The socket of readers.
                false => Ok(()),
            }
        })
    });
    match copied {
        Ok(()) => Failure::Failed(format!("{error}; a copy of the database is in {}", to.display())),
        Err(reason) => {
            Failure::Failed(format!("{error}; the database could not be copied to {}: {reason}", to.display()))
        }
    }
}

fn crashes(options: &CrashOptions, seed: u64, lines: Lines, disk: &mut Option<CutDisk>) -> Result<(), Failure> {
    prepare(options)?;
    let (mut rng, mut all_lost) = (Rng::with_seed(seed), 0);
    for run in 1..=options.runs {
        let Killed { how, may_lose_commits } =
            kill_once(options, run, &mut rng, disk).map_err(|e| at(run, seed, &e))?;
        let found = left::verify(options, may_lose_commits)
            .map_err(|e| at(run, seed, &Failure::Failed(format!("{how}: {e}"))))?;
        let tpcc::Acknowledged { commits, lost, .. } = found.acknowledged;
        all_lost += lost;
        let present = match may_lose_commits {
            true => format!("the last {lost} lost, which the mode allows, the others present"),
            false => "all present".to_string(),
        };
        lines.write(&format!(
            "run {run}/{}: {how}; recovered in {:.2} s ({:.1} MiB of redo, {} pages read); {commits} commits \
             acknowledged so far, {present}; 12 consistency conditions hold; check found no problem",
            options.runs, found.recovery_s, found.redo_mib, found.pages_read
        ));
    }
    let ends = if options.cut_power { "power cuts" } else { "kills" };
    if let Some(restored) = left::restore(options).map_err(|e| at(options.runs, seed, &e))? {
        lines.write(&restored);
    }
    let but = if all_lost > 0 { format!(" but {all_lost} that flush_log_at_trx_commit allows") } else { String::new() };
    lines.write(&format!("{} {ends}, no acknowledged commit lost{but}", options.runs));
    Ok(())
}

fn at(run: u64, seed: u64, failure: &Failure) -> Failure {
    Failure::Failed(format!("run {run} with seed {seed}: {failure}"))
}

/// Loads the database unless it is there.
fn prepare(options: &CrashOptions) -> Result<(), Failure> {
    let acknowledgements = options.acknowledgements();
    std::fs::create_dir_all(&acknowledgements).map_err(file_failure(&acknowledgements))?;
    let store = options.open()?;
    if bench::load(&store, &*options.workload(0), 2)?.is_some() {
        // Records and a backup of a database that was removed since.
        tpcc::forget(&acknowledgements)?;
        left::forget_backup(options)?;
        follower::forget(options)?;
    }
    Tpcc::new(options.config(0)).prepare_acknowledgements(&store, options.recorders() as usize)?;
    if !options.tpcc_only {
        ddl_stress::prepare(&store)?;
    }
    left::back_up(options, store.database())?;
    store.database().clone().close()?;
    Ok(())
}

/// The end of a child process.
struct Killed {
    how: String,
    may_lose_commits: bool,
}

/// Starts a child, kills it or cuts the power of its disk, and says when.
fn kill_once(options: &CrashOptions, run: u64, rng: &mut Rng, disk: &mut Option<CutDisk>) -> Result<Killed, Failure> {
    let seed = rng.u64(..);
    let buffering = options.engine.rotated_buffering(run);
    let drawn = drawn::draw(&options.engine, options.ends(), seed);
    let may_lose_commits = options.may_lose_commits(&drawn)?;
    let with = format!("change buffering {buffering}, {}", drawn::described(&drawn));
    let drawn = drawn::arguments(&drawn);
    let named = |error: Failure| Failure::Failed(format!("{error}; {with}"));
    let mut child = spawn(options, seed, buffering, &drawn)?;
    let (reading, mut follower) = (Reading::begin(options), Follower::start(options)?);
    let outcome = wait_until_ready(&mut child).and_then(|()| {
        let pause_ms = rng.u64(1..=options.max_run_ms);
        follower.sleep_and_kill(pause_ms, rng)?;
        still_running(&mut child).map(|()| pause_ms)
    });
    let outcome = outcome.and_then(|pause_ms| end(&mut child, rng, disk).map(|()| pause_ms));
    kill(&mut child)?;
    let (pause_ms, snapshots) = (outcome.map_err(named)?, reading.end()?);
    let how = if disk.is_some() { "power cut" } else { "killed" };
    if rng.u32(..4) > 0 {
        let with = format!(
            "{snapshots} snapshots read by another process, follower killed {} times, {with}",
            follower.kill()?
        );
        return Ok(Killed { how: format!("{how} after {pause_ms} ms, {with}"), may_lose_commits });
    }
    let mut child = spawn(options, seed ^ 1, buffering, &drawn)?;
    let second_ms = rng.u64(1..=300);
    std::thread::sleep(Duration::from_millis(second_ms));
    let ended = end(&mut child, rng, disk);
    kill(&mut child)?;
    ended?;
    let with =
        format!("{snapshots} snapshots read by another process, follower killed {} times, {with}", follower.kill()?);
    let how = format!("{how} after {pause_ms} ms, and {second_ms} ms into the next start, {with}");
    Ok(Killed { how, may_lose_commits })
}

/// A thread that reads snapshots of the child's database.
struct Reading {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<highwater_bench::Result<u64>>,
}

impl Reading {
    fn begin(options: &CrashOptions) -> Reading {
        let ends = Arc::new(AtomicBool::new(false));
        let (until, folder) = (Arc::clone(&ends), options.database());
        let (has_stress, loses_power) = (!options.tpcc_only, options.cut_power);
        let thread = std::thread::spawn(move || ddl_stress::read_snapshots(&folder, has_stress, loses_power, &until));
        Reading { ends, thread }
    }

    /// Ends the reads; returns the number of complete snapshots.
    fn end(self) -> Result<u64, Failure> {
        self.ends.store(true, Ordering::Release);
        let read = self.thread.join().unwrap_or_else(|_| Err(highwater_bench::Error::Data("it panicked".into())));
        read.map_err(|error| Failure::Failed(format!("reading while the process runs: {error}")))
    }
}
