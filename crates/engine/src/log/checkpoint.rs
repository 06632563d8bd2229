//! Headers: creating a log, finding its last checkpoint, starting a generation, moving the checkpoint.
//!
//! Rules
//! 1. A header is written to the slot that does not have the newest header, and synced before anything relies on it.
//!    After a torn write the newest header is still valid, because the redo that it needs is overwritten only after the
//!    sync.
//! 2. A checkpoint is never above the durable LSN, never decreases, and is at the start of a group (or at the end of
//!    the log).
//! 3. Each header has the LSN that was durable when the header was written.
//! 4. On a device that prefers discards, the blocks of the ring that neither header nor a reader (`keep`) needs are
//!    discarded. Discards, like all writes of the ring, hold the I/O mutex: a block is discarded before it is written
//!    again, or not at all.
//! 5. A generation begins at a block boundary, so no block has valid groups of two generations. The generation that a
//!    clean close begins has no groups.

use super::format::{self, BLOCK_BYTES, DATA_BYTES, FIRST_LSN, LogHeader, RING_START};
use super::{Io, Log};
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering;
use crate::sync::event::event;
use crate::sync::poison::CLOSED;
use crate::types::Lsn;
use highwater_storage::{AlignedBuf, Device, Placement};
use std::ops::Range;

/// Bytes of zeros written at once when a log is created.
const ZEROS_BYTES: u64 = 4 << 20;
/// What is discarded at once is at least this part of the ring, so that whole erase units become empty together. More
/// than this part is free while the checkpoint age is below the sync watermark.
const DISCARD_PART: u64 = 16;

impl Log {
    /// Begins a new generation at `end_lsn`, rounded up to a block (all pages up to it are durable): a checkpoint
    /// there, and appending allowed. A log that is too large shrinks (`shrinking`).
    ///
    /// # Errors
    /// [`Error::Usage`] if started already or `end_lsn` is before the scan's end, or the I/O error that stops the
    /// database.
    pub fn start(&self, end_lsn: Lsn) -> Result<()> {
        let mut io = self.io.lock();
        if io.started || end_lsn < self.end_lsn() {
            let why = if io.started { "it was started already" } else { "its records continue beyond that LSN" };
            return Err(Error::Usage(format!("cannot start the redo log at LSN {end_lsn}: {why}")));
        }
        let start = Lsn(format::block_ceil(end_lsn.0));
        let generation = io.header.generation + 1;
        let header = LogHeader { generation, checkpoint_lsn: start, durable_lsn: start, ..io.header.next() };
        self.begin_generation(&mut io, header)?;
        io.started = true;
        let mut active = self.buffer.lock();
        active.restart(start, generation);
        for lsn in [&self.written, &self.durable, &self.checkpoint] {
            lsn.store(start.0, Ordering::Release);
        }
        self.buffer.publish(&active, start);
        self.space.open(start);
        Ok(())
    }

    /// Number and first LSN of the generation that [`start`](Log::start) begins at `end_lsn`.
    pub fn next_generation(&self, end_lsn: Lsn) -> (u64, Lsn) {
        (self.generation() + 1, Lsn(format::block_ceil(end_lsn.0)))
    }

    /// Makes `lsn` the place recovery starts from (all older changes are durable in the data file). `lsn` is the start
    /// of a group or the end of the log. Frees room in the ring and wakes the threads that wait for it. One that is
    /// before the present checkpoint changes nothing.
    ///
    /// # Errors
    /// [`Error::Usage`] for an LSN beyond the end or before `start`, [`Error::Poisoned`], or the I/O error that stops
    /// the database.
    pub fn checkpoint(&self, lsn: Lsn) -> Result<()> {
        self.poison.check()?;
        self.check_not_beyond_end(lsn)?;
        if lsn <= self.checkpoint_lsn() {
            return Ok(());
        }
        self.flush_to(lsn)?;
        let mut io = self.io.lock();
        if !io.started {
            return Err(Error::Usage("the redo log has not been started yet".into()));
        }
        if lsn <= self.checkpoint_lsn() {
            return self.poison.check();
        }
        let header = LogHeader { checkpoint_lsn: lsn, durable_lsn: self.durable_lsn(), ..io.header.next() };
        self.write_header(&mut io, header)?;
        self.checkpoint.store(lsn.0, Ordering::Release);
        self.stats.checkpoints.inc();
        drop(io);
        event!(DEBUG, lsn = lsn.0, "checkpoint");
        self.space.checkpointed(|| self.checkpoint_lsn());
        Ok(())
    }

    /// Ends the log at `end`, its checkpoint: begins a generation in which nothing is appended any more. If a thread
    /// has appended meanwhile, nothing changes. A log of more than `keep_bytes` shrinks to them, if that makes it half
    /// as large or less and no reader needs what it holds (`shrinking`). The file ends where the log does, also after a
    /// growth that never finished. Says whether the log has ended.
    ///
    /// # Errors
    /// [`Error::Poisoned`], or the I/O error that stops the database.
    pub fn finish(&self, end: Lsn, keep_bytes: u64) -> Result<bool> {
        let mut io = self.io.lock();
        if !io.started || self.checkpoint_lsn() != end || self.buffer.lock().end() != end {
            return self.poison.check().map(|()| false);
        }
        let header = LogHeader { generation: io.header.generation + 1, ..io.header.next() };
        let keep_bytes = format::whole_blocks(keep_bytes);
        let may_shrink = !self.device.has_fixed_len() && self.space.kept() >= end;
        if may_shrink && format::is_size_possible(keep_bytes) && keep_bytes <= self.size_bytes() / 2 {
            self.begin_smaller(&mut io, header, keep_bytes)?;
        } else {
            self.write_header(&mut io, header)?;
        }
        self.cut_file()?;
        // What is appended from now on is of the generation before: it must not be acknowledged.
        self.poison.set(CLOSED);
        Ok(true)
    }

    /// What the page store noted in the newest header, or since.
    pub fn store_mark(&self) -> u64 {
        self.store_mark.load(Ordering::Acquire)
    }

    /// Notes in all later headers what the page store needs to know at the next opening. Noted after a checkpoint's LSN
    /// was determined, it covers everything that the checkpoint relies on.
    pub fn note_store_mark(&self, mark: u64) {
        self.store_mark.store(mark, Ordering::Release);
    }

    /// Makes everything durable and notes that in the header, unless a header says so already. So damage in front of it
    /// is not taken for a torn write (`damage`). For a log that has been idle; a busy log notes it in every block it
    /// writes.
    ///
    /// # Errors
    /// [`Error::Poisoned`], or the I/O error that stops the database.
    pub fn mark_durable(&self) -> Result<()> {
        self.flush_to(self.end_lsn())?;
        let mut io = self.io.lock();
        let durable_lsn = self.durable_lsn();
        let is_noted = io.header.durable_lsn >= durable_lsn && io.header.store_mark == self.store_mark();
        if !io.started || is_noted {
            return self.poison.check();
        }
        let header = LogHeader { durable_lsn, ..io.header.next() };
        self.write_header(&mut io, header)
    }

    pub(super) fn write_header(&self, io: &mut Io, header: LogHeader) -> Result<()> {
        self.poison.check()?;
        self.check_state(io);
        debug_assert!(header.can_follow(&io.header), "{header:?} is written after {:?}", io.header);
        let header = LogHeader { store_mark: self.store_mark(), ..header };
        let mut block = AlignedBuf::zeroed(BLOCK_BYTES as usize);
        header.encode(&mut block);
        self.count_write(1, block.len());
        self.stop_on_failure(self.device.write_at(header.offset(), &block, Placement::Redo))?;
        self.sync(io)?;
        let older = std::mem::replace(&mut io.header, header);
        if self.device.prefers_discards() {
            self.discard_before(io, older.checkpoint_lsn.min(self.space.kept()));
        }
        Ok(())
    }

    /// Discards what is in front of a checkpoint and has not been written again (rule 4).
    fn discard_before(&self, io: &mut Io, checkpoint: Lsn) {
        // As LSNs of the next lap, which have the same places.
        let from = format::block_ceil(self.written.load(Ordering::Relaxed)).max(io.discarded);
        let geometry = self.geometry();
        let to = format::block_floor(checkpoint.0) + geometry.lap();
        if to < from + geometry.lap() / DISCARD_PART {
            return;
        }
        debug_assert!(to <= self.written.load(Ordering::Relaxed) + geometry.lap(), "redo up to {to} was not written");
        let (offset, before_end) = geometry.block_place(from);
        let bytes = (to - from) / DATA_BYTES * BLOCK_BYTES;
        let first = bytes.min(before_end);
        // Advice: a refusal changes nothing.
        let _ = self.device.discard(offset, first);
        if bytes > first {
            let _ = self.device.discard(RING_START, bytes - first);
        }
        io.discarded = to;
    }
}

impl LogHeader {
    /// Rules 1 and 2: the other slot, a checkpoint that is durable and does not decrease; and a later opening takes it.
    fn can_follow(&self, newest: &LogHeader) -> bool {
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

/// What a device holds that should hold no log yet.
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

impl Log {
    /// Whether the device has held a log.
    ///
    /// # Errors
    /// An I/O error, or [`Error::Incompatible`] for a log of another version.
    pub fn remains(device: &dyn Device) -> Result<LogRemains> {
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
        // A header beside one that cannot be read may be the older one.
        let is_whole = [first, second].iter().all(|slot| is_zero(slot) || LogHeader::decode(slot).is_ok());
        let LogHeader { generation, database_id, durable_lsn, .. } = newest;
        match generation {
            1 if is_whole => Ok(LogRemains::NeverStarted),
            _ => Ok(LogRemains::Used { database_id, durable_lsn }),
        }
    }
}

fn is_log(slot: &[u8]) -> bool {
    !matches!(LogHeader::decode(slot), Err(format::Unusable::Foreign))
}

/// See [`Log::create`].
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
pub fn read_header_slots(device: &dyn Device) -> Result<AlignedBuf> {
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
