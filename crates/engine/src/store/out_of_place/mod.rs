//! The store out of place: no byte of a page is overwritten. Pages are appended to segments, optionally compressed, and
//! a map in memory has the place of the newest copy of each. A torn write damages no valid image, so nothing is written
//! twice.
//!
//! Terms
//! - *segment*: a part of the file that is written from front to back and reused as a whole. An image is *live* if the
//!   map points at it.
//! - *image*: a page as it is stored. *Batch*: a header and the images of several pages, one write.
//! - *cleaning*: copying the live images out of a segment, so that it can be used again.
//! - *group*: pages with similar lifetimes; each group has its own segments.
//!
//! Rules (crash order)
//! 1. A batch is durable before the map points at its images; only then are the older images dead.
//! 2. A segment is used again, or discarded, only when the map points at none of its images: so the newer copies of all
//!    pages in it are durable.
//! 3. The map is not written: at the next opening it is derived from the headers of the batches ([`scan`]).
//! 4. The place of an image does not identify its page: the page's own number, LSN and checksum do, and the cleaner
//!    copies images unchanged.
//! 5. Page 0 and page 1 as they were created stay at the start of the file, so identification and creation of the file
//!    are the same as in place. They are valid until a newer copy is written.
//! 6. A page that has no image reads as zeros.
//! 7. The number of pages is in two slots that are written alternately, durable before a page beyond the old end is
//!    written.
//! 8. A batch that fails stops the store.
//!
//! | file | what |
//! |---|---|
//! | `format`, `image`, `codec`, `zeros` | the format on the device; the images, compressed or not |
//! | `map`, `segments` | the location of each page; the live part of each segment |
//! | `appender`, `append`, `clean`, `shrink` | writing batches; getting segments back; making the file shorter |
//! | `capacity`, `lifetime`, `victim` | pure functions: how large, which group, which segment |
//! | `scan`, `read`, `newest_copies`, `torn` | deriving the map |
//! | `slot` | the number of pages, on the device |
//! | `read_many` | reading many pages at once |
//! | `rest` | the space that a closed small store releases |
//! | `creation` | creating a store on a block device |
//! | `synthetic` | a large store without its pages, to time that |
//!
//! Sources: Rosenblum and Ousterhout, "The design and implementation of a log-structured file system" (1992), for
//! segments and cost-benefit; "out-of-place" LeanStore (VLDB 2025) for compression in an out-of-place store.

mod append;
mod appender;
mod capacity;
mod clean;
pub(crate) mod codec;
mod creation;
pub(crate) mod format;
mod image;
mod lifetime;
mod map;
mod newest_copies;
#[cfg(test)]
mod out_of_place_test;
mod read;
mod read_many;
mod rest;
mod scan;
mod segments;
mod shrink;
mod slot;
mod synthetic;
mod torn;
mod victim;
mod zeros;

pub(crate) use codec::packing_us;
pub(super) use creation::{create_on_device, is_uncreated_device};
pub(super) use image::StoreGeometry;
pub(super) use map::MAX_SEGMENT_BYTES;
pub(crate) use read::READERS;
pub(super) use scan::{ScannedStore, scan};
pub use synthetic::SyntheticStore;

use super::shared_sync::SharedSync;
use super::{
    FlushLane, PageBatch, PageLocation, PageRead, PageReadCallback, PageSource, PageStore, Settings, StoreSegments,
};
use crate::config::PageCompression;
use crate::error::{Error, Result};
use crate::stats::Stats;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::sync::{Mutex, RwLock};
use crate::types::PageNo;
use appender::{AppendSource, Appended, Appender, PageImage};
use capacity::Sizes;
use format::StoreSlot;
use highwater_storage::{AlignedBuf, Device, StorageError};
use lifetime::WriteHistory;
use map::MAX_SEGMENTS;
use segments::Segments;
use std::borrow::Borrow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// An open store.
pub(crate) struct OutOfPlace {
    geometry: StoreGeometry,
    data: SharedSync,
    segments: Segments,
    appender: Appender,
    compression: PageCompression,
    /// Number of separate lifetimes: that of the device, or less if there is no space for this many open segments.
    lifetime_streams: usize,
    /// Fill of the segments, in percent, at which the file grows.
    fill_pct: u64,
    /// The clock of [`lifetime`].
    appended_bytes: AtomicU64,
    /// Per page, what is remembered of its writes.
    histories: RwLock<Vec<AtomicU32>>,
    /// Memory for the images of a batch.
    spare_images: Mutex<Vec<Vec<u8>>>,
    /// One thread cleans at a time; the buffer a segment is read into.
    cleaning: Mutex<AlignedBuf>,
    growing: Mutex<()>,
    /// Time of the device's last refusal of growth.
    refused: Mutex<Option<Instant>>,
    /// The newest one on the device.
    slot: Mutex<StoreSlot>,
    stats: Arc<Stats>,
}

impl OutOfPlace {
    /// Opens the store that was scanned and resolved.
    ///
    /// # Errors
    /// The disk has no space for its pages, an I/O error.
    pub(crate) fn open(
        data: Arc<dyn Device>,
        geometry: StoreGeometry,
        mut scanned: ScannedStore,
        settings: &Settings,
        stats: Arc<Stats>,
    ) -> Result<OutOfPlace> {
        let ends = scanned.ends();
        let ScannedStore { map, remains, segments: count, newest, durable, slot, read_bytes, .. } = scanned;
        // Without a slot on the device the next sync writes one.
        let slot = if slot.sequence > 0 { slot } else { StoreSlot::default() };
        stats.store_open_scan_bytes.set(read_bytes);
        let count = count.max(capacity::FIRST_SEGMENT);
        let lifetime_streams = data.lifetime_streams();
        let mut store = OutOfPlace {
            geometry,
            lifetime_streams,
            data: SharedSync::new(data),
            segments: Segments::new(count, map, &remains),
            appender: Appender::new(newest, durable),
            compression: settings.compression,
            fill_pct: settings.segment_fill_pct,
            appended_bytes: AtomicU64::new(0),
            histories: RwLock::default(),
            spare_images: Mutex::default(),
            cleaning: Mutex::default(),
            growing: Mutex::default(),
            refused: Mutex::default(),
            slot: Mutex::new(slot),
            stats,
        };
        if !settings.is_read_only {
            // A database that was killed may have left copies that are not durable yet.
            store.data.sync()?;
            store.wake().map_err(Error::of_room)?;
            ends.iter().try_for_each(|found| store.put_end_of(found))?;
            store.sync()?;
            // A file that an older version filled has no space for batches on their way.
            match store.reserve_all(capacity::guaranteed_segments) {
                Err(error) if error.is_full() => store.reserve_all(capacity::min_segments)?,
                reserved => reserved?,
            }
        }
        store.clear_emptied()?;
        store.note_usage();
        Ok(store)
    }

    /// Grows the file to the segments that all its pages need, as far as possible: an older version had a larger limit.
    /// A full file may come from a device with fewer streams: then only as many streams are used as there is space for.
    fn reserve_all(&mut self, needed: fn(u32, Sizes) -> u64) -> highwater_storage::Result<()> {
        let (pages, max) = (self.segments.map.pages(), self.device().lifetime_streams());
        let mut reserved = Ok(());
        for streams in (1..=max).rev() {
            self.lifetime_streams = streams;
            reserved = self.grow_to(needed(pages, self.sizes()).min(MAX_SEGMENTS.into()));
            if !reserved.as_ref().is_err_and(StorageError::is_full) {
                break;
            }
        }
        reserved
    }

    fn device(&self) -> &dyn Device {
        self.data.device()
    }

    fn sizes(&self) -> Sizes {
        self.geometry.sizes(self.lifetime_streams)
    }

    /// Groups that are in use at this size.
    fn groups(&self) -> usize {
        capacity::groups(self.segments.usage().segments, self.lifetime_streams)
    }

    fn capacity_bytes(&self) -> u64 {
        u64::from(self.segments.usage().segments) * self.geometry.segment_bytes
    }

    fn write_batch(&self, batch: &PageBatch) -> Result<()> {
        let mut images = self.spare_images.lock().pop().unwrap_or_default();
        images.clear();
        let groups = self.images(batch, &mut images);
        let mut done = Appended::default();
        for (group, listed) in groups.iter().enumerate() {
            self.append(group, listed, &images, AppendSource::Flush, &mut done)?;
        }
        self.spare_images.lock().push(images);
        // Held until the copies are durable: another cleaner finds what this one frees.
        let _cleaning = self.clean_concurrently(&mut done)?;
        self.finish(&done)?;
        self.note_usage();
        Ok(())
    }

    /// Puts the images of a batch into `images`, and lists them by group.
    fn images(&self, batch: &PageBatch, images: &mut Vec<u8>) -> Vec<Vec<PageImage>> {
        let (since, now, capacity) = (Instant::now(), self.appended_bytes.load(Relaxed), self.capacity_bytes());
        let mut groups = vec![Vec::new(); self.groups()];
        for (n, entry) in batch.entries().iter().enumerate() {
            let page = batch.copies(n..n + 1);
            let at = images.len();
            let bytes = codec::put_image(images, page, self.compression);
            let history = self.remember(entry.page_no, |history| history.written(now));
            let group = history.group(capacity, groups.len());
            groups[group].push(PageImage { page_no: entry.page_no, lsn: entry.lsn, at, bytes, from: None });
            self.stats.count_pages_written(entry.placement, 1);
        }
        if self.compression != PageCompression::Off {
            self.stats.store_compressed_bytes_in.add((batch.entries().len() * self.geometry.page_bytes) as u64);
            self.stats.store_compressed_bytes_out.add(images.len() as u64);
            self.stats.store_compress_us.add(since.elapsed().as_micros() as u64);
        }
        groups
    }

    fn group_of_survivor(&self, page: PageNo, now: u64, groups: usize) -> usize {
        self.remember(page, |history| history.survived(now)).group(self.capacity_bytes(), groups)
    }

    /// Changes what is remembered of a page.
    fn remember(&self, page: PageNo, change: impl Fn(WriteHistory) -> WriteHistory) -> WriteHistory {
        let at = page.0 as usize;
        if self.histories.read().len() <= at {
            let pages = (self.segments.map.pages() as usize).max(at + 1);
            let mut histories = self.histories.write();
            // Another thread may have made it longer for a later page.
            if histories.len() < pages {
                histories.resize_with(pages, AtomicU32::default);
            }
        }
        let histories = self.histories.read();
        let history = change(WriteHistory(histories[at].load(Relaxed)));
        histories[at].store(history.0, Relaxed);
        history
    }

    fn note_usage(&self) {
        let usage = self.segments.usage();
        self.stats.store_segments.set(u64::from(usage.segments));
        self.stats.store_segments_free.set(u64::from(usage.free));
        self.stats.store_live_bytes.set(usage.live_bytes);
    }
}

/// Reads pages where the map says that they are.
fn read_pages(
    geometry: StoreGeometry,
    device: &dyn Device,
    map: &map::PageMap,
    first: PageNo,
    buf: &mut [u8],
    mut again: impl FnMut(),
) -> Result<()> {
    for (n, page_bytes) in buf.chunks_mut(geometry.page_bytes).enumerate() {
        let page = PageNo(first.0 + n as u32);
        if page.0 >= map.pages() {
            return Err(Error::corrupt_page(page, "it is beyond the end of the store"));
        }
        loop {
            let Some(location) = map.get(page) else {
                page_bytes.fill(0);
                break;
            };
            let read = geometry.read(device, page, location, page_bytes);
            // Whatever was read: it may not be the page's if the page was moved meanwhile.
            if map.get(page) == Some(location) {
                read?;
                break;
            }
            again();
        }
    }
    Ok(())
}

impl PageSource for OutOfPlace {
    fn name(&self) -> String {
        self.device().name()
    }

    fn page_bytes(&self) -> usize {
        self.geometry.page_bytes
    }

    fn len_bytes(&self) -> Result<u64> {
        Ok(u64::from(self.segments.map.pages()) * self.geometry.page_bytes as u64)
    }

    fn read(&self, first: PageNo, buf: &mut [u8]) -> Result<()> {
        read_pages(self.geometry, self.device(), &self.segments.map, first, buf, || self.stats.store_read_retries.inc())
    }

    fn place(&self, page: PageNo) -> Result<Option<PageLocation>> {
        Ok(self.segments.map.get(page).map(|location| self.geometry.place(location)))
    }
}

impl PageStore for OutOfPlace {
    fn write(&self, batch: &mut PageBatch, lane: FlushLane) -> Result<()> {
        assert!(lane != FlushLane::SinglePage || batch.entries().len() == 1, "one page at a time");
        self.data.check()?;
        self.write_batch(batch).inspect_err(|error| self.data.stop(error))
    }

    /// Discarded pages need no reservation: the file keeps the segments for them.
    fn reserve(&self, pages: Range<u32>) -> highwater_storage::Result<()> {
        if pages.end > self.segments.map.pages() {
            self.grow_to(capacity::guaranteed_segments(pages.end, self.sizes()))?;
            self.segments.map.grow(pages.end);
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.put_slot().inspect_err(|error| self.data.stop(error))?;
        self.stats.data_syncs.add(u64::from(self.data.sync()?));
        Ok(())
    }

    fn discard(&self, pages: Range<u32>) {
        self.segments.discard(pages);
    }

    fn truncate(&self, pages: u32) -> Result<()> {
        self.segments.forget_behind(pages);
        self.sync()
    }

    fn shrink_step(&self, thoroughly: bool) -> Result<bool> {
        self.data.check()?;
        self.shrink(thoroughly).inspect_err(|error| self.data.stop(error))
    }

    fn discard_unused(&self, pages: Range<u32>) -> bool {
        self.discard(pages);
        true
    }

    fn release_at_rest(&self, free: &[Range<u32>]) -> Result<()> {
        self.data.check()?;
        free.iter().for_each(|pages| self.discard(pages.clone()));
        self.rest().inspect_err(|error| self.data.stop(error))
    }

    #[cfg(test)]
    fn clean_step(&self) -> Result<bool> {
        self.data.check()?;
        self.clean().inspect_err(|error| self.data.stop(error))
    }

    fn problems(&self) -> Vec<String> {
        self.segments.problems(self.geometry.segment_bytes)
    }

    fn identity(&self) -> Option<String> {
        self.device().identity()
    }

    /// None: the store has no scratch space.
    fn scratch(&self) -> Option<&dyn Device> {
        None
    }

    /// Every page is where it is found.
    fn make_standalone(&self) -> Result<()> {
        Ok(())
    }

    /// Sequence up to which every batch is durable.
    fn mark(&self) -> u64 {
        self.appender.durable()
    }

    fn is_contiguous(&self) -> bool {
        false
    }

    fn supports_batch_reads(&self) -> bool {
        self.device().supports_batch_reads()
    }

    fn read_many(&self, reads: &mut [PageRead<'_>], done: &mut PageReadCallback<'_>) {
        self.read_together(reads, done);
    }

    fn set_write_depth(&self, writes: u32) {
        self.device().set_write_depth(writes);
    }
}

/// A store that is only looked at: as the scan found it.
pub(crate) struct RawOutOfPlace<'d, S> {
    pub data: &'d dyn Device,
    pub geometry: StoreGeometry,
    pub scanned: S,
}

impl<S: Borrow<ScannedStore>> PageSource for RawOutOfPlace<'_, S> {
    fn name(&self) -> String {
        self.data.name()
    }

    fn page_bytes(&self) -> usize {
        self.geometry.page_bytes
    }

    fn len_bytes(&self) -> Result<u64> {
        Ok(u64::from(self.scanned.borrow().map.pages()) * self.geometry.page_bytes as u64)
    }

    fn read(&self, first: PageNo, buf: &mut [u8]) -> Result<()> {
        read_pages(self.geometry, self.data, &self.scanned.borrow().map, first, buf, || {})
    }

    fn place(&self, page: PageNo) -> Result<Option<PageLocation>> {
        Ok(self.scanned.borrow().map.get(page).map(|location| self.geometry.place(location)))
    }

    fn segments(&self) -> Option<StoreSegments> {
        Some(self.scanned.borrow().segments(self.geometry.segment_bytes))
    }
}
