//! Cleaning: copying what is live out of a segment, so that it can be used again; and room by growth.
//!
//! Order of a step (each needs the one before)
//! 1. Choose a sealed segment without unpublished batches ([`super::victim`]).
//! 2. Append its live images, byte for byte, to the groups that their pages belong to by now.
//! 3. Sync. Only then the map points at the copies, at each of them only if it still points at the image copied.
//! 4. The segment is emptied: its footer says so, the next sync makes that durable, and then it is discarded and free
//!    ([`super::segments`], rule 3).
//!
//! A flush that finds no free segment beside the reserve runs steps itself: there is no other thread to wait for. Each
//! batch that left few free segments runs one step, so that few batches must wait.

use super::append::{Appended, By, Image};
use super::capacity::{self, reserve_segments};
use super::format::{self, BLOCK_BYTES, Entry, Listed};
use super::map::{Location, MAX_SEGMENTS};
use super::scan::located;
use super::{OutOfPlace, victim};
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering::Relaxed;
use highwater_storage::{AlignedBuf, StorageError};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// Segments that the file grows by at least.
const LEAST_GROWTH: u32 = 4;
/// How long the device is not asked for room again after it refused.
const FULL_FOR: Duration = Duration::from_millis(500);
/// How long a flush waits for segments that other flushes are about to give back.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(1);

impl OutOfPlace {
    /// Cleans a segment; says whether there was one to clean.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the segment's headers are damaged, an I/O error. The caller stops the store.
    pub(super) fn clean_one(&self) -> Result<bool> {
        let mut buffer = self.cleaning.lock();
        let candidates = self.segments.candidates(self.appender.newest());
        let Some(chosen) = victim::choose(candidates.into_iter(), self.geometry.segment_room()) else {
            return Ok(false);
        };
        // Others may empty the segment and use it again meanwhile. Then the map points at nothing of this life.
        let (victim, life) = (chosen.segment, chosen.life);
        if buffer.is_empty() {
            *buffer = AlignedBuf::zeroed(self.geometry.segment_bytes as usize);
        }
        self.data.device().read_at(self.geometry.start_of(victim), &mut buffer)?;
        let groups = self.live_images(victim, life, &batches_in(&buffer, self.geometry.identity(victim), life));
        let mut done = Appended::default();
        for (group, images) in groups.iter().enumerate() {
            self.append(group, images, &buffer, By::Cleaner, &mut done)?;
        }
        self.stats.segments_cleaned.inc();
        self.finish(&done)?;
        let left = self.segments.live_bytes(victim, life);
        if left > 0 {
            let reason = format!(
                "{}: a batch header in segment {victim} (from byte {}) is damaged: {left} bytes of pages that it \
                 should list are not listed; the database stops before they are overwritten",
                self.data.device().name(),
                self.geometry.start_of(victim)
            );
            return Err(Error::Corrupt(reason));
        }
        Ok(true)
    }

    /// The images in a segment that the map points at, by the group that they belong to.
    fn live_images(&self, segment: u32, life: u64, batches: &[Listed]) -> Vec<Vec<Image>> {
        let mut groups = vec![Vec::new(); self.groups()];
        let now = self.appended_bytes.load(Relaxed);
        for batch in batches {
            for (Entry { page_no, lsn, .. }, location) in
                located(segment, batch.at, life, batch.entries.iter().copied())
            {
                if self.segments.map.get(page_no) == Some(location) {
                    let Location { offset: at, bytes, .. } = location;
                    let image = Image { page_no, lsn, at, bytes, from: Some(location) };
                    let group = self.group_of_survivor(page_no, now, groups.len());
                    groups[group].push(image);
                }
            }
        }
        groups
    }

    /// Makes the file larger if it should be, else frees what is cleared, else cleans a segment; says whether any of it
    /// helped.
    pub(super) fn gain_room(&self) -> Result<bool> {
        Ok(self.grow_to_wanted()? || self.free_cleared()? || self.clean_one()?)
    }

    /// Frees segments that only wait for a sync; says whether there were any.
    fn free_cleared(&self) -> Result<bool> {
        let cleared = self.segments.take_cleared();
        if !cleared.is_empty() {
            self.stats.data_syncs.add(u64::from(self.data.sync()?));
            self.release(&cleared);
        }
        Ok(!cleared.is_empty())
    }

    /// After a batch: keeps some segments free beside the reserve.
    pub(super) fn keep_ahead(&self) -> Result<()> {
        let groups = self.groups();
        let usage = self.segments.usage();
        self.note_usage();
        if usage.free as usize <= reserve_segments(groups) + groups { self.gain_room().map(drop) } else { Ok(()) }
    }

    /// Until a segment is free beside the reserve, as far as this thread can see.
    pub(super) fn wait_for_room(&self) -> Result<()> {
        let since = Instant::now();
        self.stats.clean_waits.inc();
        let gained = loop {
            if self.gain_room()? {
                break Ok(());
            }
            if since.elapsed() > PATIENCE {
                break Err(self.no_room());
            }
            crate::sync::thread::sleep(PAUSE);
        };
        self.stats.clean_wait_us.add(since.elapsed().as_micros() as u64);
        gained
    }

    pub(super) fn no_room(&self) -> Error {
        let (file, operation) = (self.data.device().name(), "append");
        let source = std::io::Error::new(ErrorKind::StorageFull, "no segment is free and none can be cleaned");
        let source = StorageError { operation, device: file.clone(), offset: 0, len: 0, source };
        Error::DiskFull { file, source }
    }

    /// Rules 1 and 2 of [`capacity`]; a full disk is no error here.
    fn grow_to_wanted(&self) -> Result<bool> {
        let usage = self.segments.usage();
        let have = usage.segments + capacity::FIRST_SEGMENT;
        let wanted = capacity::wanted_segments(usage.live_bytes, self.fill_pct, self.sizes());
        let wanted = wanted.max(capacity::guaranteed_segments(self.segments.map.pages(), self.sizes()));
        let refused = *self.refused.lock();
        if wanted <= have || refused.is_some_and(|at| at.elapsed() < FULL_FOR) {
            return Ok(false);
        }
        match self.grow_to(wanted.min(have + (have / 16).max(LEAST_GROWTH))) {
            Ok(()) => Ok(true),
            Err(error) if error.is_full() => {
                *self.refused.lock() = Some(Instant::now());
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the file so many segments at least. Durable with the next sync, as is what is written there.
    pub(super) fn grow_to(&self, segments: u32) -> highwater_storage::Result<()> {
        let _one_at_a_time = self.growing.lock();
        let have = self.segments.usage().segments + capacity::FIRST_SEGMENT;
        if segments > have {
            let limit = segments.min(MAX_SEGMENTS);
            let bytes = self.geometry.start_of(limit).max(self.data.device().len_bytes()?);
            self.data.device().set_len_bytes(bytes)?;
            self.segments.grow(limit);
        }
        Ok(())
    }

    /// Makes the footers of emptied segments say so.
    ///
    /// # Errors
    /// An I/O error.
    pub(super) fn clear_emptied(&self) -> Result<()> {
        let emptied = self.segments.take_emptied();
        emptied.iter().try_for_each(|segment| self.clear(*segment))?;
        self.segments.note_cleared(&emptied);
        Ok(())
    }

    /// Discards segments whose cleared footers are durable, all but the footers, and makes them free.
    pub(super) fn release(&self, cleared: &[u32]) {
        let bytes = self.geometry.segment_bytes - BLOCK_BYTES as u64;
        for segment in cleared.iter().filter(|_| self.data.device().discard_keeps_room()) {
            // Advice: a device that does not take it only copies more.
            let _ = self.data.device().discard(self.geometry.start_of(*segment), bytes);
            self.stats.store_discards.inc();
        }
        self.segments.release(cleared);
    }
}

/// The batches of a life in a segment, of which these are the bytes: as its summary lists them, or as its headers do.
fn batches_in(bytes: &[u8], identity: u64, life: u64) -> Vec<Listed> {
    let footer = format::parse_footer(&bytes[bytes.len() - BLOCK_BYTES..], identity);
    let footer = footer.filter(|footer| !footer.is_free && footer.life == life);
    let end = footer.and_then(|footer| bytes.get(bytes.len().checked_sub(footer.end_bytes())?..));
    if let Some(summary) = footer.zip(end).and_then(|(footer, end)| footer.summary(end)) {
        return format::batches(summary).map(|batch| batch.listed()).collect();
    }
    let (mut batches, mut at) = (Vec::new(), 0);
    while let Some(block) = bytes.get(at..at + BLOCK_BYTES) {
        let header = format::parse_header(block, identity).filter(|(header, _)| header.life == life);
        let Some((header, entries)) = header else { break };
        batches.push(Listed { at, sequence: header.sequence, group: header.group, entries });
        at += header.bytes;
    }
    batches
}
