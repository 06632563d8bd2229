//! Models: the engine's own code under a model checker, which decides after every step on shared memory which thread
//! continues (shuttle, random and PCT schedules). `crates/models` compiles the engine with the checker's primitives
//! ([`crate::sync`]) and calls these functions.
//!
//! Rules
//! 1. A model holds no copy of what it checks: it calls the engine.
//! 2. Every model can fail: `xtask/src/mutants/rows/concurrency.rs` has a bug for each that it must find.
//! 3. Schedules follow from the seed. A run that fails prints its schedule, which [`explore`] repeats if
//!    `HIGHWATER_SCHEDULE` has it. `HIGHWATER_SCHEDULES` says how many there are, `HIGHWATER_SEED` where they begin.
//! 4. A schedule begins with an empty database that was made before ([`small_database`]).
//!
//! | file | what |
//! |---|---|
//! | `device.rs` | a device at which threads take turns |
//! | `commit.rs` | group commit, power cuts under it, a sync that fails |
//! | `locks.rs` | the lock table's waits: granted, timed out, deadlock victim, stopped |
//! | `pages.rs` | the pool: fix, latch-free reads, load, evict, flush |
//! | `sessions.rs` | transactions on an open database, concurrently with its background steps |

pub mod commit;
mod device;
pub mod locks;
pub mod pages;
pub mod sessions;

use crate::config::{Options, PageSize};
use crate::db::open_parts::OpenParts;
use highwater_storage::StorageSet;
use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler};
use shuttle::{Config, Runner};
use std::sync::OnceLock;

/// Stack of a thread of a model.
const STACK_BYTES: usize = 256 << 10;
/// Changes of priority in a PCT schedule: what a bug of that many ordered steps needs.
const PCT_DEPTH: usize = 3;

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect(variable))
}

/// Runs a model in `schedules` random schedules, and in half as many by priority (Burckhardt and others, "A Randomized
/// Scheduler with Probabilistic Guarantees of Finding Bugs", 2010).
pub(crate) fn explore(schedules: usize, model: fn()) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    // Before all others, so that a schedule that is repeated begins as it did.
    Runner::new(RandomScheduler::new_from_seed(0, 1), config.clone()).run(|| drop(small_database()));
    if let Ok(schedule) = std::env::var("HIGHWATER_SCHEDULE") {
        Runner::new(ReplayScheduler::new_from_encoded(&schedule), config).run(model);
        return;
    }
    let schedules = number_of("HIGHWATER_SCHEDULES").map_or(schedules, |asked| asked as usize);
    let seed = number_of("HIGHWATER_SEED").unwrap_or(1);
    Runner::new(RandomScheduler::new_from_seed(seed, schedules), config.clone()).run(model);
    Runner::new(PctScheduler::new_from_seed(seed, PCT_DEPTH, schedules.div_ceil(2)), config).run(model);
}

/// Options of the databases of models: small, and with nothing measured.
pub(crate) fn options() -> Options {
    Options {
        page_size: PageSize::Bytes(4096),
        buffer_pool_size: 1 << 20,
        log_file_size: 4 << 20,
        log_buffer_size: 1 << 20,
        ..Options::default()
    }
}

/// An empty database that was closed. It is made once: what a schedule is about begins after it.
pub(crate) fn small_database() -> StorageSet {
    static EMPTY: OnceLock<StorageSet> = OnceLock::new();
    let empty = EMPTY.get_or_init(|| {
        let storage = StorageSet::memory();
        OpenParts::open(storage.clone(), options()).and_then(|mut parts| parts.close()).expect("a database in memory");
        storage
    });
    empty.cut(1)
}
