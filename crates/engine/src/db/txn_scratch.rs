//! The memory of a transaction, and the tables that it has locked, which the next transaction reuses.

use super::locked_tables::LockedTables;

/// Scratch memories kept for the next transactions, for each shard that threads have.
pub(super) const MAX_TXN_SCRATCHES: usize = 8;

/// Buffers of a transaction, which the next one reuses.
#[derive(Default)]
pub(super) struct TxnScratch {
    pub(super) tables: LockedTables,
    pub(super) key: Vec<u8>,
    pub(super) row: Vec<u8>,
}
