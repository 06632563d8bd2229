//! The pages that are flushed together: the requested pages and their neighbors.

use super::neighbors;
use super::reason::FlushReason;
use crate::config::FlushNeighbors;
use crate::pool::frames::{FrameNo, NO_PAGE, ResidentPages};
use crate::sync::atomic::{AtomicU8, Ordering::Relaxed};
use crate::types::PageNo;

/// A page to be flushed.
#[derive(Clone, Copy)]
pub(super) struct FlushTarget {
    pub page_no: PageNo,
    pub frame: FrameNo,
    /// It is flushed because it is a neighbor of another one.
    pub neighbor: bool,
}

impl FlushTarget {
    /// The requested page in a frame.
    pub(super) fn new(pages: &ResidentPages, frame: FrameNo) -> FlushTarget {
        FlushTarget { page_no: pages.get(frame).page_no(), frame, neighbor: false }
    }
}

/// The choice of what is flushed with a page.
#[derive(Default)]
pub(super) struct FlushSelection {
    /// 0, 1 or 2; see `neighbors`.
    neighbors: AtomicU8,
}

impl FlushSelection {
    /// The pages in `frames` and their neighbors, by page number, each once.
    pub(super) fn targets(&self, pages: &ResidentPages, frames: &[FrameNo], reason: FlushReason) -> Vec<FlushTarget> {
        let mut targets: Vec<FlushTarget> = frames.iter().map(|frame| FlushTarget::new(pages, *frame)).collect();
        let mode = self.neighbors();
        if reason != FlushReason::SinglePage && mode != FlushNeighbors::Off {
            add_neighbors(pages, &mut targets, mode, reason);
        }
        // A requested page sorts before the same page as a neighbor, and is kept.
        targets.sort_unstable_by_key(|target| (target.page_no, target.neighbor));
        targets.dedup_by_key(|target| target.page_no);
        targets
    }

    /// The mode of flushing neighbors; never `Auto`.
    fn neighbors(&self) -> FlushNeighbors {
        match self.neighbors.load(Relaxed) {
            1 => FlushNeighbors::Contiguous,
            2 => FlushNeighbors::Extent,
            _ => FlushNeighbors::Off,
        }
    }

    /// Chooses what is flushed with a page from now on; `Auto` stands for `Off`.
    pub(super) fn set_neighbors(&self, mode: FlushNeighbors) {
        let value = match mode {
            FlushNeighbors::Off | FlushNeighbors::Auto => 0,
            FlushNeighbors::Contiguous => 1,
            FlushNeighbors::Extent => 2,
        };
        self.neighbors.store(value, Relaxed);
    }
}

fn add_neighbors(pages: &ResidentPages, targets: &mut Vec<FlushTarget>, mode: FlushNeighbors, reason: FlushReason) {
    let dirty = |page_no| dirty_frame(pages, page_no, reason == FlushReason::LruList);
    let mut with = Vec::new();
    for target in targets.iter().filter(|target| target.page_no != NO_PAGE) {
        neighbors::add(mode, target.page_no, |p| dirty(p).is_some(), &mut with);
    }
    with.sort_unstable();
    with.dedup();
    targets.extend(
        with.into_iter().filter_map(|page_no| Some(FlushTarget { page_no, frame: dirty(page_no)?, neighbor: true })),
    );
}

/// The frame of a resident page that is dirty and not being written; with `old_only`, one about to leave the pool. It
/// may miss a page sometimes: that neighbor is not flushed this time.
fn dirty_frame(pages: &ResidentPages, page_no: PageNo, old_only: bool) -> Option<FrameNo> {
    let frame = pages.peek(page_no)?;
    let state = pages.get(frame);
    let old = !old_only || state.young_stamp.load(Relaxed) == 0;
    (old && state.oldest_lsn().is_some() && !state.dirty.is_flushing()).then_some(frame)
}
