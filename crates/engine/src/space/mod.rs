//! File space: extents of 64 pages, segments, allocation, growth and discard.
//!
//! Terms
//! - *extent*: 64 consecutive pages. *Chunk*: 8 consecutive pages, an eighth of an extent; the unit of ownership, so
//!   that a small segment does not own a whole extent.
//! - *segment*: an owner of chunks. It grows chunk by chunk up to 32 pages, then by whole extents.
//! - *group*: the extents described by one extent map, the second page of the group.
//!
//! Rules
//! 1. On disk only the extent maps describe the use of space: per extent a use bit per page and an owner per chunk. All
//!    other data (free extents, partly used extents of a segment) is derived from them when the database is opened.
//! 2. A page is used iff its bit is set; its owner is the chunk's. Both change in the mtr that formats or frees the
//!    page. The owner of a chunk without used pages is ignored.
//! 3. In memory a page is allocated at once, and free again only after the mtr that freed it has committed.
//! 4. Page 0 says how many extents there are; the file is at least that long. Growing takes three steps: the new
//!    length, durable; then one mini-transaction that formats the maps of new groups and raises the number; then the
//!    extents are free. The part of the file after the number is from an unfinished growth: it may have any contents,
//!    is never read, and the next growth uses it. A map of a counted group was formatted through redo, so one that does
//!    not verify is damage. A shorter file was truncated.
//! 5. An extent is discarded on the device when no chunk of it has an owner and a checkpoint has passed all logged
//!    changes of its pages: until then recovery may need to read it, and its pages may still be written. The limit is
//!    the end of the log when its last page was freed (`SpaceState::note_freed`), not the end of the mtr that freed it:
//!    another thread may have logged later changes of its other pages. A backup holds discards, because it needs the
//!    pages that its redo changes. The last checkpoint of a close passes all emptied extents. After a crash before a
//!    discard, the next opening discards every free extent once, except the reserve (`discard_found_step`).
//! 6. Every page that can be allocated has space on the device: growth and [`PageStore::reserve`] are durable before
//!    the first page of an extent is allocated, so a full disk is an error of [`Space::prepare`] and never of a write.
//!    A discarded extent is reserved again before its use. An opening does not know which extents are discarded, so no
//!    free extent counts as reserved.
//! 7. On a full disk the free pages of the file are used up, except those that [`reserve`] keeps for work that frees
//!    space.
//!
//! Lock order: the growing mutex is held across I/O and waits for redo space; no thread waits for it with a latch held,
//! and the thread that advances the checkpoint never waits for it; the state mutex is a leaf; extent-map pages are
//! latched at mtr commit, last. They are ordinary pages that can be evicted: an mtr that will change one pins it before
//! it changes anything ([`Space::allocate`], [`Space::keep_map`]).
//!
//! Differs from InnoDB: one file, no lists linked through the maps, no inode pages, fragment pages come in chunks of 8.
//!
//! | file | what |
//! |---|---|
//! | `header`, `layout`, `extent_map` | the format on disk: page 0, the arithmetic of extents, extent maps |
//! | `state`, `freed_extents` | free extents and owners, in memory |
//! | `reserve` | the priorities on a full disk |
//! | `growth` | growth of the file |
//! | `allocation`, `discard` | pages taken and freed; whole extents freed |
//! | `truncation`, `compaction` | cutting the end of the file off; where pages are moved to before that |
//! | `at_rest` | a small database that is closed |
//! | `free_class` | lower bounds of the free space of secondary leaves |

mod allocation;
mod at_rest;
mod compaction;
mod discard;
mod extent_map;
mod free_class;
mod freed_extents;
mod growth;
pub(crate) mod header;
pub(crate) mod layout;
pub(crate) mod reserve;
#[cfg(test)]
mod space_test;
mod state;
mod truncation;
#[cfg(test)]
mod truncation_test;

pub use extent_map::Extent;
pub(crate) use extent_map::{format_map_ops, read_entry};
pub(crate) use layout::{SEGMENT_CATALOG, SEGMENT_CATALOG_COPY, SEGMENT_CHANGE_BUFFER, SEGMENT_SYSTEM, SEGMENT_UNDO};
pub(crate) use truncation::Cut;

use crate::context::{Context, SpaceHook};
use crate::error::{Error, Result};
use crate::log::Log;
use crate::mtr::Mtr;
use crate::store::PageStore;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::types::{PageNo, SegmentId};
use layout::{EXTENT_PAGES, SpaceLayout, pages_of};
use state::SpaceState;
use std::sync::Arc;

/// First segment number of users' tables.
const FIRST_USER_SEGMENT: u32 = 16;

/// Root slot of the catalog's tree.
pub(crate) const ROOT_CATALOG: usize = 0;
/// Root slot of the undo directory.
pub(crate) const ROOT_UNDO: usize = 1;
/// Root slot of the change buffer's tree.
pub(crate) const ROOT_CHANGE_BUFFER: usize = 2;

/// Root slot of the catalog's second tree.
pub(crate) const ROOT_CATALOG_COPY: usize = 3;

/// The data file's space.
pub(crate) struct Space {
    layout: SpaceLayout,
    store: Arc<dyn PageStore>,
    state: Mutex<SpaceState>,
    growing: Mutex<()>,
    log: Arc<Log>,
    /// Maps that an allocation needed and did not find in the pool.
    missed_maps: Mutex<Vec<PageNo>>,
    /// Number of holds that keep emptied extents from being discarded. Changes under the state's mutex.
    discard_holds: AtomicUsize,
    /// Trees that were opened in it.
    trees: AtomicUsize,
}

impl SpaceHook for Space {
    fn finished(&self, committed: bool, allocated: &[PageNo], freed: &[PageNo]) {
        let undone = if committed { freed } else { allocated };
        let mut state = self.state.lock();
        undone.iter().for_each(|page| self.clear(&mut state, *page));
    }
}

impl Space {
    pub(crate) fn page_bytes(&self) -> usize {
        self.layout.page_bytes()
    }

    /// Reads every extent map, which describe `group_extents` extents each at most, and derives the state. All redo has
    /// been applied.
    ///
    /// # Errors
    /// A corrupt map, pages used beyond the end of the file, an I/O error.
    pub(crate) fn open(ctx: &Context, group_extents: u32) -> Result<Arc<Space>> {
        let layout = SpaceLayout::new(ctx.pool.page_bytes()).with_groups_of(group_extents);
        let store = ctx.pool.store().clone();
        let mut state = SpaceState::new();
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
        state.check_state();
        let mut is_known = true;
        state.untouched().for_each(|extent| is_known &= store.discard_unused(pages_of(extent..extent + 1)));
        if !is_known {
            state.note_found();
        }
        let space = Space {
            layout,
            store,
            state: Mutex::new(state),
            growing: Mutex::new(()),
            log: ctx.log.clone(),
            missed_maps: Mutex::new(Vec::new()),
            discard_holds: AtomicUsize::new(0),
            trees: AtomicUsize::new(0),
        };
        let space = Arc::new(space);
        ctx.set_space_hook(space.clone());
        Ok(space)
    }

    /// Counts a tree that is opened in it; returns how many were before.
    pub(crate) fn count_tree(&self) -> usize {
        self.trees.fetch_add(1, Relaxed)
    }

    /// A page is free again; all its changes are in the log.
    fn clear(&self, state: &mut SpaceState, page: PageNo) {
        if state.clear(page) {
            state.note_freed(page.0 / EXTENT_PAGES, self.log.end_lsn());
        }
    }

    /// A new segment's number. It owns nothing yet.
    pub(crate) fn new_segment(&self) -> SegmentId {
        let mut state = self.state.lock();
        state.next_segment = state.next_segment.max(FIRST_USER_SEGMENT);
        state.next_segment += 1;
        SegmentId(state.next_segment - 1)
    }

    /// Notes that a segment number is in use (it may own nothing yet).
    pub(crate) fn note_segment(&self, segment: SegmentId) {
        let mut state = self.state.lock();
        state.next_segment = state.next_segment.max(segment.0 + 1);
    }

    /// The page a root slot names; `None` if it was never set.
    pub(crate) fn root(&self, slot: usize) -> Option<PageNo> {
        let page = self.state.lock().roots[slot];
        (page.0 != 0).then_some(page)
    }

    /// Sets a root slot that is empty, in `mtr`.
    pub(crate) fn set_root(&self, mtr: &mut Mtr<'_>, slot: usize, page: PageNo) {
        let mut state = self.state.lock();
        assert_eq!(state.roots[slot], PageNo(0), "a root slot in use is emptied first");
        state.roots[slot] = page;
        mtr.defer(PageNo(0), header::root_offset(slot), true, u64::from(page.0));
    }

    /// Empties a root slot, in `mtr`.
    pub(crate) fn clear_root(&self, mtr: &mut Mtr<'_>, slot: usize) {
        let old = std::mem::take(&mut self.state.lock().roots[slot]);
        mtr.defer(PageNo(0), header::root_offset(slot), false, u64::from(old.0));
    }

    /// Owner of a used page; `None` if the page is free or beyond the file.
    pub(crate) fn owner(&self, page: PageNo) -> Option<SegmentId> {
        self.state.lock().owner(page)
    }

    /// The state of an extent; `None` beyond the file.
    pub(crate) fn extent(&self, number: u32) -> Option<Extent> {
        self.state.lock().extent(number)
    }

    /// The arithmetic of this file.
    pub(crate) fn layout(&self) -> SpaceLayout {
        self.layout
    }

    /// As [`page_count`](Space::page_count), no less than the log says up to its present end: a growth under way is
    /// waited for.
    pub(crate) fn stable_page_count(&self) -> u32 {
        let _no_growth = self.growing.lock();
        self.page_count()
    }

    pub(crate) fn page_count(&self) -> u32 {
        self.state.lock().extents() * EXTENT_PAGES
    }

    /// Every used page of a segment, ascending.
    pub(crate) fn pages_of(&self, segment: SegmentId) -> Vec<PageNo> {
        self.state.lock().pages_of(segment)
    }

    /// Used pages of a segment.
    pub(crate) fn pages_in(&self, segment: SegmentId) -> u32 {
        self.state.lock().pages_in(segment)
    }

    /// Every segment that owns a chunk, with its number of used pages.
    pub(crate) fn segments(&self) -> Vec<(SegmentId, u32)> {
        self.state.lock().segments()
    }
}
