//! Checkpoints that pass pending changes: carried forward, merged, with a full log. Without background threads: each
//! step is called here.

use super::super::{PendingChange, Reached};
use crate::btree::{BTree, Seek};
use crate::change_buffer::ChangeBuffer;
use crate::config::{ChangeBuffering, Options};
use crate::db::open_parts::OpenParts;
use crate::error::Result;
use crate::mtr::MTR_REDO_BYTES;
use crate::page::PageOp;
use crate::page::node::LeafChange;
use crate::pool::cleaner::{checkpoint, checkpoint_target};
use crate::testing::{assert_free_classes, is_tried, open, records, small_options};
use crate::types::{IndexId, Lsn, PageNo, SegmentId, TxnId};
use highwater_storage::StorageSet;
use std::time::Duration;

const SEGMENT: SegmentId = SegmentId(99);
const TREE: IndexId = IndexId(100);
/// Keys at the start. Every second number is one.
const KEYS: u64 = 40_000;

fn options() -> Options {
    Options { change_buffering: ChangeBuffering::Memory, ..small_options() }
}

/// A tree that is several times the pool, and all of it in the data file.
pub(super) struct Fixture {
    pub(super) parts: OpenParts,
    pub(super) tree: BTree,
    /// A page that belongs to no tree, whose changes fill the log.
    filler: PageNo,
}

fn key(n: u64) -> Vec<u8> {
    format!("key {n:012} of a tree that does not fit the pool").into_bytes()
}

impl Fixture {
    pub(super) fn new() -> Fixture {
        let parts = open(StorageSet::memory(), options());
        let (ctx, space) = (&parts.ctx, &parts.space);
        let mut root = None;
        let made = space.with_room(ctx, || {
            let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 2)?;
            let filler = space.allocate(&mut mtr, SEGMENT, None)?;
            let latched = mtr.new_page(filler);
            mtr.apply(latched, &PageOp::Format { page_type: crate::page::PageType::Overflow, level: 0, owner: 99 });
            root = Some(BTree::create(space.clone(), &mut mtr, TREE, SEGMENT)?.root());
            mtr.commit();
            Ok(filler)
        });
        let filler = made.unwrap();
        let tree = BTree::open(space.clone(), TREE, SEGMENT, root.unwrap()).with_free_classes();
        let mut builder = tree.builder(ctx, 70, 0);
        for n in 0..KEYS {
            builder.push(&key(2 * n), b"v").unwrap();
        }
        builder.finish().unwrap();
        ctx.pool.flush_all().unwrap();
        ctx.log.checkpoint(ctx.log.end_lsn()).unwrap();
        Fixture { parts, tree, filler }
    }

    /// The leaf that covers a key; it is not read.
    pub(super) fn leaf_of(&self, key: &[u8]) -> PageNo {
        self.tree.non_resident_leaf(&self.parts.ctx, key).unwrap().expect("the leaf is out of the pool").page
    }

    /// Damages a page in the data file; gives its bytes.
    pub(super) fn damage(&self, page: PageNo) -> Vec<u8> {
        let at = page.0 as usize * 4096;
        let mut sound = Vec::new();
        self.parts.storage().memory_devices().unwrap()[0].damage(|bytes| {
            sound.extend_from_slice(&bytes[at..at + 4096]);
            bytes[at + 1000..at + 1400].fill(0xaa);
        });
        sound
    }

    /// Gives a page in the data file these bytes.
    pub(super) fn repair(&self, page: PageNo, sound: &[u8]) {
        let at = page.0 as usize * 4096;
        let devices = self.parts.storage().memory_devices().unwrap();
        devices[0].damage(|bytes| bytes[at..at + 4096].copy_from_slice(sound));
    }

    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.tree.leaf(&self.parts.ctx, Seek::Covers(key)).unwrap().search(key).is_ok()
    }

    /// A page as it is in the data file.
    pub(super) fn image(&self, page: PageNo) -> Vec<u8> {
        let at = page.0 as usize * 4096;
        self.parts.storage().memory_devices().unwrap()[0].image()[at..at + 4096].to_vec()
    }

    fn changes(&self) -> &ChangeBuffer {
        &self.parts.changes
    }

    /// Reads leaves from one end of the tree until those of the other are out of the pool.
    fn read_first_third(&self) {
        for n in (0..KEYS / 3).step_by(5) {
            drop(self.tree.leaf(&self.parts.ctx, Seek::Covers(&key(2 * n))).unwrap());
        }
    }

    /// Makes changes of as many leaves, at the other end of the tree, pending; says of which keys.
    pub(super) fn make_pending(&self, leaves: u64) -> Vec<Vec<u8>> {
        self.read_first_third();
        let keys: Vec<Vec<u8>> = (0..leaves).map(|n| key(2 * (KEYS - 1 - n * 100) + 1)).collect();
        keys.iter().for_each(|key| assert!(self.put(key).unwrap(), "the leaf is in the pool"));
        assert_eq!(self.parts.ctx.stats.change_buffer_ops_buffered.get(), leaves);
        keys
    }

    /// False if the leaf was in the pool, and nothing is done.
    pub(super) fn put(&self, key: &[u8]) -> Result<bool> {
        let pending = PendingChange { change: LeafChange::Put { key, value: b"w" }, trx_id: TxnId(7) };
        loop {
            match self.changes().reach(self.parts.ctx.mtr()?, &self.tree, &pending, || Result::Ok(()))? {
                Reached::Leaf(..) => return Ok(false),
                Reached::Absent(added) => {
                    if self.changes().make_room_for_added(&added)? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Writes this much of the log's capacity, in per cent.
    pub(super) fn fill_log(&self, pct: u64) {
        let (ctx, bytes) = (&self.parts.ctx, [7; 2000]);
        let end = ctx.log.end_lsn().0 + ctx.log.capacity_bytes() * pct / 100;
        while ctx.log.end_lsn().0 < end {
            let mut mtr = ctx.mtr().unwrap();
            let page = mtr.fix_x(self.filler).unwrap();
            mtr.apply(page, &PageOp::Write { offset: 100, bytes: &bytes });
            mtr.commit();
        }
        ctx.log.flush_to(ctx.log.end_lsn()).unwrap();
        ctx.pool.flush_all().unwrap();
    }

    /// Moves the checkpoint as far as it may; returns where it is.
    pub(super) fn checkpoint(&self) -> Lsn {
        let (pool, log) = (&self.parts.ctx.pool, &self.parts.ctx.log);
        checkpoint(pool, log, checkpoint_target(pool, log)).unwrap();
        log.checkpoint_lsn()
    }

    pub(super) fn after_power_cut(&self, seed: u64) -> Fixture {
        let parts = open(self.parts.storage().cut(seed), options());
        let tree = BTree::open(parts.space.clone(), TREE, SEGMENT, self.tree.root()).with_free_classes();
        Fixture { parts, tree, filler: self.filler }
    }

    pub(super) fn assert_has(&self, keys: &[Vec<u8>]) {
        let records = records(&self.parts, &self.tree);
        assert_eq!(records.len() as u64, KEYS + keys.len() as u64);
        assert!(keys.iter().all(|key| records.get(key).is_some_and(|value| value == b"w")));
        assert_free_classes(&self.parts.ctx, &self.parts.space, &self.tree);
    }
}

#[test]
fn a_pending_change_holds_the_checkpoint_back_until_it_is_carried_forward() {
    let fixture = Fixture::new();
    let before = fixture.parts.ctx.log.end_lsn();
    let keys = fixture.make_pending(20);
    fixture.fill_log(60);
    assert_eq!(fixture.checkpoint(), before);
    assert!(!fixture.changes().step().unwrap());
    let stats = &fixture.parts.ctx.stats;
    assert_eq!((stats.change_buffer_relogged_ops.get(), stats.change_buffer_merges.get()), (20, 0));
    assert!(fixture.checkpoint().0 > before.0 + fixture.parts.ctx.log.capacity_bytes() / 2);
    fixture.after_power_cut(1).assert_has(&keys);
    fixture.assert_has(&keys);
}

#[test]
fn pending_changes_are_carried_before_their_age_slows_writers() {
    let fixture = Fixture::new();
    fixture.make_pending(20);
    fixture.fill_log(25);
    assert!(!fixture.changes().step().unwrap());
    let carried = &fixture.parts.ctx.stats.change_buffer_relogged_ops;
    assert_eq!(carried.get(), 0);
    fixture.changes().set_options(&Options { checkpoint_age_async_pct: 30, ..options() });
    assert!(!fixture.changes().step().unwrap());
    assert_eq!(carried.get(), 20);
}

/// The second copy of the changes must be durable before the checkpoint passes the first one. Here nothing but the
/// checkpoint makes it so.
#[test]
fn what_was_carried_forward_is_durable_before_the_checkpoint_moves() {
    for seed in (0..20).filter(|seed| is_tried(*seed)) {
        let fixture = Fixture::new();
        let keys = fixture.make_pending(30);
        fixture.fill_log(60);
        fixture.changes().step().unwrap();
        fixture.checkpoint();
        fixture.after_power_cut(seed).assert_has(&keys);
    }
}

/// Over and over: what is pending goes round the ring, each time as one operation; some of it becomes more on the way.
#[test]
fn changes_go_round_the_ring_of_the_log() {
    let mut fixture = Fixture::new();
    let mut keys = fixture.make_pending(20);
    for turn in 0..6 {
        for _ in 0..2 {
            fixture.fill_log(40);
            fixture.changes().step().unwrap();
            fixture.checkpoint();
        }
        let more: Vec<Vec<u8>> = (0..20).map(|n| key(2 * (KEYS - 1 - n * 100 - 3 * (turn + 1)) + 1)).collect();
        more.iter().for_each(|key| assert!(fixture.put(key).unwrap()));
        keys.extend(more);
        fixture.parts.ctx.log.flush_to(fixture.parts.ctx.log.end_lsn()).unwrap();
        fixture.after_power_cut(turn).assert_has(&keys);
    }
    assert!(fixture.parts.ctx.stats.change_buffer_relogged_ops.get() > 20 * 12);
    fixture = fixture.after_power_cut(100);
    fixture.assert_has(&keys);
}

/// The thread of the change buffer must not wait for redo space: it is the one that lets the checkpoint move.
#[test]
fn a_full_log_does_not_stop_the_change_buffer() {
    let fixture = Fixture::new();
    let keys = fixture.make_pending(30);
    fixture.fill_log(60);
    let log = &fixture.parts.ctx.log;
    let mut reserved = Vec::new();
    while let Some(reservation) = log.reserve_at_once(1 << 10) {
        reserved.push(reservation);
    }
    std::thread::scope(|scope| {
        let step = scope.spawn(|| fixture.changes().step().unwrap());
        let mut left = 1000;
        while !step.is_finished() && left > 0 {
            std::thread::sleep(Duration::from_millis(10));
            left -= 1;
        }
        // Only now may it end, if it waits.
        reserved.clear();
        assert!(left > 0, "it waits for redo space");
    });
    let stats = &fixture.parts.ctx.stats;
    assert_eq!((stats.change_buffer_relogged_ops.get(), stats.change_buffer_merges.get()), (0, 30));
    fixture.parts.ctx.pool.flush_all().unwrap();
    assert_eq!(fixture.checkpoint(), log.end_lsn());
    fixture.assert_has(&keys);
}
