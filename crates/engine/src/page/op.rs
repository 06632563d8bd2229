//! Page operations: the one vocabulary of changes to pages. SKELETON
//! Forward processing and recovery change a page by the same `apply`.

use super::PageType;
use crate::error::Result;
use crate::types::PageNo;

/// One change of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOp<'a> {
    /// Zero the page and write its header. Recovery need not read the page before this.
    Format { page_type: PageType, level: u8, owner: u32 },
    /// Overwrite bytes in place.
    Write { offset: u16, bytes: &'a [u8] },
    /// Set bits of the little-endian u64 at `offset`.
    SetBits { offset: u16, mask: u64 },
    /// Clear bits of the little-endian u64 at `offset`.
    ClearBits { offset: u16, mask: u64 },
    /// Make the page an empty node with these fences (`None` = infinite). Needs `Format` before.
    /// `upper_child` is the right-most child of an inner page, 0 for a leaf.
    NodeFormat { lower: Option<&'a [u8]>, upper: Option<&'a [u8]>, upper_child: PageNo },
    /// Insert a record (whole key) at `slot`.
    NodeInsert { slot: u16, key: &'a [u8], value: &'a [u8] },
    /// Remove the record at `slot`.
    NodeRemove { slot: u16 },
    /// In the value of `slot`: replace `remove` bytes at `at` with `bytes`.
    NodeSplice { slot: u16, at: u16, remove: u16, bytes: &'a [u8] },
    // page-layer owner may add node operations (split, merge, append many) here
}

impl PageOp<'_> {
    /// Appends the redo record for this change of `page_no`.
    pub fn encode(&self, _page_no: PageNo, _out: &mut Vec<u8>) {
        unimplemented!()
    }
    /// Reads one redo record; returns it and its length.
    pub fn decode(_input: &[u8]) -> Result<(PageNo, PageOp<'_>, usize)> {
        unimplemented!()
    }
    /// Changes the page. An error means that the page does not fit the operation (corruption); nothing was changed.
    pub fn apply(&self, _page: &mut [u8]) -> Result<()> {
        unimplemented!()
    }
}
