//! Every kind of place: loaded data are there, devices count, nothing is left.

use super::*;
use crate::measure::Quiet;
use crate::subject::SubjectKind;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::sysbench::Config;

fn load() -> Load {
    Load::Sysbench(Config { table_size: 500, ..Config::default() })
}

/// Runs a few transactions in a new place; returns how many rows of redo log folders there were and what the devices
/// counted.
fn measure(
    device: &DeviceChoice,
    log: Option<&DeviceChoice>,
    workspace: &mut Workspace<'_>,
) -> (Option<Counters>, Option<Counters>) {
    let installed = SubjectKind::Highwater.find().unwrap();
    let settings = Settings { buffer_pool_bytes: 8 << 20, log_bytes: 4 << 20, ..Settings::default() };
    let load = load();
    let want = Want {
        installed: &installed,
        load: &load,
        settings: &settings,
        device,
        log,
        data_bytes: 4 << 20,
        mounted: false,
        virtual_time: false,
        classify: false,
        system_in_memory: false,
    };
    let place = Place::prepare(workspace, &want).unwrap();
    let before = (place.data_counters(), place.log_counters());
    let running = place.start().unwrap();
    let options = RunOptions { seconds: 0.0, events: 20, ..RunOptions::default() };
    let result = running.run(&load, &options, &mut |_| {}).unwrap();
    assert_eq!(result.transactions, 20);
    running.stop().unwrap();
    let growth = |now: Option<Counters>, then: Option<Counters>| Some(now?.since(&then?));
    let found = (growth(place.data_counters(), before.0), growth(place.log_counters(), before.1));
    place.close().unwrap();
    found
}

#[test]
fn every_place_has_the_loaded_data_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut quiet = Quiet;
    let mut workspace = Workspace::new(folder.path(), &mut quiet);
    let preset = DeviceChoice::Preset("datacenter-nvme".into());
    assert_eq!(measure(&DeviceChoice::Local, None, &mut workspace), (None, None));
    assert_eq!(measure(&DeviceChoice::Local, Some(&DeviceChoice::Local), &mut workspace), (None, None));
    let (data, log) = measure(&preset, None, &mut workspace);
    assert!(data.is_some_and(|found| found.hbmw() > 0) && log.is_none());
    let (data, log) = measure(&preset, Some(&preset), &mut workspace);
    let (data, log) = (data.unwrap(), log.unwrap());
    assert!(log.flushes >= 20 && log.hbmw() > 0, "{log:?}");
    assert!(data.flushes < log.flushes, "{data:?}");
    // One template for all four; everything else is gone.
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn log_files_go_to_the_log_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to, log) = (folder.path().join("from"), folder.path().join("to"), folder.path().join("log"));
    std::fs::create_dir_all(from.join("mysql")).unwrap();
    for name in ["ibdata1", "ib_logfile0", "ib_logfile1", "mysql/user.MYD"] {
        std::fs::write(from.join(name), name).unwrap();
    }
    copy_database(&from, &to, &log, None).unwrap();
    for path in [to.join("ibdata1"), log.join("ib_logfile0"), log.join("ib_logfile1"), to.join("mysql/user.MYD")] {
        assert!(path.exists(), "{}", path.display());
    }
    assert!(!to.join("ib_logfile0").exists());
}

#[test]
fn the_system_tablespace_goes_to_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to, system) = (folder.path().join("from"), folder.path().join("to"), folder.path().join("ram"));
    std::fs::create_dir_all(from.join("db/test")).unwrap();
    std::fs::create_dir(&system).unwrap();
    for name in ["db/ibdata1", "db/test/t.ibd"] {
        std::fs::write(from.join(name), name).unwrap();
    }
    copy_database(&from, &to, &to, Some(&system)).unwrap();
    assert!(system.join("ibdata1").exists() && to.join("db/test/t.ibd").exists());
    assert!(!to.join("db/ibdata1").exists());
}
