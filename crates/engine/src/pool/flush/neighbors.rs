//! Neighbor flushing: the other pages of a page's extent that are flushed with it. A pure function.
//!
//! As InnoDB does it: for pages of the LRU list and of the flush list; a single-page flush writes its page alone.

use crate::config::FlushNeighbors;
use crate::types::{EXTENT_PAGES, PageNo};
use std::ops::Range;

/// Adds to `out` the pages that go with `page`, in ascending order, `page` itself left out. `takes` says whether a page
/// of the extent would be flushed at all. `Auto` is resolved before; here it stands for `Off`.
pub(super) fn add(mode: FlushNeighbors, page: PageNo, takes: impl Fn(PageNo) -> bool, out: &mut Vec<PageNo>) {
    let range = match mode {
        FlushNeighbors::Off | FlushNeighbors::Auto => return,
        FlushNeighbors::Contiguous => run_around(page, &takes),
        FlushNeighbors::Extent => extent_of(page),
    };
    out.extend(range.map(PageNo).filter(|p| *p != page && takes(*p)));
}

/// Page numbers of the extent that `page` is in.
fn extent_of(page: PageNo) -> Range<u32> {
    let start = page.0 - page.0 % EXTENT_PAGES;
    start..start.saturating_add(EXTENT_PAGES)
}

/// The unbroken run of pages that `takes` around `page`, within its extent.
fn run_around(page: PageNo, takes: impl Fn(PageNo) -> bool) -> Range<u32> {
    let extent = extent_of(page);
    let start = (extent.start..page.0).rev().take_while(|p| takes(PageNo(*p))).last().unwrap_or(page.0);
    let last = (page.0 + 1..extent.end).take_while(|p| takes(PageNo(*p))).last().unwrap_or(page.0);
    start..last + 1
}

#[cfg(test)]
#[path = "neighbors_test.rs"]
mod tests;
