//! A batch: copies of pages that are to be written to the store, with checksums.
//!
//! In front of the copies there is space for the store's own bytes (a directory, a header), so that one write has both.

use crate::page::{self, PageType};
use crate::types::{CHANGE_BUFFER_INDEX, Lsn, PageNo};
use highwater_storage::{AlignedBuf, Placement};

/// Most pages in a batch.
pub(crate) const BATCH_PAGES: usize = 128;
/// Bytes in front of the copies; the alignment of direct I/O.
pub(super) const FRONT_BYTES: usize = 4096;

/// Copies of pages.
pub(crate) struct PageBatch {
    bytes: AlignedBuf,
    page_bytes: usize,
    entries: Vec<BatchEntry>,
}

/// One page of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchEntry {
    pub page_no: PageNo,
    /// LSN of the copy.
    pub lsn: Lsn,
    pub(super) checksum: u32,
    pub(super) placement: Placement,
    /// See [`PageBatch::last_is_recreated_by_redo`].
    pub(super) recreated_by_redo: bool,
}

impl PageBatch {
    /// An empty batch with capacity for `pages` pages.
    pub(crate) fn new(pages: usize, page_bytes: usize) -> PageBatch {
        let bytes = AlignedBuf::zeroed(FRONT_BYTES + pages * page_bytes);
        PageBatch { bytes, page_bytes, entries: Vec::with_capacity(pages) }
    }

    /// Adds a copy of the page, sealed for disk.
    pub(crate) fn push(&mut self, page: &[u8], page_no: PageNo) {
        debug_assert!(self.entries.len() < self.capacity(), "a batch of {} pages is full", self.capacity());
        let is_there = self.entries.iter().any(|entry| entry.page_no == page_no);
        debug_assert!(!is_there, "rule 4 of the store: page {page_no} is twice in a batch");
        let at = FRONT_BYTES + self.entries.len() * self.page_bytes;
        let copy = &mut self.bytes[at..at + self.page_bytes];
        copy.copy_from_slice(page);
        page::header::stamp(copy, page_no);
        let (lsn, checksum) = (page::header::lsn(copy), page::header::checksum(copy));
        self.entries.push(BatchEntry {
            page_no,
            lsn,
            checksum,
            placement: placement_of(copy),
            recreated_by_redo: false,
        });
    }

    /// Marks the page added last as recreated by redo: that redo formats it, and the checkpoint does not pass it before
    /// the batch has finished. So a crash may tear the page.
    pub(crate) fn last_is_recreated_by_redo(&mut self) {
        debug_assert!(!self.entries.is_empty(), "no page was added");
        if let Some(entry) = self.entries.last_mut() {
            entry.recreated_by_redo = true;
        }
    }

    /// Whether redo recreates every page of the batch.
    pub(super) fn is_recreated_by_redo(&self) -> bool {
        self.entries.iter().all(|entry| entry.recreated_by_redo)
    }

    /// The pages in it.
    pub(crate) fn entries(&self) -> &[BatchEntry] {
        &self.entries
    }

    pub(super) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Capacity in pages.
    pub(crate) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Forgets the pages.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The newest change in it; zero if it is empty.
    pub(crate) fn newest_lsn(&self) -> Lsn {
        self.entries.iter().map(|entry| entry.lsn).max().unwrap_or(Lsn(0))
    }

    /// The bytes in front of the copies, and the pages.
    pub(super) fn front_and_entries(&mut self) -> (&mut [u8], &[BatchEntry]) {
        (&mut self.bytes[..FRONT_BYTES], &self.entries)
    }

    /// The bytes in front and the copies.
    pub(super) fn with_front(&self) -> &[u8] {
        &self.bytes[..FRONT_BYTES + self.entries.len() * self.page_bytes]
    }

    /// The copies of some of the entries, which follow each other.
    pub(super) fn copies(&self, entries: std::ops::Range<usize>) -> &[u8] {
        &self.bytes[FRONT_BYTES..][entries.start * self.page_bytes..entries.end * self.page_bytes]
    }
}

/// A page's kind, for the device and for the counters by page type; a page of unknown type is `Other`.
pub(crate) fn placement_of(page: &[u8]) -> Placement {
    let page_type = page::header::page_type(page);
    if matches!(&page_type, Ok(found) if found.is_node()) && page::header::owner(page) == CHANGE_BUFFER_INDEX.0 {
        return Placement::ChangeBuffer;
    }
    match page_type {
        Ok(PageType::Leaf) => Placement::IndexLeaf,
        Ok(PageType::Inner) => Placement::IndexInner,
        Ok(PageType::Undo | PageType::UndoDirectory) => Placement::Undo,
        _ => Placement::Other,
    }
}
