//! The directory of undo streams: free and bound streams, and the addition of streams and pages.

use super::page::{
    DIRECTORY_COUNT_AT, DIRECTORY_LIMIT_AT, DIRECTORY_NEXT_AT, FIELDS_AT, NEXT_AT, RECORDS_AT, StreamEntry, UndoFields,
    UndoPlace, stream_entry_at, stream_last_at, streams_per_page, write,
};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{Mtr, PageHandle};
use crate::page::{PageOp, PageType};
use crate::space::reserve::{self, SpacePriority};
use crate::space::{ROOT_UNDO, SEGMENT_UNDO, Space};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use crate::sync::sharded::{CachePadded, Sharded};
use crate::types::PageNo;
use std::collections::HashMap;
use std::sync::Arc;

/// Redo of the small mini-transactions made here, in bytes.
const SMALL_REDO_BYTES: usize = 4096;

/// A stream and its end; owned by the free list or by the transaction that has bound it.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Its place in the directory.
    pub(crate) number: usize,
    /// The position of the next record.
    pub(crate) tail: UndoPlace,
    /// Transactions ever begun in it.
    pub(crate) begun: u64,
    pub(crate) page_bytes: usize,
    /// Whether the directory says that all its transactions have ended (`ended_streams.rs`).
    pub(crate) is_noted: bool,
    /// Ended transactions in it that are not purged yet.
    pub(crate) pending: Arc<CachePadded<AtomicU64>>,
}

/// The position of purge in a stream.
#[derive(Debug)]
pub(crate) struct StreamFront {
    pub(crate) number: usize,
    /// Oldest page.
    pub(crate) first: PageNo,
    /// Next record to look at.
    pub(crate) at: UndoPlace,
    /// Transactions purged, counted from the stream's beginning.
    pub(crate) purged: u64,
    /// Ended transactions that are not purged yet; shared with the stream.
    pub(crate) pending: Arc<CachePadded<AtomicU64>>,
    /// Number of its oldest transactions that had begun before the database was opened: their records are not counted.
    pub(crate) uncounted: u64,
    /// `at` is inside a transaction, after its header.
    pub(crate) inside: bool,
}

#[derive(Debug)]
pub(super) struct UndoDirectory {
    pub(super) pages: Vec<PageNo>,
    pub(super) streams: usize,
}

/// The free stream of a shard, which a thread of the shard released last: its pages are in that thread's caches, and
/// taking it needs no synchronization with other shards.
#[derive(Debug, Default)]
pub(super) struct ShardStream {
    pub(super) stream: Option<Stream>,
    /// Whether it was bound since idle ones were last released.
    pub(super) was_used: bool,
}

/// The other free streams. The one last released is bound next, so those at the bottom are the unused ones.
#[derive(Debug, Default)]
pub(super) struct FreeStreams {
    pub(super) streams: Vec<Stream>,
    /// The fewest there were since idle ones were last released.
    pub(super) low_water: usize,
}

impl FreeStreams {
    /// A stream is here at most once, and those that were unused are here.
    pub(super) fn check(&self) {
        if cfg!(debug_assertions) {
            debug_assert!(self.low_water <= self.streams.len(), "{} streams are unused", self.low_water);
            let mut numbers: Vec<usize> = self.streams.iter().map(|stream| stream.number).collect();
            numbers.sort_unstable();
            debug_assert!(numbers.is_sorted_by(|a, b| a < b), "a stream is free twice: {numbers:?}");
        }
    }
}

/// All undo streams of a database.
pub(crate) struct UndoSpace {
    pub(super) ctx: Arc<Context>,
    pub(super) space: Arc<Space>,
    pub(super) directory: Mutex<UndoDirectory>,
    /// Locked before `free`, if both are.
    pub(super) near: Sharded<Mutex<ShardStream>>,
    pub(super) free: Mutex<FreeStreams>,
    /// Places in the directory whose streams were freed.
    pub(super) vacant: Mutex<Vec<usize>>,
    /// The position of purge in each stream. Purge takes the front out of the map while it works on it.
    pub(super) fronts: Mutex<HashMap<usize, StreamFront>>,
    /// Streams with damaged pages: never purged, never bound again. Their ends, if they are known.
    pub(super) unusable: Mutex<HashMap<usize, Option<Stream>>>,
    /// Whether `unusable` has any: set before the lists of free streams are searched for such a stream, read under the
    /// mutexes of those lists.
    pub(super) has_unusable: AtomicBool,
}

impl UndoSpace {
    /// Formats an empty directory in `mtr`, which has one frame reserved; extents are ready.
    pub(crate) fn format(space: &Space, mtr: &mut Mtr<'_>) -> Result<()> {
        let page = space.allocate(mtr, SEGMENT_UNDO, None)?;
        let latched = mtr.new_page(page);
        format_page(mtr, latched, PageType::UndoDirectory);
        write(mtr, latched, DIRECTORY_LIMIT_AT, &1u64.to_le_bytes());
        space.set_root(mtr, ROOT_UNDO, page);
        Ok(())
    }

    /// Takes a stream's front, if no other thread has it.
    pub(crate) fn take_front(&self, number: usize) -> Option<StreamFront> {
        self.fronts.lock().remove(&number)
    }

    pub(crate) fn put_front(&self, front: StreamFront) {
        let number = front.number;
        let before = self.fronts.lock().insert(number, front);
        debug_assert!(before.is_none(), "rule 1 of purge: the front of stream {number} was taken twice");
    }

    /// Takes a stream with damaged pages out of use, now if it is free, else when it is released.
    pub(crate) fn mark_unusable(&self, number: usize) {
        self.unusable.lock().entry(number).or_default();
        self.has_unusable.store(true, SeqCst);
        for near in self.near.iter() {
            let mut near = near.lock();
            self.keep_unusable(near.stream.take_if(|stream| stream.number == number));
        }
        let mut free = self.free.lock();
        let found = free.streams.iter().position(|stream| stream.number == number);
        self.keep_unusable(found.map(|at| free.streams.remove(at)));
        free.low_water = free.low_water.min(free.streams.len());
        free.check();
    }

    /// Keeps the end of a stream that may not be used again.
    pub(super) fn keep_unusable(&self, stream: Option<Stream>) {
        let mut unusable = self.unusable.lock();
        stream.into_iter().for_each(|stream| drop(unusable.insert(stream.number, Some(stream))));
    }

    /// Whether a stream may not be used again. A thread that frees a stream reads this under the mutex of the shard
    /// that receives the stream.
    pub(crate) fn is_unusable(&self, number: usize) -> bool {
        self.has_unusable.load(SeqCst) && self.unusable.lock().contains_key(&number)
    }

    /// Binds a free stream, or a new one. The caller holds no latch.
    pub(crate) fn bind(&self) -> Result<Stream> {
        let mut near = self.near.local().lock();
        near.was_used = true;
        let bound = near.stream.take();
        drop(near);
        bound.map_or_else(|| self.bind_other(), Ok)
    }

    /// Binds a stream that is free elsewhere, or a new one.
    #[cold]
    fn bind_other(&self) -> Result<Stream> {
        let mut free = self.free.lock();
        let bound = free.streams.pop();
        free.low_water = free.low_water.min(free.streams.len());
        free.check();
        drop(free);
        let bound = bound.or_else(|| self.near.iter().find_map(|near| near.lock().stream.take()));
        bound.map_or_else(|| self.new_stream(), |stream| self.without_note(stream))
    }

    pub(crate) fn release(&self, stream: Stream) {
        debug_assert!(!stream.is_noted, "rule 2 of ended_streams: a stream with a note is released");
        let mut near = self.near.local().lock();
        if self.is_unusable(stream.number) {
            return self.keep_unusable(Some(stream));
        }
        if let Some(other) = near.stream.replace(stream) {
            self.free.lock().streams.push(other);
        }
    }

    /// Makes `limit` the durable bound of ids, before any id from the old bound on is used.
    pub(crate) fn set_id_limit(&self, limit: u64) -> Result<()> {
        let page = self.directory.lock().pages[0];
        let mut mtr = self.ctx.mtr()?;
        let latched = mtr.fix_x(page)?;
        write(&mut mtr, latched, DIRECTORY_LIMIT_AT, &limit.to_le_bytes());
        mtr.commit();
        Ok(())
    }

    fn new_stream(&self) -> Result<Stream> {
        let mut directory = self.directory.lock();
        let per_page = streams_per_page(self.ctx.pool.page_bytes());
        let vacant = self.vacant.lock().pop();
        if vacant.is_none() && directory.streams == directory.pages.len() * per_page {
            let last = directory.pages[directory.pages.len() - 1];
            let page = self.with_extents(|| self.new_directory_page(last))?;
            directory.pages.push(page);
        }
        let number = vacant.unwrap_or(directory.streams);
        let (page, i) = (directory.pages[number / per_page], number % per_page);
        let made = self.with_extents(|| self.write_new_stream(number, page, i, vacant.is_none()));
        let stream = made.inspect_err(|_| self.vacant.lock().extend(vacant))?;
        directory.streams += usize::from(vacant.is_none());
        debug_assert!(directory.streams <= directory.pages.len() * per_page, "{} streams", directory.streams);
        debug_assert!(number < directory.streams, "the stream {number} is not in the directory");
        self.put_front(StreamFront {
            number,
            first: stream.tail.page,
            at: stream.tail,
            purged: 0,
            pending: Arc::clone(&stream.pending),
            uncounted: 0,
            inside: false,
        });
        Ok(stream)
    }

    /// Runs a mini-transaction that allocates; runs it again if others have taken the extents that were ready.
    fn with_extents<R>(&self, run: impl FnMut() -> Result<R>) -> Result<R> {
        let _entitled = reserve::entitle(SpacePriority::Undo);
        self.space.with_room(&self.ctx, run)
    }

    fn write_new_stream(&self, number: usize, directory: PageNo, i: usize, appended: bool) -> Result<Stream> {
        let mut mtr = self.ctx.mtr_with(SMALL_REDO_BYTES, 1)?;
        let latched = mtr.fix_x(directory)?;
        let first = self.space.allocate(&mut mtr, SEGMENT_UNDO, None)?;
        let page = mtr.new_page(first);
        format_page(&mut mtr, page, PageType::Undo);
        write(
            &mut mtr,
            latched,
            stream_entry_at(i),
            &StreamEntry { first, last: first, purged: 0, ended_at: 0 }.encode(),
        );
        if appended {
            write(&mut mtr, latched, DIRECTORY_COUNT_AT, &(i as u32 + 1).to_le_bytes());
        }
        mtr.commit();
        Ok(Stream {
            number,
            tail: UndoPlace { page: first, offset: RECORDS_AT },
            begun: 0,
            page_bytes: self.ctx.pool.page_bytes(),
            is_noted: false,
            pending: Arc::default(),
        })
    }

    fn new_directory_page(&self, last: PageNo) -> Result<PageNo> {
        let mut mtr = self.ctx.mtr_with(SMALL_REDO_BYTES, 1)?;
        let latched = mtr.fix_x(last)?;
        let page = self.space.allocate(&mut mtr, SEGMENT_UNDO, Some(last))?;
        let new = mtr.new_page(page);
        format_page(&mut mtr, new, PageType::UndoDirectory);
        write(&mut mtr, latched, DIRECTORY_NEXT_AT, &page.0.to_le_bytes());
        mtr.commit();
        Ok(page)
    }

    pub(super) fn directory_place(&self, number: usize) -> (PageNo, usize) {
        let per_page = streams_per_page(self.ctx.pool.page_bytes());
        (self.directory.lock().pages[number / per_page], number % per_page)
    }

    /// Adds a page to a bound stream; `header` is its transaction's header record, if written.
    pub(crate) fn extend(&self, stream: &mut Stream, header: Option<UndoPlace>) -> Result<()> {
        let page = self.with_extents(|| self.add_page(stream, header))?;
        stream.tail = UndoPlace { page, offset: RECORDS_AT };
        Ok(())
    }

    fn add_page(&self, stream: &Stream, header: Option<UndoPlace>) -> Result<PageNo> {
        let (directory_page, i) = self.directory_place(stream.number);
        debug_assert!(
            header.is_none_or(|header| header.offset >= RECORDS_AT),
            "the header of the stream is at {header:?}"
        );
        let (mut mtr, old, directory) = loop {
            let mut mtr = self.ctx.mtr_with(SMALL_REDO_BYTES, 1)?;
            let old = mtr.fix_x(stream.tail.page)?;
            if let Some(directory) = mtr.try_fix_x(directory_page) {
                break (mtr, old, directory);
            }
            mtr.abandon();
            self.ctx.pool.load(directory_page)?;
        };
        let page = self.space.allocate(&mut mtr, SEGMENT_UNDO, Some(stream.tail.page))?;
        let new = mtr.new_page(page);
        format_page(&mut mtr, new, PageType::Undo);
        let fields = UndoFields {
            previous: stream.tail.page,
            next: PageNo(0),
            header,
            previous_end: stream.tail.offset,
            begun_before: stream.begun,
        };
        write(&mut mtr, new, FIELDS_AT, &fields.encode());
        write(&mut mtr, old, NEXT_AT, &page.0.to_le_bytes());
        write(&mut mtr, directory, stream_last_at(i), &page.0.to_le_bytes());
        mtr.commit();
        Ok(page)
    }

    pub(super) fn next_page(&self, page: PageNo) -> Result<PageNo> {
        match UndoFields::read(&self.ctx.pool.fix_s(page)?, page)?.next {
            PageNo(0) => Err(Error::corrupt_page(page, "an undo stream ends before its last page")),
            next => Ok(next),
        }
    }

    /// Every undo page reachable from the directory, directory pages included, in tests.
    #[cfg(test)]
    pub(crate) fn pages(&self) -> Result<Vec<PageNo>> {
        let (entries, mut pages, _) = super::read::read_directories(&self.ctx, &self.space)?;
        for entry in entries.iter().filter(|entry| **entry != StreamEntry::VACANT) {
            pages.push(entry.first);
            while pages[pages.len() - 1] != entry.last {
                pages.push(self.next_page(pages[pages.len() - 1])?);
            }
        }
        Ok(pages)
    }
}

fn format_page(mtr: &mut Mtr<'_>, latched: PageHandle, page_type: PageType) {
    mtr.apply(latched, &PageOp::Format { page_type, level: 0, owner: SEGMENT_UNDO.0 });
}
