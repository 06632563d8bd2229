//! The emulated SSD that a measurement runs on, if one is asked for, and what it says of flash.
//!
//! Rules
//! 1. The device is that of the preset, as large as the rows ask for ([`capacity_bytes`]), the same for every engine:
//!    one that needs less space leaves the drive more room. It was overwritten at random and then discarded as a whole,
//!    as making a file system does; ext4 is on it and discards what it frees. It takes no time: bytes are compared.
//! 2. Bytes of flash of a transaction: those that the device took until the database was closed, times the device's
//!    write amplification from the start of the measurement's process to its end, warm-up included.

use super::plan::{Point, data};
use crate::experiment::metric::{self, Metric};
use crate::experiment::{DeviceChoice, Plan};
use highwater_bench::compared::Compared;
use highwater_bench::{Error, Result};
use highwater_device::age::Age;
use highwater_device::disk::DiskOptions;
use highwater_device::mount::{Mount, MountOptions};
use highwater_device::preset;
use highwater_device::ssd::counters::Counters;
use std::path::{Path, PathBuf};

/// What ext4 takes, and logs whose size does not follow from the data.
const BESIDE_BYTES: u64 = 384 << 20;
const BLOCK_BYTES: u64 = 4096;

/// Room on the device: for TPC-C one and a half times the rows, for other data three times, as that engine needs which
/// takes most (measured: 1.2 and 2.3 times beyond memory); redb's benchmark grows to four times.
pub(super) fn capacity_bytes(plan: &Plan, point: &Point<'_>) -> u64 {
    let rows = data(plan.scale, point);
    let rows = match point.workload {
        // At least one warehouse.
        Compared::Tpcc => rows.max(100 << 20) / 2 * 3,
        Compared::Redb => rows * 4,
        _ => rows * 3,
    };
    (rows + BESIDE_BYTES).next_multiple_of(BLOCK_BYTES)
}

/// An emulated SSD with a file system, mounted for one measurement.
pub(super) struct Flash {
    mount: Mount,
    before: Counters,
}

impl Flash {
    /// Mounts one below `folder`; none on this machine's disk.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn mount(plan: &Plan, point: &Point<'_>, folder: &Path) -> Result<Option<Flash>> {
        let DeviceChoice::Preset(name) = &plan.device else { return Ok(None) };
        let blocks = capacity_bytes(plan, point) / BLOCK_BYTES;
        let config = preset::find(name)?.config().at_capacity(blocks as u32)?;
        let age = Age { overwrites: 1.0, seed: plan.seed, ..Age::default() };
        let disk = DiskOptions { age, ..DiskOptions::new(config) };
        let mountpoint = folder.join("ssd");
        std::fs::create_dir_all(&mountpoint).map_err(|e| Error::file(&mountpoint, e))?;
        let options = MountOptions { classify: false, discard: true, ..MountOptions::new(disk, mountpoint) };
        let mount = Mount::new(&options)?;
        let before = mount.disk().counters();
        Ok(Some(Flash { mount, before }))
    }

    /// Where a database can be made.
    pub(super) fn folder(&self) -> PathBuf {
        self.mount.mountpoint().to_path_buf()
    }

    /// Counts from now on.
    pub(super) fn start(&mut self) {
        self.before = self.mount.disk().counters();
    }

    /// What happened since [`Flash::start`] in the terms of the results; `host` is what a transaction wrote until the
    /// database was closed.
    pub(super) fn values(&self, host: f64) -> [(Metric, f64); 2] {
        let amplification = self.mount.disk().counters().since(&self.before).write_amplification();
        [
            (metric::WRITE_AMPLIFICATION, amplification),
            (metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION, host * amplification),
        ]
    }

    /// Unmounts it; what was on it is gone.
    ///
    /// # Errors
    /// What could not be unmounted.
    pub(super) fn close(mut self) -> Result<()> {
        Ok(self.mount.unmount()?)
    }
}
