//! Writing pages so that a torn write can be repaired.
//!
//! A batch is first written, with a directory in front, to the doublewrite file and synced; then to its places in the
//! data file and synced. The doublewrite file holds one batch: the last.
//!
//! Rules (crash order)
//! 1. Directory and copies are durable before the first page is written to its place.
//! 2. The data file is synced before the next batch overwrites the doublewrite file.
//! 3. So after a crash only pages of the last batch can be torn, and their copies are whole. `restore` puts back the
//!    copy of each page that does not verify in place. A page outside the batch that does not verify is corruption,
//!    not a torn write, and is left for the reader to report.
//! 4. One batch at a time: the file's mutex is held across all four steps.
//!
//! Differs from InnoDB: one area for batches and single pages alike, with a directory, so that a stale copy can never
//! replace a page that rotted later.

use super::frame::FrameNo;
use crate::error::Result;
use crate::page::{self, PageType};
use crate::stats::Stats;
use crate::types::{Lsn, PageNo};
use highwater_storage::{AlignedBuf, Device, Placement, Write};
use parking_lot::Mutex;
use std::sync::Arc;

/// Most pages in a batch.
pub const BATCH_PAGES: usize = 128;
/// A batch up to this size is made when needed, a larger one is kept for reuse.
const SMALL_BATCH_PAGES: usize = 8;
/// Large batches kept.
const SPARE_BATCHES: usize = 2;
/// Bytes of the directory before the copies; the alignment of direct I/O.
const DIRECTORY_BYTES: usize = 4096;
const MAGIC: &[u8; 8] = b"HWDBLWR1";
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

/// Writes batches of pages; the choice of write atomicity lives here.
pub struct PageWriter {
    data: Arc<dyn Device>,
    doublewrite: Option<Mutex<Arc<dyn Device>>>,
    database_id: u64,
    stats: Arc<Stats>,
    /// Full-size batches between uses.
    spare: Mutex<Vec<Batch>>,
}

impl PageWriter {
    /// A writer to `data`, through `doublewrite` if given.
    pub fn new(
        data: Arc<dyn Device>,
        doublewrite: Option<Arc<dyn Device>>,
        database_id: u64,
        stats: Arc<Stats>,
    ) -> PageWriter {
        PageWriter { data, doublewrite: doublewrite.map(Mutex::new), database_id, stats, spare: Mutex::default() }
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

    /// Makes the batch durable in the data file.
    ///
    /// # Errors
    /// An I/O error; the caller must poison the database.
    pub fn write(&self, batch: &mut Batch) -> Result<()> {
        match &self.doublewrite {
            None => self.write_in_place(batch),
            Some(doublewrite) => {
                let device = doublewrite.lock();
                let bytes = batch.seal_directory(self.database_id);
                device.write_at(0, bytes, Placement::Doublewrite)?;
                self.stats.bytes_written_doublewrite.add(bytes.len() as u64);
                device.sync()?;
                self.stats.doublewrite_syncs.inc();
                self.write_in_place(batch)
            }
        }
    }

    fn write_in_place(&self, batch: &Batch) -> Result<()> {
        let writes = batch.writes();
        self.data.write_batch(&writes)?;
        writes.iter().for_each(|w| self.stats.count_written(w.placement, w.data.len()));
        self.data.sync()?;
        self.stats.data_syncs.inc();
        Ok(())
    }
}

/// Bytes of the doublewrite file.
pub fn file_bytes(page_bytes: usize) -> u64 {
    (DIRECTORY_BYTES + BATCH_PAGES * page_bytes) as u64
}

/// What `restore` did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Pages that were torn and are whole again.
    pub pages: Vec<PageNo>,
}

/// Repairs pages of the last batch that were torn by a crash. Durable on return; may be repeated.
///
/// # Errors
/// An I/O error. A doublewrite file without a valid directory repairs nothing.
pub fn restore(doublewrite: &dyn Device, data: &dyn Device, page_bytes: usize, database_id: u64) -> Result<Restored> {
    let mut restored = Restored::default();
    let mut directory = AlignedBuf::zeroed(DIRECTORY_BYTES);
    if doublewrite.len_bytes()? < DIRECTORY_BYTES as u64 {
        return Ok(restored);
    }
    doublewrite.read_at(0, &mut directory)?;
    let mut copy = AlignedBuf::zeroed(page_bytes);
    let mut place = AlignedBuf::zeroed(page_bytes);
    for (index, (page_no, lsn)) in parse_directory(&directory, database_id).into_iter().enumerate() {
        doublewrite.read_at((DIRECTORY_BYTES + index * page_bytes) as u64, &mut copy)?;
        if page::header::verify(&copy, page_no).is_err() || page::header::lsn(&copy) != lsn {
            continue;
        }
        let offset = u64::from(page_no.0) * page_bytes as u64;
        if offset + page_bytes as u64 > data.len_bytes()? {
            data.set_len_bytes(offset + page_bytes as u64)?;
        }
        data.read_at(offset, &mut place)?;
        let torn = page::header::verify(&place, page_no).is_err() || page::header::lsn(&place) < lsn;
        if torn {
            data.write_at(offset, &copy, placement_of(&copy))?;
            restored.pages.push(page_no);
        }
    }
    if !restored.pages.is_empty() {
        data.sync()?;
    }
    Ok(restored)
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
