//! Neighbor flushing: which other pages of a page's extent are flushed with it. A pure function.
//!
//! As InnoDB does it: for pages of the LRU list and of the flush list; a single-page flush writes its page alone.

use crate::config::FlushNeighbors;
use crate::types::{EXTENT_PAGES, PageNo};
use std::ops::Range;

/// Adds to `out` the pages that go with `page`, in ascending order, `page` itself left out. `takes` says whether a page
/// of the extent would be flushed at all. `Auto` is to be resolved before; unresolved, it means nothing goes with it.
pub fn add(mode: FlushNeighbors, page: PageNo, takes: impl Fn(PageNo) -> bool, out: &mut Vec<PageNo>) {
    let range = match mode {
        FlushNeighbors::Off | FlushNeighbors::Auto => return,
        FlushNeighbors::Contiguous => run_around(page, &takes),
        FlushNeighbors::Extent => extent_of(page),
    };
    out.extend(range.map(PageNo).filter(|p| *p != page && takes(*p)));
}

/// Page numbers of the extent that `page` lies in.
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
mod tests {
    use super::*;

    #[test]
    fn as_the_option_says() {
        let dirty = [60, 63, 64, 65, 67, 70, 71, 72, 74, 126, 127, 128];
        let cases: [(FlushNeighbors, u32, &[u32]); 14] = [
            (FlushNeighbors::Off, 71, &[]),
            (FlushNeighbors::Auto, 71, &[]),
            (FlushNeighbors::Contiguous, 71, &[70, 72]),
            (FlushNeighbors::Contiguous, 70, &[71, 72]),
            (FlushNeighbors::Contiguous, 74, &[]),
            (FlushNeighbors::Contiguous, 64, &[65]),
            (FlushNeighbors::Contiguous, 63, &[]),
            (FlushNeighbors::Contiguous, 127, &[126]),
            (FlushNeighbors::Contiguous, 66, &[64, 65, 67]),
            (FlushNeighbors::Contiguous, 0, &[]),
            (FlushNeighbors::Extent, 71, &[64, 65, 67, 70, 72, 74, 126, 127]),
            (FlushNeighbors::Extent, 63, &[60]),
            (FlushNeighbors::Extent, 128, &[]),
            (FlushNeighbors::Extent, 100, &[64, 65, 67, 70, 71, 72, 74, 126, 127]),
        ];
        for (mode, page, expected) in cases {
            let mut out = Vec::new();
            add(mode, PageNo(page), |p| dirty.contains(&p.0), &mut out);
            assert_eq!(out.iter().map(|p| p.0).collect::<Vec<_>>(), expected, "{mode:?} around {page}");
        }
    }

    #[test]
    fn the_last_extent_does_not_overflow() {
        let mut out = Vec::new();
        add(FlushNeighbors::Extent, PageNo(u32::MAX - 1), |p| p.0 % 2 == 0, &mut out);
        assert_eq!(out.len(), 31);
    }
}
