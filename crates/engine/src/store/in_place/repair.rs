//! Repair after a crash: of torn pages from their copies in the doublewrite file, and of old pages from their images in
//! the journal.
//!
//! Rules
//! 1. Without the journal a page can be torn by a crash only if its copy is newer than the last checkpoint, or redo
//!    recreates it ([`super::doublewrite`], rule 3). So only copies newer than the checkpoint are used, and each
//!    replaces its page in place if that does not verify or is older. If several areas hold the page, the newest copy
//!    wins. A copy that is not the page's last version is harmless: redo from the checkpoint has the later changes. A
//!    copy from before the checkpoint never replaces a page that was damaged later; the reader of that page reports it.
//! 2. The log is durable up to a page's LSN before its copy is written. So a copy newer than the log's end proves that
//!    the log lost its end: that is an error, and nothing is changed.
//! 3. With the journal a page may be torn or old in its place, independent of the checkpoint. Its newest whole image
//!    replaces it ([`super::journal_scan`], rule 3), after the copies of the areas.
//! 4. Writes of a killed process may not be durable yet. So the doublewrite file is synced before a place is written,
//!    and the data file in any case, because afterwards copies may be overwritten, or the checkpoint passes them.

use super::doublewrite::{Copy, listed_copies};
use super::journal_scan::{self, ScannedJournal};
use super::offset_of;
use crate::error::{Error, Result};
use crate::page;
use crate::store::FileHeader;
use crate::store::batch::placement_of;
use crate::types::{Lsn, PageNo};
use highwater_storage::{AlignedBuf, Device};
use std::ops::Range;

/// Repairs pages that were torn by a crash after the log's checkpoint; `log` reaches from there to its end. Returns
/// which. Durable on return; may be repeated.
///
/// # Errors
/// [`Error::Corrupt`] for a copy newer than the log's end, an I/O error.
pub(crate) fn repair(
    doublewrite: &dyn Device,
    data: &dyn Device,
    header: FileHeader,
    log: Range<Lsn>,
    journal: &ScannedJournal,
) -> Result<Vec<PageNo>> {
    let copies = listed_copies(doublewrite, header)?;
    let lsns = copies.iter().map(|copy| (copy.page_no, copy.lsn)).chain(journal.newest_lsn());
    if let Some((page_no, lsn)) = lsns.max_by_key(|(_, lsn)| *lsn).filter(|(_, lsn)| *lsn > log.end) {
        return Err(Error::Corrupt(format!(
            "the redo log ends at LSN {}, but {} has a copy of page {page_no} with changes up to LSN {lsn}: the log \
             lost its end and with it committed changes, or it is an older version of itself; put back the redo log \
             that belongs to it, or all three files of one backup",
            log.end,
            doublewrite.name()
        )));
    }
    doublewrite.sync()?;
    let mut repaired = Vec::new();
    for copy in copies.iter().filter(|copy| copy.lsn > log.start) {
        if repair_page(doublewrite, data, header.page_bytes, copy)? {
            repaired.push(copy.page_no);
        }
    }
    repair_from_journal(doublewrite, data, header.page_bytes, journal, &mut repaired)?;
    repaired.sort_unstable();
    repaired.dedup();
    data.sync()?;
    Ok(repaired)
}

/// Puts the newest image of each page back whose place is damaged or older (rule 3).
fn repair_from_journal(
    file: &dyn Device,
    data: &dyn Device,
    page_bytes: usize,
    journal: &ScannedJournal,
    repaired: &mut Vec<PageNo>,
) -> Result<()> {
    let (mut image, mut place) = (AlignedBuf::zeroed(page_bytes), AlignedBuf::zeroed(page_bytes));
    for page_no in journal.live.keys().copied() {
        let found = journal.image(file, page_no, &mut image)?;
        read_place(data, page_no, &mut place)?;
        let replaces = found.is_whole && journal_scan::replaces(&image, &place, page_no);
        let newest = if replaces { &image } else { &place };
        // One that does not verify its reader finds; one without an LSN was discarded, or never written.
        let is_old = Lsn(0) < page::header::lsn(newest) && page::header::lsn(newest) < found.least;
        if is_old && page::header::verify(newest, page_no).is_ok() {
            return Err(damaged_image(&file.name(), page_no, found.least));
        }
        if replaces {
            data.write_at(offset_of(page_no, page_bytes), &image, placement_of(&image))?;
            repaired.push(page_no);
        }
    }
    Ok(())
}

fn damaged_image(name: &str, page_no: PageNo, lsn: Lsn) -> Error {
    Error::Corrupt(format!(
        "the image of page {page_no} in the journal in {name} is damaged, and the page is older than LSN {lsn}; if \
         another try gives the same error, restore a backup of all files"
    ))
}

/// Reads the page in place; the file is extended if it is too short.
fn read_place(data: &dyn Device, page_no: PageNo, place: &mut [u8]) -> Result<()> {
    let offset = offset_of(page_no, place.len());
    let end = offset + place.len() as u64;
    if end > data.len_bytes()? {
        data.set_len_bytes(end)?;
    }
    Ok(data.read_at(offset, place)?)
}

/// Puts the copy back if it is whole and its page in place is not, or is older; returns whether it did.
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
    let mut place = AlignedBuf::zeroed(page_bytes);
    read_place(data, page_no, &mut place)?;
    let torn = page::header::verify(&place, page_no).is_err() || page::header::lsn(&place) < lsn;
    if torn {
        data.write_at(offset_of(page_no, page_bytes), &copy, placement_of(&copy))?;
    }
    Ok(torn)
}
