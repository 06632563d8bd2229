//! File space: extents of 64 pages, segments, allocation, growth and discard.
//!
//! Terms
//! - *extent*: 64 consecutive pages. *Chunk*: 8 consecutive pages, an eighth of an extent; the unit of ownership, so
//!   that a small segment does not own a whole extent.
//! - *segment*: an owner of chunks. It grows chunk by chunk up to 32 pages, then by whole extents.
//! - *group*: the extents described by one extent map, the second page of the group.
//!
//! Rules
//! 1. The extent maps are the only truth on disk: per extent a use bit per page and an owner per chunk. Everything else
//!    (free extents, partly used extents of a segment) is derived from them when the database is opened.
//! 2. A page is used iff its bit is set; its owner is the chunk's. Both change in the mtr that formats or frees the page. The
//!    owner of a chunk of which no page is used means nothing.
//! 3. In memory a page is taken at once, and free again only when the mtr that freed it has committed.
//! 4. Page 0 says how many extents there are; the file is at least that long. Growing is: the new length, durable; then
//!    one mini-transaction that formats the maps of new groups and raises the number; then the extents are free. What lies
//!    behind the number is a growth that never finished: it may hold anything, is read by nobody, and the next growth
//!    takes it up again. A map of a counted group was formatted through redo, so one that does not verify is damage. A
//!    file shorter than the number was cut.
//! 5. An extent is discarded on the device when nobody owns any of it and a checkpoint has passed everything logged of its
//!    pages: until then recovery may need to read it, and pages of it may still be written. What counts is the end of the log
//!    when its last page was given back (`State::note_emptied`), not the end of the mtr that did it: another thread may have
//!    logged more for other pages of it.
//! 6. Every page that can be taken has its place on the device: growth and [`PageStore::reserve`] come, durable, before the
//!    first page of an extent is taken, so a full disk shows in [`Space::prepare`] and never at a write. A discarded extent
//!    is reserved again before it is taken; at opening nobody knows what was discarded, so no free extent counts as reserved.
//! 7. On a full disk what is free in the file is used to the end, but for what [`reserve`] keeps for those who give room back.
//!
//! Lock order: the growing mutex is held across I/O and while redo space is waited for; nobody waits for it with a latch
//! held, nor the thread that moves the checkpoint; the state mutex is a leaf;
//! extent-map pages are latched at mtr commit, last. They are ordinary pages that can be evicted: an mtr that will change one
//! pins it before it changes anything ([`Space::allocate`], [`Space::keep_map`]).
//!
//! Differs from InnoDB: one file, no lists linked through the maps, no inode pages, fragment pages come in chunks of 8.

pub mod header;
pub mod layout;
pub mod reserve;
mod state;
#[cfg(test)]
mod tests;

use crate::context::{Context, SpaceHook};
use crate::error::{Error, Result};
use crate::log::Log;
use crate::mtr::Mtr;
use crate::page::{PageOp, PageType};
use crate::store::PageStore;
use crate::types::{PageNo, SegmentId};
use highwater_storage::StorageError;
use layout::{CHUNKS, EXTENT_PAGES, Layout, MAX_EXTENTS};
use parking_lot::Mutex;
use reserve::Purpose;
use state::State;
pub use state::{Extent, read_entry};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Owner of file headers and extent maps.
pub const SEGMENT_SYSTEM: SegmentId = SegmentId(u32::MAX);
/// Owner of the catalog's tree.
pub const SEGMENT_CATALOG: SegmentId = SegmentId(1);
/// Owner of undo pages.
pub const SEGMENT_UNDO: SegmentId = SegmentId(2);
/// First segment number of users' tables.
const FIRST_USER_SEGMENT: u32 = 16;

/// Root slot of the catalog's tree.
pub const ROOT_CATALOG: usize = 0;
/// Root slot of the undo directory.
pub const ROOT_UNDO: usize = 1;

/// Free extents `prepare` keeps ready beside the reserve.
const READY_EXTENTS: u32 = 4;
/// Discarded extents that are tried on a full disk before it counts as full for users.
const RESERVE_TRIES: usize = 16;
/// How long nobody asks the device again after it refused room.
const FULL_FOR: Duration = Duration::from_millis(100);
/// How long a refusal explains that no page is free: who asked before it may come back to take one only later.
const FULL_KNOWN_FOR: Duration = FULL_FOR.saturating_mul(10);
/// Most extent maps that an mtr which gives pages back pins: a small pool has to serve several at once.
const BATCH_MAPS: usize = 4;
/// Most bytes the file grows by at once.
const GROW_LIMIT_BYTES: u64 = 64 << 20;

/// The data file's space.
pub struct Space {
    layout: Layout,
    store: Arc<dyn PageStore>,
    state: Mutex<State>,
    growing: Mutex<()>,
    log: Arc<Log>,
    /// Maps that an allocation needed and did not find in the pool.
    missed_maps: Mutex<Vec<PageNo>>,
}

impl SpaceHook for Space {
    fn finished(&self, committed: bool, allocated: &[PageNo], freed: &[PageNo]) {
        let undone = if committed { freed } else { allocated };
        let mut state = self.state.lock();
        undone.iter().for_each(|page| self.clear(&mut state, *page));
    }
}

impl Space {
    /// Reads every extent map and derives the state. All redo has been applied.
    ///
    /// # Errors
    /// A corrupt map, pages used beyond the end of the file, an I/O error.
    pub fn open(ctx: &Context) -> Result<Arc<Space>> {
        let (layout, store) = (Layout::new(ctx.pool.page_bytes()), ctx.pool.store().clone());
        let mut state = State::new();
        ctx.pool.make_resident(PageNo(0))?;
        let extents = {
            let page = ctx.pool.fix_s(PageNo(0))?;
            state.roots = header::read_roots(&page)?;
            header::read_extents(&page)?
        };
        let len = store.len_bytes()?;
        if len < u64::from(extents) * layout.extent_bytes() {
            let (file, each) = (store.name(), layout.extent_bytes());
            let reason =
                format!("{file} is cut: it has {len} bytes, and {extents} extents of {each} bytes belong to it");
            return Err(Error::Corrupt(reason));
        }
        for group in 0..layout.groups(extents) {
            let map = layout.map_page(group);
            let page = ctx.pool.fix_s(map)?;
            let here = layout.extents_in_group(group, extents);
            state.add_group(&layout, group, here, &page)?;
        }
        let space = Space {
            layout,
            store,
            state: Mutex::new(state),
            growing: Mutex::new(()),
            log: ctx.log.clone(),
            missed_maps: Mutex::new(Vec::new()),
        };
        let space = Arc::new(space);
        ctx.set_space_hook(space.clone());
        Ok(space)
    }

    /// A page is free again; what was logged of it lies in the log.
    fn clear(&self, state: &mut State, page: PageNo) {
        if state.clear(page) {
            state.note_emptied(page.0 / EXTENT_PAGES, self.log.end_lsn());
        }
    }

    /// A new segment's number. It owns nothing yet.
    pub fn new_segment(&self) -> SegmentId {
        let mut state = self.state.lock();
        state.next_segment = state.next_segment.max(FIRST_USER_SEGMENT);
        state.next_segment += 1;
        SegmentId(state.next_segment - 1)
    }

    /// Tells of a segment number in use (one that may own nothing yet).
    pub fn note_segment(&self, segment: SegmentId) {
        let mut state = self.state.lock();
        state.next_segment = state.next_segment.max(segment.0 + 1);
    }

    /// The page a root slot names; `None` if it was never set.
    pub fn root(&self, slot: usize) -> Option<PageNo> {
        let page = self.state.lock().roots[slot];
        (page.0 != 0).then_some(page)
    }

    /// Sets a root slot, once, in `mtr`.
    pub fn set_root(&self, mtr: &mut Mtr<'_>, slot: usize, page: PageNo) {
        let mut state = self.state.lock();
        assert_eq!(state.roots[slot], PageNo(0), "root slots are set once");
        state.roots[slot] = page;
        mtr.defer(PageNo(0), header::root_offset(slot), true, u64::from(page.0));
    }

    /// Makes sure that free extents are at hand, growing the file if not. On a full disk this is no error: what is free in
    /// the file may still serve, and [`Space::allocate`] says when it does not. The caller holds no latch; called before an
    /// mtr that may allocate.
    ///
    /// # Errors
    /// A poison or I/O error.
    pub fn prepare(&self, ctx: &Context) -> Result<()> {
        let missed = std::mem::take(&mut *self.missed_maps.lock());
        missed.into_iter().try_for_each(|map| ctx.pool.load(map))?;
        let settled = |state: &State| self.is_ready(state) || state.is_full(reserve::purpose(), FULL_FOR);
        if settled(&self.state.lock()) {
            return Ok(());
        }
        let _one_at_a_time = self.growing.lock();
        while !settled(&self.state.lock()) {
            let made = self.make_ready(ctx);
            let full = matches!(made, Err(Error::DiskFull { .. }));
            self.state.lock().full_since = full.then(|| (Instant::now(), reserve::purpose()));
            if !full {
                made?;
            }
        }
        Ok(())
    }

    /// Runs a mini-transaction that allocates, again when [`Space::allocate`] says so. The caller holds no latch.
    ///
    /// # Errors
    /// Those of [`Space::prepare`] and of `run`.
    pub fn with_room<R>(&self, ctx: &Context, mut run: impl FnMut() -> Result<R>) -> Result<R> {
        loop {
            self.prepare(ctx)?;
            match run() {
                Err(Error::Usage(_)) => {}
                result => return result,
            }
        }
    }

    /// Whether there is room for an mtr of this thread beside what others may not take.
    fn is_ready(&self, state: &State) -> bool {
        state.unowned_chunks() >= self.kept_chunks(state) + READY_EXTENTS * CHUNKS
    }

    /// Unowned chunks that this thread must leave.
    fn kept_chunks(&self, state: &State) -> u32 {
        reserve::kept_extents(reserve::purpose(), state.extents()) * CHUNKS
    }

    /// Reserves extents that may have been given back or, when there are none, grows the file.
    fn make_ready(&self, ctx: &Context) -> Result<()> {
        let most = ((GROW_LIMIT_BYTES / self.layout.extent_bytes()) as u32).max(1);
        let tries = match reserve::purpose() {
            // The reserve may lie behind any number of holes, and must be found: once round.
            Purpose::Cleaning => self.state.lock().bare_extents().max(RESERVE_TRIES),
            Purpose::Users | Purpose::Undo => RESERVE_TRIES,
        };
        let mut refused = None;
        for attempt in 0..tries {
            // After some refusals one by one: a long run is asked for several times, each time for half as much.
            let most = if attempt < RESERVE_TRIES { most } else { 1 };
            let bare = self.state.lock().bare_run(most);
            if bare.is_empty() {
                return self.grow(ctx);
            }
            match self.try_smaller(bare.end - bare.start, |extents| self.reserve(bare.start..bare.start + extents)) {
                Ok(reserved) => {
                    self.sync(ctx)?;
                    self.state.lock().note_reserved(reserved);
                    return Ok(());
                }
                // Others may still have their place: what an earlier process discarded is not known.
                Err(error @ Error::DiskFull { .. }) => {
                    self.state.lock().skip_bare(bare.start);
                    refused = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(refused.unwrap_or_else(|| self.full("no extent can be reserved")))
    }

    fn grow(&self, ctx: &Context) -> Result<()> {
        let have = self.state.lock().extents();
        let step = (u64::from(have) / 4 * self.layout.extent_bytes()).min(GROW_LIMIT_BYTES);
        let step = ((step / self.layout.extent_bytes()) as u32).max(READY_EXTENTS * 2).min(MAX_EXTENTS - have);
        if step == 0 {
            return Err(self.full("it has the largest size a data file can have"));
        }
        let want = self.try_smaller(step, |extents| {
            self.store.reserve(pages_of(have..have + extents))?;
            Ok(have + extents)
        })?;
        self.sync(ctx)?;
        self.count_extents(ctx, have, want)?;
        self.state.lock().add_free(&self.layout, want);
        Ok(())
    }

    /// Runs `take` for `extents`, and for half as many each time the disk is too full for it.
    fn try_smaller<R>(&self, extents: u32, mut take: impl FnMut(u32) -> highwater_storage::Result<R>) -> Result<R> {
        let mut extents = extents;
        loop {
            match take(extents) {
                Err(error) if error.is_full() && extents > 1 => extents /= 2,
                Err(source) if source.is_full() => return Err(Error::DiskFull { file: self.store.name(), source }),
                result => return Ok(result?),
            }
        }
    }

    fn reserve(&self, extents: Range<u32>) -> highwater_storage::Result<Range<u32>> {
        self.store.reserve(pages_of(extents.clone()))?;
        Ok(extents)
    }

    fn sync(&self, ctx: &Context) -> Result<()> {
        self.store.sync().inspect_err(|error| ctx.poison.set(&error.to_string()))
    }

    /// Formats the maps of the groups that begin behind the first `have` extents and makes `want` the number of extents.
    fn count_extents(&self, ctx: &Context, have: u32, want: u32) -> Result<()> {
        let maps: Vec<PageNo> =
            (self.layout.groups(have)..self.layout.groups(want)).map(|group| self.layout.map_page(group)).collect();
        let mut mtr = ctx.mtr_with(crate::mtr::MTR_REDO_BYTES, maps.len())?;
        let first = mtr.fix_x(PageNo(0))?;
        for map in &maps {
            let page = mtr.new_page(*map);
            format_map_ops(|op| mtr.apply(page, op));
        }
        mtr.apply(first, &header::set_extents(&want.to_le_bytes()));
        mtr.commit();
        Ok(())
    }

    /// Takes a page for `segment`, near `near` where possible, recorded in `mtr`. Get its frame by `Mtr::new_page` and
    /// format it. The caller has called [`Space::prepare`] before its first latch.
    ///
    /// # Errors
    /// [`Error::Usage`] when all prepared extents were taken meanwhile, or the page's extent map is not in the pool: drop the
    /// mtr, `prepare`, start again.
    /// [`Error::DiskFull`] when the file cannot grow and has no page left that this thread may take.
    pub fn allocate(&self, mtr: &mut Mtr<'_>, segment: SegmentId, near: Option<PageNo>) -> Result<PageNo> {
        let page = {
            let mut state = self.state.lock();
            let keep = self.kept_chunks(&state);
            state.take(segment, near, keep).ok_or(state.is_full(reserve::purpose(), FULL_KNOWN_FOR))
        };
        let page = page.map_err(|is_full| match is_full {
            true => self.full("no page is free"),
            false => Error::Usage("no free extent is ready".into()),
        })?;
        let (map, bitmap_at, owner_at) = self.layout.entry_of(page);
        if !mtr.pin(map) {
            self.clear(&mut self.state.lock(), page);
            self.missed_maps.lock().push(map);
            return Err(Error::Usage("an extent map is not in the pool".into()));
        }
        mtr.defer(map, bitmap_at, true, 1 << (page.0 % EXTENT_PAGES));
        // Another segment may have had the chunk.
        mtr.defer(map, owner_at, false, u64::from(!segment.0));
        mtr.defer(map, owner_at, true, u64::from(segment.0));
        mtr.note_allocated(page);
        Ok(page)
    }

    /// Refuses a page that something leads to and the extent map calls free: the map is an older version of itself, or what leads
    /// there is.
    ///
    /// # Errors
    /// [`Error::CorruptPage`] names the map.
    pub fn expect_used(&self, page: PageNo) -> Result<()> {
        match self.owner(page) {
            Some(_) => Ok(()),
            None => {
                let reason =
                    format!("it calls page {page} free, which is about to be given back: an older version of the map?");
                Err(Error::corrupt_page(self.layout.entry_of(page).0, reason))
            }
        }
    }

    fn full(&self, why: &str) -> Error {
        let (file, bytes) = (self.store.name(), self.layout.extent_bytes());
        let (operation, device, source) = ("growth", file.clone(), std::io::Error::new(ErrorKind::StorageFull, why));
        let offset = u64::from(self.state.lock().extents()) * bytes;
        Error::DiskFull { file, source: StorageError { operation, device, offset, len: bytes, source } }
    }

    /// Makes sure that `mtr` can give `page` back. Neither the mtr nor the thread holds a latch.
    ///
    /// # Errors
    /// Those of loading an extent map.
    pub fn keep_map(&self, mtr: &mut Mtr<'_>, page: PageNo) -> Result<()> {
        while let Err(map) = self.try_keep_map(mtr, page) {
            mtr.context().pool.load(map)?;
        }
        Ok(())
    }

    /// Whether one mtr may give `next` back together with `pages`: it pins the maps of all of them.
    pub fn fits_batch(&self, pages: &[PageNo], next: PageNo) -> bool {
        let map_of = |page: &PageNo| self.layout.entry_of(*page).0;
        let maps: BTreeSet<PageNo> = pages.iter().chain([&next]).map(map_of).collect();
        maps.len() <= BATCH_MAPS
    }

    /// As [`Space::keep_map`] with latches held, of an mtr that has changed nothing.
    ///
    /// # Errors
    /// The map, which is not in the pool.
    pub fn try_keep_map(&self, mtr: &mut Mtr<'_>, page: PageNo) -> std::result::Result<(), PageNo> {
        let map = self.layout.entry_of(page).0;
        if mtr.pin(map) { Ok(()) } else { Err(map) }
    }

    /// Gives a page back, whose map is kept ([`Space::keep_map`]); it may be allocated again once `mtr` has committed.
    pub fn free(&self, mtr: &mut Mtr<'_>, page: PageNo) {
        debug_assert!(self.owner(page).is_some(), "page {page} is not in use");
        let (map, bitmap_at, _) = self.layout.entry_of(page);
        debug_assert!(mtr.is_pinned(map), "the map of page {page} is not kept");
        mtr.defer(map, bitmap_at, false, 1 << (page.0 % EXTENT_PAGES));
        mtr.note_freed(page);
    }

    /// Owner of a used page; `None` if the page is free or beyond the file.
    pub fn owner(&self, page: PageNo) -> Option<SegmentId> {
        self.state.lock().owner(page)
    }

    /// What is known of an extent; `None` beyond the file.
    pub fn extent(&self, number: u32) -> Option<Extent> {
        self.state.lock().extent(number)
    }

    /// The arithmetic of this file.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    pub fn page_count(&self) -> u32 {
        self.state.lock().extents() * EXTENT_PAGES
    }

    /// Every used page of a segment, ascending.
    pub fn pages_of(&self, segment: SegmentId) -> Vec<PageNo> {
        self.state.lock().pages_of(segment)
    }

    /// Every segment that owns a chunk, with its number of used pages.
    pub fn segments(&self) -> Vec<(SegmentId, u32)> {
        self.state.lock().segments()
    }

    /// Gives back up to `extents` extents (or the chunks in them) of a dropped segment, in an mtr of its own; true when
    /// the segment owns nothing any more. Nobody may allocate for the segment any more.
    ///
    /// # Errors
    /// A poison error.
    pub fn drop_segment_step(&self, ctx: &Context, segment: SegmentId, extents: usize) -> Result<bool> {
        let mut victims = self.state.lock().extents_of(segment, extents.min(256));
        if victims.is_empty() {
            return Ok(true);
        }
        let mut batch = Vec::with_capacity(victims.len());
        for first in victims.iter().map(|(extent, _)| PageNo(extent * EXTENT_PAGES)) {
            if !self.fits_batch(&batch, first) {
                break;
            }
            batch.push(first);
        }
        victims.truncate(batch.len());
        let mut mtr = ctx.mtr()?;
        batch.iter().try_for_each(|first| self.keep_map(&mut mtr, *first))?;
        for (extent, chunks) in &victims {
            let first = PageNo(extent * EXTENT_PAGES);
            let (map, bitmap_at, owner_at) = self.layout.entry_of(first);
            mtr.defer(map, bitmap_at, false, layout::chunk_mask(*chunks));
            for chunk in (0..CHUNKS).filter(|c| chunks >> c & 1 == 1) {
                mtr.defer(map, owner_at + chunk as u16 * 4, false, u64::from(u32::MAX));
            }
        }
        mtr.commit();
        let mut state = self.state.lock();
        for (extent, chunks) in victims {
            if state.release_chunks(extent, chunks) {
                state.note_emptied(extent, self.log.end_lsn());
            }
        }
        Ok(false)
    }

    /// Discards on the device the emptied extents that recovery no longer needs and nobody has taken since, but for the
    /// first free ones: the reserve is not given to others. Discarding is advice, and a device that refuses it is left alone.
    pub fn discard_step(&self, ctx: &Context) {
        let checkpoint = ctx.log.checkpoint_lsn();
        // Held so that an extent is not reserved again while it is being discarded. Whoever grows the file may be waiting for a
        // checkpoint of the thread that is here: never wait for them.
        while let Some(_one_at_a_time) = self.growing.try_lock() {
            let extent = {
                let mut state = self.state.lock();
                let keep = reserve::kept_extents(Purpose::Users, state.extents()) + READY_EXTENTS;
                state.next_to_discard(checkpoint, keep as usize)
            };
            let Some(extent) = extent else { return };
            self.store.forget(pages_of(extent..extent + 1));
        }
    }
}

/// The pages of some extents.
fn pages_of(extents: Range<u32>) -> Range<u32> {
    extents.start * EXTENT_PAGES..extents.end * EXTENT_PAGES
}

/// The operations that make a page an empty extent map of a group.
pub(crate) fn format_map_ops(mut apply: impl FnMut(&PageOp<'_>)) {
    apply(&PageOp::Format { page_type: PageType::ExtentMap, level: 0, owner: SEGMENT_SYSTEM.0 });
    let offset = layout::ENTRIES_AT as u16;
    apply(&PageOp::SetBits { offset, mask: 0b11 });
    apply(&PageOp::SetBits { offset: offset + layout::OWNERS_AT as u16, mask: u64::from(SEGMENT_SYSTEM.0) });
}
