//! The differences between the openings of users, of tests and of simulations.

use crate::recovery;
use crate::store::bootstrap;
use crate::types::random_id;

/// Bytes of a new redo log, which grows.
pub(super) const NEW_LOG_BYTES: u64 = 4 << 20;

/// Overrides of an opening in addition to its options: the default for users' databases; tests and simulations set
/// others.
#[derive(Clone, Copy, Debug)]
pub struct OpenOverrides {
    /// Id of a database that is created.
    pub database_id: u64,
    /// Extents that one extent map describes at most: the same at each opening of a database.
    pub group_extents: u32,
    /// Bytes with which a redo log begins that can grow.
    pub new_log_bytes: u64,
    /// Threads of recovery at most: one makes it deterministic.
    pub recovery_threads: usize,
    /// Threads that find the pages at most: one reads in the same order each time.
    pub finding_threads: usize,
}

impl Default for OpenOverrides {
    fn default() -> OpenOverrides {
        OpenOverrides {
            database_id: random_id(),
            group_extents: u32::MAX,
            new_log_bytes: NEW_LOG_BYTES,
            recovery_threads: recovery::THREADS,
            finding_threads: bootstrap::READERS,
        }
    }
}
