//! A small database that is closed does without the places of what it does not hold.
//!
//! Rules
//! 1. A database is small if its used pages take [`SMALL_BYTES`] at most. A closing does not change the extent maps
//!    after it has judged, so the next opening judges alike.
//! 2. A closing that has ended the log releases the places of all free pages, those of the reserve too, of the copies
//!    in the doublewrite file, and of the ring of the log. A closing that failed releases nothing. A store out of place
//!    releases what its segments do not need, whatever pages are free.
//! 3. An opening that may write reserves what a closing may have released, durably, before a page is taken and before
//!    redo is appended: pages of extents with an owner here, other extents when they are taken (rule 6 of [`super`]).
//!    A store out of place has done it when it was opened.
//!    On a full disk the database does not open; nothing is lost.
//! 4. What holds discards ([`Space::hold_discards`]) holds this.

use super::Space;
use super::growth::pages_of;
use super::state::SpaceState;
use crate::context::Context;
use crate::error::{Error, Result};
use std::ops::Range;

/// Rule 1.
const SMALL_BYTES: u64 = 1 << 20;

impl Space {
    /// Whether a closing releases what the database does not hold, or an earlier one may have done so.
    pub fn is_small(&self) -> bool {
        let pages = self.state.lock().segments().iter().map(|(_, pages)| u64::from(*pages)).sum::<u64>();
        pages * self.layout.page_bytes() as u64 <= SMALL_BYTES
    }

    /// Releases the places of all free pages (rule 2).
    ///
    /// # Errors
    /// An I/O error.
    pub fn release_at_rest(&self) -> Result<()> {
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
    pub fn reserve_after_rest(&self, ctx: &Context) -> Result<()> {
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
