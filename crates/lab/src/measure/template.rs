//! Templates: folders of loaded data, one for each combination of subject, load and options that change the data.
//!
//! Rules
//! 1. Data are loaded once, into a template. Measurements run on copies of it.
//! 2. For a [`SizedDevice`], Highwater loads on a device of that size, so that no file is larger than its place there.
//!    The template is a copy of the device's files after the load.

use super::Workspace;
use super::place::{PlaceSpec, preset_of, redo_room_bytes};
use super::sized_device::{Room, SizedDevice};
use crate::subject::{Files, Load, Running, Settings};
use highwater_bench::{Error, Result, interrupt};
use highwater_storage::{Device, Placement, StorageSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Servers load faster with a large log.
const SERVER_LOAD_LOG_BYTES: u64 = 256 << 20;
/// Copies go in pieces of this many bytes.
const PIECE_BYTES: usize = 1 << 20;
/// Highwater's files, in the order of a [`StorageSet`]'s devices.
const FILES: [&str; 3] = ["data", "redo", "doublewrite"];

/// The template in a folder; loads it if it does not exist.
pub(super) fn in_folder(workspace: &mut Workspace<'_>, spec: &PlaceSpec<'_>) -> Result<PathBuf> {
    let key = key(spec);
    if let Some(folder) = workspace.template(&key) {
        return Ok(folder);
    }
    let folder = workspace.new_folder("template");
    workspace.step("loading the data")?;
    load(workspace, spec, Running::start(spec.installed, &Files::in_folder(&folder), &load_settings(spec))?)?;
    workspace.keep_template(key, folder.clone());
    Ok(folder)
}

/// The template copied from a device of that size (rule 2); loads it if it does not exist.
pub(super) fn on_device(
    workspace: &mut Workspace<'_>,
    spec: &PlaceSpec<'_>,
    sized_device: &SizedDevice,
    room: Room,
) -> Result<PathBuf> {
    let key = format!("{} {room:?}", key(spec));
    if let Some(folder) = workspace.template(&key) {
        return Ok(folder);
    }
    let folder = workspace.new_folder("template");
    workspace.step("loading the data")?;
    let disk = sized_device.new_engine_disk(preset_of(spec)?, room, redo_room_bytes(spec))?;
    load(workspace, spec, Running::on_storage(disk.set(), disk.disk().clone(), &load_settings(spec))?)?;
    std::fs::create_dir_all(&folder).map_err(|e| Error::file(&folder, e))?;
    let set = disk.set();
    for (name, device) in FILES.into_iter().zip([&set.data, &set.redo, &set.doublewrite]) {
        copy_from_device(&**device, &folder.join(name))?;
    }
    workspace.keep_template(key, folder.clone());
    Ok(folder)
}

/// Loads the data into a subject, and stops it.
fn load(workspace: &mut Workspace<'_>, spec: &PlaceSpec<'_>, running: Running) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let progress = workspace.load(spec.load.units());
    let loaded = running.load(spec.load, threads, &*progress);
    let stopped = running.stop();
    loaded?;
    stopped
}

/// The key of a template: everything that it depends on.
fn key(spec: &PlaceSpec<'_>) -> String {
    let (kind, page_bytes, log_bytes) = (spec.installed.kind, spec.settings.page_bytes, load_log_bytes(spec));
    format!("{kind} {log_bytes} {page_bytes} {:?} {:?}", identity(spec.load), spec.load_options)
}

/// Highwater's log keeps its first size. Servers create a new log when the size changes, but a sized device has no
/// space for a larger one.
fn load_log_bytes(spec: &PlaceSpec<'_>) -> u64 {
    match spec.installed.kind.is_server() && spec.sized_device.is_none() {
        true => SERVER_LOAD_LOG_BYTES,
        false => spec.settings.log_bytes,
    }
}

/// The options of a load that change the loaded data.
fn identity(load: &Load) -> String {
    match load {
        Load::Sysbench(config) => {
            format!("sysbench {} {} {}", config.tables, config.table_size, config.secondary_indexes)
        }
        Load::Tpcc(config) => format!("tpcc {} {}", config.warehouses, config.load_seed),
        Load::UserTable(_) => "user-table".into(),
        Load::Ycsb(config) => format!("ycsb {}", config.records),
    }
}

/// Settings that load fast: nothing needs to be durable before the end.
fn load_settings(spec: &PlaceSpec<'_>) -> Settings {
    Settings {
        buffer_pool_bytes: (spec.data_bytes + spec.data_bytes / 4).clamp(64 << 20, 2 << 30),
        page_bytes: spec.settings.page_bytes,
        log_bytes: load_log_bytes(spec),
        flush_log_at_trx_commit: 0,
        flush_neighbors: "0".into(),
        io_capacity: 20_000,
        extra: spec.load_options.clone(),
        ..Settings::default()
    }
}

/// Whether a file of a template is redo log.
pub(super) fn is_log(name: &str) -> bool {
    name == "redo" || name.starts_with("ib_logfile")
}

/// Copies Highwater's files from a folder onto devices.
pub(super) fn put_on_devices(from: &Path, set: &StorageSet) -> Result<()> {
    let placements = [Placement::Other, Placement::Redo, Placement::Doublewrite];
    let devices = [&set.data, &set.redo, &set.doublewrite].into_iter().zip(placements);
    for (name, (device, placement)) in FILES.into_iter().zip(devices) {
        copy_into_device(&from.join(name), &**device, placement)?;
    }
    Ok(())
}

fn copy_into_device(from: &Path, device: &dyn Device, placement: Placement) -> Result<()> {
    let failed = |e| Error::file(from, e);
    let mut file = File::open(from).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    device.set_len_bytes(len).map_err(highwater::Error::from)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    while offset < len {
        interrupt::check()?;
        let part = &mut piece[..(len - offset).min(PIECE_BYTES as u64) as usize];
        file.read_exact(part).map_err(failed)?;
        // What was never written reads as zeros.
        if part.iter().any(|byte| *byte != 0) {
            device.write_at(offset, part, placement).map_err(highwater::Error::from)?;
        }
        offset += part.len() as u64;
    }
    device.sync().map_err(highwater::Error::from)?;
    Ok(())
}

/// Copies a file from a device; zeros become holes.
fn copy_from_device(device: &dyn Device, to: &Path) -> Result<()> {
    let failed = |e| Error::file(to, e);
    let file = File::create(to).map_err(failed)?;
    let len = device.len_bytes().map_err(highwater::Error::from)?;
    file.set_len(len).map_err(failed)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut offset = 0;
    while offset < len {
        interrupt::check()?;
        let part = &mut piece[..(len - offset).min(PIECE_BYTES as u64) as usize];
        device.read_at(offset, part).map_err(highwater::Error::from)?;
        if part.iter().any(|byte| *byte != 0) {
            file.write_all_at(part, offset).map_err(failed)?;
        }
        offset += part.len() as u64;
    }
    Ok(())
}
