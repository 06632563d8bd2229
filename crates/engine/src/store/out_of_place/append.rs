//! Appending batches of images to open segments.
//!
//! Rules
//! 1. Each group has at most one open segment, and one batch at a time is written to it: so the batches in a segment
//!    have no gap after a power cut ([`super::scan`], rule 4). Without streams there is one group.
//! 2. Sequences are assigned under the group's mutex, so they grow within a segment.
//! 3. A header calls only synced batches durable: all batches below the lowest sequence that is not synced. It names
//!    the current tails, with which [`super::scan`] detects missing batches (rule 5 there).
//! 4. A flush does not use the cleaner's reserve; if nothing else is free, it first frees space. A segment that the
//!    cleaner has taken from the reserve still belongs to it: a flush appends nothing while the reserve lacks segments.
//!    A thread that waits for space holds no group's mutex, because the cleaner appends to the same groups.
//! 5. Appended images are not findable before [`OutOfPlace::finish`] has synced them.
//! 6. A failed write to an open segment stops the store before the group's mutex is released, because an opening would
//!    find no batch after the gap that it may have left.
//!
//! Lock order: the cleaner's mutex, a group's, then those of sequences and [`super::segments`].

use super::OutOfPlace;
use super::appender::{AppendGroup, AppendSource, Appended, OpenSegment, PageImage};
use super::capacity::reserve_segments;
use super::format::{self, BLOCK_BYTES, BatchHeader, ImageEntry, Listed, MAX_IMAGES, Tail, batch_bytes, header_bytes};
use super::image::located;
use super::lifetime::GROUPS;
use super::scan::OpenEnd;
use super::segments::{Move, SegmentSummary};
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering::Relaxed;
use highwater_storage::{AlignedBuf, Placement};
use std::time::{Duration, Instant};

/// Maximum time of a batch's attempts to get space: cleaning may free less than other batches take.
const TIMEOUT_IN_ALL: Duration = Duration::from_secs(60);

impl OutOfPlace {
    /// Appends images, whose bytes are in `source`, to a group.
    ///
    /// # Errors
    /// The disk is full, an I/O error.
    pub(super) fn append(
        &self,
        group: usize,
        images: &[PageImage],
        source: &[u8],
        by: AppendSource,
        done: &mut Appended,
    ) -> Result<()> {
        let (mut rest, mut waiting_since) = (images, None);
        while !rest.is_empty() {
            rest = self.append_while_room(group, rest, source, by, done)?;
            if rest.is_empty() {
                break;
            }
            if waiting_since.get_or_insert_with(Instant::now).elapsed() > TIMEOUT_IN_ALL {
                return Err(self.no_room());
            }
            if by == AppendSource::Cleaner { self.room_for_copies()? } else { self.wait_for_room()? }
        }
        Ok(())
    }

    /// Appends images while there is space for them (rule 4), and frees the others.
    pub(super) fn append_while_room<'i>(
        &self,
        group: usize,
        images: &'i [PageImage],
        source: &[u8],
        by: AppendSource,
        done: &mut Appended,
    ) -> Result<&'i [PageImage]> {
        let mut rest = images;
        let mut held = self.appender.groups[group].lock();
        while !rest.is_empty() && (by == AppendSource::Cleaner || self.is_reserve_whole()) {
            let AppendGroup { open, buffer } = &mut *held;
            let fit = open.as_ref().map_or(0, |open| open.fitting(rest, self.geometry.segment_bytes as usize));
            if let Some(open) = open.as_mut().filter(|_| fit > 0) {
                let bytes = self.append_batch(open, buffer, group, &rest[..fit], source, done)?;
                self.count_appended(by, bytes);
                rest = &rest[fit..];
                continue;
            }
            if let Some(full) = open.take() {
                self.seal(&full)?;
            }
            let keep = if by == AppendSource::Flush { reserve_segments(self.groups()) } else { 0 };
            let Some(segment) = self.segments.take(keep) else { break };
            *open = Some(OpenSegment::new(segment, placement(group, self.groups())));
        }
        Ok(rest)
    }

    fn append_batch(
        &self,
        open: &mut OpenSegment,
        buffer: &mut AlignedBuf,
        group: usize,
        images: &[PageImage],
        source: &[u8],
        done: &mut Appended,
    ) -> Result<u64> {
        self.data.check()?;
        let bytes = batch_bytes(images.len(), images.iter().map(|image| image.bytes).sum());
        let (sequence, durable, tails) = self.appender.sequences.lock().begin(group);
        debug_assert!(durable < sequence, "rule 3: batch {sequence} calls itself durable");
        debug_assert!(open.sequences[1] < sequence, "rule 2: batch {sequence} follows {:?}", open.sequences);
        debug_assert!((1..=MAX_IMAGES).contains(&images.len()), "a batch of {} images", images.len());
        debug_assert!(open.at.is_multiple_of(BLOCK_BYTES), "a batch begins at byte {}", open.at);
        if open.life == 0 {
            open.life = sequence;
        }
        (open.sequences, open.durable) = ([open.sequences[1], sequence], durable);
        self.segments.begin(open.segment, open.life, sequence, (open.at + bytes) as u64);
        let entries: Vec<ImageEntry> = images.iter().map(|image| image.entry(source)).collect();
        let header = BatchHeader { life: open.life, sequence, durable, bytes, group: group as u8, tails };
        if buffer.len() < bytes {
            *buffer = AlignedBuf::zeroed(bytes);
        }
        let batch = &mut buffer[..bytes];
        // A header is read as a whole block.
        let mut front = [0; BLOCK_BYTES];
        format::put_header(&mut front, self.geometry.identity(open.segment), open.at, &header, &entries);
        let read = format::parse_header(&front, self.geometry.identity(open.segment), open.at);
        let is_read = read.is_some_and(|(read, listed)| (read.sequence, listed.len()) == (sequence, entries.len()));
        debug_assert!(is_read, "a header is not read as it is written");
        let mut at = header_bytes(images.len());
        batch[..at].copy_from_slice(&front[..at]);
        for image in images {
            batch[at..at + image.bytes].copy_from_slice(&source[image.at..image.at + image.bytes]);
            at += image.bytes;
        }
        debug_assert!(bytes - at < BLOCK_BYTES, "a batch of {bytes} bytes has images up to {at}");
        batch[at..].fill(0);
        self.write_to(open, batch)?;
        let places = located(open.segment, open.at, open.life, entries.iter().copied());
        done.moves.extend(places.zip(images).map(|((entry, to), image)| Move {
            page_no: entry.page_no,
            to,
            from: image.from,
        }));
        done.tails.push((group, Tail { segment: open.segment, sequence }));
        let listed = Listed { at: open.at, sequence, group: group as u8, entries };
        format::add_to_summary(&mut open.summary, &listed);
        open.at += bytes;
        let end = open.at + format::end_bytes(open.summary.len());
        debug_assert!(end <= self.geometry.segment_bytes as usize, "segment {} has no room for its end", open.segment);
        Ok(bytes as u64)
    }

    /// Writes what follows in an open segment (rule 6).
    fn write_to(&self, open: &OpenSegment, bytes: &[u8]) -> Result<()> {
        let at = self.geometry.start_of(open.segment) + open.at as u64;
        let written = self.data.device().write_at(at, bytes, open.placement);
        written.map_err(Error::from).inspect_err(|error| self.data.stop(error))
    }

    fn count_appended(&self, by: AppendSource, bytes: u64) {
        let counter = match by {
            AppendSource::Flush => &self.stats.store_bytes_user,
            AppendSource::Cleaner => &self.stats.store_bytes_cleaned,
        };
        counter.add(bytes);
        self.appended_bytes.fetch_add(bytes, Relaxed);
    }

    /// Writes the rest of the segment, zeros and its end, and lets it be cleaned. So a group writes whole segments,
    /// which are in erase units in the same way each time. The end needs no sync of its own: without it the segment's
    /// headers are read.
    fn seal(&self, full: &OpenSegment) -> Result<()> {
        let mut rest = AlignedBuf::zeroed(self.geometry.segment_bytes as usize - full.at);
        self.put_footer(full, &mut rest);
        self.write_to(full, &rest)?;
        self.segments.seal(full.segment);
        Ok(())
    }

    /// Ends the group's open segment; the rest of it stays unused.
    pub(super) fn seal_short(&self, group: usize) -> Result<()> {
        let mut held = self.appender.groups[group].lock();
        let Some(open) = held.open.take_if(|open| open.life > 0) else { return Ok(()) };
        let mut end = AlignedBuf::zeroed(format::end_bytes(open.summary.len()));
        let at = self.geometry.segment_bytes - end.len() as u64;
        self.put_footer(&open, &mut end);
        let written = self.data.device().write_at(self.geometry.start_of(open.segment) + at, &end, open.placement);
        written.map_err(Error::from).inspect_err(|error| self.data.stop(error))?;
        self.segments.seal(open.segment);
        Ok(())
    }

    /// Writes the end of an open segment, of which `end` are the last bytes.
    fn put_footer(&self, full: &OpenSegment, end: &mut [u8]) {
        let tails = self.appender.sequences.lock().tails;
        let footer = format::footer_of(full.life, full.sequences, full.durable, tails, &full.summary);
        format::put_end(end, self.geometry.identity(full.segment), &footer, &full.summary);
        let read = format::parse_footer(end, self.geometry.identity(full.segment));
        let is_read =
            read.is_some_and(|read| !read.is_free && (read.life, read.newest) == (full.life, full.sequences[1]));
        debug_assert!(is_read, "a footer is not read as it is written");
    }

    /// Ends the group's open segment if it is after the first `least`.
    pub(super) fn seal_behind(&self, group: usize, least: u32) -> Result<()> {
        let mut held = self.appender.groups[group].lock();
        match held.open.take_if(|open| open.segment >= least && open.life > 0) {
            Some(open) => self.seal(&open),
            None => Ok(()),
        }
    }

    /// Writes the end of a segment when the store is opened.
    pub(super) fn put_end_of(&self, found: &OpenEnd) -> Result<()> {
        let mut summary = Vec::new();
        found.batches.iter().for_each(|batch| format::add_to_summary(&mut summary, batch));
        let (SegmentSummary { segment, life, .. }, newest) = (found.remains, found.newest);
        let before = found.batches.iter().rev().nth(1).map_or(0, |batch| batch.sequence);
        let mut end = AlignedBuf::zeroed(format::end_bytes(summary.len()));
        let at = self.geometry.segment_bytes - end.len() as u64;
        let footer = format::footer_of(life, [before, newest], found.durable, found.tails, &summary);
        format::put_end(&mut end, self.geometry.identity(segment), &footer, &summary);
        Ok(self.data.device().write_at(self.geometry.start_of(segment) + at, &end, Placement::Other)?)
    }

    /// Makes what was appended durable, then findable; frees emptied segments.
    ///
    /// # Errors
    /// The sync's; [`Error::Corrupt`](crate::Error::Corrupt) if headers of a victim are damaged.
    pub(super) fn finish(&self, done: &Appended) -> Result<()> {
        // The segments that were cleared before this sync began.
        let cleared = self.segments.take_cleared();
        self.stats.data_syncs.add(u64::from(self.data.sync()?));
        self.appender.sequences.lock().end(&done.tails);
        self.segments.publish(&done.moves, done.segments());
        self.release(&cleared);
        done.victims.iter().try_for_each(|victim| self.check_emptied(*victim))?;
        self.clear_emptied()
    }
}

/// The lifetime hint of a group's writes. If the device keeps fewer lifetimes apart, the shortest ones have streams of
/// their own.
fn placement(group: usize, groups: usize) -> Placement {
    let lifetime = if group == 0 { 0 } else { GROUPS - groups + group };
    Placement::LIFETIMES[lifetime]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_has_a_stream_if_the_device_has_so_many() {
        let streams = |groups| (0..groups).map(|group| placement(group, groups)).collect::<Vec<Placement>>();
        assert_eq!(streams(GROUPS), Placement::LIFETIMES);
        assert_eq!(streams(3), [Placement::Lifetime0, Placement::Lifetime4, Placement::Lifetime5]);
        assert_eq!(streams(1), [Placement::Lifetime0]);
    }
}
