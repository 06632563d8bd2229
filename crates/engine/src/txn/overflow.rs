//! Rows too large for a leaf: chains of overflow pages.
//!
//! ```text
//! overflow page (after the page header)   32 next page u32 (0 = last) | 36 bytes used u32 | 40 data
//! ```
//! Rules
//! 1. A chain is written once and never changed: an update writes a new one.
//! 2. The first page is registered by an Overflow undo record in the mini-transaction that allocates it; every later page is
//!    linked in the mini-transaction that allocates it. So at any crash rollback finds every page.
//! 3. A chain is freed from its front; each mini-transaction also moves the reference in the undo record that owns the
//!    chain (the Overflow record on rollback, the Update or Delete record in purge) to the first page that is left.
//! 4. Readers of a chain see a version that cannot be purged meanwhile, or check afterwards that the row is still the same.

use super::attempt::{Stop, latch_undo, settle};
use super::row::OverflowRef;
use super::rows::Rows;
use super::system::TrxSystem;
use super::trx::TrxBody;
use super::undo::record::{self, OVERFLOW_RECORD_BYTES};
use super::undo::{Place, expect_type, mark, write as write_bytes};
use crate::error::{Error, Result};
use crate::mtr::{Context, Latched, Mtr};
use crate::page::{PageOp, PageType};
use crate::types::{PageNo, SegmentId};

const NEXT_AT: usize = 32;
const DATA_AT: usize = 40;
/// Redo of one group of pages, in bytes; with the rest of the mini-transaction it stays below 64 KiB.
const GROUP_BYTES: usize = 56 << 10;
/// Pages freed per mini-transaction.
const FREE_BATCH: usize = 64;

/// Next page and data of an overflow page.
fn parse(page: &[u8], page_no: PageNo) -> Result<(PageNo, &[u8])> {
    expect_type(page, page_no, PageType::Overflow)?;
    let word = |at: usize| page.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |word| u32::from_le_bytes(*word));
    let used = word(NEXT_AT + 4) as usize;
    match page.get(DATA_AT..DATA_AT + used) {
        Some(data) => Ok((PageNo(word(NEXT_AT)), data)),
        None => Err(Error::corrupt_page(page_no, format!("an overflow page with {used} bytes of data"))),
    }
}

/// Appends the data of one page of a chain to `out`; returns the next page (0 = none). For checks.
pub(crate) fn read_link(ctx: &Context, page_no: PageNo, out: &mut Vec<u8>) -> Result<PageNo> {
    let page = ctx.pool.fix_s(page_no)?;
    let (next, data) = parse(&page, page_no)?;
    out.extend_from_slice(data);
    Ok(next)
}

/// Replaces `out` with the row that `reference` stands for. The caller holds no latch.
pub(crate) fn read(ctx: &Context, reference: OverflowRef, out: &mut Vec<u8>) -> Result<()> {
    let total = reference.total_bytes as usize;
    out.clear();
    if total > super::write::MAX_ROW_BYTES {
        return Err(Error::Corrupt(format!("an overflow row of {total} bytes")));
    }
    out.reserve(total);
    let mut next = reference.first;
    while out.len() < total {
        let page = ctx.pool.fix_s(next)?;
        let (following, data) = parse(&page, next)?;
        if data.is_empty() || out.len() + data.len() > total {
            return Err(Error::corrupt_page(next, "an overflow chain of another length than its row"));
        }
        out.extend_from_slice(data);
        next = following;
    }
    if next != PageNo(0) {
        return Err(Error::corrupt_page(reference.first, "an overflow chain longer than its row"));
    }
    Ok(())
}

/// Writes a row into a new chain; returns its first page. The caller holds no latch.
pub(crate) fn write(system: &TrxSystem, body: &mut TrxBody, rows: &dyn Rows, row: &[u8]) -> Result<PageNo> {
    let page_bytes = system.ctx.pool.page_bytes();
    let group_pages = (GROUP_BYTES / page_bytes).max(1);
    let capacity = page_bytes - DATA_AT;
    let mut first = PageNo(0);
    let mut last = PageNo(0);
    for group in row.chunks(group_pages * capacity) {
        let parts: Vec<&[u8]> = group.chunks(capacity).collect();
        let pages = loop {
            system.space.prepare(&system.ctx)?;
            let mut mtr = system.ctx.mtr_with(crate::mtr::MTR_REDO_BYTES, parts.len())?;
            match write_group(system, body, rows, &mut mtr, &parts, last) {
                Ok(pages) => {
                    mtr.commit();
                    break pages;
                }
                Err(stop) => {
                    mtr.abandon();
                    settle(system, body, rows.clustered(), &[], stop)?;
                }
            }
        };
        if first == PageNo(0) {
            first = pages.0;
        }
        last = pages.1;
    }
    Ok(first)
}

/// Allocates and fills pages, linked behind `last` or, if that is 0, registered in undo. Returns the first and the last.
fn write_group(
    system: &TrxSystem,
    body: &mut TrxBody,
    rows: &dyn Rows,
    mtr: &mut Mtr<'_>,
    parts: &[&[u8]],
    last: PageNo,
) -> std::result::Result<(PageNo, PageNo), Stop> {
    let segment = rows.overflow_segment();
    let anchor = if last == PageNo(0) { latch_undo(body, mtr, OVERFLOW_RECORD_BYTES)? } else { mtr.fix_x(last)? };
    let mut pages = Vec::with_capacity(parts.len());
    for _ in parts {
        let near = pages.last().copied().or((last != PageNo(0)).then_some(last));
        match system.space.allocate(mtr, segment, near) {
            Ok(page) => pages.push(page),
            Err(Error::Usage(_)) => return Err(Stop::NoExtent),
            Err(error) => return Err(Stop::Fail(error)),
        }
    }
    for (n, part) in parts.iter().enumerate() {
        let latched = mtr.new_page(pages[n]);
        fill(mtr, latched, segment, pages.get(n + 1).copied().unwrap_or_default(), part);
    }
    if last == PageNo(0) {
        body.buffers.record.clear();
        record::put_overflow(&mut body.buffers.record, rows.id(), pages[0]);
        if let Some(undo) = body.undo.as_mut() {
            undo.append(mtr, anchor, body.id, &body.buffers.record);
        }
    } else {
        write_bytes(mtr, anchor, NEXT_AT, &pages[0].0.to_le_bytes());
    }
    Ok((pages[0], pages[pages.len() - 1]))
}

fn fill(mtr: &mut Mtr<'_>, latched: Latched, segment: SegmentId, next: PageNo, data: &[u8]) {
    mtr.apply(latched, &PageOp::Format { page_type: PageType::Overflow, level: 0, owner: segment.0 });
    let mut fields = [0; DATA_AT - NEXT_AT];
    fields[..4].copy_from_slice(&next.0.to_le_bytes());
    // A page's data is shorter than a page.
    fields[4..].copy_from_slice(&(data.len() as u32).to_le_bytes());
    write_bytes(mtr, latched, NEXT_AT, &fields);
    write_bytes(mtr, latched, DATA_AT, data);
}

/// Frees the chain that starts at `first`. The undo record at `record` owns it, with its first-page field at
/// `first_page_at`; `bits` are set in the record's kind byte by the first mini-transaction. The caller holds no latch.
pub(crate) fn free(system: &TrxSystem, record: Place, first_page_at: usize, bits: u8, first: PageNo) -> Result<()> {
    let mut first = first;
    while first != PageNo(0) {
        let mut pages = Vec::with_capacity(FREE_BATCH);
        let mut next = first;
        while next != PageNo(0) && pages.len() < FREE_BATCH {
            pages.push(next);
            next = parse(&system.ctx.pool.fix_s(next)?, next)?.0;
        }
        let mut mtr = system.ctx.mtr()?;
        let latched = mtr.fix_x(record.page)?;
        mark(&mut mtr, latched, record, bits);
        write_bytes(&mut mtr, latched, record.offset + first_page_at, &next.0.to_le_bytes());
        for page in pages {
            system.space.free(&mut mtr, page);
        }
        mtr.commit();
        first = next;
    }
    Ok(())
}
