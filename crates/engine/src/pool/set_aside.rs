//! Victim policy `war`, write after read: a dirty victim is set aside and the read goes first.
//!
//! A bounded reserve of free frames stands ready. A thread that needs a frame and finds a dirty page at the LRU tail takes
//! the page off the LRU list, leaves it in its frame for the flusher to write, and reads into a frame of the reserve. When
//! the page is written and nobody changed it meanwhile, its frame joins the reserve.
//!
//! Rules
//! 1. A page set aside stays in the page table and on the flush list: whoever wants it finds its newest bytes, and the
//!    checkpoint waits for it. Nothing is written before its redo: it goes the way of every flush.
//! 2. Pages set aside plus frames in reserve are never more than [`SetAside::limit`]. When the reserve is used up, threads wait
//!    for the flusher.
//! 3. A page that was changed or is latched after its write goes back to the LRU list.
//!
//! Differs from the published WAR (VLDB 2023): frames change hands instead of bytes being copied; the memory used is the same.

use super::frame::FrameNo;
use super::{FlushReason, Pool};
use crate::error::Result;
use std::sync::atomic::Ordering::Relaxed;

/// The reserve and the pages set aside.
#[derive(Default)]
pub struct SetAside {
    /// Free frames, each latched exclusively.
    reserve: Vec<FrameNo>,
    /// Frames of pages to be written.
    waiting: Vec<FrameNo>,
    /// Frames being written.
    writing: usize,
    limit: usize,
}

impl SetAside {
    /// For up to `limit` frames.
    pub fn new(limit: usize) -> SetAside {
        SetAside { limit, ..SetAside::default() }
    }

    /// Frames on their way and in reserve.
    fn len(&self) -> usize {
        self.reserve.len() + self.waiting.len() + self.writing
    }
}

impl Pool {
    /// Pages looked at from the tail of the LRU list: the option, within what so small a pool allows.
    pub fn lru_scan_depth(&self) -> usize {
        self.lru_scan_depth
    }

    /// Sets dirty pages at the LRU tail aside for as many frames of the reserve; says whether it did.
    pub(super) fn take_from_reserve(&self, count: usize, out: &mut Vec<FrameNo>) -> bool {
        let mut aside = self.set_aside.lock();
        if aside.reserve.len() < count {
            return false;
        }
        let victims = self.take_dirty_tail(self.lru_scan_depth, count);
        if victims.len() < count {
            let mut lru = self.lru.lock();
            victims.into_iter().for_each(|frame| lru.insert_old(&self.frames, frame));
            return false;
        }
        aside.waiting.extend(victims);
        let rest = aside.reserve.len() - count;
        out.extend(aside.reserve.drain(rest..));
        drop(aside);
        self.lru_flusher.wake();
        true
    }

    /// Takes up to `want` dirty pages among the last `depth` off the LRU list.
    fn take_dirty_tail(&self, depth: usize, want: usize) -> Vec<FrameNo> {
        let mut lru = self.lru.lock();
        let victims = self.dirty_at_tail(&lru, depth, want);
        victims.iter().for_each(|frame| lru.remove(&self.frames, *frame));
        victims
    }

    /// Writes the pages set aside and refills the reserve; says how many pages it flushed.
    ///
    /// # Errors
    /// An I/O error, after which the database is poisoned.
    pub(crate) fn write_set_aside(&self) -> Result<usize> {
        let written = {
            let mut aside = self.set_aside.lock();
            let waiting = std::mem::take(&mut aside.waiting);
            aside.writing += waiting.len();
            waiting
        };
        let flushed = self.flush_frames(&written, FlushReason::LruList)?;
        let mut evicted = 0;
        for frame in &written {
            let free = self.detach_if_clean(*frame);
            evicted += u64::from(free);
            self.set_aside.lock().writing -= 1;
            if free { self.put_in_reserve(*frame) } else { self.back_to_lru(*frame) }
        }
        self.stats.pages_evicted.add(evicted);
        self.fill_reserve();
        if !written.is_empty() {
            self.free.put([]);
        }
        Ok(flushed)
    }

    fn back_to_lru(&self, frame: FrameNo) {
        let mut lru = self.lru.lock();
        let state = self.frames.get(frame);
        if !state.kept.load(Relaxed) && !lru.contains(frame) {
            lru.insert_old(&self.frames, frame);
        }
    }

    fn put_in_reserve(&self, frame: FrameNo) {
        let mut aside = self.set_aside.lock();
        if aside.len() < aside.limit {
            aside.reserve.push(frame);
        } else {
            drop(aside);
            self.free.put([frame]);
        }
    }

    /// Moves free frames to the reserve until it is full.
    fn fill_reserve(&self) {
        let mut aside = self.set_aside.lock();
        let missing = aside.limit.saturating_sub(aside.len());
        for _ in 0..missing {
            if self.free.take(1, &mut aside.reserve).is_none() {
                return;
            }
        }
    }
}
