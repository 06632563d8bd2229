//! A small closed database releases the space on the device that it does not use.
//!
//! Rules
//! 1. A database is small if its used pages take at most [`SMALL_BYTES`]. A close does not change the extent maps after
//!    this decision, so the next opening decides the same.
//! 2. After it has ended the log, a close releases the space of all free pages, including the reserve, of the copies in
//!    the doublewrite file, and of the ring of the log. A failed close releases nothing. A store out of place releases
//!    the unused parts of its segments, independent of free pages.
//! 3. An opening that may write durably reserves the space that a close may have released, before a page is taken and
//!    before redo is appended: here for extents with an owner, for other extents when they are taken (rule 6 of
//!    [`super`]). A store out of place does it when it is opened. On a full disk the database does not open; nothing is
//!    lost.
//! 4. A hold on discards ([`Space::hold_discards`]) also prevents this.

use super::Space;
use super::layout::pages_of;
use super::state::SpaceState;
use crate::context::Context;
use crate::error::{Error, Result};
use std::ops::Range;

/// Rule 1.
const SMALL_BYTES: u64 = 1 << 20;

impl Space {
    /// Whether a closing releases what the database does not hold, or an earlier one may have done so.
    pub(crate) fn is_small(&self) -> bool {
        let pages = self.state.lock().segments().iter().map(|(_, pages)| u64::from(*pages)).sum::<u64>();
        pages * self.layout.page_bytes() as u64 <= SMALL_BYTES
    }

    /// Releases the places of all free pages (rule 2).
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn release_at_rest(&self) -> Result<()> {
        if self.is_held() {
            return Ok(());
        }
        let free = free_pages(&self.state.lock());
        self.store.release_at_rest(&free)
    }

    /// Reserves the places of all pages of extents with an owner (rule 3).
    ///
    /// # Errors
    /// [`Error::DiskFull`], another I/O error.
    pub(crate) fn reserve_after_rest(&self, ctx: &Context) -> Result<()> {
        let owned: Vec<u32> = {
            let state = self.state.lock();
            (0..state.extents()).filter(|extent| !state.is_untouched(*extent)).collect()
        };
        for run in owned.chunk_by(|a, b| a + 1 == *b) {
            let reserved = self.store.reserve_after_rest(pages_of(run[0]..run[run.len() - 1] + 1));
            reserved.map_err(Error::of_room)?;
        }
        self.sync(ctx)
    }
}

/// Runs of pages that are not used.
fn free_pages(state: &SpaceState) -> Vec<Range<u32>> {
    let pages = pages_of(0..state.extents());
    let free: Vec<u32> = pages.filter(|page| state.owner(crate::types::PageNo(*page)).is_none()).collect();
    free.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[run.len() - 1] + 1).collect()
}
