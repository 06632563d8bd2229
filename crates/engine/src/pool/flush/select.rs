//! What is flushed together: the pages asked for and their neighbors.

use super::{FlushReason, neighbors};
use crate::config::FlushNeighbors;
use crate::pool::{FrameNo, NO_PAGE, Pool};
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::PageNo;

/// A page to be flushed.
#[derive(Clone, Copy)]
pub struct FlushTarget {
    pub page_no: PageNo,
    pub frame: FrameNo,
    /// It is flushed because it is a neighbor of another one.
    pub neighbor: bool,
}

impl Pool {
    /// The pages in `frames` and their neighbors, by page number, each once.
    pub(super) fn targets(&self, frames: &[FrameNo], reason: FlushReason) -> Vec<FlushTarget> {
        let mut targets: Vec<FlushTarget> = frames.iter().map(|frame| self.target(*frame)).collect();
        let mode = self.flush_neighbors();
        if reason != FlushReason::SinglePage && mode != FlushNeighbors::Off {
            self.add_neighbors(&mut targets, mode, reason);
        }
        // A page asked for comes before the same page as a neighbor, and stays.
        targets.sort_unstable_by_key(|target| (target.page_no, target.neighbor));
        targets.dedup_by_key(|target| target.page_no);
        targets
    }

    pub(super) fn target(&self, frame: FrameNo) -> FlushTarget {
        FlushTarget { page_no: self.frames.get(frame).page_no(), frame, neighbor: false }
    }

    fn add_neighbors(&self, targets: &mut Vec<FlushTarget>, mode: FlushNeighbors, reason: FlushReason) {
        let dirty = |page_no| self.dirty_frame(page_no, reason == FlushReason::LruList);
        let mut pages = Vec::new();
        for target in targets.iter().filter(|target| target.page_no != NO_PAGE) {
            neighbors::add(mode, target.page_no, |p| dirty(p).is_some(), &mut pages);
        }
        pages.sort_unstable();
        pages.dedup();
        targets.extend(
            pages
                .into_iter()
                .filter_map(|page_no| Some(FlushTarget { page_no, frame: dirty(page_no)?, neighbor: true })),
        );
    }

    /// The frame of a resident page that is dirty and not being written; with `old_only`, one about to leave the pool.
    /// It may miss a page sometimes: that neighbor is not flushed this time.
    fn dirty_frame(&self, page_no: PageNo, old_only: bool) -> Option<FrameNo> {
        let frame = self.table.peek(&self.frames, page_no)?;
        let state = self.frames.get(frame);
        let old = !old_only || state.young_stamp.load(Relaxed) == 0;
        (old && state.oldest_lsn().is_some() && !state.dirty.is_flushing()).then_some(frame)
    }

    /// What is flushed with a page; never `Auto`.
    pub fn flush_neighbors(&self) -> FlushNeighbors {
        match self.flush.neighbors.load(Relaxed) {
            1 => FlushNeighbors::Contiguous,
            2 => FlushNeighbors::Extent,
            _ => FlushNeighbors::Off,
        }
    }

    /// Chooses what is flushed with a page from now on; `Auto`, which is resolved at opening, stands for `Off`.
    pub fn set_flush_neighbors(&self, mode: FlushNeighbors) {
        let value = match mode {
            FlushNeighbors::Off | FlushNeighbors::Auto => 0,
            FlushNeighbors::Contiguous => 1,
            FlushNeighbors::Extent => 2,
        };
        self.flush.neighbors.store(value, Relaxed);
    }
}
