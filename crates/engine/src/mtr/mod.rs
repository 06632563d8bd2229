//! Mini-transactions: latches held and redo collected, until one atomic commit.
//!
//! Rules
//! 1. Latch phase first: fix all pages, then change. Calls that may do I/O (`fix_x`, `Context::mtr`) are made while no
//!    latch is held; with latches held use `try_fix_x`, and on `None` drop the mtr (nothing is changed yet), load the
//!    page, start again.
//! 2. A changed mtr is committed. Dropping it unfinished (a panic, a bug) poisons the database: memory no longer
//!    matches any log.
//! 3. Latch order: tree pages top-down and left to right, then undo pages, then, at commit and by page number, the pages
//!    of deferred changes (file header, extent maps). Extent maps are pinned in the latch phase, so that the commit finds
//!    them; the file header is always resident.
//! 4. Redo space is reserved before the first latch, so a commit never waits for a checkpoint.
//! 5. `commit` appends the redo, stamps page LSNs, marks pages dirty in log order, then releases every latch.
//!
//! Differs from InnoDB: no savepoints inside an mtr, no latch types but exclusive; allocation changes are applied last.

mod buffers;

use crate::error::Result;
use crate::log::{Log, Reservation};
use crate::page::{self, PageOp};
use crate::pool::{FrameNo, OptimisticPage, Pool};
use crate::stats::Stats;
use crate::sync::poison::Poison;
use crate::types::{Lsn, PageNo};
use buffers::{Buffers, Lent};
use std::sync::{Arc, OnceLock};

/// Redo an ordinary mtr may write.
pub const MTR_REDO_BYTES: usize = 64 << 10;

/// Told how an mtr that allocated or freed pages ended.
pub trait SpaceHook: Send + Sync {
    /// The mtr is in the log (`committed`) or never happened.
    fn finished(&self, committed: bool, allocated: &[PageNo], freed: &[PageNo]);
}

/// What every layer above works with: pool, log, counters, and the fail-stop switch.
pub struct Context {
    pub pool: Pool,
    pub log: Arc<Log>,
    pub stats: Arc<Stats>,
    /// Fail-stop switch.
    pub poison: Arc<Poison>,
    space_hook: OnceLock<Arc<dyn SpaceHook>>,
}

/// A page latched exclusively in an mtr.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latched(usize);

/// A page in an mtr's memo.
struct Held {
    frame: FrameNo,
    page_no: PageNo,
    changed: bool,
    released: bool,
}

/// A bit change of a pinned or always-resident page, made at commit.
struct Deferred {
    page: PageNo,
    offset: u16,
    set: bool,
    mask: u64,
}

/// One atomic change of several pages.
pub struct Mtr<'c> {
    ctx: &'c Context,
    reservation: Option<Reservation<'c>>,
    redo_limit: usize,
    buffers: Lent,
}

impl Context {
    pub fn new(pool: Pool, log: Arc<Log>, stats: Arc<Stats>, poison: Arc<Poison>) -> Context {
        Context { pool, log, stats, poison, space_hook: OnceLock::new() }
    }

    /// Names who is told about allocations; once, when the space is opened.
    pub fn set_space_hook(&self, hook: Arc<dyn SpaceHook>) {
        assert!(self.space_hook.set(hook).is_ok(), "one space per database");
    }

    /// Stops the database for good.
    pub fn fail_stop(&self, reason: &str) {
        self.poison.set(reason);
        self.log.poison(reason);
    }

    /// Starts an mtr of up to [`MTR_REDO_BYTES`] of redo. May wait for the log: the caller holds no latch.
    ///
    /// # Errors
    /// The database is poisoned.
    pub fn mtr(&self) -> Result<Mtr<'_>> {
        self.mtr_with(MTR_REDO_BYTES, 0)
    }

    /// As [`Context::mtr`], for up to `redo_bytes`, with `frames` free frames set aside for [`Mtr::new_page`].
    ///
    /// # Errors
    /// The database is poisoned, no frame could be freed, or the log is smaller than `redo_bytes`.
    #[inline]
    pub fn mtr_with(&self, redo_bytes: usize, frames: usize) -> Result<Mtr<'_>> {
        self.poison.check()?;
        let mut buffers = Lent::take();
        self.pool.keep_pace();
        let reservation = self.log.reserve(redo_bytes as u64)?;
        if frames > 0 {
            self.pool.take_frames(frames, &mut buffers.spare)?;
        }
        Ok(Mtr { ctx: self, reservation: Some(reservation), redo_limit: redo_bytes, buffers })
    }
}

impl<'c> Mtr<'c> {
    pub fn context(&self) -> &'c Context {
        self.ctx
    }

    /// X-latches a page, loading it if need be. Neither the mtr nor the thread may hold a latch.
    ///
    /// # Errors
    /// Those of [`Pool::load`].
    pub fn fix_x(&mut self, page: PageNo) -> Result<Latched> {
        debug_assert!(self.buffers.memo.iter().all(|h| h.released), "fix_x may wait for I/O; use try_fix_x");
        loop {
            if let Some(latched) = self.try_fix_x(page) {
                return Ok(latched);
            }
            self.ctx.pool.load(page)?;
        }
    }

    /// X-latches a resident page, waiting for the latch only; `None` if it is not resident. A page the mtr already
    /// holds gives the same handle.
    pub fn try_fix_x(&mut self, page: PageNo) -> Option<Latched> {
        if let Some(at) = self.buffers.memo.iter().position(|h| h.page_no == page && !h.released) {
            return Some(Latched(at));
        }
        let frame = self.ctx.pool.try_latch_x(page)?;
        Some(self.remember(frame, page))
    }

    /// The frame of a latched page.
    #[inline]
    pub(crate) fn frame(&self, latched: Latched) -> FrameNo {
        self.held(latched).frame
    }

    /// X-latches the page of an optimistic view iff it is unchanged since; waits for shared holders.
    pub fn upgrade(&mut self, view: OptimisticPage<'c>) -> Option<Latched> {
        let frame = self.ctx.pool.upgrade(view)?;
        Some(self.remember(frame, view.page_no()))
    }

    /// A frame for a page just allocated, from those set aside. Contents undefined until a `Format`.
    ///
    /// # Panics
    /// If no frame was set aside (a bug of the caller).
    pub fn new_page(&mut self, page: PageNo) -> Latched {
        let spare = self.buffers.spare.pop().expect("the mtr set enough frames aside");
        let frame = self.ctx.pool.adopt_new(page, spare);
        if frame != spare {
            self.buffers.spare.push(spare);
        }
        self.remember(frame, page)
    }

    #[inline]
    fn remember(&mut self, frame: FrameNo, page_no: PageNo) -> Latched {
        let memo = &mut self.buffers.memo;
        memo.push(Held { frame, page_no, changed: false, released: false });
        Latched(memo.len() - 1)
    }

    fn held(&self, latched: Latched) -> &Held {
        let held = &self.buffers.memo[latched.0];
        debug_assert!(!held.released);
        held
    }

    #[inline]
    pub fn page(&self, latched: Latched) -> &[u8] {
        let frame = self.held(latched).frame;
        // SAFETY: the memo holds this frame's latch exclusively, and `apply` needs `&mut self`, so no one writes while
        // the slice, which borrows `self`, lives.
        unsafe { self.ctx.pool.frames().bytes(frame) }
    }

    pub fn page_no(&self, latched: Latched) -> PageNo {
        self.held(latched).page_no
    }

    /// Changes the page and records the redo.
    ///
    /// # Panics
    /// If the operation does not fit the page or the mtr's redo limit: a bug of the caller, who has checked both. The
    /// database is poisoned by the unwinding.
    #[inline]
    pub fn apply(&mut self, latched: Latched, op: &PageOp<'_>) {
        let Buffers { memo, redo, .. } = &mut *self.buffers;
        let held = &mut memo[latched.0];
        assert!(!held.released, "page {} was released", held.page_no);
        held.changed = true;
        op.encode(held.page_no, redo);
        // SAFETY: the memo holds this frame's latch exclusively; `&mut self` excludes slices handed out by `page`.
        let bytes = unsafe { self.ctx.pool.frames().bytes_mut(held.frame) };
        if let Err(error) = op.apply(bytes) {
            panic!("{op:?} does not fit page {}: {error}", held.page_no);
        }
        assert!(redo.len() <= self.redo_limit, "mtr outgrew its {} bytes of redo", self.redo_limit);
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

    /// Releases one unchanged page early.
    ///
    /// # Panics
    /// If the page was changed.
    pub fn release(&mut self, latched: Latched) {
        let held = &mut self.buffers.memo[latched.0];
        assert!(!held.changed && !held.released, "page {} cannot be released", held.page_no);
        held.released = true;
        self.ctx.pool.frames().get(held.frame).latch.unlock_exclusive(false);
    }

    /// Releases everything of an mtr that changed nothing, keeping its reservation and its pins, to start its latch phase again.
    pub fn restart(&mut self) {
        assert!(!self.is_modified(), "only an unchanged mtr can start again");
        self.unlatch();
        self.forget_space_changes(false);
        self.buffers.deferred.clear();
    }

    pub fn is_modified(&self) -> bool {
        !self.buffers.redo.is_empty()
    }

    /// Releases all latches of an mtr that changed nothing (the same as dropping it, said aloud).
    pub fn abandon(self) {
        debug_assert!(!self.is_modified());
    }

    /// Commits; returns the LSN up to which the log must be durable for this mtr to be.
    pub fn commit(mut self) -> Lsn {
        if !self.buffers.deferred.is_empty() {
            self.apply_deferred();
        }
        if !self.is_modified() {
            return self.ctx.log.end_lsn();
        }
        let reservation = self.reservation.take().expect("present until commit");
        let pool = &self.ctx.pool;
        let memo = &self.buffers.memo;
        let changed = memo.iter().filter(|h| h.changed).map(|h| h.frame);
        let lsn = self
            .ctx
            .log
            .append(reservation, &self.buffers.redo, |start, _end| pool.note_changes(changed.clone(), start));
        for frame in changed {
            // SAFETY: the memo still holds this frame's latch exclusively.
            page::header::set_lsn(unsafe { pool.frames().bytes_mut(frame) }, lsn);
        }
        self.buffers.redo.clear();
        self.unlatch();
        self.unpin();
        self.forget_space_changes(true);
        lsn
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
        }
        memo.clear();
    }

    #[inline]
    fn unpin(&mut self) {
        let Buffers { pinned, .. } = &mut *self.buffers;
        pinned.drain(..).for_each(|(_, frame)| self.ctx.pool.unpin(frame));
    }

    #[inline]
    fn forget_space_changes(&mut self, committed: bool) {
        let Buffers { allocated, freed, .. } = &mut *self.buffers;
        if allocated.is_empty() && freed.is_empty() {
            return;
        }
        if let Some(hook) = self.ctx.space_hook.get() {
            hook.finished(committed, allocated, freed);
        }
        allocated.clear();
        freed.clear();
    }
}

impl Drop for Mtr<'_> {
    fn drop(&mut self) {
        if self.is_modified() {
            self.ctx.fail_stop("a mini-transaction was left unfinished");
        }
        self.unlatch();
        self.unpin();
        self.forget_space_changes(false);
        if !self.buffers.spare.is_empty() {
            self.ctx.pool.give_frames(self.buffers.spare.drain(..));
        }
    }
}
