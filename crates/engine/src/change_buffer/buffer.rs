//! The pending changes, in memory.
//!
//! Rules
//! 1. A leaf is here iff it has pending changes. `order` has, for each leaf, an entry with the start of its oldest
//!    redo; entries that name another LSN than the leaf does are out of date and skipped. `order` is sorted: it grows
//!    under the shard lock, at the log's end.
//! 2. Neighboring leaves share a shard ([`RANGE_PAGES`]), so that a sweep finds them in the order of their numbers.
//! 3. A watch is broken by every change that becomes pending and by every read of its leaf.

use crate::error::{Error, Result};
use crate::page::{header, node};
use crate::pool::pending::PendingChanges;
use crate::stats::Stats;
use crate::types::{IndexId, Lsn, PageNo};
use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const SHARDS: usize = 64;
/// Pages whose leaves share a shard.
const RANGE_PAGES: u32 = 1024;
/// Entries of `order` up to which those that are out of date may stay.
const LEAST_ORDER: usize = 64;
/// Bytes that a leaf takes here beside its changes: the entry, its share of the map, its place in `order`.
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
    /// Where the redo of all changes begins and ends.
    pub(super) redo: Range<Lsn>,
    /// Bytes that the leaf has free at least, with its changes applied.
    pub(super) free_bytes: usize,
}

impl LeafBuffer {
    pub(super) fn bytes(&self) -> usize {
        LEAF_BYTES + self.changes.capacity()
    }
}

struct WatchedLeaf {
    watch: u64,
    page: PageNo,
}

/// One part of the buffer.
#[derive(Default)]
pub(super) struct Shard {
    pub(super) leaves: BTreeMap<PageNo, LeafBuffer>,
    order: VecDeque<(Lsn, PageNo)>,
    watches: Vec<WatchedLeaf>,
}

impl Shard {
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
        debug_assert!(self.order.back().is_none_or(|(last, _)| *last <= start));
        self.order.push_back((start, page));
        if self.order.len() > 2 * self.leaves.len() + LEAST_ORDER {
            let Shard { leaves, order, .. } = self;
            order.retain(|(lsn, page)| leaves.get(page).is_some_and(|leaf| leaf.redo.start == *lsn));
        }
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
    shards: Box<[Mutex<Shard>]>,
    bytes: AtomicUsize,
    leaves: AtomicUsize,
    next_watch: AtomicU64,
    /// The end of the redo that was last carried forward.
    carried_lsn: AtomicU64,
    stats: Arc<Stats>,
}

/// Tells whether anything happened to a leaf that is not in the pool. Ends when it is dropped.
pub struct Watch {
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
            next_watch: AtomicU64::new(0),
            carried_lsn: AtomicU64::new(0),
            stats,
        }
    }

    /// Locks the leaf's shard.
    pub(super) fn lock(&self, page: PageNo) -> MutexGuard<'_, Shard> {
        self.shards[(page.0 / RANGE_PAGES) as usize % SHARDS].lock()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    pub(super) fn leaves(&self) -> usize {
        self.leaves.load(Relaxed)
    }

    /// A leaf takes this much more, or less.
    pub(super) fn note_size(&self, before: usize, after: usize) {
        self.bytes.fetch_add(after, Relaxed);
        self.bytes.fetch_sub(before, Relaxed);
    }

    pub(super) fn note_new_leaf(&self) {
        self.leaves.fetch_add(1, Relaxed);
    }

    /// Changes were carried forward, up to this end of redo; the caller holds their shard lock.
    pub(super) fn note_carried(&self, end: Lsn) {
        self.carried_lsn.fetch_max(end.0, Relaxed);
    }

    fn note_gone(&self, leaf: &LeafBuffer) {
        self.note_size(leaf.bytes(), 0);
        self.leaves.fetch_sub(1, Relaxed);
    }

    /// Begins to watch a leaf; the caller holds its shard lock and has seen that it is not in the pool.
    pub(super) fn watch(self: &Arc<Buffer>, shard: &mut Shard, page: PageNo) -> Watch {
        let number = self.next_watch.fetch_add(1, Relaxed);
        shard.watches.push(WatchedLeaf { watch: number, page });
        Watch { buffer: self.clone(), page, number }
    }

    /// The leaf with the oldest redo among those that lie before `due`.
    pub(super) fn next_due(&self, due: Lsn) -> Option<PageNo> {
        self.shards.iter().find_map(|shard| shard.lock().oldest().filter(|(lsn, _)| *lsn < due)).map(|(_, page)| page)
    }

    /// Up to `most` leaves that are `worth` it, from `from` on, and where to go on; `None` behind the last page.
    pub(super) fn sweep(
        &self,
        from: u32,
        end: u32,
        most: usize,
        worth: impl Fn(&LeafBuffer) -> bool,
    ) -> (Vec<PageNo>, Option<u32>) {
        let mut found = Vec::new();
        let mut at = from;
        while at < end {
            let next = (at / RANGE_PAGES + 1) * RANGE_PAGES;
            for (page, leaf) in self.lock(PageNo(at)).leaves.range(PageNo(at)..PageNo(next)) {
                if found.len() == most {
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

    /// Forgets the pending changes of an index.
    pub(super) fn discard(&self, index: IndexId) {
        for shard in &self.shards {
            shard.lock().leaves.retain(|_, leaf| {
                let stays = leaf.index != index;
                if !stays {
                    self.note_gone(leaf);
                    self.stats.change_buffer_discarded_ops.add(u64::from(leaf.count));
                }
                stays
            });
        }
    }

    /// Refreshes the gauges.
    pub(super) fn publish(&self) {
        self.stats.change_buffer_bytes.set(self.bytes() as u64);
        self.stats.change_buffer_leaves.set(self.leaves() as u64);
    }

    fn count_merged(&self, leaf: &LeafBuffer) {
        self.stats.change_buffer_merges.inc();
        for change in node::changes(&leaf.changes).flatten() {
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

    fn merge(&self, page: PageNo, bytes: &mut [u8], note_dirty: &mut dyn FnMut(Lsn)) -> Result<()> {
        let mut shard = self.lock(page);
        shard.break_watches(page);
        let Some(leaf) = shard.leaves.get(&page) else { return Ok(()) };
        apply(leaf, page, bytes)?;
        note_dirty(leaf.redo.start);
        self.count_merged(leaf);
        self.note_gone(leaf);
        shard.leaves.remove(&page);
        Ok(())
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
