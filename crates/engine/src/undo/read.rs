//! Reading undo records in place: by roll pointer, backward for rollback, forward for purge.
//!
//! Rule: callers know that the record cannot be purged meanwhile: their read view is open, the transaction is their
//! own, or they are purge.

use super::page::{
    RECORDS_AT, StreamEntry, UndoFields, UndoPlace, expect_type, read_directory, record_at, start_of_record_before,
};
use super::record::UndoRecord;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::page::PageType;
use crate::space::{ROOT_UNDO, Space};
use crate::types::{PageNo, RollPtr};

/// A copy of a record and where it is.
#[derive(Debug)]
pub(crate) struct OwnedRecord {
    pub(crate) place: UndoPlace,
    pub(crate) bytes: Vec<u8>,
}

impl OwnedRecord {
    pub(crate) fn parse(&self) -> Result<UndoRecord<'_>> {
        UndoRecord::parse(&self.bytes)?.ok_or_else(|| Error::Corrupt("an empty undo record".to_string()))
    }
}

/// The place a roll pointer points to.
pub(crate) fn place_of(pointer: RollPtr) -> UndoPlace {
    UndoPlace { page: pointer.page(), offset: pointer.offset() }
}

pub(crate) fn pointer_to(place: UndoPlace) -> RollPtr {
    // Offsets in a page of at most 16 KiB fit 16 bits.
    RollPtr::new(place.page, place.offset as u16)
}

/// Runs `f` on the record at `place`, under its page's shared latch.
pub(crate) fn with_record<R>(
    ctx: &Context,
    place: UndoPlace,
    f: impl FnOnce(&UndoRecord<'_>) -> Result<R>,
) -> Result<R> {
    let page = ctx.pool.fix_s(place.page)?;
    expect_type(&page, place.page, PageType::Undo)?;
    match record_at(&page, place.page, place.offset)? {
        Some(record) => f(&record),
        None => Err(Error::corrupt_page(place.page, format!("no undo record at offset {}", place.offset))),
    }
}

/// Copies the record at `place` into `out`.
pub(crate) fn read_record(ctx: &Context, place: UndoPlace, out: &mut Vec<u8>) -> Result<()> {
    let page = ctx.pool.fix_s(place.page)?;
    expect_type(&page, place.page, PageType::Undo)?;
    match record_at(&page, place.page, place.offset)? {
        Some(record) => {
            out.clear();
            out.extend_from_slice(&page[place.offset..place.offset + record.bytes]);
            Ok(())
        }
        None => Err(Error::corrupt_page(place.page, format!("no undo record at offset {}", place.offset))),
    }
}

/// The start of the record that ends at `end`, or, at the start of a page, the end of the records on the previous page.
/// `Err(place)`: continue from there.
pub(crate) fn record_before(ctx: &Context, end: UndoPlace) -> Result<std::result::Result<UndoPlace, UndoPlace>> {
    let page = ctx.pool.fix_s(end.page)?;
    let fields = UndoFields::read(&page, end.page)?;
    if end.offset <= RECORDS_AT {
        if fields.previous == PageNo(0) {
            return Err(Error::corrupt_page(end.page, "an undo stream ends before its transaction begins"));
        }
        return Ok(Err(UndoPlace { page: fields.previous, offset: fields.previous_end }));
    }
    let offset = start_of_record_before(&page, end.page, end.offset)?;
    Ok(Ok(UndoPlace { page: end.page, offset }))
}

/// Walks the records of `from.page` forward from `from.offset`, under its shared latch, until `visit` returns false or
/// the page's records end. Returns where the walk stopped and the next page (0 if none).
pub(crate) fn scan_page(
    ctx: &Context,
    from: UndoPlace,
    mut visit: impl FnMut(usize, &UndoRecord<'_>, &[u8]) -> Result<bool>,
) -> Result<(usize, PageNo)> {
    let page = ctx.pool.fix_s(from.page)?;
    let next = UndoFields::read(&page, from.page)?.next;
    let mut offset = from.offset;
    while let Some(record) = record_at(&page, from.page, offset)? {
        if !visit(offset, &record, &page[offset..offset + record.bytes])? {
            break;
        }
        offset += record.bytes;
    }
    Ok((offset, next))
}

/// Streams, directory pages and the limit of ids.
pub(crate) fn read_directories(ctx: &Context, space: &Space) -> Result<(Vec<StreamEntry>, Vec<PageNo>, u64)> {
    let (mut entries, mut pages, mut id_limit) = (Vec::new(), Vec::new(), 0);
    let mut page_no = space.root(ROOT_UNDO).unwrap_or_default();
    while page_no != PageNo(0) {
        if pages.contains(&page_no) {
            return Err(Error::corrupt_page(page_no, "the undo directory has a cycle"));
        }
        let page = ctx.pool.fix_s(page_no)?;
        let (next, count, limit) = read_directory(&page, page_no)?;
        id_limit = limit.max(id_limit);
        entries.extend((0..count).map(|i| StreamEntry::read(&page, i)));
        pages.push(page_no);
        page_no = next;
    }
    if pages.is_empty() {
        return Err(Error::Corrupt("there is no undo directory".to_string()));
    }
    Ok((entries, pages, id_limit))
}
