//! A large store without the bytes of its pages, to measure how long deriving its map takes: every segment is sealed
//! and has a valid summary; holes replace its batches.

use super::format::{
    self, BLOCK_BYTES, GroupTails, ImageEntry, Listed, SLOTS_AT, StoreSlot, batch_bytes, end_bytes, summary_bytes,
};
use super::image::StoreGeometry;
use super::read::READERS;
use super::scan::scan;
use super::{OutOfPlace, Settings};
use crate::config::PageCompression;
use crate::error::Result;
use crate::stats::Stats;
use crate::store::{BATCH_PAGES, Protection};
use crate::types::{Lsn, PageNo};
use highwater_storage::{AlignedBuf, Device, Placement};
use std::sync::Arc;

/// Parameters of a synthetic store.
#[derive(Clone, Copy, Debug)]
pub struct SyntheticStore {
    /// Size of a page.
    pub page_bytes: usize,
    /// Size of a segment.
    pub segment_bytes: u64,
    /// Segments, the region at the start of the file not counted.
    pub segments: u32,
    /// Distance of consecutively written pages: 1 for pages written in order.
    pub stride: u32,
}

/// An open synthetic store.
pub struct Opened {
    store: OutOfPlace,
    /// Bytes that were read to open it.
    pub read_bytes: u64,
}

impl Opened {
    /// Whether every page is mapped to its newest version.
    pub fn is_whole(&self) -> bool {
        let usage = self.store.segments.usage();
        let (pages, page_bytes) = (u64::from(self.store.segments.map.pages()), self.store.geometry.page_bytes as u64);
        let mut mapped = 0;
        self.store.segments.map.each(|_, location| mapped += u64::from(location.segment > 0));
        mapped == pages && usage.live_bytes == pages * page_bytes
    }
}

impl SyntheticStore {
    fn geometry(&self) -> StoreGeometry {
        StoreGeometry { page_bytes: self.page_bytes, segment_bytes: self.segment_bytes, database_id: 77 }
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> u64 {
        (u64::from(self.segments) + 1) * self.segment_bytes
    }

    /// Images, as they are appended: a batch begins at `at` in its segment, of which the summary has `summary` bytes.
    fn fitting(&self, at: usize, summary: usize) -> usize {
        let fits = |n: &usize| {
            let end = end_bytes(summary + summary_bytes(*n));
            at + batch_bytes(*n, n * self.page_bytes) + end <= self.segment_bytes as usize
        };
        (1..=BATCH_PAGES).take_while(fits).count()
    }

    /// Images in a segment.
    fn images(&self) -> usize {
        let (mut at, mut summary, mut images) = (0, 0, 0);
        loop {
            let n = self.fitting(at, summary);
            if n == 0 {
                return images;
            }
            (at, summary, images) = (at + batch_bytes(n, n * self.page_bytes), summary + summary_bytes(n), images + n);
        }
    }

    /// Pages of the store: three quarters of the images count, the others are older versions of the same pages.
    pub fn pages(&self) -> u32 {
        (self.images() as u64 * u64::from(self.segments) * 3 / 4) as u32
    }

    /// The image that is written after `image` others: the first of each four is an older version of a page that is
    /// far away.
    fn entry(&self, image: u64, pages: u64) -> ImageEntry {
        let (four, part) = (image / 4 * 3, image % 4);
        let (nth, lsn) = if part == 0 { (four + pages / 2, 1) } else { (four + part - 1, 2) };
        let page_no = PageNo((nth % pages * u64::from(self.stride) % pages) as u32);
        ImageEntry { page_no, bytes: self.page_bytes, sum: 0, lsn: Lsn(lsn << 40 | image) }
    }

    /// Writes summaries, footers and the number of pages to a device that has its length and reads as zeros.
    ///
    /// # Errors
    /// An I/O error.
    pub fn write(&self, device: &dyn Device) -> Result<()> {
        let (geometry, pages) = (self.geometry(), u64::from(self.pages()));
        let mut slot = AlignedBuf::zeroed(BLOCK_BYTES);
        let first_slot = StoreSlot { sequence: 1, pages: pages as u32, ..StoreSlot::default() };
        format::put_slot(&mut slot, geometry.database_id, &first_slot);
        device.write_at(SLOTS_AT[0], &slot, Placement::Other)?;
        let (mut written, mut sequence) = (0, 0);
        for segment in 1..=self.segments {
            let (mut at, mut summary, life, mut before) = (0, Vec::new(), sequence + 1, 0);
            loop {
                let n = self.fitting(at, summary.len());
                if n == 0 {
                    break;
                }
                let entries = (written..written + n as u64).map(|image| self.entry(image, pages)).collect();
                (before, sequence, written) = (sequence, sequence + 1, written + n as u64);
                format::add_to_summary(&mut summary, &Listed { at, sequence, group: 0, entries });
                at += batch_bytes(n, n * self.page_bytes);
            }
            let before = if before < life { 0 } else { before };
            let footer = format::footer_of(life, [before, sequence], sequence, GroupTails::default(), &summary);
            let mut end = AlignedBuf::zeroed(footer.end_bytes());
            format::put_end(&mut end, geometry.identity(segment), &footer, &summary);
            device.write_at(geometry.start_of(segment + 1) - end.len() as u64, &end, Placement::Other)?;
        }
        Ok(device.sync()?)
    }

    /// Opens it, which derives the map. Nothing is written.
    ///
    /// # Errors
    /// An I/O error.
    pub fn open(&self, device: Arc<dyn Device>) -> Result<Opened> {
        let scanned = scan(&*device, self.geometry(), READERS)?;
        let read_bytes = scanned.read_bytes;
        let settings = Settings {
            protection: Protection::None,
            compression: PageCompression::Off,
            segment_fill_pct: 75,
            is_read_only: true,
        };
        let store = OutOfPlace::open(device, self.geometry(), scanned, &settings, Arc::new(Stats::default()))?;
        Ok(Opened { store, read_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_storage::MemoryDevice;

    /// As many segments as several threads read, and count.
    #[test]
    fn every_page_of_a_synthetic_store_is_found_in_its_newest_version() {
        for (page_bytes, stride) in [(4096, 1), (4096, 1009), (16384, 1009)] {
            let layout = SyntheticStore { page_bytes, segment_bytes: 256 << 10, segments: 600, stride };
            let device = MemoryDevice::new();
            device.set_len_bytes(layout.file_bytes()).unwrap();
            layout.write(&device).unwrap();
            let opened = layout.open(Arc::new(device)).unwrap();
            assert!(opened.is_whole(), "{layout:?}");
            assert_eq!(opened.store.segments.problems(layout.segment_bytes), Vec::<String>::new());
            let page = PageNo((5 % u64::from(layout.pages()) * u64::from(stride)) as u32 % layout.pages());
            let expected = (0..8).find(|image| layout.entry(*image, layout.pages().into()).page_no == page).unwrap();
            let found = opened.store.segments.map.get(page).unwrap();
            assert_eq!((found.segment, found.offset / page_bytes), (1, expected as usize), "the sixth page");
        }
    }
}
