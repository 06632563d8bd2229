//! A device in memory whose power can be cut.
//!
//! Rules
//! 1. `current` is what reads see; `durable` is what is certain to survive; `unsynced` is every change between the two,
//!    oldest first. A sync makes `durable` equal to `current` and empties `unsynced`.
//! 2. A power cut keeps `durable` and, of the unsynced changes, any: each write survives, vanishes, or survives in some
//!    of its sectors (512 bytes each, themselves never torn), and the survivors land in any order. Changes of the
//!    length survive as a prefix of their order; bytes beyond the surviving length are gone.
//! 3. The same seed gives the same outcome for the same history.
//! 4. A discarded range reads as [`DISCARD_FILL`], so that nothing comes to depend on its contents.
//! 5. A limited device is full as a file system is: whole blocks that were discarded are room for others, and writing or
//!    reserving them again takes room. What others use counts against the limit.

use crate::aligned::is_aligned;
use crate::power_cut::{Guarantees, PendingWrite, choose_fates};
use crate::{Device, Placement, Result, StorageError, Write};
use fastrand::Rng;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::io::{Error, ErrorKind};
use std::sync::Arc;

/// Unit in which a limited device counts what was discarded.
const BLOCK_BYTES: u64 = 4096;
/// What discarded bytes read as.
const DISCARD_FILL: u8 = 0xD5;

/// A device in memory; clones share the bytes.
#[derive(Clone)]
pub struct MemoryDevice {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    alignment: usize,
    limit_bytes: u64,
    bytes: Mutex<Bytes>,
}

#[derive(Default)]
struct Bytes {
    current: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
    /// Blocks that were discarded and not written or reserved since.
    holes: BTreeSet<u64>,
    /// What others use of a limited device.
    others_bytes: u64,
}

enum Change {
    Write { offset: usize, data: Vec<u8> },
    SetLen(usize),
}

impl MemoryDevice {
    /// An empty device without alignment constraint.
    pub fn new() -> MemoryDevice {
        MemoryDevice::named("memory", 1)
    }

    /// An empty device with a name for messages, that refuses what is not aligned to `alignment` bytes.
    pub fn named(name: &str, alignment: usize) -> MemoryDevice {
        MemoryDevice::with(name.to_string(), alignment, u64::MAX, Bytes::default())
    }

    /// An empty device that is full at `limit_bytes`.
    pub fn limited(limit_bytes: u64) -> MemoryDevice {
        MemoryDevice::with("memory".to_string(), 1, limit_bytes, Bytes::default())
    }

    /// A device that holds `image`, durable.
    pub fn holding(image: Vec<u8>) -> MemoryDevice {
        MemoryDevice::with("memory".to_string(), 1, u64::MAX, Bytes::durable(image))
    }

    fn with(name: String, alignment: usize, limit_bytes: u64, bytes: Bytes) -> MemoryDevice {
        MemoryDevice { shared: Arc::new(Shared { name, alignment, limit_bytes, bytes: Mutex::new(bytes) }) }
    }

    /// What a power cut now could leave: a new device that holds one of the possible images, chosen by `seed`.
    /// This device goes on as if nothing had happened.
    pub fn cut(&self, seed: u64) -> MemoryDevice {
        let image = self.power_cut(seed);
        self.holding_now(image)
    }

    /// As [`cut`](MemoryDevice::cut), for several (different) devices at the same moment.
    pub(crate) fn cut_at_once<const N: usize>(devices: &[MemoryDevice; N], seeds: [u64; N]) -> [MemoryDevice; N] {
        // All of them held: nothing is written to one between the looks at two others.
        let held = devices.each_ref().map(|device| device.shared.bytes.lock());
        std::array::from_fn(|i| devices[i].holding_now(held[i].power_cut(seeds[i])))
    }

    /// A device like this one that holds `image`, durable.
    fn holding_now(&self, image: Vec<u8>) -> MemoryDevice {
        MemoryDevice::with(
            self.shared.name.clone(),
            self.shared.alignment,
            self.shared.limit_bytes,
            Bytes::durable(image),
        )
    }

    /// The bytes of [`cut`](MemoryDevice::cut).
    pub fn power_cut(&self, seed: u64) -> Vec<u8> {
        self.shared.bytes.lock().power_cut(seed)
    }

    /// What reads see now.
    pub fn image(&self) -> Vec<u8> {
        self.shared.bytes.lock().current.clone()
    }

    /// Lets others fill what is left of a limited device.
    pub fn fill_up(&self) {
        let mut bytes = self.shared.bytes.lock();
        bytes.others_bytes += self.room(&bytes);
    }

    /// Bytes that were discarded and are room for others now (of a limited device).
    pub fn discarded_bytes(&self) -> u64 {
        self.shared.bytes.lock().holes.len() as u64 * BLOCK_BYTES
    }

    /// Lets others give back what they use.
    pub fn others_leave(&self) {
        self.shared.bytes.lock().others_bytes = 0;
    }

    /// Bytes that can still be taken of a limited device.
    fn room(&self, bytes: &Bytes) -> u64 {
        let used = bytes.current.len() as u64 - bytes.holes.len() as u64 * BLOCK_BYTES + bytes.others_bytes;
        self.shared.limit_bytes.saturating_sub(used)
    }

    /// Takes room for the discarded blocks that a range touches.
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

    /// Damages the device in place, durably: for tests of corruption.
    pub fn damage(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.shared.bytes.lock();
        change(&mut bytes.current);
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
        let unit = self.shared.alignment;
        if is_aligned(offset, data, unit) {
            return Ok(());
        }
        Err(self.error(operation, offset, data.len(), ErrorKind::InvalidInput))
    }
}

impl Bytes {
    fn durable(image: Vec<u8>) -> Bytes {
        Bytes { current: image.clone(), durable: image, ..Bytes::default() }
    }

    /// What a power cut could leave.
    fn power_cut(&self, seed: u64) -> Vec<u8> {
        let mut random = Rng::with_seed(seed);
        let mut image = self.durable.clone();
        let lens: Vec<usize> = self.unsynced.iter().filter_map(Change::new_len).collect();
        for &len in &lens[..random.usize(..=lens.len())] {
            image.resize(len, 0);
        }
        let writes: Vec<(usize, &[u8])> = self.unsynced.iter().filter_map(Change::written).collect();
        let pending = |(at, data): &(usize, &[u8])| PendingWrite::completed(*at as u64..(at + data.len()) as u64);
        let pending: Vec<PendingWrite> = writes.iter().map(pending).collect();
        let fates = choose_fates(&Guarantees::SECTORS, &pending, &mut random);
        let mut landing: Vec<_> = writes.into_iter().zip(fates).collect();
        random.shuffle(&mut landing);
        for ((at, data), fate) in landing {
            for kept in fate {
                let (from, to) = (kept.start as usize, image.len().min(kept.end as usize));
                if from < to {
                    image[from..to].copy_from_slice(&data[from - at..to - at]);
                }
            }
        }
        image
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
        write!(f, "MemoryDevice({}, {len} bytes, {unsynced} unsynced changes)", self.shared.name)
    }
}

impl Change {
    fn new_len(&self) -> Option<usize> {
        match self {
            Change::SetLen(len) => Some(*len),
            Change::Write { .. } => None,
        }
    }

    fn written(&self) -> Option<(usize, &[u8])> {
        match self {
            Change::Write { offset, data } => Some((*offset, data)),
            Change::SetLen(_) => None,
        }
    }

    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Change::SetLen(len) => image.resize(*len, 0),
            Change::Write { offset, data } => {
                if image.len() < offset + data.len() {
                    image.resize(offset + data.len(), 0);
                }
                image[*offset..offset + data.len()].copy_from_slice(data);
            }
        }
    }
}

impl Device for MemoryDevice {
    fn name(&self) -> String {
        self.shared.name.clone()
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
        bytes.current.resize(len as usize, 0);
        bytes.unsynced.push(Change::SetLen(len as usize));
        Ok(())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check_alignment("read", offset, buf)?;
        let bytes = self.shared.bytes.lock();
        let start = self.range("read", offset, buf.len(), bytes.current.len())?;
        buf.copy_from_slice(&bytes.current[start..start + buf.len()]);
        Ok(())
    }

    /// As a file does, a write beyond the end grows the device.
    fn write_at(&self, offset: u64, data: &[u8], _placement: Placement) -> Result<()> {
        self.check_alignment("write", offset, data)?;
        let end_max = usize::try_from(self.shared.limit_bytes).unwrap_or(usize::MAX).min(isize::MAX as usize);
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
        if self.shared.limit_bytes != u64::MAX {
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

    fn alignment_bytes(&self) -> usize {
        self.shared.alignment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::power_cut::SECTOR_BYTES;

    const SEEDS: std::ops::Range<u64> = 0..300;

    fn device_of(len: u64) -> MemoryDevice {
        let device = MemoryDevice::new();
        device.set_len_bytes(len).unwrap();
        device.sync().unwrap();
        device
    }

    #[test]
    fn synced_bytes_survive_every_cut() {
        let device = device_of(4096);
        device.write_at(0, &[7; 4096], Placement::Other).unwrap();
        device.sync().unwrap();
        assert!(SEEDS.clone().all(|seed| device.power_cut(seed) == vec![7; 4096]));
        assert_eq!(device.unsynced_changes(), 0);
    }

    #[test]
    fn an_unsynced_write_is_kept_lost_or_torn_by_sectors() {
        let device = device_of(4096);
        device.write_at(0, &[7; 4096], Placement::Other).unwrap();
        let (mut kept, mut lost, mut torn) = (0, 0, 0);
        for seed in SEEDS {
            let image = device.power_cut(seed);
            for sector in image.chunks(SECTOR_BYTES as usize) {
                assert!(sector.iter().all(|&b| b == sector[0]), "a sector is never torn");
            }
            match image.iter().filter(|&&b| b == 7).count() {
                4096 => kept += 1,
                0 => lost += 1,
                _ => torn += 1,
            }
        }
        assert!(kept > 20 && lost > 20 && torn > 20, "{kept} {lost} {torn}");
    }

    #[test]
    fn unsynced_writes_land_in_any_order() {
        let device = device_of(512);
        device.write_at(0, &[1; 512], Placement::Other).unwrap();
        device.write_at(0, &[2; 512], Placement::Other).unwrap();
        let survivors: std::collections::BTreeSet<u8> = SEEDS.map(|seed| device.power_cut(seed)[0]).collect();
        assert_eq!(survivors, [0, 1, 2].into());
        assert_eq!(device.image(), vec![2; 512]);
    }

    #[test]
    fn an_unsynced_length_may_be_lost_with_the_bytes_beyond_it() {
        let device = device_of(512);
        device.set_len_bytes(1024).unwrap();
        device.write_at(512, &[9; 512], Placement::Other).unwrap();
        let lens: std::collections::BTreeSet<usize> = SEEDS.map(|seed| device.power_cut(seed).len()).collect();
        assert_eq!(lens, [512, 1024].into());
    }

    #[test]
    fn a_cut_is_repeatable_and_leaves_the_device_alone() {
        let device = device_of(4096);
        device.write_at(100, &[3; 2000], Placement::Other).unwrap();
        let first = device.cut(5);
        assert_eq!(first.image(), device.power_cut(5));
        assert_eq!(first.unsynced_changes(), 0);
        assert_eq!(device.image()[100..2100], [3; 2000]);
        device.sync().unwrap();
        assert_ne!(first.image(), device.image());
    }

    #[test]
    fn limits_are_errors() {
        let device = MemoryDevice::limited(1000);
        assert!(device.set_len_bytes(1001).unwrap_err().is_full());
        device.set_len_bytes(1000).unwrap();
        assert!(device.read_at(999, &mut [0; 2]).is_err());
        assert!(device.read_at(u64::MAX, &mut [0; 2]).is_err());
        assert!(device.write_at(999, &[0; 2], Placement::Other).is_err());
        assert!(device.discard(999, 2).is_err());
        let aligned = MemoryDevice::named("aligned", 4096);
        assert!(aligned.write_at(0, &[0; 100], Placement::Other).is_err());
    }

    #[test]
    fn discarded_blocks_are_room_for_others_until_they_are_reserved_again() {
        let device = MemoryDevice::limited(8 * 4096);
        device.set_len_bytes(8 * 4096).unwrap();
        device.discard(0, 4 * 4096).unwrap();
        device.reserve(0, 4096).unwrap();
        device.fill_up();
        device.write_at(0, &[1; 4096], Placement::Other).unwrap();
        assert!(device.write_at(4096, &[1; 4096], Placement::Other).unwrap_err().is_full());
        assert!(device.reserve(4096, 4096).unwrap_err().is_full());
        device.others_leave();
        device.reserve(4096, 3 * 4096).unwrap();
        device.fill_up();
        device.write_at(4096, &[1; 3 * 4096], Placement::Other).unwrap();
    }

    #[test]
    fn growth_reads_as_zeros_also_after_a_cut_of_the_length() {
        let device = device_of(1024);
        device.write_at(0, &[5; 1024], Placement::Other).unwrap();
        device.set_len_bytes(100).unwrap();
        device.set_len_bytes(1024).unwrap();
        device.sync().unwrap();
        let image = device.cut(0).image();
        assert!(image[..100].iter().all(|&b| b == 5) && image[100..].iter().all(|&b| b == 0));
    }
}
