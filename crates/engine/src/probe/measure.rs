//! The measurement: a few batches of writes with a sync after each.
//!
//! Rules
//! 1. Times are the shortest of several rounds, contiguous and scattered writes in turns: a busy machine or a throttled
//!    device only makes them longer, and an arm moves each time. A device that looks like a disk is measured in all
//!    [`ROUNDS`], however long they take; for others no round after [`MIN_ROUNDS`] begins later than [`ENOUGH`].
//! 2. Depths are timed only where no arm moves; they decide only how many writes are in flight, so after twice
//!    [`ENOUGH`] no new round of them begins but the first.
//! 3. Contents are pseudo-random: a device that compresses or deduplicates shows its true speed.

use super::{DEPTHS, Evidence, PROBE_PAGES, agree, choose};
use crate::config::FlushNeighbors;
use crate::error::Result;
use highwater_storage::{AlignedBuf, Device, Placement, Write};
use std::time::{Duration, Instant};

/// Rounds in any case.
const MIN_ROUNDS: usize = 3;
/// Rounds at most.
const ROUNDS: usize = 5;
/// Rounds of depths at most.
const DEPTH_ROUNDS: usize = 3;
/// No new optional round begins after this.
const ENOUGH: Duration = Duration::from_millis(60);
/// Bytes over which the places are spread, if the device has that many.
const SPAN_BYTES: u64 = 16 << 20;
/// Zeros written at once.
const ZEROS_BYTES: u64 = 1 << 20;

/// A scratch region: a whole device whose contents are not needed, put back to its length, in whole blocks, by
/// [`Region::end`].
pub(crate) struct Region<'d> {
    device: &'d dyn Device,
    /// Nothing before this byte is written.
    start: u64,
    len_before: u64,
    len: u64,
    /// Whether to sync although the flush method leaves syncs out: a change of length needs one.
    force_sync: bool,
}

impl<'d> Region<'d> {
    /// Uses `device`, extended if there is free space.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn begin(device: &'d dyn Device, force_sync: bool) -> Result<Region<'d>> {
        Region::begin_behind(0, device, force_sync)
    }

    /// As [`begin`](Region::begin), for a device whose first `start` bytes stay as they are; they become a part of it.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn begin_behind(start: u64, device: &'d dyn Device, force_sync: bool) -> Result<Region<'d>> {
        let unit = device.alignment_bytes() as u64;
        let len_before = device.len_bytes()? / unit * unit;
        let longer = len_before < SPAN_BYTES && device.set_len_bytes(SPAN_BYTES).is_ok();
        let len = if longer { SPAN_BYTES.max(len_before) } else { device.len_bytes()? };
        let region = Region { device, start, len_before, len, force_sync };
        // The file system's metadata of the growth shall not be measured.
        region.sync()?;
        Ok(region)
    }

    /// Shortens the device to its former length, and leaves zeros in the rest. Its blocks stay allocated: other files
    /// could take freed blocks before they are reserved again.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn end(self) -> Result<()> {
        let zeros = AlignedBuf::zeroed(ZEROS_BYTES as usize);
        let mut at = self.start;
        while at < self.len_before {
            let len = ZEROS_BYTES.min(self.len_before - at);
            self.device.write_at(at, &zeros[..len as usize], Placement::Doublewrite)?;
            at += len;
        }
        if self.len != self.len_before {
            self.device.set_len_bytes(self.len_before)?;
        }
        Ok(self.device.sync()?)
    }

    /// Whether it is long enough for a measurement.
    pub(crate) fn is_whole(&self) -> bool {
        self.len >= SPAN_BYTES
    }

    fn sync(&self) -> Result<()> {
        if self.force_sync {
            self.device.set_len_bytes(self.len)?;
        }
        Ok(self.device.sync()?)
    }

    /// Position of page `i` of `pages`: spread over the region, consecutive pages far apart.
    fn place(&self, i: u32, page_bytes: usize) -> u64 {
        let first = self.start.div_ceil(page_bytes as u64);
        let slots = (self.len / page_bytes as u64).saturating_sub(first);
        let stride = slots / u64::from(PROBE_PAGES);
        // 13 is coprime to 32: consecutive writes are far apart.
        let slot = u64::from(i * 13 % PROBE_PAGES) * stride.max(1);
        let place = (first + slot.min(slots.saturating_sub(1))) * page_bytes as u64;
        let is_inside = self.start <= place && place + page_bytes as u64 <= self.len;
        debug_assert!(is_inside || slots == 0, "rule 1: {place} is outside of the space that the store lends");
        place
    }

    fn timed(&self, write: impl FnOnce() -> highwater_storage::Result<()>) -> Result<u32> {
        let start = Instant::now();
        write()?;
        self.sync()?;
        Ok(u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX).max(1))
    }

    fn side_by_side(&self, bytes: &[u8]) -> Result<u32> {
        let offset = self.len / 2 / bytes.len() as u64 * bytes.len() as u64;
        let offset = if offset + bytes.len() as u64 <= self.len { offset } else { 0 };
        self.timed(|| self.device.write_at(offset, bytes, Placement::Doublewrite))
    }

    fn apart(&self, bytes: &[u8], page_bytes: usize, depth: u32) -> Result<u32> {
        let write = |(i, data): (usize, _)| Write {
            offset: self.place(i as u32, page_bytes),
            data,
            placement: Placement::Doublewrite,
        };
        let writes: Vec<Write<'_>> = bytes.chunks(page_bytes).enumerate().map(write).collect();
        self.timed(|| writes.chunks(depth as usize).try_for_each(|part| self.device.write_batch(part)))
    }
}

/// Measures writes of pages in `region`.
///
/// # Errors
/// An I/O error.
pub(crate) fn measure(region: &Region<'_>, page_bytes: usize) -> Result<Evidence> {
    let bytes = noise(PROBE_PAGES as usize * page_bytes);
    let mut found = Evidence { pages: PROBE_PAGES, page_bytes: page_bytes as u32, ..Evidence::default() };
    let start = Instant::now();
    let mut rounds = Vec::with_capacity(ROUNDS);
    while rounds.len() < MIN_ROUNDS || (rounds.len() < ROUNDS && (start.elapsed() < ENOUGH || shows_arm(&found))) {
        rounds.push([
            region.side_by_side(&bytes)?,
            region.apart(&bytes, page_bytes, PROBE_PAGES)?,
            region.side_by_side(&bytes[..page_bytes])?,
        ]);
        [found.contiguous_us, found.scattered_us, found.sync_us] = shortest(&rounds);
    }
    found.is_steady = (0..2).all(|column| two_shortest_agree(rounds.iter().map(|round| round[column])));
    if !shows_arm(&found) {
        let mut rounds = Vec::with_capacity(DEPTH_ROUNDS);
        while rounds.is_empty() || (rounds.len() < DEPTH_ROUNDS && start.elapsed() < 2 * ENOUGH) {
            let [first, second, third] = DEPTHS.map(|depth| region.apart(&bytes, page_bytes, depth));
            rounds.push([first?, second?, third?]);
        }
        found.at_depth_us = shortest(&rounds);
    }
    Ok(found)
}

fn shows_arm(found: &Evidence) -> bool {
    choose(found).flush_neighbors != FlushNeighbors::Off
}

/// The least of each column; there is at least one round.
fn shortest(rounds: &[[u32; 3]]) -> [u32; 3] {
    rounds.iter().fold([u32::MAX; 3], |least, round| std::array::from_fn(|column| least[column].min(round[column])))
}

fn two_shortest_agree(times: impl Iterator<Item = u32>) -> bool {
    let [mut first, mut second] = [u32::MAX; 2];
    times.for_each(|time| (first, second) = (first.min(time), second.min(first.max(time))));
    agree(first, second)
}

fn noise(len: usize) -> AlignedBuf {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = AlignedBuf::zeroed(len);
    for word in bytes.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    bytes
}
