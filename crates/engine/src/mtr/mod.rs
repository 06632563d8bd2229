//! Mini-transactions: latches held and redo collected, until one atomic commit. SKELETON
//!
//! Rules
//! 1. Latch phase first: fix all pages, then change. `fix_*` that may do I/O only while the mtr holds no latch;
//!    with latches held use `try_fix_x`, and on `None` drop the mtr (nothing changed yet), `pool.load(page)`, start again.
//! 2. A changed mtr must be committed; dropping it unfinished poisons the database.
//! 3. Latch order: tree pages top-down and left to right, then undo pages, then (at commit, by page number) extent maps.
//! 4. `commit` appends the redo, sets page LSNs, marks pages dirty, releases every latch.

use crate::error::Result;
use crate::log::Log;
use crate::page::PageOp;
use crate::pool::Pool;
use crate::types::{Lsn, PageNo};

/// What every layer above the pool works with.
pub struct Context {
    /// Buffer pool.
    pub pool: Pool,
    /// Redo log.
    pub log: Log,
    // stats: Arc<Stats>, space etc. are reached by their own handles
}

/// A page latched exclusively in an mtr; an index into its memo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latched(pub(crate) usize);

/// One atomic change of several pages.
pub struct Mtr<'c> {
    _ctx: &'c Context,
}

impl Context {
    /// Starts an mtr that may write up to `MTR_REDO_BYTES` (64 KiB) of redo. Waits for log space: the caller holds no latch.
    pub fn mtr(&self) -> Result<Mtr<'_>> {
        unimplemented!()
    }
    /// As `mtr`, for up to `redo_bytes`, with `frames` free frames set aside for `new_page` (structure changes).
    pub fn mtr_with(&self, _redo_bytes: usize, _frames: usize) -> Result<Mtr<'_>> {
        unimplemented!()
    }
}

impl<'c> Mtr<'c> {
    /// The context.
    pub fn context(&self) -> &'c Context {
        unimplemented!()
    }
    /// X-latches a page, loading it if need be. The mtr (and the thread) must hold no latch.
    pub fn fix_x(&mut self, _page: PageNo) -> Result<Latched> {
        unimplemented!()
    }
    /// X-latches a resident page, waiting for the latch only; `None` if not resident.
    /// If the mtr holds the page already, returns the same handle.
    pub fn try_fix_x(&mut self, _page: PageNo) -> Option<Latched> {
        unimplemented!()
    }
    /// X-latches `page` iff it is resident and its state is still that of the optimistic view (no waiting on a changed page).
    pub fn upgrade(&mut self, _view: crate::pool::OptimisticPage<'c>) -> Option<Latched> {
        unimplemented!()
    }
    /// A frame for a freshly allocated page (contents undefined until a `Format` op), from the frames set aside.
    pub fn new_page(&mut self, _page: PageNo) -> Result<Latched> {
        unimplemented!()
    }
    /// The page's bytes.
    pub fn page(&self, _latched: Latched) -> &[u8] {
        unimplemented!()
    }
    /// The page's number.
    pub fn page_no(&self, _latched: Latched) -> PageNo {
        unimplemented!()
    }
    /// Changes the page and records the redo. Panics (poisons) if the operation does not fit the page: a bug of the caller,
    /// who has checked it. (Corrupt pages are caught when they are read.)
    pub fn apply(&mut self, _latched: Latched, _op: &PageOp<'_>) {
        unimplemented!()
    }
    /// Records a change of an extent-map page (always resident), applied at commit when everything else is latched.
    pub fn defer(&mut self, _page: PageNo, _offset: u16, _set: bool, _mask: u64) {
        unimplemented!()
    }
    /// Releases one unchanged page early.
    pub fn release(&mut self, _latched: Latched) {
        unimplemented!()
    }
    /// Whether anything was changed.
    pub fn is_modified(&self) -> bool {
        unimplemented!()
    }
    /// Releases all latches of an mtr that changed nothing (same as drop; reads better).
    pub fn abandon(self) {
        unimplemented!()
    }
    /// Commits; returns the end LSN.
    pub fn commit(self) -> Lsn {
        unimplemented!()
    }
}
