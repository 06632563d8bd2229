//! Every installed subject, end to end: load, run, stop, start again, check; a killed one recovers; a killed laboratory
//! leaves none.
//!
//! Rules
//! 1. The same table of cases for every subject; a part of the tests tries a part of them. One that is not installed is
//!    named on standard error; `cargo xtask test` installs all.
//! 2. Databases are in a folder of the test's own.

use highwater::internals::test_part::is_tried;
use highwater_bench::result::RunResult;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::{Silent, sysbench, tpcc, user_table};
use highwater_lab::subject::{Files, Installed, Load, Running, Settings, SubjectKind};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn installed(kinds: &[SubjectKind]) -> Vec<Installed> {
    let found: Vec<_> = kinds.iter().map(|kind| kind.find()).collect();
    found.iter().filter_map(|subject| subject.as_ref().err()).for_each(|missing| eprintln!("{missing}"));
    found.into_iter().flatten().collect()
}

fn settings() -> Settings {
    Settings {
        buffer_pool_bytes: 16 << 20,
        log_bytes: 64 << 20,
        lru_scan_depth: 128,
        io_capacity: 200,
        ..Settings::default()
    }
}

fn loads() -> Vec<Load> {
    vec![
        Load::Tpcc(tpcc::Config::default()),
        Load::Sysbench(sysbench::Config { tables: 2, table_size: 60_000, ..sysbench::Config::default() }),
        // More than fits into the run: it lasts long enough for a line of an interval.
        Load::UserTable(user_table::Config { bytes: 64 << 20, ..user_table::Config::default() }),
    ]
}

fn seconds(seconds: f64) -> RunOptions {
    RunOptions { threads: 4, seconds, ..RunOptions::default() }
}

fn check(running: &Running, load: &Load, at: &str) {
    let broken: Vec<_> = running.conditions(load).unwrap().into_iter().filter(|c| !c.holds).collect();
    assert!(broken.is_empty(), "{at}: {broken:?}");
    assert_eq!(settled_check(running), Vec::<String>::new(), "{at}");
}

/// What a check of the tables says once purge has had time: until then MariaDB's warns of entries that are marked as
/// deleted.
fn settled_check(running: &Running) -> Vec<String> {
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        let said = running.check_tables().unwrap();
        if said.is_empty() || Instant::now() > until {
            return said;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Every page that was flushed has a reason.
fn flushed_pages_add_up(result: &RunResult, at: &str) {
    // A server need not count every reason.
    let count = |name: &str| result.counters.get(name).copied().unwrap_or(0);
    let reasons = ["lru_list", "dirty_pct", "checkpoint_age", "idle", "sync", "neighbor", "single_page", "shutdown"];
    let sum: u64 = reasons.iter().map(|reason| count(&format!("pages_flushed_{reason}"))).sum();
    let flushed = count("pages_flushed");
    // A server counts the pages of a batch when the batch ends; the settings keep batches small.
    let slack = flushed / 20 + 400;
    assert!(sum.abs_diff(flushed) <= slack, "{at}: {flushed} pages flushed, reasons say {sum}: {:?}", result.counters);
}

/// Loads, runs 3 s, stops, starts again, checks; then runs, kills, starts again, checks.
fn whole_life(subject: &Installed, load: &Load) {
    let at = format!("{} {load:?}", subject.kind);
    let folder = tempfile::tempdir().unwrap();
    let files = Files { log: Some(folder.path().join("log")), ..Files::in_folder(folder.path().join("data")) };
    let running = Running::start(subject, &files, &settings()).unwrap();
    running.load(load, 2, &Silent).unwrap();
    let mut lines = Vec::new();
    let result = running.run(load, &seconds(3.0), &mut |line| lines.push(line.to_string())).unwrap();
    assert!(result.transactions > 0, "{at}: {} transactions", result.transactions);
    assert!(!lines.is_empty() && !result.intervals.is_empty(), "{at}");
    assert_eq!(result.config["subject"], subject.kind.to_string());
    assert!(result.bytes_written["redo"] > 0 && result.latency_us.p99 >= result.latency_us.p50, "{at}: {result:?}");
    flushed_pages_add_up(&result, &at);
    running.stop().unwrap();

    let running = Running::start(subject, &files, &settings()).unwrap();
    check(&running, load, &format!("{at}, stopped and started"));
    let again = running.load(load, 2, &Silent);
    assert!(again.is_ok(), "{at}: loaded data are not found again: {again:?}");
    running.run(load, &seconds(1.0), &mut |_| {}).unwrap();
    running.kill();
    let running = Running::start(subject, &files, &settings()).unwrap();
    check(&running, load, &format!("{at}, killed and started"));
    running.stop().unwrap();
}

/// The subjects take their turns side by side: most of the time is waiting.
#[test]
fn every_subject_lives_through_every_load() {
    std::thread::scope(|scope| {
        for (first, subject) in (0..).zip(installed(&SubjectKind::OF_LAB)) {
            let tried = (first..).zip(loads()).filter(|(case, _)| is_tried(*case));
            scope.spawn(move || tried.for_each(|(_, load)| whole_life(&subject, &load)));
        }
    });
}

/// Names a folder for [`starts_a_server_and_waits_to_be_killed`].
const FOLDER: &str = "HIGHWATER_TEST_SERVER_FOLDER";

/// What the test below runs in a process of its own, which it kills. By itself it has nothing to do.
#[test]
fn starts_a_server_and_waits_to_be_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let kind: SubjectKind = folder.file_name().unwrap().to_str().unwrap().parse().unwrap();
    let settings = Settings { memory_limit_bytes: Some(1 << 30), ..settings() };
    let settings = if can_limit_memory() { settings } else { Settings { memory_limit_bytes: None, ..settings } };
    let running = Running::start(&kind.find().unwrap(), &Files::in_folder(folder), &settings).unwrap();
    println!("server {}", running.pid().unwrap());
    std::thread::sleep(Duration::from_secs(600));
}

fn can_limit_memory() -> bool {
    highwater_lab::subject::MemoryGroup::new(1 << 30).is_ok()
}

/// SIGKILL of the laboratory ends its servers within seconds and takes their sockets with them.
#[test]
fn no_server_outlives_a_killed_laboratory() {
    for subject in installed(&SubjectKind::SERVERS) {
        let folder = tempfile::tempdir().unwrap();
        let mut laboratory = Command::new(std::env::current_exe().unwrap());
        laboratory.args(["--exact", "starts_a_server_and_waits_to_be_killed", "--nocapture"]);
        laboratory.env(FOLDER, folder.path().join(subject.kind.name())).stdout(Stdio::piped());
        let mut laboratory = laboratory.spawn().unwrap();
        let mut lines = BufReader::new(laboratory.stdout.take().unwrap()).lines().map_while(Result::ok);
        let pid = lines.find_map(|line| line.split_once("server ")?.1.parse::<u32>().ok()).unwrap();
        let process = format!("/proc/{pid}");
        assert!(Path::new(&process).exists());
        let command_line = std::fs::read_to_string(format!("{process}/cmdline")).unwrap();
        assert!(command_line.contains("--defaults-file"), "{command_line:?}");
        laboratory.kill().unwrap();
        laboratory.wait().unwrap();
        let deadline = Instant::now() + Duration::from_secs(100);
        while Path::new(&process).exists() {
            assert!(Instant::now() < deadline, "{} (process {pid}) lives on", subject.kind);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The error of a server that cannot start has the server's own message.
#[test]
fn a_failed_start_quotes_the_servers_log() {
    for subject in installed(&SubjectKind::SERVERS) {
        let folder = tempfile::tempdir().unwrap();
        let extra = [("innodb_no_such_option".to_string(), "1".to_string())].into();
        let settings = Settings { extra, ..settings() };
        let error = Running::start(&subject, &Files::in_folder(folder.path()), &settings).err().unwrap().to_string();
        assert!(error.contains("ended while starting") && error.contains("innodb_no_such_option"), "{error}");
    }
}
