//! Mode `disk`: operations wait in a tree whose pages are in the pool.

use super::super::buffer::WaitingLeaf;
use super::super::tree::{key_of, value_of};
use super::*;
use crate::db::testing::by_id;
use crate::error::Error;
use crate::page::Node;
use crate::page::node::LeafChange;
use crate::space::SEGMENT_CHANGE_BUFFER;
use crate::types::{IndexId, PageNo, TxnId};
use highwater_storage::{AlignedBuf, MemoryDevice};
use std::ops::RangeFrom;
use std::time::{Duration, Instant};

pub(super) fn disk() -> Options {
    Options { change_buffering: ChangeBuffering::Disk, ..options() }
}

fn tree_pages(db: &Database) -> u32 {
    db.space().pages_in(SEGMENT_CHANGE_BUFFER)
}

/// Nothing waits any more.
fn assert_empty(db: &Database, note: &str) {
    let stats = db.stats();
    assert_eq!((stats.change_buffer_leaves, stats.change_buffer_bytes), (0, 0), "{note}");
    assert_root_alone(db, note);
}

/// The tree is a root without operations. A read thread that merged the last leaf may still be freeing the pages.
fn assert_root_alone(db: &Database, note: &str) {
    let begin = Instant::now();
    while tree_pages(db) > 1 && begin.elapsed() < Duration::from_secs(20) {
        std::thread::yield_now();
    }
    assert_eq!(tree_pages(db), 1, "{note}");
}

#[test]
fn operations_wait_in_a_tree_of_many_pages_and_are_merged() {
    let mut rng = Rng::with_seed(1);
    let (db, mut rows) = filled(disk(), 20_000, &mut rng);
    let table = db.table("t").unwrap();
    let mut max_pages = 0;
    for _ in 0..300 {
        transact(&db, &table, &mut rows, &mut rng);
        max_pages = max_pages.max(tree_pages(&db));
    }
    let stats = db.stats();
    assert!(max_pages > 20, "{max_pages} pages");
    assert!(stats.change_buffer_ops_buffered > 10_000, "{stats:?}");
    assert!(stats.change_buffer_merges > 100 && stats.change_buffer_merged_inserts > 1000, "{stats:?}");
    assert!(stats.change_buffer_pages_read > 0 && stats.change_buffer_pages_written > 0, "{stats:?}");
    assert_same(&db, &rows, "running");
    let stats = db.stats();
    assert!(stats.change_buffer_merged_deletes > 0 && stats.change_buffer_merged_delete_marks > 0, "{stats:?}");
    assert_eq!((stats.change_buffer_relogged_ops, stats.change_buffer_discarded_ops), (0, 0));
}

/// Random transactions, until operations wait for more than twenty leaves of this kind.
#[track_caller]
fn transact_until(db: &Database, rows: &mut Rows, rng: &mut Rng, is_meant: impl Fn(&WaitingLeaf) -> bool) {
    let table = db.table("t").unwrap();
    for _ in 0..1000 {
        transact(db, &table, rows, rng);
        if db.transactions().changes.all_waiting().iter().filter(|(_, leaf)| is_meant(leaf)).count() > 20 {
            return;
        }
    }
    panic!("too few operations wait: {:?}", db.stats());
}

/// A closed database for whose leaves operations wait, and its rows.
pub(super) fn closed_with_waiting(seed: u64) -> (StorageSet, Rows) {
    closed_with_tree_pages(seed, 1)
}

/// The same, where the tree of operations has at least `pages` pages before the database is closed.
pub(super) fn closed_with_tree_pages(seed: u64, pages: u32) -> (StorageSet, Rows) {
    let mut rng = Rng::with_seed(seed);
    let (db, mut rows) = filled(disk(), 14_000, &mut rng);
    let table = db.table("t").unwrap();
    transact_until(&db, &mut rows, &mut rng, |leaf| leaf.count > 2 && tree_pages(&db) >= pages);
    let storage = db.storage().clone();
    drop(table);
    db.close().unwrap();
    (storage.cut(0), rows)
}

#[test]
fn what_waits_is_there_after_a_close_and_merged_when_another_mode_is_chosen() {
    let (storage, rows) = closed_with_waiting(5);
    for mode in [ChangeBuffering::Disk, ChangeBuffering::Memory, ChangeBuffering::Off] {
        let db = Database::open_storage(storage.cut(0), Options { change_buffering: mode, ..disk() }).unwrap();
        if mode == ChangeBuffering::Disk {
            assert!(!db.transactions().changes.all_waiting().is_empty());
        } else {
            assert!(db.transactions().changes.all_waiting().is_empty(), "{mode:?}");
            assert_root_alone(&db, &format!("{mode:?}"));
        }
        assert_same(&db, &rows, &format!("{mode:?}"));
    }
}

#[test]
fn a_database_that_is_only_read_merges_what_it_reads() {
    let (storage, rows) = closed_with_waiting(6);
    let before = storage.memory_devices().unwrap()[0].image();
    for mode in [ChangeBuffering::Disk, ChangeBuffering::Off] {
        let options = Options { change_buffering: mode, ..disk() };
        let db = Database::open_storage_idle(storage.overlaid().unwrap(), options).unwrap();
        assert!(!db.transactions().changes.all_waiting().is_empty(), "{mode:?}");
        assert_same(&db, &rows, &format!("{mode:?}"));
        db.close().unwrap();
    }
    assert_eq!(storage.memory_devices().unwrap()[0].image(), before);
}

#[test]
fn everything_is_merged_at_the_close_if_asked() {
    let mut rng = Rng::with_seed(7);
    let options = Options { change_buffer_merge_at_close: crate::config::MergeAtClose::On, ..disk() };
    let (db, mut rows) = filled(options.clone(), 14_000, &mut rng);
    let table = db.table("t").unwrap();
    (0..100).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
    let storage = db.storage().clone();
    drop(table);
    db.close().unwrap();
    let db = Database::open_storage_idle(storage.cut(0), options).unwrap();
    assert_empty(&db, "opened");
    assert_same(&db, &rows, "opened");
}

/// Creates tables, and rows of the first, until the disk is full; returns their number. An opening or a closing may
/// free pages, of undo for example.
fn fill(storage: &StorageSet, numbers: &mut RangeFrom<u64>) -> u64 {
    let off = Options { change_buffering: ChangeBuffering::Off, ..options() };
    let db = Database::open_storage_idle(storage.clone(), off).unwrap();
    let schema = by_id().column("text", Type::Text(900));
    let table = db.table_or_create("filling", schema.clone()).unwrap();
    let text = "full ".repeat(160);
    let insert = |id: u64| db.transact(|txn| txn.insert(&table, &values![id, text.as_str()]).map(drop));
    let create = |id: u64| db.create_table(&format!("small {id}"), schema.clone()).map(drop);
    let mut made = 0;
    for make in [&create as &dyn Fn(u64) -> crate::Result<()>, &insert] {
        let refused =
            numbers.by_ref().map(make).inspect(|done| made += u64::from(done.is_ok())).find_map(Result::err).unwrap();
        assert!(matches!(refused, Error::DiskFull { .. }), "{refused}");
    }
    drop(table);
    db.close().unwrap();
    made
}

/// The tree needs a page that the disk does not have; once rows are deleted the mode can be set.
#[test]
fn a_database_on_a_full_disk_opens_and_buffers_nothing() {
    let device = MemoryDevice::limited(3 << 20);
    let storage = StorageSet::of_memory([device, MemoryDevice::new(), MemoryDevice::new()]);
    let mut numbers = 0..;
    Database::open_storage(storage.clone(), options()).unwrap().close().unwrap();
    while fill(&storage, &mut numbers) > 0 {}
    let db = Database::open_storage_idle(storage, disk()).unwrap();
    let changes = &db.transactions().changes;
    assert_eq!((changes.mode(), tree_pages(&db)), (ChangeBuffering::Off, 0));
    assert!(matches!(db.set_change_buffering(ChangeBuffering::Disk), Err(Error::DiskFull { .. })));
    db.drop_table("filling").unwrap();
    db.finish_drops().unwrap();
    db.set_change_buffering(ChangeBuffering::Disk).unwrap();
    assert_eq!((changes.mode(), tree_pages(&db)), (ChangeBuffering::Disk, 1));
}

#[test]
fn the_mode_can_be_switched_while_changes_are_buffered() {
    let mut rng = Rng::with_seed(8);
    let (db, mut rows) = filled(options(), 14_000, &mut rng);
    let table = db.table("t").unwrap();
    for mode in [ChangeBuffering::Disk, ChangeBuffering::Off, ChangeBuffering::Memory, ChangeBuffering::Disk] {
        (0..60).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
        while db.transactions().purge_step(1000).unwrap() > 0 {}
        db.set_change_buffering(mode).unwrap();
        assert!(db.transactions().changes.all_waiting().is_empty(), "{mode:?}");
        let before = db.stats().change_buffer_ops_buffered;
        (0..60).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
        let buffered = db.stats().change_buffer_ops_buffered - before;
        assert_eq!(buffered == 0, mode == ChangeBuffering::Off, "{mode:?}: {buffered}");
        assert_eq!(!db.transactions().changes.all_waiting().is_empty(), mode == ChangeBuffering::Disk, "{mode:?}");
    }
    assert_same(&db, &rows, "at the end");
}

#[test]
fn operations_of_a_dropped_index_are_discarded_and_its_pages_used_again() {
    let mut rng = Rng::with_seed(9);
    let (db, mut rows) = filled(disk(), 14_000, &mut rng);
    let table = db.table("t").unwrap();
    for turn in 0..3 {
        let index = table.shared.current.read().indexes[1].tree.id();
        let waits = |db: &Database| db.transactions().changes.all_waiting().iter().any(|(_, leaf)| leaf.index == index);
        transact_until(&db, &mut rows, &mut rng, |leaf| leaf.index == index);
        let before = db.stats().change_buffer_discarded_ops;
        db.drop_index("t", "by_b").unwrap();
        db.finish_drops().unwrap();
        assert!(!waits(&db) && db.stats().change_buffer_discarded_ops > before);
        assert!(db.check().unwrap().is_sound());
        db.create_index("t", "by_b", &["b"], false).unwrap();
        assert_same(&db, &rows, &format!("turn {turn}"));
    }
}

/// A crash comes between the drop of an index and the removal of its operations.
#[test]
fn operations_of_an_index_that_is_being_dropped_are_removed_at_opening() {
    let mut rng = Rng::with_seed(10);
    let (db, mut rows) = filled(disk(), 14_000, &mut rng);
    let table = db.table("t").unwrap();
    let (id, mut record) = {
        let entry = table.shared.entry.lock();
        (entry.id, entry.indexes[1].clone())
    };
    transact_until(&db, &mut rows, &mut rng, |leaf| leaf.index == record.tree.id);
    db.catalog().set_index_state(id, &mut record, crate::table::record::ObjectState::Dropping).unwrap();
    let cut = db.storage().cut(1);
    let waiting = db.transactions().changes.all_waiting();
    assert!(waiting.iter().any(|(_, leaf)| leaf.index == record.tree.id));
    let db = Database::open_storage(cut, disk()).unwrap();
    db.finish_drops().unwrap();
    assert!(db.stats().change_buffer_discarded_ops > 0);
    assert!(db.transactions().changes.all_waiting().iter().all(|(_, leaf)| leaf.index != record.tree.id));
    db.create_index("t", "by_b", &["b"], false).unwrap();
    assert_same(&db, &rows, "opened");
}

#[test]
fn the_smallest_pool_is_enough() {
    let options = Options { page_size: crate::config::PageSize::Bytes(16 << 10), buffer_pool_size: 1 << 20, ..disk() };
    let mut rng = Rng::with_seed(11);
    let (db, mut rows) = filled(options.clone(), 20_000, &mut rng);
    let table = db.table("t").unwrap();
    (0..100).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
    assert!(db.stats().change_buffer_ops_buffered > 1000, "{:?}", db.stats());
    let cut = db.storage().cut(2);
    assert_same(&db, &rows, "running");
    assert_same(&Database::open_storage(cut, options).unwrap(), &rows, "after a power cut");
}

#[test]
fn the_tree_grows_to_its_limit_and_no_further() {
    let options = Options { change_buffer_max_size: 4, ..disk() };
    let mut rng = Rng::with_seed(12);
    let (db, mut rows) = filled(options, 14_000, &mut rng);
    let table = db.table("t").unwrap();
    let mut max = 0;
    for _ in 0..150 {
        transact(&db, &table, &mut rows, &mut rng);
        max = tree_pages(&db).max(max);
    }
    // Ten pages; one split may come after the look at the limit.
    assert!((5..=12).contains(&max), "{max}");
    assert_same(&db, &rows, "running");
    let before = db.stats().change_buffer_ops_buffered;
    (0..20).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
    assert!(db.stats().change_buffer_ops_buffered > before, "operations wait after everything was merged");
    assert_same(&db, &rows, "at the end");
}

/// In another mode a step does not: a merge may wait for redo space, and changes may be pending then.
#[test]
fn a_step_merges_what_waits_with_this_mode_only() {
    let (storage, _) = closed_with_waiting(16);
    // The database's own thread takes steps too, maybe before this one.
    let waiting_after_a_step = |mode, max_size| {
        let options = Options { change_buffering: mode, change_buffer_max_size: max_size, ..disk() };
        let db = Database::open_storage_idle(storage.overlaid().unwrap(), options).unwrap();
        assert!(tree_pages(&db) > 2 || mode == ChangeBuffering::Disk, "nearly full");
        db.transactions().changes.step().unwrap();
        db.transactions().changes.all_waiting().len()
    };
    let all = waiting_after_a_step(ChangeBuffering::Disk, 50);
    assert_eq!(waiting_after_a_step(ChangeBuffering::Memory, 1), all);
    assert!(waiting_after_a_step(ChangeBuffering::Disk, 1) < all, "{all}");
}

#[test]
fn threads_write_and_read_at_once() {
    let mut rng = Rng::with_seed(13);
    let (db, _) = filled(disk(), 0, &mut rng);
    let table = db.table("t").unwrap();
    let mut rows = Rows::new();
    std::thread::scope(|scope| {
        let write = |thread: u64| {
            let (db, table) = (&db, &table);
            move || {
                let (mut rng, mut rows) = (Rng::with_seed(thread), Rows::new());
                for turn in 0..150 {
                    let mut txn = db.begin().unwrap();
                    for n in 0..20 {
                        let id = thread * 1_000_000 + turn * 20 + n;
                        insert(&mut txn, table, &mut rows, id, &mut rng);
                        let (id, a) = (thread * 1_000_000 + rng.u64(0..=turn * 20), rng.u64(..));
                        txn.update(table, &values![id], &[(1, a.into())]).unwrap();
                        rows.entry(id).and_modify(|row| row.0 = a);
                    }
                    txn.commit().unwrap();
                    if turn % 10 == 9 {
                        let mut read = db.snapshot().unwrap();
                        let found = read.scan(table).index("by_a").iter().unwrap();
                        assert!(found.count() >= rows.len());
                    }
                }
                rows
            }
        };
        let writers: Vec<_> = (1..=4).map(|thread| scope.spawn(write(thread))).collect();
        writers.into_iter().for_each(|writer| rows.extend(writer.join().unwrap()));
    });
    assert!(db.stats().change_buffer_merges > 100, "{:?}", db.stats());
    assert_same(&db, &rows, "running");
}

#[track_caller]
fn assert_found(db: &Database, text: &str) {
    let report = db.check().unwrap();
    assert!(report.findings.iter().any(|finding| finding.to_string().contains(text)), "{text}: {report:?}");
}

/// Bytes that a leaf has free, as it is in the file.
fn free_bytes_in_file(db: &Database, page: PageNo) -> usize {
    let pool = &db.context().pool;
    let mut bytes = AlignedBuf::zeroed(pool.page_bytes());
    pool.store().read(page, &mut bytes).unwrap();
    Node::new(&bytes).free_bytes()
}

#[test]
fn a_check_finds_a_leaf_without_the_room_that_is_promised() {
    let (storage, rows) = closed_with_waiting(14);
    let db = Database::open_storage_idle(storage, disk()).unwrap();
    // A leaf that was just split may have as much space as the highest free class promises.
    let waiting = db.transactions().changes.all_waiting();
    let page = waiting.iter().map(|(page, _)| *page).min_by_key(|page| free_bytes_in_file(&db, *page)).unwrap();
    let mut mtr = db.context().mtr().unwrap();
    db.space().keep_map(&mut mtr, page).unwrap();
    db.space().note_free_bytes(&mut mtr, page, 4096).unwrap();
    mtr.commit();
    assert!(!db.context().pool.is_resident(page));
    assert_found(&db, "are promised");
    assert_same(&db, &rows, "what waited is merged");
}

#[test]
fn a_check_finds_operations_that_are_lost_or_have_no_index() {
    let (storage, _) = closed_with_waiting(15);
    let db = Database::open_storage_idle(storage, disk()).unwrap();
    let (ctx, changes) = (db.context(), &db.transactions().changes);
    let (page, tree) = (changes.all_waiting()[3].0, changes.operation_tree().unwrap());
    let mut mtr = ctx.mtr().unwrap();
    tree.leaf_mut(&mut mtr, &[]).unwrap().remove(&mut mtr, 0);
    mtr.commit();
    assert_found(&db, "are known");
    let key = key_of(page, 0);
    let change = LeafChange::Remove { key: b"key" };
    let value = value_of(IndexId(9999), TxnId(1), &change);
    let mut mtr = ctx.mtr().unwrap();
    let leaf = tree.leaf_mut(&mut mtr, &key).unwrap();
    let slot = leaf.search(&mtr, &key).unwrap_err();
    leaf.insert(&mut mtr, slot, &key, &value);
    mtr.commit();
    assert_found(&db, "not buffered");
}
