//! Repairing pages that a crash tore, from their copies in the doublewrite file.
//!
//! Rules
//! 1. A page can be torn by a crash only if its copy is newer than the last checkpoint ([`super::doublewrite`], rule
//!    3). So only copies newer than the checkpoint are looked at, and each is put back whose page in place does not
//!    verify or is older. If several areas hold the page, the newest copy wins. A copy that was not the page's last is
//!    harmless: redo from the checkpoint brings the page on. A copy from before the checkpoint never replaces a page
//!    that was damaged later; the reader of that page reports it.
//! 2. The log is durable up to a page's LSN before its copy is written. So a copy newer than the log's end proves that
//!    the log lost its end: then nothing is changed, and the error says so.

use super::doublewrite::{Copy, listed_copies};
use super::offset_of;
use crate::error::{Error, Result};
use crate::page;
use crate::store::FileHeader;
use crate::store::batch::placement_of;
use crate::types::{Lsn, PageNo};
use highwater_storage::{AlignedBuf, Device};
use std::ops::Range;

/// Repairs pages that were torn by a crash after the log's checkpoint; `log` reaches from there to its end. Says which.
/// Durable on return; may be repeated.
///
/// # Errors
/// [`Error::Corrupt`] for a copy newer than the log's end, an I/O error.
pub fn repair(doublewrite: &dyn Device, data: &dyn Device, header: FileHeader, log: Range<Lsn>) -> Result<Vec<PageNo>> {
    let copies = listed_copies(doublewrite, header)?;
    if let Some(newest) = copies.iter().max_by_key(|copy| copy.lsn).filter(|copy| copy.lsn > log.end) {
        let Copy { page_no, lsn, .. } = newest;
        return Err(Error::Corrupt(format!(
            "the redo log ends at LSN {}, but {} has a copy of page {page_no} with changes up to LSN {lsn}: the log \
             lost its end and with it committed changes, or it is an older version of itself; put back the redo log \
             that belongs to it, or all three files of one backup",
            log.end,
            doublewrite.name()
        )));
    }
    let mut repaired = Vec::new();
    for copy in copies.iter().filter(|copy| copy.lsn > log.start) {
        if repair_page(doublewrite, data, header.page_bytes, copy)? {
            repaired.push(copy.page_no);
        }
    }
    repaired.sort_unstable();
    repaired.dedup();
    if !repaired.is_empty() {
        data.sync()?;
    }
    Ok(repaired)
}

/// Puts the copy back if it is whole and its page in place is not, or is older; says whether it did.
fn repair_page(doublewrite: &dyn Device, data: &dyn Device, page_bytes: usize, listed: &Copy) -> Result<bool> {
    let Copy { at, page_no, lsn } = *listed;
    let mut copy = AlignedBuf::zeroed(page_bytes);
    if at + page_bytes as u64 > doublewrite.len_bytes()? {
        return Ok(false);
    }
    doublewrite.read_at(at, &mut copy)?;
    if page::header::verify(&copy, page_no).is_err() || page::header::lsn(&copy) != lsn {
        return Ok(false);
    }
    let offset = offset_of(page_no, page_bytes);
    if offset + page_bytes as u64 > data.len_bytes()? {
        data.set_len_bytes(offset + page_bytes as u64)?;
    }
    let mut place = AlignedBuf::zeroed(page_bytes);
    data.read_at(offset, &mut place)?;
    let torn = page::header::verify(&place, page_no).is_err() || page::header::lsn(&place) < lsn;
    if torn {
        data.write_at(offset, &copy, placement_of(&copy))?;
    }
    Ok(torn)
}
