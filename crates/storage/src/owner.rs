//! The process that files and memory belong to.
//!
//! A forked child process shares the open files of its parent, their locks and the io_uring rings, and has a copy of
//! the memory without the parent's later changes. If it wrote, it would overwrite the parent's durable data.
//!
//! Rules
//! 1. Before a file is written or unlocked, the code checks whether this process has opened it.
//! 2. The check is one load of a number that never changes in a process, so every call may make it.
//! 3. A process created directly by the `clone` system call, without the C library's `fork`, is not detected.

use crate::os::sys::call_after_fork;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Number of forks from the first process to this one, counted in each child.
static FORKS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Relaxed);
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u32);

impl Owner {
    /// The process that calls this.
    pub fn this_process() -> Owner {
        static COUNTED: Once = Once::new();
        COUNTED.call_once(|| call_after_fork(count_fork));
        Owner(FORKS.load(Relaxed))
    }

    /// Whether it is the calling process, and not a parent of it.
    #[inline]
    pub fn is_this_process(self) -> bool {
        self.0 == FORKS.load(Relaxed)
    }
}

impl Default for Owner {
    fn default() -> Owner {
        Owner::this_process()
    }
}
