//! For unit tests: databases in memory.

use crate::config::{FlushNeighbors, Options, VictimPolicy};
use crate::db::core::Core;
use highwater_storage::StorageSet;

/// Options of a small database: 4 KiB pages, 1 MiB pool, 4 MiB log.
pub fn small_options() -> Options {
    Options {
        page_size: 4096,
        buffer_pool_size: 1 << 20,
        log_file_size: 4 << 20,
        log_buffer_size: 1 << 20,
        ..Options::default()
    }
}

/// The same with a victim policy and a neighbor option that the seed chooses; nine seeds in a row give every pair.
pub fn seeded_options(seed: u64) -> Options {
    let victim_policy = [VictimPolicy::LruClean, VictimPolicy::Raw, VictimPolicy::War][seed as usize % 3];
    let neighbors = [FlushNeighbors::Off, FlushNeighbors::Contiguous, FlushNeighbors::Extent];
    Options { victim_policy, flush_neighbors: neighbors[seed as usize / 3 % 3], ..small_options() }
}

/// A small database in memory without background threads: call the steps yourself.
pub fn small_core() -> Core {
    open(StorageSet::memory(), small_options())
}

/// Opens whatever the set holds.
pub fn open(storage: StorageSet, options: Options) -> Core {
    Core::open(storage, options).expect("a database in memory opens")
}
