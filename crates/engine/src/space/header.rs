//! Page 0: what the file is. Magic, format version, page size, database id, root slots, the mark of the redo log.
//!
//! Everything but the root slots, the number of extents and the mark is written once, when the database is created. Fields lie
//! behind the page header. The mark ([`LogMark`]) changes at opening and closing only, without redo: state u32, 4 bytes of
//! zeros, generation u64, LSN u64.

use super::layout::MAX_EXTENTS;
use crate::error::{Error, Result};
use crate::page::{self, HEADER_BYTES, PageBytes, PageOp, PageType};
use crate::types::{Lsn, PageNo};
use highwater_storage::mark;

const MAGIC: &[u8; 8] = &mark::DATA;
/// Version of the whole on-disk format.
pub const FORMAT_VERSION: u32 = 3;
/// Number of root slots.
pub const ROOTS: usize = 16;

const MAGIC_AT: usize = HEADER_BYTES;
const _: () = assert!(MAGIC_AT == mark::DATA_AT);
const VERSION_AT: usize = HEADER_BYTES + 8;
const PAGE_BYTES_AT: usize = HEADER_BYTES + 12;
const DATABASE_ID_AT: usize = HEADER_BYTES + 16;
const EXTENTS_AT: usize = HEADER_BYTES + 24;
const ROOTS_AT: usize = HEADER_BYTES + 32;
const MARK_AT: usize = ROOTS_AT + ROOTS * 4;

/// What page 0 says of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Page size.
    pub page_bytes: usize,
    /// Random number that the three files of a database share.
    pub database_id: u64,
}

/// In which generation of the redo log the data file was last used; what follows from it, `db::pairing` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMark {
    /// How far the use had come.
    pub state: MarkState,
    /// Of the redo log.
    pub generation: u64,
    /// Where the generation before ended.
    pub lsn: Lsn,
}

/// How far the use of a data file had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MarkState {
    /// The generation is about to begin.
    Opening = 1,
    /// It has begun.
    Open = 2,
    /// It is about to begin, or has, and nothing is appended in it: the database is closed.
    Closed = 3,
}

/// Offset of a root slot in page 0.
pub fn root_offset(slot: usize) -> u16 {
    assert!(slot < ROOTS);
    (ROOTS_AT + slot * 4) as u16
}

/// The change of page 0 that makes the file one of so many extents; `bytes` is the number, little-endian.
pub fn set_extents(bytes: &[u8; 4]) -> PageOp<'_> {
    PageOp::Write { offset: EXTENTS_AT as u16, bytes }
}

/// A new page 0 for a file of `extents`, sealed.
pub fn new_page(header: FileHeader, extents: u32) -> Vec<u8> {
    let mut bytes = vec![0; header.page_bytes];
    let mut apply = |op: PageOp<'_>| op.apply(&mut bytes).expect("a fresh page takes its header");
    apply(PageOp::Format { page_type: PageType::FileHeader, level: 0, owner: super::SEGMENT_SYSTEM.0 });
    apply(PageOp::Write { offset: MAGIC_AT as u16, bytes: MAGIC });
    apply(PageOp::Write { offset: VERSION_AT as u16, bytes: &FORMAT_VERSION.to_le_bytes() });
    apply(PageOp::Write { offset: PAGE_BYTES_AT as u16, bytes: &(header.page_bytes as u32).to_le_bytes() });
    apply(PageOp::Write { offset: DATABASE_ID_AT as u16, bytes: &header.database_id.to_le_bytes() });
    apply(set_extents(&extents.to_le_bytes()));
    put_log_mark(&mut bytes, LogMark { state: MarkState::Open, generation: 1, lsn: Lsn(0) });
    page::header::seal(&mut bytes, PageNo(0));
    bytes
}

/// Writes the mark of the redo log into page 0.
pub fn put_log_mark(page: &mut [u8], mark: LogMark) {
    page[MARK_AT..MARK_AT + 4].copy_from_slice(&(mark.state as u32).to_le_bytes());
    page[MARK_AT + 8..MARK_AT + 16].copy_from_slice(&mark.generation.to_le_bytes());
    page[MARK_AT + 16..MARK_AT + 24].copy_from_slice(&mark.lsn.0.to_le_bytes());
}

/// Reads the mark of the redo log.
///
/// # Errors
/// [`Error::CorruptPage`] for a state that does not exist.
pub fn log_mark(page: &[u8]) -> Result<LogMark> {
    let state = match page.u32_at(MARK_AT) {
        1 => MarkState::Opening,
        2 => MarkState::Open,
        3 => MarkState::Closed,
        other => return Err(Error::corrupt_page(PageNo(0), format!("its mark of the redo log has the state {other}"))),
    };
    Ok(LogMark { state, generation: page.u64_at(MARK_AT + 8), lsn: Lsn(page.u64_at(MARK_AT + 16)) })
}

/// Reads the fixed fields from the first bytes of a file, before anything is known of it.
///
/// # Errors
/// [`Error::Incompatible`] says what was found instead.
pub fn parse(start: &[u8]) -> Result<FileHeader> {
    let u32_at = |at: usize| u32::from_le_bytes(start[at..at + 4].try_into().expect("four bytes"));
    let refuse = |what: String| Err(Error::Incompatible(what));
    if start.len() < ROOTS_AT || start[MAGIC_AT..MAGIC_AT + 8] != *MAGIC {
        return refuse("the data file is not a Highwater database (no magic number in page 0)".into());
    }
    let version = u32_at(VERSION_AT);
    if version != FORMAT_VERSION {
        return refuse(format!(
            "the data file has format version {version}; this build reads version {FORMAT_VERSION}"
        ));
    }
    let page_bytes = u32_at(PAGE_BYTES_AT);
    if !matches!(page_bytes, 4096 | 8192 | 16384) {
        return refuse(format!("the data file claims pages of {page_bytes} bytes; 4096, 8192 and 16384 exist"));
    }
    let id = start[DATABASE_ID_AT..DATABASE_ID_AT + 8].try_into().expect("eight bytes");
    Ok(FileHeader { page_bytes: page_bytes as usize, database_id: u64::from_le_bytes(id) })
}

/// Reads the number of extents.
///
/// # Errors
/// [`Error::CorruptPage`] if the page is not a file header, or the number cannot be.
pub fn read_extents(page: &[u8]) -> Result<u32> {
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
pub fn read_roots(page: &[u8]) -> Result<[PageNo; ROOTS]> {
    expect_header(page)?;
    Ok(std::array::from_fn(|slot| {
        let at = ROOTS_AT + slot * 4;
        PageNo(u32::from_le_bytes(page[at..at + 4].try_into().expect("four bytes")))
    }))
}
