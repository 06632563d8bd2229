//! Counters by which row operations skip the lock system.

use super::holder::RowName;
use crate::sync::atomic::{AtomicU32, Ordering::SeqCst};
use crate::types::IndexId;

const ROW_COUNTERS: usize = 4096;
const RANGE_COUNTERS: usize = 256;

/// Counters that let row operations skip the lock table.
#[derive(Debug)]
pub(crate) struct LockCounters {
    pub(super) all_rows: AtomicU32,
    rows: Box<[AtomicU32]>,
    ranges: Box<[AtomicU32]>,
}

impl Default for LockCounters {
    fn default() -> LockCounters {
        let zeros = |n| (0..n).map(|_| AtomicU32::new(0)).collect();
        LockCounters { all_rows: AtomicU32::new(0), rows: zeros(ROW_COUNTERS), ranges: zeros(RANGE_COUNTERS) }
    }
}

impl LockCounters {
    pub(crate) fn add_row(&self, hash: u32) {
        self.rows[hash as usize % ROW_COUNTERS].fetch_add(1, SeqCst);
        self.all_rows.fetch_add(1, SeqCst);
    }

    pub(crate) fn remove_row(&self, hash: u32) {
        self.all_rows.fetch_sub(1, SeqCst);
        self.rows[hash as usize % ROW_COUNTERS].fetch_sub(1, SeqCst);
    }

    pub(crate) fn add_range(&self, index: IndexId) {
        self.ranges[index.0 as usize % RANGE_COUNTERS].fetch_add(1, SeqCst);
    }

    pub(crate) fn remove_range(&self, index: IndexId) {
        self.ranges[index.0 as usize % RANGE_COUNTERS].fetch_sub(1, SeqCst);
    }

    /// Whether the row may have explicit locks.
    #[inline]
    pub(super) fn may_have_row(&self, row: RowName<'_>) -> bool {
        self.all_rows.load(SeqCst) != 0 && self.rows[row.hash() as u32 as usize % ROW_COUNTERS].load(SeqCst) != 0
    }

    /// Whether the index may have range locks.
    #[inline]
    pub(super) fn may_have_range(&self, index: IndexId) -> bool {
        self.ranges[index.0 as usize % RANGE_COUNTERS].load(SeqCst) != 0
    }
}
