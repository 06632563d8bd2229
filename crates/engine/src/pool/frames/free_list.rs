//! Free list: frames that hold no page, each latched exclusively by the list.
//!
//! Rules
//! 1. A caller gets all requested frames or none, so two threads that each have half of their frames never wait for
//!    each other.
//! 2. Waiters hold no latch.

use super::frame::FrameNo;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex};
use std::time::Duration;

pub(crate) struct FreeList {
    frames: Mutex<Vec<FrameNo>>,
    arrived: Condvar,
    /// Frames ever taken.
    taken: AtomicU64,
}

impl FreeList {
    /// All `count` frames are free.
    pub(crate) fn new(count: usize) -> FreeList {
        FreeList {
            frames: Mutex::new((0..count as FrameNo).rev().collect()),
            arrived: Condvar::new(),
            taken: AtomicU64::new(0),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.frames.lock().len()
    }

    /// Moves `count` frames to `out` if there are that many; returns how many stay on the list, else `None`.
    pub(crate) fn take(&self, count: usize, out: &mut Vec<FrameNo>) -> Option<usize> {
        let mut frames = self.frames.lock();
        let rest = frames.len().checked_sub(count)?;
        out.extend(frames.drain(rest..));
        self.taken.fetch_add(count as u64, Relaxed);
        Some(rest)
    }

    /// Frames ever taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// Releases frames.
    pub(crate) fn put(&self, back: impl IntoIterator<Item = FrameNo>) {
        self.frames.lock().extend(back);
        self.arrived.notify_all();
    }

    /// Waits until frames arrive or `timeout` passes.
    pub(crate) fn wait(&self, timeout: Duration) {
        let mut frames = self.frames.lock();
        self.arrived.wait_for(&mut frames, timeout);
    }
}
