//! The setting of a simulated database, determined by the seed: options, disks, growth.

use super::NEW_PAGES;
use crate::alphabet::choices::Choices;
use crate::alphabet::options::{self, Disk};
use fastrand::Rng;
use highwater::Options;
use highwater::config::{Doublewrite, FlushMethod};
use highwater::internals::OpenOverrides;
use highwater_bench::Result;
use highwater_storage::{DataKeys, EncryptionKey, MemoryDevice, Placement, StorageSet};
use std::sync::Arc;

/// Extents in a small group: those of a new file.
const SMALL_GROUP_EXTENTS: u32 = 8;

/// One database of this many is encrypted.
const ENCRYPTED_ONE_OF: u64 = 8;

/// The choices for one database.
pub(super) struct Setting {
    pub options: Options,
    pub overrides: OpenOverrides,
    /// Whether the file grows over several extent maps: small groups, many long rows.
    pub grows: bool,
    /// Bytes that a power cut does not tear.
    untorn_bytes: u32,
    /// Number of lifetimes that the data device separates.
    lifetime_streams: usize,
    disk: Disk,
    /// The data keys of its disks, if they are encrypted.
    keys: Option<Arc<DataKeys>>,
}

impl Setting {
    /// A random setting.
    ///
    /// # Errors
    /// None: every value of an option is accepted.
    pub(super) fn random(seed: u64, rng: &mut Choices) -> Result<Setting> {
        let keeps_pages_whole = rng.u32(..4) == 0;
        let disk = Disk { keeps_pages_whole };
        let options = options::at_creation(disk, rng)?;
        let page_bytes = options.page_size.bytes().unwrap_or(0) as u32;
        let untorn_bytes = if keeps_pages_whole { page_bytes } else { [512, 512, 4096][rng.usize(..3)] };
        let grows = rng.bool();
        let lifetime_streams = if rng.bool() { 1 } else { Placement::LIFETIMES.len() };
        let group_extents = if grows { SMALL_GROUP_EXTENTS } else { u32::MAX };
        let overrides = OpenOverrides {
            database_id: seed | 1,
            group_extents,
            new_log_bytes: options.log_file_size,
            recovery_threads: 1,
            finding_threads: 1,
        };
        // By the seed alone: the same seed continues to choose what it chose before.
        let keys = (seed % ENCRYPTED_ONE_OF == ENCRYPTED_ONE_OF - 1).then(|| keys_of(seed));
        Ok(Setting { overrides, options, grows, untorn_bytes, lifetime_streams, disk, keys })
    }

    /// Whether its disks are encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.keys.is_some()
    }

    /// The set on these disks, encrypted if the database is.
    pub(super) fn over(&self, disks: StorageSet) -> StorageSet {
        match &self.keys {
            Some(keys) => disks.encrypted(Arc::clone(keys)),
            None => disks,
        }
    }

    /// New disks, and whether they are small; a third of them are.
    pub(super) fn disks(&self, rng: &mut Choices) -> (StorageSet, bool) {
        let created = self.options.page_size.bytes().unwrap_or(0) * NEW_PAGES;
        let is_small = rng.u32(..3) == 0;
        let limit = if is_small { 2 * created + (rng.u64(4..10) << 20) } else { u64::MAX };
        // One that the log fills before it has grown.
        let has_small_log = rng.u32(..8) == 0;
        let log_limit = if has_small_log { self.overrides.new_log_bytes + (rng.u64(..4) << 20) } else { u64::MAX };
        let disk = |limit| MemoryDevice::new_for_cuts(limit, self.untorn_bytes);
        let data = disk(limit).with_lifetime_streams(self.lifetime_streams);
        (StorageSet::of_memory([data, disk(log_limit), disk(u64::MAX)]), is_small || has_small_log)
    }

    /// The options of a copy on other devices, which may tear pages.
    pub(super) fn elsewhere(&self) -> Options {
        Options { doublewrite: Doublewrite::On, flush_method: FlushMethod::Fsync, ..self.options.clone() }
    }

    /// The options of a copy in a folder, which is encrypted if the disks are.
    pub(super) fn restored(&self) -> Options {
        Options { encryption_key: self.is_encrypted().then(user_key), ..self.elsewhere() }
    }

    /// The options of one opening.
    ///
    /// # Errors
    /// None: every value of an option is accepted.
    pub(super) fn at_opening(&self, rng: &mut Choices) -> Result<Options> {
        options::at_opening(&self.options, self.disk, rng)
    }
}

/// Keys that the same seed makes again.
fn keys_of(seed: u64) -> Arc<DataKeys> {
    let mut rng = Rng::with_seed(seed);
    let keys = DataKeys::of(std::array::from_fn(|_| std::array::from_fn(|_| rng.u8(..))));
    Arc::new(keys.with_table(&user_key()))
}

/// The key that opens backups.
fn user_key() -> EncryptionKey {
    EncryptionKey::new([0x5A; 32])
}
