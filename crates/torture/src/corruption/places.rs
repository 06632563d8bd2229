//! The role of each byte of the files, which determines whether damage of it must be reported.

use super::damage::damaged;
use super::database::{File, Files, Left, Small};
use highwater::config::Doublewrite;
use highwater::inspect::{self, RawFile, StoreKind};
use highwater::{Database, PageNo};
use highwater_bench::Result;
use highwater_storage::MemoryDevice;
use std::ops::Range;

/// Bytes of a page, a block of the log and a directory of copies.
pub(super) const BLOCK: u64 = 4096;
/// Offset of the log's ring, and size of the mark at the start of each of its blocks.
const RING_START: u64 = 2 * BLOCK;
const MARK_BYTES: u64 = 16;

/// The role of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ByteRole {
    /// A page in use (its number) that recovery does not rewrite: damage must be reported with this number.
    Page(u32),
    /// Redo between the checkpoint and the log's end: damage must be reported, or cost the last commits (rule 3 of the
    /// module). The LSN.
    Redo(u64),
    /// The compressed image of a page in use that recovery does not rewrite: damage must be reported with this number,
    /// or decompress to the same page.
    Compressed(u32),
    /// A page that is not in use, or was never written; the zeros after a compressed image.
    Unused,
    /// A page (its number) that recovery repairs, rewrites, or can make from an older copy and the redo.
    Recovered(u32),
    /// One of the log's two headers: the other one leads to the same redo, or shows that this one is missing.
    LogHeader,
    /// The mark of a block of the log: other marks have the same information.
    LogMark,
    /// Redo before the checkpoint or beyond the end.
    LogRemains,
    /// The copy of a page that is whole in its place, or a directory of such copies.
    Copy,
    /// The copy of the torn page, or the directory that lists it: damage must be reported with the page.
    NeededCopy(u32),
    /// Of a store out of place: all bytes except images in use and the fixed fields of page 0. An opening finds the
    /// images by them, and reports a missing image.
    Directory,
    /// The fixed fields at the start of page 0, as created: damage must be reported.
    Fixed,
}

impl ByteRole {
    /// Whether damage has to be reported.
    pub fn is_live(self) -> bool {
        matches!(self, ByteRole::Page(_) | ByteRole::NeededCopy(_) | ByteRole::Fixed)
    }

    /// Its name, for tables.
    pub fn name(self) -> &'static str {
        match self {
            ByteRole::Page(_) => "page in use",
            ByteRole::Redo(_) => "redo since the checkpoint",
            ByteRole::Compressed(_) => "compressed page in use",
            ByteRole::Unused => "page not in use",
            ByteRole::Recovered(_) => "page that recovery rewrites",
            ByteRole::LogHeader => "one of two log headers",
            ByteRole::LogMark => "mark of a log block",
            ByteRole::LogRemains => "redo not needed",
            ByteRole::Copy => "copy not needed",
            ByteRole::NeededCopy(_) => "copy of the torn page",
            ByteRole::Directory => "directory of images",
            ByteRole::Fixed => "fixed fields of page 0",
        }
    }
}

/// A range of a file.
struct Stretch {
    bytes: Range<u64>,
    place: ByteRole,
}

/// The places of one database.
pub(super) struct Places {
    /// Ranges of the data file in order; `between` is the role of all other bytes.
    data: Vec<Stretch>,
    between: ByteRole,
    /// LSNs between checkpoint and end.
    redo: Range<u64>,
    ring_blocks: u64,
    /// Ranges of the doublewrite file that the torn page needs.
    needed: Vec<Stretch>,
}

impl Places {
    /// Determines the roles of the bytes of these files.
    ///
    /// # Errors
    /// The engine's.
    pub(super) fn of(small: &Small) -> Result<Places> {
        let recovered = recovered(small)?;
        let (before, after) = (MemoryDevice::holding(small.files[0].to_vec()), MemoryDevice::holding(recovered));
        let (before, after) = (RawFile::open(&before)?, RawFile::open(&after)?);
        let is_in_place = before.header().as_ref().is_ok_and(|header| header.kind == StoreKind::InPlace);
        let look = inspect::look(&MemoryDevice::holding(small.files[1].to_vec()))?;
        let redo = look.scan.as_ref().map_or(0..0, |scan| scan.checkpoint_lsn.0..scan.end_lsn.0);
        let is_journaled = small.options.doublewrite == Doublewrite::Journal && small.left == Left::Stopped;
        let mut data = Vec::new();
        for number in 0..before.page_count() as u32 {
            let page = PageNo(number);
            let Some(place) = before.place(page)? else { continue };
            let is_compressed = place.bytes < BLOCK;
            let mut bytes = place.offset..place.offset + place.bytes;
            let (was, is) = (before.page(page).unwrap_or_default(), after.page(page).unwrap_or_default());
            let is_logged = lsn_of(&was) > redo.start;
            let place = match () {
                () if after.owner(page).is_none() || was.iter().all(|byte| *byte == 0) => ByteRole::Unused,
                // Of page 0 recovery changes the mark of the log's generation, after it has read it. Out of place the
                // image before the last one is as good.
                () if (number != 0 || !is_in_place) && (was != is || is_logged) => ByteRole::Recovered(number),
                () if is_journaled && is_copied(&small.files, &was) => ByteRole::Recovered(number),
                () if is_compressed => {
                    bytes.end = bytes.start + image_bytes(&small.files[0][bytes.start as usize..]);
                    ByteRole::Compressed(number)
                }
                () => ByteRole::Page(number),
            };
            if place == ByteRole::Unused && !is_in_place {
                continue;
            }
            data.push(Stretch { bytes, place });
        }
        if !is_in_place {
            data.push(Stretch { bytes: 32..43, place: ByteRole::Fixed });
            data.push(Stretch { bytes: 44..56, place: ByteRole::Fixed });
        }
        data.sort_unstable_by_key(|stretch| stretch.bytes.start);
        let between = if is_in_place { ByteRole::Unused } else { ByteRole::Directory };
        let needed = small.torn.map_or(Vec::new(), |page| needed(&small.files, page));
        Ok(Places { data, between, redo, ring_blocks: look.ring_bytes / BLOCK, needed })
    }

    pub(super) fn place(&self, file: File, offset: u64) -> ByteRole {
        let find = |stretches: &[Stretch]| stretches.iter().find(|s| s.bytes.contains(&offset)).map(|s| s.place);
        match file {
            File::Data => find(&self.data).unwrap_or(self.between),
            File::Doublewrite => find(&self.needed).unwrap_or(ByteRole::Copy),
            File::Redo if offset < RING_START => ByteRole::LogHeader,
            File::Redo => self.redo_place(offset - RING_START),
        }
    }

    fn redo_place(&self, in_ring: u64) -> ByteRole {
        let (block, at) = (in_ring / BLOCK, in_ring % BLOCK);
        if at < MARK_BYTES {
            return ByteRole::LogMark;
        }
        let data_bytes = BLOCK - MARK_BYTES;
        let lap = self.ring_blocks * data_bytes;
        let in_lap = block * data_bytes + at - MARK_BYTES;
        let lsn = self.redo.start / lap * lap + in_lap;
        let lsn = if lsn < self.redo.start { lsn + lap } else { lsn };
        if self.redo.contains(&lsn) { ByteRole::Redo(lsn) } else { ByteRole::LogRemains }
    }
}

/// Bytes of a compressed image: codec, length and compressed bytes.
fn image_bytes(image: &[u8]) -> u64 {
    4 + u64::from(u32::from_le_bytes([image[1], image[2], image[3], 0]))
}

/// Whether the doublewrite file has a copy of the page.
fn is_copied(files: &Files, page: &[u8]) -> bool {
    files[2].chunks_exact(BLOCK as usize).any(|copy| copy == page)
}

fn lsn_of(page: &[u8]) -> u64 {
    page.get(8..16).map_or(0, |lsn| u64::from_le_bytes(std::array::from_fn(|i| lsn[i])))
}

/// The data file after an opening.
fn recovered(small: &Small) -> Result<Vec<u8>> {
    let set = damaged(&small.files, &[]).map_err(highwater::Error::from)?;
    let data = set.data.clone();
    let db = Database::open_storage_idle(set, small.options.clone())?;
    // It flushes what recovery and rollbacks changed.
    db.check()?;
    if small.left == Left::Stopped {
        db.close()?;
    }
    let mut bytes = vec![0; data.len_bytes().map_err(highwater::Error::from)? as usize];
    data.read_at(0, &mut bytes).map_err(highwater::Error::from)?;
    Ok(bytes)
}

/// The copy of a page in the doublewrite file, and the directory at the start of its area.
fn needed(files: &Files, page: u32) -> Vec<Stretch> {
    let place = ByteRole::NeededCopy(page);
    let mut directory = 0;
    let mut needed = Vec::new();
    for (n, block) in files[2].chunks_exact(BLOCK as usize).enumerate() {
        let at = n as u64 * BLOCK;
        if block[8..16] == highwater_storage::mark::DOUBLEWRITE {
            directory = at;
        } else if block[4..8] == page.to_le_bytes() && block[16] != 0 && directory != at {
            needed.push(Stretch { bytes: at..at + BLOCK, place });
            needed.push(Stretch { bytes: directory..directory + BLOCK, place });
        }
    }
    // With several copies, any of them may be the one.
    if needed.len() == 2 { needed } else { Vec::new() }
}
