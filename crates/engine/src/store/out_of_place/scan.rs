//! Deriving the page map when the store is opened, from the contents of the device.
//!
//! Rules
//! 1. The copy of a page with the highest LSN wins, and of equal ones the copy written last: the cleaner copies a page
//!    unchanged, possibly while a newer copy is being written ([`super::newest_copies`]). Of the copies of page 0 with
//!    that LSN the one with the most changes without redo wins ([`page::header::unlogged_changes`]).
//! 2. A batch that some header or footer calls durable is believed. Of the others (those that were being written when
//!    the database stopped, and the last ones before) every image is read, and counts only if it is the one listed and
//!    its page verifies: what is torn was never acknowledged. Later headers will call its batch durable nevertheless.
//!    So before any is written, torn images are struck out of their segment's summary ([`ScannedStore::ends`]),
//!    durably.
//! 3. Except a torn image that the log proves durable: this is damage ([`super::torn`]). The page is then mapped to it,
//!    and its reader finds the damage ([`ScannedStore::check_complete`]).
//! 4. For a sealed segment the summary is read (the footer has its place), for other segments the headers. Batches
//!    follow each other without a gap, since each is begun after the previous one was written. The first block that is
//!    no header of the segment's life ends them.
//! 5. A header or a summary that is damaged must not make pages disappear. A damaged summary: the headers are read, and
//!    must lead to the batch that the footer calls the last. A damaged header of a segment that was not sealed: a
//!    durable batch beyond the end shows it, or a header or footer elsewhere that names a later batch of the segment (a
//!    tail), or the checkpoint of the redo log, which says what was durable then ([`ScannedStore::expect`]). If so,
//!    which pages are missing is not known, and the store is not opened. The numbers of a segment only grow, in its
//!    headers and footers, those of its next lives included: so a tail stays true for ever, unless the segment was cut
//!    off with all that it said ([`super::shrink`]): the slot names the newest batch of which that may be true.
//! 6. The footer of an emptied segment says so, durably, before the segment is used again or discarded. Old copies in
//!    segments whose footer does not say so yet do no harm: the newer ones are durable, or the page was forgotten, and
//!    no thread reads it before it is recreated.
//!    So headers of an older life than the footer's are remains, also where nothing else of the footer's life arrived.
//! 7. No sequence is assigned twice, or an older batch could be mistaken for a newer one: the newest is the highest
//!    that any header, footer or slot names, those of free segments included; some sequences after it are skipped,
//!    since a batch may follow a lost one.

use super::codec::{self, Unreadable};
use super::format::{
    self, BLOCK_BYTES, Footer, GroupTails, ImageEntry, Listed, SLOTS_AT, StoreSlot, Tail, VOID, header_bytes,
};
use super::image::{StoreGeometry, located};
use super::map::{Location, MAX_SEGMENTS, PageMap};
use super::newest_copies::NewestCopies;
use super::read::{Read, SegmentContents, read_blocks, read_segments};
use super::segments::SegmentSummary;
use super::torn::Torn;
use crate::error::{Error, Result};
use crate::page;
use crate::store::{StoreSegment, StoreSegments};
use crate::types::{Lsn, PageNo};
use highwater_storage::{AlignedBuf, Device};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

/// The result of the scan.
pub(crate) struct ScannedStore {
    pub map: PageMap,
    /// Segments that hold batches.
    pub remains: Vec<SegmentSummary>,
    /// The segments whose end is to be checked.
    open: Vec<OpenEnd>,
    /// Segments in the file, region 0 counted.
    pub segments: u32,
    /// Sequence of the newest batch.
    pub newest: u64,
    /// Every batch up to this sequence is durable.
    pub durable: u64,
    /// Sequences of batches after it that are there.
    after_durable: BTreeSet<u64>,
    /// Of batches up to this sequence the segment may be free, or used again, since.
    reused: u64,
    /// The newest slot.
    pub slot: StoreSlot,
    /// Bytes of headers, summaries and images read.
    pub read_bytes: u64,
    /// The copy with the newest change.
    newest_copy: Option<(Lsn, PageNo)>,
    /// By page and LSN.
    torn: Vec<Torn>,
    /// Every batch up to this sequence is durable, as the log says.
    mark: u64,
    damage: Option<String>,
}

/// A segment that was not sealed, or with batches that nothing calls durable.
pub(crate) struct OpenEnd {
    pub remains: SegmentSummary,
    /// The sequence up to which its last header calls batches durable, and the tails that the header names.
    pub durable: u64,
    pub tails: GroupTails,
    pub batches: Vec<Listed>,
    /// The highest sequence that the segment names.
    pub newest: u64,
    /// Whether its summary and footer say what was found.
    is_sealed: bool,
}

/// The images of a batch that nothing has called durable so far.
struct Parked {
    sequence: u64,
    images: Vec<(ImageEntry, Location)>,
}

struct StoreScan<'d> {
    device: &'d dyn Device,
    geometry: StoreGeometry,
    best: NewestCopies,
    slot: StoreSlot,
    /// Every batch up to this sequence is durable.
    durable: u64,
    parked: Vec<Parked>,
    read_bytes: u64,
    remains: Vec<SegmentSummary>,
    open: Vec<OpenEnd>,
    /// Segments of which a batch is missing that their footer names, and its sequence.
    cut: Vec<(u32, u64)>,
    /// The highest sequence named.
    newest: u64,
    /// As in [`ScannedStore`].
    reused: u64,
    /// The highest sequence that each segment names as its own.
    newest_of: Vec<u64>,
    /// By segment, the highest sequence that a tail has in it.
    tails: BTreeMap<u32, u64>,
}

/// Reads what is there, by this many threads.
///
/// # Errors
/// An I/O error.
pub(crate) fn scan(device: &dyn Device, geometry: StoreGeometry, readers: usize) -> Result<ScannedStore> {
    let len = device.len_bytes()?;
    let as_created = || StoreSlot { pages: (len / geometry.page_bytes as u64) as u32, ..StoreSlot::default() };
    let slot = newest_slot(device, geometry)?.unwrap_or_else(as_created);
    let segments = (len / geometry.segment_bytes).min(MAX_SEGMENTS.into()) as u32;
    let mut scan = StoreScan::new(device, geometry, slot, segments);
    read_segments(device, geometry, segments, readers, |some| scan.take(some))?;
    scan.remains.sort_unstable_by_key(|found| found.segment);
    scan.open.sort_unstable_by_key(|found| found.remains.segment);
    scan.cut.sort_unstable();
    let after_durable = scan.parked.iter().map(|batch| batch.sequence).collect();
    let torn = scan.resolve_parked()?;
    scan.resolve_first_page()?;
    let damage = scan.damaged_segment()?.map(|segment| damage_of(device, geometry, segment));
    let StoreScan { best, read_bytes, remains, open, newest, durable, reused, .. } = scan;
    let newest_copy = best.newest_copy();
    let map = best.into_map();
    Ok(ScannedStore {
        map,
        remains,
        open,
        segments,
        newest,
        durable,
        after_durable,
        reused,
        slot,
        read_bytes,
        newest_copy,
        torn,
        mark: 0,
        damage,
    })
}

/// The newest slot that is whole.
fn newest_slot(device: &dyn Device, geometry: StoreGeometry) -> Result<Option<StoreSlot>> {
    let mut block = AlignedBuf::zeroed(BLOCK_BYTES);
    let mut newest = None;
    for at in SLOTS_AT {
        if at + BLOCK_BYTES as u64 <= device.len_bytes()? {
            device.read_at(at, &mut block)?;
            newest = newest.max(format::parse_slot(&block, geometry.database_id));
        }
    }
    Ok(newest)
}

fn damage_of(device: &dyn Device, geometry: StoreGeometry, segment: u32) -> String {
    let (name, start) = (device.name(), geometry.start_of(segment));
    format!(
        "{name}: a batch header in segment {segment} (from byte {start}) is damaged, and which pages it lists is not \
         known; restore a backup of all files"
    )
}

impl StoreSlot {
    /// Whether the batch may have been in a segment that was cut off.
    fn may_be_cut(&self, batch: &Tail) -> bool {
        self.cut_from > 0 && batch.segment >= self.cut_from && batch.sequence <= self.cut_sequence
    }
}

impl<'d> StoreScan<'d> {
    /// Of a store in this many segments, region 0 counted; its pages are as they were created.
    fn new(device: &'d dyn Device, geometry: StoreGeometry, slot: StoreSlot, segments: u32) -> StoreScan<'d> {
        let mut scan = StoreScan {
            device,
            geometry,
            best: NewestCopies::new(slot.pages, segments),
            slot,
            durable: 0,
            parked: Vec::new(),
            read_bytes: 0,
            remains: Vec::new(),
            open: Vec::new(),
            cut: Vec::new(),
            newest: slot.cut_sequence,
            reused: slot.cut_sequence,
            newest_of: vec![0; segments as usize],
            tails: BTreeMap::new(),
        };
        for page in [PageNo(0), PageNo(1)] {
            scan.best.count(page, Lsn(0), geometry.as_created(page));
        }
        scan
    }

    /// Notes what some segments hold.
    fn take(&mut self, some: Vec<Read>) {
        self.read_bytes += some.iter().map(|read| read.read_bytes).sum::<u64>();
        for read in &some {
            // What a footer of its life before said is overwritten.
            let sealed = read.held.as_ref().filter(|held| held.footer.is_some());
            let life = sealed.map_or(0, |held| held.remains.life);
            self.newest = self.newest.max(read.newest);
            self.reused = self.reused.max(read.freed).max(life.saturating_sub(1));
            self.newest_of[read.segment as usize] = read.newest;
            for tail in read.tails.iter().filter(|tail| tail.segment > 0 && !self.slot.may_be_cut(tail)) {
                let sequence = self.tails.entry(tail.segment).or_default();
                *sequence = tail.sequence.max(*sequence);
            }
        }
        let (newest, held): (Vec<u64>, Vec<SegmentContents>) =
            some.into_iter().filter_map(|read| Some((read.newest, read.held?))).unzip();
        self.durable = held.iter().map(|held| held.durable).fold(self.durable, u64::max);
        held.iter().for_each(|held| self.best.note_segment(held.remains.segment, held.remains.newest));
        self.best.count_all(&held, self.durable);
        held.iter().zip(newest).for_each(|(held, newest)| self.note(held, newest));
    }

    /// Notes which parts of a segment are examined later; its durable images are counted already. `newest` is the
    /// highest sequence that it names.
    fn note(&mut self, held: &SegmentContents, newest: u64) {
        let SegmentContents { remains, durable, tails, footer, .. } = *held;
        let mut is_believed = true;
        for batch in format::batches(held.summary()).filter(|batch| batch.sequence > self.durable) {
            let images = located(remains.segment, batch.at, remains.life, batch.entries()).collect();
            self.parked.push(Parked { sequence: batch.sequence, images });
            is_believed = false;
        }
        let missing = footer.and_then(|footer| first_missing(&footer, &remains));
        self.cut.extend(missing.map(|sequence| (remains.segment, sequence)));
        // If a crash tore batches that the footer names, later headers will call them durable: the footer must not name
        // them then.
        let is_sealed = footer.is_some() && missing.is_none();
        if !is_sealed || !is_believed {
            let batches = format::batches(held.summary()).map(|batch| batch.listed()).collect();
            self.open.push(OpenEnd { remains, durable, tails, batches, newest, is_sealed });
        }
        self.remains.push(remains);
    }

    /// Rule 2; returns what was torn.
    fn resolve_parked(&mut self) -> Result<Vec<Torn>> {
        let mut torn = Vec::new();
        for Parked { sequence, images } in std::mem::take(&mut self.parked) {
            for (entry, location) in images {
                if sequence <= self.durable || self.verifies(&entry, location)? {
                    self.best.count(entry.page_no, entry.lsn, location);
                } else {
                    let ImageEntry { page_no, lsn, .. } = entry;
                    torn.push(Torn { page_no, lsn, sequence, location, counts: Lsn(0) });
                }
            }
        }
        for Torn { page_no, counts, .. } in &mut torn {
            *counts = self.best.lsn(*page_no);
        }
        torn.sort_unstable_by_key(|torn| (torn.page_no, torn.lsn));
        Ok(torn)
    }

    /// Rule 1, for page 0.
    fn resolve_first_page(&mut self) -> Result<()> {
        let mut page = AlignedBuf::zeroed(self.geometry.page_bytes);
        let mut newest: Option<(u64, Location)> = None;
        for location in self.best.first_page() {
            match self.geometry.read(self.device, PageNo(0), location, &mut page) {
                Ok(()) if page::header::verify(&page, PageNo(0)).is_ok() => {
                    let changes = page::header::unlogged_changes(&page);
                    newest = newest.filter(|(max, _)| *max > changes).or(Some((changes, location)));
                }
                Ok(()) | Err(Error::CorruptPage { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some((_, location)) = newest {
            self.best.set_first_page(location);
        }
        Ok(())
    }

    fn verifies(&mut self, entry: &ImageEntry, location: Location) -> Result<bool> {
        let mut page = AlignedBuf::zeroed(self.geometry.page_bytes);
        self.read_bytes += location.bytes as u64;
        if location.bytes > page.len() {
            return Ok(false);
        }
        let is_whole = self.geometry.look_at(self.device, location, |image| match format::sum_of(image) == entry.sum {
            true => codec::read_image(image, &mut page).map(|()| true),
            false => Ok(false),
        });
        let is_whole = match is_whole {
            Err(error) if error.is_failed_read() => false,
            Ok(Err(unreadable @ Unreadable::NeedsFeature(_))) => return Err(unreadable.of_page(entry.page_no)),
            is_whole => is_whole?.unwrap_or(false),
        };
        Ok(is_whole && page::header::verify(&page, entry.page_no).is_ok() && page::header::lsn(&page) == entry.lsn)
    }

    /// A segment of which a header is damaged that was durable (rule 5).
    fn damaged_segment(&mut self) -> Result<Option<u32>> {
        if let Some((segment, _)) = self.cut.iter().find(|(_, missing)| *missing <= self.durable) {
            return Ok(Some(*segment));
        }
        let newest_of = |segment: u32| self.newest_of.get(segment as usize).copied().unwrap_or(0);
        if let Some((segment, _)) = self.tails.iter().find(|(segment, newest)| newest_of(**segment) < **newest) {
            return Ok(Some(*segment));
        }
        for found in self.open.iter().filter(|found| !found.is_sealed) {
            let (max, step) = (self.geometry.segment_bytes - BLOCK_BYTES as u64, BLOCK_BYTES);
            let (mut first, mut durable) = (u64::MAX, self.durable);
            for at in (found.remains.bytes..max).step_by(step) {
                let block = match read_blocks(self.device, self.geometry.start_of(found.remains.segment) + at, step) {
                    // The first block after the batches was read, or the segment would not be here: one further on that
                    // is bad hides a durable batch only if that first one is damaged too.
                    Err(error) if error.is_failed_read() => continue,
                    block => block?,
                };
                self.read_bytes += step as u64;
                let header = format::parse_header(&block, self.geometry.identity(found.remains.segment), at as usize)
                    .map(|(header, _)| header);
                let SegmentSummary { life, newest, .. } = found.remains;
                if let Some(header) = header.filter(|header| header.life == life && header.sequence > newest) {
                    (first, durable) = (first.min(header.sequence), durable.max(header.durable));
                }
            }
            if first <= durable {
                return Ok(Some(found.remains.segment));
            }
        }
        Ok(None)
    }
}

/// The lowest sequence that is known of the batches that a footer names and that were not found.
fn first_missing(footer: &Footer, found: &SegmentSummary) -> Option<u64> {
    let named = [footer.life, footer.before, footer.newest];
    named.into_iter().find(|sequence| *sequence > found.newest)
}

impl OpenEnd {
    /// Strikes torn images out; returns whether there was one.
    fn strike_out(&mut self, torn: &HashSet<(u32, usize)>) -> bool {
        let mut any = false;
        for Listed { at, entries, .. } in &mut self.batches {
            let mut offset = *at + header_bytes(entries.len());
            for entry in entries {
                let is_torn = torn.contains(&(self.remains.segment, offset));
                offset += entry.bytes;
                if is_torn {
                    (entry.page_no, any) = (VOID, true);
                }
            }
        }
        any
    }
}

impl ScannedStore {
    /// Segments whose summary and footer are to be written before any batch is: those that have none, and those with
    /// images that a crash tore, which are struck out (rule 2). What [`check_complete`](Self::check_complete) calls
    /// damage stays.
    pub(crate) fn ends(&mut self) -> Vec<OpenEnd> {
        let torn = self.torn.iter().filter(|torn| self.map.get(torn.page_no) != Some(torn.location));
        let torn: HashSet<(u32, usize)> = torn.map(|torn| (torn.location.segment, torn.location.offset)).collect();
        let mut ends = std::mem::take(&mut self.open);
        ends.retain_mut(|end| end.strike_out(&torn) || !end.is_sealed);
        ends
    }

    /// The segments that hold batches.
    pub(crate) fn segments(&self, segment_bytes: u64) -> StoreSegments {
        let mut live = vec![(0, 0); self.segments as usize];
        self.map.each(|_, location| {
            if let Some((bytes, pages)) = live.get_mut(location.segment as usize) {
                (*bytes, *pages) = (*bytes + location.bytes as u64, *pages + 1);
            }
        });
        let look = |found: &SegmentSummary| StoreSegment {
            number: found.segment,
            written_bytes: found.bytes,
            live_bytes: live[found.segment as usize].0,
            live_pages: live[found.segment as usize].1,
            batches: found.batches,
            age: self.newest - found.newest,
            group: found.group,
        };
        let count = self.segments.saturating_sub(1);
        StoreSegments { segment_bytes, count, used: self.remains.iter().map(look).collect() }
    }

    /// Compares with what the log's newest checkpoint calls durable: every batch up to sequence `mark`.
    /// [`ScannedStore::check_complete`] says what is missing.
    pub(crate) fn expect(&mut self, name: &str, mark: u64) {
        let missing =
            (self.durable.max(self.reused) + 1..=mark).find(|sequence| !self.after_durable.contains(sequence));
        let damage = missing.map(|sequence| {
            format!(
                "{name}: batch {sequence} was durable and is not there: its header is damaged, and which pages it \
                 lists is not known; restore a backup of all files"
            )
        });
        self.damage = self.damage.take().or(damage);
        self.mark = mark;
    }

    /// Compares with the log, which reaches from its checkpoint to its end, and decides what torn images mean.
    ///
    /// # Errors
    /// [`Error::Corrupt`]: a damaged header, or a copy newer than the log's end.
    pub(crate) fn check_complete(&self, name: &str, log: Range<Lsn>) -> Result<()> {
        if let Some(damage) = &self.damage {
            return Err(Error::Corrupt(damage.clone()));
        }
        if let Some((lsn, page)) = self.newest_copy.filter(|(lsn, _)| *lsn > log.end) {
            return Err(Error::Corrupt(format!(
                "the redo log ends at LSN {}, but {name} has a copy of page {page} with changes up to LSN {lsn}: the \
                 log lost its end and with it committed changes, or it is an older version of itself; put back the \
                 redo log that belongs to it, or all three files of one backup",
                log.end
            )));
        }
        for torn in self.torn.iter().filter(|torn| torn.is_damage(self.mark, log.start)) {
            self.map.set(torn.page_no, Some(torn.location));
        }
        Ok(())
    }
}
