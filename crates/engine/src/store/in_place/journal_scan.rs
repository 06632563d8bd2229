//! The journal on the device: its place, the layout of a batch, and the scan for batches.
//!
//! The journal is in the doublewrite file, after the areas. It is divided into *segments* of the size of the largest
//! batch. A batch is a directory of one block and the images of its pages, within one segment. Batches fill a segment
//! without gaps, segments are used in the order of the file, and after the last one the first. The places of segments
//! depend on the page size alone, so the size of a journal can change.
//!
//! Directory: checksum u32 (CRC-32C of the other bytes of the block), count u32, magic @8, database id u64 @16, number
//! of the batch u64 @24, *retired* u64 @32 (all batches up to this number were durable in their places when this one
//! was written), its own offset in the file u64 @40; then per page: number u32, LSN u64, checksum u32.
//!
//! Rules
//! 1. Numbers grow by one, except at an opening, when everything before is retired. A batch counts if it begins a
//!    segment, or follows a batch that counts in the same segment and has the next number. So bytes of an earlier lap
//!    never count as a batch of this one.
//! 2. Images of a listed batch may be torn: an image counts if it verifies and has the listed LSN and checksum. The
//!    checksum is needed because an earlier lap may have left a whole page with the same LSN there: openings and closes
//!    change page 0 without redo.
//! 3. Batches up to the highest *retired*, or up to the one that the log's header says is not needed any more, are
//!    dead. The image of a page with the highest number among the others is the newest version of the page that was
//!    ever written to its place, or is newer: while the journal is in use every page goes through it, and what is
//!    overwritten in it first is oldest. So it may replace any page in place that is older, or damaged.
//! 4. If the newest batch here is older than the one that the log's header needs, pages in place may be old although
//!    they verify, and the opening is refused. It is also refused if a batch is missing between the found ones, or if
//!    an image of a needed batch is damaged and its place is older. (A place without a page was discarded later, or is
//!    new: the reader of the page gets the error. The oldest segment may have been overwritten by a batch that a crash
//!    tore: its images are durable in their places.)

use crate::error::{Error, Result};
use crate::page;
use crate::store::batch::{BatchEntry, FRONT_BYTES};
use crate::store::{BATCH_PAGES, FileHeader};
use crate::types::{Lsn, PageNo};
use highwater_storage::{AlignedBuf, Device};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const DIRECTORY_BYTES: usize = FRONT_BYTES;
/// Stands at byte 8 of a directory.
pub(crate) const MAGIC: &[u8; 8] = b"HWJRNL01";
/// Bytes in front of a directory's entries.
pub(crate) const FIXED_BYTES: usize = 48;
pub(crate) const ENTRY_BYTES: usize = 16;
const _: () = assert!(FIXED_BYTES + BATCH_PAGES * ENTRY_BYTES <= DIRECTORY_BYTES);
/// Segments of the smallest journal: the newest durable batch is never overwritten.
const MIN_SEGMENTS: u64 = 3;
/// The greatest number of a batch: counting on never overflows.
const MAX: u64 = 1 << 62;

/// The layout of the journal in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalLayout {
    page_bytes: usize,
    start: u64,
}

impl JournalLayout {
    /// Of a database with pages of this size.
    pub(crate) fn new(page_bytes: usize) -> JournalLayout {
        JournalLayout {
            page_bytes,
            start: super::doublewrite::file_bytes(page_bytes).next_multiple_of(DIRECTORY_BYTES as u64),
        }
    }

    pub(crate) fn batch_bytes(self, pages: usize) -> u64 {
        (DIRECTORY_BYTES + pages * self.page_bytes) as u64
    }

    /// Bytes of a segment: the largest batch.
    pub(crate) fn segment_bytes(self) -> u64 {
        self.batch_bytes(BATCH_PAGES)
    }

    /// Segments of a journal of about this size.
    pub(crate) fn segments_of(self, journal_bytes: u64) -> u64 {
        (journal_bytes / self.segment_bytes()).max(MIN_SEGMENTS)
    }

    /// Offset of a segment.
    pub(crate) fn offset_of(self, segment: u64) -> u64 {
        self.start + segment * self.segment_bytes()
    }

    /// Segments that are in a file of this length.
    fn segments_in(self, file_bytes: u64) -> u64 {
        file_bytes.saturating_sub(self.start) / self.segment_bytes()
    }
}

/// The journal's mark in the log's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The newest batch that was durable.
    pub newest: u64,
    /// Whether pages of it, or of one before it, may be old in their places.
    pub is_needed: bool,
}

impl Mark {
    /// As the log's header keeps it.
    pub(crate) fn encode(self) -> u64 {
        self.newest << 1 | u64::from(self.is_needed)
    }

    pub(crate) fn decode(mark: u64) -> Mark {
        Mark { newest: mark >> 1, is_needed: mark & 1 == 1 }
    }
}

/// Fields of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalDirectory {
    pub number: u64,
    pub retired: u64,
    pub offset: u64,
}

/// Writes the directory of a batch.
pub(crate) fn put_directory(block: &mut [u8], entries: &[BatchEntry], database_id: u64, directory: JournalDirectory) {
    debug_assert!(entries.len() <= BATCH_PAGES, "a batch of {} pages", entries.len());
    debug_assert!(directory.retired < directory.number, "batch {} retires itself", directory.number);
    block.fill(0);
    block[4..8].copy_from_slice(&(entries.len() as u32).to_le_bytes());
    block[8..16].copy_from_slice(MAGIC);
    let numbers = [database_id, directory.number, directory.retired, directory.offset];
    for (place, number) in block[16..FIXED_BYTES].chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    for (entry, slot) in entries.iter().zip(block[FIXED_BYTES..].chunks_exact_mut(ENTRY_BYTES)) {
        slot[..4].copy_from_slice(&entry.page_no.0.to_le_bytes());
        slot[4..12].copy_from_slice(&entry.lsn.0.to_le_bytes());
        slot[12..].copy_from_slice(&entry.checksum.to_le_bytes());
    }
    let sum = crc32c::crc32c(&block[4..]);
    block[..4].copy_from_slice(&sum.to_le_bytes());
}

/// The directory at this offset and the images it lists, if it is whole and belongs there.
fn parse_directory(
    block: &[u8],
    layout: JournalLayout,
    database_id: u64,
    offset: u64,
) -> Option<(JournalDirectory, Vec<(PageNo, JournalImage)>)> {
    let u32_at = |at: usize| u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"));
    let u64_at = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"));
    let count = u32_at(4) as usize;
    let directory = JournalDirectory { number: u64_at(24), retired: u64_at(32), offset: u64_at(40) };
    let is_whole = block[8..16] == *MAGIC
        && u32_at(0) == crc32c::crc32c(&block[4..])
        && u64_at(16) == database_id
        && directory.offset == offset
        && directory.retired < directory.number
        && directory.number <= MAX
        && count <= BATCH_PAGES;
    let image = |i: usize| {
        let entry = FIXED_BYTES + i * ENTRY_BYTES;
        let (lsn, checksum) = (Lsn(u64_at(entry + 4)), u32_at(entry + 12));
        let image = JournalImage { at: offset + layout.batch_bytes(i), lsn, checksum, batch: directory.number };
        (PageNo(u32_at(entry)), image)
    };
    is_whole.then(|| (directory, (0..count).map(image).collect()))
}

/// An image that a whole directory lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalImage {
    /// Offset in the file.
    pub at: u64,
    pub lsn: Lsn,
    checksum: u32,
    /// Number of its batch.
    pub batch: u64,
}

/// The newest image of a page.
pub(crate) struct NewestImage {
    /// Whether the journal has a whole image.
    pub is_whole: bool,
    /// The place must have a version of this LSN at least then: newer images that are needed are damaged (rule 4).
    pub least: Lsn,
}

/// The batches that were found.
#[derive(Debug, Default)]
pub(crate) struct ScannedJournal {
    /// Number of the newest batch, 0 if there never was one.
    pub newest: u64,
    pub segment: u64,
    /// Images of batches that are not dead, the newest of each page first.
    pub live: BTreeMap<PageNo, Vec<JournalImage>>,
    /// The newest batch that is needed.
    needed: u64,
}

impl ScannedJournal {
    /// Finds the batches in the file, of which the log's header says `mark`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a batch that is needed is not there (rule 4), an I/O error.
    pub(crate) fn read(file: &dyn Device, header: FileHeader, mark: Mark) -> Result<ScannedJournal> {
        let layout = JournalLayout::new(header.page_bytes);
        let (mut scanned, mut retired, mut images) = (ScannedJournal::default(), 0, Vec::new());
        for segment in 0..layout.segments_in(file.len_bytes()?) {
            let last = read_segment(file, layout, header.database_id, segment, &mut images)?;
            if let Some(last) = last.filter(|last| last.number > scanned.newest) {
                (scanned.newest, scanned.segment) = (last.number, segment);
            }
            retired = last.map_or(0, |last| last.retired).max(retired);
        }
        if scanned.newest < mark.newest {
            if mark.is_needed {
                return Err(lost(&file.name(), scanned.newest, mark.newest));
            }
            // Of another age: nothing in it is needed, and its numbers are not used again.
            return Ok(ScannedJournal { newest: mark.newest, ..scanned });
        }
        let dead = if mark.is_needed { retired } else { retired.max(mark.newest) };
        scanned.needed = mark.newest;
        let batches: BTreeSet<u64> =
            images.iter().map(|(_, image)| image.batch).filter(|batch| *batch > dead).collect();
        let follows = |(batch, next): (&u64, &u64)| *next == *batch + 1 || *batch >= mark.newest;
        if let Some((batch, _)) = batches.iter().zip(batches.iter().skip(1)).find(|pair| !follows(*pair)) {
            return Err(missing(&file.name(), batch + 1));
        }
        for (page_no, image) in images.into_iter().filter(|(_, image)| image.batch > dead) {
            scanned.live.entry(page_no).or_default().push(image);
        }
        scanned.live.values_mut().for_each(|images| images.sort_by_key(|image| std::cmp::Reverse(image.batch)));
        Ok(scanned)
    }

    /// The newest LSN of any image that is live, and its page.
    pub(crate) fn newest_lsn(&self) -> Option<(PageNo, Lsn)> {
        let lsns = self.live.iter().flat_map(|(page_no, images)| images.iter().map(|image| (*page_no, image.lsn)));
        lsns.max_by_key(|(_, lsn)| *lsn)
    }

    /// Reads the newest whole image of the page into `image` (rule 2).
    pub(crate) fn image(&self, file: &dyn Device, page_no: PageNo, image: &mut [u8]) -> Result<NewestImage> {
        let mut found = NewestImage { is_whole: false, least: Lsn(0) };
        for listed in self.live.get(&page_no).into_iter().flatten() {
            file.read_at(listed.at, image)?;
            let is_listed = (page::header::lsn(image), page::header::checksum(image)) == (listed.lsn, listed.checksum);
            if is_listed && page::header::verify(image, page_no).is_ok() {
                return Ok(NewestImage { is_whole: true, ..found });
            }
            if listed.batch <= self.needed {
                found.least = found.least.max(listed.lsn);
            }
        }
        Ok(found)
    }
}

/// Whether the image belongs in the place that holds `place` (rule 3). Of equal LSNs the image is the newer one: a page
/// may change without a new LSN.
pub(crate) fn replaces(image: &[u8], place: &[u8], page_no: PageNo) -> bool {
    let [of_image, of_place] = [image, place].map(page::header::lsn);
    page::header::verify(place, page_no).is_err() || of_place < of_image || (of_place == of_image && place != image)
}

/// Adds the images of the batches in a segment; the last batch in it (rule 1).
fn read_segment(
    file: &dyn Device,
    layout: JournalLayout,
    database_id: u64,
    segment: u64,
    images: &mut Vec<(PageNo, JournalImage)>,
) -> Result<Option<JournalDirectory>> {
    let mut block = AlignedBuf::zeroed(DIRECTORY_BYTES);
    let (mut at, end) = (layout.offset_of(segment), layout.offset_of(segment + 1));
    let mut last: Option<JournalDirectory> = None;
    while at + DIRECTORY_BYTES as u64 <= end {
        file.read_at(at, &mut block)?;
        let Some((directory, listed)) = parse_directory(&block, layout, database_id, at) else { break };
        let next = at + layout.batch_bytes(listed.len());
        if next > end || last.is_some_and(|last| directory.number != last.number + 1) {
            break;
        }
        images.extend(listed);
        (at, last) = (next, Some(directory));
    }
    Ok(last)
}

fn missing(name: &str, batch: u64) -> Error {
    Error::Corrupt(format!(
        "the journal of pages in {name} is damaged: batch {batch} is missing, and with it the newest versions of some \
         pages may be; restore a backup of all files"
    ))
}

fn lost(name: &str, found: u64, needed: u64) -> Error {
    let found = if found == 0 { "holds none".to_string() } else { format!("ends with batch {found}") };
    Error::Corrupt(format!(
        "the journal of pages in {name} is needed up to batch {needed}, but {found}: the file was lost or cut short, \
         or it is an older version of itself; put back the one that belongs to data and redo, or all three \
         files of one backup"
    ))
}
