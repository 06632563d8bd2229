//! Batches of a scan: a few records copied from one leaf under its latch.
//!
//! Rules
//! 1. The position of a scan is a bound (`from`): everything on the far side of it has been delivered. No change of
//!    pages makes it invalid.
//! 2. If the leaf is unchanged since the last batch, the scan continues at the remembered slot; otherwise by key.
//! 3. After the last record of a leaf the scan continues with the sibling, found through their parent.
//! 4. A locking scan locks the rows of a batch, and the range of keys the batch covers, while the leaf is latched. With
//!    SKIP LOCKED it skips locked rows, and locks ranges under SERIALIZABLE only.

use super::get::lock_latched_row;
use super::versions::Visibility;
use crate::btree::{BTree, Leaf, LeafPosition, Seek};
use crate::error::Result;
use crate::lock::{LockMode, RowName};
use crate::pool::PageVersion;
use crate::row::format::{EntryValue, ROW_HEADER_BYTES, RowHeader};
use crate::txn::system::TxnSystem;
use crate::txn::transaction::Txn;
use crate::txn::write::Blocked;
use std::ops::{Bound, Range};

/// The versions of rows that a scan delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadMode {
    /// The versions that its view sees.
    Snapshot,
    /// The newest, locked.
    Locked(LockMode),
    /// The newest, committed or not.
    Newest,
}

/// One copied record.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) key: Range<usize>,
    /// Payload of a row; what an entry has in addition to its key, if keys are asked for.
    pub(crate) value: Range<usize>,
    pub(crate) kind: ItemKind,
}

#[derive(Debug)]
pub(crate) enum ItemKind {
    /// A row as stored.
    Row(RowHeader),
    /// A secondary entry. `certain`: the row's visible version surely has it.
    Entry { prefix_bytes: usize, certain: bool },
}

/// Initial capacity of a batch: that of a small page, so that it does not grow step by step.
const FIRST_BYTES: usize = 4096;
const FIRST_ITEMS: usize = 4;

/// Records copied together.
#[derive(Debug, Default)]
pub(crate) struct RowBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) items: Vec<Item>,
    pub(crate) next: usize,
}

impl RowBatch {
    fn push(&mut self, key: &[u8], value: &[u8], kind: ItemKind) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(FIRST_BYTES);
            self.items.reserve(FIRST_ITEMS);
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.items.push(Item { key: start..middle, value: middle..self.bytes.len(), kind });
    }

    /// The items are in the order of the scan, as assertions: they are of one leaf.
    fn check_order(&self, reverse: bool) {
        let key = |item: &Item| &self.bytes[item.key.clone()];
        let is_before = |a: &Item, b: &Item| if reverse { key(b) < key(a) } else { key(a) < key(b) };
        debug_assert!(self.items.is_sorted_by(is_before), "rule 1: the rows of a batch are out of order");
    }

    /// Key of the row of an entry.
    #[inline]
    pub(crate) fn row_key(&self, n: usize) -> Option<&[u8]> {
        let item = self.items.get(n)?;
        match item.kind {
            ItemKind::Row(_) => None,
            ItemKind::Entry { prefix_bytes, .. } => self.bytes[item.key.clone()].get(prefix_bytes..),
        }
    }

    /// Whether all of it was delivered.
    pub(crate) fn is_delivered(&self) -> bool {
        self.next >= self.items.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        self.next = 0;
    }
}

/// Position of a scan.
#[derive(Debug)]
pub(crate) struct ScanPosition {
    pub(crate) lower: Bound<Vec<u8>>,
    pub(crate) upper: Bound<Vec<u8>>,
    pub(crate) reverse: bool,
    pub(crate) done: bool,
    /// The leaf last read, its version then, and the slots of it that are still to be read.
    leaf: Option<(PageVersion, Range<usize>)>,
    /// The way to the leaf last read, if everything on it has been delivered or it is still remembered.
    pub(super) way: Option<LeafPosition>,
    /// Records of the leaf last read; 0 before the first.
    pub(super) leaf_records: usize,
    /// Scratch.
    key: Vec<u8>,
}

/// The parameters of filling a batch.
pub(crate) struct Fill<'a> {
    pub(crate) system: &'a TxnSystem,
    pub(crate) txn: &'a Txn,
    pub(crate) tree: &'a BTree,
    /// Clustered rows, else secondary entries.
    pub(crate) clustered: bool,
    pub(crate) read_mode: ReadMode,
    /// Of a snapshot scan.
    pub(crate) visibility: Option<Visibility<'a>>,
    /// Most records to copy.
    pub(crate) limit: usize,
    /// Whether what entries have in addition to their keys is copied.
    pub(crate) keys_only: bool,
}

/// The result of filling a batch.
enum End {
    /// The batch is full; the last record looked at is in `key`.
    Full,
    /// The row in `key` is locked by another transaction.
    Conflict(Blocked),
    /// All slots in range were looked at.
    Exhausted,
}

/// A bound, borrowed.
fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn key_of(bound: Bound<&[u8]>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// Slots of the leaf between two bounds.
fn window(leaf: &Leaf<'_>, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Range<usize> {
    let start = match lower {
        Bound::Unbounded => 0,
        Bound::Included(key) => leaf.search(key).unwrap_or_else(|slot| slot),
        Bound::Excluded(key) => leaf.search(key).map_or_else(|slot| slot, |slot| slot + 1),
    };
    let end = match upper {
        Bound::Unbounded => leaf.len(),
        Bound::Included(key) => leaf.search(key).map_or_else(|slot| slot, |slot| slot + 1),
        Bound::Excluded(key) => leaf.search(key).unwrap_or_else(|slot| slot),
    };
    start..end.max(start)
}

impl ScanPosition {
    pub(crate) fn new(lower: Bound<&[u8]>, upper: Bound<&[u8]>, reverse: bool) -> ScanPosition {
        let empty = match (lower, upper) {
            (Bound::Included(a), Bound::Included(b)) => a > b,
            (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a >= b,
            _ => false,
        };
        ScanPosition {
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            reverse,
            done: empty,
            leaf: None,
            way: None,
            leaf_records: 0,
            key: Vec::new(),
        }
    }

    /// The key of the row whose lock stopped the last batch.
    pub(crate) fn conflict_key(&self) -> &[u8] {
        &self.key
    }

    /// Whether the next batch begins on another leaf.
    pub(crate) fn has_left_leaf(&self) -> bool {
        self.leaf.is_none()
    }

    /// Records of the leaf last read; 0 before the first.
    pub(crate) fn leaf_records(&self) -> usize {
        self.leaf_records
    }

    /// Estimated number of leaves for this many records, the first leaf of the next batch included, if all leaves are
    /// like the last one.
    pub(crate) fn leaves_of(&self, records: usize) -> usize {
        let left = self.leaf.as_ref().map_or(0, |(_, slots)| slots.len());
        usize::from(left > 0) + records.saturating_sub(left).div_ceil(self.leaf_records.max(1))
    }

    /// The start of the next batch.
    pub(crate) fn seek(&self) -> Seek<'_> {
        if self.reverse { self.highest() } else { self.lowest() }
    }

    /// The end of the scan.
    pub(crate) fn end(&self) -> Seek<'_> {
        if self.reverse { self.lowest() } else { self.highest() }
    }

    fn lowest(&self) -> Seek<'_> {
        key_of(as_slice(&self.lower)).map_or(Seek::First, Seek::Covers)
    }

    fn highest(&self) -> Seek<'_> {
        match as_slice(&self.upper) {
            Bound::Included(key) => Seek::Covers(key),
            Bound::Excluded(key) => Seek::Before(key),
            Bound::Unbounded => Seek::Last,
        }
    }

    /// Copies the next records, from one leaf. The batch may stay empty: then continue, unless `done`. A conflict is
    /// reported when it comes first; otherwise the batch ends before it.
    pub(crate) fn fill(&mut self, batch: &mut RowBatch, fill: &Fill<'_>) -> std::result::Result<(), Blocked> {
        batch.clear();
        let (leaf, way, mut slots) = self.reach(fill)?;
        self.leaf_records = leaf.len();
        let end = self.copy(batch, fill, &leaf, &mut slots)?;
        batch.check_order(self.reverse);
        if matches!(fill.read_mode, ReadMode::Locked(_)) && fill.txn.reads_lock_ranges() {
            self.lock_range(fill, &leaf, &end);
        }
        match end {
            End::Full => {
                debug_assert!(!slots.is_empty(), "rule 2: a leaf is to be continued that has been read");
                self.leaf = Some((leaf.version(), slots));
                self.way = way;
                self.move_to_key();
            }
            End::Conflict(blocked) if batch.items.is_empty() => return Err(blocked),
            End::Conflict(_) => self.move_before_key(),
            End::Exhausted => {
                self.way = way;
                self.leave(&leaf);
            }
        }
        Ok(())
    }

    /// The leaf to continue with and its slots in range (rules 2 and 3).
    pub(super) fn reach<'c>(&mut self, fill: &Fill<'c>) -> Result<(Leaf<'c>, Option<LeafPosition>, Range<usize>)> {
        let (ctx, way) = (&fill.system.ctx, self.way.take());
        let sibling = match self.leaf.take() {
            None => way.and_then(|way| fill.tree.sibling_leaf(ctx, way, self.reverse)),
            Some((at, slots)) => match Leaf::reopen(ctx, at) {
                Some(leaf) => return Ok((leaf, way, slots)),
                None => None,
            },
        };
        let (leaf, way) = match sibling {
            Some((leaf, way)) => (leaf, Some(way)),
            // Many scans end on the leaf they begin on, and that is often the one this thread used last.
            None if self.leaf_records == 0 => (fill.tree.leaf(ctx, self.seek())?, None),
            None => fill.tree.sought_leaf(ctx, self.seek())?,
        };
        if let Some(way) = way {
            fill.tree.prefetch_sibling(ctx, way, self.reverse);
        }
        let slots = window(&leaf, as_slice(&self.lower), as_slice(&self.upper));
        Ok((leaf, way, slots))
    }

    fn copy(
        &mut self,
        batch: &mut RowBatch,
        fill: &Fill<'_>,
        leaf: &Leaf<'_>,
        slots: &mut Range<usize>,
    ) -> Result<End> {
        let max_trx_id = if fill.clustered { 0 } else { leaf.max_trx_id() };
        while slots.start < slots.end {
            let slot = self.next_of(slots);
            leaf.key_into(slot, &mut self.key);
            let value = leaf.value(slot);
            if fill.clustered {
                match fill.take_row(batch, &self.key, value) {
                    Ok(()) => {}
                    Err(Blocked::Fail(error)) => return Err(error),
                    Err(Blocked::WaitRow { .. }) if fill.txn.skips_locked() => {}
                    Err(blocked) => return Ok(End::Conflict(blocked)),
                }
            } else {
                fill.take_entry(batch, &self.key, value, max_trx_id)?;
            }
            self.pass(slots);
            if batch.items.len() >= fill.limit {
                return Ok(if slots.start >= slots.end { End::Exhausted } else { End::Full });
            }
        }
        Ok(End::Exhausted)
    }

    /// The first of the slots in the scan's direction.
    #[inline]
    pub(super) fn next_of(&self, slots: &Range<usize>) -> usize {
        if self.reverse { slots.end - 1 } else { slots.start }
    }

    /// Leaves that one out.
    #[inline]
    pub(super) fn pass(&self, slots: &mut Range<usize>) {
        if self.reverse {
            slots.end -= 1;
        } else {
            slots.start += 1;
        }
    }

    /// Continues with the slots of the leaf that are left (some are); if it changes meanwhile, at the first one's key.
    pub(super) fn stay(&mut self, leaf: &Leaf<'_>, slots: Range<usize>) {
        leaf.key_into(self.next_of(&slots), &mut self.key);
        self.move_before_key();
        self.leaf = Some((leaf.version(), slots));
    }

    /// `key` is delivered: continue after it.
    fn move_to_key(&mut self) {
        let side = if self.reverse { &mut self.upper } else { &mut self.lower };
        set_bound(side, &self.key, true);
    }

    /// Everything before `key` is delivered: continue at it.
    fn move_before_key(&mut self) {
        let side = if self.reverse { &mut self.upper } else { &mut self.lower };
        set_bound(side, &self.key, false);
    }

    /// Everything on the leaf is delivered: continue at the next one, if the scan reaches it.
    pub(super) fn leave(&mut self, leaf: &Leaf<'_>) {
        if self.reverse {
            match leaf.lower() {
                Some(fence) if key_of(as_slice(&self.lower)).is_none_or(|lower| lower < fence) => {
                    set_bound(&mut self.upper, fence, true);
                }
                _ => self.done = true,
            }
            return;
        }
        let reaches = |fence: &[u8]| match as_slice(&self.upper) {
            Bound::Unbounded => true,
            Bound::Included(upper) => fence <= upper,
            Bound::Excluded(upper) => fence < upper,
        };
        match leaf.upper() {
            Some(fence) if reaches(fence) => set_bound(&mut self.lower, fence, false),
            _ => self.done = true,
        }
    }

    /// Locks the keys this batch has covered: from where it began to where it ended.
    fn lock_range(&self, fill: &Fill<'_>, leaf: &Leaf<'_>, end: &End) {
        let (mut lower, mut upper) = (as_slice(&self.lower), as_slice(&self.upper));
        let far = match end {
            End::Full => Some(Bound::Included(&self.key[..])),
            End::Conflict(_) => Some(Bound::Excluded(&self.key[..])),
            End::Exhausted if self.reverse => {
                let inside = |fence: &&[u8]| key_of(lower).is_none_or(|lower| lower < *fence);
                leaf.lower().filter(inside).map(Bound::Included)
            }
            End::Exhausted => {
                let inside = |fence: &&[u8]| key_of(upper).is_none_or(|upper| *fence <= upper);
                leaf.upper().filter(inside).map(Bound::Excluded)
            }
        };
        match far {
            Some(far) if self.reverse => lower = far,
            Some(far) => upper = far,
            None => {}
        }
        fill.system.locks.lock_range(&fill.txn.holder, fill.tree.id(), lower, upper);
    }
}

fn set_bound(bound: &mut Bound<Vec<u8>>, key: &[u8], excluded: bool) {
    let mut bytes = match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(bytes) | Bound::Excluded(bytes) => bytes,
        Bound::Unbounded => Vec::new(),
    };
    bytes.clear();
    bytes.extend_from_slice(key);
    *bound = if excluded { Bound::Excluded(bytes) } else { Bound::Included(bytes) };
}

impl Fill<'_> {
    fn take_row(&self, batch: &mut RowBatch, key: &[u8], value: &[u8]) -> std::result::Result<(), Blocked> {
        let header = RowHeader::decode(value)?;
        if let ReadMode::Locked(lock) = self.read_mode {
            lock_latched_row(self.system, self.txn, RowName { index: self.tree.id(), key }, &header, lock)?;
        }
        if !(header.is_delete_marked() && self.is_seen(&header)) {
            batch.push(key, &value[ROW_HEADER_BYTES..], ItemKind::Row(header));
        }
        Ok(())
    }

    /// Whether the scan sees the stored version of a row.
    #[inline]
    pub(super) fn is_seen(&self, header: &RowHeader) -> bool {
        self.visibility.as_ref().is_none_or(|visibility| visibility.sees(header.trx_id))
    }

    fn take_entry(&self, batch: &mut RowBatch, key: &[u8], value: &[u8], max_trx_id: u64) -> Result<()> {
        let entry = EntryValue::decode(value, key.len())?;
        // Every change of the leaf is of a transaction this reader sees, and it has ended. (A dirty scan sees all.)
        let all_seen = match &self.visibility {
            Some(visibility) => max_trx_id < visibility.view.up_limit_id,
            None if self.read_mode == ReadMode::Newest => true,
            // A row that was deleted after the snapshot is a conflict, not an absent row.
            None if self.txn.first_committer_wins => {
                self.txn.view.as_ref().is_some_and(|handle| max_trx_id < handle.view.up_limit_id)
            }
            None => max_trx_id < self.system.min_active(),
        };
        if !(entry.delete_marked && all_seen) {
            let certain = all_seen && self.visibility.is_some();
            let covered = if self.keys_only { entry.covered } else { &[] };
            batch.push(key, covered, ItemKind::Entry { prefix_bytes: entry.prefix_bytes, certain });
        }
        Ok(())
    }
}
