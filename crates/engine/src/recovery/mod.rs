//! Redo recovery: brings the data file to the end of the log.
//!
//! Steps, for one window of the log after the other
//! 1. Decode the window's mini-transactions into (page, operation), sorted by page, log order within a page.
//! 2. Per page: skip what precedes its last `Format` in the window (the page is recreated there), read the page unless
//!    it starts with one or is in the pool, apply each operation whose end LSN is above the page's LSN.
//!
//! At the end flush everything. Only then may the log start a new generation.
//!
//! Rules
//! 1. Within a window no page is read twice: a page's operations are applied together. Workers take disjoint page
//!    ranges.
//! 2. Memory is bounded: the window's bytes, 16 bytes for each operation in it, and the pool. Pages that do not fit the
//!    pool are flushed meanwhile; such a page is in an earlier state of itself, so after a crash the rest of the log
//!    still applies to it.
//! 3. Recovery writes no redo, so a crash during it starts it again from the same log: replay is idempotent by page
//!    LSN.
//! 4. A page that cannot be read is read once more. If that fails and the log later recreates the page, it is not an
//!    error, because its bytes are from before the page was freed: its operations up to that `Format` are skipped.
//!    Otherwise it is an error at the end, unless [`Losses`] allows the loss. Then it becomes a lost page
//!    ([`crate::page::lost`]), durable before the log starts a new generation: its redo is discarded with the old
//!    generation, so bytes that become readable later must not count as the page. The redo of a lost page is skipped.
//! 5. Invalid bytes are an error that names the page, or lose it as in rule 4; recovery guesses nothing. A changed page
//!    is checked like a page that is read, because later users rely on its bytes.
//! 6. No redo changes what page 0 says of the file itself (its magic number, sizes, id), nor recreates page 0.

mod replay;

#[cfg(test)]
mod recovery_test;

pub(crate) use replay::{THREADS, replay};

use crate::types::PageNo;

/// The pages that recovery may lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Losses {
    /// Leaves of secondary indexes for which changes were buffered: an index can be built again from the rows.
    IndexLeaves,
    /// Every page but page 0: what is written stays in memory, and the files are as they were.
    All,
}

impl Losses {
    fn may_lose(self, page: PageNo, is_index_leaf: bool) -> bool {
        page != PageNo(0) && (is_index_leaf || self == Losses::All)
    }
}

/// The result of recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replayed {
    pub redo_bytes: u64,
    /// Operations in them.
    pub operations: usize,
    /// Pages they touch, counted once a window.
    pub pages: usize,
    /// Windows it took.
    pub windows: usize,
    /// Pages that were lost.
    pub lost_pages: usize,
}
