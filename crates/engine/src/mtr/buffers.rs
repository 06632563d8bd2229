//! Per-thread buffers of mini-transactions, kept between them so that an mtr allocates nothing.

use crate::pool::FrameNo;
use crate::types::PageNo;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Sets kept per thread; more than one because a thread may have two mtrs open.
const KEPT: usize = 4;
/// Redo buffers larger than this are not kept.
const KEEP_REDO_BYTES: usize = 256 << 10;

/// A page in an mtr's memo.
pub(super) struct MemoEntry {
    pub frame: FrameNo,
    pub page_no: PageNo,
    pub changed: bool,
    /// One of the changes is a `Format`.
    pub recreated_by_redo: bool,
    pub released: bool,
}

/// A bit change of a pinned or always-resident page, made at commit.
pub(super) struct Deferred {
    pub page: PageNo,
    pub offset: u16,
    pub set: bool,
    pub mask: u64,
}

/// The buffers of an mtr: its latches, redo, reserved frames and deferred changes.
#[derive(Default)]
pub(super) struct MtrBuffers {
    /// Latched pages.
    pub memo: Vec<MemoEntry>,
    /// Encoded operations.
    pub redo: Vec<u8>,
    /// Frames reserved.
    pub spare: Vec<FrameNo>,
    /// Pages of deferred changes that stay resident until the commit.
    pub pinned: Vec<(PageNo, FrameNo)>,
    /// Bit changes to make at commit.
    pub deferred: Vec<Deferred>,
    pub allocated: Vec<PageNo>,
    pub freed: Vec<PageNo>,
}

impl MtrBuffers {
    /// An mtr that has begun has latched and changed nothing; one that has ended has released everything.
    fn check_empty(&self) {
        debug_assert!(self.memo.is_empty(), "an mtr has {} latched pages of another", self.memo.len());
        debug_assert!(self.redo.is_empty() && self.deferred.is_empty(), "an mtr has changes of another");
        debug_assert!(self.spare.is_empty(), "an mtr has {} frames of another", self.spare.len());
        debug_assert!(self.pinned.is_empty(), "an mtr has {} pinned pages of another", self.pinned.len());
        debug_assert!(self.allocated.is_empty() && self.freed.is_empty(), "an mtr has pages of another");
    }
}

thread_local! {
    #[expect(clippy::vec_box, reason = "sets are lent and returned; boxed, they do not move")]
    static SPARE: RefCell<Vec<Box<MtrBuffers>>> = const { RefCell::new(Vec::new()) };
}

/// A set of empty buffers, lent for the life of an mtr. Boxed: an mtr is handed from function to function, and is small
/// that way.
pub(super) struct PooledBuffers(Option<Box<MtrBuffers>>);

impl PooledBuffers {
    /// The set that the thread's last mtr released, or a new one.
    #[inline]
    pub(super) fn take() -> PooledBuffers {
        // A thread that is ending may have none: what it keeps to its end may roll back then.
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
        let set = spare.ok().flatten().unwrap_or_default();
        set.check_empty();
        PooledBuffers(Some(set))
    }
}

impl Deref for PooledBuffers {
    type Target = MtrBuffers;

    #[inline]
    fn deref(&self) -> &MtrBuffers {
        self.0.as_ref().expect("lent until dropped")
    }
}

impl DerefMut for PooledBuffers {
    #[inline]
    fn deref_mut(&mut self) -> &mut MtrBuffers {
        self.0.as_mut().expect("lent until dropped")
    }
}

/// Keeps the set, which the mtr has emptied, for the thread's next mtr.
impl Drop for PooledBuffers {
    #[inline]
    fn drop(&mut self) {
        let Some(mut set) = self.0.take() else { return };
        set.redo.clear();
        set.deferred.clear();
        set.check_empty();
        if set.redo.capacity() <= KEEP_REDO_BYTES {
            // The thread may be ending; then the set is simply dropped.
            let _ = SPARE.try_with(|spare| {
                let mut spare = spare.borrow_mut();
                if spare.len() < KEPT {
                    spare.push(set);
                }
            });
        }
    }
}
