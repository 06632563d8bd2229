//! The extents and chunks that a segment owns.

use super::super::layout::{EXTENT_PAGES, chunk_mask};
use super::SpaceState;
use crate::types::{PageNo, SegmentId};

impl SpaceState {
    /// Used pages of a segment, ascending.
    pub(crate) fn pages_of(&self, segment: SegmentId) -> Vec<PageNo> {
        let Some(owned) = self.segments.get(&segment.0) else { return Vec::new() };
        let used = |number: &u32| {
            let extent = self.extents[*number as usize];
            let bits = extent.used & chunk_mask(extent.chunks_of(segment.0));
            let first = number * EXTENT_PAGES;
            (0..EXTENT_PAGES).filter(move |b| bits >> b & 1 == 1).map(move |b| PageNo(first + b))
        };
        owned.extents.iter().flat_map(used).collect()
    }

    /// Segments that own a chunk, with their used pages.
    pub(crate) fn segments(&self) -> Vec<(SegmentId, u32)> {
        let mut all: Vec<_> = self.segments.iter().map(|(id, s)| (SegmentId(*id), s.pages)).collect();
        all.sort_unstable();
        all
    }

    /// Used pages of a segment.
    pub(crate) fn pages_in(&self, segment: SegmentId) -> u32 {
        self.segments.get(&segment.0).map_or(0, |segment| segment.pages)
    }

    /// Up to `limit` extents in which the segment owns chunks, and which chunks.
    pub(crate) fn extents_of(&self, segment: SegmentId, limit: usize) -> Vec<(u32, u8)> {
        let owned = self.segments.get(&segment.0);
        let extents = owned.into_iter().flat_map(|s| s.extents.iter().take(limit));
        extents.map(|n| (*n, self.extents[*n as usize].chunks_of(segment.0))).collect()
    }
}
