//! Cleaning: live images are copied out of segments, so that the segments can be reused. And growth of the file.
//!
//! Order of a step (each needs the previous one)
//! 1. Choose sealed segments without unpublished batches ([`super::victim`]), and hold them.
//! 2. Append their live images, byte for byte, to the present groups of their pages.
//! 3. Sync. Only then the map points at the copies; it is changed only for pages whose location is still the copied
//!    image.
//! 4. The segments are emptied: their footers say so, the next sync makes that durable, and then they are discarded and
//!    free ([`super::segments`], rule 3).
//!
//! Rules
//! 1. A batch that leaves few free segments first cleans enough of them; its own sync makes the copies durable too, so
//!    cleaning needs no separate syncs.
//! 2. A flush that finds no free segment outside the reserve runs a step itself, because no other thread cleans.
//! 3. One thread cleans at a time, until its copies are durable. A second victim is taken only if the free segments
//!    have space for all its images, so copies find space, also after a crash.

use super::OutOfPlace;
use super::appender::{AppendSource, Appended, PageImage};
use super::capacity::{self, reserve_segments};
use super::format::{self, BLOCK_BYTES, ImageEntry, Listed};
use super::image::located;
use super::map::{Location, MAX_SEGMENTS};
use super::read::read_blocks;
use super::segments::Victim;
use crate::error::{Error, Result};
use crate::sync::MutexGuard;
use crate::sync::atomic::Ordering::Relaxed;
use highwater_storage::{AlignedBuf, Placement, StorageError};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// Segments that the file grows by at least.
const MIN_GROWTH: u64 = 4;
/// Pause after the device refused space, before the next attempt.
const FULL_FOR: Duration = Duration::from_millis(500);
/// Maximum wait for segments that other threads are about to free.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Batches of copies for one sync: far fewer than the sequences that an opening leaves out ([`super::append`]).
const MAX_BATCHES: usize = 1024;
const PAUSE: Duration = Duration::from_millis(1);

impl OutOfPlace {
    /// Cleans at least one segment; returns whether there was one to clean.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a segment's headers are damaged, an I/O error. The caller stops the store.
    #[cfg(test)]
    pub(super) fn clean(&self) -> Result<bool> {
        self.clean_with(&mut self.cleaning.lock())
    }

    pub(super) fn clean_with(&self, buffer: &mut AlignedBuf) -> Result<bool> {
        let mut done = Appended::default();
        self.copy_victims(buffer, &mut done, 1)?;
        if done.victims.is_empty() {
            return Ok(false);
        }
        self.finish(&done)?;
        Ok(true)
    }

    /// Frees segments during a batch (rule 1): grows the file, or copies live images out of segments. These are free
    /// after the sync of `done`, until which the caller keeps the guard, and one more sync.
    pub(super) fn clean_concurrently(&self, done: &mut Appended) -> Result<Option<MutexGuard<'_, AlignedBuf>>> {
        // The thread that cleans now frees space for the batches of the others as well.
        let Some(mut buffer) = self.cleaning.try_lock().filter(|_| self.is_low(done)) else { return Ok(None) };
        while self.is_low(done) && self.grow_to_wanted()? {}
        self.copy_victims(&mut buffer, done, 0)?;
        Ok(Some(buffer))
    }

    /// Copies what is live out of `least` segments, and of others while few are free (rule 3).
    fn copy_victims(&self, buffer: &mut AlignedBuf, done: &mut Appended, least: usize) -> Result<()> {
        let is_wanted = |done: &Appended| done.victims.len() < least || self.is_low(done);
        let has_room = || self.segments.usage().free as usize > self.groups();
        let is_possible = |done: &Appended| done.victims.is_empty() || has_room() && done.batches() < MAX_BATCHES;
        while is_wanted(done) && is_possible(done) && self.copy_victim(buffer, done)? {}
        Ok(())
    }

    /// Whether so few segments are free, or will be when `done` is finished, that batches may have to wait.
    fn is_low(&self, done: &Appended) -> bool {
        let usage = self.segments.usage();
        let coming = usage.free as usize + usage.coming as usize + done.victims.len();
        let filled = usage.live_bytes.div_ceil(self.geometry.segment_room()) as u32;
        let slack = usage.segments.saturating_sub(filled);
        coming <= capacity::low_segments(self.groups(), slack, self.sizes())
    }

    /// Copies what is live out of a segment, or passes it over; returns whether there was one.
    fn copy_victim(&self, buffer: &mut AlignedBuf, done: &mut Appended) -> Result<bool> {
        let victim = self.segments.take_victim(self.appender.newest(), self.sizes());
        let Some(victim) = victim else { return Ok(false) };
        self.copy_live(victim, buffer, done)?;
        Ok(true)
    }

    /// Copies what is live out of a segment that was taken; passes it over if it cannot be read, and says false.
    pub(super) fn copy_live(&self, victim: Victim, buffer: &mut AlignedBuf, done: &mut Appended) -> Result<bool> {
        if buffer.is_empty() {
            *buffer = AlignedBuf::zeroed(self.geometry.segment_bytes as usize);
        }
        let Victim { segment, life } = victim;
        if self.data.device().read_at(self.geometry.start_of(segment), buffer).is_err() {
            self.segments.pass_over(victim);
            self.stats.store_segments_unreadable.inc();
            return Ok(false);
        }
        let groups = self.live_images(victim, &batches_in(buffer, self.geometry.identity(segment), life));
        for (group, images) in groups.iter().enumerate() {
            self.append(group, images, buffer, AppendSource::Cleaner, done)?;
        }
        self.stats.store_segments_cleaned.inc();
        done.victims.push(victim);
        Ok(true)
    }

    /// After a victim's copies are published.
    pub(super) fn check_emptied(&self, Victim { segment, life }: Victim) -> Result<()> {
        match self.segments.live_bytes(segment, life) {
            0 => Ok(()),
            left => Err(Error::Corrupt(format!(
                "{}: a batch header in segment {segment} (from byte {}) is damaged: {left} bytes of pages that it \
                 should list are not listed; the database stops before they are overwritten",
                self.data.device().name(),
                self.geometry.start_of(segment)
            ))),
        }
    }

    /// The images in a segment that the map points at, by the group that they belong to.
    fn live_images(&self, Victim { segment, life }: Victim, batches: &[Listed]) -> Vec<Vec<PageImage>> {
        let mut groups = vec![Vec::new(); self.groups()];
        let now = self.appended_bytes.load(Relaxed);
        for batch in batches {
            for (ImageEntry { page_no, lsn, .. }, location) in
                located(segment, batch.at, life, batch.entries.iter().copied())
            {
                if self.segments.map.get(page_no) == Some(location) {
                    let Location { offset: at, bytes, .. } = location;
                    let image = PageImage { page_no, lsn, at, bytes, from: Some(location) };
                    let group = self.group_of_survivor(page_no, now, groups.len());
                    groups[group].push(image);
                }
            }
        }
        groups
    }

    /// Grows the file if it should grow, otherwise frees emptied segments, otherwise cleans one; returns whether any of
    /// it succeeded.
    pub(super) fn gain_room(&self) -> Result<bool> {
        if self.grow_to_wanted()? || self.free_cleared()? {
            return Ok(true);
        }
        let mut buffer = self.cleaning.lock();
        // Another thread that cleaned meanwhile may have left enough.
        let has_free = self.segments.usage().free as usize > reserve_segments(self.groups());
        Ok(has_free || self.free_cleared()? || self.clean_with(&mut buffer)?)
    }

    /// Whether the cleaner's reserve lacks no segment, those counted that wait for a sync.
    pub(super) fn is_reserve_whole(&self) -> bool {
        let usage = self.segments.usage();
        (usage.free + usage.coming) as usize >= reserve_segments(self.groups())
    }

    /// Waits until a segment is free for copies that found none: other threads may free some, batches in flight may
    /// empty some when they are published; otherwise the file grows, beyond its normal size if necessary.
    pub(super) fn room_for_copies(&self) -> Result<()> {
        self.wait_until(|| {
            let gained = self.free_cleared()?;
            let usage = self.segments.usage();
            let larger = u64::from(usage.segments + capacity::FIRST_SEGMENT) + 1;
            Ok(gained || usage.free > 0 || !self.was_refused() && self.grow_if_possible(larger)?)
        })
    }

    /// Retries with pauses until there is space.
    fn wait_until(&self, has_room: impl Fn() -> Result<bool>) -> Result<()> {
        let since = Instant::now();
        loop {
            self.data.check()?;
            if has_room()? {
                return Ok(());
            }
            if since.elapsed() > TIMEOUT {
                return Err(self.no_room());
            }
            crate::sync::thread::sleep(PAUSE);
        }
    }

    /// Frees segments that only wait for a sync; returns whether there were any.
    pub(super) fn free_cleared(&self) -> Result<bool> {
        self.clear_emptied()?;
        let cleared = self.segments.take_cleared();
        if !cleared.is_empty() {
            self.stats.data_syncs.add(u64::from(self.data.sync()?));
            self.release(&cleared);
        }
        Ok(!cleared.is_empty())
    }

    /// Until a segment is free in addition to the reserve, as far as this thread can see.
    pub(super) fn wait_for_room(&self) -> Result<()> {
        let since = Instant::now();
        self.stats.store_clean_waits.inc();
        let gained = self.wait_until(|| self.gain_room());
        self.stats.store_clean_wait_us.add(since.elapsed().as_micros() as u64);
        gained
    }

    pub(super) fn no_room(&self) -> Error {
        let source = self.full("append", "no segment is free and none can be cleaned");
        Error::DiskFull { file: source.device.clone(), source }
    }

    fn full(&self, operation: &'static str, why: &str) -> StorageError {
        let source = std::io::Error::new(ErrorKind::StorageFull, why);
        StorageError { operation, device: self.data.device().name(), offset: 0, len: 0, source }
    }

    /// Rules 1 and 2 of [`capacity`], in place of segments that cannot be read too; a full disk is not an error here.
    fn grow_to_wanted(&self) -> Result<bool> {
        let usage = self.segments.usage();
        let have = u64::from(usage.segments + capacity::FIRST_SEGMENT);
        let wanted = capacity::wanted_segments(usage.live_bytes, self.fill_pct, self.sizes());
        let wanted = wanted.max(capacity::guaranteed_segments(self.segments.map.pages(), self.sizes()));
        let wanted = (wanted + u64::from(usage.unreadable)).min(MAX_SEGMENTS.into());
        if wanted <= have || self.was_refused() {
            return Ok(false);
        }
        self.grow_if_possible(wanted.min(have + (have / 16).max(MIN_GROWTH)))
    }

    /// Whether the device was found full a moment ago.
    fn was_refused(&self) -> bool {
        self.refused.lock().is_some_and(|at| at.elapsed() < FULL_FOR)
    }

    /// Gives the file this many segments; a full disk is not an error here.
    fn grow_if_possible(&self, segments: u64) -> Result<bool> {
        match self.grow_to(segments) {
            Ok(()) => Ok(true),
            Err(error) if error.is_full() => {
                *self.refused.lock() = Some(Instant::now());
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the file this many segments at least. Durable with the next sync, as is what is written there.
    pub(super) fn grow_to(&self, segments: u64) -> highwater_storage::Result<()> {
        let _one_at_a_time = self.growing.lock();
        let have = self.segments.usage().segments + capacity::FIRST_SEGMENT;
        if segments <= have.into() {
            return Ok(());
        }
        let possible = u32::try_from(segments).ok().filter(|segments| *segments <= MAX_SEGMENTS);
        let segments = possible.ok_or_else(|| self.full("grow", "a file cannot have that many segments"))?;
        let bytes = self.geometry.start_of(segments).max(self.data.device().len_bytes()?);
        self.data.device().set_len_bytes(bytes)?;
        self.segments.grow(segments);
        let now = self.segments.usage().segments + capacity::FIRST_SEGMENT;
        debug_assert!(now >= segments, "a store of {now} segments has grown to {segments}");
        Ok(())
    }

    /// Marks emptied segments as empty in their footers.
    ///
    /// # Errors
    /// An I/O error.
    pub(super) fn clear_emptied(&self) -> Result<()> {
        let emptied = self.segments.take_emptied();
        emptied.iter().try_for_each(|segment| self.clear(*segment))?;
        self.segments.note_cleared(&emptied);
        Ok(())
    }

    /// Writes the footer of an emptied segment. The end of its summary, before the footer, is unchanged: a torn write
    /// leaves either footer with the summary that belongs to it.
    fn clear(&self, segment: u32) -> Result<()> {
        let at = self.geometry.start_of(segment + 1) - BLOCK_BYTES as u64;
        let block = read_blocks(self.data.device(), at, BLOCK_BYTES);
        let mut block = block.unwrap_or_else(|_| AlignedBuf::zeroed(BLOCK_BYTES));
        let (newest, tails) = self.appender.newest_and_tails();
        let footer = format::free_footer(self.segments.life(segment), newest, tails);
        format::put_end(&mut block, self.geometry.identity(segment), &footer, &[]);
        Ok(self.data.device().write_at(at, &block, Placement::Other)?)
    }

    /// Discards segments whose cleared footers are durable, all but the footers, and makes them free.
    pub(super) fn release(&self, cleared: &[u32]) {
        let bytes = self.geometry.segment_bytes - BLOCK_BYTES as u64;
        for segment in cleared {
            if self.data.device().discard_keeps_room() {
                // Advice: a device that does not take it only copies more.
                let _ = self.data.device().discard(self.geometry.start_of(*segment), bytes);
                self.stats.store_discards.inc();
            }
            self.segments.release(*segment);
        }
    }
}

/// The batches of a segment's life, from the segment's bytes: as its summary lists them, or else as its headers do.
fn batches_in(bytes: &[u8], identity: u64, life: u64) -> Vec<Listed> {
    let footer = format::parse_footer(&bytes[bytes.len() - BLOCK_BYTES..], identity);
    let footer = footer.filter(|footer| !footer.is_free && footer.life == life);
    let end = footer.and_then(|footer| bytes.get(bytes.len().checked_sub(footer.end_bytes())?..));
    if let Some(summary) = footer.zip(end).and_then(|(footer, end)| footer.summary(end)) {
        return format::batches(summary).map(|batch| batch.listed()).collect();
    }
    let (mut batches, mut at) = (Vec::new(), 0);
    while let Some(block) = bytes.get(at..at + BLOCK_BYTES) {
        let header = format::parse_header(block, identity, at).filter(|(header, _)| header.life == life);
        let Some((header, entries)) = header else { break };
        batches.push(Listed { at, sequence: header.sequence, group: header.group, entries });
        at += header.bytes;
    }
    batches
}
