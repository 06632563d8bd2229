//! Every kind of place: loaded data are there, devices count, nothing is left.

use super::*;
use crate::measure::Quiet;
use crate::measure::Streams;
use crate::subject::SubjectKind;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::sysbench::Config;

fn load() -> Load {
    Load::Sysbench(Config { table_size: 500, ..Config::default() })
}

fn settings() -> Settings {
    Settings { buffer_pool_bytes: 8 << 20, log_bytes: 4 << 20, ..Settings::default() }
}

fn spec<'a>(
    installed: &'a Installed,
    load: &'a Load,
    settings: &'a Settings,
    load_options: &'a BTreeMap<String, String>,
    device: &'a DeviceChoice,
) -> PlaceSpec<'a> {
    PlaceSpec {
        installed,
        load,
        settings,
        device,
        log: None,
        data_bytes: 4 << 20,
        mounted: false,
        virtual_time: false,
        classify: false,
        system_in_memory: false,
        load_options,
        sized_device: None,
    }
}

/// Runs a few transactions in a new place; returns how many rows of redo log folders there were and what the devices
/// counted.
fn measure(
    device: &DeviceChoice,
    log: Option<&DeviceChoice>,
    sized_device: Option<&SizedDevice>,
    workspace: &mut Workspace<'_>,
) -> (Option<Counters>, Option<Counters>) {
    let installed = SubjectKind::Highwater.find().unwrap();
    let (load, settings, options) = (load(), settings(), BTreeMap::new());
    let spec = PlaceSpec { log, sized_device, ..spec(&installed, &load, &settings, &options, device) };
    let place = Testbed::prepare(workspace, &spec).unwrap();
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
    assert_eq!(measure(&DeviceChoice::Local, None, None, &mut workspace), (None, None));
    assert_eq!(measure(&DeviceChoice::Local, Some(&DeviceChoice::Local), None, &mut workspace), (None, None));
    let (data, log) = measure(&preset, None, None, &mut workspace);
    assert!(data.is_some_and(|found| found.hbmw() > 0) && log.is_none());
    let (data, log) = measure(&preset, Some(&preset), None, &mut workspace);
    let (data, log) = (data.unwrap(), log.unwrap());
    assert!(log.flushes >= 20 && log.hbmw() > 0, "{log:?}");
    assert!(data.flushes < log.flushes, "{data:?}");
    // One template for all four; everything else is gone.
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// One template to find out the size, one that was loaded on a device of that size.
#[test]
fn a_device_made_to_measure_is_as_large_as_the_data_ask_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut quiet = Quiet;
    let mut workspace = Workspace::new(folder.path(), &mut quiet);
    let preset = DeviceChoice::Preset("datacenter-nvme".into());
    let sized_device = |streams| SizedDevice {
        copies_bytes: 0,
        sized_by: settings(),
        added_bytes: 100 << 20,
        fill: 0.8,
        spare: 0.15,
        streams,
        largest_unit_bytes: 1 << 20,
        seed: 1,
    };
    for streams in [Streams::Each, Streams::One] {
        let (data, log) = measure(&preset, None, Some(&sized_device(streams)), &mut workspace);
        let data = data.unwrap();
        // The log is on the same device.
        let used = data.streams.iter().filter(|stream| stream.host_blocks > 0).count();
        assert!(
            log.is_none() && if streams == Streams::Each { data.streams[1].host_blocks > 0 } else { used == 1 },
            "{data:?}"
        );
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    let (installed, load, settings, options) =
        (SubjectKind::Highwater.find().unwrap(), load(), settings(), BTreeMap::new());
    let sized_device = sized_device(Streams::Each);
    let spec = PlaceSpec { sized_device: Some(&sized_device), ..spec(&installed, &load, &settings, &options, &preset) };
    let capacity = Testbed::prepare(&mut workspace, &spec).unwrap().data_capacity_bytes().unwrap();
    let asked_for = (100 << 20) * 10 / 8 + (5 << 20) + (5 << 20);
    assert!((asked_for..asked_for + (10 << 20)).contains(&capacity), "{capacity}, not {asked_for}");
    let local = PlaceSpec { device: &DeviceChoice::Local, ..spec };
    assert!(Testbed::prepare(&mut workspace, &local).is_err(), "this machine's disk has the size that it has");
}

#[test]
fn log_files_go_to_the_log_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to, log) = (folder.path().join("from"), folder.path().join("to"), folder.path().join("log"));
    std::fs::create_dir_all(from.join("mysql")).unwrap();
    for name in ["ibdata1", "ib_logfile0", "ib_logfile1", "mysql/user.MYD"] {
        std::fs::write(from.join(name), name).unwrap();
    }
    copy_database(&from, &to, &log, None, copy_file).unwrap();
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
    copy_database(&from, &to, &to, Some(&system), copy_sparse).unwrap();
    assert!(system.join("ibdata1").exists() && to.join("db/test/t.ibd").exists());
    assert!(!to.join("db/ibdata1").exists());
}
