//! A thread that works for the handles of a program, and ends when the last one is dropped.
//!
//! Rules
//! 1. The last drop waits for its end, except inside a closure that the engine runs, because the thread may wait for
//!    the latch held there.
//! 2. A forked process does not have the thread: a drop there does nothing.

use crate::sync::Mutex;
use crate::sync::thread::JoinHandle;
use crate::txn::check_outside_closures;
use highwater_storage::Owner;

/// See the file's head.
pub(super) struct HandleThread {
    owner: Owner,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl HandleThread {
    /// A thread that this process has started.
    pub(super) fn new(thread: JoinHandle<()>) -> HandleThread {
        HandleThread { owner: Owner::this_process(), thread: Mutex::new(Some(thread)) }
    }

    /// Whether this process has the thread (rule 2).
    pub(super) fn is_here(&self) -> bool {
        self.owner.is_this_process()
    }

    /// Waits for the end of the thread, which knows that it is to end (rule 1).
    pub(super) fn join(&self) {
        let thread = self.thread.lock().take();
        if let (Some(thread), true) = (thread, check_outside_closures().is_ok()) {
            let _ = thread.join();
        }
    }
}

impl Drop for HandleThread {
    fn drop(&mut self) {
        if !self.is_here() {
            std::mem::forget(self.thread.get_mut().take());
        }
    }
}
