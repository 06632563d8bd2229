//! Headers on the device: creation of a log, search for its newest header, the check of a device that should have no
//! log.
//!
//! A header is written to the slot that does not have the newest header. After a torn write the newest header is still
//! valid, because the redo that it needs is overwritten only after the sync.

use super::format::{self, BLOCK_BYTES, FIRST_LSN, LogHeader};
use crate::error::{Error, Result};
use crate::types::Lsn;
use highwater_storage::{AlignedBuf, Device, Placement};
use std::ops::Range;

/// Bytes of zeros written at once when a log is created.
const ZEROS_BYTES: u64 = 4 << 20;

impl LogHeader {
    /// Rules 1 and 2: the other slot, a checkpoint that is durable and does not decrease; and a later opening takes it.
    pub(super) fn can_follow(&self, newest: &LogHeader) -> bool {
        self.sequence == newest.sequence + 1
            && self.database_id == newest.database_id
            && self.generation >= newest.generation
            && self.checkpoint_lsn >= newest.checkpoint_lsn
            && self.durable_lsn >= newest.durable_lsn
            && format::is_size_possible(self.size_bytes)
            && format::are_lsns_possible(self)
    }

    pub(super) fn next(&self) -> LogHeader {
        LogHeader { sequence: self.sequence + 1, ..*self }
    }
}

/// The contents of a device that should not have a log yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogRemains {
    /// Nothing, or zeros where the headers belong.
    Nothing,
    /// A log that was created, completely or in part, and never started.
    NeverStarted,
    /// A log that was in use.
    Used {
        /// By which database.
        database_id: u64,
        /// It was durable up to there.
        durable_lsn: Lsn,
    },
    /// Something else.
    Foreign,
}

/// Whether the device has held a log.
///
/// # Errors
/// An I/O error, or [`Error::Incompatible`] for a log of another version.
pub(super) fn remains(device: &dyn Device) -> Result<LogRemains> {
    if device.len_bytes()? == 0 {
        return Ok(LogRemains::Nothing);
    }
    let slots = match read_header_slots(device) {
        Err(Error::Incompatible(_)) => return Ok(LogRemains::Foreign),
        slots => slots?,
    };
    let is_zero = |slot: &[u8]| slot.iter().all(|byte| *byte == 0);
    let (first, second) = slots.split_at(BLOCK_BYTES as usize);
    if is_zero(first) && is_zero(second) {
        return Ok(LogRemains::Nothing);
    }
    let newest = match format::choose([first, second], &device.name()) {
        Ok((newest, _)) => newest,
        Err(error @ Error::Incompatible(_)) if is_log(first) || is_log(second) => return Err(error),
        Err(_) => return Ok(LogRemains::Foreign),
    };
    // If one header cannot be read, the other may be the older one.
    let is_whole = [first, second].iter().all(|slot| is_zero(slot) || LogHeader::decode(slot).is_ok());
    let LogHeader { generation, database_id, durable_lsn, .. } = newest;
    match generation {
        1 if is_whole => Ok(LogRemains::NeverStarted),
        _ => Ok(LogRemains::Used { database_id, durable_lsn }),
    }
}

fn is_log(slot: &[u8]) -> bool {
    !matches!(LogHeader::decode(slot), Err(format::Unusable::Foreign))
}

/// See `Log::create`.
pub(super) fn create(device: &dyn Device, size_bytes: u64, database_id: u64) -> Result<()> {
    let size_bytes = format::whole_blocks(size_bytes);
    if !format::is_size_possible(size_bytes) {
        let reason = format!("a redo log cannot have {size_bytes} bytes");
        return Err(Error::BadOption { option: "log-file-size".into(), reason });
    }
    device.set_len_bytes(size_bytes)?;
    write_zeros(device, 0..size_bytes)?;
    device.sync()?;
    let (checkpoint_lsn, durable_lsn) = (FIRST_LSN, FIRST_LSN);
    let (generation, sequence, store_mark, ring_base) = (1, 1, 0, Lsn(0));
    let first =
        LogHeader { database_id, size_bytes, generation, sequence, checkpoint_lsn, durable_lsn, store_mark, ring_base };
    for header in [first, first.next()] {
        let mut block = AlignedBuf::zeroed(BLOCK_BYTES as usize);
        header.encode(&mut block);
        device.write_at(header.offset(), &block, Placement::Redo)?;
    }
    Ok(device.sync()?)
}

/// Writes zeros, so that later syncs have nothing but the redo itself to make durable.
pub(super) fn write_zeros(device: &dyn Device, range: Range<u64>) -> highwater_storage::Result<()> {
    let zeros = AlignedBuf::zeroed(ZEROS_BYTES.min(range.end - range.start) as usize);
    let mut offset = range.start;
    while offset < range.end {
        let len = ZEROS_BYTES.min(range.end - offset);
        device.write_at(offset, &zeros[..len as usize], Placement::Redo)?;
        offset += len;
    }
    Ok(())
}

/// Both header slots as they are.
///
/// # Errors
/// An I/O error, or a file too short for them.
pub(crate) fn read_header_slots(device: &dyn Device) -> Result<AlignedBuf> {
    let len = device.len_bytes()?;
    if len < 2 * BLOCK_BYTES {
        let reason = format!(
            "{} has {len} bytes, too few for a Highwater redo log: its contents are lost; restore a backup",
            device.name()
        );
        return Err(Error::Incompatible(reason));
    }
    let mut slots = AlignedBuf::zeroed(2 * BLOCK_BYTES as usize);
    device.read_at(0, &mut slots)?;
    Ok(slots)
}

/// The newest header, if it is one of this database and the device is as long as it says; and whether it is certainly
/// the newest.
pub(super) fn read_header(device: &dyn Device, database_id: u64) -> Result<(LogHeader, bool)> {
    let (name, len) = (device.name(), device.len_bytes()?);
    let slots = read_header_slots(device)?;
    let (first, second) = slots.split_at(BLOCK_BYTES as usize);
    let (header, is_sure) = format::choose([first, second], &name)?;
    if header.database_id != database_id {
        let (has, wanted) = (header.database_id, database_id);
        return Err(Error::Incompatible(format!("{name} belongs to database {has:016x}, not to {wanted:016x}")));
    }
    // It may be longer: the length of a block device is given.
    if header.size_bytes > len {
        return Err(Error::Corrupt(format!("{name} has {len} bytes, but was created with {}", header.size_bytes)));
    }
    if !format::is_size_possible(header.size_bytes) || !format::are_lsns_possible(&header) {
        return Err(Error::Corrupt(format!("the header of {name} is inconsistent: {header:?}")));
    }
    Ok((header, is_sure))
}
