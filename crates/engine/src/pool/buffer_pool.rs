//! The pool: its parts, and operations that use several of them.

use super::flush::PageFlusher;
use super::frames::ResidentPages;
use super::load::PageLoader;
use super::lru::{FrameDemand, PageCache};
use super::pacing::CleanerControl;
use super::read_ahead::{ReadAhead, ReadBuffer};
use super::supply::{FrameSupply, MIN_FRAMES};
use crate::config::Options;
use crate::error::Result;
use crate::log::Log;
use crate::stats::{LatencySnapshot, Stats};
use crate::store::PageStore;
use crate::sync::notify::Notify;
use crate::sync::poison::Poison;
use crate::types::PageNo;
use std::sync::Arc;
use std::time::Duration;

/// The buffer pool of one database.
pub(crate) struct Pool {
    loader: PageLoader,
    read_ahead: ReadAhead,
    cleaner_control: CleanerControl,
    log: Arc<Log>,
    stats: Arc<Stats>,
}

impl Pool {
    /// A pool of `options.buffer_pool_size` bytes over the store.
    ///
    /// # Errors
    /// The system has no memory for it.
    pub(crate) fn new(
        options: &Options,
        store: Arc<dyn PageStore>,
        log: Arc<Log>,
        stats: Arc<Stats>,
        poison: Arc<Poison>,
    ) -> Result<Pool> {
        let page_bytes = store.page_bytes();
        let in_use = (options.buffer_pool_size as usize / page_bytes).max(MIN_FRAMES);
        let count = (options.buffer_pool_size_max as usize / page_bytes).max(in_use);
        let pages = ResidentPages::new(count, page_bytes)?;
        let flusher = PageFlusher::new(pages, store.clone(), log.clone(), stats.clone(), poison.clone());
        let cache = PageCache::new(options, flusher, stats.clone());
        let supply = FrameSupply::new(options, cache, stats.clone(), poison.clone());
        let loader = PageLoader::new(supply, store, log.clone(), stats.clone(), poison);
        let pool =
            Pool { loader, read_ahead: ReadAhead::default(), cleaner_control: CleanerControl::default(), log, stats };
        pool.set_flush_neighbors(options.flush_neighbors);
        pool.resize(in_use)?;
        pool.set_lru_options(options);
        Ok(pool)
    }

    /// The outermost of its parts.
    #[inline]
    pub(super) fn loader(&self) -> &PageLoader {
        &self.loader
    }

    #[inline]
    pub(super) fn cache(&self) -> &PageCache {
        self.loader.cache()
    }

    #[inline]
    pub(super) fn flusher(&self) -> &PageFlusher {
        self.loader.flusher()
    }

    #[inline]
    pub(super) fn pages(&self) -> &ResidentPages {
        self.loader.pages()
    }

    pub(super) fn cleaner_control(&self) -> &CleanerControl {
        &self.cleaner_control
    }

    pub(super) fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Changes what the LRU list goes by, to what the options say and the pool's size allows.
    pub(crate) fn set_lru_options(&self, options: &Options) {
        self.cache().lru().set_options(options, self.frame_count());
    }

    /// Changes what steers flushing.
    pub(crate) fn set_flush_limits(&self, options: &Options) {
        self.cleaner_control.set_limits(options);
    }

    /// The notification that wakes the page cleaner.
    pub(crate) fn cleaner_notify(&self) -> &Notify {
        self.cleaner_control.notify()
    }

    /// The notification that wakes the LRU flusher.
    pub(crate) fn lru_notify(&self) -> &Notify {
        self.cache().lru_notify()
    }

    /// Slows users above the async watermark. The caller holds no latch.
    #[inline]
    pub(crate) fn throttle(&self) {
        if let Some(waited) = self.cleaner_control.wait(|| self.log.end_lsn()) {
            self.stats.sync_flush_waits.inc();
            self.stats.sync_flush_wait_us.add(waited.as_micros() as u64);
        }
    }

    /// Sets the redo that users may write per second. Without threads there is no limit: no thread would advance it
    /// while the caller waits.
    pub(super) fn set_pace(&self, bytes_per_s: Option<f64>) {
        let limit = bytes_per_s.filter(|_| self.flusher().threads_run());
        self.cleaner_control.set_pace(limit, self.log.end_lsn());
    }

    /// Sets whether threads run that call the steps of the page cleaner and of the LRU flusher.
    pub(crate) fn set_threads(&self, run: bool) {
        self.flusher().set_threads(run);
        if !run {
            self.cleaner_control.set_pace(None, self.log.end_lsn());
        }
    }

    /// One step of the LRU flusher; returns how many pages it flushed.
    pub(super) fn keep_free(&self, demand: &mut FrameDemand, now_ms: u64) -> Result<usize> {
        self.cache().lru().set_now_ms(now_ms);
        self.loader.supply().keep_free(demand, now_ms)
    }

    /// Names a page that a load has filled; the page cleaner writes it soon. The caller may hold latches.
    pub(crate) fn note_bulk_loaded(&self, page_no: PageNo) {
        if self.flusher().note_bulk_loaded(page_no) {
            self.cleaner_notify().wake();
        }
    }

    /// Requests the read-ahead of those of the pages that are not resident.
    pub(crate) fn request(&self, pages: &[PageNo]) {
        self.read_ahead.request(&self.loader, pages);
    }

    /// Whether pages were read into the pool lately: since this thread asked for one of the last few rows before these.
    pub(crate) fn misses(&self, rows: usize) -> bool {
        self.read_ahead.misses(self.stats.pages_read.get(), rows)
    }

    /// Reads the first requested pages, if there are any. `one_more` is to start another thread.
    pub(crate) fn read_ahead_step(&self, buffer: &mut ReadBuffer, one_more: impl FnOnce()) {
        let read = self.read_ahead.step(&self.loader, buffer, one_more);
        self.stats.pages_read_ahead.add(read as u64);
    }

    /// Waits until a page is requested, or [`Pool::stop_readers`].
    pub(crate) fn await_request(&self, timeout: Duration) {
        self.read_ahead.await_request(timeout);
    }

    /// Threads run that call [`Pool::read_ahead_step`].
    pub(crate) fn start_readers(&self) {
        self.read_ahead.start();
    }

    /// Discards the requests, and ends the pauses of the read threads for good.
    pub(crate) fn stop_readers(&self) {
        self.read_ahead.stop();
    }

    /// Whether read-ahead threads run.
    #[inline]
    pub(crate) fn reads_ahead(&self) -> bool {
        self.read_ahead.has_threads()
    }

    /// From finding that a page is not resident until it is readable, the wait for a frame included.
    pub(crate) fn page_read_latency(&self) -> LatencySnapshot {
        self.loader.page_read_latency()
    }

    /// Waits of threads that found no free frame.
    pub(crate) fn free_frame_wait_latency(&self) -> LatencySnapshot {
        self.loader.supply().free_frame_wait_latency()
    }

    /// Refreshes the pool's gauges.
    pub(super) fn publish_gauges(&self) {
        let frames = self.pages().frames();
        let free = self.free_count();
        self.stats.pool_pages_free.set(free as u64);
        let unused = free + frames.without_memory();
        self.stats.pool_pages_data.set(frames.len().saturating_sub(unused) as u64);
        self.stats.pool_pages_dirty.set(self.dirty_count() as u64);
    }
}

/// Every flushed page was counted under one reason.
#[cfg(debug_assertions)]
impl Drop for Pool {
    fn drop(&mut self) {
        let stats = self.stats.snapshot();
        if !std::thread::panicking() {
            assert_eq!(stats.pages_flushed, stats.pages_flushed_by_reason(), "{stats:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::small_parts;

    /// One thread that does all steps itself waits for none of them.
    #[test]
    fn without_threads_no_user_is_slowed() {
        let parts = small_parts();
        let (pool, ctx) = (&parts.ctx.pool, &parts.ctx);
        for (threads, waits) in [(false, 0), (true, 1)] {
            parts.space.prepare(ctx).unwrap();
            pool.set_threads(threads);
            pool.set_pace(Some(1.0));
            let mut mtr = ctx.mtr_with(1000, 1).unwrap();
            parts.space.allocate(&mut mtr, crate::types::SegmentId(0x63), None).unwrap();
            mtr.commit();
            pool.throttle();
            assert_eq!(ctx.stats.sync_flush_waits.get(), waits);
        }
        pool.set_threads(false);
    }
}
