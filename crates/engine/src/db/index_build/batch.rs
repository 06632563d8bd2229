//! A batch of index entries in memory, to be sorted.

use crate::error::Result;
use crate::page::PageBytes;
use crate::table::version::TableVersion;
use crate::txn::TableTrees;

/// An entry of the index.
#[derive(Clone, Copy)]
pub(super) struct BuildEntry<'e> {
    /// The index columns, then the primary key.
    pub(super) key: &'e [u8],
    /// Bytes of the index columns.
    pub(super) columns_bytes: usize,
    /// The covered columns.
    pub(super) covered: &'e [u8],
}

impl<'e> BuildEntry<'e> {
    /// The index columns.
    pub(super) fn columns(self) -> &'e [u8] {
        &self.key[..self.columns_bytes]
    }
}

/// The first eight bytes of a key as a number, zeros after a shorter key: decides most comparisons.
#[inline]
pub(super) fn first_word(key: &[u8]) -> u64 {
    key.word_at(0, key.len().min(size_of::<u64>()))
}

/// The place of an entry in the batch's bytes.
#[derive(Clone, Copy)]
struct EntryPlace {
    word: u64,
    /// A batch has a few MiB more than [`MAX_BATCH_BYTES`](super::MAX_BATCH_BYTES) at most.
    start: u32,
    len: u32,
    columns_bytes: u32,
    covered_bytes: u32,
}

impl EntryPlace {
    #[inline]
    fn of(self, bytes: &[u8]) -> BuildEntry<'_> {
        let (key, rest) = bytes[self.start as usize..].split_at(self.len as usize);
        let covered = &rest[..self.covered_bytes as usize];
        BuildEntry { key, columns_bytes: self.columns_bytes as usize, covered }
    }
}

/// Entries that were gathered.
#[derive(Default)]
pub(super) struct EntryBatch {
    bytes: Vec<u8>,
    places: Vec<EntryPlace>,
}

impl EntryBatch {
    /// The entry of a row.
    ///
    /// # Errors
    /// `Collation`.
    pub(super) fn add(&mut self, version: &TableVersion, index: usize, key: &[u8], row: &[u8]) -> Result<()> {
        let start = self.bytes.len();
        let entry = version.entry(index, key, row, &mut self.bytes)?;
        let end = self.bytes.len();
        let (word, columns_bytes) = (first_word(&self.bytes[start..]), entry.prefix_bytes as u32);
        version.covered(index, row, &mut self.bytes);
        let (len, covered_bytes) = ((end - start) as u32, (self.bytes.len() - end) as u32);
        self.places.push(EntryPlace { word, start: start as u32, len, columns_bytes, covered_bytes });
        debug_assert!(columns_bytes <= len, "an entry of {len} bytes has {columns_bytes} of columns");
        debug_assert!(self.bytes.len() <= u32::MAX as usize, "rule 4: a batch of {} bytes", self.bytes.len());
        Ok(())
    }

    /// Bytes that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<EntryPlace>()
    }

    /// Puts the entries in order.
    pub(super) fn sort(&mut self) {
        let bytes = &self.bytes;
        let by_key =
            |a: &EntryPlace, b: &EntryPlace| a.word.cmp(&b.word).then_with(|| a.of(bytes).key.cmp(b.of(bytes).key));
        self.places.sort_unstable_by(by_key);
        let are_in_order = self.entries().is_sorted_by(|a, b| a.key <= b.key);
        debug_assert!(are_in_order, "the first words of entries have another order than the entries");
    }

    /// The entries in their order.
    pub(super) fn entries(&self) -> impl Iterator<Item = BuildEntry<'_>> {
        self.places.iter().map(|place| place.of(&self.bytes))
    }

    /// Removes all entries; keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }
}
