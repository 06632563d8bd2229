//! Every installed subject, end to end: load, run, stop, start again, check; a killed one recovers; a killed laboratory leaves none.
//!
//! Rules
//! 1. The same table of cases for every subject. One that is not installed is named on standard error; `cargo xtask test` installs all.
//! 2. Databases lie in a folder of the test's own.

use highwater_lab::run::RunOptions;
use highwater_lab::subject::{Files, Installed, Load, Running, Settings, SubjectKind};
use highwater_lab::workload::{Silent, sysbench, tpcc, user_table};

fn installed() -> Vec<Installed> {
    let found = SubjectKind::ALL.map(SubjectKind::find);
    found.iter().filter_map(|subject| subject.as_ref().err()).for_each(|missing| eprintln!("{missing}"));
    found.into_iter().flatten().collect()
}

fn settings() -> Settings {
    Settings { buffer_pool_bytes: 32 << 20, log_bytes: 64 << 20, ..Settings::default() }
}

fn loads() -> Vec<Load> {
    vec![
        Load::Tpcc(tpcc::Config::default()),
        Load::Sysbench(sysbench::Config { tables: 2, table_size: 20_000, ..sysbench::Config::default() }),
        Load::UserTable(user_table::Config { bytes: 4 << 20, ..user_table::Config::default() }),
    ]
}

fn seconds(seconds: f64) -> RunOptions {
    RunOptions { threads: 4, seconds, ..RunOptions::default() }
}

fn check(running: &Running, load: &Load, at: &str) {
    let broken: Vec<_> = running.conditions(load).unwrap().into_iter().filter(|c| !c.holds).collect();
    assert!(broken.is_empty(), "{at}: {broken:?}");
    assert_eq!(running.check_tables().unwrap(), Vec::<String>::new(), "{at}");
}

/// Loads, runs 3 s, stops, starts again, checks; then runs, kills, starts again, checks.
fn whole_life(subject: &Installed, load: &Load) {
    let at = format!("{} {load:?}", subject.kind);
    let folder = tempfile::tempdir().unwrap();
    let files = Files { data: folder.path().join("data"), log: Some(folder.path().join("log")) };
    let running = Running::start(subject, &files, &settings()).unwrap();
    running.load(load, 2, &Silent).unwrap();
    let mut lines = Vec::new();
    let result = running.run(load, &seconds(3.0), &mut |line| lines.push(line.to_string())).unwrap();
    assert!(result.transactions > 50, "{at}: {} transactions", result.transactions);
    assert!(!lines.is_empty() && !result.intervals.is_empty(), "{at}");
    assert_eq!(result.config["subject"], subject.kind.to_string());
    assert!(result.bytes_written["redo"] > 0 && result.latency_us.p99 >= result.latency_us.p50, "{at}: {result:?}");
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

#[test]
fn every_subject_lives_through_every_load() {
    for subject in installed() {
        for load in loads() {
            let started = std::time::Instant::now();
            whole_life(&subject, &load);
            eprintln!("{} {load:?}: {:.0} s", subject.kind, started.elapsed().as_secs_f64());
        }
    }
}
