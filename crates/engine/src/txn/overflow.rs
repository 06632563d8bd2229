//! Chains of overflow pages: the long columns of rows (`overflow_columns.rs`).
//!
//! ```text
//! overflow page (after the page header)   32 next page u32 (0 = last) | 36 bytes used u32
//!                                         40 stamp u64 | 48 position u32 | 52 0 u32
//!                                         56 data
//! ```
//! Rules
//! 1. A chain is written once and never changed: an update of its column writes a new one. Versions of a row that have
//!    the same value of a column share its chain.
//! 2. The first page is registered by an Overflow undo record in the mini-transaction that allocates it; every later
//!    page is linked in the mini-transaction that allocates it. So at any crash rollback finds every page.
//! 3. A chain is freed from its front; each mini-transaction also moves the reference in the undo record that owns the
//!    chain (the Overflow record on rollback, the Update or Delete record that names it in purge) to the first page
//!    that is left.
//! 4. Every page carries the stamp of its chain, which each reference to the chain has too, and its position in the
//!    chain. A page with another stamp or position belongs to another chain or is an older version of itself: it is
//!    corrupt, and its link is not followed.
//! 5. A reader of a chain reads a version that cannot be purged meanwhile, or checks afterwards that the row is
//!    unchanged.

use super::system::TxnSystem;
use super::table_trees::TableTrees;
use super::transaction::Txn;
use super::write::{Attempt, Blocked, latch_undo, unblock};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{Mtr, PageHandle};
use crate::page::{PageBytes, PageOp, PageType};
use crate::row::format::{OVERFLOW_REF_FIRST_AT, OverflowRef};
use crate::types::{PageNo, SegmentId, TxnId};
use crate::undo::record::{FREEING, OVERFLOW_RECORD_BYTES, UndoChange};
use crate::undo::{UndoPlace, expect_type, mark, put_overflow, write as write_bytes};

/// Largest row, in bytes.
pub(crate) const MAX_ROW_BYTES: usize = 16 << 20;

const NEXT_AT: usize = 32;
const STAMP_AT: usize = 40;
const DATA_AT: usize = 56;
/// Redo of one group of pages, in bytes; with the rest of the mini-transaction it stays below 64 KiB.
const GROUP_BYTES: usize = 56 << 10;
/// Pages freed per mini-transaction.
const FREE_BATCH: usize = 64;

/// The contents of an overflow page.
struct Link<'p> {
    next: PageNo,
    position: u32,
    data: &'p [u8],
}

/// Reads a page of the chain that has this stamp; `position` in it, where it is known.
fn parse(page: &[u8], page_no: PageNo, stamp: u64, position: Option<u32>) -> Result<Link<'_>> {
    expect_type(page, page_no, PageType::Overflow)?;
    let found = (page.u64_at(STAMP_AT), page.u32_at(STAMP_AT + 8));
    if found != (stamp, position.unwrap_or(found.1)) {
        let reason =
            "the overflow page belongs to another chain than the one that refers to it, or it is an old version";
        return Err(Error::corrupt_page(page_no, reason));
    }
    let used = page.u32_at(NEXT_AT + 4) as usize;
    match page.get(DATA_AT..DATA_AT + used) {
        Some(data) => Ok(Link { next: PageNo(page.u32_at(NEXT_AT)), position: found.1, data }),
        None => Err(Error::corrupt_page(page_no, format!("an overflow page with {used} bytes of data"))),
    }
}

/// Appends the data of one page of a chain to `out`; returns the next page (0 = none) and this one's position. For
/// checks.
pub(crate) fn read_link(
    ctx: &Context,
    page_no: PageNo,
    stamp: u64,
    position: Option<u32>,
    out: &mut Vec<u8>,
) -> Result<(PageNo, u32)> {
    let page = ctx.pool.fix_s(page_no)?;
    let link = parse(&page, page_no, stamp, position)?;
    out.extend_from_slice(link.data);
    Ok((link.next, link.position))
}

/// As [`read_link`], for a page that was read already; returns the next page.
pub(crate) fn append_link(
    page: &[u8],
    page_no: PageNo,
    stamp: u64,
    position: u32,
    out: &mut Vec<u8>,
) -> Result<PageNo> {
    let link = parse(page, page_no, stamp, Some(position))?;
    out.extend_from_slice(link.data);
    Ok(link.next)
}

/// Replaces `out` with the bytes that `reference` stands for. The caller holds no latch.
pub(crate) fn read(ctx: &Context, reference: OverflowRef, out: &mut Vec<u8>) -> Result<()> {
    let total = reference.total_bytes as usize;
    out.clear();
    if total > MAX_ROW_BYTES {
        return Err(Error::Corrupt(format!("an overflow chain of {total} bytes")));
    }
    out.reserve(total);
    let (mut next, mut position) = (reference.first, 0);
    while out.len() < total {
        let page = ctx.pool.fix_s(next)?;
        let Link { next: following, data, .. } = parse(&page, next, reference.stamp, Some(position))?;
        if data.is_empty() || out.len() + data.len() > total {
            return Err(Error::corrupt_page(next, "an overflow chain of another length than its reference says"));
        }
        out.extend_from_slice(data);
        (next, position) = (following, position + 1);
    }
    if next != PageNo(0) {
        return Err(Error::corrupt_page(reference.first, "an overflow chain longer than its reference says"));
    }
    Ok(())
}

/// Writes bytes of a row into a new chain; returns the reference to it. The caller holds no latch.
pub(crate) fn write(system: &TxnSystem, txn: &mut Txn, table: &dyn TableTrees, bytes: &[u8]) -> Result<OverflowRef> {
    debug_assert!(bytes.len() <= MAX_ROW_BYTES, "a chain of {} bytes, which no reader takes", bytes.len());
    debug_assert_ne!(txn.id, TxnId(0), "rule 4: a chain gets the stamp of no transaction");
    let page_bytes = system.ctx.pool.page_bytes();
    let group_pages = (GROUP_BYTES / page_bytes).max(1);
    let capacity = page_bytes - DATA_AT;
    let mut chain =
        NewChain { system, table, stamp: new_stamp(system, txn), first: PageNo(0), last: PageNo(0), pages: 0 };
    for group in bytes.chunks(group_pages * capacity) {
        let parts: Vec<&[u8]> = group.chunks(capacity).collect();
        chain.write_group(txn, &parts)?;
    }
    let has_pages = chain.pages as usize == bytes.len().div_ceil(capacity);
    debug_assert!(has_pages && chain.first != PageNo(0), "rule 1: {} bytes are on {} pages", bytes.len(), chain.pages);
    // The longest row fits 32 bits.
    Ok(OverflowRef { total_bytes: bytes.len() as u32, first: chain.first, stamp: chain.stamp })
}

/// A stamp that no other chain has had on the same page: chains of one transaction are written one after another, each
/// with redo.
fn new_stamp(system: &TxnSystem, txn: &Txn) -> u64 {
    txn.id.0.rotate_left(24) ^ system.ctx.log.end_lsn().0
}

/// A chain being written.
struct NewChain<'a> {
    system: &'a TxnSystem,
    table: &'a dyn TableTrees,
    stamp: u64,
    /// 0 before the first group of pages.
    first: PageNo,
    last: PageNo,
    /// Pages so far.
    pages: u32,
}

impl NewChain<'_> {
    /// Writes a group of pages, in a mini-transaction of its own.
    fn write_group(&mut self, txn: &mut Txn, parts: &[&[u8]]) -> Result<()> {
        let ctx = &self.system.ctx;
        let (first, last) = loop {
            self.system.space.prepare(ctx)?;
            let mut mtr = ctx.mtr_with(crate::mtr::MTR_REDO_BYTES, parts.len())?;
            match self.try_write_group(txn, &mut mtr, parts) {
                Ok(ends) => {
                    mtr.commit();
                    break ends;
                }
                Err(blocked) => {
                    mtr.abandon();
                    unblock(self.system, txn, self.table, (self.table.clustered(), &[]), blocked)?;
                }
            }
        };
        if self.first == PageNo(0) {
            self.first = first;
        }
        self.last = last;
        self.pages += parts.len() as u32;
        Ok(())
    }

    /// Allocates and fills pages, linked after the chain's last or, if it has none, registered in undo. Returns the
    /// first and the last.
    fn try_write_group(&self, txn: &mut Txn, mtr: &mut Mtr<'_>, parts: &[&[u8]]) -> Attempt<(PageNo, PageNo)> {
        let (segment, last) = (self.table.overflow_segment(), self.last);
        let anchor = if last == PageNo(0) { latch_undo(txn, mtr, OVERFLOW_RECORD_BYTES)? } else { mtr.fix_x(last)? };
        let mut pages = Vec::with_capacity(parts.len());
        for _ in parts {
            let near = pages.last().copied().or((last != PageNo(0)).then_some(last));
            match self.system.space.allocate(mtr, segment, near) {
                Ok(page) => {
                    debug_assert!(page != last && !pages.contains(&page), "rule 1: page {page} is twice in a chain");
                    pages.push(page);
                }
                Err(Error::Usage(_)) => return Err(Blocked::NoExtent),
                Err(error) => return Err(Blocked::Fail(error)),
            }
        }
        for (n, part) in parts.iter().enumerate() {
            let latched = mtr.new_page(pages[n]);
            let next = pages.get(n + 1).copied().unwrap_or_default();
            fill(mtr, latched, segment, self.stamp, Link { next, position: self.pages + n as u32, data: part });
        }
        if last == PageNo(0) {
            let record = &mut txn.buffers.record;
            record.clear();
            put_overflow(record, self.table.id(), pages[0], self.stamp);
            if let Some(undo) = txn.undo.as_mut() {
                undo.append(mtr, anchor, txn.id, &txn.buffers.record);
            }
        } else {
            write_bytes(mtr, anchor, NEXT_AT, &pages[0].0.to_le_bytes());
        }
        Ok((pages[0], pages[pages.len() - 1]))
    }
}

fn fill(mtr: &mut Mtr<'_>, latched: PageHandle, segment: SegmentId, stamp: u64, link: Link<'_>) {
    debug_assert!(!link.data.is_empty(), "page {} of a chain has nothing", link.position);
    debug_assert!(DATA_AT + link.data.len() <= mtr.page(latched).len(), "{} bytes on a page", link.data.len());
    mtr.apply(latched, &PageOp::Format { page_type: PageType::Overflow, level: 0, owner: segment.0 });
    let mut fields = [0; DATA_AT - NEXT_AT];
    fields[..4].copy_from_slice(&link.next.0.to_le_bytes());
    // A page's data is shorter than a page.
    fields[4..8].copy_from_slice(&(link.data.len() as u32).to_le_bytes());
    fields[8..16].copy_from_slice(&stamp.to_le_bytes());
    fields[16..20].copy_from_slice(&link.position.to_le_bytes());
    write_bytes(mtr, latched, NEXT_AT, &fields);
    write_bytes(mtr, latched, DATA_AT, link.data);
}

/// Frees the chains that an undo record of a change names and that are left; the record is marked as one whose chains
/// are being freed.
pub(crate) fn free_named(system: &TxnSystem, record: UndoPlace, change: &UndoChange<'_>) -> Result<()> {
    for (at, reference) in change.chains() {
        let OverflowRef { first, stamp, .. } = reference;
        let first_page_at = at + OVERFLOW_REF_FIRST_AT;
        free(system, OwnedChain { record, first_page_at, first, stamp }, FREEING)?;
    }
    Ok(())
}

/// The rest of a chain, and the undo record that owns it.
pub(crate) struct OwnedChain {
    pub(crate) record: UndoPlace,
    /// Offset of the record's first-page field.
    pub(crate) first_page_at: usize,
    /// First page that is left.
    pub(crate) first: PageNo,
    pub(crate) stamp: u64,
}

/// Frees a chain; `bits` are set in the record's kind byte by the first mini-transaction. The caller holds no latch.
pub(crate) fn free(system: &TxnSystem, chain: OwnedChain, bits: u8) -> Result<()> {
    let OwnedChain { record, first_page_at, first, stamp } = chain;
    let (mut first, mut position) = (first, None);
    while first != PageNo(0) {
        let mut pages = Vec::with_capacity(FREE_BATCH);
        let mut next = first;
        while next != PageNo(0) && pages.len() < FREE_BATCH && system.space.fits_batch(&pages, next) {
            system.space.expect_used(next)?;
            pages.push(next);
            let page = system.ctx.pool.fix_s(next)?;
            let link = parse(&page, next, stamp, position)?;
            (next, position) = (link.next, Some(link.position + 1));
        }
        let mut mtr = system.ctx.mtr()?;
        pages.iter().try_for_each(|page| system.space.keep_map(&mut mtr, *page))?;
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
