//! Taking pages and freeing them, one by one, within mini-transactions.

use super::growth::FULL_KNOWN_FOR;
use super::layout::EXTENT_PAGES;
use super::{Space, reserve};
use crate::error::{Error, Result};
use crate::mtr::Mtr;
use crate::types::{PageNo, SegmentId};
use std::collections::BTreeSet;

/// Most extent maps that one mtr pins to free pages: a small pool has to serve several mtrs at once.
pub(super) const BATCH_MAPS: usize = 4;

impl Space {
    /// Takes a page for `segment`, near `near` where possible, recorded in `mtr`. Get its frame by `Mtr::new_page` and
    /// format it. The caller has called [`Space::prepare`] before its first latch.
    ///
    /// # Errors
    /// [`Error::Usage`] when all prepared extents were taken meanwhile, or the page's extent map is not in the pool:
    /// drop the mtr, `prepare`, start again.
    /// [`Error::DiskFull`] when the file cannot grow and has no page left that this thread may take.
    pub(crate) fn allocate(&self, mtr: &mut Mtr<'_>, segment: SegmentId, near: Option<PageNo>) -> Result<PageNo> {
        let page = {
            let mut state = self.state.lock();
            let keep = self.kept_chunks(&state);
            state.take(segment, near, keep).ok_or(state.is_full(reserve::purpose(), FULL_KNOWN_FOR))
        };
        let page = page.map_err(|is_full| match is_full {
            true => {
                let why = self.state.lock().full_why.clone();
                self.full(&format!("no page is free: {why}"))
            }
            false => Error::Usage("no free extent is ready".into()),
        })?;
        self.record(mtr, segment, page)
    }

    /// As [`Space::allocate`]: the lowest page that the segment can have below extent `end`; `None` if there is none.
    /// It may use the reserve for a full disk, because the caller frees a page above `end`.
    ///
    /// # Errors
    /// [`Error::Usage`] when the page's extent map is not in the pool.
    pub(crate) fn allocate_below(&self, mtr: &mut Mtr<'_>, segment: SegmentId, end: u32) -> Result<Option<PageNo>> {
        let page = self.state.lock().take_below(segment, end);
        page.map(|page| self.record(mtr, segment, page)).transpose()
    }

    /// Records in `mtr` that a page was taken.
    fn record(&self, mtr: &mut Mtr<'_>, segment: SegmentId, page: PageNo) -> Result<PageNo> {
        let (map, bitmap_at, owner_at) = self.layout.entry_of(page);
        if !mtr.pin(map) {
            self.clear(&mut self.state.lock(), page);
            self.missed_maps.lock().push(map);
            return Err(Error::Usage("an extent map is not in the pool".into()));
        }
        debug_assert_ne!(segment.0, 0, "page {page} is taken for no segment");
        mtr.defer(map, bitmap_at, true, 1 << (page.0 % EXTENT_PAGES));
        // Another segment may have owned the chunk before.
        mtr.defer(map, owner_at, false, u64::from(!segment.0));
        mtr.defer(map, owner_at, true, u64::from(segment.0));
        mtr.note_allocated(page);
        Ok(page)
    }

    /// Refuses a page that is referred to although the extent map calls it free: either the map or the page with the
    /// reference is an older version of itself.
    ///
    /// # Errors
    /// [`Error::CorruptPage`] names the map.
    pub(crate) fn expect_used(&self, page: PageNo) -> Result<()> {
        match self.owner(page) {
            Some(_) => Ok(()),
            None => {
                let reason = format!(
                    "it marks page {page} as free, but the page is in use: perhaps an old version of the extent map"
                );
                Err(Error::corrupt_page(self.layout.entry_of(page).0, reason))
            }
        }
    }

    /// Makes sure that `mtr` can give `page` back. Neither the mtr nor the thread holds a latch.
    pub(crate) fn keep_map(&self, mtr: &mut Mtr<'_>, page: PageNo) -> Result<()> {
        while let Err(map) = self.try_keep_map(mtr, page) {
            mtr.load(map)?;
        }
        Ok(())
    }

    /// Whether one mtr may give `next` back together with `pages`: it pins the maps of all of them.
    pub(crate) fn fits_batch(&self, pages: &[PageNo], next: PageNo) -> bool {
        let map_of = |page: &PageNo| self.layout.entry_of(*page).0;
        let maps: BTreeSet<PageNo> = pages.iter().chain([&next]).map(map_of).collect();
        maps.len() <= BATCH_MAPS
    }

    /// As [`Space::keep_map`], with latches held; the mtr has changed nothing yet.
    ///
    /// # Errors
    /// The map, which is not in the pool.
    pub(crate) fn try_keep_map(&self, mtr: &mut Mtr<'_>, page: PageNo) -> std::result::Result<(), PageNo> {
        let map = self.layout.entry_of(page).0;
        if mtr.pin(map) { Ok(()) } else { Err(map) }
    }

    /// Frees a page, whose map is kept ([`Space::keep_map`]); it may be allocated again once `mtr` has committed. A
    /// page that is already free stays free: after a lost write the map may be older than the tree.
    pub(crate) fn free(&self, mtr: &mut Mtr<'_>, page: PageNo) {
        if self.owner(page).is_none() {
            return;
        }
        let (map, bitmap_at, _) = self.layout.entry_of(page);
        debug_assert!(mtr.is_pinned(map), "the map of page {page} is not kept");
        mtr.defer(map, bitmap_at, false, 1 << (page.0 % EXTENT_PAGES));
        self.clear_free_classes(mtr, page, 1);
        mtr.note_freed(page);
    }
}
