//! Recognises InnoDB pages in requests by their contents, independent of the file system.
//!
//! A page of 16 KiB is recognised by its frame: the low half of its LSN is in the header (bytes 20 to 24) and again in
//! the trailer and is not 0, nor is the checksum, and its type (24 to 26) is a known one. Numbers are big-endian.
//!
//! | frame | checksum | second half of the LSN |
//! |---|---|---|
//! | InnoDB | the first 4 bytes | the last 4 bytes |
//! | MariaDB's `full_crc32`, its default | the last 4 bytes; the first 4 are 0: not encrypted | the 4 bytes before |
//!
//! The change buffer's tree is made of INDEX pages whose index id (66 to 74) is at or above 0xFFFFFFFF00000000.
//!
//! The doublewrite buffer holds copies of pages of any table. The transaction system page (type 7) has the first pages
//! of the buffer's two blocks, and its own position on the device gives that of page 0 of the system tablespace. This
//! requires that the first 200 pages of the system tablespace are contiguous on the device.

use std::ops::Range;

/// Bytes of the pages that are recognised.
pub const PAGE_BYTES: usize = 16384;
const BLOCKS_PER_PAGE: u64 = 4;

/// The kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageKind {
    /// Not recognised: redo log, file-system metadata, other programs.
    Other,
    /// A B-tree page of a table or index.
    Index,
    /// A page of the change buffer's tree.
    IbufIndex,
    /// The change buffer's bitmap or free list.
    IbufMeta,
    /// Undo log.
    Undo,
    /// Inodes, extent maps, file headers, system and transaction system pages.
    System,
    /// A page outside its record: large columns.
    Blob,
    /// Allocated, not used yet.
    Allocated,
    /// A copy in the doublewrite buffer, whatever it copies.
    Doublewrite,
}

highwater_storage::names!(PageKind {
    Other => "OTHER",
    Index => "INDEX",
    IbufIndex => "IBUF_INDEX",
    IbufMeta => "IBUF_META",
    Undo => "UNDO",
    System => "SYSTEM",
    Blob => "BLOB",
    Allocated => "ALLOCATED",
    Doublewrite => "DOUBLEWRITE",
});

fn word(page: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

/// The kind of the 16 KiB page in `page`, if it is one.
pub fn recognise(page: &[u8]) -> Option<PageKind> {
    if page.len() != PAGE_BYTES || word(page, 20) == 0 {
        return None;
    }
    let (lsn, first) = (word(page, 20), word(page, 0));
    let (before_last, last) = (word(page, PAGE_BYTES - 8), word(page, PAGE_BYTES - 4));
    let framed = if first != 0 { lsn == last } else { lsn == before_last && last != 0 };
    if !framed {
        return None;
    }
    Some(match u16::from_be_bytes([page[24], page[25]]) {
        17855 if u64::from(word(page, 66)) << 32 >= 0xFFFF_FFFF_0000_0000 => PageKind::IbufIndex,
        17855 => PageKind::Index,
        2 => PageKind::Undo,
        3 | 6 | 7 | 8 | 9 => PageKind::System,
        4 | 5 => PageKind::IbufMeta,
        10..=12 => PageKind::Blob,
        0 => PageKind::Allocated,
        _ => return None,
    })
}

const TYPE_TRX_SYS: u16 = 7;
const TRX_SYS_PAGE: u32 = 5;
/// Offset of the doublewrite header in the transaction system page.
const DOUBLEWRITE_AT: usize = PAGE_BYTES - 200;
const DOUBLEWRITE_MAGIC: u32 = 536_853_855;
const DOUBLEWRITE_BLOCK_PAGES: u64 = 64;

/// The two ranges of the doublewrite buffer on the device, in 4 KiB blocks, if `page`, at block `lba`, is the
/// transaction system page.
pub fn doublewrite_place(page: &[u8], lba: u64) -> Option<[Range<u64>; 2]> {
    let tells = u16::from_be_bytes([page[24], page[25]]) == TYPE_TRX_SYS
        && word(page, 4) == TRX_SYS_PAGE
        && word(page, 34) == 0
        && word(page, DOUBLEWRITE_AT + 10) == DOUBLEWRITE_MAGIC;
    if !tells {
        return None;
    }
    let page_zero = lba as i64 - i64::from(TRX_SYS_PAGE) * BLOCKS_PER_PAGE as i64;
    let block = |at: usize| {
        let first = page_zero + i64::from(word(page, DOUBLEWRITE_AT + at)) * BLOCKS_PER_PAGE as i64;
        let first = u64::try_from(first).ok()?;
        Some(first..first + DOUBLEWRITE_BLOCK_PAGES * BLOCKS_PER_PAGE)
    };
    Some([block(14)?, block(18)?])
}

/// Splits a request into pages and the rest: calls `f` with (kind, first 4 KiB block, number of blocks), in order.
pub fn split(lba: u64, data: &[u8], mut f: impl FnMut(PageKind, u64, u64, &[u8])) {
    let (mut at, mut other) = (0, 0);
    while at + PAGE_BYTES <= data.len() {
        let page = &data[at..at + PAGE_BYTES];
        let Some(kind) = recognise(page) else {
            at += 4096;
            continue;
        };
        if other < at {
            f(PageKind::Other, lba + (other / 4096) as u64, ((at - other) / 4096) as u64, &[]);
        }
        f(kind, lba + (at / 4096) as u64, BLOCKS_PER_PAGE, page);
        at += PAGE_BYTES;
        other = at;
    }
    if other < data.len() {
        f(PageKind::Other, lba + (other / 4096) as u64, (data.len() - other).div_ceil(4096) as u64, &[]);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A page with InnoDB's header and trailer.
    pub(crate) fn page(kind: u16, space: u32, number: u32, lsn: u64) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        page[..4].fill(0xAB);
        page[4..8].copy_from_slice(&number.to_be_bytes());
        page[16..24].copy_from_slice(&lsn.to_be_bytes());
        page[24..26].copy_from_slice(&kind.to_be_bytes());
        page[34..38].copy_from_slice(&space.to_be_bytes());
        page[PAGE_BYTES - 4..].copy_from_slice(&(lsn as u32).to_be_bytes());
        page
    }

    /// A transaction system page whose doublewrite blocks begin at pages 64 and 128.
    pub(crate) fn trx_sys(lsn: u64) -> Vec<u8> {
        let mut page = page(7, 0, 5, lsn);
        for (at, value) in [(10, DOUBLEWRITE_MAGIC), (14, 64), (18, 128)] {
            page[DOUBLEWRITE_AT + at..DOUBLEWRITE_AT + at + 4].copy_from_slice(&value.to_be_bytes());
        }
        page
    }

    #[test]
    fn kinds_are_told_by_content() {
        assert_eq!(recognise(&page(17855, 3, 9, 77)), Some(PageKind::Index));
        let mut ibuf = page(17855, 0, 4, 77);
        ibuf[66..70].fill(0xFF);
        assert_eq!(recognise(&ibuf), Some(PageKind::IbufIndex));
        assert_eq!(recognise(&page(2, 0, 9, 77)), Some(PageKind::Undo));
        assert_eq!(recognise(&page(5, 3, 1, 77)), Some(PageKind::IbufMeta));
        assert_eq!(recognise(&page(77, 3, 1, 77)), None);
        assert_eq!(recognise(&[0; PAGE_BYTES]), None, "zeros are no page");
        let mut torn = page(17855, 3, 9, 77);
        torn[PAGE_BYTES - 1] ^= 1;
        assert_eq!(recognise(&torn), None);
        assert_eq!(recognise(&torn[..4096]), None);
    }

    #[test]
    fn both_frames_are_recognised() {
        let mut full_crc32 = page(17855, 3, 9, 77);
        full_crc32[..4].fill(0);
        full_crc32[PAGE_BYTES - 8..PAGE_BYTES - 4].copy_from_slice(&77_u32.to_be_bytes());
        full_crc32[PAGE_BYTES - 4..].copy_from_slice(&0x5516_EEA4_u32.to_be_bytes());
        assert_eq!(recognise(&full_crc32), Some(PageKind::Index));
        full_crc32[66..70].fill(0xFF);
        assert_eq!(recognise(&full_crc32), Some(PageKind::IbufIndex));
        full_crc32[PAGE_BYTES - 8] ^= 1;
        assert_eq!(recognise(&full_crc32), None, "torn");
        let mut without_checksum = page(17855, 3, 9, 77);
        without_checksum[..4].fill(0);
        assert_eq!(recognise(&without_checksum), None);
    }

    #[test]
    fn requests_are_split_into_pages_and_the_rest() {
        let mut data = vec![1; 8192];
        data.extend(page(17855, 3, 9, 77));
        data.extend(page(2, 0, 10, 78));
        data.extend([9; 4096]);
        let mut seen = Vec::new();
        split(100, &data, |kind, lba, blocks, _| seen.push((kind, lba, blocks)));
        let expected =
            [(PageKind::Other, 100, 2), (PageKind::Index, 102, 4), (PageKind::Undo, 106, 4), (PageKind::Other, 110, 1)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_transaction_system_page_tells_where_the_doublewrite_buffer_is() {
        let place = doublewrite_place(&trx_sys(5), 1020).unwrap();
        assert_eq!(place, [1256..1512, 1512..1768]);
        assert_eq!(doublewrite_place(&page(7, 0, 5, 5), 1020), None, "no doublewrite buffer there");
        assert_eq!(doublewrite_place(&trx_sys(5), 3).map(|p| p[0].start), Some(3 + 256 - 20));
    }
}
