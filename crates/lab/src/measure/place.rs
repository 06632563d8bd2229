//! Where a subject keeps its files while it is measured.
//!
//! | device | servers | Highwater |
//! |---|---|---|
//! | `local` | a folder below the work folder | the same |
//! | a preset | the emulated device under ext4, mounted | the emulated device in process, or mounted too if asked for |
//!
//! Rules
//! 1. Data are loaded once for each subject and load, into a *template* folder on this machine's disk; every
//!    measurement begins with a copy of it, so that none depends on another. Copies are synced before
//!    anything is measured.
//! 2. Emulated devices take real time. They keep their bytes in memory, or above [`IN_MEMORY_BYTES`] in a file of the
//!    work folder.
//! 3. The redo log may have a place of its own: another folder, or another emulated device.
//! 4. A server's system tablespace (`ibdata1`: change buffer, doublewrite buffer, undo) may lie on a file system in
//!    memory.
//! 5. On the virtual clock requests to the emulated device, in process, take no time; the device adds the time up. With
//!    one request at a time, as on a hard disk, that is the time that they would have taken.
//! 6. A place removes what it made when it is closed or dropped.

use super::ram_disk::RamDisk;
use super::{DeviceChoice, Workspace};
use crate::subject::{Files, Installed, Load, Running, Settings, copy_apart, copy_file};
use highwater_bench::{Error, Result};
use highwater_device::adapter::{EngineDisk, EngineDiskOptions};
use highwater_device::disk::{Disk, DiskOptions, TimeMode};
use highwater_device::mount::traffic::PageCount;
use highwater_device::mount::{Mount, MountOptions};
use highwater_device::preset;
use highwater_device::ssd::counters::Counters;
use highwater_storage::{Device, Placement, StorageSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Devices of larger databases keep their bytes in a file.
const IN_MEMORY_BYTES: u64 = 4 << 30;
const MIN_CAPACITY_BYTES: u64 = 2 << 30;
/// An emulated device is this many times as large as the database.
const CAPACITY_FACTOR: u64 = 4;
/// Copies go in pieces of this many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// What a measurement needs.
#[derive(Clone, Debug)]
pub struct Want<'a> {
    /// The subject.
    pub installed: &'a Installed,
    /// What is to be in its tables.
    pub load: &'a Load,
    /// How it is set up.
    pub settings: &'a Settings,
    /// Where its files are to be.
    pub device: &'a DeviceChoice,
    /// Where its log is to be, if apart from the data.
    pub log: Option<&'a DeviceChoice>,
    /// About how large the database is and will become, in bytes.
    pub data_bytes: u64,
    /// Whether Highwater too is to use a mounted file system instead of the device itself.
    pub mounted: bool,
    /// Whether a device in process only adds its time up.
    pub virtual_time: bool,
    /// Whether a mounted device recognises the pages that pass.
    pub classify: bool,
    /// Whether a server's system tablespace lies in memory.
    pub system_in_memory: bool,
}

/// A place, made for one measurement.
pub struct Place {
    data: At,
    log: Option<At>,
    /// Holds a server's system tablespace.
    system: Option<RamDisk>,
    installed: Installed,
    settings: Settings,
}

/// One of a place's two parts.
enum At {
    Folder(PathBuf),
    Mounted(Box<Mount>, PathBuf),
    InProcess(EngineDisk),
}

impl At {
    fn folder(&self) -> Option<PathBuf> {
        match self {
            At::Folder(path) => Some(path.clone()),
            // ext4 has a lost+found of its own in its root.
            At::Mounted(mount, _) => Some(mount.mountpoint().join("db")),
            At::InProcess(_) => None,
        }
    }

    fn disk(&self) -> Option<&Disk> {
        match self {
            At::Folder(_) => None,
            At::Mounted(mount, _) => Some(mount.disk()),
            At::InProcess(disk) => Some(disk.disk()),
        }
    }
}

impl Drop for At {
    fn drop(&mut self) {
        let own = match self {
            At::Folder(path) => path,
            At::Mounted(mount, own) => {
                // Again when the mount itself is dropped, and by its guard.
                let _ = mount.unmount();
                own
            }
            At::InProcess(_) => return,
        };
        // What remains is in the work folder, which the runner removes.
        let _ = std::fs::remove_dir_all(own);
    }
}

impl Place {
    /// Makes the place and copies the loaded data there; loads them first if no template has them.
    ///
    /// # Errors
    /// The subject's while it loads, the device's, the file system's.
    pub fn prepare(workspace: &mut Workspace<'_>, want: &Want<'_>) -> Result<Place> {
        let template = template(workspace, want)?;
        workspace.step("copying the data")?;
        let data = at(workspace, want, want.device, "data")?;
        let log = want.log.map(|device| at(workspace, want, device, "log")).transpose()?;
        let system = want.system_in_memory.then(|| RamDisk::new(&workspace.new_folder("ram"))).transpose()?;
        let place = Place { data, log, system, installed: want.installed.clone(), settings: want.settings.clone() };
        place.fill(&template)?;
        Ok(place)
    }

    fn fill(&self, template: &Path) -> Result<()> {
        match self.storage() {
            Some(set) => copy_into_devices(template, &set),
            None => {
                let data = self.data.folder().unwrap_or_default();
                let log = self.log.as_ref().and_then(At::folder);
                let log = log.as_deref().unwrap_or(&data);
                let system = self.system.as_ref().map(RamDisk::path);
                copy_database(template, &data, log, system)
            }
        }
    }

    /// The devices, where Highwater uses them itself.
    fn storage(&self) -> Option<StorageSet> {
        let At::InProcess(disk) = &self.data else { return None };
        let set = disk.set();
        match &self.log {
            Some(At::InProcess(log)) => Some(StorageSet::of_devices(set.data, log.set().redo, set.doublewrite)),
            _ => Some(set),
        }
    }

    /// Starts the subject there.
    ///
    /// # Errors
    /// The subject's.
    pub fn start(&self) -> Result<Running> {
        if let (Some(set), At::InProcess(disk)) = (self.storage(), &self.data) {
            return Running::on_storage(set, disk.disk().clone(), &self.settings);
        }
        let data = self.data.folder().unwrap_or_default();
        let system = self.system.as_ref().map(|disk| disk.path().to_path_buf());
        let files = Files { data, log: self.log.as_ref().and_then(At::folder), system };
        Running::start(&self.installed, &files, &self.settings)
    }

    /// What the data's emulated device counted so far; none on this machine's disk.
    pub fn data_counters(&self) -> Option<Counters> {
        self.data.disk().map(Disk::counters)
    }

    /// Pages that passed the data's mounted device so far, by kind; none if they are not classified.
    pub fn data_pages(&self) -> Vec<PageCount> {
        match &self.data {
            At::Mounted(mount, _) => mount.pages(),
            At::Folder(_) | At::InProcess(_) => Vec::new(),
        }
    }

    /// What the log's emulated device counted so far; none without one.
    pub fn log_counters(&self) -> Option<Counters> {
        self.log.as_ref().and_then(At::disk).map(Disk::counters)
    }

    /// Unmounts and removes everything.
    ///
    /// # Errors
    /// What could not be unmounted.
    pub fn close(mut self) -> Result<()> {
        for part in [Some(&mut self.data), self.log.as_mut()].into_iter().flatten() {
            if let At::Mounted(mount, _) = part {
                mount.unmount()?;
            }
        }
        self.system.as_mut().map_or(Ok(()), RamDisk::close)
    }
}

/// The folder that holds the loaded data; loads them if it is not there yet.
fn template(workspace: &mut Workspace<'_>, want: &Want<'_>) -> Result<PathBuf> {
    let key = template_key(want);
    if let Some(folder) = workspace.template(&key) {
        return Ok(folder);
    }
    let folder = workspace.new_folder("template");
    workspace.step("loading the data")?;
    let running = Running::start(want.installed, &Files::in_folder(&folder), &load_settings(want))?;
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let progress = workspace.load(want.load.units());
    let loaded = running.load(want.load, threads, &*progress);
    let stopped = running.stop();
    loaded?;
    stopped?;
    workspace.keep_template(key, folder.clone());
    Ok(folder)
}

/// What a template depends on. Highwater's log keeps its first size; servers make a new one when its size changes.
fn template_key(want: &Want<'_>) -> String {
    let log_bytes = if want.installed.kind.is_server() { 0 } else { want.settings.log_bytes };
    format!("{} {log_bytes} {} {:?}", want.installed.kind, want.settings.page_bytes, identity(want.load))
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
fn load_settings(want: &Want<'_>) -> Settings {
    let server = want.installed.kind.is_server();
    Settings {
        buffer_pool_bytes: (want.data_bytes + want.data_bytes / 4).clamp(64 << 20, 2 << 30),
        page_bytes: want.settings.page_bytes,
        log_bytes: if server { 256 << 20 } else { want.settings.log_bytes },
        flush_log_at_trx_commit: 0,
        flush_neighbors: "0".into(),
        io_capacity: 20_000,
        ..Settings::default()
    }
}

/// A new, empty part of a place.
fn at(workspace: &mut Workspace<'_>, want: &Want<'_>, device: &DeviceChoice, role: &str) -> Result<At> {
    let own = workspace.new_folder(role);
    let DeviceChoice::Preset(name) = device else {
        std::fs::create_dir_all(&own).map_err(|e| Error::file(&own, e))?;
        return Ok(At::Folder(own));
    };
    let disk = disk_options(want, name, &own)?;
    if !want.installed.kind.is_server() && !want.mounted {
        let mut options = EngineDiskOptions::new(disk);
        options.redo_bytes = options.redo_bytes.max(want.settings.log_bytes + (1 << 20));
        return Ok(At::InProcess(EngineDisk::new(&options)?));
    }
    let mountpoint = own.join("mnt");
    std::fs::create_dir_all(&mountpoint).map_err(|e| Error::file(&mountpoint, e))?;
    let mount = Mount::new(&MountOptions { classify: want.classify, ..MountOptions::new(disk, &mountpoint) })?;
    Ok(At::Mounted(Box::new(mount), own))
}

fn disk_options(want: &Want<'_>, preset: &str, own: &Path) -> Result<DiskOptions> {
    let config = preset::find(preset)?.config();
    let native = u64::from(config.capacity_blocks()) * 4096;
    let room = want.data_bytes * CAPACITY_FACTOR + 2 * want.settings.log_bytes;
    let capacity = room.max(MIN_CAPACITY_BYTES).next_power_of_two().min(native);
    let mut options = DiskOptions::new(config.scaled_to((capacity / 4096) as u32));
    options.time = if want.virtual_time { TimeMode::Virtual } else { TimeMode::Real };
    if want.data_bytes > IN_MEMORY_BYTES {
        std::fs::create_dir_all(own).map_err(|e| Error::file(own, e))?;
        options.backing = Some(own.join("disk"));
    }
    Ok(options)
}

/// The file with InnoDB's change buffer.
const SYSTEM_TABLESPACE: &str = "ibdata1";

/// Whether a file of a template is redo log.
fn is_log(name: &str) -> bool {
    name == "redo" || name.starts_with("ib_logfile")
}

/// Copies a folder with everything below it; log files in its root go to `log`, the system tablespace of a server, in
/// its folder `db`, to `system`.
fn copy_database(from: &Path, to: &Path, log: &Path, system: Option<&Path>) -> Result<()> {
    std::fs::create_dir_all(log).map_err(|e| Error::file(log, e))?;
    copy_apart(from, to, &|name| if is_log(name) { log } else { to })?;
    let Some(system) = system else { return Ok(()) };
    let (file, moved) = (to.join("db").join(SYSTEM_TABLESPACE), system.join(SYSTEM_TABLESPACE));
    copy_file(&file, &moved)?;
    std::fs::remove_file(&file).map_err(|e| Error::file(&file, e))
}

/// Copies Highwater's three files from a folder onto devices.
fn copy_into_devices(from: &Path, set: &StorageSet) -> Result<()> {
    let files = [("data", &set.data, Placement::Other), ("redo", &set.redo, Placement::Redo)];
    for (name, device, placement) in
        files.into_iter().chain([("doublewrite", &set.doublewrite, Placement::Doublewrite)])
    {
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
        highwater_bench::interrupt::check()?;
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

#[cfg(test)]
#[path = "place_test.rs"]
mod tests;
