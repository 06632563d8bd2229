//! Bytes on the redo device. All integers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4096 | header slot 0 |
//! | 4096..8192 | header slot 1 |
//! | 8192.. | the ring: `n` blocks of 4096 bytes; LSN `l` is in block `(l - base) / 4080 % n` at byte `16 + l % 4080` |
//!
//! Header: magic `HWREDO\r\n` @0, version u32 @8, checksum u32 @12 (CRC-32C of the other bytes of the block), database
//! id u64 @16, size of the whole file u64 @24, generation u64 @32, sequence u64 @40, checkpoint LSN u64 @48, durable
//! LSN u64 @56, the page store's mark u64 @64, base of the ring u64 @72, zeros. The header with sequence `n` is in slot
//! `n % 2`; the valid one with the larger sequence counts. Magic, version and checksum keep their places in every
//! version.
//!
//! Block: a mark of 16 bytes, then 4080 bytes of groups (so LSNs do not count marks). Mark: durable LSN u64 @0, the LSN
//! up to which the log was synced when this block was written; checksum u64 @8, over that, the LSN of the block's first
//! byte, the generation and the database id. A mark is within one sector, so a torn write cannot produce one.
//!
//! Group: payload length u32 (never 0), checksum u32, payload. Groups follow each other without gaps and run over block
//! boundaries and the end of the ring. The checksum is the payload's CRC-32C, xor 32 bits mixed from start LSN,
//! generation and length, so bytes of another place, lap or generation do not verify.

use crate::error::{Error, Result};
use crate::types::Lsn;

/// Unit of writes, and of the headers.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// Bytes of the mark in front of each block of the ring.
pub(crate) const MARK_BYTES: u64 = 16;
/// Bytes of groups in a block: what LSNs count.
pub(crate) const DATA_BYTES: u64 = BLOCK_BYTES - MARK_BYTES;
/// Bytes before the ring.
pub(crate) const RING_START: u64 = 2 * BLOCK_BYTES;
/// Bytes in front of each payload.
pub(crate) const FRAME_BYTES: usize = 8;
pub(crate) const VERSION: u32 = 3;
/// First LSN of a new log, above the LSN 0 of pages that were never logged.
pub(crate) const FIRST_LSN: Lsn = Lsn(DATA_BYTES);
/// Blocks of the smallest ring.
const MIN_RING_BLOCKS: u64 = 16;

const MAGIC: [u8; 8] = highwater_storage::mark::REDO;
const HEADER_BYTES: usize = 80;

/// Whole blocks of a number of bytes on the device.
pub(crate) fn whole_blocks(bytes: u64) -> u64 {
    bytes / BLOCK_BYTES * BLOCK_BYTES
}

/// LSN of the first byte of the block of `lsn`.
pub(crate) fn block_floor(lsn: u64) -> u64 {
    lsn / DATA_BYTES * DATA_BYTES
}

/// `lsn`, or LSN of the first byte of the next block.
pub(crate) fn block_ceil(lsn: u64) -> u64 {
    lsn.next_multiple_of(DATA_BYTES)
}

/// Blocks that `bytes` of groups fill, from a block's first byte on.
pub(crate) fn blocks_of(bytes: u64) -> u64 {
    bytes.div_ceil(DATA_BYTES)
}

/// Offset of byte `at` of the groups in consecutive blocks.
#[inline]
pub(crate) fn place_in_blocks(at: u64) -> usize {
    (at / DATA_BYTES * BLOCK_BYTES + MARK_BYTES + at % DATA_BYTES) as usize
}

/// The ring's size and places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogGeometry {
    blocks: u64,
    /// LSN of the first byte of a block that is at the ring's start.
    base: u64,
}

impl LogGeometry {
    /// The ring of a new file of `size_bytes`, which [`is_size_possible`].
    pub(crate) fn new(size_bytes: u64) -> LogGeometry {
        LogGeometry { blocks: (size_bytes - RING_START) / BLOCK_BYTES, base: 0 }
    }

    /// The ring of the file with this header.
    pub(crate) fn of(header: &LogHeader) -> LogGeometry {
        LogGeometry { base: header.ring_base.0, ..LogGeometry::new(header.size_bytes) }
    }

    /// LSN of the ring's first byte in the lap of `lsn`.
    pub(crate) fn start_of_lap(self, lsn: Lsn) -> Lsn {
        Lsn(self.base + (lsn.0 - self.base) / self.lap() * self.lap())
    }

    /// Bytes of the file.
    pub(crate) fn size_bytes(self) -> u64 {
        RING_START + self.ring_bytes()
    }

    /// Bytes of the ring on the device.
    pub(crate) fn ring_bytes(self) -> u64 {
        self.blocks * BLOCK_BYTES
    }

    /// LSNs in one lap.
    pub(crate) fn lap(self) -> u64 {
        self.blocks * DATA_BYTES
    }

    /// Redo that may be between checkpoint and end. Less than the ring: the block of the end is written whole and must
    /// not reach the block of the checkpoint.
    pub(crate) fn capacity_bytes(self) -> u64 {
        (self.blocks - 2) * DATA_BYTES
    }

    /// Offset of an LSN's block in the file, and the bytes from there to the end of the ring. An LSN before the base is
    /// elsewhere, so a block read here for it does not verify.
    pub(crate) fn block_place(self, lsn: u64) -> (u64, u64) {
        let in_ring = lsn.wrapping_sub(self.base) / DATA_BYTES % self.blocks * BLOCK_BYTES;
        (RING_START + in_ring, self.ring_bytes() - in_ring)
    }

    pub(crate) fn offset_of(self, lsn: Lsn) -> u64 {
        self.block_place(lsn.0).0 + MARK_BYTES + lsn.0 % DATA_BYTES
    }
}

/// Whether a file of this size can be a log.
pub(crate) fn is_size_possible(size_bytes: u64) -> bool {
    (RING_START + MIN_RING_BLOCKS * BLOCK_BYTES..=1 << 62).contains(&size_bytes)
}

/// Whether a header's LSNs can be those of a log.
pub(crate) fn are_lsns_possible(header: &LogHeader) -> bool {
    let LogHeader { checkpoint_lsn, durable_lsn, ring_base, .. } = *header;
    let is_base = ring_base.0.is_multiple_of(DATA_BYTES) && ring_base <= checkpoint_lsn;
    is_base && FIRST_LSN <= checkpoint_lsn && checkpoint_lsn <= durable_lsn && durable_lsn.0 < 1 << 62
}

/// One of the log's two headers. The one with the larger sequence number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHeader {
    /// The database the log belongs to.
    pub database_id: u64,
    /// Size of the file.
    pub size_bytes: u64,
    /// Number of the log's generation.
    pub generation: u64,
    /// One more with each header written.
    pub sequence: u64,
    /// The checkpoint, at which recovery starts.
    pub checkpoint_lsn: Lsn,
    /// The durable LSN when the header was written.
    pub durable_lsn: Lsn,
    /// The page store's mark, which the next opening compares with the store's files; zero if it needs none.
    pub store_mark: u64,
    /// LSN of a byte that is at the start of the ring: zero until the ring has grown.
    pub ring_base: Lsn,
}

/// The reason why a header block is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It does not begin as a header does.
    Foreign,
    /// It does, but the checksum is wrong.
    Damaged,
    /// It verifies, but its version is unknown.
    Version(u32),
}

impl LogHeader {
    /// Offset of the header.
    pub(crate) fn offset(&self) -> u64 {
        self.sequence % 2 * BLOCK_BYTES
    }

    pub(crate) fn encode(&self, block: &mut [u8]) {
        block.fill(0);
        block[0..8].copy_from_slice(&MAGIC);
        block[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let LogHeader { database_id, size_bytes, generation, sequence, .. } = *self;
        let [checkpoint, durable, base] = [self.checkpoint_lsn.0, self.durable_lsn.0, self.ring_base.0];
        let numbers = [database_id, size_bytes, generation, sequence, checkpoint, durable, self.store_mark, base];
        for (place, number) in block[16..HEADER_BYTES].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = block_checksum(block);
        block[12..16].copy_from_slice(&checksum.to_le_bytes());
    }

    pub(crate) fn decode(block: &[u8]) -> std::result::Result<LogHeader, Unusable> {
        if block[0..8] != MAGIC {
            return Err(Unusable::Foreign);
        }
        if u32_at(block, 12) != block_checksum(block) {
            return Err(Unusable::Damaged);
        }
        if u32_at(block, 8) != VERSION {
            return Err(Unusable::Version(u32_at(block, 8)));
        }
        Ok(LogHeader {
            database_id: u64_at(block, 16),
            size_bytes: u64_at(block, 24),
            generation: u64_at(block, 32),
            sequence: u64_at(block, 40),
            checkpoint_lsn: Lsn(u64_at(block, 48)),
            durable_lsn: Lsn(u64_at(block, 56)),
            store_mark: u64_at(block, 64),
            ring_base: Lsn(u64_at(block, 72)),
        })
    }
}

fn block_checksum(block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&block[..12]), &block[16..])
}

/// The newer header of the two slots, and whether it is certainly the newest one written: the other one is valid too.
pub(crate) fn choose(slots: [&[u8]; 2], name: &str) -> Result<(LogHeader, bool)> {
    let decoded = slots.map(LogHeader::decode);
    if let Some(version) = decoded.iter().find_map(|d| if let Err(Unusable::Version(v)) = d { Some(*v) } else { None })
    {
        return Err(Error::Incompatible(format!(
            "{name} has redo log format {version}; this program reads format {VERSION}"
        )));
    }
    if slots.iter().all(|slot| slot.iter().all(|byte| *byte == 0)) {
        return Err(Error::Incompatible(format!(
            "{name} has zeros in place of the redo log headers: its contents are lost; restore a backup"
        )));
    }
    if decoded == [Err(Unusable::Foreign); 2] {
        return Err(Error::Incompatible(format!(
            "{name} is not a Highwater redo log (it begins {:?})",
            begin(slots[0])
        )));
    }
    let newest = decoded.iter().flatten().max_by_key(|h| h.sequence);
    let is_sure = decoded.iter().all(|header| header.is_ok());
    newest.map(|header| (*header, is_sure)).ok_or_else(|| Error::Corrupt(format!("both headers of {name} are damaged")))
}

/// The first bytes, printably.
fn begin(block: &[u8]) -> String {
    block[..8].escape_ascii().to_string()
}

/// The frame in front of a payload whose CRC-32C is `payload_crc`.
#[inline]
pub(crate) fn frame(payload_crc: u32, len: u32, start: Lsn, generation: u64) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[..4].copy_from_slice(&len.to_le_bytes());
    frame[4..].copy_from_slice(&group_checksum(payload_crc, len, start, generation).to_le_bytes());
    frame
}

/// Length and checksum of a frame.
pub(crate) fn split_frame(frame: &[u8]) -> (u32, u32) {
    (u32_at(frame, 0), u32_at(frame, 4))
}

/// Checksum of a group; a few instructions on top of the payload's CRC.
#[inline]
pub(crate) fn group_checksum(payload_crc: u32, len: u32, start: Lsn, generation: u64) -> u32 {
    payload_crc ^ (mix(mix(start.0) ^ generation ^ u64::from(len).rotate_left(32)) >> 32) as u32
}

/// Writes the mark of the block that begins at LSN `block`.
pub(crate) fn put_mark(bytes: &mut [u8], durable: Lsn, block: u64, generation: u64, database_id: u64) {
    bytes[..8].copy_from_slice(&durable.0.to_le_bytes());
    bytes[8..16].copy_from_slice(&mark_checksum(durable.0, block, generation, database_id).to_le_bytes());
}

/// The durable LSN in the mark of the block that begins at LSN `block`, if the mark is that block's in that generation.
pub(crate) fn mark(bytes: &[u8], block: u64, generation: u64, database_id: u64) -> Option<Lsn> {
    let durable = u64_at(bytes, 0);
    (u64_at(bytes, 8) == mark_checksum(durable, block, generation, database_id)).then_some(Lsn(durable))
}

fn mark_checksum(durable: u64, block: u64, generation: u64, database_id: u64) -> u64 {
    [database_id, generation, block, durable].into_iter().fold(0, |sum, word| mix(sum ^ mix(word)))
}

/// Spreads each bit of `x` over all bits (one to one).
#[inline]
fn mix(x: u64) -> u64 {
    const ODD: u64 = 0xD6E8_FEB8_6659_FD93;
    let x = (x ^ x >> 32).wrapping_mul(ODD);
    let x = (x ^ x >> 32).wrapping_mul(ODD);
    x ^ x >> 32
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

const _: () = assert!(HEADER_BYTES == 16 + 8 * 8 && HEADER_BYTES <= 512, "a header fits one sector");
const _: () = assert!(MIN_RING_BLOCKS > 4);

#[cfg(test)]
mod tests {
    use super::*;

    fn header(sequence: u64) -> LogHeader {
        LogHeader {
            database_id: 7,
            size_bytes: 1 << 20,
            generation: 3,
            sequence,
            checkpoint_lsn: Lsn(99),
            durable_lsn: Lsn(100),
            store_mark: 11,
            ring_base: Lsn(0),
        }
    }

    fn block(header: &LogHeader) -> Vec<u8> {
        let mut block = vec![1; BLOCK_BYTES as usize];
        header.encode(&mut block);
        block
    }

    fn resealed(mut block: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
        block[at] = byte;
        let checksum = block_checksum(&block);
        block[12..16].copy_from_slice(&checksum.to_le_bytes());
        block
    }

    #[test]
    fn a_header_reads_as_it_was_written() {
        assert_eq!(LogHeader::decode(&block(&header(5))), Ok(header(5)));
        assert_eq!((header(5).offset(), header(6).offset()), (BLOCK_BYTES, 0));
    }

    #[test]
    fn a_changed_bit_anywhere_is_noticed() {
        let good = block(&header(5));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let want = if at < 8 { Unusable::Foreign } else { Unusable::Damaged };
            assert_eq!(LogHeader::decode(&bad), Err(want), "byte {at}");
        }
    }

    #[test]
    fn the_newer_valid_header_counts() {
        let (old, new) = (block(&header(4)), block(&header(5)));
        assert_eq!(choose([&old, &new], "redo").unwrap(), (header(5), true));
        assert_eq!(choose([&new, &old], "redo").unwrap(), (header(5), true));
        let mut torn = new.clone();
        torn[20] ^= 1;
        assert_eq!(choose([&old, &torn], "redo").unwrap(), (header(4), false));
        let zeros = vec![0; BLOCK_BYTES as usize];
        assert_eq!(choose([&zeros, &new], "redo").unwrap(), (header(5), false));
        assert!(matches!(choose([&torn, &torn], "redo"), Err(Error::Corrupt(_))));
    }

    #[test]
    fn foreign_and_newer_logs_are_told_apart() {
        let good = block(&header(4));
        let newer = resealed(good.clone(), 8, VERSION as u8 + 1);
        let error = choose([&good, &newer], "redo").unwrap_err().to_string();
        assert!(error.contains("format 4") && error.contains("format 3"), "{error}");
        let foreign = vec![b'x'; BLOCK_BYTES as usize];
        let error = choose([&foreign, &foreign], "redo").unwrap_err().to_string();
        assert!(error.contains("not a Highwater redo log") && error.contains("xxxx"), "{error}");
    }

    #[test]
    fn a_group_checksum_depends_on_place_generation_and_length() {
        let base = group_checksum(1, 10, Lsn(4096), 1);
        assert_ne!(base, group_checksum(2, 10, Lsn(4096), 1));
        assert_ne!(base, group_checksum(1, 11, Lsn(4096), 1));
        assert_ne!(base, group_checksum(1, 10, Lsn(4097), 1));
        assert_ne!(base, group_checksum(1, 10, Lsn(4096), 2));
        assert_eq!(split_frame(&frame(1, 10, Lsn(4096), 1)), (10, base));
    }

    #[test]
    fn a_mark_verifies_in_its_place_only() {
        let mut bytes = [0; 16];
        assert_eq!(mark(&bytes, 4080, 1, 7), None, "zeros are no mark");
        put_mark(&mut bytes, Lsn(5000), 4080, 1, 7);
        assert_eq!(mark(&bytes, 4080, 1, 7), Some(Lsn(5000)));
        for (block, generation, database) in [(8160, 1, 7), (4080, 2, 7), (4080, 1, 8)] {
            assert_eq!(mark(&bytes, block, generation, database), None);
        }
        for bit in 0..128 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(mark(&bad, 4080, 1, 7), None, "bit {bit}");
        }
    }

    #[test]
    fn the_ring_starts_over() {
        let geometry = LogGeometry::new(RING_START + 16 * BLOCK_BYTES + 5);
        let (ring, lap) = (16 * BLOCK_BYTES, 16 * DATA_BYTES);
        assert_eq!((geometry.ring_bytes(), geometry.lap()), (ring, lap));
        assert_eq!(geometry.block_place(0), (RING_START, ring));
        assert_eq!(geometry.block_place(lap * 3 + DATA_BYTES + 10), (RING_START + BLOCK_BYTES, ring - BLOCK_BYTES));
        assert_eq!(geometry.offset_of(Lsn(lap * 3 + DATA_BYTES + 10)), RING_START + BLOCK_BYTES + MARK_BYTES + 10);
        assert_eq!((block_floor(4081), block_ceil(4081), block_ceil(4080)), (4080, 8160, 4080));
        assert_eq!([0, 4079, 4080].map(place_in_blocks), [16, 4095, 4112]);
        assert!(is_size_possible(RING_START + ring) && !is_size_possible(RING_START + ring - 1));
    }
}
