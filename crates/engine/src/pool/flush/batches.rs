//! Batches kept for reuse, and the latency of batches.

use crate::store::{BATCH_PAGES, FlushLane, PageBatch};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A batch up to this size is allocated when it is needed; a larger one is kept for reuse.
const SMALL_BATCH_PAGES: usize = 8;
/// Large batches kept.
const SPARE_BATCHES: usize = 4;

pub(super) struct Batches {
    page_bytes: usize,
    /// Full-size batches between uses.
    spare: Mutex<Vec<PageBatch>>,
    /// Smoothed microseconds that writing a batch took, by lane.
    took_us: [AtomicU64; FlushLane::COUNT],
}

impl Batches {
    pub(super) fn new(page_bytes: usize) -> Batches {
        Batches { page_bytes, spare: Mutex::default(), took_us: Default::default() }
    }

    /// An empty batch for up to `pages` pages.
    pub(super) fn take(&self, pages: usize) -> PageBatch {
        if pages <= SMALL_BATCH_PAGES {
            return PageBatch::new(pages, self.page_bytes);
        }
        self.spare.lock().pop().unwrap_or_else(|| PageBatch::new(BATCH_PAGES, self.page_bytes))
    }

    /// Takes a batch back after use.
    pub(super) fn put(&self, mut batch: PageBatch) {
        let mut spare = self.spare.lock();
        if batch.capacity() == BATCH_PAGES && spare.len() < SPARE_BATCHES {
            batch.clear();
            spare.push(batch);
        }
    }

    /// Notes how long writing a batch took.
    pub(super) fn note_us(&self, lane: FlushLane, took_us: u64) {
        let smoothed = &self.took_us[lane as usize];
        let past = smoothed.load(Relaxed);
        let now = if past == 0 { took_us } else { (past * 7 + took_us) / 8 };
        smoothed.store(now.max(1), Relaxed);
    }

    /// Microseconds that writing a batch took lately, smoothed; 0 when there was none yet.
    pub(super) fn us(&self, lane: FlushLane) -> u64 {
        self.took_us[lane as usize].load(Relaxed)
    }
}
