//! Latched leaves: reading and changing the records of one leaf.
//!
//! Rules
//! 1. A `Leaf` holds its latch until dropped; a `LeafMut` names a latch its mini-transaction holds until it ends.
//! 2. Slots are current positions: every insertion or removal moves the following ones.
//! 3. `insert` and `splice` do not split; the caller has called `fits` or `fits_growth` under the same latch.

use super::fill::is_due;
use super::seek::Seek;
use crate::context::Context;
use crate::mtr::{Mtr, PageHandle};
use crate::page::header::{self, MAX_TRX_ID_OFFSET};
use crate::page::{Node, PageOp};
use crate::pool::{PageVersion, SharedPage};
use crate::types::{Lsn, PageNo};

/// A leaf latched shared.
pub(crate) struct Leaf<'c> {
    page: SharedPage<'c>,
}

impl<'c> Leaf<'c> {
    #[inline]
    pub(super) fn new(page: SharedPage<'c>) -> Leaf<'c> {
        debug_assert_eq!(header::level(&page), 0, "page {} is used as a leaf", page.page_no());
        Leaf { page }
    }

    #[inline]
    fn node(&self) -> Node<'_> {
        Node::new(&self.page)
    }

    /// Whether a descent for this ends here: for assertions.
    pub(super) fn is_sought(&self, seek: Seek<'_>) -> bool {
        match seek {
            Seek::Covers(key) => self.node().covers(key),
            Seek::Before(key) => self.node().is_before(key),
            Seek::First => self.lower().is_none(),
            Seek::Last => self.upper().is_none(),
        }
    }

    /// Records on the leaf.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.node().count()
    }

    /// `Ok(slot)` of the key, or `Err(slot)` where it would be.
    #[inline]
    pub(crate) fn search(&self, key: &[u8]) -> std::result::Result<usize, usize> {
        self.node().search(key)
    }

    /// Replaces `out` with the whole key of `slot`.
    #[inline]
    pub(crate) fn key_into(&self, slot: usize, out: &mut Vec<u8>) {
        self.node().key_into(slot, out);
    }

    /// Appends the key of a slot to `out`.
    #[inline]
    pub(crate) fn append_key(&self, slot: usize, out: &mut Vec<u8>) {
        self.node().append_key(slot, out);
    }

    #[inline]
    pub(crate) fn value(&self, slot: usize) -> &[u8] {
        self.node().value(slot)
    }

    /// First key the leaf may hold; `None` = no bound.
    #[inline]
    pub(crate) fn lower(&self) -> Option<&[u8]> {
        self.node().lower()
    }

    /// First key beyond the leaf; `None` = no bound.
    #[inline]
    pub(crate) fn upper(&self) -> Option<&[u8]> {
        self.node().upper()
    }

    #[inline]
    pub(crate) fn page_no(&self) -> PageNo {
        self.page.page_no()
    }

    /// The present version of the leaf, for [`Leaf::reopen`].
    #[inline]
    pub(crate) fn version(&self) -> PageVersion {
        self.page.version()
    }

    /// The leaf again, if its page has neither left the pool nor changed since it was `seen`.
    #[inline]
    pub(crate) fn reopen(ctx: &'c Context, seen: PageVersion) -> Option<Leaf<'c>> {
        ctx.pool.fix_s_if(seen).map(Leaf::new)
    }

    /// LSN of its newest change.
    pub(crate) fn lsn(&self) -> Lsn {
        header::lsn(&self.page)
    }

    /// Largest transaction number that changed this (secondary) leaf.
    #[inline]
    pub(crate) fn max_trx_id(&self) -> u64 {
        header::max_trx_id(&self.page)
    }
}

/// A leaf latched exclusively in an mtr.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafMut {
    pub(crate) latched: PageHandle,
}

impl LeafMut {
    #[inline]
    fn node<'m>(self, mtr: &'m Mtr<'_>) -> Node<'m> {
        Node::new(mtr.page(self.latched))
    }

    #[inline]
    pub(crate) fn page_no(self, mtr: &Mtr<'_>) -> PageNo {
        mtr.page_no(self.latched)
    }

    /// `Ok(slot)` of the key, or `Err(slot)` where it would be.
    #[inline]
    pub(crate) fn search(self, mtr: &Mtr<'_>, key: &[u8]) -> std::result::Result<usize, usize> {
        self.node(mtr).search(key)
    }

    #[inline]
    pub(crate) fn value<'m>(self, mtr: &'m Mtr<'_>, slot: usize) -> &'m [u8] {
        self.node(mtr).value(slot)
    }

    /// First key beyond the leaf; `None` = no bound.
    #[inline]
    pub(crate) fn upper<'m>(self, mtr: &'m Mtr<'_>) -> Option<&'m [u8]> {
        self.node(mtr).upper()
    }

    /// Whether the leaf covers `key`.
    #[inline]
    pub(crate) fn covers(self, mtr: &Mtr<'_>, key: &[u8]) -> bool {
        self.node(mtr).covers(key)
    }

    /// Whether a record of this key and value length fits.
    #[inline]
    pub(crate) fn fits(self, mtr: &Mtr<'_>, key_bytes: usize, value_bytes: usize) -> bool {
        self.node(mtr).fits(key_bytes, value_bytes)
    }

    /// Whether the value of `slot` can grow by `bytes`.
    #[inline]
    pub(crate) fn fits_growth(self, mtr: &Mtr<'_>, _slot: usize, bytes: usize) -> bool {
        self.node(mtr).fits_growth(bytes)
    }

    /// Inserts (the caller has checked `fits`).
    ///
    /// # Panics
    /// If it does not fit.
    #[inline]
    pub(crate) fn insert(self, mtr: &mut Mtr<'_>, slot: usize, key: &[u8], value: &[u8]) {
        debug_assert!(self.covers(mtr, key), "a key is inserted outside the fences of page {}", self.page_no(mtr));
        debug_assert_eq!(self.search(mtr, key), Err(slot), "a key is inserted in page {}", self.page_no(mtr));
        mtr.apply(self.latched, &PageOp::NodeInsert { slot: slot as u16, key, value });
        debug_assert_eq!(self.search(mtr, key), Ok(slot), "a key was inserted in page {}", self.page_no(mtr));
    }

    /// Removes.
    ///
    /// # Panics
    /// If there is no such slot.
    #[inline]
    pub(crate) fn remove(self, mtr: &mut Mtr<'_>, slot: usize) {
        debug_assert!(slot < self.node(mtr).count(), "no record {slot} is in page {}", self.page_no(mtr));
        mtr.apply(self.latched, &PageOp::NodeRemove { slot: slot as u16 });
    }

    /// Replaces `remove` bytes at `at` of the value with `bytes` (the caller has checked `fits_growth`).
    ///
    /// # Panics
    /// If the range is not inside the value, or the growth does not fit.
    #[inline]
    pub(crate) fn splice(self, mtr: &mut Mtr<'_>, slot: usize, at: usize, remove: usize, bytes: &[u8]) {
        debug_assert!(at + remove <= self.value(mtr, slot).len(), "{at} + {remove} is not in the value");
        let expected = self.value(mtr, slot).len() - remove + bytes.len();
        let op = PageOp::NodeSplice { slot: slot as u16, at: at as u16, remove: remove as u16, bytes };
        mtr.apply(self.latched, &op);
        debug_assert_eq!(self.value(mtr, slot).len(), expected, "a value of page {}", self.page_no(mtr));
    }

    /// Largest transaction number that changed this (secondary) leaf.
    #[inline]
    pub(crate) fn max_trx_id(self, mtr: &Mtr<'_>) -> u64 {
        header::max_trx_id(mtr.page(self.latched))
    }

    /// Raises the page's max_trx_id to `id`; nothing is logged when it is that high already.
    pub(crate) fn raise_max_trx_id(self, mtr: &mut Mtr<'_>, id: u64) {
        if id > self.max_trx_id(mtr) {
            let offset = MAX_TRX_ID_OFFSET as u16;
            mtr.apply(self.latched, &PageOp::Write { offset, bytes: &id.to_le_bytes() });
            debug_assert_eq!(self.max_trx_id(mtr), id, "the number of page {} does not rise", self.page_no(mtr));
        }
    }

    /// Bytes taken by records and fences.
    #[inline]
    pub(crate) fn used_bytes(self, mtr: &Mtr<'_>) -> usize {
        self.node(mtr).used_bytes()
    }

    /// Whether [`super::BTree::shrink`] is worth calling after a change of the leaf, which had `before` used bytes.
    #[inline]
    pub(crate) fn underfull(self, mtr: &Mtr<'_>, before: usize) -> bool {
        is_due(self.node(mtr), before)
    }
}
