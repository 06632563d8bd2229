//! A storage set for the engine on an emulated disk in the same process. Each of the database's three files is a range
//! of the disk's blocks.
//!
//! Layout of the disk
//!
//! | from | what |
//! |---|---|
//! | 0 | the *table*: lengths of the files, in one 512-byte sector |
//! | 1 MiB | redo |
//! | 1 MiB + redo | doublewrite |
//! | then to the end | data |
//!
//! Rules
//! 1. The table fits a sector, so no power cut tears it. A length changes in the table when it is set and is durable
//!    after the next sync.
//! 2. Growth reads as zeros: both shortening and growing discard what is between the two lengths. (A power cut may have
//!    undone the discard of a shortening. It may undo that of a growth too, if no sync followed.)
//! 3. The placement of a write determines its stream ([`PlacementStreams`]).

use crate::age;
use crate::disk::{Disk, DiskOptions, SECTOR_BYTES, Ticket};
use crate::error::{DeviceError, Result};
use highwater_storage::{Device, Placement, StorageError, StorageSet, Write};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io::{Error as IoError, ErrorKind};
use std::sync::Arc;

const MAGIC: u64 = u64::from_le_bytes(*b"hwDisk01");
const FIRST_FILE: u64 = 1 << 20;

/// The stream of each placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementStreams([u8; Placement::ALL.len()]);

impl PlacementStreams {
    /// All placements write to stream 0.
    pub const ONE: PlacementStreams = PlacementStreams([0; Placement::ALL.len()]);

    /// A stream for each placement, as far as `streams` reach: redo, doublewrite or journal, undo, inner pages, change
    /// buffer, segments by lifetime get their own in this order; leaves, segments of long-lived pages and the rest stay
    /// in stream 0.
    pub fn spread(streams: u8) -> PlacementStreams {
        use Placement::{ChangeBuffer, Doublewrite, IndexInner, Journal, Redo, Undo};
        use Placement::{Lifetime1, Lifetime2, Lifetime3, Lifetime4, Lifetime5};
        let order =
            [Redo, Doublewrite, Undo, IndexInner, ChangeBuffer, Lifetime5, Lifetime4, Lifetime3, Lifetime2, Lifetime1];
        let mut map = PlacementStreams::ONE;
        for (placement, stream) in order.into_iter().zip(1..streams) {
            map.0[placement as usize] = stream;
        }
        // A database uses one of the two.
        map.0[Journal as usize] = map.of(Doublewrite);
        map
    }

    /// The stream of a placement.
    pub fn of(&self, placement: Placement) -> u8 {
        self.0[placement as usize]
    }

    /// Streams of the segments' lifetimes.
    pub fn lifetimes(&self) -> usize {
        Placement::LIFETIMES.map(|placement| self.of(placement)).into_iter().collect::<BTreeSet<_>>().len()
    }

    /// The highest stream named.
    pub fn highest(&self) -> u8 {
        self.0.into_iter().max().unwrap_or(0)
    }
}

impl std::str::FromStr for PlacementStreams {
    type Err = DeviceError;

    /// `one`, `spread` (over 16 streams), or `redo=1,doublewrite=2,...`: placements that are not named go to stream 0.
    fn from_str(text: &str) -> Result<PlacementStreams> {
        match text {
            "one" => return Ok(PlacementStreams::ONE),
            "spread" => return Ok(PlacementStreams::spread(16)),
            _ => {}
        }
        let mut map = PlacementStreams::ONE;
        for part in text.split(',') {
            let bad = |what: &str| DeviceError::Rule { rule: part.into(), what: what.into() };
            let (name, stream) = part.split_once('=').ok_or_else(|| bad("expected PLACEMENT=STREAM, as in redo=1"))?;
            let placement = Placement::named(name.trim());
            let names = Placement::names();
            let placement = placement.ok_or_else(|| bad(&format!("no such placement; there are: {names}")))?;
            map.0[placement as usize] = stream.trim().parse().map_err(|_| bad("the stream is not a number"))?;
        }
        Ok(map)
    }
}

/// Options of a database on an emulated disk.
#[derive(Clone, Debug)]
pub struct EngineDiskOptions {
    /// The disk.
    pub disk: DiskOptions,
    /// Most bytes the redo file may have.
    pub redo_bytes: u64,
    /// Most bytes the doublewrite file may have.
    pub doublewrite_bytes: u64,
    /// The stream of each placement.
    pub streams: PlacementStreams,
}

impl EngineDiskOptions {
    /// Space for 1 GiB of redo (less on a small disk) and 20 MiB of doublewrite, in which a journal of the default size
    /// fits; placements are spread over the device's streams.
    pub fn new(disk: DiskOptions) -> EngineDiskOptions {
        let capacity = u64::from(disk.config.capacity_blocks()) * 4096;
        let streams = match &disk.config {
            crate::preset::DeviceConfig::Ssd(ssd) => PlacementStreams::spread(ssd.streams),
            crate::preset::DeviceConfig::Hdd(_) => PlacementStreams::ONE,
        };
        let redo_bytes = (1 << 30).min(capacity / 8 / 4096 * 4096);
        EngineDiskOptions { disk, redo_bytes, doublewrite_bytes: 20 << 20, streams }
    }
}

/// A disk and the database files on it.
#[derive(Clone)]
pub struct EngineDisk {
    disk: Arc<Disk>,
    set: StorageSet,
}

impl EngineDisk {
    /// Builds the disk and lays the files out.
    pub fn new(options: &EngineDiskOptions) -> Result<EngineDisk> {
        EngineDisk::with_progress(options, &mut |_| Ok(()))
    }

    /// As [`new`](Self::new); `progress` gets the completed share of the ageing, and an error from it ends the ageing.
    pub fn with_progress(options: &EngineDiskOptions, progress: &mut age::Progress<'_>) -> Result<EngineDisk> {
        EngineDisk::on(Arc::new(Disk::with_progress(&options.disk, progress)?), options)
    }

    /// Opens the files of `disk`; a disk without files gets empty ones. A disk is reopened by this after a power cut.
    pub fn on(disk: Arc<Disk>, options: &EngineDiskOptions) -> Result<EngineDisk> {
        let ends = layout(&disk, options)?;
        if options.streams.highest() >= disk.streams() {
            let (stream, streams) = (options.streams.highest().into(), disk.streams().into());
            return Err(DeviceError::NoSuchStream { stream, streams });
        }
        let table = Arc::new(Table::open(disk.clone())?);
        let file = |index: usize, name: &'static str| -> Arc<dyn Device> {
            let (start, end) = (ends[index], ends[index + 1]);
            Arc::new(File {
                disk: disk.clone(),
                table: table.clone(),
                index,
                name,
                start,
                end,
                streams: options.streams,
            })
        };
        let (redo, doublewrite, data) = (file(0, "redo"), file(1, "doublewrite"), file(2, "data"));
        Ok(EngineDisk { set: StorageSet::of_devices(data, redo, doublewrite), disk })
    }

    /// Capacity of a disk whose files may have this many bytes.
    pub fn capacity_bytes(redo_bytes: u64, doublewrite_bytes: u64, data_bytes: u64) -> u64 {
        begin_of_data(redo_bytes, doublewrite_bytes) + data_bytes.next_multiple_of(FILE_ALIGNMENT)
    }

    /// The database files, for the engine.
    pub fn set(&self) -> StorageSet {
        self.set.clone()
    }

    /// The disk, for counters and power cuts.
    pub fn disk(&self) -> &Arc<Disk> {
        &self.disk
    }
}

/// Files begin at multiples of this, so that their pages are aligned on the disk too.
const FILE_ALIGNMENT: u64 = 64 << 10;

fn begin_of_data(redo_bytes: u64, doublewrite_bytes: u64) -> u64 {
    FIRST_FILE + redo_bytes.next_multiple_of(FILE_ALIGNMENT) + doublewrite_bytes.next_multiple_of(FILE_ALIGNMENT)
}

/// Offsets of redo, doublewrite, data and the end of the disk.
fn layout(disk: &Disk, options: &EngineDiskOptions) -> Result<[u64; 4]> {
    let doublewrite = FIRST_FILE + options.redo_bytes.next_multiple_of(FILE_ALIGNMENT);
    let data = begin_of_data(options.redo_bytes, options.doublewrite_bytes);
    if data >= disk.capacity_bytes() {
        let what = format!(
            "redo ({} bytes) and doublewrite ({} bytes) leave no room for data on a disk of {} bytes",
            options.redo_bytes,
            options.doublewrite_bytes,
            disk.capacity_bytes()
        );
        return Err(DeviceError::Config(what));
    }
    Ok([FIRST_FILE, doublewrite, data, disk.capacity_bytes()])
}

/// The lengths of the files, on disk and in memory.
struct Table {
    disk: Arc<Disk>,
    lengths: Mutex<[u64; 3]>,
}

impl Table {
    fn open(disk: Arc<Disk>) -> Result<Table> {
        let mut sector = [0; SECTOR_BYTES as usize];
        disk.read(0, &mut sector)?;
        let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|b| sector[i * 8 + b]));
        let lengths = match (word(0), word(4)) {
            (MAGIC, sum) if sum == checksum([word(1), word(2), word(3)]) => [word(1), word(2), word(3)],
            (0, 0) => [0; 3],
            (found, _) => {
                let what = format!("the disk holds no database files: its table begins with {found:#018x}");
                return Err(DeviceError::Config(what));
            }
        };
        Ok(Table { disk, lengths: Mutex::new(lengths) })
    }

    fn length(&self, index: usize) -> u64 {
        self.lengths.lock()[index]
    }

    fn set_length(&self, index: usize, length: u64) -> Result<()> {
        let mut lengths = self.lengths.lock();
        let mut changed = *lengths;
        changed[index] = length;
        let mut sector = [0; SECTOR_BYTES as usize];
        let words = [MAGIC, changed[0], changed[1], changed[2], checksum(changed)];
        for (i, word) in words.into_iter().enumerate() {
            sector[i * 8..i * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
        self.disk.write(0, &sector, 0)?;
        *lengths = changed;
        Ok(())
    }
}

fn checksum(lengths: [u64; 3]) -> u64 {
    lengths.into_iter().fold(MAGIC, |sum, n| (sum ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31)) | 1
}

/// A file of the database: a range of the disk.
struct File {
    disk: Arc<Disk>,
    table: Arc<Table>,
    index: usize,
    name: &'static str,
    start: u64,
    end: u64,
    streams: PlacementStreams,
}

impl File {
    fn error(&self, operation: &'static str, offset: u64, len: u64, source: IoError) -> StorageError {
        StorageError { operation, device: self.name(), offset, len, source }
    }

    fn failed(&self, operation: &'static str, offset: u64, len: u64, error: DeviceError) -> StorageError {
        let kind = match &error {
            DeviceError::Io { source, .. } => source.kind(),
            DeviceError::Dead(_) => ErrorKind::NotConnected,
            DeviceError::Unreadable { .. } => ErrorKind::InvalidData,
            _ => ErrorKind::InvalidInput,
        };
        self.error(operation, offset, len, IoError::new(kind, error))
    }

    /// Offset on the disk of a range of the file. A range outside the file or not of whole sectors is an error.
    fn place(&self, operation: &'static str, offset: u64, len: u64) -> highwater_storage::Result<u64> {
        let length = self.table.length(self.index);
        if offset.checked_add(len).is_none_or(|end| end > length) {
            let text = format!("the file has {length} bytes");
            return Err(self.error(operation, offset, len, IoError::new(ErrorKind::UnexpectedEof, text)));
        }
        if !offset.is_multiple_of(SECTOR_BYTES) || !len.is_multiple_of(SECTOR_BYTES) {
            let text = "not whole 512-byte sectors";
            return Err(self.error(operation, offset, len, IoError::new(ErrorKind::InvalidInput, text)));
        }
        Ok(self.start + offset)
    }

    fn begin(&self, write: &Write<'_>) -> highwater_storage::Result<Ticket> {
        let (offset, len) = (write.offset, write.data.len() as u64);
        let at = self.place("write", offset, len)?;
        let begun = self.disk.begin_write(at, write.data, self.streams.of(write.placement));
        begun.map_err(|e| self.failed("write", offset, len, e))
    }
}

impl Device for File {
    fn name(&self) -> String {
        format!("{} on {}", self.name, self.disk.name())
    }

    fn len_bytes(&self) -> highwater_storage::Result<u64> {
        Ok(self.table.length(self.index))
    }

    fn set_len_bytes(&self, len: u64) -> highwater_storage::Result<()> {
        let old = self.table.length(self.index);
        if len > self.end - self.start {
            let text = format!("the file's place on the disk has {} bytes", self.end - self.start);
            return Err(self.error("resize", 0, len, IoError::new(ErrorKind::StorageFull, text)));
        }
        // Rule 2.
        let [least, max] = [len.min(old), len.max(old)].map(|len| len.next_multiple_of(SECTOR_BYTES));
        let discarded = self.disk.discard(self.start + least, max - least);
        discarded.map_err(|e| self.failed("resize", least, max - least, e))?;
        self.table.set_length(self.index, len).map_err(|e| self.failed("resize", 0, len, e))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> highwater_storage::Result<()> {
        let len = buf.len() as u64;
        let at = self.place("read", offset, len)?;
        self.disk.read(at, buf).map_err(|e| self.failed("read", offset, len, e))
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> highwater_storage::Result<()> {
        let ticket = self.begin(&Write { offset, data, placement })?;
        self.disk.wait(ticket).map_err(|e| self.failed("write", offset, data.len() as u64, e))
    }

    fn write_batch(&self, writes: &[Write<'_>]) -> highwater_storage::Result<()> {
        let mut all: Option<Ticket> = None;
        for write in writes {
            let ticket = self.begin(write)?;
            all = Some(all.map_or(ticket, |before| before.and(ticket)));
        }
        let Some(ticket) = all else { return Ok(()) };
        let len = writes.iter().map(|write| write.data.len() as u64).sum();
        self.disk.wait(ticket).map_err(|e| self.failed("write", writes[0].offset, len, e))
    }

    fn sync(&self) -> highwater_storage::Result<()> {
        self.disk.flush().map_err(|e| self.failed("sync", 0, 0, e))
    }

    fn discard(&self, offset: u64, len: u64) -> highwater_storage::Result<()> {
        let at = self.place("discard", offset, len)?;
        self.disk.discard(at, len).map_err(|e| self.failed("discard", offset, len, e))
    }

    fn discard_keeps_room(&self) -> bool {
        true
    }

    /// Atomic pieces are aligned relative to the start of the file, so the file's alignment on the disk bounds their
    /// size.
    fn atomic_write_bytes(&self) -> usize {
        let aligned = if self.start == 0 { u64::MAX } else { 1 << self.start.trailing_zeros() };
        aligned.min(self.disk.atomic_write_bytes().into()) as usize
    }

    fn prefers_discards(&self) -> bool {
        self.disk.wears()
    }

    fn lifetime_streams(&self) -> usize {
        self.streams.lifetimes()
    }

    fn alignment_bytes(&self) -> usize {
        SECTOR_BYTES as usize
    }

    fn identity(&self) -> Option<String> {
        self.disk.takes_time().then(|| format!("emulated {}", self.disk.name()))
    }
}

#[cfg(test)]
#[path = "adapter_test.rs"]
mod tests;
