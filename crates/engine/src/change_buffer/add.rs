//! Making a change pending.
//!
//! Rules
//! 1. Under the shard lock it is checked, in this order, that the leaf is not in the pool, its parent is unchanged, it
//!    has space, and the caller allows the change. Then the change is logged, with the leaf's lower free class, and
//!    added to the buffer. So a thread that reads the leaf afterwards finds the change, and a thread that reads the
//!    oldest pending change waits until it is added.
//! 2. A missing condition is resolved with no latch, no redo space and no shard lock held
//!    ([`ChangeBuffer::make_room_for_added`]).

use super::ChangeBuffer;
use super::buffer::{BufferShard, LeafBuffer, WaitingLeaf, Watch};
use crate::btree::{BTree, LeafMut, NonResidentLeaf};
use crate::config::ChangeBuffering;
use crate::error::{Error, Result};
use crate::mtr::Mtr;
use crate::page::PageOp;
use crate::page::node::LeafChange;
use crate::types::{PageNo, TxnId};

/// A change of a leaf that is not in the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingChange<'a> {
    pub change: LeafChange<'a>,
    /// Raises the leaf's max_trx_id; 0 = not.
    pub trx_id: TxnId,
}

/// An operation that does not fit in its leaf of the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooFull {
    pub(super) page: PageNo,
    pub(super) sequence: u32,
    pub(super) value_bytes: usize,
}

/// The outcome.
#[derive(Debug)]
#[must_use = "a change that is not pending has to be tried again: see `ChangeBuffer::make_room_for_added`"]
pub(crate) enum Added {
    /// The change is pending, or applied to its leaf.
    Done,
    /// The leaf may be full, or the buffer is: the leaf must be read and changed.
    Read(PageNo),
    /// The extent map with the leaf's free class is not in the pool.
    LoadMap(PageNo),
    /// The buffer is full, or has to take memory from the pool first: or the leaf is to be read and changed.
    Full(PageNo),
    /// A leaf of the tree of operations has to be split.
    TooFull(TooFull),
    /// The leaf is in the pool now, or another one is the leaf for the key.
    Again,
}

/// The leaf of a change, and what has to hold of it.
pub(super) struct LeafTarget<'l, 'c> {
    pub(super) leaf: &'l NonResidentLeaf<'c>,
    /// Nothing has happened to the leaf since the watch began.
    pub(super) watch: Option<&'l Watch>,
}

/// The place of a change: in a leaf in the pool, or pending.
pub(crate) enum Reached<'c> {
    /// In its leaf, which is latched.
    Leaf(Mtr<'c>, LeafMut),
    /// The leaf is not in the pool.
    Absent(Added),
}

impl ChangeBuffer {
    /// Latches the leaf of a change of `tree`, or makes the change pending if the leaf is not in the pool, changes of
    /// the tree may become pending and `allow` does not object. `mtr` has done nothing yet; the thread holds no latch.
    ///
    /// # Errors
    /// Those of `allow`, a damaged page, an I/O error; nothing is changed then.
    #[inline]
    pub(crate) fn reach<'c, E: From<Error>>(
        &self,
        mut mtr: Mtr<'c>,
        tree: &BTree,
        pending: &PendingChange<'_>,
        allow: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<Reached<'c>, E> {
        let key = pending.change.key();
        if !self.takes(tree) {
            let leaf = tree.leaf_mut(&mut mtr, key)?;
            return Ok(Reached::Leaf(mtr, leaf));
        }
        match tree.leaf_if_resident(&mut mtr, key)? {
            Ok(leaf) => Ok(Reached::Leaf(mtr, leaf)),
            Err(leaf) => self.add(mtr, &LeafTarget { leaf: &leaf, watch: None }, pending, allow).map(Reached::Absent),
        }
    }

    /// Makes a change pending, as the only work of `mtr`, if `allow` does not object. The thread holds no latch.
    ///
    /// # Errors
    /// Those of `allow`, a damaged page, an I/O error; nothing is changed then.
    fn add<E: From<Error>>(
        &self,
        mtr: Mtr<'_>,
        place: &LeafTarget<'_, '_>,
        pending: &PendingChange<'_>,
        allow: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<Added, E> {
        match self.mode() {
            ChangeBuffering::Off => Ok(Added::Read(place.leaf.page)),
            ChangeBuffering::Disk => self.add_waiting(mtr, place, pending, allow),
            ChangeBuffering::Memory => self.add_pending(mtr, place, pending, allow),
        }
    }

    /// As [`ChangeBuffer::reach`] for a leaf that is not in the pool, if nothing has happened to it since the watch
    /// began.
    ///
    /// # Errors
    /// A damaged page, an I/O error; nothing is changed then.
    pub(crate) fn add_if_watched(
        &self,
        mtr: Mtr<'_>,
        leaf: &NonResidentLeaf<'_>,
        pending: &PendingChange<'_>,
        watch: &Watch,
    ) -> Result<Added> {
        self.add(mtr, &LeafTarget { leaf, watch: Some(watch) }, pending, || Ok(()))
    }

    /// Begins to watch a leaf; `None` if it is in the pool now, or another one is the leaf for the key.
    pub(crate) fn watch(&self, leaf: &NonResidentLeaf<'_>) -> Option<Watch> {
        let mut shard = self.buffer.lock(leaf.page);
        self.is_absent(leaf).then(|| self.buffer.watch(&mut shard, leaf.page))
    }

    /// Provides what `added` lacked; true if the change is made. The caller holds no latch.
    ///
    /// # Errors
    /// An I/O error, a damaged page.
    pub(crate) fn make_room_for_added(&self, added: &Added) -> Result<bool> {
        match added {
            Added::Done => return Ok(true),
            Added::Read(page) | Added::LoadMap(page) => self.ctx.pool.load(*page)?,
            Added::Full(page) if !self.make_room()? => self.ctx.pool.load(*page)?,
            Added::Full(_) => {}
            Added::TooFull(too_full) => self.make_room_for(*too_full)?,
            Added::Again => {}
        }
        Ok(false)
    }

    fn is_absent(&self, leaf: &NonResidentLeaf<'_>) -> bool {
        !self.ctx.pool.is_resident(leaf.page) && leaf.is_current()
    }

    /// Bytes that the leaf of a change will have free at least, or why the change cannot be buffered in this mode.
    pub(super) fn look(
        &self,
        shard: &BufferShard,
        place: &LeafTarget<'_, '_>,
        pending: &PendingChange<'_>,
        mode: ChangeBuffering,
    ) -> std::result::Result<usize, Added> {
        let page = place.leaf.page;
        if !place.watch.is_none_or(|watch| shard.is_watched(watch, page)) || !self.is_absent(place.leaf) {
            return Err(Added::Again);
        }
        if self.mode() != mode {
            return Err(Added::Read(page));
        }
        let (free_bytes, have_bytes) = match (mode, shard.leaves.get(&page), shard.waiting.get(&page)) {
            (_, None, None) => (None, 0),
            // Two trees claim the page: a read of it shows which one is damaged.
            (_, Some(LeafBuffer { index, .. }), _) | (_, _, Some(WaitingLeaf { index, .. }))
                if *index != place.leaf.index =>
            {
                return Err(Added::Read(page));
            }
            (ChangeBuffering::Memory, Some(leaf), None) => (Some(leaf.free_bytes), leaf.changes.len()),
            (ChangeBuffering::Disk, None, Some(leaf)) => (leaf.free_bytes.map(|b| b as usize), leaf.bytes as usize),
            // Operations that were buffered in another mode come first.
            _ => return Err(Added::Read(page)),
        };
        let free_bytes = match free_bytes {
            Some(free_bytes) => free_bytes,
            None => self.space.min_free_bytes(&self.ctx, page).map_err(Added::LoadMap)?,
        };
        let left = free_bytes.checked_sub(pending.change.max_bytes());
        left.filter(|_| have_bytes < self.ctx.pool.page_bytes()).ok_or(Added::Read(page))
    }

    /// Lowers the free class of the leaf, which will have `left` bytes free, if `allow` does not object, and breaks its
    /// watches; or says what is missing. The mtr has changed nothing yet. The caller logs and notes the change next.
    pub(super) fn admit<E>(
        &self,
        mtr: &mut Mtr<'_>,
        shard: &mut BufferShard,
        (page, left): (PageNo, usize),
        allow: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<Option<Added>, E> {
        debug_assert!(left < self.ctx.pool.page_bytes(), "page {page} is to have {left} bytes free");
        if let Err(map) = self.space.note_free_bytes(mtr, page, left) {
            return Ok(Some(Added::LoadMap(map)));
        }
        allow()?;
        shard.break_watches(page);
        shard.check_one_kind(page);
        Ok(None)
    }

    fn add_pending<E>(
        &self,
        mut mtr: Mtr<'_>,
        place: &LeafTarget<'_, '_>,
        pending: &PendingChange<'_>,
        allow: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<Added, E> {
        let bytes = self.buffer.bytes();
        if bytes >= self.limit_bytes() || !self.frames.are_enough_for(bytes) {
            return Ok(Added::Full(place.leaf.page));
        }
        let page = place.leaf.page;
        let mut shard = self.buffer.lock(page);
        let left = match self.look(&shard, place, pending, ChangeBuffering::Memory) {
            Ok(left) => left,
            Err(added) => return Ok(added),
        };
        if let Some(lacks) = self.admit(&mut mtr, &mut shard, (page, left), allow)? {
            return Ok(lacks);
        }
        self.log_and_note(mtr, &mut shard, place.leaf, pending, left);
        Ok(Added::Done)
    }

    fn log_and_note(
        &self,
        mut mtr: Mtr<'_>,
        shard: &mut BufferShard,
        leaf: &NonResidentLeaf<'_>,
        pending: &PendingChange<'_>,
        left: usize,
    ) {
        let max_trx_id = pending.trx_id.0;
        let mut encoded = Vec::new();
        pending.change.encode(&mut encoded);
        mtr.log_only(leaf.page, &PageOp::LeafChanges { max_trx_id, canonical: false, changes: &encoded });
        let redo = mtr.commit_as();
        let mut is_new = false;
        let known = shard.leaves.entry(leaf.page).or_insert_with(|| {
            is_new = true;
            self.buffer.note_new_leaf();
            LeafBuffer { index: leaf.index, redo: redo.clone(), ..LeafBuffer::default() }
        });
        let before = if is_new { 0 } else { known.bytes() };
        debug_assert_eq!(known.index, leaf.index, "the changes of page {} are of two indexes", leaf.page);
        debug_assert!(is_new || known.redo.end <= redo.start, "rule 1: a change of page {} is logged first", leaf.page);
        debug_assert!(is_new || left <= known.free_bytes, "rule 4 of the buffer: page {} grows", leaf.page);
        known.redo.end = redo.end;
        known.changes.reserve_exact(encoded.len().max(known.changes.len() / 4));
        known.changes.extend_from_slice(&encoded);
        known.count += 1;
        known.max_trx_id = known.max_trx_id.max(max_trx_id);
        known.free_bytes = left;
        self.buffer.note_size(before, known.bytes());
        if is_new {
            shard.note_newest(leaf.page, redo.start);
            shard.leaves[&leaf.page].check(leaf.page);
        }
        self.ctx.stats.change_buffer_ops_buffered.inc();
    }
}
