//! The format of the data file of a store out of place.
//!
//! ```text
//! file     [ region 0 ][ segment 1 ][ segment 2 ] ...      all of segment_bytes
//! region 0 [ page 0 and 1 as created ][ 32 KiB: slot A ][ 36 KiB: slot B ][ nothing ]
//! segment  [ batch ][ batch ] ... [ zeros ][ summary ... footer: last 136 bytes ]   batches and summary begin at
//!          multiples of 4 KiB
//! batch    [ header, 128 n bytes ][ image ][ image ] ... [ zeros to 4 KiB ]
//! header   crc32c u32, magic u32, identity u64, life u64, sequence u64, durable u64, bytes u32, count u16,
//!          group u8, zero u8, tails; then for each image: page u32, units u8, sum u24, LSN u64
//! summary  for each batch: offset u32, count u16, group u8, zero u8, sequence u64; then its images as in its header
//! footer   crc32c u32, magic u32, identity u64, life u64, sequence u64 of the last batch, durable u64,
//!          bytes u32 and crc32c u32 of the summary, state u32 (1 sealed, 2 free), sequence u64 of the last batch
//!          but one, tails
//! tails    for each of 6 groups: segment u32, sequence u64
//! slot     crc32c u32, magic u32, database id u64, sequence u64, pages u32, segment u32 and sequence u64 of a cut
//! image    a page as it is, or smaller: codec u8, length u24, that many bytes, zeros ([`super::codec`])
//! ```
//!
//! Terms
//! - *unit*: 128 bytes. An image takes whole units. (With units of 512 bytes TPC-C wrote 6 % more, compressed with
//!   zstd.)
//! - *sum* of an image: the low 24 bits of its CRC-32C. A write that a power cut tore may leave, where an image should
//!   be, one of an earlier life of the segment, whole and of the same page and LSN: page 0 changes at openings and
//!   closings without redo, so without another LSN.
//! - *sequence*: a number that every batch has, greater than that of all batches begun before it.
//! - *identity* of a segment: the database's id, mixed with the segment's number; in a header also with where in the
//!   segment the batch begins. A device that reads from another place than it was asked to, or wrote to another one,
//!   returns nothing that verifies as the expected bytes.
//! - *life* of a segment: the sequence of its first batch since it was last free. Headers of another life are remains.
//! - *tail* of a group: its newest durable batch. A header or footer names the tails of its moment: so a batch whose
//!   header is damaged is missed, though its segment is not sealed and no header is left in it.
//! - *summary*: what all headers of a sealed segment say, so that opening reads one place of it and not every header.
//!
//! All integers are little-endian. A checksum covers the fields that follow it.

use super::lifetime::GROUPS;
use crate::types::{Lsn, PageNo};
use highwater_storage::ALIGNMENT_BYTES;

/// The grain of images.
pub(crate) const UNIT_BYTES: usize = 128;
const _: () = assert!(16384 / UNIT_BYTES <= u8::MAX as usize, "the units of the largest page fit a byte");
/// The grain of batches; a header is within it.
pub(crate) const BLOCK_BYTES: usize = ALIGNMENT_BYTES;
/// Most images in a batch: those whose entries fit a header within [`BLOCK_BYTES`].
pub(crate) const MAX_IMAGES: usize = (BLOCK_BYTES - FIXED_BYTES) / ENTRY_BYTES;
/// In place of the page number: the image counts for no page, since a crash tore it.
pub(crate) const VOID: PageNo = PageNo(u32::MAX);
/// Offsets of the slots; page 0 and 1 are before them.
pub(crate) const SLOTS_AT: [u64; 2] = [32 << 10, 36 << 10];

const TAILS_AT: usize = 48;
const TAIL_BYTES: usize = 12;
const FIXED_BYTES: usize = TAILS_AT + GROUPS * TAIL_BYTES;
const ENTRY_BYTES: usize = 16;
const BATCH_MAGIC: u32 = u32::from_le_bytes(*b"hwBa");
const SLOT_MAGIC: u32 = u32::from_le_bytes(*b"hwSl");
pub(crate) const SLOT_BYTES: usize = 40;
const FOOTER_MAGIC: u32 = u32::from_le_bytes(*b"hwFo");
const FOOTER_TAILS_AT: usize = 60;
const FOOTER_BYTES: usize = FOOTER_TAILS_AT + GROUPS * TAIL_BYTES;
/// Bytes of a footer in the last block.
const FOOTER_ROOM: usize = 136;
const _: () = assert!(FOOTER_BYTES <= FOOTER_ROOM && FOOTER_ROOM <= 512, "no power cut tears a footer");
/// The greatest sequence: counting on never overflows.
const MAX: u64 = 1 << 62;
const SEALED: u32 = 1;
const FREE: u32 = 2;

/// The newest durable batch of a group; segment 0: it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    pub segment: u32,
    pub sequence: u64,
}

/// The tails of all groups.
pub(crate) type GroupTails = [Tail; GROUPS];

/// The header of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    /// Life of its segment.
    pub life: u64,
    /// Its own.
    pub sequence: u64,
    /// Every batch of this sequence or a lower one was durable when this header was written.
    pub durable: u64,
    /// Its length, header and zeros included.
    pub bytes: usize,
    /// Group of the pages' lifetimes.
    pub group: u8,
    pub tails: GroupTails,
}

/// An image as a header lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageEntry {
    pub page_no: PageNo,
    /// Bytes that it takes, whole units.
    pub bytes: usize,
    /// Its [`sum_of`].
    pub sum: u32,
    /// LSN of the page in it.
    pub lsn: Lsn,
}

pub(crate) fn sum_of(image: &[u8]) -> u32 {
    crc32c::crc32c(image) & 0xFF_FFFF
}

pub(crate) fn identity(database_id: u64, segment: u64) -> u64 {
    database_id ^ segment.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The identity in the header of a batch that begins at `at` in the segment with this identity.
fn identity_at(identity: u64, at: usize) -> u64 {
    identity ^ (at as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// Bytes of the header of a batch of `images`.
pub(crate) fn header_bytes(images: usize) -> usize {
    entries_end(images).next_multiple_of(UNIT_BYTES)
}

/// Bytes of a header of `images` without the zeros after its entries: what its checksum covers.
pub(crate) fn entries_end(images: usize) -> usize {
    FIXED_BYTES + images * ENTRY_BYTES
}

/// Bytes of a batch of `images` that take `image_bytes` together.
pub(crate) fn batch_bytes(images: usize, image_bytes: usize) -> usize {
    (header_bytes(images) + image_bytes).next_multiple_of(BLOCK_BYTES)
}

/// Writes the header to the start of a batch, which begins at `at` in the segment of this identity.
pub(crate) fn put_header(batch: &mut [u8], identity: u64, at: usize, header: &BatchHeader, entries: &[ImageEntry]) {
    for (entry, slot) in entries.iter().zip(batch[FIXED_BYTES..BLOCK_BYTES].chunks_exact_mut(ENTRY_BYTES)) {
        slot.copy_from_slice(&entry.encode());
    }
    batch[4..8].copy_from_slice(&BATCH_MAGIC.to_le_bytes());
    let identity = identity_at(identity, at);
    for (at, value) in [(8, identity), (16, header.life), (24, header.sequence), (32, header.durable)] {
        batch[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    batch[40..44].copy_from_slice(&(header.bytes as u32).to_le_bytes());
    batch[44..46].copy_from_slice(&(entries.len() as u16).to_le_bytes());
    batch[46..48].copy_from_slice(&[header.group, 0]);
    put_tails(&mut batch[TAILS_AT..FIXED_BYTES], &header.tails);
    seal(&mut batch[..FIXED_BYTES + entries.len() * ENTRY_BYTES]);
}

fn put_tails(bytes: &mut [u8], tails: &GroupTails) {
    for (tail, slot) in tails.iter().zip(bytes.chunks_exact_mut(TAIL_BYTES)) {
        slot[..4].copy_from_slice(&tail.segment.to_le_bytes());
        slot[4..].copy_from_slice(&tail.sequence.to_le_bytes());
    }
}

fn tails_at(bytes: &[u8], at: usize) -> GroupTails {
    std::array::from_fn(|group| {
        let at = at + group * TAIL_BYTES;
        Tail { segment: u32_at(bytes, at), sequence: u64_at(bytes, at + 4) }
    })
}

impl ImageEntry {
    fn encode(&self) -> [u8; ENTRY_BYTES] {
        let (units, rest) = (self.bytes / UNIT_BYTES, self.bytes % UNIT_BYTES);
        debug_assert!(units <= usize::from(u8::MAX) && rest == 0, "an image of {} bytes", self.bytes);
        debug_assert!(self.sum < 1 << 24, "the sum {:#x} has more than 24 bits", self.sum);
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&self.page_no.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&(self.sum << 8 | (self.bytes / UNIT_BYTES) as u32).to_le_bytes());
        bytes[8..].copy_from_slice(&self.lsn.0.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> ImageEntry {
        let bytes_of = usize::from(bytes[4]) * UNIT_BYTES;
        let sum = u32_at(bytes, 4) >> 8;
        ImageEntry { page_no: PageNo(u32_at(bytes, 0)), bytes: bytes_of, sum, lsn: Lsn(u64_at(bytes, 8)) }
    }
}

/// Reads the header in the block at `at` of a segment and the images that it lists; `None` if it does not belong there.
pub(crate) fn parse_header(block: &[u8], identity: u64, at: usize) -> Option<(BatchHeader, Vec<ImageEntry>)> {
    let count = usize::from(u16_at(block, 44));
    let is_ours = u32_at(block, 4) == BATCH_MAGIC && u64_at(block, 8) == identity_at(identity, at);
    if !is_ours || count > MAX_IMAGES || !is_sealed(&block[..FIXED_BYTES + count * ENTRY_BYTES]) {
        return None;
    }
    let entries: Vec<ImageEntry> =
        block[FIXED_BYTES..].chunks_exact(ENTRY_BYTES).take(count).map(ImageEntry::decode).collect();
    let header = BatchHeader {
        life: u64_at(block, 16),
        sequence: u64_at(block, 24),
        durable: u64_at(block, 32),
        bytes: u32_at(block, 40) as usize,
        group: block[46],
        tails: tails_at(block, TAILS_AT),
    };
    // A header that contradicts itself, or whose numbers no device could reach, was not written by `put_header`.
    let images: usize = entries.iter().map(|entry| entry.bytes).sum();
    let are_in_order = header.durable < header.sequence && header.sequence <= MAX && header.life <= MAX;
    let is_possible = are_in_order && header.bytes == batch_bytes(count, images);
    is_possible.then_some((header, entries))
}

/// A batch as a summary lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Offset in its segment.
    pub at: usize,
    pub sequence: u64,
    pub group: u8,
    pub entries: Vec<ImageEntry>,
}

/// The footer of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub life: u64,
    /// Sequence of the last batch; of a free segment that of the store's newest batch when it became free.
    pub newest: u64,
    /// Sequence of the last batch but one; 0 if there is none.
    pub before: u64,
    /// As in a batch's header.
    pub durable: u64,
    /// Whether nothing of this life, or of one before it, counts any more.
    pub is_free: bool,
    pub tails: GroupTails,
    summary_bytes: u32,
    summary_sum: u32,
}

pub(crate) fn add_to_summary(summary: &mut Vec<u8>, batch: &Listed) {
    debug_assert!(batch.entries.len() <= MAX_IMAGES, "a batch of {} images", batch.entries.len());
    summary.extend_from_slice(&(batch.at as u32).to_le_bytes());
    summary.extend_from_slice(&(batch.entries.len() as u16).to_le_bytes());
    summary.extend_from_slice(&[batch.group, 0]);
    summary.extend_from_slice(&batch.sequence.to_le_bytes());
    batch.entries.iter().for_each(|entry| summary.extend_from_slice(&entry.encode()));
}

/// Bytes that another batch adds to a summary.
pub(crate) fn summary_bytes(images: usize) -> usize {
    ENTRY_BYTES + images * ENTRY_BYTES
}

/// Bytes of a summary of this many bytes and a footer.
pub(crate) fn end_bytes(summary: usize) -> usize {
    (summary + FOOTER_ROOM).next_multiple_of(BLOCK_BYTES)
}

/// A footer that goes with a summary; `sequences` are those of the last batch but one and of the last.
pub(crate) fn footer_of(life: u64, sequences: [u64; 2], durable: u64, tails: GroupTails, summary: &[u8]) -> Footer {
    let (summary_bytes, summary_sum) = (summary.len() as u32, crc32c::crc32c(summary));
    let [before, newest] = sequences;
    Footer { life, newest, before, durable, is_free: false, tails, summary_bytes, summary_sum }
}

/// The footer of a segment of which nothing counts, when the newest batch of the store is `newest`.
pub(crate) fn free_footer(life: u64, newest: u64, tails: GroupTails) -> Footer {
    Footer { life, newest, before: 0, durable: 0, is_free: true, tails, summary_bytes: 0, summary_sum: 0 }
}

/// Writes summary and footer to the end of a segment, of which `end` are the last bytes.
pub(crate) fn put_end(end: &mut [u8], identity: u64, footer: &Footer, summary: &[u8]) {
    let start = end.len() - end_bytes(summary.len());
    end[start..start + summary.len()].copy_from_slice(summary);
    let at = end.len() - FOOTER_ROOM;
    let block = &mut end[at..];
    block[4..8].copy_from_slice(&FOOTER_MAGIC.to_le_bytes());
    for (at, value) in
        [(8, identity), (16, footer.life), (24, footer.newest), (32, footer.durable), (52, footer.before)]
    {
        block[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    block[40..44].copy_from_slice(&footer.summary_bytes.to_le_bytes());
    block[44..48].copy_from_slice(&footer.summary_sum.to_le_bytes());
    block[48..52].copy_from_slice(&if footer.is_free { FREE } else { SEALED }.to_le_bytes());
    put_tails(&mut block[FOOTER_TAILS_AT..FOOTER_BYTES], &footer.tails);
    seal(&mut block[..FOOTER_BYTES]);
}

/// Recomputes the checksums of summary and footer in the last bytes of a segment, after these were changed.
pub(crate) fn reseal_end(end: &mut [u8], summary_bytes: usize) {
    let sum = crc32c::crc32c(&end[..summary_bytes]);
    let at = end.len() - FOOTER_ROOM;
    end[at + 44..at + 48].copy_from_slice(&sum.to_le_bytes());
    seal(&mut end[at..at + FOOTER_BYTES]);
}

/// Reads the footer in the last block of a segment.
pub(crate) fn parse_footer(block: &[u8], identity: u64) -> Option<Footer> {
    let block = &block[block.len() - FOOTER_ROOM..];
    let is_ours = u32_at(block, 4) == FOOTER_MAGIC && u64_at(block, 8) == identity;
    if !is_ours || !is_sealed(&block[..FOOTER_BYTES]) {
        return None;
    }
    let footer = Footer {
        life: u64_at(block, 16),
        newest: u64_at(block, 24),
        before: u64_at(block, 52),
        durable: u64_at(block, 32),
        is_free: u32_at(block, 48) == FREE,
        tails: tails_at(block, FOOTER_TAILS_AT),
        summary_bytes: u32_at(block, 40),
        summary_sum: u32_at(block, 44),
    };
    let Footer { life, newest, before, durable, .. } = footer;
    [life, newest, before, durable].iter().all(|sequence| *sequence <= MAX).then_some(footer)
}

impl Footer {
    /// Bytes at the end of the segment that summary and footer take.
    pub(crate) fn end_bytes(&self) -> usize {
        end_bytes(self.summary_bytes as usize)
    }

    /// The summary; `end` are those bytes. `None` if it is damaged.
    pub(crate) fn summary<'e>(&self, end: &'e [u8]) -> Option<&'e [u8]> {
        let summary = end.get(..self.summary_bytes as usize)?;
        let listed: usize = batches(summary).map(|batch| summary_bytes(batch.entries().len())).sum();
        (listed == summary.len() && crc32c::crc32c(summary) == self.summary_sum).then_some(summary)
    }
}

/// A batch in a summary.
#[derive(Clone, Copy)]
pub(crate) struct InSummary<'s> {
    pub at: usize,
    pub sequence: u64,
    pub group: u8,
    entries: &'s [u8],
}

impl<'s> InSummary<'s> {
    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = ImageEntry> + use<'s> {
        self.entries.chunks_exact(ENTRY_BYTES).map(ImageEntry::decode)
    }

    /// Offset of its end in its segment.
    pub(crate) fn end(&self) -> usize {
        let images = self.entries().map(|entry| entry.bytes).fold(0, usize::saturating_add);
        self.at.saturating_add(batch_bytes(self.entries().len(), images))
    }

    pub(crate) fn listed(&self) -> Listed {
        Listed { at: self.at, sequence: self.sequence, group: self.group, entries: self.entries().collect() }
    }
}

/// The batches that a summary lists, up to the first that it does not hold whole.
pub(crate) fn batches(summary: &[u8]) -> impl Iterator<Item = InSummary<'_>> {
    let mut rest = summary;
    std::iter::from_fn(move || {
        let fixed = rest.get(..ENTRY_BYTES)?;
        let bytes = summary_bytes(usize::from(u16_at(fixed, 4)));
        let entries = rest.get(ENTRY_BYTES..bytes)?;
        rest = &rest[bytes..];
        let (at, group, sequence) = (u32_at(fixed, 0) as usize, fixed[6], u64_at(fixed, 8));
        Some(InSummary { at, sequence, group, entries })
    })
}

/// The contents of a slot; all zeros before the first write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StoreSlot {
    /// The higher one counts.
    pub sequence: u64,
    /// Pages that the store has.
    pub pages: u32,
    /// The first segment that was ever cut off the end of the file; 0 if none was. It may be there again.
    pub cut_from: u32,
    /// No batch that was in a segment that was cut off has a higher sequence.
    pub cut_sequence: u64,
}

/// A slot; `None` if the block holds none of this database.
pub(crate) fn parse_slot(block: &[u8], database_id: u64) -> Option<StoreSlot> {
    let slot = &block[..SLOT_BYTES];
    let is_slot = u32_at(slot, 4) == SLOT_MAGIC && u64_at(slot, 8) == database_id && is_sealed(slot);
    let [sequence, cut_sequence] = [16, 32].map(|at| u64_at(slot, at));
    let found = StoreSlot { sequence, pages: u32_at(slot, 24), cut_from: u32_at(slot, 28), cut_sequence };
    (is_slot && sequence.max(cut_sequence) <= MAX).then_some(found)
}

pub(crate) fn put_slot(block: &mut [u8], database_id: u64, slot: &StoreSlot) {
    block[4..8].copy_from_slice(&SLOT_MAGIC.to_le_bytes());
    block[8..16].copy_from_slice(&database_id.to_le_bytes());
    block[16..24].copy_from_slice(&slot.sequence.to_le_bytes());
    block[24..28].copy_from_slice(&slot.pages.to_le_bytes());
    block[28..32].copy_from_slice(&slot.cut_from.to_le_bytes());
    block[32..40].copy_from_slice(&slot.cut_sequence.to_le_bytes());
    seal(&mut block[..SLOT_BYTES]);
    debug_assert_eq!(parse_slot(block, database_id), Some(*slot), "a slot is not read as it is written");
}

fn seal(bytes: &mut [u8]) {
    let sum = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
}

fn is_sealed(bytes: &[u8]) -> bool {
    u32_at(bytes, 0) == crc32c::crc32c(&bytes[4..])
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
#[path = "format_test.rs"]
mod tests;
