//! The store in place: a page is in the data file at its number times the page size. A crash can tear a write over an
//! older copy, so a batch first goes to the doublewrite file: to one of its areas, or to the journal.
//!
//! Rules
//! 1. A batch is durable in an area or in the journal before its first page is written to its place (in an area without
//!    the pages that redo recreates), and durable in its places before that space is reused ([`doublewrite`],
//!    [`journal`]). A batch with an area syncs its places itself, one in the journal does not. Without either, torn
//!    pages are not repaired. A batch without copies in its area frees the area before its places are written.
//! 2. Consecutive pages of one placement are one write.
//! 3. A reader queries the length of the data file only for a page after the last known length. `len_bytes`, `reserve`
//!    and `make_standalone` always query it. Only `truncate` shortens the file, and no thread queries meanwhile.
//! 4. The doublewrite file protects nothing while no batch is being written, once every page is durable in place: then
//!    it can be lent to the probe.
//! 5. A failed batch stops the store before it releases its area, and each batch checks after it got its area whether
//!    the store is stopped. So the copies that repair a failed batch are never overwritten.
//!
//! | file | what |
//! |---|---|
//! | `creation` | laying the two files out |
//! | `doublewrite` | areas, their directories, who may use one |
//! | `journal`, `journal_scan` | the ring of images in use; its layout, and finding the batches again |
//! | `repair` | putting whole copies in the place of torn or old pages, after a crash |
//! | `raw` | reading pages of a file that is not open as a store |

mod creation;
pub(crate) mod doublewrite;
mod journal;
pub(crate) mod journal_scan;
mod raw;
mod repair;

pub(super) use creation::{create, is_uncreated};
pub(super) use doublewrite::was_used;
pub(super) use journal_scan::{Mark, ScannedJournal};
pub(super) use raw::RawInPlace;
pub(super) use repair::repair;

use super::shared_sync::SharedSync;
use super::{
    FileHeader, FlushLane, PageBatch, PageLocation, PageRead, PageReadCallback, PageSource, PageStore, Protection,
};
use crate::error::{Error, Result};
use crate::stats::Stats;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::types::PageNo;
use doublewrite::{AreaGuard, Doublewrite};
use highwater_storage::{Device, Read, Write};
use journal::{InFlight, PageJournal};
use std::ops::Range;
use std::sync::Arc;

/// Offset of a page.
fn offset_of(page: PageNo, page_bytes: usize) -> u64 {
    u64::from(page.0) * page_bytes as u64
}

fn beyond_the_end(page: PageNo) -> Error {
    Error::corrupt_page(page, "it is beyond the end of the data file")
}

/// An open store.
pub(crate) struct InPlace {
    page_bytes: usize,
    data: SharedSync,
    /// The length of the data file when it was last read.
    len_bytes: AtomicU64,
    /// Held while the length is read, and while the file becomes shorter.
    asking: Mutex<()>,
    through: TornWriteProtection,
    /// The last batch of an unused journal, of which nothing is needed any more.
    last_batch: u64,
    /// The doublewrite file, in use or not.
    doublewrite_file: Arc<dyn Device>,
    stats: Arc<Stats>,
}

/// The protection of a batch from torn writes.
enum TornWriteProtection {
    Areas(Doublewrite),
    Journal(PageJournal),
    Nothing,
}

/// The part of the doublewrite file that a batch holds until its pages are durable in place or the store is stopped, if
/// it still needs one.
enum AreaSlot<'s> {
    Area(&'s Doublewrite, AreaGuard<'s>),
    Journal { _on_the_way: InFlight<'s> },
    None,
}

impl InPlace {
    /// Opens the store in these two files, which have been repaired; `journal` is the scanned journal. With
    /// `protection` the doublewrite file is extended to the needed length.
    ///
    /// # Errors
    /// The doublewrite file cannot be made long enough.
    pub(crate) fn open(
        data: Arc<dyn Device>,
        doublewrite_file: Arc<dyn Device>,
        header: FileHeader,
        protection: Protection,
        journal: &ScannedJournal,
        stats: Arc<Stats>,
    ) -> Result<InPlace> {
        let file = doublewrite_file.clone();
        let through = match protection {
            Protection::None => TornWriteProtection::Nothing,
            Protection::Doublewrite => TornWriteProtection::Areas(Doublewrite::open(file, header, stats.clone())?),
            Protection::Journal { bytes } => {
                TornWriteProtection::Journal(PageJournal::open(file, header, bytes, journal, stats.clone())?)
            }
        };
        let (data, len_bytes, asking) = (SharedSync::new(data), AtomicU64::new(0), Mutex::new(()));
        let (page_bytes, last_batch) = (header.page_bytes, journal.newest);
        Ok(InPlace { page_bytes, data, len_bytes, asking, through, last_batch, doublewrite_file, stats })
    }

    /// Makes the batch durable in the doublewrite file, if it needs that. If that fails, the store is stopped before
    /// the area is freed; a batch that then gets the area finds the store stopped (rule 5).
    fn protect(&self, batch: &mut PageBatch, lane: FlushLane) -> Result<AreaSlot<'_>> {
        match &self.through {
            TornWriteProtection::Areas(doublewrite) => {
                let area = doublewrite.take(lane);
                self.data.check()?;
                doublewrite.write(&area, batch).inspect_err(|error| self.data.stop(error))?;
                Ok(if batch.is_recreated_by_redo() { AreaSlot::None } else { AreaSlot::Area(doublewrite, area) })
            }
            TornWriteProtection::Journal(journal) => {
                let room = journal.write(batch, &self.data).inspect_err(|error| self.data.stop(error))?;
                Ok(AreaSlot::Journal { _on_the_way: room })
            }
            TornWriteProtection::Nothing => self.data.check().map(|()| AreaSlot::None),
        }
    }

    fn device(&self) -> &dyn Device {
        self.data.device()
    }

    fn offset_of(&self, page: u32) -> u64 {
        offset_of(PageNo(page), self.page_bytes)
    }

    /// Whether the data file has `end` bytes (rule 3).
    fn reaches(&self, end: u64) -> Result<bool> {
        if end <= self.len_bytes.load(Relaxed) {
            return Ok(true);
        }
        let _no_cut = self.asking.lock();
        let len = self.device().len_bytes()?;
        self.len_bytes.fetch_max(len, Relaxed);
        Ok(end <= len)
    }

    fn write_to_places(&self, batch: &PageBatch) -> Result<()> {
        let writes = writes(batch, self.page_bytes);
        self.device().write_batch(&writes)?;
        for write in &writes {
            self.stats.count_written(write.placement, write.data.len());
            self.stats.count_pages_written(write.placement, (write.data.len() / self.page_bytes) as u64);
        }
        Ok(())
    }
}

/// The writes that bring the pages of a batch to their places (rule 2).
fn writes(batch: &PageBatch, page_bytes: usize) -> Vec<Write<'_>> {
    let entries = batch.entries();
    let mut writes: Vec<Write<'_>> = Vec::with_capacity(entries.len());
    let mut start = 0;
    for end in 1..=entries.len() {
        let first = entries[start];
        let joins = entries.get(end).is_some_and(|next| {
            next.page_no.0 == first.page_no.0 + (end - start) as u32 && next.placement == first.placement
        });
        if !joins {
            let offset = offset_of(first.page_no, page_bytes);
            writes.push(Write { offset, data: batch.copies(start..end), placement: first.placement });
            start = end;
        }
    }
    let bytes: usize = writes.iter().map(|write| write.data.len()).sum();
    debug_assert_eq!(bytes, entries.len() * page_bytes, "rule 2: the writes of {} pages", entries.len());
    debug_assert_eq!(start, entries.len(), "a page of the batch is not written to its place");
    writes
}

impl PageSource for InPlace {
    fn name(&self) -> String {
        self.device().name()
    }

    fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    fn len_bytes(&self) -> Result<u64> {
        Ok(self.device().len_bytes()?)
    }

    fn read(&self, first: PageNo, buf: &mut [u8]) -> Result<()> {
        let offset = self.offset_of(first.0);
        if !self.reaches(offset + buf.len() as u64)? {
            return Err(beyond_the_end(first));
        }
        Ok(self.device().read_at(offset, buf)?)
    }

    fn place(&self, page: PageNo) -> Result<Option<PageLocation>> {
        let place = PageLocation { offset: self.offset_of(page.0), bytes: self.page_bytes as u64 };
        Ok(self.reaches(place.offset + place.bytes)?.then_some(place))
    }
}

impl PageStore for InPlace {
    fn write(&self, batch: &mut PageBatch, lane: FlushLane) -> Result<()> {
        assert!(lane != FlushLane::SinglePage || batch.entries().len() == 1, "one page at a time");
        let room = self.protect(batch, lane)?;
        let is_synced = !matches!(room, AreaSlot::Journal { .. });
        let written = self.write_to_places(batch).and_then(|()| if is_synced { self.sync() } else { Ok(()) });
        written.inspect_err(|error| self.data.stop(error))?;
        if let AreaSlot::Area(doublewrite, area) = &room {
            doublewrite.finished(area, batch);
        }
        Ok(())
    }

    /// Reserves also what the file seems to have already: an unfinished growth may have lengthened the file without
    /// reserving all of it.
    fn reserve(&self, pages: Range<u32>) -> highwater_storage::Result<()> {
        let (from, to) = (self.offset_of(pages.start), self.offset_of(pages.end));
        let len = self.device().len_bytes()?;
        if len > from {
            self.device().reserve(from, len.min(to) - from)?;
        }
        if len < to { self.device().set_len_bytes(to) } else { Ok(()) }
    }

    fn sync(&self) -> Result<()> {
        self.stats.data_syncs.add(u64::from(self.data.sync()?));
        Ok(())
    }

    fn discard(&self, pages: Range<u32>) {
        let (from, to) = (self.offset_of(pages.start), self.offset_of(pages.end));
        let _ = self.device().discard(from, to - from);
    }

    fn release_at_rest(&self, free: &[Range<u32>]) -> Result<()> {
        free.iter().for_each(|pages| self.discard(pages.clone()));
        if let TornWriteProtection::Areas(doublewrite) = &self.through {
            doublewrite.release_copies(self.page_bytes);
        }
        Ok(())
    }

    fn reserve_after_rest(&self, pages: Range<u32>) -> highwater_storage::Result<()> {
        self.reserve(pages)
    }

    fn truncate(&self, pages: u32) -> Result<()> {
        self.data.check()?;
        let end = self.offset_of(pages);
        let _no_reader_asks = self.asking.lock();
        if self.device().len_bytes()? > end {
            self.len_bytes.fetch_min(end, Relaxed);
            let cut = self.device().set_len_bytes(end).map_err(Error::from);
            cut.inspect_err(|error| self.data.stop(error))?;
        }
        Ok(())
    }

    fn identity(&self) -> Option<String> {
        self.device().identity()
    }

    fn scratch(&self) -> Option<&dyn Device> {
        let identity = self.identity();
        (identity.is_some() && self.doublewrite_file.identity() == identity).then_some(&*self.doublewrite_file)
    }

    /// The change of length causes a sync even with a flush method that leaves syncs out.
    fn make_standalone(&self) -> Result<()> {
        self.device().set_len_bytes(self.device().len_bytes()?)?;
        self.data.sync()?;
        self.sync_places()
    }

    fn sync_places(&self) -> Result<()> {
        match &self.through {
            TornWriteProtection::Journal(journal) => {
                journal.empty(&self.data).inspect_err(|error| self.data.stop(error))
            }
            TornWriteProtection::Areas(_) | TornWriteProtection::Nothing => Ok(()),
        }
    }

    fn mark(&self) -> u64 {
        let mark = match &self.through {
            TornWriteProtection::Journal(journal) => journal.mark(),
            TornWriteProtection::Areas(_) | TornWriteProtection::Nothing => {
                Mark { newest: self.last_batch, is_needed: false }
            }
        };
        mark.encode()
    }

    fn is_contiguous(&self) -> bool {
        true
    }

    fn supports_batch_reads(&self) -> bool {
        self.device().supports_batch_reads()
    }

    fn read_many(&self, reads: &mut [PageRead<'_>], done: &mut PageReadCallback<'_>) {
        let reaches = |read: &PageRead<'_>| self.reaches(self.offset_of(read.first.0) + read.buf.len() as u64);
        let (mut ranges, mut indexes) = (Vec::with_capacity(reads.len()), Vec::with_capacity(reads.len()));
        for (index, read) in reads.iter_mut().enumerate() {
            match reaches(read) {
                Ok(true) => {
                    ranges.push(Read { offset: self.offset_of(read.first.0), buf: &mut *read.buf });
                    indexes.push(index);
                }
                Ok(false) => done(index, Err(beyond_the_end(read.first))),
                Err(error) => done(index, Err(error)),
            }
        }
        self.device().read_batch(&mut ranges, &mut |n, result| done(indexes[n], result.map_err(Error::from)));
    }

    fn set_write_depth(&self, writes: u32) {
        self.device().set_write_depth(writes);
    }
}
