//! The place of a subject's files during a measurement.
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
//! 3. The redo log may have a separate place: another folder, or another emulated device.
//! 4. A server's system tablespace (`ibdata1`: change buffer, doublewrite buffer, undo) may be on a file system in
//!    memory.
//! 5. On the virtual clock requests to the emulated device in process take no real time; the device sums the computed
//!    times. With one request at a time, as on a hard disk, the sum is the real time.
//! 6. An emulated device may be sized for the data ([`SizedDevice`]). Then zeros in a server's files are not copied, so
//!    that free space in the files is free on the device.
//! 7. A place removes its files and mounts when it is closed or dropped.

use super::ram_disk::RamDisk;
use super::sized_device::{FILE_SYSTEM_BYTES, Room, SizedDevice};
use super::template::{self, is_log};
use super::{DeviceChoice, Workspace};
use crate::subject::{Files, Installed, Load, Running, Settings, copy_apart, copy_file, copy_sparse};
use highwater_bench::{Error, Result};
use highwater_device::adapter::{EngineDisk, EngineDiskOptions};
use highwater_device::disk::{Disk, DiskOptions, TimeMode};
use highwater_device::mount::traffic::PageCount;
use highwater_device::mount::{Mount, MountOptions};
use highwater_device::preset;
use highwater_device::ssd::counters::Counters;
use highwater_storage::StorageSet;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Devices of larger databases keep their bytes in a file.
pub(crate) const IN_MEMORY_BYTES: u64 = 4 << 30;
const MIN_CAPACITY_BYTES: u64 = 2 << 30;
/// An emulated device is this many times as large as the database.
const CAPACITY_FACTOR: u64 = 4;

/// The specification of a place.
#[derive(Clone, Debug)]
pub struct PlaceSpec<'a> {
    /// The subject.
    pub installed: &'a Installed,
    /// The load of its tables.
    pub load: &'a Load,
    /// The settings of the subject.
    pub settings: &'a Settings,
    /// The device of its files.
    pub device: &'a DeviceChoice,
    /// The device of its log, if it is separate.
    pub log: Option<&'a DeviceChoice>,
    /// About how large the database is and will become, in bytes.
    pub data_bytes: u64,
    /// Whether Highwater also uses a mounted file system instead of the device itself.
    pub mounted: bool,
    /// Whether a device in process uses the virtual clock.
    pub virtual_time: bool,
    /// Whether a mounted device classifies the pages in its requests.
    pub classify: bool,
    /// Whether a server's system tablespace is in memory.
    pub system_in_memory: bool,
    /// Options of the subject with which its data are loaded, and the database made.
    pub load_options: &'a BTreeMap<String, String>,
    /// The size of the data's emulated device; `None`: ample.
    pub sized_device: Option<&'a SizedDevice>,
}

/// A place, made for one measurement.
pub struct Testbed {
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

impl Testbed {
    /// Makes the place and copies the loaded data there; loads them first if no template has them.
    ///
    /// # Errors
    /// The subject's while it loads, the device's, the file system's.
    pub fn prepare(workspace: &mut Workspace<'_>, spec: &PlaceSpec<'_>) -> Result<Testbed> {
        let room = spec.sized_device.map(|sized_device| room(workspace, spec, sized_device)).transpose()?;
        let sized_device = spec.sized_device.zip(room);
        let template = match sized_device.filter(|_| !is_mounted(spec)) {
            Some((sized_device, room)) => template::on_device(workspace, spec, sized_device, room)?,
            None => template::in_folder(workspace, spec)?,
        };
        workspace.step("copying the data")?;
        let data = match sized_device {
            Some((sized_device, room)) => sized_at(workspace, spec, sized_device, room)?,
            None => at(workspace, spec, spec.device, "data")?,
        };
        let log = spec.log.map(|device| at(workspace, spec, device, "log")).transpose()?;
        let system = spec.system_in_memory.then(|| RamDisk::new(&workspace.new_folder("ram"))).transpose()?;
        let place = Testbed { data, log, system, installed: spec.installed.clone(), settings: spec.settings.clone() };
        place.fill(&template, spec.sized_device.is_some())?;
        Ok(place)
    }

    fn fill(&self, template: &Path, sparse: bool) -> Result<()> {
        match self.storage() {
            Some(set) => template::put_on_devices(template, &set),
            None => {
                let data = self.data.folder().unwrap_or_default();
                let log = self.log.as_ref().and_then(At::folder);
                let log = log.as_deref().unwrap_or(&data);
                let system = self.system.as_ref().map(RamDisk::path);
                copy_database(template, &data, log, system, if sparse { copy_sparse } else { copy_file })
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

    /// Counters of the data's emulated device; `None` on this machine's disk.
    pub fn data_counters(&self) -> Option<Counters> {
        self.data.disk().map(Disk::counters)
    }

    /// Capacity of the data's emulated device; `None` on this machine's disk.
    pub fn data_capacity_bytes(&self) -> Option<u64> {
        self.data.disk().map(Disk::capacity_bytes)
    }

    /// Pages in the requests to the data's mounted device, by kind; none if they are not classified.
    pub fn data_pages(&self) -> Vec<PageCount> {
        match &self.data {
            At::Mounted(mount, _) => mount.pages(),
            At::Folder(_) | At::InProcess(_) => Vec::new(),
        }
    }

    /// Counters of the log's emulated device; `None` if there is none.
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

/// The space that the loaded pages of the size-determining database need.
fn room(workspace: &mut Workspace<'_>, spec: &PlaceSpec<'_>, sized_device: &SizedDevice) -> Result<Room> {
    let plain = BTreeMap::new();
    let sized_by = PlaceSpec { settings: &sized_device.sized_by, load_options: &plain, ..spec.clone() };
    sized_device.room(&template::in_folder(workspace, &sized_by)?)
}

/// The data's part of a place, new and empty, on a device made to measure.
fn sized_at(workspace: &mut Workspace<'_>, spec: &PlaceSpec<'_>, sized_device: &SizedDevice, room: Room) -> Result<At> {
    let (name, time) = (preset_of(spec)?, time_mode(spec));
    if !is_mounted(spec) {
        return Ok(At::InProcess(sized_device.engine_disk(name, room, redo_room_bytes(spec), time)?));
    }
    let capacity = (room.data_bytes + spec.settings.log_bytes + FILE_SYSTEM_BYTES).next_multiple_of(4096);
    let disk = sized_device.disk(name, capacity, time)?;
    mounted_at(workspace.new_folder("data"), spec, disk, true)
}

/// The emulated device that is made to measure.
pub(super) fn preset_of<'w>(spec: &PlaceSpec<'w>) -> Result<&'w str> {
    match spec.device {
        DeviceChoice::Preset(name) => Ok(name),
        DeviceChoice::Local => {
            Err(Error::Usage("this machine's disk cannot be made to measure: take an emulated device".into()))
        }
    }
}

/// A new, empty part of a place.
fn at(workspace: &mut Workspace<'_>, spec: &PlaceSpec<'_>, device: &DeviceChoice, role: &str) -> Result<At> {
    let own = workspace.new_folder(role);
    let DeviceChoice::Preset(name) = device else {
        std::fs::create_dir_all(&own).map_err(|e| Error::file(&own, e))?;
        return Ok(At::Folder(own));
    };
    let disk = disk_options(spec, name, &own)?;
    if is_mounted(spec) {
        return mounted_at(own, spec, disk, false);
    }
    let mut options = EngineDiskOptions::new(disk);
    options.redo_bytes = options.redo_bytes.max(redo_room_bytes(spec));
    Ok(At::InProcess(EngineDisk::new(&options)?))
}

/// Whether an emulated device is under a file system.
fn is_mounted(spec: &PlaceSpec<'_>) -> bool {
    spec.installed.kind.is_server() || spec.mounted
}

/// Space for Highwater's redo log.
pub(super) fn redo_room_bytes(spec: &PlaceSpec<'_>) -> u64 {
    spec.settings.log_bytes + (1 << 20)
}

fn mounted_at(own: PathBuf, spec: &PlaceSpec<'_>, disk: DiskOptions, discard: bool) -> Result<At> {
    let mountpoint = own.join("mnt");
    std::fs::create_dir_all(&mountpoint).map_err(|e| Error::file(&mountpoint, e))?;
    let options = MountOptions { classify: spec.classify, discard, ..MountOptions::new(disk, &mountpoint) };
    Ok(At::Mounted(Box::new(Mount::new(&options)?), own))
}

fn time_mode(spec: &PlaceSpec<'_>) -> TimeMode {
    if spec.virtual_time { TimeMode::Virtual } else { TimeMode::Real }
}

fn disk_options(spec: &PlaceSpec<'_>, preset: &str, own: &Path) -> Result<DiskOptions> {
    let config = preset::find(preset)?.config();
    let native = u64::from(config.capacity_blocks()) * 4096;
    let room = spec.data_bytes * CAPACITY_FACTOR + 2 * spec.settings.log_bytes;
    let capacity = room.max(MIN_CAPACITY_BYTES).next_power_of_two().min(native);
    let mut options = DiskOptions::new(config.scaled_to((capacity / 4096) as u32));
    options.time = time_mode(spec);
    if spec.data_bytes > IN_MEMORY_BYTES {
        std::fs::create_dir_all(own).map_err(|e| Error::file(own, e))?;
        options.backing = Some(own.join("disk"));
    }
    Ok(options)
}

/// The file with InnoDB's change buffer.
const SYSTEM_TABLESPACE: &str = "ibdata1";

/// Copies a folder with everything below it; log files in its root go to `log`, the system tablespace of a server, in
/// its folder `db`, to `system`.
fn copy_database(
    from: &Path,
    to: &Path,
    log: &Path,
    system: Option<&Path>,
    copy: fn(&Path, &Path) -> Result<()>,
) -> Result<()> {
    std::fs::create_dir_all(log).map_err(|e| Error::file(log, e))?;
    copy_apart(from, to, &|name| if is_log(name) { log } else { to }, copy)?;
    let Some(system) = system else { return Ok(()) };
    let (file, moved) = (to.join("db").join(SYSTEM_TABLESPACE), system.join(SYSTEM_TABLESPACE));
    copy_file(&file, &moved)?;
    std::fs::remove_file(&file).map_err(|e| Error::file(&file, e))
}

#[cfg(test)]
#[path = "place_test.rs"]
mod tests;
