//! A mini-transaction while it latches and changes pages; `commit` has its end.

use super::buffers::{Deferred, MemoEntry, MtrBuffers, PooledBuffers};
use crate::context::Context;
use crate::error::Result;
use crate::log::{EndRedo, Reservation};
use crate::page::PageOp;
use crate::pool::{FrameNo, OptimisticPage, held_latches};
use crate::types::{PageNo, TxnId};

/// Redo an ordinary mtr may write.
pub(crate) const MTR_REDO_BYTES: usize = 64 << 10;

/// Redo that the end of a prepared transaction may write.
pub(crate) const END_REDO_BYTES: usize = 512;

/// A page latched exclusively in an mtr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageHandle(pub(super) usize);

/// One atomic change of several pages.
pub(crate) struct Mtr<'c> {
    pub(super) ctx: &'c Context,
    pub(super) reservation: Option<Reservation<'c>>,
    redo_limit: usize,
    pub(super) buffers: PooledBuffers,
}

impl Context {
    /// Starts an mtr of up to [`MTR_REDO_BYTES`] of redo. May wait for the log: the caller holds no latch.
    ///
    /// # Errors
    /// The database is poisoned.
    pub(crate) fn mtr(&self) -> Result<Mtr<'_>> {
        self.mtr_with(MTR_REDO_BYTES, 0)
    }

    /// As [`Context::mtr`], without waiting: `None` if the log has no space now.
    ///
    /// # Errors
    /// The database is poisoned.
    pub(crate) fn mtr_at_once(&self) -> Result<Option<Mtr<'_>>> {
        self.poison.check()?;
        let reservation = self.log.reserve_at_once(MTR_REDO_BYTES as u64);
        Ok(reservation.map(|reservation| Mtr {
            ctx: self,
            reservation: Some(reservation),
            redo_limit: MTR_REDO_BYTES,
            buffers: PooledBuffers::take(),
        }))
    }

    /// As [`Context::mtr`], for up to [`END_REDO_BYTES`] in the space that was kept for this end: it waits for nothing.
    ///
    /// # Errors
    /// The database is poisoned.
    pub(crate) fn mtr_of_end(&self, kept: EndRedo) -> Result<Mtr<'_>> {
        self.poison.check()?;
        let reservation = Some(self.log.use_kept(kept));
        Ok(Mtr { ctx: self, reservation, redo_limit: END_REDO_BYTES, buffers: PooledBuffers::take() })
    }

    /// As [`Context::mtr`], for up to `redo_bytes`, with `frames` free frames reserved for [`Mtr::new_page`].
    ///
    /// # Errors
    /// The database is poisoned, no frame could be freed, or the log is smaller than `redo_bytes`.
    #[inline]
    pub(crate) fn mtr_with(&self, redo_bytes: usize, frames: usize) -> Result<Mtr<'_>> {
        self.poison.check()?;
        held_latches::expect_none("a mini-transaction begins");
        let mut buffers = PooledBuffers::take();
        self.pool.throttle();
        let reservation = self.log.reserve(redo_bytes as u64)?;
        if frames > 0 {
            self.pool.take_frames(frames, &mut buffers.spare)?;
        }
        Ok(Mtr { ctx: self, reservation: Some(reservation), redo_limit: redo_bytes, buffers })
    }
}

impl<'c> Mtr<'c> {
    pub(crate) fn context(&self) -> &'c Context {
        self.ctx
    }

    /// X-latches a page, loading it if necessary. Neither the mtr nor the thread may hold a latch.
    ///
    /// # Errors
    /// Those of [`Mtr::load`].
    pub(crate) fn fix_x(&mut self, page: PageNo) -> Result<PageHandle> {
        debug_assert!(self.buffers.memo.iter().all(|h| h.released), "fix_x may wait for I/O; use try_fix_x");
        loop {
            if let Some(latched) = self.try_fix_x(page) {
                return Ok(latched);
            }
            self.load(page)?;
        }
    }

    /// Loads a page. The mtr's redo space is released before and reserved again after. The mtr has changed nothing
    /// yet; neither it nor the thread holds a latch.
    ///
    /// # Errors
    /// Those of [`Pool::load`]; the mtr can be used nevertheless. The database is poisoned.
    #[cold]
    pub(crate) fn load(&mut self, page: PageNo) -> Result<()> {
        debug_assert!(!self.is_modified() && self.buffers.memo.iter().all(|h| h.released), "a load may wait for I/O");
        held_latches::expect_none("a mini-transaction loads a page");
        self.reservation = None;
        let loaded = self.ctx.pool.load(page);
        self.reservation = Some(self.ctx.log.reserve(self.redo_limit as u64)?);
        loaded
    }

    /// X-latches a page that is resident and not merged, waiting for the latch only; else `None`.
    pub(crate) fn try_fix_unmerged(&mut self, page: PageNo) -> Option<PageHandle> {
        let frame = self.ctx.pool.try_latch_unmerged(page)?;
        Some(self.remember(frame, page))
    }

    /// Gives the redo space of an end up that has changed nothing, for its next try.
    pub(crate) fn keep_for_next_try(mut self) -> Option<EndRedo> {
        debug_assert!(!self.is_modified());
        self.reservation.take().map(|unused| self.ctx.log.keep_again(unused))
    }

    /// X-latches a resident page, waiting for the latch only; `None` if it is not resident. A page the mtr already
    /// holds gives the same handle.
    pub(crate) fn try_fix_x(&mut self, page: PageNo) -> Option<PageHandle> {
        if let Some(at) = self.buffers.memo.iter().position(|h| h.page_no == page && !h.released) {
            return Some(PageHandle(at));
        }
        let frame = self.ctx.pool.try_latch_x(page)?;
        Some(self.remember(frame, page))
    }

    #[inline]
    pub(crate) fn frame(&self, latched: PageHandle) -> FrameNo {
        self.held(latched).frame
    }

    /// X-latches the page of an optimistic view iff it is unchanged since; waits for shared holders.
    pub(crate) fn upgrade(&mut self, view: OptimisticPage<'c>) -> Option<PageHandle> {
        let frame = self.ctx.pool.upgrade(view)?;
        Some(self.remember(frame, view.page_no()))
    }

    /// A frame for a page just allocated, from those reserved. Contents undefined until a `Format`.
    ///
    /// # Panics
    /// If no frame was reserved (a bug of the caller).
    pub(crate) fn new_page(&mut self, page: PageNo) -> PageHandle {
        let spare = self.buffers.spare.pop().expect("the mtr set enough frames aside");
        let frame = self.ctx.pool.install(page, spare);
        if frame != spare {
            self.buffers.spare.push(spare);
        }
        self.remember(frame, page)
    }

    #[inline]
    fn remember(&mut self, frame: FrameNo, page_no: PageNo) -> PageHandle {
        let memo = &mut self.buffers.memo;
        debug_assert!(!memo.iter().any(|h| h.frame == frame && !h.released), "page {page_no} is latched twice");
        debug_assert_eq!(self.ctx.pool.frames().get(frame).page_no(), page_no, "frame {frame} has another page");
        held_latches::add(1);
        memo.push(MemoEntry { frame, page_no, changed: false, recreated_by_redo: false, released: false });
        PageHandle(memo.len() - 1)
    }

    fn held(&self, latched: PageHandle) -> &MemoEntry {
        let held = &self.buffers.memo[latched.0];
        debug_assert!(!held.released);
        held
    }

    #[inline]
    pub(crate) fn page(&self, latched: PageHandle) -> &[u8] {
        let frame = self.held(latched).frame;
        // SAFETY: the memo holds this frame's latch exclusively, and `apply` needs `&mut self`, so no one writes while
        // the slice, which borrows `self`, lives.
        unsafe { self.ctx.pool.frames().bytes(frame) }
    }

    pub(crate) fn page_no(&self, latched: PageHandle) -> PageNo {
        self.held(latched).page_no
    }

    /// Changes the page and records the redo.
    ///
    /// # Panics
    /// If the operation does not fit the page or the mtr's redo limit. That is a bug in the caller, which has to check
    /// both first. The unwinding poisons the database.
    #[inline]
    pub(crate) fn apply(&mut self, latched: PageHandle, op: &PageOp<'_>) {
        let MtrBuffers { memo, redo, .. } = &mut *self.buffers;
        let held = &mut memo[latched.0];
        assert!(!held.released, "page {} was released", held.page_no);
        held.changed = true;
        held.recreated_by_redo |= matches!(op, PageOp::Format { .. });
        op.encode(held.page_no, redo);
        // SAFETY: the memo holds this frame's latch exclusively; `&mut self` excludes slices that `page` returned.
        let bytes = unsafe { self.ctx.pool.frames().bytes_mut(held.frame) };
        if let Err(error) = op.apply(bytes) {
            panic!("{op:?} does not fit page {}: {error}", held.page_no);
        }
        assert!(redo.len() <= self.redo_limit, "mtr outgrew its {} bytes of redo", self.redo_limit);
    }

    /// Notes the present time, and which transaction the mtr commits (0: none), if the redo is archived.
    #[inline]
    pub(crate) fn log_commit_time(&mut self, latched: PageHandle, trx_id: TxnId) {
        if self.ctx.notes_time() {
            self.apply(latched, &PageOp::CommitTime { trx_id: trx_id.0, unix_us: self.ctx.time_us() });
        }
    }

    /// Records the redo of a change of a page that is not in the pool; the caller keeps the change until the page is
    /// read.
    pub(crate) fn log_only(&mut self, page: PageNo, op: &PageOp<'_>) {
        op.encode(page, &mut self.buffers.redo);
        assert!(self.buffers.redo.len() <= self.redo_limit, "mtr outgrew its {} bytes of redo", self.redo_limit);
    }

    /// Pins a page of deferred changes until the mtr ends; false if it is not resident: load it and start again.
    pub(crate) fn pin(&mut self, page: PageNo) -> bool {
        if self.is_pinned(page) {
            return true;
        }
        let pinned = self.ctx.pool.pin(page).map(|frame| (page, frame));
        self.buffers.pinned.extend(pinned);
        pinned.is_some()
    }

    /// Whether the mtr has pinned the page.
    pub(crate) fn is_pinned(&self, page: PageNo) -> bool {
        self.buffers.pinned.iter().any(|(pinned, _)| *pinned == page)
    }

    /// Records a bit change of a pinned or always-resident page, made at commit (rule 3).
    pub(crate) fn defer(&mut self, page: PageNo, offset: u16, set: bool, mask: u64) {
        debug_assert_ne!(mask, 0, "no bit of page {page} changes");
        self.buffers.deferred.push(Deferred { page, offset, set, mask });
    }

    /// Notes an allocation, for the space hook.
    pub(crate) fn note_allocated(&mut self, page: PageNo) {
        self.buffers.allocated.push(page);
    }

    /// Notes a freed page, for the space hook.
    pub(crate) fn note_freed(&mut self, page: PageNo) {
        self.buffers.freed.push(page);
    }
}
