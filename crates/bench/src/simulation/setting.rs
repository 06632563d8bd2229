//! What a simulated database is made with, as the seed chooses: options, disks, whether it grows.

use super::NEW_PAGES;
use super::choices::Choices;
use highwater::Options;
use highwater::config::{
    ChangeBuffering, Doublewrite, MergeAtClose, PageCompression, PageSize, PageStoreKind, VictimPolicy,
};
use highwater::internals::Manner;
use highwater_storage::{MemoryDevice, Placement, StorageSet};

/// Extents in a group where groups are to be small: those of a new file.
const FEW_EXTENTS: u32 = 8;

/// A redo log as small as can be asked for.
const SMALL_LOG_BYTES: u64 = 4 << 20;

/// The choices for one database.
pub struct Setting {
    options: Options,
    pub manner: Manner,
    /// Whether the file is to grow over several extent maps: small groups, many long rows.
    pub grows: bool,
    /// Bytes that a power cut does not tear.
    untorn_bytes: u32,
    /// Lifetimes that the data device keeps apart.
    lifetime_streams: usize,
    /// What may protect the pages of a store in place, another one at each opening.
    protections: Vec<Doublewrite>,
}

impl Setting {
    /// As the seed of `rng` says.
    pub fn random(seed: u64, rng: &mut Choices) -> Setting {
        let page_bytes = [4096, 4096, 8192, 16384][rng.usize(..4)];
        let untorn_bytes = [512, 512, 4096, page_bytes as u32][rng.usize(..4)];
        let mut protections = vec![Doublewrite::On];
        if rng.u32(..3) == 0 {
            protections.push(Doublewrite::Journal);
        }
        if u64::from(untorn_bytes) >= page_bytes {
            protections.push(Doublewrite::Atomic);
        }
        let grows = rng.bool();
        let lifetime_streams = if rng.bool() { 1 } else { Placement::LIFETIMES.len() };
        let group_extents = if grows { FEW_EXTENTS } else { u32::MAX };
        let options = options(page_bytes, rng);
        Setting {
            manner: Manner {
                database_id: seed | 1,
                group_extents,
                new_log_bytes: options.log_file_size,
                recovery_threads: 1,
                finding_threads: 1,
            },
            options,
            grows,
            untorn_bytes,
            lifetime_streams,
            protections,
        }
    }

    /// New disks, and whether they are small; a third of them are.
    pub fn disks(&self, rng: &mut Choices) -> (StorageSet, bool) {
        let created = self.options.page_size.bytes().unwrap_or(0) * NEW_PAGES;
        let is_small = rng.u32(..3) == 0;
        let limit = if is_small { 2 * created + (rng.u64(4..10) << 20) } else { u64::MAX };
        let disk = |limit| MemoryDevice::new_for_cuts(limit, self.untorn_bytes);
        let data = disk(limit).with_lifetime_streams(self.lifetime_streams);
        (StorageSet::of_memory([data, disk(u64::MAX), disk(u64::MAX)]), is_small)
    }

    /// The options of one opening. A large log may have to shrink.
    pub fn at_opening(&self, rng: &mut Choices) -> Options {
        let change_buffer_merge_at_close = if rng.bool() { MergeAtClose::On } else { MergeAtClose::Off };
        let doublewrite = match self.options.page_store {
            PageStoreKind::InPlace => self.protections[rng.usize(..self.protections.len())],
            _ => self.options.doublewrite,
        };
        let log_file_size = if rng.u32(..4) == 0 { SMALL_LOG_BYTES } else { self.options.log_file_size };
        Options { change_buffer_merge_at_close, doublewrite, log_file_size, ..self.options.clone() }
    }
}

fn options(page_bytes: u64, rng: &mut Choices) -> Options {
    let page_store = if rng.bool() { PageStoreKind::InPlace } else { PageStoreKind::OutOfPlace };
    let packed = [PageCompression::Off, PageCompression::Lz4, PageCompression::Zstd][rng.usize(..3)];
    Options {
        page_size: PageSize::Bytes(page_bytes),
        page_store,
        page_compression: if page_store == PageStoreKind::InPlace { PageCompression::Off } else { packed },
        segment_size: 256 << 10,
        buffer_pool_size: 2 << 20,
        log_file_size: [SMALL_LOG_BYTES, 2 * SMALL_LOG_BYTES][rng.usize(..2)],
        log_buffer_size: 1 << 20,
        journal_size: 8 << 20,
        change_buffering: [ChangeBuffering::Off, ChangeBuffering::Disk, ChangeBuffering::Memory][rng.usize(..3)],
        victim_policy: VictimPolicy::ALL[rng.usize(..VictimPolicy::ALL.len())],
        ..Options::default()
    }
}
