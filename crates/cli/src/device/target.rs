//! `bench --device PRESET|FILE`: a database on an emulated disk in this process.
//!
//! Rules
//! 1. The disk is new, aged, and removed afterwards: its data are in memory.
//! 2. The redo log gets the size of its option; data get the rest.

use super::parsed;
use crate::engine_options::size;
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use highwater::{Database, Options};
use highwater_bench::interrupt;
use highwater_bench::store::embedded::Embedded;
use highwater_device::adapter::{EngineDisk, EngineDiskOptions, PlacementStreams};
use highwater_device::age::Age;
use highwater_device::disk::{DiskOptions, TimeMode};
use highwater_device::preset::DeviceConfig;
use highwater_device::preset_file;
use highwater_device::replay::options::blocks_of;

/// The largest default: memory holds what is written.
pub(crate) const DEFAULT_CAPACITY_BYTES: u64 = 4 << 30;
/// The preset of that name, or the device of that file, at the capacity asked for, by default its own up to
/// [`DEFAULT_CAPACITY_BYTES`].
///
/// # Errors
/// [`Failure::Usage`] for a preset that there is not, a file that describes no device, and a capacity too small for it.
pub(crate) fn device_config(name: &str, capacity_bytes: Option<u64>) -> Result<DeviceConfig, Failure> {
    let native = preset_file::named(name)?;
    let native_bytes = u64::from(native.capacity_blocks()) * 4096;
    let blocks = blocks_of(capacity_bytes.unwrap_or_else(|| native_bytes.min(DEFAULT_CAPACITY_BYTES)), "the capacity")?;
    Ok(if blocks == native.capacity_blocks() { native } else { native.at_capacity(blocks)? })
}

/// Space for the headers of the redo log, in addition to its size.
const REDO_SLACK_BYTES: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Clock {
    /// Each request takes the time that the model computes
    Real,
    /// Requests complete at once; the model's time is only added up
    Virtual,
}

/// The emulated disk of a benchmark.
#[derive(Args, Clone, Debug)]
pub(crate) struct TargetOptions {
    /// Run on a new emulated device in memory instead of --dir: a preset (`highwater device list`), or a file as
    /// `highwater device list PRESET --config` prints it
    #[arg(long, value_name = "PRESET|FILE", conflicts_with_all = ["dir", "fresh"])]
    pub device: Option<String>,
    /// Scale the device to this capacity, with the same ratios [default: the preset's capacity, at most 4G]
    #[arg(long, value_name = "SIZE", conflicts_with = "dir", value_parser = size)]
    capacity: Option<u64>,
    /// Which clock times the device's requests
    #[arg(long, default_value = "real", conflicts_with = "dir")]
    clock: Clock,
    /// What the flash holds at the start: none (empty), fill (written once), or random:N (written once, then N times
    /// the capacity overwritten at random)
    #[arg(long, default_value = "fill", conflicts_with = "dir", value_parser = parsed::<Age>)]
    age: Age,
    /// Stream of each kind of write: one (all in stream 0), spread (over all streams of the device), or a list such as
    /// redo=1,doublewrite=2 [default: spread]
    #[arg(long, value_name = "STREAMS", conflicts_with = "dir", value_parser = parsed::<PlacementStreams>)]
    placement: Option<PlacementStreams>,
}

impl TargetOptions {
    /// The database on a new disk of preset `name`.
    ///
    /// # Errors
    /// [`Failure::Usage`] for options that make no disk.
    pub(crate) fn open(&self, name: &str, options: &Options) -> Result<Embedded, Failure> {
        if options.log_dir.is_some() {
            return Err(Failure::Usage("--log-dir names a folder; with --device the redo log is on the device".into()));
        }
        let mut stop = |_| if interrupt::is_requested() { Err(highwater_device::DeviceError::Stopped) } else { Ok(()) };
        let engine_disk = EngineDisk::with_progress(&self.engine_disk(name, options)?, &mut stop)?;
        let database = Database::open_storage(engine_disk.set(), options.clone())?;
        Ok(Embedded::on_disk(database, engine_disk.disk().clone()))
    }

    fn engine_disk(&self, name: &str, options: &Options) -> Result<EngineDiskOptions, Failure> {
        let config = device_config(name, self.capacity)?;
        let time = if self.clock == Clock::Real { TimeMode::Real } else { TimeMode::Virtual };
        let disk = DiskOptions { time, age: self.age, ..DiskOptions::new(config) };
        let mut made = EngineDiskOptions::new(disk);
        made.redo_bytes = options.log_file_size + REDO_SLACK_BYTES;
        made.streams = self.placement.unwrap_or(made.streams);
        Ok(made)
    }

    /// The device's options, for the result's configuration.
    pub(crate) fn describe(&self, name: &str) -> Vec<(String, String)> {
        let clock = if self.clock == Clock::Real { "real" } else { "virtual" };
        vec![
            ("device".into(), name.into()),
            ("device_clock".into(), clock.into()),
            ("device_age".into(), format!("filled {}, overwritten {} times", self.age.fill, self.age.overwrites)),
        ]
    }
}
