//! Creating a store on a device of fixed length, a block device, which may have old contents.
//!
//! Order (each needs the previous one)
//! 1. The first block is zeros, durably: until it is not, the store counts as not created.
//! 2. Region 0 is zeros; a slot with the number of pages, and page 1, durably.
//! 3. Page 0, durably.
//!
//! The bytes after region 0 are not overwritten: headers and footers of another database have another id. A creation
//! begins only on a device whose first bytes are zeros ([`StorageSet`](highwater_storage::StorageSet)), and writes
//! nothing after the slots before page 0: bytes there, without a page 0, are foreign.

use super::format::{self, BLOCK_BYTES, SLOTS_AT, StoreSlot};
use super::image::StoreGeometry;
use super::read::read_blocks;
use crate::error::Result;
use crate::types::PageNo;
use highwater_storage::{AlignedBuf, Device, OpenError, Placement, UNUSED_ZEROS_BYTES};

/// Zeros written at once; region 0 has a multiple of them.
const ZEROS_BYTES: usize = 256 << 10;

/// Creates a store of `pages` pages, of which all but the first two are zeros.
///
/// # Errors
/// The device is too small for its segments, an I/O error.
pub(crate) fn create_on_device(
    device: &dyn Device,
    geometry: StoreGeometry,
    pages: u32,
    [first, second]: [&[u8]; 2],
) -> Result<()> {
    let segments = super::capacity::guaranteed_segments(pages, geometry.sizes(device.lifetime_streams()));
    device.set_len_bytes(segments * geometry.segment_bytes)?;
    let zeros = AlignedBuf::zeroed(ZEROS_BYTES);
    device.write_at(0, &zeros[..BLOCK_BYTES], Placement::Other)?;
    device.sync()?;
    for at in (0..geometry.segment_bytes).step_by(ZEROS_BYTES) {
        device.write_at(at, &zeros, Placement::Other)?;
    }
    let mut slot = AlignedBuf::zeroed(BLOCK_BYTES);
    let first_slot = StoreSlot { sequence: 1, pages, ..StoreSlot::default() };
    format::put_slot(&mut slot, geometry.database_id, &first_slot);
    device.write_at(SLOTS_AT[1], &slot, Placement::Other)?;
    for (page_no, page) in [(PageNo(1), second), (PageNo(0), first)] {
        let mut copy = AlignedBuf::zeroed(geometry.page_bytes);
        copy.copy_from_slice(page);
        device.write_at(geometry.offset_of(geometry.as_created(page_no)), &copy, Placement::Other)?;
        device.sync()?;
    }
    Ok(())
}

/// Whether creation on such a device never finished.
///
/// # Errors
/// [`OpenError::NotEmpty`] if the device holds something else, an I/O error.
pub(crate) fn is_uncreated_device(device: &dyn Device) -> Result<bool> {
    let is_zeros = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    if !is_zeros(&read_blocks(device, 0, BLOCK_BYTES)?) {
        return Ok(false);
    }
    let behind_slots = SLOTS_AT[1] as usize + BLOCK_BYTES;
    let end = (device.len_bytes()? as usize / BLOCK_BYTES * BLOCK_BYTES).min(UNUSED_ZEROS_BYTES);
    if end <= behind_slots || is_zeros(&read_blocks(device, behind_slots as u64, end - behind_slots)?) {
        return Ok(true);
    }
    Err(OpenError::NotEmpty(device.name().into()).into())
}
