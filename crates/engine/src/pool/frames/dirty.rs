//! The marks of a page that differs from the store. Together they say whether a change still has to be noted.
//!
//! Terms: *oldest* is the start of the oldest change not in the store, *rewrite* that of the first change after the
//! copy that is being written, *flushing* says that there is such a copy. A page is *recreated by redo* if a `Format`
//! of it was logged at *oldest* or later: redo from *oldest* on makes it from nothing, for any old contents.
//!
//! Rules
//! 1. Marks change under the flush-list mutex. A change is noted, and a write begins, also under the frame's latch; a
//!    write ends without it.
//! 2. [`is_noted`](DirtyMarks::is_noted) is asked under the latch alone. It reads *flushing* first: once that is false
//!    no write can end any more, and *oldest* does not change until the latch is released.
//! 3. A write that ends clears *flushing* last. A thread that sees it cleared also sees the new *oldest*.
//! 4. *recreated by redo* is set under the latch, once the change that formats the page is noted, and cleared by each
//!    write that ends. So while it is set, *oldest* is at or before that change. A mark that is cleared too early only
//!    costs a copy of the page.
//!
//! `pool_test/dirty_model.rs` checks these rules for every order of the threads' steps; that is why the
//! atomics come from the parent.

use super::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The marks of one frame; LSNs are plain numbers here, 0 = none.
#[derive(Debug)]
pub(crate) struct DirtyMarks {
    oldest: AtomicU64,
    rewrite: AtomicU64,
    flushing: AtomicBool,
    recreated_by_redo: AtomicBool,
}

impl Default for DirtyMarks {
    fn default() -> DirtyMarks {
        let none = || AtomicU64::new(0);
        let not = || AtomicBool::new(false);
        DirtyMarks { oldest: none(), rewrite: none(), flushing: not(), recreated_by_redo: not() }
    }
}

impl DirtyMarks {
    /// Start of the oldest change not in the store; 0 = the page is clean.
    #[inline]
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest.load(Ordering::Relaxed)
    }

    /// Whether a copy is being written.
    #[inline]
    pub(crate) fn is_flushing(&self) -> bool {
        self.flushing.load(Ordering::Relaxed)
    }

    /// Whether another change needs no note: the page is dirty and stays so. The caller holds the latch exclusively.
    #[inline]
    pub(crate) fn is_noted(&self) -> bool {
        !self.flushing.load(Ordering::Acquire) && self.oldest() != 0
    }

    /// Notes a change that starts at `lsn`; returns whether the page was clean before.
    pub(crate) fn note(&self, lsn: u64) -> bool {
        let first = self.oldest() == 0;
        if first {
            self.oldest.store(lsn, Ordering::Relaxed);
        } else if self.is_flushing() && self.rewrite.load(Ordering::Relaxed) == 0 {
            self.rewrite.store(lsn, Ordering::Relaxed);
        }
        first
    }

    /// Notes that a change formats the page, which was noted before. The caller holds the latch exclusively.
    pub(crate) fn note_recreated_by_redo(&self) {
        self.recreated_by_redo.store(true, Ordering::Relaxed);
    }

    /// Whether the page is recreated by redo from *oldest* on. Asked under the latch, once a write has begun.
    pub(crate) fn is_recreated_by_redo(&self) -> bool {
        self.recreated_by_redo.load(Ordering::Relaxed)
    }

    /// Begins the write of a copy; returns false if the page is clean or a copy is already being written.
    pub(crate) fn begin_write(&self) -> bool {
        let begin = self.oldest() != 0 && !self.is_flushing();
        if begin {
            self.flushing.store(true, Ordering::Relaxed);
        }
        begin
    }

    /// Ends the write of a copy, which is in the store. Returns the page's oldest change now: the first one after the
    /// copy; 0: the page is clean.
    pub(crate) fn end_write(&self) -> u64 {
        debug_assert!(self.is_flushing() && self.oldest() != 0);
        let rewritten = self.rewrite.load(Ordering::Relaxed);
        self.rewrite.store(0, Ordering::Relaxed);
        self.oldest.store(rewritten, Ordering::Relaxed);
        self.recreated_by_redo.store(false, Ordering::Relaxed);
        self.flushing.store(false, Ordering::Release);
        rewritten
    }
}
