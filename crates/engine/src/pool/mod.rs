//! Buffer pool. SKELETON (bodies by the pool's owner; the signatures are the contract)

use crate::error::Result;
pub use crate::page::PageBytes;
use crate::types::{Lsn, PageNo};
use std::cmp::Ordering;

/// The buffer pool.
pub struct Pool {
    _p: (),
}

impl Pool {
    /// Bytes of a page.
    pub fn page_bytes(&self) -> usize {
        unimplemented!()
    }
    /// Reads the page into the pool if it is not there. May wait for I/O and for a frame: the caller holds NO latch.
    pub fn load(&self, _page: PageNo) -> Result<()> {
        unimplemented!()
    }
    /// A view of a resident page that takes no latch and writes no shared memory; `None` if not resident
    /// (then `load` it, holding no latch, and start again) . Spins while the page is latched exclusively.
    pub fn optimistic(&self, _page: PageNo) -> Option<OptimisticPage<'_>> {
        unimplemented!()
    }
    /// Shared latch, loading the page if need be. The caller holds NO latch.
    pub fn fix_s(&self, _page: PageNo) -> Result<SharedPage<'_>> {
        unimplemented!()
    }
    /// Shared latch if the page is resident, waiting for the latch only. For callers that hold latches above it in the order.
    pub fn try_fix_s(&self, _page: PageNo) -> Option<SharedPage<'_>> {
        unimplemented!()
    }
}

/// A latch-free view; whatever was read means nothing until `validate()` says true.
pub struct OptimisticPage<'p> {
    _p: &'p (),
}

impl OptimisticPage<'_> {
    /// Whether the page has neither changed nor moved since the view was taken.
    pub fn validate(&self) -> bool {
        unimplemented!()
    }
    /// Which page.
    pub fn page_no(&self) -> PageNo {
        unimplemented!()
    }
}

impl PageBytes for OptimisticPage<'_> {
    fn page_len(&self) -> usize {
        unimplemented!()
    }
    fn u8_at(&self, _o: usize) -> u8 {
        unimplemented!()
    }
    fn u16_at(&self, _o: usize) -> u16 {
        unimplemented!()
    }
    fn u32_at(&self, _o: usize) -> u32 {
        unimplemented!()
    }
    fn cmp_at(&self, _o: usize, _l: usize, _k: &[u8]) -> Ordering {
        unimplemented!()
    }
    fn copy_at(&self, _o: usize, _l: usize, _out: &mut Vec<u8>) {
        unimplemented!()
    }
}

/// A page latched shared; unlatched on drop. Derefs to the page's bytes (header included).
pub struct SharedPage<'p> {
    _p: &'p (),
}

impl SharedPage<'_> {
    /// Which page.
    pub fn page_no(&self) -> PageNo {
        unimplemented!()
    }
    /// Version of the frame while latched: equal version later (see `Pool::fix_s_if`) means unchanged bytes.
    pub fn version(&self) -> u64 {
        unimplemented!()
    }
}

impl std::ops::Deref for SharedPage<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        unimplemented!()
    }
}

impl Pool {
    /// Shared latch iff the page is resident and its version is still `version`.
    pub fn fix_s_if(&self, _page: PageNo, _version: u64) -> Option<SharedPage<'_>> {
        unimplemented!()
    }
    /// Smallest LSN a checkpoint may not pass.
    pub fn oldest_dirty_lsn(&self) -> Option<Lsn> {
        unimplemented!()
    }
}
