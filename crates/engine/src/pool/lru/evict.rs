//! The tail of the LRU list: clean pages are evicted; dirty pages are flushed to free their frames, or deferred.

use super::list::LruList;
use super::recency::Lru;
use crate::pool::frames::{FrameNo, NIL, ResidentPages};
use crate::sync::atomic::Ordering::Relaxed;

impl Lru {
    /// Takes up to `want` clean pages among the last `depth` of the list out of it and out of the page table; their
    /// frames stay latched exclusively. With `by_cursor` the search continues where the last one ended, within the old
    /// part and before the pages that came in lately, unless pages have become clean since: `cleanings` counts those.
    pub(crate) fn evict(
        &self,
        pages: &ResidentPages,
        cleanings: impl Fn() -> u32,
        depth: usize,
        want: usize,
        by_cursor: bool,
    ) -> Vec<FrameNo> {
        let frames = pages.frames();
        let mut evicted = Vec::with_capacity(want.min(frames.len()));
        let mut lru = self.list.lock();
        let cleanings = cleanings();
        let on = by_cursor && self.searched.swap(cleanings, Relaxed) == cleanings;
        let mut at = if on { lru.cursor() } else { lru.tail() };
        for _ in 0..depth {
            if at == NIL || evicted.len() == want || (by_cursor && lru.ends_search(frames, at)) {
                break;
            }
            let next = lru.toward_head(at);
            if detach_if_clean(pages, at) {
                lru.remove(frames, at);
                evicted.push(at);
            }
            at = next;
        }
        // At the end the search starts again: pages that were latched when it passed may be free now.
        let at_end = at == NIL || lru.ends_search(frames, at);
        lru.set_cursor(if by_cursor && !at_end { at } else { NIL });
        evicted
    }

    /// Whether the least recently used page is dirty.
    pub(crate) fn is_tail_dirty(&self, pages: &ResidentPages) -> bool {
        let tail = self.list.lock().tail();
        tail != NIL && pages.get(tail).oldest_lsn().is_some()
    }

    /// Up to `want` dirty frames among the last `depth` of the list, least recently used first.
    pub(crate) fn dirty_tail(&self, pages: &ResidentPages, depth: usize, want: usize) -> Vec<FrameNo> {
        dirty_at_tail(pages, &self.list.lock(), depth, want)
    }

    /// Takes up to `want` dirty pages at the tail off the list.
    pub(crate) fn take_dirty_tail(&self, pages: &ResidentPages, want: usize) -> Vec<FrameNo> {
        let mut list = self.list.lock();
        let victims = dirty_at_tail(pages, &list, self.scan_depth(), want);
        victims.iter().for_each(|frame| list.remove(pages.frames(), *frame));
        victims
    }

    /// Enters a page again that was taken off the list, unless it is there or stays resident without the list.
    pub(crate) fn put_back(&self, pages: &ResidentPages, frame: FrameNo) {
        let mut list = self.list.lock();
        if !pages.get(frame).kept.load(Relaxed) && !list.contains(frame) {
            list.insert_old(pages.frames(), frame);
        }
    }
}

/// Up to `want` dirty frames among the last `depth` of the locked list.
fn dirty_at_tail(pages: &ResidentPages, lru: &LruList, depth: usize, want: usize) -> Vec<FrameNo> {
    let mut dirty = Vec::new();
    let mut at = lru.tail();
    for _ in 0..depth {
        if at == NIL || dirty.len() == want {
            break;
        }
        let state = pages.get(at);
        if state.oldest_lsn().is_some() && !state.dirty.is_flushing() {
            dirty.push(at);
        }
        at = lru.toward_head(at);
    }
    dirty
}

/// Takes a clean, unlatched page out of the page table; its frame stays latched exclusively.
pub(super) fn detach_if_clean(pages: &ResidentPages, frame: FrameNo) -> bool {
    let state = pages.get(frame);
    if state.oldest_lsn().is_some() || !state.latch.try_lock_exclusive() {
        return false;
    }
    let stays = state.kept.load(Relaxed) || state.pins.load(Relaxed) > 0;
    if stays || state.oldest_lsn().is_some() || state.dirty.is_flushing() {
        state.latch.unlock_exclusive(false);
        return false;
    }
    debug_assert!(!state.dirty.is_recreated_by_redo(), "the clean page of frame {frame} counts as changed");
    pages.unmap(frame);
    true
}
