//! Writing pages so that a torn write can be repaired.
//!
//! A batch is first written, with a directory in front, to an area of the doublewrite file and synced; then to its places
//! in the data file and synced. Each area holds one batch: its last. Batches of different areas do not wait for each
//! other, so LRU-list, flush-list and single-page flushes go on at once; their syncs are shared.
//!
//! | area | at | pages |
//! |---|---|---|
//! | flush list | 0 | [`BATCH_PAGES`] |
//! | LRU list | behind it | [`BATCH_PAGES`] |
//! | single page, [`SINGLE_PAGE_AREAS`] of them | behind that | 1 each |
//!
//! Rules (crash order)
//! 1. Directory and copies are durable before the first page is written to its place.
//! 2. The data file is synced before the next batch overwrites the area: its mutex is held across all four steps.
//! 3. A page is in one unfinished batch at most (the pool marks it as being written), and the checkpoint does not pass
//!    the page's oldest change before its batch has finished. So a page can be torn by a crash only if its copy in some
//!    area is newer than the last checkpoint.
//! 4. `restore` therefore looks at copies newer than the checkpoint only, and puts back each whose page in place does not
//!    verify or is older. If several areas hold the page, the newest copy wins. A copy that was not the page's last is
//!    harmless: redo from the checkpoint brings the page on. A copy from before the checkpoint never replaces a page that
//!    rotted later; that page is left for the reader to report.
//! 5. The log is durable up to a page's LSN before its copy is written. So a copy newer than the log's end proves that the
//!    log lost its end: `restore` then changes nothing and says so.
//!
//! Differs from InnoDB: a directory in each area; areas by reason rather than one buffer with one mutex.

use super::frame::FrameNo;
use super::shared_sync::SharedSync;
use crate::error::{Error, Result};
use crate::page::{self, PageType};
use crate::stats::Stats;
use crate::types::{Lsn, PageNo};
use highwater_storage::{AlignedBuf, Device, Placement, Write};
use parking_lot::{Mutex, MutexGuard};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// Most pages in a batch.
pub const BATCH_PAGES: usize = 128;
/// A batch up to this size is made when needed, a larger one is kept for reuse.
const SMALL_BATCH_PAGES: usize = 8;
/// Large batches kept.
const SPARE_BATCHES: usize = 4;
/// Single pages that can be on their way at once.
pub const SINGLE_PAGE_AREAS: usize = 8;
/// Bytes of the directory before the copies; the alignment of direct I/O.
const DIRECTORY_BYTES: usize = 4096;
const MAGIC: &[u8; 8] = &highwater_storage::mark::DOUBLEWRITE;
/// Directory: checksum u32, count u32, magic, database id u64, then per page: number u32, LSN u64.
const FIXED_BYTES: usize = 24;
const ENTRY_BYTES: usize = 12;
const _: () = assert!(FIXED_BYTES + BATCH_PAGES * ENTRY_BYTES <= DIRECTORY_BYTES);

/// Copies of pages on their way to disk.
pub struct Batch {
    bytes: AlignedBuf,
    page_bytes: usize,
    entries: Vec<Entry>,
}

/// One page of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Where it goes.
    pub page_no: PageNo,
    /// LSN of the copy.
    pub lsn: Lsn,
    /// Which frame it was copied from.
    pub frame: FrameNo,
    placement: Placement,
}

impl Batch {
    /// Room for `pages` pages.
    pub fn new(pages: usize, page_bytes: usize) -> Batch {
        let bytes = AlignedBuf::zeroed(DIRECTORY_BYTES + pages * page_bytes);
        Batch { bytes, page_bytes, entries: Vec::with_capacity(pages) }
    }

    /// Adds a copy of the page, sealed for disk.
    pub fn push(&mut self, page: &[u8], page_no: PageNo, frame: FrameNo) {
        let at = DIRECTORY_BYTES + self.entries.len() * self.page_bytes;
        let copy = &mut self.bytes[at..at + self.page_bytes];
        copy.copy_from_slice(page);
        page::header::seal(copy, page_no);
        self.entries.push(Entry { page_no, lsn: page::header::lsn(copy), frame, placement: placement_of(copy) });
    }

    /// The pages in it.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn seal_directory(&mut self, database_id: u64) -> &[u8] {
        let used = DIRECTORY_BYTES + self.entries.len() * self.page_bytes;
        let directory = &mut self.bytes[..DIRECTORY_BYTES];
        directory[4..8].copy_from_slice(&(self.entries.len() as u32).to_le_bytes());
        directory[8..16].copy_from_slice(MAGIC);
        directory[16..24].copy_from_slice(&database_id.to_le_bytes());
        for (entry, slot) in self.entries.iter().zip(directory[FIXED_BYTES..].chunks_exact_mut(ENTRY_BYTES)) {
            slot[..4].copy_from_slice(&entry.page_no.0.to_le_bytes());
            slot[4..].copy_from_slice(&entry.lsn.0.to_le_bytes());
        }
        let sum = crc32c::crc32c(&directory[4..]);
        directory[..4].copy_from_slice(&sum.to_le_bytes());
        &self.bytes[..used]
    }

    /// Contiguous pages as one write each.
    fn writes(&self) -> Vec<Write<'_>> {
        let mut writes: Vec<Write<'_>> = Vec::with_capacity(self.entries.len());
        let mut start = 0;
        for end in 1..=self.entries.len() {
            let first = self.entries[start];
            let joins = self.entries.get(end).is_some_and(|next| {
                next.page_no.0 == first.page_no.0 + (end - start) as u32 && next.placement == first.placement
            });
            if !joins {
                let from = DIRECTORY_BYTES + start * self.page_bytes;
                let to = DIRECTORY_BYTES + end * self.page_bytes;
                writes.push(Write {
                    offset: u64::from(first.page_no.0) * self.page_bytes as u64,
                    data: &self.bytes[from..to],
                    placement: first.placement,
                });
                start = end;
            }
        }
        writes
    }
}

/// Which area of the doublewrite file a batch goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    /// Pages of the flush list.
    FlushList,
    /// Pages of the LRU list's tail.
    LruList,
    /// One page, flushed by a thread that needs its frame.
    SinglePage,
}

/// Where an area begins, and the right to use it.
struct Place {
    at: u64,
    free: Mutex<()>,
}

/// The doublewrite file in use.
struct Doublewrite {
    file: SharedSync,
    flush_list: Place,
    lru_list: Place,
    single_pages: Vec<Place>,
    /// Where the next single page looks first.
    next: AtomicUsize,
}

impl Doublewrite {
    fn new(device: Arc<dyn Device>, page_bytes: usize) -> Doublewrite {
        let mut places = area_offsets(page_bytes).map(|at| Place { at, free: Mutex::new(()) });
        let mut next = || places.next().expect("there are more areas than two");
        let (flush_list, lru_list) = (next(), next());
        let file = SharedSync::new(device);
        Doublewrite { file, flush_list, lru_list, single_pages: places.collect(), next: AtomicUsize::new(0) }
    }

    /// The area, once it is free.
    fn take(&self, area: Area, stats: &Stats) -> (u64, MutexGuard<'_, ()>) {
        let place = match area {
            Area::FlushList => &self.flush_list,
            Area::LruList => &self.lru_list,
            Area::SinglePage => {
                let first = self.next.fetch_add(1, Relaxed);
                let order =
                    (0..self.single_pages.len()).map(|i| &self.single_pages[(first + i) % self.single_pages.len()]);
                if let Some(free) = order.clone().find_map(|place| Some((place.at, place.free.try_lock()?))) {
                    return free;
                }
                &self.single_pages[first % self.single_pages.len()]
            }
        };
        if let Some(free) = place.free.try_lock() {
            return (place.at, free);
        }
        let since = Instant::now();
        let free = place.free.lock();
        stats.doublewrite_waits.inc();
        stats.doublewrite_wait_us.add(since.elapsed().as_micros() as u64);
        (place.at, free)
    }
}

/// Writes batches of pages; the choice of write atomicity lives here.
pub struct PageWriter {
    data: SharedSync,
    doublewrite: Option<Doublewrite>,
    database_id: u64,
    stats: Arc<Stats>,
    /// Full-size batches between uses.
    spare: Mutex<Vec<Batch>>,
    /// Smoothed microseconds that a batch took, by area.
    batch_us: [AtomicU64; 3],
}

impl PageWriter {
    /// A writer to `data`, through `doublewrite` if given, which it makes long enough.
    ///
    /// # Errors
    /// The doublewrite file cannot be made long enough.
    pub fn new(
        data: Arc<dyn Device>,
        doublewrite: Option<Arc<dyn Device>>,
        page_bytes: usize,
        database_id: u64,
        stats: Arc<Stats>,
    ) -> Result<PageWriter> {
        if let Some(device) = &doublewrite
            && device.len_bytes()? < file_bytes(page_bytes)
        {
            device.set_len_bytes(file_bytes(page_bytes))?;
            device.sync()?;
        }
        let doublewrite = doublewrite.map(|device| Doublewrite::new(device, page_bytes));
        let (data, spare) = (SharedSync::new(data), Mutex::default());
        Ok(PageWriter { data, doublewrite, database_id, stats, spare, batch_us: Default::default() })
    }

    /// An empty batch for up to `pages` pages.
    pub fn batch(&self, pages: usize, page_bytes: usize) -> Batch {
        if pages <= SMALL_BATCH_PAGES {
            return Batch::new(pages, page_bytes);
        }
        self.spare.lock().pop().unwrap_or_else(|| Batch::new(BATCH_PAGES, page_bytes))
    }

    /// Takes a batch back after use.
    pub fn recycle(&self, mut batch: Batch) {
        let mut spare = self.spare.lock();
        if batch.entries.capacity() == BATCH_PAGES && spare.len() < SPARE_BATCHES {
            batch.entries.clear();
            spare.push(batch);
        }
    }

    /// Makes the batch durable in the data file, through `area` of the doublewrite file.
    ///
    /// # Errors
    /// An I/O error; the caller must poison the database.
    ///
    /// # Panics
    /// If the batch is larger than the area (a bug of the caller).
    pub fn write(&self, batch: &mut Batch, area: Area) -> Result<()> {
        assert!(area != Area::SinglePage || batch.entries.len() == 1, "one page at a time");
        let start = Instant::now();
        match &self.doublewrite {
            None => self.write_in_place(batch)?,
            Some(doublewrite) => {
                let (at, _free) = doublewrite.take(area, &self.stats);
                self.write_aside(doublewrite, at, batch)?;
                self.write_in_place(batch)?;
            }
        }
        self.note_batch_us(area, start.elapsed().as_micros() as u64);
        Ok(())
    }

    fn write_aside(&self, doublewrite: &Doublewrite, at: u64, batch: &mut Batch) -> Result<()> {
        let bytes = batch.seal_directory(self.database_id);
        doublewrite.file.device().write_at(at, bytes, Placement::Doublewrite)?;
        self.stats.bytes_written_doublewrite.add(bytes.len() as u64);
        self.stats.doublewrite_syncs.add(u64::from(doublewrite.file.sync()?));
        Ok(())
    }

    fn write_in_place(&self, batch: &Batch) -> Result<()> {
        let writes = batch.writes();
        self.data.device().write_batch(&writes)?;
        writes.iter().for_each(|w| self.stats.count_written(w.placement, w.data.len()));
        self.stats.data_syncs.add(u64::from(self.data.sync()?));
        Ok(())
    }

    fn note_batch_us(&self, area: Area, took_us: u64) {
        let smoothed = &self.batch_us[area as usize];
        let past = smoothed.load(Relaxed);
        let now = if past == 0 { took_us } else { (past * 7 + took_us) / 8 };
        smoothed.store(now.max(1), Relaxed);
    }

    /// Microseconds that a batch through `area` takes of late; 0 when there was none yet.
    pub fn batch_us(&self, area: Area) -> u64 {
        self.batch_us[area as usize].load(Relaxed)
    }
}

/// Where the areas begin: flush list, LRU list, single pages.
fn area_offsets(page_bytes: usize) -> impl Iterator<Item = u64> {
    let bytes = move |pages: usize| (DIRECTORY_BYTES + pages * page_bytes) as u64;
    let singles = (0..SINGLE_PAGE_AREAS as u64).map(move |n| 2 * bytes(BATCH_PAGES) + n * bytes(1));
    [0, bytes(BATCH_PAGES)].into_iter().chain(singles)
}

/// Bytes of the doublewrite file.
pub fn file_bytes(page_bytes: usize) -> u64 {
    let last = area_offsets(page_bytes).last().unwrap_or(0);
    last + (DIRECTORY_BYTES + page_bytes) as u64
}

/// What `restore` did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Pages that were torn and are whole again.
    pub pages: Vec<PageNo>,
}

/// Repairs pages that were torn by a crash after the log's checkpoint; `log` reaches from there to its end. Durable on
/// return; may be repeated.
///
/// # Errors
/// [`Error::Corrupt`] for a copy newer than the log's end, an I/O error. An area without a valid directory repairs nothing.
pub fn restore(
    doublewrite: &dyn Device,
    data: &dyn Device,
    page_bytes: usize,
    database_id: u64,
    log: Range<Lsn>,
) -> Result<Restored> {
    let copies = listed_copies(doublewrite, page_bytes, database_id)?;
    if let Some(newest) = copies.iter().max_by_key(|copy| copy.lsn).filter(|copy| copy.lsn > log.end) {
        let Copy { page_no, lsn, .. } = newest;
        return Err(Error::Corrupt(format!(
            "the redo log ends at LSN {}, but {} has a copy of page {page_no} with changes up to LSN {lsn}: the log lost its \
             end and with it committed changes, or it is an older version of itself; put back the redo log that belongs to it, \
             or all three files of one backup",
            log.end,
            doublewrite.name()
        )));
    }
    let mut restored = Restored::default();
    for copy in copies.iter().filter(|copy| copy.lsn > log.start) {
        if restore_page(doublewrite, data, page_bytes, copy)? {
            restored.pages.push(copy.page_no);
        }
    }
    restored.pages.sort_unstable();
    restored.pages.dedup();
    if !restored.pages.is_empty() {
        data.sync()?;
    }
    Ok(restored)
}

/// A copy that a whole directory lists.
struct Copy {
    at: u64,
    page_no: PageNo,
    lsn: Lsn,
}

/// What the directories of all areas list; the copies themselves may be torn.
fn listed_copies(doublewrite: &dyn Device, page_bytes: usize, database_id: u64) -> Result<Vec<Copy>> {
    let mut copies = Vec::new();
    let mut directory = AlignedBuf::zeroed(DIRECTORY_BYTES);
    for area in area_offsets(page_bytes) {
        if doublewrite.len_bytes()? < area + DIRECTORY_BYTES as u64 {
            break;
        }
        doublewrite.read_at(area, &mut directory)?;
        for (index, (page_no, lsn)) in parse_directory(&directory, database_id).into_iter().enumerate() {
            let at = area + (DIRECTORY_BYTES + index * page_bytes) as u64;
            copies.push(Copy { at, page_no, lsn });
        }
    }
    Ok(copies)
}

/// Puts the copy back if it is whole and its page in place is not, or is older; says whether it did.
fn restore_page(doublewrite: &dyn Device, data: &dyn Device, page_bytes: usize, listed: &Copy) -> Result<bool> {
    let Copy { at, page_no, lsn } = *listed;
    let mut copy = AlignedBuf::zeroed(page_bytes);
    if at + page_bytes as u64 > doublewrite.len_bytes()? {
        return Ok(false);
    }
    doublewrite.read_at(at, &mut copy)?;
    if page::header::verify(&copy, page_no).is_err() || page::header::lsn(&copy) != lsn {
        return Ok(false);
    }
    let offset = u64::from(page_no.0) * page_bytes as u64;
    if offset + page_bytes as u64 > data.len_bytes()? {
        data.set_len_bytes(offset + page_bytes as u64)?;
    }
    let mut place = AlignedBuf::zeroed(page_bytes);
    data.read_at(offset, &mut place)?;
    let torn = page::header::verify(&place, page_no).is_err() || page::header::lsn(&place) < lsn;
    if torn {
        data.write_at(offset, &copy, placement_of(&copy))?;
    }
    Ok(torn)
}

/// What a page is, for the device; a page of unknown type is `Other`.
fn placement_of(page: &[u8]) -> Placement {
    match page::header::page_type(page) {
        Ok(PageType::Leaf) => Placement::IndexLeaf,
        Ok(PageType::Inner) => Placement::IndexInner,
        Ok(PageType::Undo | PageType::UndoDirectory) => Placement::Undo,
        _ => Placement::Other,
    }
}

fn parse_directory(bytes: &[u8], database_id: u64) -> Vec<(PageNo, Lsn)> {
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let count = u32_at(4) as usize;
    let valid = u32_at(0) == crc32c::crc32c(&bytes[4..])
        && bytes[8..16] == *MAGIC
        && u64_at(16) == database_id
        && count <= BATCH_PAGES;
    if !valid {
        return Vec::new();
    }
    let entry = |i: usize| FIXED_BYTES + i * ENTRY_BYTES;
    (0..count).map(|i| (PageNo(u32_at(entry(i))), Lsn(u64_at(entry(i) + 4)))).collect()
}
