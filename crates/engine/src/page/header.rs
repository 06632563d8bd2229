//! Page header. SKELETON

use crate::error::Result;
use crate::types::{Lsn, PageNo};

/// Bytes of the header at the start of every page.
pub const HEADER_BYTES: usize = 32;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageType {
    /// Never written (an all-zero page).
    Free = 0,
    /// Page 0: magic, version, sizes, roots.
    FileHeader = 1,
    /// Extent map: owners and use bits of the extents that follow.
    ExtentMap = 2,
    /// Inner tree page.
    Inner = 3,
    /// Leaf of a clustered or secondary tree.
    Leaf = 4,
    /// Undo log page.
    Undo = 5,
    /// Directory of undo streams.
    UndoDirectory = 6,
    /// Part of a row too large for its leaf.
    Overflow = 7,
}

/// Page LSN: end of the last redo that changed the page.
pub fn lsn(_page: &[u8]) -> Lsn {
    unimplemented!()
}
/// Sets the page LSN.
pub fn set_lsn(_page: &mut [u8], _lsn: Lsn) {
    unimplemented!()
}
/// Type, or an error for an unknown byte.
pub fn page_type(_page: &[u8]) -> Result<PageType> {
    unimplemented!()
}
/// Owner word (index id of a tree page, segment of others).
pub fn owner(_page: &[u8]) -> u32 {
    unimplemented!()
}
/// Level in the tree, 0 = leaf.
pub fn level(_page: &[u8]) -> u8 {
    unimplemented!()
}
/// Stamps place and checksum before the page is written to disk (on the copy that goes to disk).
pub fn seal(_page: &mut [u8], _page_no: PageNo) {
    unimplemented!()
}
/// Verifies place, checksum and version of bytes read from disk. An all-zero page is `Ok` (type Free).
pub fn verify(_page: &[u8], _page_no: PageNo) -> Result<()> {
    unimplemented!()
}
