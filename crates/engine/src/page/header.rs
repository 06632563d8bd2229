//! Page header: the first 32 bytes of every page.
//!
//! ```text
//!  0  checksum    u32  CRC-32C of bytes 4.. (set by `stamp`)
//!  4  page_no     u32  the page's place (set by `stamp`)
//!  8  page LSN    u64  end of the last redo that changed the page
//! 16  type        u8
//! 17  level       u8   0 = leaf (and every page that is not part of a tree)
//! 18  version     u16  format version of the page
//! 20  owner       u32  index id of a tree page, segment of others
//! 24  max_trx_id  u64  largest transaction that changed a secondary leaf
//! ```
//!
//! Rules
//! 1. Checksum and place are stamped on the copy that goes to disk; in memory they may be stale.
//! 2. Bytes read from disk are not interpreted before `verify` has accepted them.
//! 3. A page of zeros was never written: `verify` accepts it, its type is `Free`.

use super::bytes::{PageBytes, put_u16, put_u32, put_u64};
use crate::error::{Error, Result};
use crate::types::{Lsn, PageNo};

/// Bytes of the header at the start of every page.
pub(crate) const HEADER_BYTES: usize = 32;
/// The page format this build writes.
pub(crate) const PAGE_VERSION: u16 = 1;

const CHECKSUM: usize = 0;
const PAGE_NO: usize = 4;
const LSN: usize = 8;
pub(crate) const TYPE: usize = 16;
pub(crate) const LEVEL: usize = 17;
const VERSION: usize = 18;
pub(crate) const OWNER: usize = 20;
/// The u64 at [`TYPE`] of a page: type, level, version and owner at once.
pub(crate) const fn identity(page_type: PageType, level: u8, owner: u32) -> u64 {
    page_type as u64 | (level as u64) << 8 | (PAGE_VERSION as u64) << 16 | (owner as u64) << 32
}

/// Offset of max_trx_id, for the `Write` operation that raises it.
pub(crate) const MAX_TRX_ID_OFFSET: usize = 24;

/// The type of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageType {
    /// Never written (an all-zero page), or freed.
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
    /// Overwritten since it could not be read: see `page/lost.rs`.
    Lost = 8,
}

impl PageType {
    /// The type with this number, `None` for an unknown one.
    pub const fn from_u8(byte: u8) -> Option<PageType> {
        Some(match byte {
            0 => PageType::Free,
            1 => PageType::FileHeader,
            2 => PageType::ExtentMap,
            3 => PageType::Inner,
            4 => PageType::Leaf,
            5 => PageType::Undo,
            6 => PageType::UndoDirectory,
            7 => PageType::Overflow,
            8 => PageType::Lost,
            _ => return None,
        })
    }

    /// Whether the page is part of a tree and has the node layout.
    pub const fn is_node(self) -> bool {
        matches!(self, PageType::Inner | PageType::Leaf)
    }
}

/// Page LSN: end of the last redo that changed the page.
#[inline]
pub(crate) fn lsn(page: &[u8]) -> Lsn {
    Lsn(page.u64_at(LSN))
}

/// The checksum that a page says it has.
pub(crate) fn checksum(page: &[u8]) -> u32 {
    page.u32_at(CHECKSUM)
}

/// The problem of a page on disk that has a change beyond `end`, the end of the log: the log is written before data, so
/// the log lost its end.
pub(crate) fn beyond_log(page: &[u8], end: Lsn) -> Option<String> {
    let last = lsn(page);
    (last > end).then(|| format!("its LSN {last} is beyond the end of the redo log, {end}"))
}

/// Page 0: how often it was changed without redo, so without another LSN. (It has no use for the field that leaves of
/// secondary indexes keep their newest transaction in.)
pub(crate) fn unlogged_changes(page: &[u8]) -> u64 {
    max_trx_id(page)
}

/// Counts a change of page 0 without redo.
pub(crate) fn count_unlogged_change(page: &mut [u8]) {
    raise_max_trx_id(page, unlogged_changes(page) + 1);
}

#[inline]
pub(crate) fn set_lsn(page: &mut [u8], lsn: Lsn) {
    put_u64(page, LSN, lsn.0);
}

/// Type, or an error for an unknown byte.
///
/// # Errors
/// [`Error::CorruptPage`] names the byte found.
#[inline]
pub(crate) fn page_type(page: &[u8]) -> Result<PageType> {
    let byte = page.u8_at(TYPE);
    PageType::from_u8(byte)
        .ok_or_else(|| Error::corrupt_page(stored_page_no(page), format!("unknown page type {byte}")))
}

/// Owner word (index id of a tree page, segment of others).
#[inline]
pub(crate) fn owner(page: &[u8]) -> u32 {
    page.u32_at(OWNER)
}

/// Level in the tree, 0 = leaf.
#[inline]
pub(crate) fn level(page: &[u8]) -> u8 {
    page.u8_at(LEVEL)
}

/// Largest transaction number that changed this secondary leaf.
#[inline]
pub(crate) fn max_trx_id(page: &[u8]) -> u64 {
    page.u64_at(MAX_TRX_ID_OFFSET)
}

/// Raises max_trx_id to `id`, if it is lower.
pub(crate) fn raise_max_trx_id(page: &mut [u8], id: u64) {
    if id > max_trx_id(page) {
        put_u64(page, MAX_TRX_ID_OFFSET, id);
    }
}

/// The place stamped when the page was last sealed; 0 on a page that was not written yet.
pub(crate) fn stored_page_no(page: &[u8]) -> PageNo {
    PageNo(page.u32_at(PAGE_NO))
}

/// Zeroes the page and writes its type, level, owner and version.
pub(crate) fn format(page: &mut [u8], page_type: PageType, level: u8, owner: u32) {
    page.fill(0);
    page[TYPE] = page_type as u8;
    page[LEVEL] = level;
    put_u16(page, VERSION, PAGE_VERSION);
    put_u32(page, OWNER, owner);
    debug_assert_eq!(page.u64_at(TYPE), identity(page_type, level, owner), "the identity of a page is another word");
}

/// Stamps place and checksum before the page is written to disk (on the copy that goes to disk).
pub(crate) fn stamp(page: &mut [u8], page_no: PageNo) {
    put_u32(page, PAGE_NO, page_no.0);
    let checksum = crc32c::crc32c(&page[PAGE_NO..]);
    put_u32(page, CHECKSUM, checksum);
}

/// Verifies place, checksum and version of bytes read from disk. An all-zero page is `Ok` (type Free).
///
/// # Errors
/// [`Error::CorruptPage`] says what does not match; [`Error::Incompatible`] for a page of another format version.
pub(crate) fn verify(page: &[u8], page_no: PageNo) -> Result<()> {
    if page.len() <= HEADER_BYTES {
        return Err(Error::corrupt_page(page_no, format!("only {} bytes long", page.len())));
    }
    let stored = page.u32_at(CHECKSUM);
    let computed = crc32c::crc32c(&page[PAGE_NO..]);
    if stored != computed {
        if page.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        return Err(Error::corrupt_page(
            page_no,
            format!("checksum is {stored:#010x}, its bytes give {computed:#010x}"),
        ));
    }
    if stored_page_no(page) != page_no {
        return Err(Error::corrupt_page(page_no, format!("its header has the page number {}", stored_page_no(page))));
    }
    let version = page.u16_at(VERSION);
    if version != PAGE_VERSION {
        return Err(Error::Incompatible(format!(
            "page {page_no} has format version {version}; this build reads version {PAGE_VERSION}"
        )));
    }
    page_type(page).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Vec<u8> {
        let mut page = vec![0; 4096];
        format(&mut page, PageType::Overflow, 0, 9);
        page[100] = 7;
        stamp(&mut page, PageNo(5));
        page
    }

    #[test]
    fn a_sealed_page_verifies_only_at_its_place() {
        let page = sealed();
        verify(&page, PageNo(5)).unwrap();
        assert!(matches!(verify(&page, PageNo(6)), Err(Error::CorruptPage { page: PageNo(6), .. })));
        assert_eq!((page_type(&page).unwrap(), owner(&page), level(&page)), (PageType::Overflow, 9, 0));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let page = sealed();
        for byte in 0..page.len() {
            let mut damaged = page.clone();
            damaged[byte] ^= 1 << (byte % 8);
            assert!(verify(&damaged, PageNo(5)).is_err(), "byte {byte}");
        }
    }

    #[test]
    fn zeros_are_a_free_page_and_short_input_an_error() {
        let page = vec![0; 4096];
        verify(&page, PageNo(3)).unwrap();
        assert_eq!(page_type(&page).unwrap(), PageType::Free);
        assert!(verify(&[], PageNo(3)).is_err());
    }

    #[test]
    fn identity_is_what_format_writes() {
        let mut page = vec![0; 4096];
        format(&mut page, PageType::Inner, 3, 77_000);
        assert_eq!(page.u64_at(TYPE), identity(PageType::Inner, 3, 77_000));
    }

    #[test]
    fn another_version_is_incompatible() {
        let mut page = sealed();
        put_u16(&mut page, VERSION, 2);
        stamp(&mut page, PageNo(5));
        assert!(matches!(verify(&page, PageNo(5)), Err(Error::Incompatible(_))));
        page[TYPE] = 200;
        assert!(page_type(&page).is_err());
    }
}
