//! Options of a mount.

use crate::disk::{DiskOptions, TimeMode};
use crate::error::{DeviceError, Result};
use crate::trace::ranges::StreamRule;
use std::path::PathBuf;

/// The journaling mode of ext4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalMode {
    /// Only metadata goes through the journal; data is written before its metadata.
    Ordered,
    /// Data goes through the journal too.
    Data,
    /// Only metadata goes through the journal, in any order with data.
    Writeback,
}

impl JournalMode {
    /// The value of the mount option `data=`.
    pub fn mount_option(self) -> &'static str {
        match self {
            JournalMode::Ordered => "ordered",
            JournalMode::Data => "journal",
            JournalMode::Writeback => "writeback",
        }
    }
}

impl std::str::FromStr for JournalMode {
    type Err = DeviceError;

    fn from_str(name: &str) -> Result<JournalMode> {
        match name {
            "ordered" => Ok(JournalMode::Ordered),
            "data" | "journal" => Ok(JournalMode::Data),
            "writeback" => Ok(JournalMode::Writeback),
            _ => Err(DeviceError::Config(format!("journal mode \"{name}\" is not one of ordered, data, writeback"))),
        }
    }
}

/// The file system to create on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystemKind {
    /// ext4 with a journal.
    Ext4 {
        /// Journaling mode.
        journal_mode: JournalMode,
        /// Size of the journal; mke2fs chooses if none.
        journal_bytes: Option<u64>,
    },
    /// Nothing: only the block device is made.
    None,
}

/// Maximum size of a journal made by mke2fs, in 4 KiB blocks.
const JOURNAL_BLOCKS_MAX: u64 = 10_240_000;

/// Options of a mount.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// The disk.
    pub disk: DiskOptions,
    /// The mount point; the folder is created if it does not exist.
    pub mountpoint: PathBuf,
    /// The file system to create on the device.
    pub file_system: FileSystemKind,
    /// Whether to create a file system, or to mount the existing one (of a backing file).
    pub format: bool,
    /// Stream rules: `journal`, or ranges of 4 KiB blocks.
    pub rules: Vec<StreamRule>,
    /// Whether the file system discards the blocks that it frees, and its creation discards the whole disk. Off keeps
    /// an aged device aged.
    pub discard: bool,
    /// Whether pages are classified by content.
    pub classify: bool,
    /// Records every request into this file (`NAME.csv.zst`), for replaying.
    pub record: Option<PathBuf>,
    /// Threads that serve requests.
    pub threads: usize,
    /// Logical sector size of the block device: 512 or 4096.
    pub sector_bytes: u32,
}

impl MountOptions {
    /// ext4 in ordered mode on a new disk at `mountpoint`, classified, everything else by default.
    pub fn new(disk: DiskOptions, mountpoint: impl Into<PathBuf>) -> MountOptions {
        // In real time a thread sleeps until the model's completion time, so many threads are needed; otherwise more
        // threads than processors do not help.
        let threads = if disk.time == TimeMode::Real { 32 } else { 8 };
        MountOptions {
            disk,
            mountpoint: mountpoint.into(),
            file_system: FileSystemKind::Ext4 { journal_mode: JournalMode::Ordered, journal_bytes: None },
            format: true,
            rules: Vec::new(),
            discard: false,
            classify: true,
            record: None,
            threads,
            sector_bytes: 512,
        }
    }

    /// Whether the values make sense.
    pub fn validate(&self) -> Result<()> {
        let refuse = |what: &str| Err(DeviceError::Config(what.into()));
        if self.threads == 0 || self.threads > 256 {
            return refuse("threads must be 1 to 256");
        }
        if ![512, 4096].contains(&self.sector_bytes) {
            return refuse("the sector size must be 512 or 4096 bytes");
        }
        if let FileSystemKind::Ext4 { journal_bytes: Some(bytes), .. } = self.file_system {
            // mke2fs takes whole MiB, jbd2 needs 1,024 blocks of 4 KiB.
            if bytes < 4 << 20 || bytes % (1 << 20) != 0 {
                return refuse("the journal must be a multiple of 1 MiB and at least 4 MiB");
            }
            let max = (u64::from(self.disk.config.capacity_blocks()) / 2).min(JOURNAL_BLOCKS_MAX) * 4096;
            if bytes > max {
                let max = max >> 20;
                return refuse(&format!(
                    "--journal-size must be at most half of the capacity, and 40000M: {max}M here"
                ));
            }
        }
        if self.mountpoint.exists() && !self.mountpoint.is_dir() {
            return refuse(&format!("the mount point {} is not a folder; name one", self.mountpoint.display()));
        }
        match self.mountpoint.to_str() {
            Some(path) if !path.contains('\n') => Ok(()),
            _ => refuse("the mount point's path must be plain text"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    #[test]
    fn nonsense_is_refused() {
        let disk = DiskOptions::new(preset::find("simple-2gb").unwrap().config());
        let good = MountOptions::new(disk, "/mnt/x");
        good.validate().unwrap();
        assert!(MountOptions { threads: 0, ..good.clone() }.validate().is_err());
        assert!(MountOptions { sector_bytes: 1024, ..good.clone() }.validate().is_err());
        let journal_bytes = Some(1 << 20);
        let file_system = FileSystemKind::Ext4 { journal_mode: JournalMode::Data, journal_bytes };
        let error = MountOptions { file_system, ..good.clone() }.validate().unwrap_err();
        assert!(error.to_string().contains("4 MiB"));
        let journal_bytes = Some((1 << 30) + (1 << 20));
        let file_system = FileSystemKind::Ext4 { journal_mode: JournalMode::Data, journal_bytes };
        let error = MountOptions { file_system, ..good.clone() }.validate().unwrap_err();
        assert!(error.to_string().contains("1024M here"), "{error}");
        let error = MountOptions { mountpoint: "/proc/version".into(), ..good }.validate().unwrap_err();
        assert!(error.to_string().contains("is not a folder"), "{error}");
        assert_eq!("data".parse::<JournalMode>().unwrap().mount_option(), "journal");
        assert!("none".parse::<JournalMode>().is_err());
    }
}
