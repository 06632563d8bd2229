//! Merging the pending changes of a leaf, step by step, without background threads.

use super::super::tree::{key_of, value_of};
use super::super::{PendingChange, Reached};
use crate::btree::{BTree, Seek};
use crate::config::{ChangeBuffering, Options};
use crate::db::open_parts::OpenParts;
use crate::mtr::MTR_REDO_BYTES;
use crate::page::node::LeafChange;
use crate::testing::{ReadGate, assert_free_classes, open, records, small_options};
use crate::types::{IndexId, PageNo, SegmentId, TxnId};

const SEGMENT: SegmentId = SegmentId(99);
const TREE: IndexId = IndexId(100);
const KEYS: u64 = 4000;

fn options() -> Options {
    Options { change_buffering: ChangeBuffering::Disk, ..small_options() }
}

fn key(n: u64) -> Vec<u8> {
    format!("key {n:08}").into_bytes()
}

/// A tree of which no page is in the pool.
struct Fixture {
    parts: OpenParts,
    tree: BTree,
    gate: ReadGate,
}

impl Fixture {
    fn new() -> Fixture {
        let gate = ReadGate::default();
        let parts = gate.open(options());
        let (ctx, space) = (&parts.ctx, &parts.space);
        let made = space.with_room(ctx, || {
            let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 1)?;
            let tree = BTree::create(space.clone(), &mut mtr, TREE, SEGMENT)?;
            mtr.commit();
            Ok(tree)
        });
        let tree = made.unwrap().with_free_classes();
        let mut builder = tree.builder(ctx, 50, 0);
        (0..KEYS).for_each(|n| builder.push(&key(2 * n), b"v").unwrap());
        builder.finish().unwrap();
        let fixture = Fixture { parts, tree, gate };
        fixture.evict_all();
        fixture
    }

    fn evict_all(&self) {
        self.parts.ctx.pool.flush_all().unwrap();
        self.parts.ctx.pool.evict_all_clean();
    }

    /// Buffers an operation on a new key; its leaf is not in the pool.
    fn put(&self, n: u64) {
        let key = key(n);
        let pending = PendingChange { change: LeafChange::Put { key: &key, value: b"w" }, trx_id: TxnId(7) };
        let changes = &self.parts.changes;
        loop {
            match changes.reach(self.parts.ctx.mtr().unwrap(), &self.tree, &pending, || crate::Result::Ok(())).unwrap()
            {
                Reached::Leaf(..) => panic!("the leaf is in the pool"),
                Reached::Absent(added) if changes.make_room_for_added(&added).unwrap() => return,
                Reached::Absent(_) => {}
            }
        }
    }

    /// Buffers operations for one leaf in every tenth part of the tree; returns the keys' numbers.
    fn put_everywhere(&self) -> Vec<u64> {
        let ns: Vec<u64> = (0..10).flat_map(|part| (0..8).map(move |n| part * KEYS / 5 + 2 * n + 1)).collect();
        ns.iter().for_each(|n| self.put(*n));
        ns
    }

    fn assert_has(&self, ns: &[u64]) {
        let records = records(&self.parts, &self.tree);
        assert_eq!(records.len(), KEYS as usize + ns.len());
        assert!(ns.iter().all(|n| records.get(&key(*n)).is_some_and(|value| value == b"w")));
        assert_free_classes(&self.parts.ctx, &self.parts.space, &self.tree);
        assert!(self.parts.changes.all_waiting().is_empty());
        assert_eq!(self.parts.ctx.stats.change_buffer_merged_inserts.get(), ns.len() as u64);
    }
}

#[test]
fn an_unmerged_leaf_is_not_seen_may_be_evicted_and_is_merged_when_it_is_read_again() {
    let fixture = Fixture::new();
    let ns = fixture.put_everywhere();
    let pool = &fixture.parts.ctx.pool;
    let leaf = fixture.parts.changes.all_waiting()[0].0;
    fixture.evict_all();
    // The merge has to read the tree of operations, and waits there.
    let root = fixture.parts.changes.operation_tree().unwrap().root();
    fixture.gate.hold(root, pool.page_bytes());
    std::thread::scope(|scope| {
        let loads = [scope.spawn(|| pool.load(leaf)), scope.spawn(|| pool.load(leaf))];
        fixture.gate.await_reader();
        assert!(pool.is_resident(leaf));
        assert!(pool.optimistic(leaf).is_none() && pool.try_fix_s(leaf).is_none() && pool.try_latch_x(leaf).is_none());
        assert!(pool.peek_u64(leaf, 8).is_none() && pool.pin(leaf).is_none());
        let waiting = fixture.parts.changes.all_waiting().len();
        pool.evict_all_clean();
        assert!(!pool.is_resident(leaf));
        assert_eq!(fixture.parts.changes.all_waiting().len(), waiting);
        fixture.gate.release();
        loads.into_iter().for_each(|load| load.join().unwrap().unwrap());
    });
    fixture.assert_has(&ns);
}

/// A leaf that is evicted before it is merged is read again: a change of the mode, and a close, leave nothing behind.
#[test]
fn merging_everything_reads_a_leaf_again_that_is_evicted_meanwhile() {
    let fixture = Fixture::new();
    let ns = fixture.put_everywhere();
    let changes = &fixture.parts.changes;
    fixture.evict_all();
    fixture.gate.hold(changes.operation_tree().unwrap().root(), fixture.parts.ctx.pool.page_bytes());
    std::thread::scope(|scope| {
        let switch = scope.spawn(|| changes.set_mode(ChangeBuffering::Off));
        fixture.gate.await_reader();
        fixture.parts.ctx.pool.evict_all_clean();
        fixture.gate.release();
        switch.join().unwrap().unwrap();
    });
    assert!(changes.all_waiting().is_empty(), "operations wait still: {:?}", changes.all_waiting());
    fixture.assert_has(&ns);
}

#[test]
fn threads_that_load_the_same_unmerged_leaves_merge_each_once() {
    for _ in 0..5 {
        let fixture = Fixture::new();
        let ns = fixture.put_everywhere();
        let pool = &fixture.parts.ctx.pool;
        let leaves = fixture.parts.changes.all_waiting();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for (leaf, _) in &leaves {
                        pool.load(*leaf).unwrap();
                        assert!(pool.try_fix_s(*leaf).is_some() || !pool.is_resident(*leaf));
                    }
                });
            }
        });
        assert_eq!(fixture.parts.ctx.stats.change_buffer_merges.get(), leaves.len() as u64);
        fixture.assert_has(&ns);
    }
}

/// An operation of another index than its leaf's is dropped: the leaf was freed and is used again.
#[test]
fn an_operation_of_another_index_is_dropped() {
    let fixture = Fixture::new();
    let ns = fixture.put_everywhere();
    let (leaf, _) = fixture.parts.changes.all_waiting()[3];
    let operations = fixture.parts.changes.operation_tree().unwrap();
    // One more operation of the leaf, after the others, of an index that was dropped.
    let mut mtr = fixture.parts.ctx.mtr().unwrap();
    let operation_key = key_of(leaf, 1000);
    let change = LeafChange::Put { key: &key(2 * KEYS), value: b"x" };
    let value = value_of(IndexId(TREE.0 + 1), TxnId(8), &change);
    let at = operations.leaf_mut(&mut mtr, &operation_key).unwrap();
    let slot = at.search(&mtr, &operation_key).unwrap_err();
    at.insert(&mut mtr, slot, &operation_key, &value);
    mtr.commit();
    fixture.evict_all();
    fixture.assert_has(&ns);
    assert_eq!(fixture.parts.ctx.stats.change_buffer_discarded_ops.get(), 1);
}

/// Leaves that recovery leaves in the pool are marked as unmerged before another thread can read them.
#[test]
fn a_leaf_that_recovery_has_read_is_merged() {
    let fixture = Fixture::new();
    let mut mtr = fixture.parts.ctx.mtr().unwrap();
    let changed = fixture.tree.leaf_mut(&mut mtr, &key(0)).unwrap();
    let leaf = changed.page_no(&mtr);
    changed.splice(&mut mtr, 0, 0, 1, b"u");
    mtr.commit();
    fixture.parts.ctx.pool.flush_all().unwrap();
    fixture.parts.ctx.pool.evict_all_clean();
    fixture.put(1);
    fixture.parts.ctx.log.flush_to(fixture.parts.ctx.log.end_lsn()).unwrap();
    let parts = open(fixture.parts.storage().cut(1), options());
    assert!(parts.ctx.pool.is_resident(leaf), "the redo of its change was applied");
    assert!(parts.ctx.pool.try_fix_s(leaf).is_none());
    let tree = BTree::open(parts.space.clone(), TREE, SEGMENT, fixture.tree.root()).with_free_classes();
    let first = tree.leaf(&parts.ctx, Seek::First).unwrap();
    assert_eq!((first.page_no(), first.search(&key(1))), (leaf, Ok(1)));
    assert_eq!(first.value(1), b"w");
}

/// A merge takes several mini-transactions when the operations of a leaf are on several leaves of the tree. A crash
/// comes between them.
#[test]
fn a_merge_that_was_interrupted_goes_on_after_a_crash() {
    let fixture = Fixture::new();
    let (ctx, changes) = (&fixture.parts.ctx, &fixture.parts.changes);
    // Of five leaves, so many that the tree is cut in the middle of one leaf's.
    let ns: Vec<u64> = (0..40).flat_map(|n| (0..5).map(move |part| part * KEYS / 5 + 2 * n + 1)).collect();
    ns.iter().for_each(|n| fixture.put(*n));
    let operations = changes.operation_tree().unwrap();
    let second = |page: PageNo| {
        let upper = operations.leaf(ctx, Seek::Covers(&key_of(page, 0))).unwrap().upper().map(<[u8]>::to_vec)?;
        let is_cut = upper > key_of(page, 0).to_vec() && upper <= key_of(page, 35).to_vec();
        is_cut.then(|| operations.leaf(ctx, Seek::Covers(&upper)).unwrap().page_no())
    };
    let cut_leaf =
        changes.all_waiting().into_iter().find_map(|(page, of)| second(page).map(|second| (page, of, second)));
    let (page, before, second) = cut_leaf.expect("the operations of one leaf are on two leaves of the tree");
    let promised = |parts: &OpenParts| {
        parts.ctx.pool.load(PageNo(1)).unwrap();
        parts.space.min_free_bytes(&parts.ctx, page).unwrap()
    };
    let promised_before = promised(&fixture.parts);
    fixture.evict_all();
    fixture.gate.hold(second, ctx.pool.page_bytes());
    let parts = std::thread::scope(|scope| {
        let load = scope.spawn(|| ctx.pool.load(page));
        fixture.gate.await_reader();
        ctx.log.flush_to(ctx.log.end_lsn()).unwrap();
        let parts = open(fixture.parts.storage().cut(3), options());
        fixture.gate.release();
        load.join().unwrap().unwrap();
        parts
    });
    let left = parts.changes.all_waiting().into_iter().find(|(leaf, _)| *leaf == page).unwrap().1;
    assert!(left.count > 0 && left.count < before.count, "{left:?} of {before:?}");
    assert_eq!(left.next, before.next);
    assert_eq!(promised(&parts), promised_before, "the free class counts with what waits");
    fixture.assert_has(&ns);
    let tree = BTree::open(parts.space.clone(), TREE, SEGMENT, fixture.tree.root()).with_free_classes();
    assert_eq!(records(&parts, &tree), records(&fixture.parts, &fixture.tree));
    assert_free_classes(&parts.ctx, &parts.space, &tree);
    assert!(parts.changes.all_waiting().is_empty());
}
