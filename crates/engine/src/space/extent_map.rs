//! Extent maps: their entries, and the formatting of a page as a map. The arithmetic is in [`super::layout`].

use super::layout::{CHUNKS, ENTRIES_AT, ENTRY_BYTES, OWNERS_AT, SEGMENT_SYSTEM, chunk_mask};
use crate::page::{PageOp, PageType};

/// The entry of an extent in its extent map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// A bit for each page: in use.
    pub used: u64,
    /// Segment that owns each chunk, 0 = not owned.
    pub owners: [u32; CHUNKS as usize],
}

impl Extent {
    /// Chunks (bit per chunk) that `owner` owns.
    pub(super) fn chunks_of(&self, owner: u32) -> u8 {
        (0..CHUNKS).filter(|c| self.owners[*c as usize] == owner).fold(0, |set, c| set | 1 << c)
    }

    /// The extent without the owners of chunks of which no page is used.
    pub(crate) fn without_idle_owners(mut self) -> Extent {
        for chunk in (0..CHUNKS).filter(|chunk| self.used & chunk_mask(1 << chunk) == 0) {
            self.owners[chunk as usize] = 0;
        }
        self
    }

    /// The contradiction in an impossible entry.
    pub(super) fn contradiction(&self) -> Option<&'static str> {
        let is_used = self.used & chunk_mask(self.chunks_of(0)) != 0;
        is_used.then_some("pages of it are in use that no segment owns")
    }

    /// Free pages in chunks that `owner` owns.
    pub(super) fn free_pages(&self, owner: u32) -> u64 {
        !self.used & chunk_mask(self.chunks_of(owner))
    }
}

/// Reads the entry of the `index`th extent of a map's group; zeros if the page is too short.
pub(crate) fn read_entry(map: &[u8], index: usize) -> Extent {
    let at = ENTRIES_AT + index * ENTRY_BYTES;
    let entry: &[u8; ENTRY_BYTES] = map.get(at..).and_then(<[u8]>::first_chunk).unwrap_or(&[0; ENTRY_BYTES]);
    let owner = |c: usize| {
        let at = OWNERS_AT + c * 4;
        u32::from_le_bytes(std::array::from_fn(|i| entry[at + i]))
    };
    Extent { used: u64::from_le_bytes(std::array::from_fn(|i| entry[i])), owners: std::array::from_fn(owner) }
}

/// The operations that make a page an empty extent map of a group.
pub(crate) fn format_map_ops(mut apply: impl FnMut(&PageOp<'_>)) {
    apply(&PageOp::Format { page_type: PageType::ExtentMap, level: 0, owner: SEGMENT_SYSTEM.0 });
    let offset = ENTRIES_AT as u16;
    apply(&PageOp::SetBits { offset, mask: 0b11 });
    apply(&PageOp::SetBits { offset: offset + OWNERS_AT as u16, mask: u64::from(SEGMENT_SYSTEM.0) });
}
