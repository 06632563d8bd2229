//! Page 0: after the fixed fields, which say what the file is and belong to the store, the number of extents (u32, then
//! 4 bytes of zeros), the root slots (u32 each) and the mark of the redo log.
//!
//! The mark ([`LogMark`]) changes at opening and closing only, without redo: state u32, 4 bytes of zeros, generation
//! u64, LSN u64.

use super::layout::{MAX_EXTENTS, SEGMENT_SYSTEM};
use crate::error::{Error, Result};
use crate::page::{self, PageBytes, PageOp, PageType};
use crate::store::{FIXED_END, FileHeader, format_fixed};
use crate::types::{Lsn, PageNo};

/// Number of root slots.
pub(crate) const ROOTS: usize = 16;

const EXTENTS_AT: usize = FIXED_END;
const ROOTS_AT: usize = EXTENTS_AT + 8;
const MARK_AT: usize = ROOTS_AT + ROOTS * 4;

/// In which generation of the redo log the data file was last used; what follows from it, `db::file_generations` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogMark {
    /// The state of the use of the data file.
    pub state: MarkState,
    /// Of the redo log.
    pub generation: u64,
    /// The end LSN of the previous generation.
    pub lsn: Lsn,
}

/// The state of the use of a data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum MarkState {
    /// The generation is about to begin.
    Opening = 1,
    /// It has begun.
    Open = 2,
    /// It is about to begin, or has, and nothing is appended in it: the database is closed.
    Closed = 3,
}

/// Offset of a root slot in page 0.
pub(crate) fn root_offset(slot: usize) -> u16 {
    assert!(slot < ROOTS);
    (ROOTS_AT + slot * 4) as u16
}

/// The change of page 0 that makes the file one of this many extents; `bytes` is the number, little-endian.
pub(crate) fn set_extents(bytes: &[u8; 4]) -> PageOp<'_> {
    PageOp::Write { offset: EXTENTS_AT as u16, bytes }
}

/// The number of extents that this change of page 0 makes the file have, if it is such a change.
pub(crate) fn extents_set_by(op: &PageOp<'_>) -> Option<u32> {
    match op {
        PageOp::Write { offset, bytes } if *offset as usize == EXTENTS_AT => {
            Some(u32::from_le_bytes((*bytes).try_into().ok()?).min(MAX_EXTENTS))
        }
        _ => None,
    }
}

/// A new page 0 for a file of `extents`, sealed; `records` are more bytes for it, and their offsets.
pub(crate) fn new_page(header: FileHeader, extents: u32, records: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![0; header.page_bytes];
    let mut apply = |op: PageOp<'_>| op.apply(&mut bytes).expect("a fresh page takes its header");
    apply(PageOp::Format { page_type: PageType::FileHeader, level: 0, owner: SEGMENT_SYSTEM.0 });
    format_fixed(header, &mut apply);
    apply(set_extents(&extents.to_le_bytes()));
    put_log_mark(&mut bytes, LogMark { state: MarkState::Open, generation: 1, lsn: Lsn(0) });
    for (at, record) in records {
        bytes[*at..*at + record.len()].copy_from_slice(record);
    }
    page::header::stamp(&mut bytes, PageNo(0));
    bytes
}

/// Writes the mark of the redo log into page 0.
pub(crate) fn put_log_mark(page: &mut [u8], mark: LogMark) {
    page[MARK_AT..MARK_AT + 4].copy_from_slice(&(mark.state as u32).to_le_bytes());
    page[MARK_AT + 8..MARK_AT + 16].copy_from_slice(&mark.generation.to_le_bytes());
    page[MARK_AT + 16..MARK_AT + 24].copy_from_slice(&mark.lsn.0.to_le_bytes());
}

/// Reads the mark of the redo log.
///
/// # Errors
/// [`Error::CorruptPage`] for a state that does not exist.
pub(crate) fn log_mark(page: &[u8]) -> Result<LogMark> {
    let state = match page.u32_at(MARK_AT) {
        1 => MarkState::Opening,
        2 => MarkState::Open,
        3 => MarkState::Closed,
        other => {
            return Err(Error::corrupt_page(
                PageNo(0),
                format!("its record of the redo log has the unknown state {other}"),
            ));
        }
    };
    Ok(LogMark { state, generation: page.u64_at(MARK_AT + 8), lsn: Lsn(page.u64_at(MARK_AT + 16)) })
}

/// Reads the number of extents.
///
/// # Errors
/// [`Error::CorruptPage`] if the page is not a file header, or the number cannot be.
pub(crate) fn read_extents(page: &[u8]) -> Result<u32> {
    expect_header(page)?;
    let at = EXTENTS_AT;
    let extents = u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes"));
    if extents == 0 || extents > MAX_EXTENTS {
        return Err(Error::corrupt_page(PageNo(0), format!("it claims {extents} extents; 1 to {MAX_EXTENTS} can be")));
    }
    Ok(extents)
}

fn expect_header(page: &[u8]) -> Result<()> {
    if page::header::page_type(page)? != PageType::FileHeader {
        return Err(Error::corrupt_page(PageNo(0), "it is not a file header"));
    }
    Ok(())
}

/// Reads the root slots.
///
/// # Errors
/// [`Error::Corrupt`] if the page is not a file header.
pub(crate) fn read_roots(page: &[u8]) -> Result<[PageNo; ROOTS]> {
    expect_header(page)?;
    Ok(std::array::from_fn(|slot| {
        let at = ROOTS_AT + slot * 4;
        PageNo(u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes")))
    }))
}
