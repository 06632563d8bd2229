//! The pending changes, in memory.
//!
//! Rules
//! 1. A leaf is here iff it has pending changes. `order` has, for each leaf, an entry with the start of its oldest
//!    redo; entries whose LSN differs from the leaf's are obsolete and skipped. `order` is sorted, because entries are
//!    appended under the shard lock with the end of the log.
//! 2. Neighboring leaves share a shard ([`RANGE_PAGES`]), so that a sweep finds them in the order of their numbers.
//! 3. A [`Watch`] of a leaf ends when a change of the leaf becomes pending or waiting, and when the leaf is read.
//! 4. A leaf has pending changes, or waiting operations in the tree, or neither. Of waiting operations only the numbers
//!    are here: a leaf is in `waiting` iff the tree has operations for it, after the mini-transactions that add or
//!    remove them have ended.

use super::tree::OperationTree;
use crate::error::{Error, Result};
use crate::page::{header, node};
use crate::pool::Content;
use crate::pool::pending::PendingChanges;
use crate::stats::Stats;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::sync::{Mutex, MutexGuard};
use crate::types::{IndexId, Lsn, PageNo};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

const SHARDS: usize = 64;
/// Pages whose leaves share a shard.
const RANGE_PAGES: u32 = 1024;
/// Entries of `order` up to which those that are out of date may stay.
const MIN_ORDER: usize = 64;
/// Bytes that a leaf takes here in addition to its changes: the entry, its share of the map, its place in `order`.
const LEAF_BYTES: usize = 128;

/// The pending changes of one leaf.
#[derive(Default)]
pub(super) struct LeafBuffer {
    pub(super) index: IndexId,
    /// As [`node::LeafChange`] encodes them.
    pub(super) changes: Vec<u8>,
    /// The first bytes of `changes`, which were carried forward.
    pub(super) carried: usize,
    pub(super) count: u32,
    pub(super) max_trx_id: u64,
    /// LSN range of the redo of all changes.
    pub(super) redo: Range<Lsn>,
    /// Bytes that the leaf has free at least, with its changes applied.
    pub(super) free_bytes: usize,
}

impl LeafBuffer {
    pub(super) fn bytes(&self) -> usize {
        LEAF_BYTES + self.changes.capacity()
    }

    /// Rule 1: what is here is pending, and the list is read as it was written.
    pub(super) fn check(&self, page: PageNo) {
        if cfg!(debug_assertions) {
            let listed = node::changes(&self.changes).filter(|change| change.is_ok()).count();
            debug_assert!(self.count > 0, "page {page} is here without a pending change");
            debug_assert_eq!(listed, self.count as usize, "the list of page {page}");
            debug_assert!(self.carried <= self.changes.len(), "more of page {page} was carried than there is");
            debug_assert!(self.redo.start < self.redo.end, "the redo of page {page} is {:?}", self.redo);
        }
    }
}

/// The known facts about a leaf's pending changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitingLeaf {
    pub(crate) index: IndexId,
    pub(crate) count: u32,
    /// Of their changes, as encoded.
    pub(crate) bytes: u32,
    /// Sequence number of the next operation.
    pub(crate) next: u32,
    /// Least free bytes of the leaf with its operations applied; `None`: those of its free class.
    pub(crate) free_bytes: Option<u32>,
}

struct WatchedLeaf {
    watch: u64,
    page: PageNo,
}

/// One part of the buffer.
#[derive(Default)]
pub(super) struct BufferShard {
    pub(super) leaves: BTreeMap<PageNo, LeafBuffer>,
    pub(super) waiting: BTreeMap<PageNo, WaitingLeaf>,
    order: VecDeque<(Lsn, PageNo)>,
    watches: Vec<WatchedLeaf>,
}

impl BufferShard {
    /// The leaf with the oldest redo.
    fn oldest(&mut self) -> Option<(Lsn, PageNo)> {
        while let Some((lsn, page)) = self.order.front().copied() {
            if self.leaves.get(&page).is_some_and(|leaf| leaf.redo.start == lsn) {
                return Some((lsn, page));
            }
            self.order.pop_front();
        }
        None
    }

    /// Notes that the leaf's oldest redo is at the end of the log now.
    pub(super) fn note_newest(&mut self, page: PageNo, start: Lsn) {
        debug_assert!(self.order.back().is_none_or(|(last, _)| *last <= start), "rule 1: {start} comes after {page}'s");
        let is_its_start = self.leaves.get(&page).is_some_and(|leaf| leaf.redo.start == start);
        debug_assert!(is_its_start, "rule 1: the redo of page {page} does not begin at {start}");
        self.order.push_back((start, page));
        if self.order.len() > 2 * self.leaves.len() + MIN_ORDER {
            let BufferShard { leaves, order, .. } = self;
            order.retain(|(lsn, page)| leaves.get(page).is_some_and(|leaf| leaf.redo.start == *lsn));
        }
    }

    /// Rule 4, for one leaf.
    pub(super) fn check_one_kind(&self, page: PageNo) {
        let is_one = !(self.leaves.contains_key(&page) && self.waiting.contains_key(&page));
        debug_assert!(is_one, "rule 4: page {page} has pending changes and waiting operations");
    }

    pub(super) fn break_watches(&mut self, page: PageNo) {
        self.watches.retain(|watched| watched.page != page);
    }

    /// Whether nothing has happened to the leaf since the watch began.
    pub(super) fn is_watched(&self, watch: &Watch, page: PageNo) -> bool {
        self.watches.iter().any(|watched| watched.watch == watch.number && watched.page == page)
    }
}

/// All pending changes.
pub(super) struct Buffer {
    shards: Box<[Mutex<BufferShard>]>,
    bytes: AtomicUsize,
    leaves: AtomicUsize,
    waiting_leaves: AtomicUsize,
    waiting_operations: AtomicUsize,
    operations: OnceLock<OperationTree>,
    next_watch: AtomicU64,
    /// The end of the redo that was last carried forward.
    carried_lsn: AtomicU64,
    stats: Arc<Stats>,
}

/// Tells whether a leaf that is not in the pool was read or changed since the watch began. Ends when it is dropped.
pub(crate) struct Watch {
    buffer: Arc<Buffer>,
    page: PageNo,
    number: u64,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.buffer.lock(self.page).watches.retain(|watched| watched.watch != self.number);
    }
}

impl Buffer {
    pub(super) fn new(stats: Arc<Stats>) -> Buffer {
        Buffer {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            bytes: AtomicUsize::new(0),
            leaves: AtomicUsize::new(0),
            waiting_leaves: AtomicUsize::new(0),
            waiting_operations: AtomicUsize::new(0),
            operations: OnceLock::new(),
            next_watch: AtomicU64::new(0),
            carried_lsn: AtomicU64::new(0),
            stats,
        }
    }

    /// Locks the leaf's shard.
    pub(super) fn lock(&self, page: PageNo) -> MutexGuard<'_, BufferShard> {
        self.shards[(page.0 / RANGE_PAGES) as usize % SHARDS].lock()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub(super) fn leaves(&self) -> usize {
        self.leaves.load(Relaxed)
    }

    /// Leaves for which operations wait.
    pub(super) fn waiting_leaves(&self) -> usize {
        self.waiting_leaves.load(Relaxed)
    }

    pub(super) fn waiting_operations(&self) -> usize {
        self.waiting_operations.load(Relaxed)
    }

    /// The tree of the operations that wait, if the database has one.
    pub(super) fn operations(&self) -> Option<&OperationTree> {
        self.operations.get()
    }

    /// Sets the tree, unless it is set already.
    pub(super) fn set_operations(&self, tree: OperationTree) {
        self.operations.get_or_init(|| tree);
    }

    /// Notes an operation of a leaf, with this sequence number, in its shard.
    pub(super) fn note_waiting(
        &self,
        shard: &mut BufferShard,
        page: PageNo,
        index: IndexId,
        (sequence, bytes): (u32, usize),
        free_bytes: Option<usize>,
    ) {
        let leaf = shard.waiting.entry(page).or_insert_with(|| {
            self.waiting_leaves.fetch_add(1, Relaxed);
            WaitingLeaf { index, ..WaitingLeaf::default() }
        });
        leaf.count += 1;
        leaf.bytes += bytes as u32;
        leaf.next = sequence + 1;
        leaf.free_bytes = free_bytes.map(|bytes| bytes as u32);
        self.waiting_operations.fetch_add(1, Relaxed);
        shard.check_one_kind(page);
    }

    /// Notes that operations of a latched leaf were removed, perhaps all that there were.
    pub(super) fn note_merged(&self, page: PageNo, count: usize, bytes: usize, all: bool) {
        let mut shard = self.lock(page);
        let Some(leaf) = shard.waiting.get_mut(&page) else { return };
        let count = if all { leaf.count } else { leaf.count.min(count as u32) };
        leaf.count -= count;
        leaf.bytes = leaf.bytes.saturating_sub(bytes as u32);
        let waited = self.waiting_operations.fetch_sub(count as usize, Relaxed);
        debug_assert!(waited >= count as usize, "{count} of {waited} waiting operations are merged");
        if all {
            shard.waiting.remove(&page);
            let leaves = self.waiting_leaves.fetch_sub(1, Relaxed);
            debug_assert!(leaves > 0, "page {page} waited and was not counted");
        }
    }

    /// Every leaf for which operations wait.
    pub(super) fn all_waiting(&self) -> Vec<(PageNo, WaitingLeaf)> {
        let of =
            |shard: &Mutex<BufferShard>| shard.lock().waiting.iter().map(|(p, leaf)| (*p, *leaf)).collect::<Vec<_>>();
        self.shards.iter().flat_map(of).collect()
    }

    /// A leaf takes this much more, or less.
    pub(super) fn note_size(&self, before: usize, after: usize) {
        self.bytes.fetch_add(after, Relaxed);
        let bytes = self.bytes.fetch_sub(before, Relaxed);
        debug_assert!(bytes >= before, "the buffer has {bytes} bytes and loses {before}");
    }

    pub(super) fn note_new_leaf(&self) {
        self.leaves.fetch_add(1, Relaxed);
    }

    /// Changes were carried forward, up to this end of redo; the caller holds their shard lock.
    pub(super) fn note_carried(&self, end: Lsn) {
        self.carried_lsn.fetch_max(end.0, Relaxed);
    }

    /// Forgets the pending changes of a leaf; the caller holds its shard lock.
    pub(super) fn discard_leaf(&self, shard: &mut BufferShard, page: PageNo) {
        if let Some(leaf) = shard.leaves.remove(&page) {
            self.note_gone(&leaf);
            self.stats.change_buffer_discarded_ops.add(u64::from(leaf.count));
        }
    }

    fn note_gone(&self, leaf: &LeafBuffer) {
        self.note_size(leaf.bytes(), 0);
        let leaves = self.leaves.fetch_sub(1, Relaxed);
        debug_assert!(leaves > 0, "a leaf goes that was not counted");
    }

    /// Begins to watch a leaf; the caller holds its shard lock and has seen that it is not in the pool.
    pub(super) fn watch(self: &Arc<Buffer>, shard: &mut BufferShard, page: PageNo) -> Watch {
        let number = self.next_watch.fetch_add(1, Relaxed);
        shard.watches.push(WatchedLeaf { watch: number, page });
        Watch { buffer: self.clone(), page, number }
    }

    /// A leaf whose oldest redo begins before `due`.
    pub(super) fn next_due(&self, due: Lsn) -> Option<PageNo> {
        self.shards.iter().find_map(|shard| shard.lock().oldest().filter(|(lsn, _)| *lsn < due)).map(|(_, page)| page)
    }

    /// Up to `max` leaves that are `worth` it, from `from` on, and where to continue; `None` after the last page. `of`
    /// selects the map of a shard to search.
    pub(super) fn sweep<L>(
        &self,
        from: u32,
        end: u32,
        max: usize,
        of: impl Fn(&BufferShard) -> &BTreeMap<PageNo, L>,
        worth: impl Fn(&L) -> bool,
    ) -> (Vec<PageNo>, Option<u32>) {
        let mut found = Vec::new();
        let mut at = from;
        while at < end {
            let next = (at / RANGE_PAGES + 1) * RANGE_PAGES;
            for (page, leaf) in of(&self.lock(PageNo(at))).range(PageNo(at)..PageNo(next)) {
                if found.len() == max {
                    return (found, Some(page.0));
                }
                if worth(leaf) {
                    found.push(*page);
                }
            }
            at = next;
        }
        (found, None)
    }

    /// Drops the pending changes of the indexes that `is_gone` names, and the record that operations of them wait.
    /// Returns whether there were such operations.
    pub(super) fn discard(&self, is_gone: impl Fn(IndexId) -> bool) -> bool {
        let mut waited = false;
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.leaves.retain(|_, leaf| {
                let stays = !is_gone(leaf.index);
                if !stays {
                    self.note_gone(leaf);
                    self.stats.change_buffer_discarded_ops.add(u64::from(leaf.count));
                }
                stays
            });
            shard.waiting.retain(|_, leaf| {
                let stays = !is_gone(leaf.index);
                if !stays {
                    waited = true;
                    self.waiting_leaves.fetch_sub(1, Relaxed);
                    self.waiting_operations.fetch_sub(leaf.count as usize, Relaxed);
                }
                stays
            });
        }
        waited
    }

    /// Refreshes the gauges; the tree of waiting operations takes `tree_bytes`.
    pub(super) fn publish(&self, tree_bytes: usize) {
        let tree_bytes = if self.waiting_leaves() == 0 { 0 } else { tree_bytes };
        self.stats.change_buffer_bytes.set((self.bytes() + tree_bytes) as u64);
        self.stats.change_buffer_leaves.set((self.leaves() + self.waiting_leaves()) as u64);
    }

    /// Counts merged changes, and the merge when all of the leaf's are merged.
    pub(super) fn count_changes(&self, changes: &[u8], all: bool) {
        self.stats.change_buffer_merges.add(u64::from(all));
        for change in node::changes(changes).flatten() {
            let counter = match change {
                node::LeafChange::Put { .. } => &self.stats.change_buffer_merged_inserts,
                node::LeafChange::Flag { .. } => &self.stats.change_buffer_merged_delete_marks,
                node::LeafChange::Remove { .. } => &self.stats.change_buffer_merged_deletes,
            };
            counter.inc();
        }
    }
}

impl PendingChanges for Buffer {
    fn oldest_lsn(&self) -> Option<Lsn> {
        self.shards.iter().filter_map(|shard| shard.lock().oldest()).map(|(lsn, _)| lsn).min()
    }

    fn carried_lsn(&self) -> Lsn {
        Lsn(self.carried_lsn.load(Relaxed))
    }

    fn merge(&self, page: PageNo, bytes: &mut [u8], note_dirty: &mut dyn FnMut(Lsn)) -> Result<Content> {
        let mut shard = self.lock(page);
        shard.break_watches(page);
        // A leaf that was freed and is used again for another index is whole: nothing waits for it.
        if shard.waiting.get(&page).is_some_and(|leaf| leaf.index.0 == header::owner(bytes)) {
            return Ok(Content::Unmerged);
        }
        let Some(leaf) = shard.leaves.get(&page) else { return Ok(Content::Whole) };
        shard.check_one_kind(page);
        leaf.check(page);
        apply(leaf, page, bytes)?;
        note_dirty(leaf.redo.start);
        self.count_changes(&leaf.changes, true);
        self.note_gone(leaf);
        shard.leaves.remove(&page);
        debug_assert!(
            !shard.watches.iter().any(|watched| watched.page == page),
            "rule 3: page {page} is still watched"
        );
        Ok(Content::Whole)
    }

    fn merge_waiting(&self, page: PageNo) -> Result<()> {
        self.merge_operations(page)
    }
}

/// Applies the changes of a leaf to its page.
fn apply(leaf: &LeafBuffer, page: PageNo, bytes: &mut [u8]) -> Result<()> {
    let (index, owner) = (leaf.index.0, header::owner(bytes));
    if owner != index {
        let reason = format!("it belongs to index {owner}, and {} changes of index {index} are pending", leaf.count);
        return Err(Error::corrupt_page(page, reason));
    }
    if header::lsn(bytes) > leaf.redo.start {
        return Err(Error::corrupt_page(page, "it is newer than a change that is pending for it"));
    }
    let (carried, later) = leaf.changes.split_at(leaf.carried);
    let applied = node::apply_changes_in_place(bytes, carried)
        .and_then(|()| if leaf.carried > 0 { node::make_canonical(bytes) } else { Ok(()) })
        .and_then(|()| node::apply_changes_in_place(bytes, later));
    applied.map_err(|misfit| Error::corrupt_page(page, format!("it does not take its pending changes: {misfit}")))?;
    header::raise_max_trx_id(bytes, leaf.max_trx_id);
    header::set_lsn(bytes, leaf.redo.end);
    Ok(())
}
