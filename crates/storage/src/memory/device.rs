//! The device itself: its refusals and its free space.

use super::bytes::{Bytes, Change};
use super::image::Image;
use crate::aligned::is_aligned;
use crate::power_cut::{SECTOR_BYTES, WriteOutcome};
use crate::{Device, Placement, Result, StorageError, Write};
use parking_lot::Mutex;
use std::io::{Error, ErrorKind};
use std::sync::Arc;

/// Unit in which a limited device counts what was discarded.
const BLOCK_BYTES: u64 = 4096;
/// Value of discarded bytes.
const DISCARD_FILL: u8 = 0xD5;
const SECTORS: u32 = SECTOR_BYTES as u32;

/// A device in memory; clones share the bytes.
#[derive(Clone)]
pub struct MemoryDevice {
    shared: Arc<Shared>,
}

struct Shared {
    kind: Kind,
    bytes: Mutex<Bytes>,
}

/// The properties of the device.
#[derive(Clone)]
struct Kind {
    name: String,
    alignment: usize,
    limit_bytes: u64,
    /// Size of the pieces that a power cut does not tear.
    untorn_bytes: u32,
    lifetime_streams: usize,
}

impl MemoryDevice {
    /// An empty device without alignment constraint.
    pub fn new() -> MemoryDevice {
        MemoryDevice::named("memory", 1)
    }

    /// An empty device with a name for messages, which refuses accesses that are not aligned to `alignment` bytes.
    pub fn named(name: &str, alignment: usize) -> MemoryDevice {
        Kind { name: name.to_string(), alignment, ..Kind::default() }.holding(Bytes::default())
    }

    /// An empty device that is full at `limit_bytes`.
    pub fn limited(limit_bytes: u64) -> MemoryDevice {
        MemoryDevice::new_for_cuts(limit_bytes, SECTORS)
    }

    /// An empty device that is full at `limit_bytes` and promises that no power cut tears an aligned piece of
    /// `untorn_bytes`, a power of two from 512 on, nor, if that is more than a sector, a shorter write.
    pub fn new_for_cuts(limit_bytes: u64, untorn_bytes: u32) -> MemoryDevice {
        Kind { limit_bytes, untorn_bytes, ..Kind::default() }.holding(Bytes::default())
    }

    /// A new, empty device with the properties of this one, which reports that it separates this many lifetimes.
    #[must_use]
    pub fn with_lifetime_streams(&self, lifetime_streams: usize) -> MemoryDevice {
        Kind { lifetime_streams, ..self.shared.kind.clone() }.holding(Bytes::default())
    }

    /// A device that holds `image`, durable.
    pub fn holding(image: Vec<u8>) -> MemoryDevice {
        Kind::default().holding(Bytes::durable(Image::of(&image)))
    }

    /// A new device with one of the images that a power cut now could leave, chosen by `seed`. This device does not
    /// change.
    pub fn cut(&self, seed: u64) -> MemoryDevice {
        let image = self.shared.bytes.lock().power_cut(self.shared.kind.untorn_bytes, seed);
        self.holding_now(image)
    }

    /// As [`cut`](MemoryDevice::cut), for several (different) devices at the same moment.
    pub(crate) fn cut_at_once<const N: usize>(devices: &[MemoryDevice; N], seeds: [u64; N]) -> [MemoryDevice; N] {
        // All of them held: nothing is written to one between the looks at two others.
        let held = devices.each_ref().map(|device| device.shared.bytes.lock());
        std::array::from_fn(|i| {
            devices[i].holding_now(held[i].power_cut(devices[i].shared.kind.untorn_bytes, seeds[i]))
        })
    }

    /// A device with the properties of this one and the durable contents `image`.
    fn holding_now(&self, image: Image) -> MemoryDevice {
        self.shared.kind.clone().holding(Bytes::durable(image))
    }

    /// The bytes of [`cut`](MemoryDevice::cut).
    pub fn power_cut(&self, seed: u64) -> Vec<u8> {
        self.shared.bytes.lock().power_cut(self.shared.kind.untorn_bytes, seed).to_vec()
    }

    /// The visible bytes.
    pub fn image(&self) -> Vec<u8> {
        self.shared.bytes.lock().current.to_vec()
    }

    /// Fills the free space of a limited device with other files.
    pub fn fill_up(&self) {
        let mut bytes = self.shared.bytes.lock();
        bytes.others_bytes += self.room(&bytes);
    }

    /// Discarded bytes, which other files can use (of a limited device).
    pub fn discarded_bytes(&self) -> u64 {
        self.shared.bytes.lock().holes.len() as u64 * BLOCK_BYTES
    }

    /// Removes the other files of a limited device.
    pub fn others_leave(&self) {
        self.shared.bytes.lock().others_bytes = 0;
    }

    /// Free bytes of a limited device.
    fn room(&self, bytes: &Bytes) -> u64 {
        let used = bytes.current.len() as u64 - bytes.holes.len() as u64 * BLOCK_BYTES + bytes.others_bytes;
        self.shared.kind.limit_bytes.saturating_sub(used)
    }

    /// Allocates the discarded blocks that a range touches.
    fn fill_holes(&self, operation: &'static str, bytes: &mut Bytes, offset: usize, len: usize) -> Result<()> {
        if bytes.holes.is_empty() {
            return Ok(());
        }
        let (first, end) = (offset as u64 / BLOCK_BYTES, ((offset + len) as u64).div_ceil(BLOCK_BYTES));
        let touched = bytes.holes.range(first..end).count() as u64;
        if touched * BLOCK_BYTES > self.room(bytes) {
            return Err(self.error(operation, offset as u64, len, ErrorKind::StorageFull));
        }
        bytes.holes.retain(|block| !(first..end).contains(block));
        Ok(())
    }

    /// Changes not made durable yet.
    pub fn unsynced_changes(&self) -> usize {
        self.shared.bytes.lock().unsynced.len()
    }

    /// The bytes that each of those changes writes, oldest first; an empty range for a change of the length.
    pub fn unsynced(&self) -> Vec<std::ops::Range<u64>> {
        self.shared.bytes.lock().unsynced.iter().map(Change::range).collect()
    }

    /// As [`cut`](MemoryDevice::cut), with the outcome of each unsynced change chosen by the caller. A change of the
    /// length survives if its outcome is not empty.
    ///
    /// # Panics
    /// If there is not one fate for each change, or one reaches beyond its write.
    pub fn cut_to(&self, fates: &[WriteOutcome]) -> MemoryDevice {
        let image = self.shared.bytes.lock().kept(fates);
        self.holding_now(image)
    }

    /// Loses the writes since the last sync: reads see the durable bytes again. Lengths stay.
    pub fn lose_unsynced(&self) {
        let mut guard = self.shared.bytes.lock();
        let bytes = &mut *guard;
        bytes.unsynced.retain(|change| change.is_len());
        bytes.current = bytes.durable.clone();
        bytes.unsynced.iter().for_each(|len| len.apply(&mut bytes.current));
    }

    /// Damages the device in place, durably: for tests of corruption.
    pub fn damage(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.shared.bytes.lock();
        let mut image = bytes.current.to_vec();
        change(&mut image);
        bytes.current = Image::of(&image);
        bytes.durable = bytes.current.clone();
        bytes.unsynced.clear();
    }

    fn error(&self, operation: &'static str, offset: u64, len: usize, kind: ErrorKind) -> StorageError {
        let source = Error::from(kind);
        StorageError { operation, device: self.name(), offset, len: len as u64, source }
    }

    fn range(&self, operation: &'static str, offset: u64, len: usize, end_max: usize) -> Result<usize> {
        let start = usize::try_from(offset).ok();
        match start.and_then(|s| s.checked_add(len)) {
            Some(end) if end <= end_max => Ok(end - len),
            _ => Err(self.error(operation, offset, len, ErrorKind::UnexpectedEof)),
        }
    }

    fn check_alignment(&self, operation: &'static str, offset: u64, data: &[u8]) -> Result<()> {
        let unit = self.shared.kind.alignment;
        if is_aligned(offset, data, unit) {
            return Ok(());
        }
        Err(self.error(operation, offset, data.len(), ErrorKind::InvalidInput))
    }
}

impl Default for Kind {
    fn default() -> Kind {
        let name = "memory".to_string();
        Kind { name, alignment: 1, limit_bytes: u64::MAX, untorn_bytes: SECTORS, lifetime_streams: 1 }
    }
}

impl Kind {
    fn holding(self, bytes: Bytes) -> MemoryDevice {
        MemoryDevice { shared: Arc::new(Shared { kind: self, bytes: Mutex::new(bytes) }) }
    }
}

impl Default for MemoryDevice {
    fn default() -> MemoryDevice {
        MemoryDevice::new()
    }
}

impl std::fmt::Debug for MemoryDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.shared.bytes.lock();
        let (len, unsynced) = (bytes.current.len(), bytes.unsynced.len());
        write!(f, "MemoryDevice({}, {len} bytes, {unsynced} unsynced changes)", self.shared.kind.name)
    }
}

impl Device for MemoryDevice {
    fn name(&self) -> String {
        self.shared.kind.name.clone()
    }

    fn len_bytes(&self) -> Result<u64> {
        Ok(self.shared.bytes.lock().current.len() as u64)
    }

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        let mut bytes = self.shared.bytes.lock();
        let growth = len.saturating_sub(bytes.current.len() as u64);
        if growth > self.room(&bytes) || len > isize::MAX as u64 {
            return Err(self.error("set length", 0, len as usize, ErrorKind::StorageFull));
        }
        bytes.current.resize(len as usize);
        bytes.holes.split_off(&len.div_ceil(BLOCK_BYTES));
        bytes.unsynced.push(Change::SetLen(len as usize));
        Ok(())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check_alignment("read", offset, buf)?;
        let bytes = self.shared.bytes.lock();
        let start = self.range("read", offset, buf.len(), bytes.current.len())?;
        bytes.current.read(start, buf);
        Ok(())
    }

    /// As a file does, a write beyond the end grows the device.
    fn write_at(&self, offset: u64, data: &[u8], _placement: Placement) -> Result<()> {
        self.check_alignment("write", offset, data)?;
        let end_max = usize::try_from(self.shared.kind.limit_bytes).unwrap_or(usize::MAX).min(isize::MAX as usize);
        let offset = self.range("write", offset, data.len(), end_max)?;
        let mut bytes = self.shared.bytes.lock();
        self.fill_holes("write", &mut bytes, offset, data.len())?;
        if bytes.current.len() < offset + data.len() {
            bytes.unsynced.push(Change::SetLen(offset + data.len()));
        }
        let change = Change::Write { offset, data: data.to_vec() };
        change.apply(&mut bytes.current);
        bytes.unsynced.push(change);
        Ok(())
    }

    fn write_batch(&self, writes: &[Write<'_>]) -> Result<()> {
        writes.iter().try_for_each(|w| self.write_at(w.offset, w.data, w.placement))
    }

    fn sync(&self) -> Result<()> {
        let mut guard = self.shared.bytes.lock();
        let bytes = &mut *guard;
        for change in bytes.unsynced.drain(..) {
            change.apply(&mut bytes.durable);
        }
        debug_assert_eq!(bytes.durable.len(), bytes.current.len());
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let mut bytes = self.shared.bytes.lock();
        let offset = self.range("discard", offset, len, bytes.current.len())?;
        let change = Change::Write { offset, data: vec![DISCARD_FILL; len] };
        change.apply(&mut bytes.current);
        bytes.unsynced.push(change);
        if self.shared.kind.limit_bytes != u64::MAX {
            let (first, end) = ((offset as u64).div_ceil(BLOCK_BYTES), (offset + len) as u64 / BLOCK_BYTES);
            bytes.holes.extend(first..end.max(first));
        }
        Ok(())
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let mut bytes = self.shared.bytes.lock();
        let offset = self.range("reserve", offset, len, bytes.current.len())?;
        self.fill_holes("reserve", &mut bytes, offset, len)
    }

    /// False for a limited device, because other files may use discarded blocks.
    fn discard_keeps_room(&self) -> bool {
        self.shared.kind.limit_bytes == u64::MAX
    }

    fn atomic_write_bytes(&self) -> usize {
        self.shared.kind.untorn_bytes as usize
    }

    fn lifetime_streams(&self) -> usize {
        self.shared.kind.lifetime_streams
    }

    fn alignment_bytes(&self) -> usize {
        self.shared.kind.alignment
    }
}
