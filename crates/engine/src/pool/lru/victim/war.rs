//! Victim policy `war`, write after read: a dirty victim is deferred and the read goes first.
//!
//! A bounded reserve of free frames is kept. A thread that needs a frame and finds a dirty page at the LRU tail
//! takes the page off the LRU list, leaves it in its frame for the flusher to write, and reads into a frame of the
//! reserve. When the page is written and was not changed meanwhile, its frame joins the reserve.
//!
//! Rules
//! 1. A deferred page stays in the page table and on the flush list: a lookup finds its newest bytes, and the
//!    checkpoint waits for it. It is flushed like every other page, so its redo is durable first.
//! 2. Deferred pages plus frames in reserve are never more than `limit`. When the reserve is used up, threads wait
//!    for the flusher.
//! 3. A page that was changed or is latched after its write goes back to the LRU list.
//!
//! Differs from the published WAR (VLDB 2023): frames change hands instead of bytes being copied; the memory used is
//! the same.

use super::Victims;
use crate::error::Result;
use crate::pool::{FlushReason, FrameNo, Pool};
use crate::store::BATCH_PAGES;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::Relaxed;

pub struct War {
    aside: Mutex<DeferredVictims>,
    /// Most frames deferred, being written and in reserve.
    limit: usize,
}

/// The reserve and the deferred pages.
#[derive(Default)]
struct DeferredVictims {
    /// Free frames, each latched exclusively.
    reserve: Vec<FrameNo>,
    /// Frames of pages to be written.
    waiting: Vec<FrameNo>,
    /// Frames being written.
    writing: usize,
}

impl DeferredVictims {
    /// Frames deferred, being written and in reserve.
    fn len(&self) -> usize {
        self.reserve.len() + self.waiting.len() + self.writing
    }
}

impl Victims for War {
    /// Sets `count` dirty pages at the LRU tail aside and takes as many frames of the reserve.
    fn take_from_reserve(&self, pool: &Pool, count: usize, out: &mut Vec<FrameNo>) -> bool {
        let mut aside = self.aside.lock();
        if aside.reserve.len() < count {
            return false;
        }
        let victims = take_dirty_tail(pool, count);
        if victims.len() < count {
            let mut lru = pool.lru.list.lock();
            victims.into_iter().for_each(|frame| lru.insert_old(&pool.frames, frame));
            return false;
        }
        aside.waiting.extend(victims);
        self.check_state(&aside);
        let rest = aside.reserve.len() - count;
        out.extend(aside.reserve.drain(rest..));
        drop(aside);
        pool.lru_notify().wake();
        true
    }

    fn make_clean(&self, pool: &Pool, others_work: bool) -> Result<bool> {
        if others_work {
            return Ok(false);
        }
        Ok(self.write_deferred(pool)? > 0 || pool.flush_one_page()?)
    }

    /// Refills the reserve too.
    fn write_deferred(&self, pool: &Pool) -> Result<usize> {
        let written = {
            let mut aside = self.aside.lock();
            let waiting = std::mem::take(&mut aside.waiting);
            aside.writing += waiting.len();
            waiting
        };
        let flushed = pool.flush_frames(&written, FlushReason::LruList)?;
        let mut evicted = 0;
        for frame in &written {
            let free = pool.detach_if_clean(*frame);
            evicted += u64::from(free);
            self.aside.lock().writing -= 1;
            if free { self.put_in_reserve(pool, *frame) } else { back_to_lru(pool, *frame) }
        }
        pool.stats.pages_evicted.add(evicted);
        self.fill_reserve(pool);
        if !written.is_empty() {
            pool.free.put([]);
        }
        Ok(flushed)
    }
}

impl War {
    pub fn new(frames: usize) -> War {
        War { aside: Mutex::default(), limit: BATCH_PAGES.min(frames / 16) }
    }

    /// Rule 2.
    fn check_state(&self, aside: &DeferredVictims) {
        debug_assert!(aside.len() <= self.limit + aside.reserve.len(), "more pages are deferred than {}", self.limit);
    }

    fn put_in_reserve(&self, pool: &Pool, frame: FrameNo) {
        let mut aside = self.aside.lock();
        if aside.len() < self.limit {
            pool.frames.check_free(frame);
            aside.reserve.push(frame);
            self.check_state(&aside);
        } else {
            drop(aside);
            pool.free.put([frame]);
        }
    }

    /// Moves free frames to the reserve until it is full.
    fn fill_reserve(&self, pool: &Pool) {
        let mut aside = self.aside.lock();
        let missing = self.limit.saturating_sub(aside.len());
        for _ in 0..missing {
            if pool.free.take(1, &mut aside.reserve).is_none() {
                return;
            }
        }
    }
}

/// Takes up to `want` dirty pages at the tail off the LRU list.
fn take_dirty_tail(pool: &Pool, want: usize) -> Vec<FrameNo> {
    let mut lru = pool.lru.list.lock();
    let victims = pool.dirty_at_tail(&lru, pool.lru.scan_depth(), want);
    victims.iter().for_each(|frame| lru.remove(&pool.frames, *frame));
    victims
}

fn back_to_lru(pool: &Pool, frame: FrameNo) {
    let mut lru = pool.lru.list.lock();
    let state = pool.frames.get(frame);
    if !state.kept.load(Relaxed) && !lru.contains(frame) {
        lru.insert_old(&pool.frames, frame);
    }
}
