//! Freeing whole extents of a dropped segment, and discarding unused extents on the device.

use super::Space;
use super::layout::{CHUNK_PAGES, CHUNKS, EXTENT_PAGES, chunk_mask, pages_of};
use super::truncation::kept_extents;
use crate::context::Context;
use crate::error::Result;
use crate::sync::atomic::Ordering::SeqCst;
use crate::types::{Lsn, PageNo, SegmentId};

/// Runs of extents found at the opening that a step discards, and extents in one of them at most.
const FOUND_RUNS: usize = 64;
const FOUND_EXTENTS: u32 = 1024;

/// Keeps emptied extents from being discarded; see [`Space::hold_discards`].
pub(crate) struct DiscardHold<'s> {
    space: &'s Space,
}

impl Drop for DiscardHold<'_> {
    fn drop(&mut self) {
        let holds = self.space.discard_holds.fetch_sub(1, SeqCst);
        debug_assert!(holds > 0, "a hold on discards ends that was not counted");
    }
}

impl Space {
    /// Frees up to `extents` extents (or the chunks in them) of a dropped segment, in an mtr of its own; true when
    /// the segment owns nothing any more. No page is allocated for the segment any more.
    pub(crate) fn drop_segment_step(&self, ctx: &Context, segment: SegmentId, extents: usize) -> Result<bool> {
        let mut victims = self.state.lock().extents_of(segment, extents.min(256));
        if victims.is_empty() {
            return Ok(true);
        }
        let mut batch = Vec::with_capacity(victims.len());
        for first in victims.iter().map(|(extent, _)| PageNo(extent * EXTENT_PAGES)) {
            if !self.fits_batch(&batch, first) {
                break;
            }
            batch.push(first);
        }
        victims.truncate(batch.len());
        let mut mtr = ctx.mtr()?;
        batch.iter().try_for_each(|first| self.keep_map(&mut mtr, *first))?;
        for (extent, chunks) in &victims {
            let first = PageNo(extent * EXTENT_PAGES);
            let (map, bitmap_at, owner_at) = self.layout.entry_of(first);
            mtr.defer(map, bitmap_at, false, chunk_mask(*chunks));
            for chunk in (0..CHUNKS).filter(|c| chunks >> c & 1 == 1) {
                mtr.defer(map, owner_at + chunk as u16 * 4, false, u64::from(u32::MAX));
                self.clear_free_classes(&mut mtr, PageNo(first.0 + chunk * CHUNK_PAGES), CHUNK_PAGES);
            }
        }
        mtr.commit();
        let mut state = self.state.lock();
        for (extent, chunks) in victims {
            if state.release_chunks(extent, chunks) {
                state.note_freed(extent, self.log.end_lsn());
            }
        }
        Ok(false)
    }

    /// Nothing is discarded or cut while this lives; extents that are emptied meanwhile are discarded later. A discard
    /// that is under way continues: what is logged of its pages is before the present checkpoint. A cut under way is
    /// waited for.
    pub(crate) fn hold_discards(&self) -> DiscardHold<'_> {
        {
            let _decided = self.state.lock();
            self.discard_holds.fetch_add(1, SeqCst);
        }
        let _no_cut = self.growing.lock();
        DiscardHold { space: self }
    }

    pub(super) fn is_held(&self) -> bool {
        self.discard_holds.load(SeqCst) > 0
    }

    /// Whether a checkpoint at `target` would let emptied extents be discarded that the present one does not.
    pub(crate) fn awaits_checkpoint(&self, ctx: &Context, target: Lsn) -> bool {
        self.state.lock().awaits_checkpoint(ctx.log.checkpoint_lsn(), target)
    }

    /// Discards on the device the emptied extents that recovery no longer needs and that were not taken since. The
    /// first free ones are left out: they are the reserve. Discarding is advice; a refusal is ignored.
    pub(crate) fn discard_step(&self, ctx: &Context) {
        if self.is_held() {
            return;
        }
        let checkpoint = ctx.log.checkpoint_lsn();
        // Held so that an extent is not reserved again while it is being discarded. A thread that grows the file may be
        // waiting for a checkpoint by the thread that is here, so this one never waits for the mutex.
        while let Some(_one_at_a_time) = self.growing.try_lock() {
            let extent = {
                let mut state = self.state.lock();
                let keep = kept_extents(state.extents());
                state.next_to_discard(checkpoint, keep as usize)
            };
            let Some(extent) = extent else { return };
            self.store.discard(pages_of(extent..extent + 1));
        }
    }

    /// Discards extents that were free at the opening and may still have their place on the device: recovery has
    /// brought the checkpoint after everything logged of them. The reserve comes first, so that a full disk does not
    /// lack it. Returns whether there are more.
    pub(crate) fn discard_found_step(&self, ctx: &Context) -> bool {
        for _ in 0..FOUND_RUNS {
            if self.is_held() || !self.state.lock().has_found() {
                return false;
            }
            let Some(_one_at_a_time) = self.growing.try_lock() else { return false };
            if !self.has_reserve(ctx) {
                continue;
            }
            let found = self.state.lock().next_found(FOUND_EXTENTS);
            if !found.is_empty() {
                self.store.discard(pages_of(found));
            }
        }
        true
    }

    /// Whether the reserve is there, or nothing is left to make it of; else reserves some.
    fn has_reserve(&self, ctx: &Context) -> bool {
        let lacking = {
            let state = self.state.lock();
            let wanted = kept_extents(state.extents()) * CHUNKS;
            wanted.saturating_sub(state.unowned_chunks()).div_ceil(CHUNKS)
        };
        if lacking == 0 {
            return true;
        }
        let reserved = self.reserve_bare(ctx, lacking);
        if reserved.is_err() {
            self.state.lock().note_refused();
        }
        matches!(reserved, Ok(false))
    }
}
