//! The cache of an index scan for rows with many versions.
//!
//! A row that is changed often while a snapshot is open has an entry for each of its versions, and for each entry the
//! scan would walk the whole chain of versions to find that it does not belong to the visible one. Instead, after a
//! long walk, the scan caches the entry of the visible version.
//!
//! Rules
//! 1. A scan's view never changes, so its visible version of a row changes only by its own transaction. A version of
//!    the own transaction is the newest of its row, so the walk to it is short and is not cached. After a write of the
//!    transaction the cache is dropped.
//! 2. The cache only excludes entries. An entry that is not excluded is processed as without the cache.
//! 3. Memory is bounded: when it is full, the scan drops all and begins again.

use std::collections::HashMap;

/// Steps from which a walk counts as long.
pub(crate) const LONG_WALK: usize = 4;
/// Bytes of keys and entries remembered, and what each costs besides.
const MAX_BYTES: usize = 4 << 20;
const OVERHEAD_BYTES: usize = 64;

/// Rows by key, each with the entry of its visible version; `None` if it has no such version.
#[derive(Debug, Default)]
pub(crate) struct VisibleEntryCache {
    rows: HashMap<Box<[u8]>, Option<Box<[u8]>>>,
    bytes: usize,
    /// Undo records of the own transaction at the last look.
    own_records: u64,
}

impl VisibleEntryCache {
    /// Drops what the own transaction, which has written `own_records` undo records by now, may have changed.
    pub(crate) fn renew(&mut self, own_records: u64) {
        if self.own_records != own_records {
            self.clear();
            self.own_records = own_records;
        }
    }

    /// Whether the row's visible version is known to have another entry than this one.
    pub(crate) fn rules_out(&self, key: &[u8], entry: &[u8]) -> bool {
        !self.rows.is_empty() && self.rows.get(key).is_some_and(|visible| visible.as_deref() != Some(entry))
    }

    /// Remembers the entry of a row's visible version.
    pub(crate) fn note(&mut self, key: &[u8], visible: Option<&[u8]>) {
        let bytes = key.len() + visible.map_or(0, <[u8]>::len) + OVERHEAD_BYTES;
        if self.bytes + bytes > MAX_BYTES {
            self.clear();
        }
        debug_assert_eq!(self.rows.is_empty(), self.bytes == 0, "rule 3: {} bytes are counted", self.bytes);
        self.bytes += bytes;
        self.rows.insert(key.into(), visible.map(Box::from));
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_rows_are_ruled_out() {
        let mut seen = VisibleEntryCache::default();
        assert!(!seen.rules_out(b"k", b"e"));
        seen.note(b"k", Some(b"e"));
        seen.note(b"gone", None);
        assert!(!seen.rules_out(b"k", b"e") && seen.rules_out(b"k", b"f") && seen.rules_out(b"gone", b"f"));
        assert!(!seen.rules_out(b"other", b"f"));
        seen.renew(0);
        assert!(seen.rules_out(b"k", b"f"));
        seen.renew(1);
        assert!(!seen.rules_out(b"k", b"f"), "the transaction may have changed it");
    }

    #[test]
    fn memory_is_bounded() {
        let mut seen = VisibleEntryCache::default();
        for n in 0..10_000u32 {
            seen.note(&n.to_le_bytes(), Some(&[7; 1000]));
            assert!(seen.bytes <= MAX_BYTES);
        }
        assert!(seen.rows.len() > 1000);
    }
}
