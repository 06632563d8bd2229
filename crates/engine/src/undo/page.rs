//! Undo and undo directory pages as bytes.
//!
//! ```text
//! undo page (after the page header)           directory page (after the page header)
//! 32 previous page of the stream u32          32 next directory page u32
//! 36 next page of the stream u32              36 streams on this page u32
//! 40 header record in force: page u32         40 limit of transaction ids u64 (first page only)
//! 44 ... and its offset u16                   64 streams, 16 bytes each:
//! 46 end of records on the previous page u16     first page u32 | last page u32 |
//! 48 transactions begun before this page u64     transactions purged u48 | ended at u16
//! 64 records
//! ```
//! An entry of zeros is vacant: its stream was freed. "Ended at" is the end of the records on the last page if every
//! transaction of the stream has ended, and zero if that is unknown; see `ended_streams.rs`.
//!
//! "In force": the transaction whose records may continue on this page, begun on an earlier one; page 0 when the page
//! was added before the transaction wrote its header. All these fields are written once, when the page is added, except
//! `next`. Transactions of a stream are numbered from 1 in the order in which they begin; those up to
//! `transactions purged` are purged, and their pages may be freed.

use super::record::UndoRecord;
use crate::error::{Error, Result};
use crate::mtr::{Mtr, PageHandle};
use crate::page::{PageOp, PageType, header};
use crate::row::format::{get_u48, put_u48};
use crate::types::PageNo;

/// Offset of the previous-page field.
pub(crate) const NEXT_AT: usize = 36;
/// Offset of the fields written when a page is added, back to back up to [`RECORDS_AT`].
pub(crate) const FIELDS_AT: usize = 32;
/// Offset of the first record.
pub(crate) const RECORDS_AT: usize = 64;

/// Directory: offset of the next-page field.
pub(crate) const DIRECTORY_NEXT_AT: usize = 32;
/// Directory: offset of the stream count.
pub(crate) const DIRECTORY_COUNT_AT: usize = 36;
/// Directory: offset of the limit of transaction ids.
pub(crate) const DIRECTORY_LIMIT_AT: usize = 40;
const DIRECTORY_STREAMS_AT: usize = 64;
/// Numbers of transactions, and how many begin in a stream, have 48 bits.
const MAX_COUNT: u64 = 1 << 48;
const DIRECTORY_STREAM_BYTES: usize = 16;

/// A place in a stream: a page and an offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UndoPlace {
    pub(crate) page: PageNo,
    pub(crate) offset: usize,
}

/// The fields in front of an undo page's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UndoFields {
    pub(crate) previous: PageNo,
    pub(crate) next: PageNo,
    /// Header record in force.
    pub(crate) header: Option<UndoPlace>,
    /// End of records on the previous page.
    pub(crate) previous_end: usize,
    /// Transactions begun before this page.
    pub(crate) begun_before: u64,
}

fn u16_at(page: &[u8], at: usize) -> u16 {
    page.get(at..).and_then(|tail| tail.first_chunk()).map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(page: &[u8], at: usize) -> u32 {
    page.get(at..).and_then(|tail| tail.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(page: &[u8], at: usize) -> u64 {
    page.get(at..).and_then(|tail| tail.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Refuses a page whose type is not `wanted`.
pub(crate) fn expect_type(page: &[u8], page_no: PageNo, wanted: PageType) -> Result<()> {
    match header::page_type(page)? {
        found if found == wanted => Ok(()),
        found => Err(Error::corrupt_page(page_no, format!("expected a page of type {wanted:?}, found {found:?}"))),
    }
}

impl UndoFields {
    pub(crate) fn read(page: &[u8], page_no: PageNo) -> Result<UndoFields> {
        expect_type(page, page_no, PageType::Undo)?;
        let header = UndoPlace { page: PageNo(u32_at(page, 40)), offset: u16_at(page, 44).into() };
        let begun_before = u64_at(page, 48);
        if begun_before >= MAX_COUNT {
            return Err(Error::corrupt_page(
                page_no,
                format!("{begun_before} transactions are not possible in a stream"),
            ));
        }
        Ok(UndoFields {
            previous: PageNo(u32_at(page, 32)),
            next: PageNo(u32_at(page, NEXT_AT)),
            header: (header.page != PageNo(0)).then_some(header),
            previous_end: u16_at(page, 46).into(),
            begun_before,
        })
    }

    /// The fields' bytes, for [`FIELDS_AT`].
    pub(crate) fn encode(&self) -> [u8; RECORDS_AT - FIELDS_AT] {
        let offsets = [self.previous_end, self.header.map_or(0, |header| header.offset)];
        debug_assert!(offsets.iter().all(|at| *at < 1 << 16), "offsets {offsets:?} of an undo page");
        debug_assert_eq!(self.next, PageNo(0), "a page is added behind which there are others");
        let mut out = [0; RECORDS_AT - FIELDS_AT];
        let header = self.header.unwrap_or(UndoPlace { page: PageNo(0), offset: 0 });
        out[0..4].copy_from_slice(&self.previous.0.to_le_bytes());
        out[4..8].copy_from_slice(&self.next.0.to_le_bytes());
        out[8..12].copy_from_slice(&header.page.0.to_le_bytes());
        // Offsets in a page of at most 16 KiB fit 16 bits.
        out[12..14].copy_from_slice(&(header.offset as u16).to_le_bytes());
        out[14..16].copy_from_slice(&(self.previous_end as u16).to_le_bytes());
        out[16..24].copy_from_slice(&self.begun_before.to_le_bytes());
        out
    }
}

/// The record at `offset` of an undo page; `None` where records end.
pub(crate) fn record_at(page: &[u8], page_no: PageNo, offset: usize) -> Result<Option<UndoRecord<'_>>> {
    if offset < RECORDS_AT {
        return Err(Error::corrupt_page(page_no, format!("no undo record can be at offset {offset}")));
    }
    UndoRecord::parse(page.get(offset..).unwrap_or(&[]))
        .map_err(|e| Error::corrupt_page(page_no, format!("{e} at {offset}")))
}

/// Start of the record that ends at `end`.
pub(crate) fn start_of_record_before(page: &[u8], page_no: PageNo, end: usize) -> Result<usize> {
    let length = usize::from(u16_at(page, end.wrapping_sub(2)));
    let start = end.checked_sub(length).filter(|start| *start >= RECORDS_AT && length > 0);
    start.ok_or_else(|| Error::corrupt_page(page_no, format!("no undo record ends at offset {end}")))
}

/// One stream's entry in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamEntry {
    /// Oldest page.
    pub(crate) first: PageNo,
    /// Newest page.
    pub(crate) last: PageNo,
    /// Transactions purged, counted from the stream's beginning.
    pub(crate) purged: u64,
    /// The end of the records on the last page, if every transaction of the stream has ended; 0 if that is not known.
    pub(crate) ended_at: usize,
}

/// Number of streams in a directory page.
pub(crate) fn streams_per_page(page_bytes: usize) -> usize {
    (page_bytes - DIRECTORY_STREAMS_AT) / DIRECTORY_STREAM_BYTES
}

/// Offset of the `i`th stream's entry in its directory page.
pub(crate) fn stream_entry_at(i: usize) -> usize {
    DIRECTORY_STREAMS_AT + i * DIRECTORY_STREAM_BYTES
}

/// Offset of `last` in the `i`th stream's entry.
pub(crate) fn stream_last_at(i: usize) -> usize {
    stream_entry_at(i) + 4
}

/// Offset of `ended_at` in the `i`th stream's entry.
pub(crate) fn stream_ended_at(i: usize) -> usize {
    stream_entry_at(i) + 14
}

impl StreamEntry {
    /// A place without a stream.
    pub(crate) const VACANT: StreamEntry = StreamEntry { first: PageNo(0), last: PageNo(0), purged: 0, ended_at: 0 };

    /// Reads the `i`th entry of a directory page.
    pub(crate) fn read(page: &[u8], i: usize) -> StreamEntry {
        let at = stream_entry_at(i);
        StreamEntry {
            first: PageNo(u32_at(page, at)),
            last: PageNo(u32_at(page, at + 4)),
            purged: page.get(at + 8..at + 14).map_or(0, get_u48),
            ended_at: u16_at(page, at + 14).into(),
        }
    }

    pub(crate) fn encode(&self) -> [u8; DIRECTORY_STREAM_BYTES] {
        debug_assert_eq!(self.first == PageNo(0), self.last == PageNo(0), "a stream with one end: {self:?}");
        let mut out = [0; DIRECTORY_STREAM_BYTES];
        out[..4].copy_from_slice(&self.first.0.to_le_bytes());
        out[4..8].copy_from_slice(&self.last.0.to_le_bytes());
        put_u48(&mut out[8..], self.purged);
        // Offsets in a page of at most 16 KiB fit 16 bits.
        out[14..].copy_from_slice(&(self.ended_at as u16).to_le_bytes());
        out
    }
}

/// Next page, stream count and id limit of a directory page.
pub(crate) fn read_directory(page: &[u8], page_no: PageNo) -> Result<(PageNo, usize, u64)> {
    expect_type(page, page_no, PageType::UndoDirectory)?;
    let count = u32_at(page, DIRECTORY_COUNT_AT) as usize;
    if count > streams_per_page(page.len()) {
        return Err(Error::corrupt_page(page_no, format!("an undo directory of {count} streams")));
    }
    let limit = u64_at(page, DIRECTORY_LIMIT_AT);
    if limit > MAX_COUNT {
        return Err(Error::corrupt_page(page_no, format!("{limit} is no limit of transaction ids")));
    }
    Ok((PageNo(u32_at(page, DIRECTORY_NEXT_AT)), count, limit))
}

/// Overwrites bytes of a latched page.
pub(crate) fn write(mtr: &mut Mtr<'_>, latched: PageHandle, offset: usize, bytes: &[u8]) {
    // Offsets in a page of at most 16 KiB fit 16 bits.
    mtr.apply(latched, &PageOp::Write { offset: offset as u16, bytes });
}
