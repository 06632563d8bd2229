//! The disk of `highwater torture crash --cut-power`: an emulated SSD with a volatile write cache, mounted with ext4,
//! whose power is cut under the running process.
//!
//! Unsynced writes are kept, lost or torn at 512 bytes, as the seed determines; every request after the cut fails. So
//! the process must stop by itself, with an error: it is not killed.

use crate::failure::Failure;
use highwater_device::disk::DiskOptions;
use highwater_device::mount::{FileSystemKind, JournalMode, Mount, MountOptions};
use highwater_device::preset;
use highwater_device::promises::Promises;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

const PRESET: &str = "simple-2gb";
const CAPACITY_BYTES: u64 = 1 << 30;
const JOURNAL_BYTES: u64 = 16 << 20;
/// Maximum time of a process to stop after the failure of its disk.
const STOPS_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// A mounted disk.
pub(super) struct CutDisk {
    mount: Mount,
}

impl CutDisk {
    /// Mounts a new one at `place`.
    ///
    /// # Errors
    /// What this machine lacks: root, FUSE, loop devices.
    pub(super) fn new(place: &Path) -> Result<CutDisk, Failure> {
        let preset = preset::find(PRESET).map_err(failed)?;
        let mut config = preset.config().scaled_to((CAPACITY_BYTES / 4096) as u32);
        config.set_promises(Promises::default());
        let mut options = MountOptions::new(DiskOptions { crashes: true, ..DiskOptions::new(config) }, place);
        let journal_bytes = Some(JOURNAL_BYTES);
        options.file_system = FileSystemKind::Ext4 { journal_mode: JournalMode::Ordered, journal_bytes };
        options.classify = false;
        Ok(CutDisk { mount: Mount::new(&options).map_err(failed)? })
    }

    /// Cuts the power and waits until the process has stopped; it must say that it failed.
    ///
    /// # Errors
    /// It continues, or ends as if nothing had happened.
    pub(super) fn cut(&self, seed: u64, process: &mut Child) -> Result<(), Failure> {
        self.mount.power_cut(seed).map_err(failed)?;
        let since = Instant::now();
        while since.elapsed() < STOPS_WITHIN {
            match process.try_wait() {
                Ok(Some(status)) if status.success() => {
                    return Err(Failure::Failed("the process ended without an error though its disk failed".into()));
                }
                Ok(Some(_)) => return Ok(()),
                Ok(None) => std::thread::sleep(PAUSE),
                Err(error) => return Err(Failure::Failed(format!("the process on the disk: {error}"))),
            }
        }
        let limit = STOPS_WITHIN.as_secs();
        Err(Failure::Failed(format!("the process still runs {limit} s after its disk failed")))
    }

    /// Brings power back and mounts the file system again.
    ///
    /// # Errors
    /// The mount's.
    pub(super) fn power_on(&mut self) -> Result<(), Failure> {
        self.mount.power_cycle().map_err(failed)
    }
}

fn failed(error: highwater_device::DeviceError) -> Failure {
    Failure::Failed(error.to_string())
}
