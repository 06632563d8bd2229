//! Truncation of the file when its end is empty.
//!
//! Rules
//! 1. Extents at the end are cut off when no chunk of them has an owner, and a checkpoint has passed all logged changes
//!    of their pages; the same holds for the map of a group. So recovery finds no redo of a page beyond the end, unless
//!    it was formatted after the file had grown again.
//! 2. Order: the extents are no longer allocated; page 0 gets the lower number, durable in the log; the store is
//!    truncated. A crash in between leaves a file that is longer than page 0 says (rule 4 of [`super`]).
//! 3. The remaining file keeps the reserve with its space on the device: bare extents are reserved for it before others
//!    are cut off.
//! 4. While the database is in use, a truncation removes at least an eighth of the file, and at least one step of
//!    growth, so that a load that grows and shrinks does not truncate and grow each time.
//! 5. A hold on discards ([`Space::hold_discards`]) also prevents truncations: both are decided under the state's
//!    mutex, and a new hold waits for a running truncation.

use super::growth::READY_EXTENTS;
use super::layout::pages_of;
use super::state::SpaceState;
use super::{Space, header, reserve};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::MTR_REDO_BYTES;
use crate::types::{Lsn, PageNo};

/// Minimum part of the file, as a fraction 1/N, that is truncated while the database is in use (rule 4).
const MIN_PART: u32 = 8;

/// The occasion of a truncation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// In use: as soon as the free part is large enough (rule 4).
    InUse,
    /// As far as possible, without moving pages.
    AtClosing,
    /// As far as possible, at any cost.
    Thorough,
}

impl Cut {
    /// Whether a file of `have` extents is cut to `needed`.
    pub(super) fn is_worth(self, have: u32, needed: u32) -> bool {
        let gain = have.saturating_sub(needed);
        match self {
            Cut::InUse => gain >= (have / MIN_PART).max(2 * READY_EXTENTS),
            Cut::AtClosing | Cut::Thorough => gain > 0,
        }
    }
}

/// Free extents that a file of `extents` keeps.
pub(super) fn kept_extents(extents: u32) -> u32 {
    reserve::reserve_extents(extents) + READY_EXTENTS
}

impl Space {
    /// Whether there will be something to cut once a checkpoint has passed all that is logged now.
    pub(crate) fn can_cut(&self, cut: Cut) -> bool {
        let state = self.state.lock();
        cut.is_worth(state.extents(), self.needed(&state, Lsn(u64::MAX)))
    }

    fn needed(&self, state: &SpaceState, checkpoint: Lsn) -> u32 {
        state.needed_extents(&self.layout, checkpoint, kept_extents)
    }

    /// Cuts the end of the file off that is not needed, and has the store release what its pages do not need; says
    /// whether another step may do more. The caller holds no latch. Not for the thread that moves the checkpoint: this
    /// one may wait for redo space.
    ///
    /// # Errors
    /// An I/O error; the database has stopped then, or page 0 cannot be read.
    pub(crate) fn cut_step(&self, ctx: &Context, cut: Cut) -> Result<bool> {
        let _one_at_a_time = self.growing.lock();
        let end = self.begin_cut(ctx, cut)?;
        if let Some(end) = end {
            self.count_fewer(ctx, end)?;
        }
        let stop = |error: &Error| ctx.poison.set(&error.to_string());
        let pages = self.page_count();
        // A growth or a cut that never finished may have left the file longer.
        if end.is_some() || cut != Cut::InUse && self.store.pages()? > u64::from(pages) && !self.is_held() {
            self.store.truncate(pages).inspect_err(stop)?;
        }
        self.store.shrink_step(cut == Cut::Thorough).inspect_err(stop)
    }

    /// Makes `end` the number of extents, durably (rule 2).
    fn count_fewer(&self, ctx: &Context, end: u32) -> Result<()> {
        let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 0)?;
        let first = mtr.fix_x(PageNo(0))?;
        mtr.apply(first, &header::set_extents(&end.to_le_bytes()));
        mtr.commit();
        ctx.log.flush_to(ctx.log.end_lsn())
    }

    /// Decides how many extents stay, and takes the others out of the state, so that no thread takes them (rule 2).
    fn begin_cut(&self, ctx: &Context, cut: Cut) -> Result<Option<u32>> {
        let checkpoint = ctx.log.checkpoint_lsn();
        loop {
            let lacking = {
                let mut state = self.state.lock();
                let end = self.needed(&state, checkpoint);
                if self.is_held() || !cut.is_worth(state.extents(), end) {
                    return Ok(None);
                }
                let lacking = state.lacking_below(end, kept_extents(end));
                if lacking.is_empty() {
                    state.cut(end);
                    return Ok(Some(end));
                }
                lacking
            };
            if !self.reserve_these(ctx, &lacking)? {
                return Ok(None);
            }
        }
    }

    /// Rule 3; false on a full disk.
    pub(super) fn reserve_these(&self, ctx: &Context, extents: &[u32]) -> Result<bool> {
        for run in extents.chunk_by(|a, b| a + 1 == *b) {
            let run = run[0]..run[run.len() - 1] + 1;
            match self.store.reserve(pages_of(run.clone())) {
                Err(error) if error.is_full() => return Ok(false),
                reserved => reserved.map_err(Error::from)?,
            }
            self.sync(ctx)?;
            self.state.lock().note_reserved(run);
        }
        Ok(true)
    }
}
