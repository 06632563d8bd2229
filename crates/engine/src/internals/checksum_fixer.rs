//! The checksums in the files of a small database, and making them right again after bytes were edited: so that code
//! that runs after a checksum is verified can be tested with any bytes.
//!
//! Rules
//! 1. Where checksums are is found once, in files that are whole. An edit moves nothing.
//! 2. A checksum that is within what another one covers is made first.

use crate::error::Result;
use crate::inspect;
use crate::log::format::{self, BLOCK_BYTES, DATA_BYTES, FRAME_BYTES, LogGeometry, LogHeader, MARK_BYTES};
use crate::page::{PageBytes, header};
use crate::store::in_place::doublewrite;
use crate::store::in_place::journal_scan::{self, DIRECTORY_BYTES};
use crate::store::out_of_place::{codec, format as batches};
use crate::store::{self, FileHeader, StoreKind};
use crate::types::{Lsn, PageNo};
use highwater_storage::MemoryDevice;
use std::ops::Range;

/// Bytes of a page up to the end of its place: what sealing changes.
const PLACE_END: usize = 8;
/// Directories of copies: magic, bytes in front of the entries, bytes of an entry.
const DIRECTORIES: [(&[u8; 8], usize, usize); 2] = [
    (doublewrite::MAGIC, doublewrite::FIXED_BYTES, doublewrite::ENTRY_BYTES),
    (journal_scan::MAGIC, journal_scan::FIXED_BYTES, journal_scan::ENTRY_BYTES),
];

/// The checksum of a range of a file.
#[derive(Clone, Debug)]
enum Checksum {
    Page(PageNo),
    /// It is an image of this page, smaller than the page.
    Image {
        page_no: PageNo,
        page_bytes: usize,
    },
    /// Its first four bytes are the CRC-32C of the others.
    Sum,
    /// A batch of the journal, whose directory lists the checksums of its pages.
    Journal {
        page_bytes: usize,
    },
    /// These bytes at its begin are a summary, at its end is the footer.
    Summary {
        bytes: usize,
    },
    /// It is a header of the log.
    LogHeader,
}

/// The ranges of a database's files that have checksums.
pub struct ChecksumFixer {
    /// The ranges of the data, redo and doublewrite files, in the order in which their checksums are computed.
    stretches: [Vec<(Range<usize>, Checksum)>; 3],
    log: Option<Ring>,
}

impl ChecksumFixer {
    /// The checksums of a database whose files (data, redo, doublewrite) are whole.
    ///
    /// # Errors
    /// [`Error::Incompatible`](crate::Error::Incompatible) if they are not.
    pub fn of(files: [&[u8]; 3]) -> Result<ChecksumFixer> {
        let [data, redo, doublewrite] = files;
        let head = store::file_header(&data[..data.len().min(4096)])?;
        let log_headers = [0, BLOCK_BYTES as usize].map(|at| (at..at + BLOCK_BYTES as usize, Checksum::LogHeader));
        let stretches =
            [checksums_of_data(data, head), log_headers.to_vec(), checksums_of_copies(doublewrite, head.page_bytes)];
        Ok(ChecksumFixer { stretches, log: Ring::of(redo)? })
    }

    /// Makes every checksum of a file (0 data, 1 redo, 2 doublewrite) right that covers one of the edited stretches.
    pub fn fix(&self, file: usize, bytes: &mut [u8], edited: &[Range<usize>]) {
        for (stretch, seal) in &self.stretches[file] {
            let is_edited = edited.iter().any(|range| range.start < stretch.end && stretch.start < range.end);
            if let (true, Some(sealed)) = (is_edited, bytes.get_mut(stretch.clone())) {
                seal.put(sealed);
            }
        }
        if let (1, Some(ring)) = (file, &self.log) {
            ring.fix(bytes);
        }
    }

    /// Appends groups with these payloads to the redo file, as far as they fit.
    pub fn append_redo<'p>(&self, redo: &mut [u8], payloads: impl Iterator<Item = &'p [u8]>) {
        let Some(ring) = &self.log else { return };
        let (mut at, first) = (ring.end, ring.header.checkpoint_lsn.0);
        for payload in payloads.filter(|payload| !payload.is_empty()) {
            let end = at.0 + (FRAME_BYTES + payload.len()) as u64;
            if end - first > ring.geometry.capacity_bytes() {
                return;
            }
            ring.put_group(redo, at, payload);
            at = Lsn(end);
        }
    }
}

impl Checksum {
    fn put(&self, bytes: &mut [u8]) {
        match self {
            Checksum::Page(page_no) if bytes.iter().any(|byte| *byte != 0) => header::stamp(bytes, *page_no),
            Checksum::Page(_) => {}
            Checksum::Sum => put_sum(bytes, 0),
            Checksum::Journal { page_bytes } => {
                let (directory, pages) = bytes.split_at_mut(DIRECTORY_BYTES);
                let entries = directory[journal_scan::FIXED_BYTES..].chunks_exact_mut(journal_scan::ENTRY_BYTES);
                for (page, entry) in pages.chunks_exact(*page_bytes).zip(entries) {
                    entry[12..16].copy_from_slice(&page[..4]);
                }
                put_sum(directory, 0);
            }
            Checksum::Image { page_no, page_bytes } => {
                let mut page = vec![0; *page_bytes];
                if codec::read_image(bytes, &mut page).is_ok() {
                    header::stamp(&mut page, *page_no);
                    codec::put_start(bytes, &page[..PLACE_END]);
                }
            }
            Checksum::Summary { bytes: summary } => batches::reseal_end(bytes, *summary),
            Checksum::LogHeader => {
                let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..]);
                bytes[12..16].copy_from_slice(&sum.to_le_bytes());
            }
        }
    }
}

fn put_sum(bytes: &mut [u8], at: usize) {
    let sum = crc32c::crc32c(&bytes[at + 4..]);
    bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
}

fn checksums_of_data(data: &[u8], head: FileHeader) -> Vec<(Range<usize>, Checksum)> {
    let FileHeader { page_bytes, database_id, kind } = head;
    let page = |at: usize, number: u32| (at..at + page_bytes, Checksum::Page(PageNo(number)));
    let StoreKind::OutOfPlace { segment_bytes } = kind else {
        return (0..data.len() / page_bytes).map(|number| page(number * page_bytes, number as u32)).collect();
    };
    let (segment_bytes, block_bytes) = (segment_bytes as usize, batches::BLOCK_BYTES);
    let mut checksums = vec![page(0, 0), page(page_bytes, 1)];
    checksums.extend(batches::SLOTS_AT.map(|at| (at as usize..at as usize + batches::SLOT_BYTES, Checksum::Sum)));
    for at in (segment_bytes..data.len()).step_by(block_bytes) {
        let Some(block) = data.get(at..at + block_bytes) else { break };
        let identity = batches::identity(database_id, (at / segment_bytes) as u64);
        if let Some((_, entries)) = batches::parse_header(block, identity, at % segment_bytes) {
            let mut image_at = at + batches::header_bytes(entries.len());
            for entry in &entries {
                let range = image_at..image_at + entry.bytes;
                checksums.push(match entry.bytes == page_bytes {
                    true => page(image_at, entry.page_no.0),
                    false => (range, Checksum::Image { page_no: entry.page_no, page_bytes }),
                });
                image_at += entry.bytes;
            }
            checksums.push((at..at + batches::entries_end(entries.len()), Checksum::Sum));
        }
        if let Some(footer) = batches::parse_footer(block, identity) {
            let start = at + block_bytes - footer.end_bytes();
            let bytes = footer.summary(&data[start..]).map_or(0, <[u8]>::len);
            checksums.push((start..at + block_bytes, Checksum::Summary { bytes }));
        }
    }
    checksums
}

fn checksums_of_copies(copies: &[u8], page_bytes: usize) -> Vec<(Range<usize>, Checksum)> {
    let mut checksums = Vec::new();
    for at in (0..copies.len()).step_by(DIRECTORY_BYTES) {
        let Some(block) = copies.get(at..at + DIRECTORY_BYTES) else { break };
        let Some((magic, fixed, entry)) = DIRECTORIES.iter().find(|(magic, ..)| block[8..16] == magic[..]) else {
            continue;
        };
        let count = (block.u32_at(4) as usize).min((DIRECTORY_BYTES - fixed) / entry);
        for copy in 0..count {
            let (number, start) = (block.u32_at(fixed + copy * entry), at + DIRECTORY_BYTES);
            let start = start + copy * page_bytes;
            checksums.push((start..start + page_bytes, Checksum::Page(PageNo(number))));
        }
        let pages = if *magic == journal_scan::MAGIC { count * page_bytes } else { 0 };
        let batch = at..(at + DIRECTORY_BYTES + pages).min(copies.len());
        checksums.push((batch, if pages > 0 { Checksum::Journal { page_bytes } } else { Checksum::Sum }));
    }
    checksums
}

/// The groups of a log from its checkpoint to its end.
struct Ring {
    header: LogHeader,
    geometry: LogGeometry,
    /// Start of each, bytes of its payload.
    groups: Vec<(Lsn, usize)>,
    end: Lsn,
}

impl Ring {
    fn of(redo: &[u8]) -> Result<Option<Ring>> {
        let device = MemoryDevice::holding(redo.to_vec());
        let look = inspect::look(&device)?;
        let newest = look.newest.and_then(|slot| look.headers[slot].as_ref().ok());
        let (Some(header), Some(scan)) = (newest, &look.scan) else { return Ok(None) };
        let mut groups = Vec::new();
        look.each_window(&device, 1 << 20, |window| {
            groups.extend(
                window
                    .groups()
                    .map(|(end, payload)| (Lsn(end.0 - (FRAME_BYTES + payload.len()) as u64), payload.len())),
            );
        })?;
        let geometry = LogGeometry::of(header);
        Ok(Some(Ring { header: *header, geometry, groups, end: scan.end_lsn }))
    }

    /// Hands each piece of a stretch of LSNs, the bytes between two marks, to `each`.
    fn pieces(&self, redo: &mut [u8], start: Lsn, bytes: usize, mut each: impl FnMut(Range<usize>, &mut [u8])) {
        let (mut at, end) = (start.0, start.0 + bytes as u64);
        while at < end {
            let till = (format::block_floor(at) + DATA_BYTES).min(end);
            let from = self.geometry.offset_of(Lsn(at)) as usize;
            let range = (at - start.0) as usize..(till - start.0) as usize;
            if let Some(piece) = redo.get_mut(from..from + range.len()) {
                each(range, piece);
            }
            at = till;
        }
    }

    /// Writes a group and the marks of the blocks that it begins.
    fn put_group(&self, redo: &mut [u8], at: Lsn, payload: &[u8]) {
        let LogHeader { generation, database_id, checkpoint_lsn, .. } = self.header;
        let frame = format::frame(crc32c::crc32c(payload), payload.len() as u32, at, generation);
        let group = [&frame[..], payload].concat();
        let first = format::block_ceil(at.0);
        for block in (first..at.0 + group.len() as u64).step_by(DATA_BYTES as usize) {
            let place = self.geometry.block_place(block).0 as usize;
            format::put_mark(&mut redo[place..], checkpoint_lsn, block, generation, database_id);
        }
        self.pieces(redo, at, group.len(), |range, piece| piece.copy_from_slice(&group[range]));
    }

    /// Makes marks and the checksums of groups right. A group keeps the length that it had.
    fn fix(&self, redo: &mut [u8]) {
        let LogHeader { generation, database_id, checkpoint_lsn, .. } = self.header;
        for block in (format::block_floor(checkpoint_lsn.0)..self.end.0).step_by(DATA_BYTES as usize) {
            let place = self.geometry.block_place(block).0 as usize;
            if let Some(mark) = redo.get_mut(place..place + MARK_BYTES as usize) {
                let durable = Lsn((*mark).u64_at(0));
                format::put_mark(mark, durable, block, generation, database_id);
            }
        }
        let mut payload = Vec::new();
        for &(start, bytes) in &self.groups {
            payload.clear();
            let first = Lsn(start.0 + FRAME_BYTES as u64);
            self.pieces(redo, first, bytes, |_, piece| payload.extend_from_slice(piece));
            let frame = format::frame(crc32c::crc32c(&payload), bytes as u32, start, generation);
            self.pieces(redo, start, FRAME_BYTES, |range, piece| piece.copy_from_slice(&frame[range]));
        }
    }
}

/// Makes the checksum of a page right, as if it had been written to its place.
pub fn stamp_page(page: &mut [u8], page_no: u32) {
    header::stamp(page, PageNo(page_no));
}

/// The frame of a group of redo with this payload.
pub fn frame(payload: &[u8], start_lsn: u64, generation: u64) -> [u8; FRAME_BYTES] {
    format::frame(crc32c::crc32c(payload), payload.len() as u32, Lsn(start_lsn), generation)
}

/// The CRC-32C of bytes.
pub fn sum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::deterministic::{DeterministicDb, OpenOverrides};
    use crate::testing::small_options;
    use crate::{Schema, Type, values};
    use highwater_storage::StorageSet;
    use std::slice::from_ref;
    use std::sync::Arc;

    /// Data, redo and doublewrite of a database that stopped without closing.
    fn stopped() -> [Vec<u8>; 3] {
        let storage = StorageSet::memory();
        let db =
            DeterministicDb::open(storage.clone(), small_options(), &OpenOverrides::default(), Arc::default()).unwrap();
        let schema = Schema::new().column("id", Type::U64).primary_key(&["id"]);
        let table = db.database().create_table("t", schema).unwrap();
        let mut txn = db.database().begin().unwrap();
        txn.insert(&table, &values![1]).unwrap();
        txn.commit().unwrap();
        storage.memory_devices().unwrap().each_ref().map(MemoryDevice::image)
    }

    fn groups(redo: &[u8]) -> u64 {
        inspect::look(&MemoryDevice::holding(redo.to_vec())).unwrap().scan.unwrap().groups
    }

    #[test]
    fn edited_pages_verify_again() {
        let [mut data, redo, copies] = stopped();
        let checksums = ChecksumFixer::of([&data, &redo, &copies]).unwrap();
        let verifies = |data: &[u8]| header::verify(&data[4096..8192], PageNo(1)).is_ok();
        data[4096 + 100] ^= 1;
        assert!(!verifies(&data));
        checksums.fix(0, &mut data, from_ref(&(4000..4090)));
        assert!(!verifies(&data), "another page was edited");
        checksums.fix(0, &mut data, from_ref(&(4196..4197)));
        assert!(verifies(&data));
    }

    #[test]
    fn edited_and_appended_redo_is_found() {
        let [data, mut redo, copies] = stopped();
        let checksums = ChecksumFixer::of([&data, &redo, &copies]).unwrap();
        let (before, first) = (groups(&redo), checksums.log.as_ref().unwrap().groups[0].0);
        let place = checksums.log.as_ref().unwrap().geometry.offset_of(first) as usize + FRAME_BYTES;
        redo[place] ^= 0x40;
        assert_eq!(groups(&redo), 0);
        checksums.fix(1, &mut redo, from_ref(&(place..place + 1)));
        assert_eq!(groups(&redo), before);
        let long = vec![7; 10_000];
        checksums.append_redo(&mut redo, [&long[..], &[], &[1, 2]].into_iter());
        assert_eq!(groups(&redo), before + 2);
    }
}
