//! The fixed fields at the start of page 0: the identity of the data file, and the facts that are needed to read any
//! page. They are written once, when the database is created. The following fields belong to `space`.
//!
//! Behind the page header: magic, format version u16, segment size u8 (its logarithm; 0 = in place), zero u8, page size
//! u32, database id u64.

use super::out_of_place;
use crate::error::{Error, Result};
use crate::page::{HEADER_BYTES, PageOp};
use highwater_storage::mark;

const MAGIC: &[u8; 8] = &mark::DATA;
/// Version of the whole on-disk format.
const FORMAT_VERSION: u16 = 10;
/// Page sizes there are.
pub(super) const PAGE_SIZES: [usize; 3] = [4096, 8192, 16384];
/// Segment sizes that there are.
const SEGMENT_BYTES: std::ops::RangeInclusive<u64> = 256 << 10..=out_of_place::MAX_SEGMENT_BYTES;

const MAGIC_AT: usize = HEADER_BYTES;
const _: () = assert!(MAGIC_AT == mark::DATA_AT);
const VERSION_AT: usize = HEADER_BYTES + 8;
const SEGMENT_AT: usize = VERSION_AT + 2;
const PAGE_BYTES_AT: usize = HEADER_BYTES + 12;
const DATABASE_ID_AT: usize = HEADER_BYTES + 16;
/// Offset of the end of the fixed fields.
pub(crate) const FIXED_END: usize = HEADER_BYTES + 24;

/// The kind of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// Page number is place.
    #[default]
    InPlace,
    /// Pages are appended to segments.
    OutOfPlace {
        /// Size of a segment: a power of two from 256 KiB to 32 MiB.
        segment_bytes: u64,
    },
}

/// The file header: the fields of page 0 about the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Page size.
    pub page_bytes: usize,
    /// Random number that the three files of a database share.
    pub database_id: u64,
    /// The kind of the page store.
    pub kind: StoreKind,
}

/// The operations that write the fixed fields into a new page 0.
pub(crate) fn format_fixed(header: FileHeader, mut apply: impl FnMut(PageOp<'_>)) {
    let mut write = |at: usize, bytes: &[u8]| apply(PageOp::Write { offset: at as u16, bytes });
    write(MAGIC_AT, MAGIC);
    write(VERSION_AT, &FORMAT_VERSION.to_le_bytes());
    if let StoreKind::OutOfPlace { segment_bytes } = header.kind {
        write(SEGMENT_AT, &[segment_bytes.ilog2() as u8]);
    }
    write(PAGE_BYTES_AT, &(header.page_bytes as u32).to_le_bytes());
    write(DATABASE_ID_AT, &header.database_id.to_le_bytes());
}

/// The fixed fields of a page 0, which no redo changes.
pub(crate) fn fixed_fields(page: &[u8]) -> &[u8] {
    &page[MAGIC_AT..FIXED_END]
}

/// Gives a page 0 another database id.
pub(crate) fn put_database_id(page: &mut [u8], database_id: u64) {
    page[DATABASE_ID_AT..DATABASE_ID_AT + 8].copy_from_slice(&database_id.to_le_bytes());
}

/// Reads the fixed fields from the first bytes of a file, before anything is known of it.
///
/// # Errors
/// [`Error::Incompatible`] says what was found instead.
pub(crate) fn parse(start: &[u8]) -> Result<FileHeader> {
    let u32_at = |at: usize| u32::from_le_bytes(start[at..at + 4].try_into().expect("four bytes"));
    let refuse = |what: String| Err(Error::Incompatible(what));
    if start.len() < FIXED_END || start[MAGIC_AT..MAGIC_AT + 8] != *MAGIC {
        return refuse("the data file is not a Highwater database (no magic number in page 0)".into());
    }
    let version = u16::from_le_bytes([start[VERSION_AT], start[VERSION_AT + 1]]);
    if version != FORMAT_VERSION {
        return refuse(format!(
            "the data file has format version {version}; this program reads version {FORMAT_VERSION}. Bring it over: \
             `highwater dump DIR FILE` of the program that wrote it, then `highwater load FILE NEW_DIR` of this one"
        ));
    }
    let page_bytes = u32_at(PAGE_BYTES_AT);
    if !matches!(page_bytes, 4096 | 8192 | 16384) {
        return refuse(format!(
            "the data file has pages of {page_bytes} bytes; only 4096, 8192 and 16384 are supported"
        ));
    }
    let id = start[DATABASE_ID_AT..DATABASE_ID_AT + 8].try_into().expect("eight bytes");
    let kind = match start[SEGMENT_AT] {
        0 => StoreKind::InPlace,
        log => match 1u64.checked_shl(log.into()).filter(|bytes| SEGMENT_BYTES.contains(bytes)) {
            Some(segment_bytes) => StoreKind::OutOfPlace { segment_bytes },
            None => {
                return refuse(format!("the data file has segments of 2^{log} bytes, which this build does not read"));
            }
        },
    };
    Ok(FileHeader { page_bytes: page_bytes as usize, database_id: u64::from_le_bytes(id), kind })
}
