//! Adding a pending operation to the tree of the change buffer (mode `disk`).
//!
//! Rules
//! 1. The tree's leaf for the operation is latched first, in the mini-transaction; then the shard of the index leaf is
//!    locked, and rule 1 of [`super::add`] applies. The mini-transaction is committed under the shard lock, so a thread
//!    that reads the leaf afterwards finds the operation in the tree.
//! 2. The sequence number is known only under the shard lock. The descent uses the number that was next before; if the
//!    latched leaf of the tree does not cover the final number, the thread starts again.
//! 3. The tree grows up to its limit; at the limit leaves are read instead.

use super::add::{Added, LeafTarget, PendingChange, TooFull};
use super::buffer::BufferShard;
use super::tree::{OperationTree, key_of, value_of};
use super::{ChangeBuffer, policy};
use crate::config::ChangeBuffering;
use crate::error::{Error, Result};
use crate::mtr::Mtr;
use crate::page::node;
use crate::sync::atomic::Ordering::Relaxed;

impl ChangeBuffer {
    /// Adds a change to the tree, as the only work of `mtr`, unless `allow` refuses. The thread holds no latch.
    ///
    /// # Errors
    /// Those of `allow`, a damaged page, an I/O error; nothing is changed then.
    pub(super) fn add_waiting<E: From<Error>>(
        &self,
        mut mtr: Mtr<'_>,
        place: &LeafTarget<'_, '_>,
        pending: &PendingChange<'_>,
        allow: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<Added, E> {
        let (page, index) = (place.leaf.page, place.leaf.index);
        let Some(operations) = self.buffer.operations().filter(|_| self.tree_pages() < self.limit_pages) else {
            self.wake.wake();
            return Ok(Added::Read(page));
        };
        let value = value_of(index, pending.trx_id, &pending.change);
        let look = |shard: &BufferShard| {
            let next = shard.waiting.get(&page).map_or(0, |leaf| leaf.next);
            self.look(shard, place, pending, ChangeBuffering::Disk).map(|left| (next, left))
        };
        let max_bytes = operations.tree.limits().max_value_bytes(key_of(page, 0).len());
        // A refusal now saves the read of a page of the tree.
        let next = match look(&self.buffer.lock(page)) {
            Ok((next, _)) if value.len() <= max_bytes => next,
            Ok(_) => return Ok(Added::Read(page)),
            Err(added) => return Ok(added),
        };
        let at = operations.tree.leaf_mut(&mut mtr, &key_of(page, next))?;
        let mut shard = self.buffer.lock(page);
        let (sequence, left) = match look(&shard) {
            Ok(found) => found,
            Err(added) => return Ok(added),
        };
        let key = key_of(page, sequence);
        if !node::covers(mtr.page(at.latched), &key) {
            return Ok(Added::Again);
        }
        if !at.fits(&mtr, key.len(), value.len()) {
            return Ok(Added::TooFull(TooFull { page, sequence, value_bytes: value.len() }));
        }
        let Err(slot) = at.search(&mtr, &key) else {
            let reason = format!("operation {sequence} of page {page} waits in it already");
            return Err(Error::corrupt_page(at.page_no(&mtr), reason).into());
        };
        if let Some(lacks) = self.admit(&mut mtr, &mut shard, (page, left), allow)? {
            return Ok(lacks);
        }
        let read = super::tree::Operation::decode(&key, &value).map(|found| (found.page, found.sequence, found.index));
        debug_assert_eq!(read, Some((page, sequence, index)), "an operation is not read as it is written");
        at.insert(&mut mtr, slot, &key, &value);
        mtr.commit();
        let bytes = value.len() - super::tree::VALUE_HEAD_BYTES;
        self.buffer.note_waiting(&mut shard, page, index, (sequence, bytes), Some(left));
        self.ctx.stats.change_buffer_ops_buffered.inc();
        Ok(Added::Done)
    }

    /// Splits a leaf of the tree for an operation that did not fit; reads the index leaf if the device is full.
    pub(super) fn make_room_for(&self, too_full: TooFull) -> Result<()> {
        let TooFull { page, sequence, value_bytes } = too_full;
        let key = key_of(page, sequence);
        let Some(operations) = self.buffer.operations() else { return Ok(()) };
        match operations.tree.make_room(&self.ctx, &key, key.len() + value_bytes) {
            Err(Error::DiskFull { .. }) => self.ctx.pool.load(page),
            made => made,
        }
    }

    pub(super) fn tree_pages(&self) -> usize {
        self.space.pages_in(crate::space::SEGMENT_CHANGE_BUFFER) as usize
    }

    /// Whether operations are added to the tree, and it is so large that leaves are merged in the background.
    pub(super) fn is_tree_nearly_full(&self) -> bool {
        self.mode() == ChangeBuffering::Disk && self.tree_pages() > policy::merge_above_pages(self.limit_pages)
    }

    /// Creates the tree of operations, for mode `disk`, if the database has none.
    ///
    /// # Errors
    /// A full disk, an I/O error.
    pub(super) fn provide_tree(&self) -> Result<()> {
        if self.buffer.operations().is_some() {
            return Ok(());
        }
        OperationTree::create(&self.ctx, &self.space)?;
        OperationTree::open(&self.ctx, &self.space).into_iter().for_each(|tree| self.buffer.set_operations(tree));
        Ok(())
    }

    /// The present mode of change buffering.
    pub(crate) fn mode(&self) -> ChangeBuffering {
        match self.mode.load(Relaxed) {
            1 => ChangeBuffering::Disk,
            2 => ChangeBuffering::Memory,
            _ => ChangeBuffering::Off,
        }
    }

    pub(super) fn store_mode(&self, mode: ChangeBuffering) {
        let number = match mode {
            ChangeBuffering::Off => 0,
            ChangeBuffering::Disk => 1,
            ChangeBuffering::Memory => 2,
        };
        self.mode.store(number, Relaxed);
    }
}
