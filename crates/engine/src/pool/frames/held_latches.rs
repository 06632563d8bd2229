//! The number of page latches that a thread holds, for debug assertions.
//!
//! Rule: a thread that waits for I/O, for a free frame or for redo space holds no page latch (rule 1 of the pool). The
//! holder of a latch that waits for another thread could wait for one that waits for its latch.
//!
//! Counted are the latches of guards and of mini-transactions: those that their thread holds while other code runs.

#[cfg(debug_assertions)]
crate::sync::thread_local! {
    static HELD: std::cell::Cell<i32> = const { std::cell::Cell::new(0) };
}

/// This thread has this many latches more.
#[inline]
pub(crate) fn add(_more: i32) {
    // A thread that is ending may have no count any more.
    #[cfg(debug_assertions)]
    let _ = HELD.try_with(|held| held.set(held.get() + _more));
}

/// This thread is about to wait.
#[inline]
pub(crate) fn expect_none(_before: &str) {
    #[cfg(debug_assertions)]
    let _ = HELD.try_with(|held| debug_assert_eq!(held.get(), 0, "page latches are held before {_before}"));
}
