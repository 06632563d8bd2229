//! Descending from the root to a leaf.
//!
//! Rules
//! 1. No latch is held on the way down; the only latch taken is the leaf's, and it is taken last.
//! 2. `None` from a step means that a page changed or had to be read: the caller starts again. A step on unchanged
//!    pages makes progress or fails.
//! 3. Before a descent the leaf that this thread used last is checked (see `hint`).
//! 4. A page that was just read is compared with its parent before its contents are used ([`super::parent_check`]).
//! 5. An error met while reading a child counts only if the parent still names that child.

use super::found::{FoundLeaf, LeafPosition, MAX_LEVEL, PageVerdict, bounded_root, child_slot, error_of, is_leaf_of};
use super::hint;
use super::leaf::{Leaf, LeafMut};
use super::parent_check::{compare, judge_unknown};
use super::restarts::Restarts;
use super::seek::Seek;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{Mtr, PageHandle};
use crate::page::header::{LEVEL, TYPE, identity};
use crate::page::{Node, PageBytes, PageType, node};
use crate::pool::{FrameNo, OptimisticPage, SharedPage};
use crate::types::{IndexId, PageNo};
use std::convert::Infallible;

/// A tree to be read: what a descent needs of it. `root` never moves.
pub(super) struct TreeSearch {
    id: IndexId,
    root: PageNo,
    /// Distinguishes the leaf hints of this tree from those of others.
    serial: u64,
}

impl TreeSearch {
    pub(super) fn new(id: IndexId, root: PageNo, serial: u64) -> TreeSearch {
        TreeSearch { id, root, serial }
    }

    #[inline]
    pub(super) fn id(&self) -> IndexId {
        self.id
    }

    #[inline]
    pub(super) fn root(&self) -> PageNo {
        self.root
    }

    #[cfg(test)]
    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    /// S-latches a leaf. The caller holds no latch.
    ///
    /// # Errors
    /// [`Error::CorruptPage`], an I/O error, [`Error::PoolExhausted`].
    pub(super) fn leaf<'c>(&self, ctx: &'c Context, seek: Seek<'_>) -> Result<Leaf<'c>> {
        let mut hint = None;
        if let Seek::Covers(key) = seek {
            hint = hint::ask(self.serial);
            if let Some(view) = hint.and_then(|page| self.hinted(ctx, page, key))
                && let Some(page) = ctx.pool.latch_s(view)
            {
                hint::note_hit(self.serial);
                return Ok(Leaf::new(page));
            }
        }
        let (leaf, _) = self.sought_leaf(ctx, seek)?;
        debug_assert!(leaf.is_sought(seek), "page {} is not the leaf sought", leaf.page_no());
        hint::note_descent(self.serial, leaf.page_no(), hint.is_some());
        Ok(leaf)
    }

    /// S-latches a leaf, and returns its position if a descent found it. The caller holds no latch.
    ///
    /// # Errors
    /// As [`TreeSearch::leaf`].
    pub(super) fn sought_leaf<'c>(&self, ctx: &'c Context, seek: Seek<'_>) -> Result<(Leaf<'c>, Option<LeafPosition>)> {
        let mut restarts = Restarts::new(ctx);
        loop {
            if let Some(found) = self.descend(ctx, seek, |_| {}, |page| ctx.pool.load(page))?
                && let Some(page) = self.latch_shared(ctx, &found)?
            {
                match self.judge(ctx, &page, page.frame(), &found, seek) {
                    PageVerdict::Sought => return Ok((Leaf::new(page), LeafPosition::to(&found))),
                    PageVerdict::Stale => {}
                    PageVerdict::Corrupt(reason) => return Err(Error::corrupt_page(found.leaf, reason)),
                }
            }
            restarts.again()?;
        }
    }

    /// A view of the page hinted at, if it is the leaf that covers `key`; true once the page is latched unchanged.
    #[inline]
    fn hinted<'c>(&self, ctx: &'c Context, page: PageNo, key: &[u8]) -> Option<OptimisticPage<'c>> {
        let view = ctx.pool.optimistic(page)?;
        let is_leaf = view.u64_at(TYPE) == identity(PageType::Leaf, 0, self.id.0);
        (is_leaf && view.is_known_child() && node::covers(&view, key)).then_some(view)
    }

    /// X-latches the leaf that covers `key`. `mtr` and thread hold no latch yet.
    ///
    /// # Errors
    /// [`Error::CorruptPage`], an I/O error, [`Error::PoolExhausted`].
    pub(super) fn leaf_mut(&self, mtr: &mut Mtr<'_>, key: &[u8]) -> Result<LeafMut> {
        let Ok(leaf) = self.leaf_mut_unless(mtr, key, |_, _| None::<Infallible>)?;
        Ok(leaf)
    }

    /// X-latches the page if it is in the pool and the leaf that covers `key`; never reads, so that other leaves may be
    /// latched.
    pub(super) fn leaf_mut_at(&self, mtr: &mut Mtr<'_>, page: PageNo, key: &[u8]) -> Option<LeafMut> {
        let view = mtr.context().pool.optimistic(page)?;
        let is_leaf = view.u64_at(TYPE) == identity(PageType::Leaf, 0, self.id.0);
        let is_known = page == self.root() || view.is_known_child();
        let view = (is_leaf && is_known && node::covers(&view, key)).then_some(view)?;
        mtr.upgrade(view).map(|latched| LeafMut { latched })
    }

    /// As [`TreeSearch::leaf_mut`], unless `refuse` returns an answer for the leaf found, before that leaf is latched
    /// or read.
    pub(super) fn leaf_mut_unless<'c, A>(
        &self,
        mtr: &mut Mtr<'c>,
        key: &[u8],
        refuse: impl Fn(&'c Context, &FoundLeaf<'c>) -> Option<A>,
    ) -> Result<std::result::Result<LeafMut, A>> {
        let hint = hint::ask(self.serial);
        if let Some(leaf) = self.hinted_leaf_mut(mtr, hint, key) {
            debug_assert!(leaf.covers(mtr, key), "the hint {hint:?} led to a leaf of other keys");
            return Ok(Ok(leaf));
        }
        let sought = self.sought_leaf_mut(mtr, key, refuse)?;
        if let Ok(leaf) = &sought {
            debug_assert!(leaf.covers(mtr, key), "page {} is not the leaf sought", leaf.page_no(mtr));
            hint::note_descent(self.serial, leaf.page_no(mtr), hint.is_some());
        }
        Ok(sought)
    }

    /// X-latches the page hinted at, if it is the leaf that covers `key`.
    #[inline]
    fn hinted_leaf_mut(&self, mtr: &mut Mtr<'_>, hint: Option<PageNo>, key: &[u8]) -> Option<LeafMut> {
        let view = hint.and_then(|page| self.hinted(mtr.context(), page, key))?;
        let latched = mtr.upgrade(view)?;
        hint::note_hit(self.serial);
        Some(LeafMut { latched })
    }

    fn sought_leaf_mut<'c, A>(
        &self,
        mtr: &mut Mtr<'c>,
        key: &[u8],
        refuse: impl Fn(&'c Context, &FoundLeaf<'c>) -> Option<A>,
    ) -> Result<std::result::Result<LeafMut, A>> {
        let ctx = mtr.context();
        let seek = Seek::Covers(key);
        let mut restarts = Restarts::new(ctx);
        loop {
            if let Some(found) = self.descend(ctx, seek, |_| {}, |page| mtr.load(page))? {
                if let Some(answer) = refuse(ctx, &found) {
                    return Ok(Err(answer));
                }
                if let Some(latched) = self.latch_exclusive(mtr, &found)? {
                    match self.judge(ctx, mtr.page(latched), mtr.frame(latched), &found, seek) {
                        PageVerdict::Sought => return Ok(Ok(LeafMut { latched })),
                        PageVerdict::Stale => mtr.release(latched),
                        PageVerdict::Corrupt(reason) => return Err(Error::corrupt_page(found.leaf, reason)),
                    }
                }
            }
            restarts.again()?;
        }
    }

    /// Page numbers from the root to the leaf that covers `key`, as they were at one moment.
    pub(super) fn path(&self, ctx: &Context, key: &[u8]) -> Result<Vec<PageNo>> {
        let mut restarts = Restarts::new(ctx);
        let mut path = Vec::with_capacity(8);
        loop {
            path.clear();
            let found = self.descend(ctx, Seek::Covers(key), |page| path.push(page), |page| ctx.pool.load(page))?;
            if let Some(found) = found {
                let misleading = found.parent.filter(|parent| !node::covers(parent, key));
                match misleading {
                    None => {
                        debug_assert_eq!(
                            (path[0], path[path.len() - 1]),
                            (self.root, found.leaf),
                            "the ends of a path"
                        );
                        debug_assert!(
                            path.len() <= usize::from(MAX_LEVEL) + 1,
                            "rule 4: a path of {} pages",
                            path.len()
                        );
                        return Ok(path);
                    }
                    Some(parent) if parent.validate() => {
                        return Err(Error::corrupt_page(
                            parent.page_no(),
                            "its fences do not cover the key that leads to it",
                        ));
                    }
                    Some(_) => {}
                }
            }
            restarts.again()?;
        }
    }

    /// Descends from the root to the number of the leaf sought, with a call of `visit` for every page number; `None` =
    /// start again. `load` gets an inner page that is not resident.
    #[inline]
    pub(super) fn descend<'c>(
        &self,
        ctx: &'c Context,
        seek: Seek<'_>,
        mut visit: impl FnMut(PageNo),
        load: impl FnOnce(PageNo) -> Result<()>,
    ) -> Result<Option<FoundLeaf<'c>>> {
        visit(self.root);
        let Some(mut view) = ctx.pool.optimistic(self.root) else { return read_in(load, self.root, None) };
        let mut level = view.u8_at(LEVEL);
        if level == 0 {
            return self.at_root(&view, PageType::Leaf, level);
        }
        if level > MAX_LEVEL || view.u64_at(TYPE) != identity(PageType::Inner, level, self.id.0) {
            return self.at_root(&view, PageType::Inner, level);
        }
        loop {
            let (child, slot) = next_child(&view, seek);
            // Its frame's state and its own lines then arrive together, not one after another.
            ctx.pool.prefetch(child);
            if !view.validate() {
                return Ok(None);
            }
            visit(child);
            if child == view.page_no() {
                return Err(Error::corrupt_page(child, "it is its own child"));
            }
            if level == 1 {
                return Ok(Some(FoundLeaf { leaf: child, parent: Some(view), slot }));
            }
            let Some(next) = ctx.pool.optimistic(child) else { return read_in(load, child, Some(view)) };
            if !view.validate() {
                return Ok(None);
            }
            level -= 1;
            if next.u64_at(TYPE) != identity(PageType::Inner, level, self.id.0) {
                return misplaced(&next, Some(view.page_no()));
            }
            if !next.is_known_child_of(&view) && !compare(self.root, ctx, &view, slot, &next)? {
                return Ok(None);
            }
            view = next;
        }
    }

    /// A root that is a leaf, or a page that cannot be a root.
    fn at_root<'c>(&self, view: &OptimisticPage<'c>, page_type: PageType, level: u8) -> Result<Option<FoundLeaf<'c>>> {
        if level <= MAX_LEVEL && view.u64_at(TYPE) == identity(page_type, level, self.id.0) {
            return Ok(Some(FoundLeaf { leaf: self.root, parent: None, slot: 0 }));
        }
        match error_of(self.root, view.u64_at(TYPE), self.id) {
            Some(error) if view.validate() => Err(error),
            _ => misplaced(view, None),
        }
    }

    /// Shared latch on the leaf found; `None` = start again.
    #[inline]
    fn latch_shared<'c>(&self, ctx: &'c Context, found: &FoundLeaf<'_>) -> Result<Option<SharedPage<'c>>> {
        match ctx.pool.try_fix_s(found.leaf) {
            Some(page) => Ok(Some(page)),
            None => match ctx.pool.fix_s(found.leaf) {
                Ok(page) => Ok(Some(page)),
                Err(error) => unless_stale(found, error).map(|()| None),
            },
        }
    }

    /// Exclusive latch on the leaf found; `None` = start again.
    #[inline]
    fn latch_exclusive(&self, mtr: &mut Mtr<'_>, found: &FoundLeaf<'_>) -> Result<Option<PageHandle>> {
        match mtr.try_fix_x(found.leaf) {
            Some(latched) => Ok(Some(latched)),
            None => match mtr.fix_x(found.leaf) {
                Ok(latched) => Ok(Some(latched)),
                Err(error) => unless_stale(found, error).map(|()| None),
            },
        }
    }

    /// Whether a latched page is the leaf sought.
    #[inline]
    fn judge(&self, ctx: &Context, page: &[u8], frame: FrameNo, found: &FoundLeaf<'_>, seek: Seek<'_>) -> PageVerdict {
        let is_ours = is_leaf_of(page, self.id);
        let is_known = found.is_known(ctx, frame);
        if is_ours && is_known && found.parent.is_some() && found.is_current() {
            return PageVerdict::Sought;
        }
        if is_ours && !is_known {
            return judge_unknown(self.root, ctx, page, frame, found);
        }
        self.judge_slowly(page, is_ours, found, seek)
    }

    /// `judge` for the root, and for leaves whose parent has changed meanwhile or was latched exclusively for a moment.
    /// Such a parent may be current again by now, so the only damage that is certain is a page of another tree.
    #[inline(never)]
    fn judge_slowly(&self, page: &[u8], is_ours: bool, found: &FoundLeaf<'_>, seek: Seek<'_>) -> PageVerdict {
        if !is_ours && found.parent.is_some() && found.is_current() {
            return PageVerdict::Corrupt(not_of_the_tree(found.parent.map(|parent| parent.page_no())));
        }
        let leaf = Node::new(page);
        let is_sought = match seek {
            Seek::Covers(key) => leaf.covers(key),
            Seek::Before(key) => leaf.is_before(key),
            Seek::First => leaf.lower().is_none(),
            Seek::Last => leaf.upper().is_none(),
        };
        match (is_ours, is_sought) {
            (true, true) => PageVerdict::Sought,
            // The root, latched: nothing has changed meanwhile that could explain it.
            (true, false) if found.parent.is_none() => PageVerdict::Corrupt(bounded_root(self.root)),
            _ => PageVerdict::Stale,
        }
    }
}

/// The child of an inner page to continue with, and where it is named.
#[inline]
fn next_child(view: &OptimisticPage<'_>, seek: Seek<'_>) -> (PageNo, usize) {
    let slot = child_slot(view, seek);
    (node::child_at(view, slot), slot)
}

/// Handles a page that is not at its expected position: that is damage, unless the page has just changed.
#[cold]
fn misplaced<'c>(view: &OptimisticPage<'_>, parent: Option<PageNo>) -> Result<Option<FoundLeaf<'c>>> {
    if view.validate() {
        return Err(Error::corrupt_page(view.page_no(), not_of_the_tree(parent)));
    }
    Ok(None)
}

fn not_of_the_tree(parent: Option<PageNo>) -> String {
    let from = parent.map_or_else(String::new, |parent| format!(" from page {parent}"));
    format!("it is not a page of the tree that leads to it{from}, or has another level")
}

/// Reads a missing page, then has the descent start again.
#[cold]
fn read_in<'c>(
    load: impl FnOnce(PageNo) -> Result<()>,
    page_no: PageNo,
    parent: Option<OptimisticPage<'c>>,
) -> Result<Option<FoundLeaf<'c>>> {
    match load(page_no) {
        Ok(()) => Ok(None),
        Err(error) => unless_stale(&FoundLeaf { leaf: page_no, parent, slot: 0 }, error).map(|()| None),
    }
}

/// The error, unless the page it is about is no longer part of the path.
#[cold]
fn unless_stale(found: &FoundLeaf<'_>, error: Error) -> Result<()> {
    match error {
        Error::CorruptPage { .. } | Error::Incompatible(_) if !found.is_current() => Ok(()),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btree::btree_test::{Fixture, put};

    /// A parent that is latched exclusively for a moment and then released unchanged: not current at the first look,
    /// current at the second.
    #[test]
    fn a_parent_latched_for_a_moment_is_no_damage() {
        let fixture = Fixture::new();
        let (ctx, tree) = (fixture.ctx(), fixture.tree.search());
        (0..200u32).for_each(|n| put(ctx, &fixture.tree, &n.to_be_bytes(), &[7; 500]).unwrap());
        let seek = Seek::Covers(&[0, 0, 0, 50]);
        let found = tree.descend(ctx, seek, |_| {}, |page| ctx.pool.load(page)).unwrap().unwrap();
        let page = ctx.pool.fix_s(found.leaf).unwrap();
        assert!(found.parent.is_some() && found.is_current());
        assert!(matches!(tree.judge_slowly(&page, true, &found, seek), PageVerdict::Sought));
        assert!(matches!(tree.judge_slowly(&page, false, &found, seek), PageVerdict::Corrupt(_)));
    }
}
