//! An emulated SSD sized for the data: the loaded data fill a given share of its space, and it has a given share of
//! spare flash.
//!
//! Rules
//! 1. The data are the loaded pages that are not zeros, and the growth of the run. The space for pages is their size
//!    divided by the fill; the other files (redo log, doublewrite file, a file system's own records) are added.
//! 2. The database that [`SizedDevice::sized_by`] describes determines the size, so a database with another page store
//!    is measured on the same device.
//! 3. The device is filled and overwritten at random, and then discarded as a whole, as by the creation of a file
//!    system. Discards stay on. So exactly the blocks that the database uses are valid.
//! 4. An erase unit spans as many dies as on the whole device: its flash pages shrink instead, and are programmed in
//!    proportionally less time. Its size leaves space for the open units of all streams with the least spare flash, and
//!    does not depend on the spare flash that the device has.
//! 5. Writes of up to 16 KiB are atomic wherever they begin, whatever the preset says.

use super::template::is_log;
use crate::subject::Settings;
use highwater_bench::{Error, Result, interrupt};
use highwater_device::adapter::{EngineDisk, EngineDiskOptions, PlacementStreams};
use highwater_device::age::Age;
use highwater_device::disk::{DiskOptions, TimeMode};
use highwater_device::preset::{self, DeviceConfig};
use highwater_device::ssd::config::{MIN_BUFFER_BLOCKS, SsdConfig};
use std::fs::File;
use std::io::Read;
use std::path::Path;

const BLOCK_BYTES: u64 = 4096;
/// Files are read in pieces of this many bytes: whole pages of every size.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes of ext4's journal and metadata on a device of a few GiB.
pub(super) const FILE_SYSTEM_BYTES: u64 = 64 << 20;
/// The least share of spare flash.
const MIN_SPARE: f64 = 0.07;
/// Spare erase units: one open for the writes and one for the copies of each of 16 streams, the reserve, and some more,
/// since a unit of whole flash pages may be half as large again as it should be.
const SPARE_UNITS: f64 = 60.0;
const MIN_UNIT_BYTES: u64 = 256 << 10;
const ATOMIC_BYTES: u32 = 16 << 10;

/// An emulated SSD that the loaded data fill to a given share.
#[derive(Clone, Debug)]
pub struct SizedDevice {
    /// The settings of the database whose loaded pages determine the size.
    pub sized_by: Settings,
    /// Approximate growth by the run.
    pub added_bytes: u64,
    /// Share of the space for data that these use.
    pub fill: f64,
    /// Spare flash over the device's capacity.
    pub spare: f64,
    /// Minimum space for copies of pages, such as a journal, if the loaded files do not include it.
    pub copies_bytes: u64,
    /// The placements with separate streams.
    pub streams: Streams,
    /// Most bytes of an erase unit.
    pub largest_unit_bytes: u64,
    /// Seed of the random overwrites.
    pub seed: u64,
}

/// The placements with separate streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// None: everything goes to one stream.
    One,
    /// The journal of page images; all else goes to one stream.
    Journal,
    /// Each, as far as the device's streams reach.
    Each,
}

/// The required space of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub data_bytes: u64,
    /// For copies of pages on their way.
    pub doublewrite_bytes: u64,
}

impl SizedDevice {
    /// The space that `folder`, with the loaded files of [`SizedDevice::sized_by`], requires.
    pub(super) fn room(&self, folder: &Path) -> Result<Room> {
        let loaded = loaded_bytes(folder, self.sized_by.page_bytes as usize)?;
        let data_bytes = ((loaded + self.added_bytes) as f64 / self.fill) as u64;
        let data_bytes = data_bytes.next_multiple_of(BLOCK_BYTES);
        let doublewrite_bytes = std::fs::metadata(folder.join(DOUBLEWRITE)).map_or(0, |file| file.len());
        let doublewrite_bytes = doublewrite_bytes.max(self.copies_bytes);
        Ok(Room { data_bytes, doublewrite_bytes: doublewrite_bytes.next_multiple_of(BLOCK_BYTES) })
    }

    /// The disk of that preset and capacity.
    pub(super) fn disk(&self, preset: &str, capacity_bytes: u64, time: TimeMode) -> Result<DiskOptions> {
        let DeviceConfig::Ssd(native) = preset::find(preset)?.config() else {
            return Err(Error::Usage(format!("{preset} has no spare flash: take an SSD")));
        };
        let unit_bytes = unit_bytes(capacity_bytes, self.largest_unit_bytes);
        let mut ssd = resized(native, capacity_bytes, unit_bytes).with_overprovisioning(self.spare);
        ssd.promises.atomic_write_bytes = ATOMIC_BYTES;
        ssd.promises.atomic_anywhere = true;
        let age = Age { overwrites: 1.0, seed: self.seed, ..Age::default() };
        Ok(DiskOptions { time, age, ..DiskOptions::new(DeviceConfig::Ssd(ssd)) })
    }
}

impl SizedDevice {
    /// The disk with Highwater's files, aged, in process.
    pub(super) fn engine_disk(&self, preset: &str, room: Room, redo_bytes: u64, time: TimeMode) -> Result<EngineDisk> {
        let capacity = room.capacity_bytes(redo_bytes);
        let disk = self.prepared(self.disk(preset, capacity, time)?, room, redo_bytes)?;
        // Before the first file is made: what ageing wrote is free, as after making a file system.
        disk.disk().discard(0, capacity)?;
        Ok(disk)
    }

    /// A new disk of the same kind, without timing: to load data on.
    pub(super) fn new_engine_disk(&self, preset: &str, room: Room, redo_bytes: u64) -> Result<EngineDisk> {
        let disk = self.disk(preset, room.capacity_bytes(redo_bytes), TimeMode::Off)?;
        self.prepared(DiskOptions { age: Age::NONE, ..disk }, room, redo_bytes)
    }

    fn prepared(&self, disk: DiskOptions, room: Room, redo_bytes: u64) -> Result<EngineDisk> {
        let doublewrite_bytes = room.doublewrite_bytes;
        let mut options = EngineDiskOptions { redo_bytes, doublewrite_bytes, ..EngineDiskOptions::new(disk) };
        match self.streams {
            Streams::One => options.streams = PlacementStreams::ONE,
            Streams::Journal => options.streams = "journal=1".parse()?,
            Streams::Each => {}
        }
        Ok(EngineDisk::new(&options)?)
    }
}

impl Room {
    /// The capacity of a disk with Highwater's files.
    fn capacity_bytes(&self, redo_bytes: u64) -> u64 {
        EngineDisk::capacity_bytes(redo_bytes, self.doublewrite_bytes, self.data_bytes)
    }
}

/// Bytes of an erase unit (rule 4).
fn unit_bytes(capacity_bytes: u64, largest: u64) -> u64 {
    let max = (capacity_bytes as f64 * MIN_SPARE / SPARE_UNITS) as u64;
    let power_of_two = 1 << max.max(1).ilog2();
    std::cmp::min(power_of_two, largest).max(MIN_UNIT_BYTES)
}

/// The device with another capacity and other erase units, as wide as before (rule 4).
fn resized(mut ssd: SsdConfig, capacity_bytes: u64, unit_bytes: u64) -> SsdConfig {
    let slots = (unit_bytes / BLOCK_BYTES) as u32;
    let capacity_blocks = (capacity_bytes / BLOCK_BYTES) as u32;
    let ratio = f64::from(capacity_blocks) / f64::from(ssd.capacity_blocks);
    let geometry = &mut ssd.geometry;
    while geometry.slots_per_program() * geometry.dies_per_unit > slots {
        let before = geometry.slots_per_program();
        if geometry.planes_per_die.is_multiple_of(2) {
            geometry.planes_per_die /= 2;
        } else if geometry.page_bytes > BLOCK_BYTES as u32 {
            geometry.page_bytes = (geometry.page_bytes / 2).next_multiple_of(BLOCK_BYTES as u32);
        } else {
            break;
        }
        let share = f64::from(geometry.slots_per_program()) / f64::from(before);
        let timing = &mut ssd.timing;
        for ns in [&mut timing.program_ns, &mut timing.erase_ns] {
            *ns = (f64::from(*ns) * share) as u32;
        }
    }
    let mut ssd = ssd.with_erase_units(slots);
    let buffer = (f64::from(ssd.write_buffer_blocks) * ratio) as u32;
    ssd.write_buffer_blocks = buffer.max(MIN_BUFFER_BLOCKS).min(ssd.write_buffer_blocks);
    ssd.capacity_blocks = capacity_blocks;
    ssd
}

/// The file with copies of pages on their way.
const DOUBLEWRITE: &str = "doublewrite";

/// Bytes of the pages of all files below a folder that are not zeros throughout, logs and copies apart.
fn loaded_bytes(folder: &Path, page_bytes: usize) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder).map_err(|e| Error::file(folder, e))? {
        interrupt::check()?;
        let entry = entry.map_err(|e| Error::file(folder, e))?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type().map_err(|e| Error::file(&path, e))?;
        if kind.is_dir() {
            bytes += loaded_bytes(&path, page_bytes)?;
        } else if kind.is_file() && !is_log(&name) && name != DOUBLEWRITE {
            bytes += used_bytes(&path, page_bytes).map_err(|e| Error::file(&path, e))?;
        }
    }
    Ok(bytes)
}

fn used_bytes(path: &Path, page_bytes: usize) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let mut left = file.metadata()?.len();
    let mut piece = vec![0; PIECE_BYTES];
    let mut bytes = 0;
    while left > 0 {
        let part = &mut piece[..left.min(PIECE_BYTES as u64) as usize];
        file.read_exact(part)?;
        bytes += part.chunks(page_bytes).filter(|page| page.iter().any(|byte| *byte != 0)).count() * page_bytes;
        left -= part.len() as u64;
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sized_device(spare: f64) -> SizedDevice {
        SizedDevice {
            sized_by: Settings { page_bytes: 8192, ..Settings::default() },
            added_bytes: 8192,
            fill: 0.8,
            spare,
            copies_bytes: 0,
            streams: Streams::Each,
            largest_unit_bytes: 1 << 20,
            seed: 1,
        }
    }

    #[test]
    fn the_device_has_the_spare_flash_and_the_width_asked_for() {
        for preset in ["samsung-pm953-960gb", "datacenter-nvme", "simple-2gb"] {
            let DeviceConfig::Ssd(native) = preset::find(preset).unwrap().config() else { panic!("an SSD") };
            for (mib, spares) in [(130, &[0.15][..]), (300, &[0.07, 0.15, 0.28]), (2800, &[0.07, 0.15, 0.28])] {
                let units = spares.iter().map(|spare| {
                    let disk = sized_device(*spare).disk(preset, mib << 20, TimeMode::Off).unwrap();
                    let DeviceConfig::Ssd(ssd) = disk.config else { panic!("an SSD") };
                    ssd.validate().unwrap_or_else(|e| panic!("{preset}, {mib} MiB, {spare}: {e}"));
                    assert_eq!(u64::from(ssd.capacity_blocks), mib << 8);
                    assert!((ssd.overprovisioning() - spare).abs() < 0.01, "{preset}: {}", ssd.overprovisioning());
                    let (now, before) = (&ssd.geometry, &native.geometry);
                    assert_eq!((now.dies_per_unit, now.dies()), (before.dies_per_unit, before.dies()));
                    let speed =
                        |c: &SsdConfig| f64::from(c.geometry.slots_per_program()) / f64::from(c.timing.program_ns);
                    assert!((speed(&ssd) / speed(&native) - 1.0).abs() < 0.01, "{preset}: speed of programming");
                    let erasing = |c: &SsdConfig| {
                        f64::from(c.timing.erase_ns) / f64::from(c.geometry.slots_per_unit() / c.geometry.dies_per_unit)
                    };
                    assert!((erasing(&ssd) / erasing(&native) - 1.0).abs() < 0.01, "{preset}: time of erasing");
                    assert!(now.slots_per_unit() <= 512, "{preset}: {}", now.slots_per_unit());
                    now.slots_per_unit()
                });
                let units: Vec<u32> = units.collect();
                assert!(units.windows(2).all(|pair| pair[0] == pair[1]), "{units:?}");
            }
        }
        assert!(sized_device(0.1).disk("wd10ezex-1tb", 1 << 30, TimeMode::Off).is_err());
    }

    #[test]
    fn only_pages_that_are_used_are_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        // Three pages of 8 KiB, the second all zeros.
        let mut data = vec![0; 3 * 8192];
        data[5000] = 1;
        data[3 * 8192 - 1] = 1;
        write("data", &data);
        write("redo", &[1; 8192]);
        write("doublewrite", &[1; 5000]);
        std::fs::create_dir(folder.path().join("db")).unwrap();
        write("db/t.ibd", &[1; 8192]);
        write("db/ib_logfile0", &[1; 8192]);
        let room = sized_device(0.15).room(folder.path()).unwrap();
        // Three pages, one that is added, a quarter more.
        assert_eq!(room, Room { data_bytes: 40_960, doublewrite_bytes: 8192 });
    }
}
