//! Per-thread buffers of mini-transactions, kept between them so that an mtr allocates nothing.

use super::{Deferred, Held};
use crate::pool::FrameNo;
use crate::types::PageNo;
use std::cell::RefCell;

/// Sets kept per thread; more than one because a thread may have two mtrs open.
const KEPT: usize = 4;
/// Redo buffers larger than this are not kept.
const KEEP_REDO_BYTES: usize = 256 << 10;

/// What an mtr collects.
#[derive(Default)]
pub struct Buffers {
    /// Latched pages.
    pub memo: Vec<Held>,
    /// Encoded operations.
    pub redo: Vec<u8>,
    /// Frames set aside.
    pub spare: Vec<FrameNo>,
    /// Bit changes to make at commit.
    pub deferred: Vec<Deferred>,
    /// Pages allocated.
    pub allocated: Vec<PageNo>,
    /// Pages freed.
    pub freed: Vec<PageNo>,
}

thread_local! {
    static SPARE: RefCell<Vec<Buffers>> = const { RefCell::new(Vec::new()) };
}

impl Buffers {
    /// A set of empty buffers.
    pub fn take() -> Buffers {
        SPARE.with_borrow_mut(Vec::pop).unwrap_or_default()
    }

    /// Keeps the set for the thread's next mtr.
    pub fn put_back(mut self) {
        self.redo.clear();
        self.deferred.clear();
        if self.redo.capacity() <= KEEP_REDO_BYTES {
            // The thread may be ending; then the set is simply dropped.
            let _ = SPARE.try_with(|spare| {
                let mut spare = spare.borrow_mut();
                if spare.len() < KEPT {
                    spare.push(self);
                }
            });
        }
    }
}
