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

use super::victims::Victims;
use crate::error::Result;
use crate::pool::flush::FlushReason;
use crate::pool::frames::FrameNo;
use crate::pool::lru::cache::PageCache;
use crate::pool::lru::evict::detach_if_clean;
use crate::store::BATCH_PAGES;
use crate::sync::Mutex;

pub(super) struct War {
    deferred: Mutex<DeferredVictims>,
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
    /// Defers `count` dirty pages at the LRU tail and takes as many frames of the reserve.
    fn take_from_reserve(&self, cache: &PageCache, count: usize, out: &mut Vec<FrameNo>) -> bool {
        let mut deferred = self.deferred.lock();
        if deferred.reserve.len() < count {
            return false;
        }
        let victims = cache.lru().take_dirty_tail(cache.pages(), count);
        if victims.len() < count {
            victims.into_iter().for_each(|frame| cache.lru().insert_old(cache.pages(), frame));
            return false;
        }
        deferred.waiting.extend(victims);
        self.check_state(&deferred);
        let rest = deferred.reserve.len() - count;
        out.extend(deferred.reserve.drain(rest..));
        drop(deferred);
        cache.lru_notify().wake();
        true
    }

    fn make_clean(&self, cache: &PageCache, others_work: bool) -> Result<bool> {
        if others_work {
            return Ok(false);
        }
        Ok(self.write_deferred(cache)? > 0 || cache.flush_one_page()?)
    }

    /// Refills the reserve too.
    fn write_deferred(&self, cache: &PageCache) -> Result<usize> {
        let written = {
            let mut deferred = self.deferred.lock();
            let waiting = std::mem::take(&mut deferred.waiting);
            deferred.writing += waiting.len();
            waiting
        };
        let flushed = cache.flusher().flush_frames(&written, FlushReason::LruList)?;
        let mut evicted = 0;
        for frame in &written {
            let free = detach_if_clean(cache.pages(), *frame);
            evicted += usize::from(free);
            self.deferred.lock().writing -= 1;
            if free { self.put_in_reserve(cache, *frame) } else { cache.lru().put_back(cache.pages(), *frame) }
        }
        cache.note_evicted(evicted);
        self.fill_reserve(cache);
        if !written.is_empty() {
            cache.pages().free().put([]);
        }
        Ok(flushed)
    }
}

impl War {
    pub(super) fn new(frames: usize) -> War {
        War { deferred: Mutex::default(), limit: BATCH_PAGES.min(frames / 16) }
    }

    /// Rule 2.
    fn check_state(&self, deferred: &DeferredVictims) {
        debug_assert!(
            deferred.len() <= self.limit + deferred.reserve.len(),
            "more pages are deferred than {}",
            self.limit
        );
    }

    fn put_in_reserve(&self, cache: &PageCache, frame: FrameNo) {
        let mut deferred = self.deferred.lock();
        if deferred.len() < self.limit {
            cache.pages().frames().check_free(frame);
            deferred.reserve.push(frame);
            self.check_state(&deferred);
        } else {
            drop(deferred);
            cache.pages().free().put([frame]);
        }
    }

    /// Moves free frames to the reserve until it is full.
    fn fill_reserve(&self, cache: &PageCache) {
        let mut deferred = self.deferred.lock();
        let missing = self.limit.saturating_sub(deferred.len());
        for _ in 0..missing {
            if cache.pages().free().take(1, &mut deferred.reserve).is_none() {
                return;
            }
        }
    }
}
