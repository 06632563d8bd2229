//! The end of a mini-transaction: committed, abandoned, or dropped.

use super::buffers::MtrBuffers;
use super::mini_transaction::{Mtr, PageHandle};
use crate::page::{self, PageOp};
use crate::pool::held_latches;
use crate::types::Lsn;
use std::ops::Range;

impl Mtr<'_> {
    /// Releases one unchanged page early.
    ///
    /// # Panics
    /// If the page was changed.
    pub(crate) fn release(&mut self, latched: PageHandle) {
        let held = &mut self.buffers.memo[latched.0];
        assert!(!held.changed && !held.released, "page {} cannot be released", held.page_no);
        held.released = true;
        self.ctx.pool.frames().get(held.frame).latch.unlock_exclusive(false);
        held_latches::add(-1);
    }

    pub(crate) fn is_modified(&self) -> bool {
        !self.buffers.redo.is_empty()
    }

    /// Releases all latches of an mtr that changed nothing (the same as dropping it, but explicit).
    pub(crate) fn abandon(self) {
        debug_assert!(!self.is_modified());
    }

    /// Commits; returns the LSN up to which the log must be durable for this mtr to be.
    #[inline]
    pub(crate) fn commit(self) -> Lsn {
        self.commit_as().end
    }

    /// Commits; returns where its redo is in the log.
    pub(crate) fn commit_as(mut self) -> Range<Lsn> {
        if !self.buffers.deferred.is_empty() {
            self.apply_deferred();
        }
        if !self.is_modified() {
            let end = self.ctx.log.end_lsn();
            return end..end;
        }
        let reservation = self.reservation.take().expect("present until commit");
        let pool = &self.ctx.pool;
        let memo = &self.buffers.memo;
        let changed = memo.iter().filter(|held| held.changed);
        let frames = changed.clone().map(|held| held.frame);
        let mut begin = Lsn(0);
        let lsn = self.ctx.log.append(reservation, &self.buffers.redo, |start, _end| {
            begin = start;
            pool.note_changes(frames, start);
        });
        for held in changed {
            // SAFETY: the memo still holds this frame's latch exclusively.
            let bytes = unsafe { pool.frames().bytes_mut(held.frame) };
            debug_assert!(page::header::lsn(bytes) < lsn, "page {} is newer than its change", held.page_no);
            debug_assert_eq!(
                pool.frames().get(held.frame).page_no(),
                held.page_no,
                "a latched page has left its frame"
            );
            page::header::set_lsn(bytes, lsn);
            if held.recreated_by_redo {
                pool.frames().get(held.frame).dirty.note_recreated_by_redo();
            }
        }
        self.buffers.redo.clear();
        self.unlatch();
        self.unpin();
        self.forget_space_changes(true);
        begin..lsn
    }

    fn apply_deferred(&mut self) {
        let mut deferred = std::mem::take(&mut self.buffers.deferred);
        deferred.sort_by_key(|d| d.page);
        for d in &deferred {
            let latched = self.try_fix_x(d.page).expect("pinned or always resident");
            let (offset, mask) = (d.offset, d.mask);
            let op = if d.set { PageOp::SetBits { offset, mask } } else { PageOp::ClearBits { offset, mask } };
            self.apply(latched, &op);
        }
        deferred.clear();
        self.buffers.deferred = deferred;
    }

    #[inline]
    fn unlatch(&mut self) {
        let (frames, memo) = (self.ctx.pool.frames(), &mut self.buffers.memo);
        for held in memo.iter().rev().filter(|h| !h.released) {
            frames.get(held.frame).latch.unlock_exclusive(held.changed);
            held_latches::add(-1);
        }
        memo.clear();
    }

    #[inline]
    fn unpin(&mut self) {
        let MtrBuffers { pinned, .. } = &mut *self.buffers;
        pinned.drain(..).for_each(|(_, frame)| self.ctx.pool.unpin(frame));
    }

    #[inline]
    fn forget_space_changes(&mut self, committed: bool) {
        let MtrBuffers { allocated, freed, .. } = &mut *self.buffers;
        if allocated.is_empty() && freed.is_empty() {
            return;
        }
        if let Some(hook) = self.ctx.space_hook() {
            hook.finished(committed, allocated, freed);
        }
        allocated.clear();
        freed.clear();
    }
}

impl Drop for Mtr<'_> {
    fn drop(&mut self) {
        if self.is_modified() {
            self.ctx.poison.set("a mini-transaction was left unfinished");
        }
        self.unlatch();
        self.unpin();
        self.forget_space_changes(false);
        if !self.buffers.spare.is_empty() {
            self.ctx.pool.release_frames(self.buffers.spare.drain(..));
        }
    }
}
