//! Compaction: the target and the choice of pages that move to the front of the file.

use super::Space;
use super::truncation::{Cut, kept_extents};
use crate::context::Context;
use crate::error::Result;
use crate::types::PageNo;

/// Bare extents that are reserved at once for pages that are moved.
const RESERVE_EXTENTS: usize = 16;

/// While it exists, allocation prefers extents at the front of the file; see [`Space::prefer_below`].
pub(crate) struct PreferredEnd<'s> {
    space: &'s Space,
}

impl Drop for PreferredEnd<'_> {
    fn drop(&mut self) {
        self.space.state.lock().prefer_below(u32::MAX);
    }
}

impl Space {
    /// Makes allocation prefer extents below `end`, for every segment, until the result is dropped.
    pub(crate) fn prefer_below(&self, end: u32) -> PreferredEnd<'_> {
        self.state.lock().prefer_below(end);
        PreferredEnd { space: self }
    }

    /// Number of extents of the file if the used pages of each segment were adjacent.
    pub(crate) fn packed_extents(&self) -> u32 {
        self.state.lock().packed_extents(&self.layout)
    }

    /// Whether the file would be much shorter if it had no gaps between chunks with an owner.
    pub(crate) fn has_gaps(&self) -> bool {
        let state = self.state.lock();
        Cut::InUse.is_worth(state.extents(), state.gapless_extents(&self.layout, kept_extents))
    }

    /// The used pages of the last extent below `end` that has some, and its number.
    pub(crate) fn last_used_below(&self, end: u32) -> Option<(u32, Vec<PageNo>)> {
        self.state.lock().last_used_below(end)
    }

    /// Reserves some of the bare extents below `end`; false if there are none, or the disk is full.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn reserve_below(&self, ctx: &Context, end: u32) -> Result<bool> {
        let _one_at_a_time = self.growing.lock();
        let bare = self.state.lock().bare_below(end, RESERVE_EXTENTS);
        Ok(!bare.is_empty() && self.reserve_these(ctx, &bare)?)
    }
}
