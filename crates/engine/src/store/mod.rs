//! Page store: stores pages by number. The layers above read and write pages through [`PageStore`] and do not know
//! where a page is.
//!
//! Who may call what
//! - `db` finds the store, repairs it and opens it, or creates it ([`bootstrap`]); `inspect` and a check of a database
//!   that cannot be opened read pages of a store that is not open ([`bootstrap::look`]).
//! - The pool reads single pages and writes batches. `check` reads runs of pages of an open, quiet database.
//! - `space` reserves space for pages, durably, and discards pages.
//! - `db::probe` measures in a part of the file that the store lends.
//!
//! Rules (crash order)
//! 1. The caller has made the redo durable up to the LSN of every page in a batch before it writes the batch.
//! 2. A page of a batch is durable *and findable* when [`PageStore::write`] returns: after any crash the next opening
//!    reads this copy or a newer one. So the caller may remove the page's changes from the log.
//! 3. Until then a crash may leave the older copy, the new one, or a torn page, which [`bootstrap::FoundStore::repair`]
//!    repairs, or which redo recreates ([`PageBatch::last_is_recreated_by_redo`]). A torn page never reaches a reader
//!    of an open store.
//! 4. A page is in one unfinished batch at most, and the checkpoint does not pass its oldest change before that batch
//!    is finished. Batches of different pages may be written at once.
//! 5. After creation all pages but the first two read as zeros. A reserved or discarded page has undefined contents
//!    until it is written.
//! 6. Every page was durably reserved before it is written, and not discarded since. So a full disk is an error of
//!    [`PageStore::reserve`] and never of a write.
//! 7. Pages are discarded only when the checkpoint has passed all their logged changes.
//! 8. A failed write or sync is never retried: no later batch is written, and the caller stops the database.
//!
//! Consecutive page numbers need not be contiguous on the device. The writer of a batch orders its pages by number; the
//! store decides whether a run of pages becomes one write.
//!
//! | file | what |
//! |---|---|
//! | `bootstrap` | a store before it is open: creating, finding, repairing, looking at it |
//! | `header` | the fixed fields at the start of page 0 |
//! | `batch` | copies of pages on their way to the store |
//! | `shared_sync` | syncs of a device that several threads share |
//! | `in_place` | page number is place, torn pages are repaired from a doublewrite file |
//! | `out_of_place` | pages are appended to segments and found through a map; nothing is overwritten |

mod batch;
pub(crate) mod bootstrap;
mod header;
#[cfg(test)]
mod hooks;
pub(crate) mod in_place;
pub(crate) mod out_of_place;
mod shared_sync;
#[cfg(test)]
mod store_test;

/// Bytes at the start of the doublewrite file that show whether it was used.
pub(crate) const DOUBLEWRITE_START_BYTES: u64 = batch::FRONT_BYTES as u64;
pub(crate) use batch::placement_of;
pub(crate) use batch::{BATCH_PAGES, PageBatch};
pub(crate) use header::{FIXED_END, fixed_fields, format_fixed, parse as file_header, put_database_id};
pub use header::{FileHeader, StoreKind};
pub use out_of_place::SyntheticStore;
pub(crate) use out_of_place::packing_us;

use crate::config::PageCompression;
use crate::error::Result;
use crate::types::PageNo;
use highwater_storage::Device;
use std::ops::Range;

/// Single pages that can be on their way at once.
pub(crate) const SINGLE_PAGES: usize = 8;

/// The reason of a batch. Batches of different lanes do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushLane {
    /// For pages of the flush list.
    FlushList,
    /// For pages at the tail of the LRU list.
    LruList,
    /// For one page, flushed by a thread that needs its frame; there are [`SINGLE_PAGES`] of them.
    SinglePage,
}

impl FlushLane {
    /// Number of lanes, those for single pages counted as one.
    pub(crate) const COUNT: usize = 3;
}

/// The protection of pages in place from being torn by a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// Nothing in the store.
    None,
    /// Copies in the areas of the doublewrite file.
    Doublewrite,
    /// Images in a ring of about this many bytes.
    Journal {
        /// Bytes of the ring.
        bytes: u64,
    },
}

/// The settings of an opening.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// In place: what pages are written through, so that a torn one can be repaired.
    pub protection: Protection,
    /// Out of place: how pages are compressed.
    pub compression: PageCompression,
    /// Out of place: how full segments may be, in percent, before the data file grows.
    pub segment_fill_pct: u64,
    /// Writes stay in memory, and no page needs protection.
    pub is_read_only: bool,
}

/// The location of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLocation {
    /// First byte, from the start of the data file.
    pub offset: u64,
    /// Bytes that it takes there.
    pub bytes: u64,
}

/// A segment of a store out of place that holds batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSegment {
    /// Its number; it begins at the number times the size of a segment.
    pub number: u32,
    /// Bytes that its batches take.
    pub written_bytes: u64,
    /// Bytes of images that the page map points at.
    pub live_bytes: u64,
    /// Pages of those.
    pub live_pages: u64,
    /// Batches in it.
    pub batches: u64,
    /// Batches begun in the whole store since its last one.
    pub age: u64,
    /// Group of lifetimes: 0 for pages that are rarely written.
    pub group: u8,
}

/// The segments of a data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSegments {
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Segments in the file, those that hold nothing included.
    pub count: u32,
    /// The segments that hold batches, in the order of the file.
    pub used: Vec<StoreSegment>,
}

/// Reads of pages from an open store, or from files that are only inspected.
pub(crate) trait PageSource {
    /// Name of the data file, for messages.
    fn name(&self) -> String;

    fn page_bytes(&self) -> usize;

    /// Bytes that the store has for pages; the last page may be cut.
    ///
    /// # Errors
    /// An I/O error.
    fn len_bytes(&self) -> Result<u64>;

    /// Whole pages that the store has.
    ///
    /// # Errors
    /// An I/O error.
    fn pages(&self) -> Result<u64> {
        Ok((self.len_bytes()? / self.page_bytes() as u64).min(u64::from(u32::MAX)))
    }

    /// Reads pages from `first` on until `buf` is full; its length is a multiple of the page size. The bytes are not
    /// verified.
    ///
    /// # Errors
    /// [`CorruptPage`](crate::Error::CorruptPage) if the store does not reach so far, an I/O error.
    fn read(&self, first: PageNo, buf: &mut [u8]) -> Result<()>;

    /// The location of the page; `None` beyond the end of the store, and for a page without a place because it was
    /// never written.
    ///
    /// # Errors
    /// An I/O error.
    fn place(&self, page: PageNo) -> Result<Option<PageLocation>>;

    /// The segments, as far as they are known without reading; `None` of a store in place.
    fn segments(&self) -> Option<StoreSegments> {
        None
    }
}

/// Pages to be read, among many.
pub(crate) struct PageRead<'a> {
    /// The first of them.
    pub first: PageNo,
    /// Filled from it on; its length is a multiple of the page size.
    pub buf: &'a mut [u8],
}

/// Is called for each read among many, by its index: the bytes of its pages, or why there are none.
pub(crate) type PageReadCallback<'f> = dyn FnMut(usize, Result<&[u8]>) + 'f;

/// An open store. Threads share it. The rules are those of the module.
pub(crate) trait PageStore: PageSource + Send + Sync {
    /// Writes the pages of a batch: durable and findable on return.
    ///
    /// # Errors
    /// An I/O error. The state of the device is then unknown: the caller stops the database.
    ///
    /// # Panics
    /// If a batch of the lane for single pages has several (a bug of the caller).
    fn write(&self, batch: &mut PageBatch, lane: FlushLane) -> Result<()>;

    /// Makes sure that these pages, whose contents are not needed, can be written even if the disk becomes full; the
    /// store grows if it does not reach so far. Durable after the next [`sync`](PageStore::sync).
    ///
    /// # Errors
    /// An error that [is full](highwater_storage::StorageError::is_full) if there is no space, another I/O error.
    fn reserve(&self, pages: Range<u32>) -> highwater_storage::Result<()>;

    /// Makes what was reserved durable. (What is written is durable without it.)
    ///
    /// # Errors
    /// An I/O error, after which the caller stops the database.
    fn sync(&self) -> Result<()>;

    /// Discards pages, whose contents are not needed any more. Other files may use their blocks until the pages are
    /// reserved again. This is advice: a store or device may ignore it.
    fn discard(&self, pages: Range<u32>);

    /// Truncates the store to its first `pages` pages; the others are discarded, as by [`discard`](PageStore::discard).
    /// The caller has made the new number of pages durable; after a crash the store may have the old end.
    /// [`reserve`](PageStore::reserve) is not called meanwhile.
    ///
    /// # Errors
    /// An I/O error, after which the caller stops the database.
    fn truncate(&self, pages: u32) -> Result<()>;

    /// Returns space that the pages do not need to the file system, a bounded amount at a time. Returns whether another
    /// step may free more. `thoroughly`: as much as possible, at any cost; otherwise what is worth its cost.
    /// [`reserve`](PageStore::reserve) is not called meanwhile.
    ///
    /// # Errors
    /// An I/O error, after which the caller stops the database.
    fn shrink_step(&self, _thoroughly: bool) -> Result<bool> {
        Ok(false)
    }

    /// As [`discard`](PageStore::discard), for pages that no extent map counts as used when the database is opened: a
    /// store that does not remember a discarded range is called for it again; that is harmless. False if that takes
    /// time, or space that the pages may still have: the caller forgets them when it may.
    fn discard_unused(&self, _pages: Range<u32>) -> bool {
        false
    }

    /// The database has been closed: the places of these pages, which hold nothing, and of copies of pages are not
    /// needed until they are reserved again. That they are released is not promised.
    ///
    /// # Errors
    /// An I/O error; what the store holds is as durable as before.
    fn release_at_rest(&self, _free: &[Range<u32>]) -> Result<()> {
        Ok(())
    }

    /// Reserves the places of these pages, which [`release_at_rest`](PageStore::release_at_rest) may have released.
    /// Durable after the next [`sync`](PageStore::sync).
    ///
    /// # Errors
    /// As [`reserve`](PageStore::reserve).
    fn reserve_after_rest(&self, _pages: Range<u32>) -> highwater_storage::Result<()> {
        Ok(())
    }

    /// Cleans a segment even if there is enough free space; returns whether there was one to clean.
    ///
    /// # Errors
    /// An I/O error, [`Corrupt`](crate::Error::Corrupt).
    #[cfg(test)]
    fn clean_step(&self) -> Result<bool> {
        Ok(false)
    }

    /// Inconsistencies in the store's state, as text. No batch is being written.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    /// The identity of the device, constant for one device. `None` for memory.
    fn identity(&self) -> Option<String>;

    /// Scratch space on the same device, which is unused while no batch is being written: a probe may measure it, and
    /// leaves zeros. `None` if there is none.
    fn scratch(&self) -> Option<&dyn Device>;

    /// Makes every page durable at a place where it is found without the contents of [`scratch`](PageStore::scratch).
    /// Until [`mark`](PageStore::mark) is durable, the next opening may still need these. No other call is made
    /// meanwhile.
    ///
    /// # Errors
    /// An I/O error, after which the caller does not open the database.
    fn make_standalone(&self) -> Result<()>;

    /// Makes every page durable in its place, if the store keeps newer images elsewhere until then. For a database that
    /// closes: the data file is whole by itself then.
    ///
    /// # Errors
    /// An I/O error, after which the caller stops the database.
    fn sync_places(&self) -> Result<()> {
        Ok(())
    }

    /// A number that the next opening compares with what it finds ([`bootstrap::FoundStore::expect`]): it covers
    /// everything written so far. The caller determines the checkpoint's LSN first, then makes this number durable with
    /// the checkpoint.
    fn mark(&self) -> u64 {
        0
    }

    /// Whether pages with consecutive numbers are contiguous, so that reading several costs little more than reading
    /// one. Otherwise many threads read them faster.
    fn is_contiguous(&self) -> bool;

    /// Whether the reads of [`read_many`](PageStore::read_many) are in flight concurrently. Otherwise they are
    /// sequential.
    fn supports_batch_reads(&self) -> bool {
        false
    }

    /// Reads the pages of many ranges, as [`read`](PageSource::read) does. Calls `done` once for each range, as soon as
    /// it is read or has failed.
    fn read_many(&self, reads: &mut [PageRead<'_>], done: &mut PageReadCallback<'_>) {
        for (index, read) in reads.iter_mut().enumerate() {
            let result = self.read(read.first, read.buf);
            done(index, result.map(|()| &*read.buf));
        }
    }

    /// Writes of a batch that may be in flight at once, at most.
    fn set_write_depth(&self, writes: u32);
}
