//! Cached entries of rows with many versions, for repeated checks of their visibility (`entry_visibility.rs`).
//!
//! Rules
//! 1. The history of a row in an index has the entry of every version from the newest one at which a check began down
//!    to the oldest one that is visible under the view. It is valid for that view only: [`Histories::under`] clears the
//!    others. If the row has newer versions, the next walk ends where the history begins.
//! 2. A history may also have entries of versions that were rolled back later. Either the rollback has removed such an
//!    entry, or a remaining version has it: rollback decides with the same view.
//! 3. Memory is bounded: [`MAX_ENTRIES`] for each thread that purges and each transaction that rolls back. The versions
//!    of a row with more than that are walked for each check.
//! 4. An entry is represented by its hash with a random key. If two collide, an unneeded entry may remain,
//!    delete-marked.

use super::view::ReadView;
use crate::row::format::RowHeader;
use crate::types::IndexId;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

/// Entries remembered at a time, of all rows.
pub(super) const MAX_ENTRIES: usize = if cfg!(test) { 1 << 12 } else { 1 << 20 };

/// The history of a row in an index.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The newest version it has; `None` if it has none.
    pub(super) newest: Option<RowHeader>,
    entries: HashSet<u64>,
}

/// The histories of rows in indexes.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    view: ReadView,
    rows: HashMap<(IndexId, Vec<u8>), History>,
    /// Entries of all rows.
    count: usize,
    hasher: RandomState,
}

impl Histories {
    /// The histories that are valid under this view.
    pub(crate) fn under(&mut self, view: &ReadView) -> &mut Histories {
        if !self.rows.is_empty() && self.view != *view {
            self.clear();
        }
        if self.rows.is_empty() {
            self.view.copy_from(view);
        }
        debug_assert!(self.view == *view, "rule 1: the histories are those of another view");
        self
    }

    fn clear(&mut self) {
        (self.rows, self.count) = (HashMap::new(), 0);
    }

    pub(super) fn hash(&self, entry: &[u8]) -> u64 {
        self.hasher.hash_one(entry)
    }

    pub(super) fn has(&self, index: IndexId, key: &[u8]) -> bool {
        !self.rows.is_empty() && self.rows.contains_key(&(index, key.to_vec()))
    }

    /// Takes a row's history out, to be [kept](Histories::keep) again.
    pub(super) fn take(&mut self, index: IndexId, key: &[u8]) -> History {
        let history = self.rows.remove(&(index, key.to_vec())).unwrap_or_default();
        debug_assert!(self.count >= history.entries.len(), "rule 3: {} entries are counted", self.count);
        self.count -= history.entries.len();
        history
    }

    pub(super) fn keep(&mut self, index: IndexId, key: &[u8], history: History) {
        if self.count + history.entries.len() > MAX_ENTRIES {
            self.clear();
        }
        if history.entries.len() <= MAX_ENTRIES {
            self.count += history.entries.len();
            self.rows.insert((index, key.to_vec()), history);
            debug_assert!(self.count <= MAX_ENTRIES, "rule 3: {} entries", self.count);
        }
    }
}

impl History {
    /// Whether one of its versions has the entry with this hash.
    pub(super) fn has(&self, hash: u64) -> bool {
        self.entries.contains(&hash)
    }

    /// Adds newer versions: `newest` and those down to the newest so far. If the walk did not meet that one, they
    /// replace what was remembered.
    pub(super) fn extend(&mut self, newest: RowHeader, entries: HashSet<u64>, met: bool) {
        if met {
            self.entries.extend(entries);
        } else {
            self.entries = entries;
        }
        self.newest = Some(newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{RollPtr, TxnId};

    fn header(trx_id: u64) -> RowHeader {
        RowHeader { flags: 0, trx_id: TxnId(trx_id), roll_ptr: RollPtr(trx_id) }
    }

    #[test]
    fn a_history_is_forgotten_with_its_view_and_when_there_are_too_many_entries() {
        let mut histories = Histories::default();
        let mut views = [ReadView::default(), ReadView::default()];
        views[1].up_limit_id = 1;
        let keep = |histories: &mut Histories, index: u32, entries: std::ops::Range<u64>| {
            let mut history = histories.take(IndexId(index), b"row");
            history.extend(header(entries.end), entries.collect(), true);
            histories.keep(IndexId(index), b"row", history);
        };
        keep(histories.under(&views[0]), 1, 0..10);
        keep(histories.under(&views[0]), 1, 5..20);
        assert_eq!((histories.count, histories.has(IndexId(1), b"row")), (20, true));
        keep(histories.under(&views[0]), 2, 0..MAX_ENTRIES as u64);
        assert_eq!((histories.count, histories.has(IndexId(1), b"row")), (MAX_ENTRIES, false));
        keep(histories.under(&views[0]), 3, 0..MAX_ENTRIES as u64 + 1);
        assert_eq!((histories.count, histories.rows.len()), (0, 0));
        keep(histories.under(&views[0]), 1, 0..10);
        assert!(!histories.under(&views[1]).has(IndexId(1), b"row"));
        let mut history = History::default();
        history.extend(header(1), HashSet::from([7]), true);
        history.extend(header(2), HashSet::from([8]), false);
        assert!(history.has(8) && !history.has(7) && history.newest == Some(header(2)));
    }
}
