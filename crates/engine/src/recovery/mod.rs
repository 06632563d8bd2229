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
//! 2. Memory is bounded: the window's bytes, 16 bytes for each operation in it, and the pool. What does not fit the
//!    pool is flushed meanwhile; such a page is in a state that it once had, so after a crash the rest of the log still
//!    applies to it.
//! 3. Recovery writes no redo, so a crash during it starts it again from the same log: replay is idempotent by page
//!    LSN.
//! 4. A page that cannot be read is read once more. If that fails it is no error if the log recreates it further on:
//!    its bytes are from before the page was freed. It is noted, its operations are skipped up to that `Format`. A page
//!    that is left over at the end is the error, unless [`Losses`] allows to lose it. Then it becomes a lost page
//!    ([`crate::page::lost`]), durable before the log starts a new generation: its redo is gone with the old one, so
//!    bytes that can be read later must not be taken for the page. The redo of a page that is lost already is skipped.
//! 5. Bytes that make no sense are an error that names the page, or lose it as in rule 4; nothing is guessed. A page
//!    that was changed is checked as one that is read: later users rely on its bytes.
//! 6. No redo changes what page 0 says of the file itself (its magic number, sizes, id), nor recreates page 0.

mod replay;

#[cfg(test)]
mod recovery_test;

pub use replay::{THREADS, replay};

use crate::types::PageNo;

/// Which pages recovery may lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
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

/// What recovery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
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
