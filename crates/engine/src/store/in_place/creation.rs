//! Creating the two files of a store, and detecting an interrupted creation.
//!
//! Order: the doublewrite file, zeros; the data file with its length, page 1 and page 0 without its first sector,
//! durable; then page 0, durable. Until then the first sector is zeros, and so is everything after page 1. A sector is
//! not torn, so page 0 is whole as soon as the first one is there.

use super::doublewrite::file_bytes;
use super::offset_of;
use crate::error::Result;
use crate::store::header::PAGE_SIZES;
use crate::types::PageNo;
use highwater_storage::{AlignedBuf, Device, Placement};

/// Creates a store of `pages` pages, of which all but the first two are zeros; with `doublewrite` its file too.
pub(crate) fn create(
    data: &dyn Device,
    doublewrite: Option<&dyn Device>,
    pages: u32,
    [first, second]: [&[u8]; 2],
) -> Result<()> {
    let page_bytes = first.len();
    if let Some(doublewrite) = doublewrite {
        doublewrite.set_len_bytes(file_bytes(page_bytes))?;
        doublewrite.sync()?;
    }
    data.set_len_bytes(0)?;
    data.set_len_bytes(offset_of(PageNo(pages), page_bytes))?;
    let mut copy = AlignedBuf::zeroed(page_bytes);
    copy.copy_from_slice(second);
    data.write_at(offset_of(PageNo(1), page_bytes), &copy, Placement::Other)?;
    copy.copy_from_slice(first);
    copy[..SECTOR_BYTES].fill(0);
    data.write_at(0, &copy, Placement::Other)?;
    data.sync()?;
    copy[..SECTOR_BYTES].copy_from_slice(&first[..SECTOR_BYTES]);
    data.write_at(0, &copy, Placement::Other)?;
    Ok(data.sync()?)
}

/// Size of a sector, which no device tears.
const SECTOR_BYTES: usize = 512;

/// Whether creation never finished: the data file is empty, or no larger than creation makes it with zeros for the
/// first sector and for everything after page 1.
pub(crate) fn is_uncreated(data: &dyn Device, new_pages: u32) -> Result<bool> {
    let len = data.len_bytes()?;
    let [smallest, .., largest] = PAGE_SIZES;
    if len == 0 || len > offset_of(PageNo(new_pages), largest) || !len.is_multiple_of(smallest as u64) {
        return Ok(len == 0);
    }
    let zeros = |range: &[u8]| range.iter().all(|b| *b == 0);
    let mut start = AlignedBuf::zeroed(smallest);
    data.read_at(0, &mut start)?;
    if !zeros(&start[..SECTOR_BYTES]) {
        return Ok(false);
    }
    // Page 1 is between the smallest first page and the end of the largest second one.
    let behind = len.min(2 * largest as u64);
    let mut bytes = AlignedBuf::zeroed((len - behind) as usize);
    data.read_at(behind, &mut bytes)?;
    Ok(zeros(&bytes))
}
