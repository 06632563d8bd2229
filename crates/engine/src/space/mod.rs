//! File space: extents of 64 pages, segments, allocation, growth. SKELETON

use crate::error::Result;
use crate::mtr::Mtr;
use crate::types::{PageNo, SegmentId};

/// The data file's space.
pub struct Space {
    _p: (),
}

impl Space {
    /// A new segment's number (owns nothing yet).
    pub fn new_segment(&self) -> SegmentId {
        unimplemented!()
    }
    /// Takes a page for `segment`, near `near` where possible; recorded in `mtr` (which must then be committed).
    /// The caller then gets its frame by `mtr.new_page(page_no)` and formats it.
    pub fn allocate(&self, _mtr: &mut Mtr<'_>, _segment: SegmentId, _near: Option<PageNo>) -> Result<PageNo> {
        unimplemented!()
    }
    /// Gives a page back; it may be allocated again once `mtr` has committed.
    pub fn free(&self, _mtr: &mut Mtr<'_>, _page: PageNo) {
        unimplemented!()
    }
    /// Owner of a page, `None` if free or beyond the file.
    pub fn owner(&self, _page: PageNo) -> Option<SegmentId> {
        unimplemented!()
    }
    /// Frees up to `extents` extents of a dropped segment, in an mtr of its own; true when the segment owns nothing any more.
    pub fn drop_segment_step(&self, _ctx: &crate::mtr::Context, _segment: SegmentId, _extents: usize) -> Result<bool> {
        unimplemented!()
    }
    /// Every used page of a segment, ascending (for `check`).
    pub fn pages_of(&self, _segment: SegmentId) -> Vec<PageNo> {
        unimplemented!()
    }
}
