//! The directory of undo streams: who is free, who is bound, adding streams and pages, giving pages back.

use super::append::write;
use super::page::{
    DIRECTORY_COUNT_AT, DIRECTORY_LIMIT_AT, DIRECTORY_NEXT_AT, FIELDS_AT, NEXT_AT, Place, RECORDS_AT, StreamEntry,
    UndoFields, read_directory, stream_entry_at, stream_last_at, streams_per_page,
};
use super::read::{scan_page, with_record};
use super::record::{Kind, State};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{Latched, Mtr};
use crate::page::{PageOp, PageType};
use crate::space::reserve::{self, Purpose};
use crate::space::{ROOT_UNDO, SEGMENT_UNDO, Space};
use crate::types::{PageNo, TxnId};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed};

/// Redo of the small mini-transactions made here, in bytes.
const SMALL_REDO_BYTES: usize = 4096;
/// Pages given back per mini-transaction.
const FREE_BATCH: usize = 32;

/// A stream and its end; owned by the free list or by the transaction that has bound it.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Its place in the directory.
    pub(crate) number: usize,
    /// Where the next record goes.
    pub(crate) tail: Place,
    /// Transactions ever begun in it.
    pub(crate) begun: u64,
    pub(crate) page_bytes: usize,
    /// Ended transactions in it that are not purged yet.
    pub(crate) pending: Arc<AtomicU64>,
}

/// Where purge stands in a stream.
#[derive(Debug)]
pub(crate) struct StreamFront {
    pub(crate) number: usize,
    /// Oldest page.
    pub(crate) first: PageNo,
    /// Next record to look at.
    pub(crate) at: Place,
    /// Transactions purged, counted from the stream's beginning.
    pub(crate) purged: u64,
    /// Ended transactions that are not purged yet; shared with the stream.
    pub(crate) pending: Arc<AtomicU64>,
    /// How many of its oldest transactions had begun before the database was opened: their records are not counted.
    pub(crate) uncounted: u64,
    /// `at` is inside a transaction, behind its header.
    pub(crate) inside: bool,
}

/// A transaction that was active when the database went down.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) id: TxnId,
    pub(crate) header: Place,
    pub(crate) stream: Stream,
}

#[derive(Debug)]
struct Directory {
    pages: Vec<PageNo>,
    streams: usize,
}

/// Free streams. The one last given back is bound next, so those at the bottom are the ones nobody needs.
#[derive(Debug, Default)]
struct Free {
    streams: Vec<Stream>,
    /// The fewest there were since idle ones were last given back.
    low_water: usize,
}

/// Free streams that are kept however long nobody needs them.
const KEPT_FREE: usize = 8;

/// All undo streams of a database.
pub(crate) struct UndoSpace {
    ctx: Arc<Context>,
    space: Arc<Space>,
    directory: Mutex<Directory>,
    free: Mutex<Free>,
    /// Places in the directory whose streams were given back.
    vacant: Mutex<Vec<usize>>,
    /// Where purge stands in each stream. It takes the front out of the map while it works on it.
    fronts: Mutex<HashMap<usize, StreamFront>>,
    /// Streams with damaged pages: never purged, never bound again.
    aside: Mutex<HashSet<usize>>,
}

/// What [`UndoSpace::open`] found.
pub(crate) struct Opened {
    pub(crate) undo: UndoSpace,
    /// Every transaction id and number in use is below this.
    pub(crate) id_limit: u64,
    pub(crate) recovered: Vec<Recovered>,
    /// Ended transactions that are not purged.
    pub(crate) history: u64,
    /// For each stream with something to purge, the number of its oldest ended transaction.
    pub(crate) ended: Vec<(u64, usize)>,
    /// Why streams are set aside.
    pub(crate) damage: Vec<Error>,
}

impl Opened {
    /// Finds where purge has to go on in a stream. Damage there sets the stream aside.
    fn meet(&mut self, number: usize, entry: &StreamEntry, pending: &Arc<AtomicU64>, is_active: bool) -> Result<()> {
        let waiting = pending.load(Relaxed);
        let found = front_of(&self.undo.ctx, number, entry, pending).and_then(|mut front| {
            let first = (waiting > 0).then(|| number_at(&self.undo.ctx, &mut front)).transpose()?;
            front.uncounted = waiting + u64::from(is_active);
            Ok((front, first))
        });
        match found {
            Ok((front, first)) => {
                self.history += waiting;
                self.ended.extend(first.map(|first| (first, number)));
                self.undo.put_front(front);
                Ok(())
            }
            Err(error) if error.is_damage() => {
                self.undo.set_aside(number);
                self.damage.push(error);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl UndoSpace {
    /// Formats an empty directory in `mtr`, which has one frame set aside; extents are ready.
    pub(crate) fn format(space: &Space, mtr: &mut Mtr<'_>) -> Result<()> {
        let page = space.allocate(mtr, SEGMENT_UNDO, None)?;
        let latched = mtr.new_page(page);
        format_page(mtr, latched, PageType::UndoDirectory);
        write(mtr, latched, DIRECTORY_LIMIT_AT, &1u64.to_le_bytes());
        space.set_root(mtr, ROOT_UNDO, page);
        Ok(())
    }

    /// Reads the directory and the end of every stream.
    pub(crate) fn open(ctx: Arc<Context>, space: Arc<Space>) -> Result<Opened> {
        let page_bytes = ctx.pool.page_bytes();
        let (entries, pages, id_limit) = read_directories(&ctx, &space)?;
        let directory = Mutex::new(Directory { pages, streams: entries.len() });
        let undo = UndoSpace {
            ctx,
            space,
            directory,
            free: Mutex::default(),
            vacant: Mutex::default(),
            fronts: Mutex::default(),
            aside: Mutex::default(),
        };
        let mut opened =
            Opened { undo, id_limit, recovered: Vec::new(), history: 0, ended: Vec::new(), damage: Vec::new() };
        for (number, entry) in entries.iter().enumerate() {
            if *entry == StreamEntry::VACANT {
                opened.undo.vacant.lock().push(number);
                continue;
            }
            // Without its end nobody knows whether a transaction has to be rolled back.
            let (stream, active) = read_end(&opened.undo.ctx, number, entry, page_bytes)?;
            opened.meet(number, entry, &stream.pending, active.is_some())?;
            match active {
                Some((id, header)) => opened.recovered.push(Recovered { id, header, stream }),
                None => opened.undo.release(stream),
            }
        }
        Ok(opened)
    }

    /// Takes a stream's front, if nobody else has it.
    pub(crate) fn take_front(&self, number: usize) -> Option<StreamFront> {
        self.fronts.lock().remove(&number)
    }

    pub(crate) fn put_front(&self, front: StreamFront) {
        self.fronts.lock().insert(front.number, front);
    }

    /// Takes a stream with damaged pages out of use, now if it is free, else when it is given back.
    pub(crate) fn set_aside(&self, number: usize) {
        self.aside.lock().insert(number);
        self.free.lock().streams.retain(|stream| stream.number != number);
    }

    /// Binds a free stream, or a new one. The caller holds no latch.
    pub(crate) fn bind(&self) -> Result<Stream> {
        let mut free = self.free.lock();
        let bound = free.streams.pop();
        free.low_water = free.low_water.min(free.streams.len());
        drop(free);
        bound.map_or_else(|| self.new_stream(), Ok)
    }

    pub(crate) fn release(&self, stream: Stream) {
        let mut free = self.free.lock();
        // Asked under the mutex that `set_aside` takes after it has entered the number.
        if !self.aside.lock().contains(&stream.number) {
            free.streams.push(stream);
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

    /// Gives the pages of streams back that nobody has needed since the last call and that purge is done with; their places
    /// in the directory are used again. Streams whose pages are damaged are set aside, which `damaged` is told. Returns how many
    /// were given back.
    pub(crate) fn give_back_idle(&self, mut damaged: impl FnMut(&Error)) -> Result<usize> {
        let idle: Vec<Stream> = {
            let mut free = self.free.lock();
            let surplus = free.low_water.saturating_sub(KEPT_FREE);
            let idle = free.streams.drain(..surplus).collect();
            free.low_water = free.streams.len();
            idle
        };
        let (mut given_back, mut kept) = (0, Vec::new());
        let mut failed = Ok(());
        for stream in idle {
            // Purge puts the front back before the last transaction counts as purged. It is taken only to be used: a free
            // stream without one cannot be purged once it is bound again.
            let is_done = failed.is_ok() && stream.pending.load(Acquire) == 0;
            let Some(mut front) = is_done.then(|| self.take_front(stream.number)).flatten() else {
                kept.push(stream);
                continue;
            };
            match self.give_back(&stream, &mut front) {
                Ok(()) => {
                    self.vacant.lock().push(stream.number);
                    given_back += 1;
                }
                Err(error) if error.is_damage() => {
                    self.set_aside(stream.number);
                    damaged(&error);
                }
                Err(error) => {
                    self.put_front(front);
                    kept.push(stream);
                    failed = Err(error);
                }
            }
        }
        self.keep_idle(kept);
        failed.map(|()| given_back)
    }

    /// Puts streams back below those that others want sooner, as if they had not been taken.
    fn keep_idle(&self, mut idle: Vec<Stream>) {
        let mut free = self.free.lock();
        let aside = self.aside.lock();
        idle.retain(|stream| !aside.contains(&stream.number));
        free.low_water += idle.len();
        free.streams.splice(..0, idle);
    }

    /// Runs a mini-transaction that allocates, again if others have taken the extents that were ready.
    fn with_extents<R>(&self, run: impl FnMut() -> Result<R>) -> Result<R> {
        let _entitled = reserve::entitle(Purpose::Undo);
        self.space.with_room(&self.ctx, run)
    }

    fn write_new_stream(&self, number: usize, directory: PageNo, i: usize, appended: bool) -> Result<Stream> {
        let mut mtr = self.ctx.mtr_with(SMALL_REDO_BYTES, 1)?;
        let latched = mtr.fix_x(directory)?;
        let first = self.space.allocate(&mut mtr, SEGMENT_UNDO, None)?;
        let page = mtr.new_page(first);
        format_page(&mut mtr, page, PageType::Undo);
        write(&mut mtr, latched, stream_entry_at(i), &StreamEntry { first, last: first, purged: 0 }.encode());
        if appended {
            write(&mut mtr, latched, DIRECTORY_COUNT_AT, &(i as u32 + 1).to_le_bytes());
        }
        mtr.commit();
        Ok(Stream {
            number,
            tail: Place { page: first, offset: RECORDS_AT },
            begun: 0,
            page_bytes: self.ctx.pool.page_bytes(),
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

    fn directory_place(&self, number: usize) -> (PageNo, usize) {
        let per_page = streams_per_page(self.ctx.pool.page_bytes());
        (self.directory.lock().pages[number / per_page], number % per_page)
    }

    /// Adds a page to a bound stream; `header` is its transaction's header record, if written.
    pub(crate) fn extend(&self, stream: &mut Stream, header: Option<Place>) -> Result<()> {
        let page = self.with_extents(|| self.add_page(stream, header))?;
        stream.tail = Place { page, offset: RECORDS_AT };
        Ok(())
    }

    fn add_page(&self, stream: &Stream, header: Option<Place>) -> Result<PageNo> {
        let (directory_page, i) = self.directory_place(stream.number);
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

    /// Gives back the pages in front of `front.at`, whose transactions are purged. Returns their number.
    pub(crate) fn free_front(&self, front: &mut StreamFront) -> Result<usize> {
        let mut freed = 0;
        while front.first != front.at.page {
            let mut pages = vec![front.first];
            let mut next = self.next_page(front.first)?;
            while next != front.at.page && pages.len() < FREE_BATCH && self.space.fits_batch(&pages, next) {
                pages.push(next);
                next = self.next_page(next)?;
            }
            self.free_pages(front, &pages, next)?;
            front.first = next;
            freed += pages.len();
        }
        Ok(freed)
    }

    fn next_page(&self, page: PageNo) -> Result<PageNo> {
        match UndoFields::read(&self.ctx.pool.fix_s(page)?, page)?.next {
            PageNo(0) => Err(Error::corrupt_page(page, "an undo stream ends before its last page")),
            next => Ok(next),
        }
    }

    fn free_pages(&self, front: &StreamFront, pages: &[PageNo], first: PageNo) -> Result<()> {
        pages.iter().try_for_each(|page| self.space.expect_used(*page))?;
        let (directory_page, i) = self.directory_place(front.number);
        let mut mtr = self.ctx.mtr()?;
        pages.iter().try_for_each(|page| self.space.keep_map(&mut mtr, *page))?;
        let directory = mtr.fix_x(directory_page)?;
        let last = StreamEntry::read(mtr.page(directory), i).last;
        let entry = StreamEntry { first, last, purged: front.purged };
        write(&mut mtr, directory, stream_entry_at(i), &entry.encode());
        for page in pages {
            self.space.free(&mut mtr, *page);
        }
        mtr.commit();
        Ok(())
    }

    /// Gives back the pages of a stream that is free and purged. Nobody else has it or its front, which stays right when this
    /// fails.
    fn give_back(&self, stream: &Stream, front: &mut StreamFront) -> Result<()> {
        front.at = stream.tail;
        self.free_front(front)?;
        let (directory_page, i) = self.directory_place(stream.number);
        let mut mtr = self.ctx.mtr()?;
        self.space.keep_map(&mut mtr, stream.tail.page)?;
        let directory = mtr.fix_x(directory_page)?;
        write(&mut mtr, directory, stream_entry_at(i), &StreamEntry::VACANT.encode());
        self.space.free(&mut mtr, stream.tail.page);
        mtr.commit();
        Ok(())
    }

    /// Every undo page reachable from the directory, directory pages included, in tests.
    #[cfg(test)]
    pub(crate) fn pages(&self) -> Result<Vec<PageNo>> {
        let (entries, mut pages, _) = read_directories(&self.ctx, &self.space)?;
        for entry in entries.iter().filter(|entry| **entry != StreamEntry::VACANT) {
            pages.push(entry.first);
            while pages[pages.len() - 1] != entry.last {
                pages.push(self.next_page(pages[pages.len() - 1])?);
            }
        }
        Ok(pages)
    }
}

fn format_page(mtr: &mut Mtr<'_>, latched: Latched, page_type: PageType) {
    mtr.apply(latched, &PageOp::Format { page_type, level: 0, owner: SEGMENT_UNDO.0 });
}

/// Streams, directory pages and the limit of ids.
pub(crate) fn read_directories(ctx: &Context, space: &Space) -> Result<(Vec<StreamEntry>, Vec<PageNo>, u64)> {
    let (mut entries, mut pages, mut id_limit) = (Vec::new(), Vec::new(), 0);
    let mut page_no = space.root(ROOT_UNDO).unwrap_or_default();
    while page_no != PageNo(0) {
        if pages.contains(&page_no) {
            return Err(Error::corrupt_page(page_no, "the undo directory runs in a circle"));
        }
        let page = ctx.pool.fix_s(page_no)?;
        let (next, count, limit) = read_directory(&page, page_no)?;
        id_limit = limit.max(id_limit);
        entries.extend((0..count).map(|i| StreamEntry::read(&page, i)));
        pages.push(page_no);
        page_no = next;
    }
    if pages.is_empty() {
        return Err(Error::Corrupt("there is no undo directory".to_string()));
    }
    Ok((entries, pages, id_limit))
}

/// Finds a stream's end, and the transaction that is still active there.
fn read_end(
    ctx: &Context,
    number: usize,
    entry: &StreamEntry,
    page_bytes: usize,
) -> Result<(Stream, Option<(TxnId, Place)>)> {
    let fields = UndoFields::read(&ctx.pool.fix_s(entry.last)?, entry.last)?;
    let (mut header, mut begun) = (fields.header, fields.begun_before);
    let (end, _) = scan_page(ctx, Place { page: entry.last, offset: RECORDS_AT }, |offset, record, _| {
        if record.kind == Kind::Header {
            header = Some(Place { page: entry.last, offset });
            begun += 1;
        }
        Ok(true)
    })?;
    let mut active = None;
    if begun > entry.purged
        && let Some(header) = header
        && let (id, State::Active, _) = with_record(ctx, header, |record| record.header())?
    {
        active = Some((id, header));
    }
    let pending = begun.saturating_sub(entry.purged).saturating_sub(active.is_some().into());
    let tail = Place { page: entry.last, offset: end };
    Ok((Stream { number, tail, begun, page_bytes, pending: Arc::new(AtomicU64::new(pending)) }, active))
}

/// The first record of the first transaction that is not purged.
fn front_of(ctx: &Context, number: usize, entry: &StreamEntry, pending: &Arc<AtomicU64>) -> Result<StreamFront> {
    let mut begun = UndoFields::read(&ctx.pool.fix_s(entry.first)?, entry.first)?.begun_before;
    let mut at = Place { page: entry.first, offset: RECORDS_AT };
    loop {
        let (offset, next) = scan_page(ctx, at, |_, record, _| {
            begun += u64::from(record.kind == Kind::Header);
            Ok(begun <= entry.purged)
        })?;
        at.offset = offset;
        if begun > entry.purged || next == PageNo(0) {
            let (first, purged, pending) = (entry.first, entry.purged, Arc::clone(pending));
            return Ok(StreamFront { number, first, at, purged, pending, uncounted: 0, inside: false });
        }
        at = Place { page: next, offset: RECORDS_AT };
    }
}

/// Moves `front` to the next transaction header and reads its number.
pub(crate) fn number_at(ctx: &Context, front: &mut StreamFront) -> Result<u64> {
    loop {
        let mut found = None;
        let (offset, next) = scan_page(ctx, front.at, |_, record, _| {
            if record.kind == Kind::Header {
                found = Some(record.header()?);
            }
            Ok(found.is_none())
        })?;
        front.at.offset = offset;
        match found {
            Some((_, State::Active, _)) => {
                return Err(Error::corrupt_page(front.at.page, "an active transaction is to be purged"));
            }
            Some((_, _, number)) => return Ok(number),
            None if next == PageNo(0) => {
                return Err(Error::corrupt_page(front.at.page, "an undo stream lacks a transaction to purge"));
            }
            None => front.at = Place { page: next, offset: RECORDS_AT },
        }
    }
}
