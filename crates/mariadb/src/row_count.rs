//! The estimated rows and bytes of a table, for which the server's planner asks in each statement.
//!
//! Rules
//! 1. An estimate is kept until a sixteenth of the rows have been inserted or deleted, or a second has passed (purge
//!    removes rows too). For a small table the engine is asked each time: its plans depend on each row.
//! 2. A handler adds its changes to the shared counter in batches, so that threads that insert rarely write the same
//!    cache line.

use highwater::Result;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Rows from which on a table's estimate is kept.
const LARGE: u64 = 4096;
/// An estimate is kept until 1 / `PARTS` of the rows have changed.
const PARTS: u64 = 16;
const OLD_MS: u64 = 1000;
/// Changes that a handler adds at once: few compared with those that [`PARTS`] allows in a table of [`LARGE`] rows.
const BATCH: u64 = 16;

/// The estimated size of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableSize {
    pub rows: u64,
    /// Both sizes are those of the last analysis.
    pub row_bytes: u64,
    pub index_bytes: u64,
}

/// The estimate that all handlers of a table share.
#[derive(Default)]
pub(crate) struct RowCount {
    /// 0: not known.
    rows: AtomicU64,
    row_bytes: AtomicU64,
    index_bytes: AtomicU64,
    /// Rows inserted and deleted since.
    changes: AtomicU64,
    /// When it was known, in milliseconds.
    at_ms: AtomicU64,
}

/// Changes of one handler that are not in the shared counter yet.
#[derive(Default)]
pub(crate) struct Changes(u64);

fn now_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64
}

impl RowCount {
    /// The estimate; `ask` asks the engine for a new one.
    ///
    /// # Errors
    /// That of `ask`.
    pub(crate) fn get(&self, ask: impl FnOnce() -> Result<TableSize>) -> Result<TableSize> {
        self.get_at(now_ms(), ask)
    }

    fn get_at(&self, now_ms: u64, ask: impl FnOnce() -> Result<TableSize>) -> Result<TableSize> {
        let rows = self.rows.load(Ordering::Relaxed);
        let is_young = now_ms.saturating_sub(self.at_ms.load(Ordering::Relaxed)) < OLD_MS;
        if rows >= LARGE && is_young && self.changes.load(Ordering::Relaxed) < rows / PARTS {
            let of = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
            return Ok(TableSize { rows, row_bytes: of(&self.row_bytes), index_bytes: of(&self.index_bytes) });
        }
        self.changes.store(0, Ordering::Relaxed);
        let size = ask()?;
        self.at_ms.store(now_ms, Ordering::Relaxed);
        self.row_bytes.store(size.row_bytes, Ordering::Relaxed);
        self.index_bytes.store(size.index_bytes, Ordering::Relaxed);
        self.rows.store(size.rows, Ordering::Relaxed);
        Ok(size)
    }

    /// The table is another one, or was analyzed.
    pub(crate) fn forget(&self) {
        self.rows.store(0, Ordering::Relaxed);
    }
}

impl Changes {
    /// A row was inserted or deleted.
    #[inline]
    pub(crate) fn note(&mut self, rows: &RowCount) {
        self.0 += 1;
        if self.0 == BATCH {
            self.0 = 0;
            rows.changes.fetch_add(BATCH, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_asked_when_a_sixteenth_has_changed_or_a_second_has_passed() {
        let (rows, mut changes) = (RowCount::default(), Changes::default());
        let get = |at_ms, now| {
            let size = TableSize { rows: now, row_bytes: 2 * now, index_bytes: 3 * now };
            let got = rows.get_at(at_ms, || Ok(size)).unwrap();
            assert_eq!((got.row_bytes, got.index_bytes), (2 * got.rows, 3 * got.rows));
            got.rows
        };
        assert_eq!((get(0, 8000), get(999, 1)), (8000, 8000));
        (0..499).for_each(|_| changes.note(&rows));
        assert_eq!(get(999, 1), 8000);
        (0..13).for_each(|_| changes.note(&rows));
        assert_eq!((get(999, 9000), get(1998, 1), get(1999, 9500)), (9000, 9000, 9500));
        rows.forget();
        assert_eq!(get(2000, 5000), 5000);
    }

    #[test]
    fn of_a_small_table_each_row_counts() {
        let rows = RowCount::default();
        let get = |now| rows.get_at(0, || Ok(TableSize { rows: now, ..TableSize::default() })).unwrap().rows;
        assert_eq!((get(0), get(4095), get(4096), get(1)), (0, 4095, 4096, 4096));
    }
}
