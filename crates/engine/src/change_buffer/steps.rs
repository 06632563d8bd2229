//! Merging and carrying forward, a bounded step at a time.
//!
//! Rules
//! 1. Changes that hold the checkpoint back come before changes that only use space.
//! 2. A step does not wait for redo space while changes are pending, because space becomes free only when the
//!    checkpoint advances. If there is no redo space to carry a leaf's changes, the leaf is merged, which needs none.
//!    So the checkpoint advances even when the log is full. Merging operations of the tree may wait for redo space; a
//!    step does that only with `disk`, when no change is pending.
//! 3. A leaf is merged by reading it. Then its free class is raised to its free space, if there is redo space; only
//!    then can changes become pending again.
//! 4. Leaves that are merged together are requested from the read threads, which read them concurrently.
//! 5. A leaf that cannot be read keeps its changes while the log has space to carry them, and delays no other thread: a
//!    thread that cannot free space changes its leaf in the pool. When the log has no space, the leaf becomes a lost
//!    page ([`super::lose`]).
//! 6. A read that another thread began may end without a merge: that read fails, or the leaf is evicted before it is
//!    merged. So a thread that must merge everything reads a leaf until nothing is buffered for it.
//! 7. A resident, merged page has no pending changes. If it has some nevertheless, a damaged extent map has allocated
//!    the leaf's page again: the changes are dropped with an error that names the page.

use super::buffer::{BufferShard, LeafBuffer, WaitingLeaf};
use super::{ChangeBuffer, policy};
use crate::config::ChangeBuffering;
use crate::error::{Error, Result};
use crate::page::{Node, PageOp, PageType, header};
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::{Lsn, PageNo};
use std::collections::BTreeMap;

/// Leaves that one step carries forward, at most.
const CARRY_LEAVES: usize = 256;
/// Leaves that one step merges, at most.
const MERGE_LEAVES: usize = 32;
/// Leaves that a thread merges that found the buffer full.
const ROOM_LEAVES: usize = 8;

impl ChangeBuffer {
    /// Carries forward or merges what a checkpoint has to pass; merges leaves while the buffer is nearly full. True if
    /// there is more to do at once.
    ///
    /// # Errors
    /// An I/O error. A damaged leaf is skipped: its changes stay pending. Where no frame was free for a long time, the
    /// rest is left to the next step.
    pub(crate) fn step(&self) -> Result<bool> {
        match self.whole_step() {
            Err(Error::PoolExhausted { .. }) => Ok(false),
            done => done,
        }
    }

    fn whole_step(&self) -> Result<bool> {
        let advanced = self.advance_due()?;
        let is_nearly_full = self.buffer.bytes() > policy::merge_above_bytes(self.limit_bytes());
        let mut merged = if is_nearly_full { self.merge_some(MERGE_LEAVES)? } else { 0 };
        if self.is_tree_nearly_full() {
            let waiting = self.merge_some_waiting(MERGE_LEAVES)?;
            if waiting == 0 {
                self.compact()?;
            }
            merged += waiting;
        }
        self.publish();
        Ok(advanced == CARRY_LEAVES || merged > 0)
    }

    /// Carries forward or merges what a checkpoint has to pass, some of it; needs no redo space. Returns how much.
    ///
    /// # Errors
    /// As [`ChangeBuffer::step`].
    pub(crate) fn advance_due(&self) -> Result<usize> {
        self.advance(Lsn(self.ctx.log.end_lsn().0.saturating_sub(self.due_age_bytes())))
    }

    /// Bytes of redo after which pending changes are due, now: the log grows.
    fn due_age_bytes(&self) -> u64 {
        policy::due_age_bytes(self.ctx.log.capacity_bytes(), self.checkpoint_age_async_pct.load(Relaxed))
    }

    /// Most bytes of pending changes, now.
    pub(super) fn limit_bytes(&self) -> usize {
        policy::limit_bytes(self.pool_share_bytes, self.due_age_bytes())
    }

    /// Merges a few leaves, for a thread that found the buffer full, and takes memory for more changes; false if there
    /// was nothing to merge.
    pub(super) fn make_room(&self) -> Result<bool> {
        self.frames.cover(&self.ctx.pool, self.buffer.bytes())?;
        if self.buffer.bytes() < self.limit_bytes() {
            return Ok(true);
        }
        self.wake.wake();
        Ok(self.merge_some(ROOM_LEAVES)? > 0)
    }

    /// Merges everything that is buffered.
    ///
    /// # Errors
    /// An I/O error; the first damaged leaf, when all others are merged.
    pub(crate) fn merge_all(&self) -> Result<()> {
        let pending = self.merge_each(|shard| &shard.leaves, |page| self.merge_leaf(page))?;
        let waiting = self.merge_each(|shard| &shard.waiting, |page| self.ctx.pool.load(page))?;
        self.publish();
        pending.or(waiting).map_or(Ok(()), Err)
    }

    /// As [`ChangeBuffer::merge_all`]; what is buffered of damaged leaves stays so.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn merge_all_sound(&self) -> Result<()> {
        self.merge_all().or_else(|error| if error.is_damage() { Ok(()) } else { Err(error) })
    }

    /// Calls `merge` for every leaf of `leaves`, in the order of their numbers, until it is merged; the first damage.
    fn merge_each<L>(
        &self,
        leaves: impl Fn(&BufferShard) -> &BTreeMap<PageNo, L>,
        merge: impl Fn(PageNo) -> Result<()>,
    ) -> Result<Option<Error>> {
        let is_buffered = |page: &PageNo| leaves(&self.buffer.lock(*page)).contains_key(page);
        let pages = self.space.page_count();
        let (mut from, mut damage) = (Some(0), None);
        while let Some(at) = from {
            let (found, next) = self.buffer.sweep(at, pages, MERGE_LEAVES, &leaves, |_| true);
            self.ctx.pool.request(&found);
            for page in found {
                // Rule 6.
                while is_buffered(&page) {
                    match merge(page) {
                        Err(error) if error.is_damage() => {
                            damage = damage.or(Some(error));
                            break;
                        }
                        merged => merged?,
                    }
                }
            }
            from = next;
        }
        Ok(damage)
    }

    /// Frees memory that is not needed; refreshes the gauges. While everything is merged frames return at the end: what
    /// changes free is in small pieces among others, and goes back to the system when nothing is left there.
    fn publish(&self) {
        let bytes = self.buffer.bytes();
        if bytes == 0 || self.mode() != ChangeBuffering::Off {
            self.frames.shrink_to(&self.ctx.pool, bytes);
        }
        self.buffer.publish(self.tree_pages() * self.ctx.pool.page_bytes());
    }

    /// Deals with the leaves whose oldest redo is before `due`; says with how many.
    fn advance(&self, due: Lsn) -> Result<usize> {
        for done in 0..CARRY_LEAVES {
            let Some(page) = self.buffer.next_due(due) else { return Ok(done) };
            if self.carry(page, due, policy::Advance::Carry)? {
                continue;
            }
            match self.merge_leaf(page) {
                // Carrying needs no look at the leaf.
                Err(error) if error.is_damage() && self.carry(page, due, policy::Advance::Merge)? => {}
                Err(error) if error.is_damage() => self.merge_or_lose(page)?,
                merged => merged?,
            }
        }
        Ok(CARRY_LEAVES)
    }

    /// Logs the changes of a leaf again, if there is redo space at once and the policy's choice is `only_if` (carrying
    /// what should be merged is for damaged leaves); false if not.
    fn carry(&self, page: PageNo, due: Lsn, only_if: policy::Advance) -> Result<bool> {
        let mtr = self.ctx.mtr_at_once()?;
        let mut shard = self.buffer.lock(page);
        let Some(leaf) = shard.leaves.get_mut(&page).filter(|leaf| leaf.redo.start < due) else { return Ok(true) };
        let chosen = policy::advance(leaf.changes.len(), self.ctx.pool.page_bytes()) == only_if;
        let Some(mut mtr) = mtr.filter(|_| chosen) else { return Ok(false) };
        let (max_trx_id, changes) = (leaf.max_trx_id, &leaf.changes[..]);
        mtr.log_only(page, &PageOp::LeafChanges { max_trx_id, canonical: true, changes });
        let redo = mtr.commit_as();
        debug_assert!(leaf.redo.end <= redo.start, "rule 3 of the buffer: page {page} is carried back to {redo:?}");
        leaf.redo = redo;
        leaf.carried = leaf.changes.len();
        leaf.check(page);
        self.buffer.note_carried(leaf.redo.end);
        let stats = &self.ctx.stats;
        stats.change_buffer_relogged_ops.add(u64::from(leaf.count));
        stats.change_buffer_relogged_bytes.add(leaf.redo.end.0 - leaf.redo.start.0);
        let start = leaf.redo.start;
        shard.note_newest(page, start);
        Ok(true)
    }

    /// Merges up to `max` leaves with at least the mean of changes, in the order of their numbers, from where the last
    /// call ended; returns how many. Damaged ones are passed over.
    fn merge_some(&self, max: usize) -> Result<usize> {
        let (all_bytes, leaves) = (self.buffer.bytes(), self.buffer.leaves());
        let worth = |leaf: &LeafBuffer| policy::is_worth_merging(leaf.bytes(), all_bytes, leaves);
        self.merge_found(self.sweep_on(max, |shard| &shard.leaves, worth), |page| self.merge_leaf(page))
    }

    /// As [`ChangeBuffer::merge_some`], for leaves with at least the mean of waiting operations.
    fn merge_some_waiting(&self, max: usize) -> Result<usize> {
        let (all, leaves) = (self.buffer.waiting_operations(), self.buffer.waiting_leaves());
        let worth = |leaf: &WaitingLeaf| policy::is_worth_merging(leaf.count as usize, all, leaves);
        self.merge_found(self.sweep_on(max, |shard| &shard.waiting, worth), |page| self.ctx.pool.load(page))
    }

    /// Up to `max` leaves that are `worth` it, from where the last sweep ended.
    fn sweep_on<L>(
        &self,
        max: usize,
        leaves: impl Fn(&BufferShard) -> &BTreeMap<PageNo, L>,
        worth: impl Fn(&L) -> bool,
    ) -> Vec<PageNo> {
        let mut from = self.sweep_from.lock();
        let (found, next) = self.buffer.sweep(*from, self.space.page_count(), max, leaves, worth);
        *from = next.unwrap_or(0);
        found
    }

    /// Merges leaves; returns how many. Damaged ones are passed over.
    fn merge_found(&self, found: Vec<PageNo>, merge: impl Fn(PageNo) -> Result<()>) -> Result<usize> {
        let mut merged = 0;
        self.ctx.pool.request(&found);
        for page in found {
            match merge(page) {
                Err(error) if error.is_damage() => {}
                done => done.map(|()| merged += 1)?,
            }
        }
        Ok(merged)
    }

    /// Rule 7; the page is latched.
    fn drop_foreign(&self, page: PageNo, bytes: &[u8]) -> Result<()> {
        let mut shard = self.buffer.lock(page);
        let Some(leaf) = shard.leaves.get(&page) else { return Ok(()) };
        let (count, index, owner) = (leaf.count, leaf.index.0, header::owner(bytes));
        self.buffer.discard_leaf(&mut shard, page);
        let reason = format!("{count} changes of index {index} were pending for it when it became a page of {owner}");
        Err(Error::corrupt_page(page, reason))
    }

    /// Merges one leaf, and notes its free space if redo space is available at once.
    fn merge_leaf(&self, page: PageNo) -> Result<()> {
        if let Err(error) = self.ctx.pool.load(page) {
            if error.is_lost() {
                self.merge_or_lose(page)?;
            }
            return Err(error);
        }
        loop {
            let Some(mut mtr) = self.ctx.mtr_at_once()? else { return Ok(()) };
            let Some(latched) = mtr.try_fix_x(page) else { return Ok(()) };
            let bytes = mtr.page(latched);
            self.drop_foreign(page, bytes)?;
            if header::page_type(bytes)? != PageType::Leaf {
                return Ok(());
            }
            let free_bytes = Node::new(bytes).free_bytes();
            let Err(map) = self.space.note_free_bytes(&mut mtr, page, free_bytes) else {
                mtr.commit();
                return Ok(());
            };
            mtr.abandon();
            self.ctx.pool.load(map)?;
        }
    }
}
