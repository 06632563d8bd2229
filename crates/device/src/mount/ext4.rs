//! Finds the journal of an ext4 file system from its superblock, without mounting it.
//!
//! The superblock (1,024 bytes at byte 1,024, little-endian) holds a copy of the journal inode's block map
//! (`s_jnl_blocks`, offset 0x10C, valid if `s_jnl_backup_type`, offset 0xFD, is 1). The map is an extent tree; nodes
//! below the root are read from the device.
//!
//! Rule: every number read from the device is checked before it is used; an impossible one is an error, never a panic.

use crate::error::{DeviceError, Result};
use std::ops::Range;

const SUPERBLOCK_AT: u64 = 1024;
const EXT4_MAGIC: u16 = 0xEF53;
const EXTENT_MAGIC: u16 = 0xF30A;
const JOURNAL_MAP: usize = 0x10C;
const MAP_BYTES: usize = 60;
const DEPTH_MAX: u16 = 5;

/// The journal's byte ranges on the device, in the order of the journal. `read` fills a buffer from a byte offset.
pub fn journal_ranges(read: &dyn Fn(u64, &mut [u8]) -> Result<()>, device_bytes: u64) -> Result<Vec<Range<u64>>> {
    let mut superblock = [0; 1024];
    read(SUPERBLOCK_AT, &mut superblock)?;
    if half(&superblock, 0x38) != EXT4_MAGIC {
        return Err(bad("there is no ext4 file system on the device".into()));
    }
    if superblock[0xFD] != 1 {
        return Err(bad("the ext4 file system has no journal inside".into()));
    }
    let shift = word(&superblock, 0x18);
    if shift > 6 {
        return Err(bad(format!("block size 1024 << {shift} in the superblock")));
    }
    let mut walk = Walk { read, block_bytes: 1024 << shift, device_bytes, ranges: Vec::new() };
    walk.node(&superblock[JOURNAL_MAP..JOURNAL_MAP + MAP_BYTES], DEPTH_MAX)?;
    if walk.ranges.is_empty() {
        return Err(bad("the journal has no blocks".into()));
    }
    Ok(walk.ranges)
}

struct Walk<'a> {
    read: &'a dyn Fn(u64, &mut [u8]) -> Result<()>,
    block_bytes: u64,
    device_bytes: u64,
    ranges: Vec<Range<u64>>,
}

impl Walk<'_> {
    /// Adds the ranges of a node of the extent tree. `depth_max` bounds the tree.
    fn node(&mut self, node: &[u8], depth_max: u16) -> Result<()> {
        let (magic, entries, depth) = (half(node, 0), usize::from(half(node, 2)), half(node, 6));
        if magic != EXTENT_MAGIC || depth > depth_max || 12 + entries * 12 > node.len() {
            return Err(bad(format!("extent node with magic {magic:#06x}, {entries} entries, depth {depth}")));
        }
        for entry in node[12..12 + entries * 12].chunks_exact(12) {
            if depth == 0 {
                self.extent(entry)?;
            } else {
                let child = u64::from(word(entry, 4)) | u64::from(half(entry, 8)) << 32;
                let at = self.within(child, 1)?.start;
                let mut block = vec![0; self.block_bytes as usize];
                (self.read)(at, &mut block)?;
                self.node(&block, depth - 1)?;
            }
        }
        Ok(())
    }

    fn extent(&mut self, entry: &[u8]) -> Result<()> {
        let blocks = match half(entry, 4) {
            n if n > 32768 => n - 32768,
            n => n,
        };
        let first = u64::from(word(entry, 8)) | u64::from(half(entry, 6)) << 32;
        let range = self.within(first, u64::from(blocks))?;
        self.ranges.push(range);
        Ok(())
    }

    /// The byte range of some blocks; blocks outside the device are an error.
    fn within(&self, first: u64, blocks: u64) -> Result<Range<u64>> {
        let start = first.checked_mul(self.block_bytes);
        let end = start.and_then(|s| s.checked_add(blocks * self.block_bytes));
        match (start, end) {
            (Some(start), Some(end)) if blocks > 0 && end <= self.device_bytes => Ok(start..end),
            _ => Err(bad(format!("{blocks} blocks at block {first} are not on the device"))),
        }
    }
}

fn bad(what: String) -> DeviceError {
    DeviceError::Host(format!("looking for the journal: {what}"))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: usize = 1 << 20;

    fn node(depth: u16, entries: &[[u8; 12]]) -> Vec<u8> {
        let mut node = Vec::new();
        for n in [EXTENT_MAGIC, entries.len() as u16, 340, depth, 0, 0] {
            node.extend(n.to_le_bytes());
        }
        entries.iter().for_each(|e| node.extend(e));
        node
    }

    fn extent(blocks: u16, first: u32) -> [u8; 12] {
        let mut entry = [0; 12];
        entry[4..6].copy_from_slice(&blocks.to_le_bytes());
        entry[8..12].copy_from_slice(&first.to_le_bytes());
        entry
    }

    fn index(block: u32) -> [u8; 12] {
        let mut entry = [0; 12];
        entry[4..8].copy_from_slice(&block.to_le_bytes());
        entry
    }

    /// A device with the given extent-tree root in its superblock and node at block 9.
    fn device(root: &[u8], at_nine: &[u8]) -> Vec<u8> {
        let mut device = vec![0; DEVICE];
        device[1024 + 0x38..1024 + 0x3A].copy_from_slice(&EXT4_MAGIC.to_le_bytes());
        device[1024 + 0x18] = 2;
        device[1024 + 0xFD] = 1;
        device[1024 + JOURNAL_MAP..][..root.len()].copy_from_slice(root);
        device[9 * 4096..][..at_nine.len()].copy_from_slice(at_nine);
        device
    }

    fn find(device: &[u8]) -> Result<Vec<Range<u64>>> {
        let read = |at: u64, buf: &mut [u8]| {
            buf.copy_from_slice(&device[at as usize..at as usize + buf.len()]);
            Ok(())
        };
        journal_ranges(&read, DEVICE as u64)
    }

    #[test]
    fn extents_in_the_superblock_and_below_are_found() {
        let flat = device(&node(0, &[extent(4, 20), extent(32768 + 2, 40)]), &[]);
        assert_eq!(find(&flat).unwrap(), [81920..98304, 163_840..172_032]);
        let leaf = node(0, &[extent(8, 100), extent(1, 10)]);
        assert_eq!(find(&device(&node(1, &[index(9)]), &leaf)).unwrap(), [409_600..442_368, 40960..45056]);
    }

    #[test]
    fn nonsense_is_refused() {
        let fails = |device: &[u8], text: &str| {
            let error = find(device).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        };
        fails(&vec![0; DEVICE], "no ext4");
        let mut journalless = device(&[], &[]);
        journalless[1024 + 0xFD] = 0;
        fails(&journalless, "no journal inside");
        fails(&device(&[], &[]), "extent node with magic 0x0000");
        fails(&device(&node(0, &[extent(4, 1_000_000)]), &[]), "not on the device");
        fails(&device(&node(0, &[extent(0, 5)]), &[]), "not on the device");
        fails(&device(&node(0, &[]), &[]), "no blocks");
        fails(&device(&node(6, &[index(9)]), &[]), "depth 6");
        let mut many = node(0, &[extent(4, 20)]);
        many[2] = 200;
        fails(&device(&many, &[]), "200 entries");
        fails(&device(&node(1, &[index(9)]), &node(1, &[index(9)])), "depth 1");
        let mut blocks = device(&node(0, &[extent(4, 20)]), &[]);
        blocks[1024 + 0x18] = 60;
        fails(&blocks, "1024 << 60");
    }
}
