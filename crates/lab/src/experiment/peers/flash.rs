//! The emulated SSD of a measurement, if one is requested, and its flash values.
//!
//! Rules
//! 1. The device is that of the preset, as large as the rows require ([`capacity_bytes`]), the same for every engine:
//!    an engine that needs less space leaves more free space on the drive. It is new, under ext4 that discards what it
//!    frees, and takes no time: bytes are compared.
//! 2. Bytes are those that the device counted from the start of the measurement's process, on a copy of the loaded
//!    data, to its end, after the database was closed and verified: no write is pending at the start or the end. So
//!    there is no warm-up, and all transactions in between count.

use super::plan::{Point, data};
use crate::experiment::metric::{self, Metric};
use crate::experiment::{DeviceChoice, Plan};
use crate::measure::IN_MEMORY_BYTES;
use highwater_bench::peers::PeerWorkload;
use highwater_bench::{Error, Result};
use highwater_device::disk::DiskOptions;
use highwater_device::mount::{Mount, MountOptions};
use highwater_device::preset;
use highwater_device::ssd::counters::Counters;
use std::path::{Path, PathBuf};

/// Bytes for ext4's metadata, redo logs, and the growth of a run.
const BESIDE_BYTES: u64 = 384 << 20;
const BLOCK_BYTES: u64 = 4096;

/// Space on the device: for TPC-C one and a half times the rows, for other data three times, as that engine needs which
/// takes most (measured: 1.2 and 2.3 times).
pub(super) fn capacity_bytes(plan: &Plan, point: &Point<'_>) -> u64 {
    let rows = data(plan.scale, point);
    // At least one warehouse.
    let rows = if point.workload == PeerWorkload::Tpcc { rows.max(100 << 20) / 2 * 3 } else { rows * 3 };
    (rows + BESIDE_BYTES).next_multiple_of(BLOCK_BYTES)
}

/// An emulated SSD with a file system, mounted for one measurement.
pub(super) struct Flash {
    mount: Mount,
    before: Counters,
}

impl Flash {
    /// Mounts a device below `folder`; `None` on this machine's disk.
    ///
    /// # Errors
    /// The device's.
    pub(super) fn mount(plan: &Plan, point: &Point<'_>, folder: &Path) -> Result<Option<Flash>> {
        let DeviceChoice::Preset(name) = &plan.device else { return Ok(None) };
        let capacity = capacity_bytes(plan, point);
        let config = preset::find(name)?.config().at_capacity((capacity / BLOCK_BYTES) as u32)?;
        let backing = (capacity > IN_MEMORY_BYTES).then(|| folder.join("disk"));
        let disk = DiskOptions { backing, ..DiskOptions::new(config) };
        let mountpoint = folder.join("ssd");
        std::fs::create_dir_all(&mountpoint).map_err(|e| Error::file(&mountpoint, e))?;
        let options = MountOptions { classify: false, discard: true, ..MountOptions::new(disk, mountpoint) };
        let mount = Mount::new(&options)?;
        let before = mount.disk().counters();
        Ok(Some(Flash { mount, before }))
    }

    /// The folder for a database.
    pub(super) fn folder(&self) -> PathBuf {
        self.mount.mountpoint().to_path_buf()
    }

    /// Counts from now on.
    pub(super) fn start(&mut self) {
        self.before = self.mount.disk().counters();
    }

    /// Bytes that the device received and wrote since [`Flash::start`], per transaction of this many.
    pub(super) fn values(&self, transactions: f64) -> [(Metric, f64); 4] {
        let (disk, counted) = (self.mount.disk(), self.mount.disk().counters().since(&self.before));
        [
            (metric::DEVICE_HOST_BYTES_CLOSED_PER_TRANSACTION, counted.hbmw() as f64 / transactions),
            (metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION, counted.mbmw() as f64 / transactions),
            (metric::WRITE_AMPLIFICATION, counted.write_amplification()),
            (metric::CAPACITIES_WRITTEN, counted.hbmw() as f64 / disk.capacity_bytes() as f64),
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
