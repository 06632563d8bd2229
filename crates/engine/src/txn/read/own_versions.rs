//! The versions that a transaction remembers of rows while it rolls back.

use super::entry_history::Histories;
use crate::row::format::RowHeader;
use crate::types::IndexId;
use std::collections::HashMap;

/// A version of a row: its header and its stored payload.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) header: RowHeader,
    pub(crate) payload: Vec<u8>,
}

/// A cache for the rollback of rows that the transaction has changed many times.
#[derive(Debug, Default)]
pub(crate) struct OwnVersions {
    /// The newest version that is not the transaction's own; `None` if it has inserted the row. A row stays here while
    /// the newest version is its own.
    pub(super) bases: HashMap<(IndexId, Vec<u8>), Option<Version>>,
    pub(super) histories: Histories,
}

impl OwnVersions {
    pub(crate) fn is_empty(&self) -> bool {
        self.bases.is_empty()
    }

    /// Forgets a row of which the transaction has no version any more.
    pub(crate) fn forget(&mut self, rows: IndexId, key: &[u8]) {
        if !self.bases.is_empty() {
            self.bases.remove(&(rows, key.to_vec()));
        }
    }
}
