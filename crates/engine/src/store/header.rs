//! The fixed fields at the start of page 0: what the data file is, and what has to be known before any page can be
//! read. They are written once, when the database is created. What lies behind them belongs to `space`.
//!
//! Behind the page header: magic, format version u32, page size u32, database id u64. The format version stands for the
//! kind of store too: version 3 is the store in place.

use crate::error::{Error, Result};
use crate::page::{HEADER_BYTES, PageOp};
use highwater_storage::mark;

const MAGIC: &[u8; 8] = &mark::DATA;
/// Version of the whole on-disk format.
const FORMAT_VERSION: u32 = 4;

const MAGIC_AT: usize = HEADER_BYTES;
const _: () = assert!(MAGIC_AT == mark::DATA_AT);
const VERSION_AT: usize = HEADER_BYTES + 8;
const PAGE_BYTES_AT: usize = HEADER_BYTES + 12;
const DATABASE_ID_AT: usize = HEADER_BYTES + 16;
/// Where the fixed fields end.
pub const FIXED_END: usize = HEADER_BYTES + 24;

/// What page 0 says of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Page size.
    pub page_bytes: usize,
    /// Random number that the three files of a database share.
    pub database_id: u64,
}

/// The operations that write the fixed fields into a new page 0.
pub fn format_fixed(header: FileHeader, mut apply: impl FnMut(PageOp<'_>)) {
    let mut write = |at: usize, bytes: &[u8]| apply(PageOp::Write { offset: at as u16, bytes });
    write(MAGIC_AT, MAGIC);
    write(VERSION_AT, &FORMAT_VERSION.to_le_bytes());
    write(PAGE_BYTES_AT, &(header.page_bytes as u32).to_le_bytes());
    write(DATABASE_ID_AT, &header.database_id.to_le_bytes());
}

/// Reads the fixed fields from the first bytes of a file, before anything is known of it.
///
/// # Errors
/// [`Error::Incompatible`] says what was found instead.
pub(super) fn parse(start: &[u8]) -> Result<FileHeader> {
    let u32_at = |at: usize| u32::from_le_bytes(start[at..at + 4].try_into().expect("four bytes"));
    let refuse = |what: String| Err(Error::Incompatible(what));
    if start.len() < FIXED_END || start[MAGIC_AT..MAGIC_AT + 8] != *MAGIC {
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
        return refuse(format!(
            "the data file has pages of {page_bytes} bytes; only 4096, 8192 and 16384 are supported"
        ));
    }
    let id = start[DATABASE_ID_AT..DATABASE_ID_AT + 8].try_into().expect("eight bytes");
    Ok(FileHeader { page_bytes: page_bytes as usize, database_id: u64::from_le_bytes(id) })
}
