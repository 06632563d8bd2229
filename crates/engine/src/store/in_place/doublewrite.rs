//! The doublewrite file: copies of pages that are about to be written to their places.
//!
//! A batch is first written, with a directory in front, to an area of the doublewrite file and synced; then to its
//! places in the data file and synced. Pages that redo recreates need no copy, but the directory lists them. Each area
//! holds its last batch. Batches of different areas do not wait for each other, so LRU-list, flush-list and single-page
//! flushes run concurrently; they share syncs.
//!
//! | area | at | pages |
//! |---|---|---|
//! | flush list | 0 | [`BATCH_PAGES`] |
//! | LRU list | after it | [`BATCH_PAGES`] |
//! | single page, [`SINGLE_PAGES`] of them | after that | 1 each |
//!
//! Rules (crash order)
//! 1. Directory and copies are durable before the first page is written to its place.
//! 2. The data file is synced before the next batch overwrites the area: the writer holds the area for all four steps.
//!    If one of them fails, no area is written any more ([`super`], rule 5), because only the copies can repair a torn
//!    page. A batch whose pages redo recreates completely releases the area at once: no copy is lost, but the next
//!    batch overwrites the directory's LSNs, possibly with lower ones, which prove less (rule 4).
//! 3. A page is in one unfinished batch at most (the pool marks it as being written), and the checkpoint does not pass
//!    the page's oldest change before its batch has finished. So a page can be torn by a crash only if its copy in some
//!    area is newer than the last checkpoint ([`super::repair`] relies on it), or if it has none because redo from the
//!    checkpoint on formats it: recovery then recreates it, and does not need what is in its place.
//! 4. On a device that prefers discards, copies are discarded once their pages are durable in their places. Otherwise
//!    the device's garbage collection would repeatedly copy the tail of an area, which small batches do not reach. The
//!    directory is kept, also in a small closed database: its LSNs show whether the log lost its end. An opening
//!    reserves the whole file.
//!
//! Differs from InnoDB: a directory in each area; areas by reason rather than one buffer with one mutex.

use crate::error::{Error, Result};
use crate::stats::Stats;
use crate::store::batch::FRONT_BYTES;
use crate::store::shared_sync::SharedSync;
use crate::store::{BATCH_PAGES, FileHeader, FlushLane, PageBatch, SINGLE_PAGES};
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::{Mutex, MutexGuard};
use crate::types::{Lsn, PageNo};
use highwater_storage::{AlignedBuf, Device, Placement, Write};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of the directory before the copies.
const DIRECTORY_BYTES: usize = FRONT_BYTES;
/// Stands at byte 8 of a directory.
pub(crate) const MAGIC: &[u8; 8] = &highwater_storage::mark::DOUBLEWRITE;
/// Bytes in front of a directory's entries: checksum u32, count u32, magic, database id u64. Then per page: number u32,
/// LSN u64.
pub(crate) const FIXED_BYTES: usize = 24;
pub(crate) const ENTRY_BYTES: usize = 12;
const _: () = assert!(FIXED_BYTES + BATCH_PAGES * ENTRY_BYTES <= DIRECTORY_BYTES);

/// The offset of an area, and the exclusive use of it.
struct Area {
    at: u64,
    free: Mutex<()>,
}

/// An area that is in use until this is dropped.
pub(crate) struct AreaGuard<'d> {
    at: u64,
    _free: MutexGuard<'d, ()>,
}

/// The doublewrite file in use.
pub(crate) struct Doublewrite {
    file: SharedSync,
    database_id: u64,
    flush_list: Area,
    lru_list: Area,
    single_pages: Vec<Area>,
    /// Slot at which the search for the next single page begins.
    next: AtomicUsize,
    /// Whether copies that are not needed any more are discarded.
    discards: bool,
    stats: Arc<Stats>,
}

impl Doublewrite {
    /// Makes the file long enough.
    pub(crate) fn open(file: Arc<dyn Device>, header: FileHeader, stats: Arc<Stats>) -> Result<Doublewrite> {
        let FileHeader { page_bytes, database_id, .. } = header;
        if file.len_bytes()? < file_bytes(page_bytes) {
            file.set_len_bytes(file_bytes(page_bytes))?;
            file.sync()?;
        }
        // The reservation needs no separate sync: each batch is synced before its pages are written.
        file.reserve(0, file_bytes(page_bytes)).map_err(Error::of_room)?;
        let mut areas = area_offsets(page_bytes).map(|at| Area { at, free: Mutex::new(()) });
        let mut next = || areas.next().expect("there are more areas than two");
        let (flush_list, lru_list) = (next(), next());
        let single_pages = areas.collect();
        let (discards, file, next) = (file.prefers_discards(), SharedSync::new(file), AtomicUsize::new(0));
        Ok(Doublewrite { file, database_id, flush_list, lru_list, single_pages, next, discards, stats })
    }

    /// The area of a lane, once it is free.
    pub(crate) fn take(&self, lane: FlushLane) -> AreaGuard<'_> {
        let area = match lane {
            FlushLane::FlushList => &self.flush_list,
            FlushLane::LruList => &self.lru_list,
            FlushLane::SinglePage => {
                let first = self.next.fetch_add(1, Relaxed);
                let areas = &self.single_pages;
                let mut order = (0..areas.len()).map(|i| &areas[(first + i) % areas.len()]);
                if let Some(taken) = order.find_map(Area::try_take) {
                    return taken;
                }
                &areas[first % areas.len()]
            }
        };
        if let Some(taken) = area.try_take() {
            return taken;
        }
        let since = Instant::now();
        let free = area.free.lock();
        self.stats.doublewrite_waits.inc();
        self.stats.doublewrite_wait_us.add(since.elapsed().as_micros() as u64);
        AreaGuard { at: area.at, _free: free }
    }

    /// Makes directory and copies durable in the area.
    pub(crate) fn write(&self, area: &AreaGuard<'_>, batch: &mut PageBatch) -> Result<()> {
        put_directory(batch, self.database_id);
        let bytes = batch.with_front();
        let next = area_offsets(batch.page_bytes()).find(|at| *at > area.at).unwrap_or(file_bytes(batch.page_bytes()));
        debug_assert!(
            area.at + bytes.len() as u64 <= next,
            "a batch reaches from one area, at {}, to another",
            area.at
        );
        let write = |part: Range<usize>| {
            let offset = area.at + part.start as u64;
            Write { offset, data: &bytes[part], placement: Placement::Doublewrite }
        };
        let writes: Vec<Write<'_>> = parts_to_keep(batch).into_iter().map(write).collect();
        self.file.device().write_batch(&writes)?;
        self.stats.bytes_written_doublewrite.add(writes.iter().map(|write| write.data.len() as u64).sum());
        self.stats.doublewrite_syncs.add(u64::from(self.file.sync()?));
        Ok(())
    }

    /// Says that the pages of the batch in the area are durable in their places (rule 4).
    pub(crate) fn finished(&self, area: &AreaGuard<'_>, batch: &PageBatch) {
        if self.discards {
            let copies = batch.with_front().len() - DIRECTORY_BYTES;
            // Advice: a refusal changes nothing.
            let _ = self.file.device().discard(area.at + DIRECTORY_BYTES as u64, copies as u64);
        }
    }

    /// Releases the places of all copies: no batch is under way, nor will be (rule 4).
    pub(crate) fn release_copies(&self, page_bytes: usize) {
        let copies = area_offsets(page_bytes).map(|area| area + DIRECTORY_BYTES as u64);
        let ends = area_offsets(page_bytes).skip(1).chain([file_bytes(page_bytes)]);
        for (start, end) in copies.zip(ends) {
            let _ = self.file.device().discard(start, end - start);
        }
    }
}

impl Area {
    fn try_take(&self) -> Option<AreaGuard<'_>> {
        Some(AreaGuard { at: self.at, _free: self.free.try_lock()? })
    }
}

/// Of the bytes of a batch, the directory in front and the copies that are needed; adjacent bytes are one part.
fn parts_to_keep(batch: &PageBatch) -> Vec<Range<usize>> {
    let page_bytes = batch.page_bytes();
    let copies = batch.entries().iter().enumerate().filter(|(_, entry)| !entry.recreated_by_redo);
    let copies = copies.map(|(n, _)| DIRECTORY_BYTES + n * page_bytes).map(|at| at..at + page_bytes);
    let mut parts: Vec<Range<usize>> = Vec::with_capacity(batch.entries().len() + 1);
    for part in std::iter::once(0..DIRECTORY_BYTES).chain(copies) {
        match parts.last_mut().filter(|last| last.end == part.start) {
            Some(last) => last.end = part.end,
            None => parts.push(part),
        }
    }
    let are_apart = parts.is_sorted_by(|before, after| before.end < after.start);
    debug_assert!(are_apart, "the parts of a batch overlap: {parts:?}");
    parts
}

fn put_directory(batch: &mut PageBatch, database_id: u64) {
    let (directory, entries) = batch.front_and_entries();
    directory[4..8].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    directory[8..16].copy_from_slice(MAGIC);
    directory[16..24].copy_from_slice(&database_id.to_le_bytes());
    for (entry, slot) in entries.iter().zip(directory[FIXED_BYTES..].chunks_exact_mut(ENTRY_BYTES)) {
        slot[..4].copy_from_slice(&entry.page_no.0.to_le_bytes());
        slot[4..].copy_from_slice(&entry.lsn.0.to_le_bytes());
    }
    let sum = crc32c::crc32c(&directory[4..]);
    directory[..4].copy_from_slice(&sum.to_le_bytes());
    let written = entries.iter().map(|entry| (entry.page_no, entry.lsn));
    debug_assert!(written.eq(parse_directory(directory, database_id)), "a directory is not read as it is written");
}

/// Offsets of the areas: flush list, LRU list, single pages.
fn area_offsets(page_bytes: usize) -> impl Iterator<Item = u64> {
    let bytes = move |pages: usize| (DIRECTORY_BYTES + pages * page_bytes) as u64;
    let singles = (0..SINGLE_PAGES as u64).map(move |n| 2 * bytes(BATCH_PAGES) + n * bytes(1));
    [0, bytes(BATCH_PAGES)].into_iter().chain(singles)
}

/// Bytes of the doublewrite file.
pub(crate) fn file_bytes(page_bytes: usize) -> u64 {
    let last = area_offsets(page_bytes).last().unwrap_or(0);
    last + (DIRECTORY_BYTES + page_bytes) as u64
}

/// Whether the file was ever used: creation leaves zeros.
pub(crate) fn was_used(file: &dyn Device) -> Result<bool> {
    if file.len_bytes()? < DIRECTORY_BYTES as u64 {
        return Ok(false);
    }
    let mut directory = AlignedBuf::zeroed(DIRECTORY_BYTES);
    file.read_at(0, &mut directory)?;
    Ok(directory.iter().any(|byte| *byte != 0))
}

/// A copy that a whole directory lists. Of a page that redo recreates there is none: something else is at that place.
pub(crate) struct Copy {
    /// Offset of the copy.
    pub at: u64,
    pub page_no: PageNo,
    pub lsn: Lsn,
}

/// The copies in the directories of all areas; the copies themselves may be torn. An area without a complete directory
/// has none.
pub(crate) fn listed_copies(file: &dyn Device, header: FileHeader) -> Result<Vec<Copy>> {
    let mut copies = Vec::new();
    let mut directory = AlignedBuf::zeroed(DIRECTORY_BYTES);
    for area in area_offsets(header.page_bytes) {
        if file.len_bytes()? < area + DIRECTORY_BYTES as u64 {
            break;
        }
        file.read_at(area, &mut directory)?;
        for (index, (page_no, lsn)) in parse_directory(&directory, header.database_id).into_iter().enumerate() {
            let at = area + (DIRECTORY_BYTES + index * header.page_bytes) as u64;
            copies.push(Copy { at, page_no, lsn });
        }
    }
    Ok(copies)
}

/// Makes [`was_used`] true, for a database whose pages go through the journal after the areas.
pub(crate) fn show_use(file: &dyn Device, database_id: u64) -> Result<()> {
    if !was_used(file)? {
        let mut empty = PageBatch::new(0, 0);
        put_directory(&mut empty, database_id);
        file.write_at(0, empty.with_front(), Placement::Doublewrite)?;
    }
    Ok(())
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
