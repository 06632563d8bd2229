//! A leaf that cannot be read, with pending changes: the error names it, everything else continues.

use super::advance::Fixture;
use super::{assert_same, filled, in_order_of, options, transact};
use crate::backup::{BackupOptions, RestoreOptions};
use crate::config::{MergeAtClose, Options, PageStoreKind};
use crate::db::Database;
use crate::db::open_overrides::OpenOverrides;
use crate::db::open_parts::OpenParts;
use crate::db::testing::{TestDb, by_id};
use crate::error::Error;
use crate::mtr::MTR_REDO_BYTES;
use crate::page::{PageOp, PageType, header};
use crate::txn::TableTrees;
use crate::types::PageNo;
use crate::values;
use fastrand::Rng;
use highwater_storage::{FaultKind, Faults, Operation};
use std::ops::ControlFlow::Continue;
use std::time::Duration;

#[test]
fn a_damaged_leaf_keeps_its_changes_and_holds_up_no_thread() {
    let fixture = Fixture::new();
    let keys = fixture.make_pending(20);
    let leaf = fixture.leaf_of(&keys[7]);
    let sound = fixture.damage(leaf);
    let error = fixture.parts.changes.merge_all().unwrap_err();
    assert!(matches!(&error, Error::CorruptPage { page, .. } if *page == leaf), "{error}");
    let stats = &fixture.parts.ctx.stats;
    assert_eq!(stats.change_buffer_merges.get(), 19, "the other leaves are merged");
    assert!(fixture.parts.ctx.pool.load(leaf).unwrap_err().to_string().contains(&format!("page {leaf} ")));
    // The checkpoint passes its changes.
    fixture.fill_log(60);
    fixture.parts.changes.step().unwrap();
    assert_eq!(stats.change_buffer_relogged_ops.get(), 1);
    assert!(fixture.checkpoint().0 > fixture.parts.ctx.log.end_lsn().0 - fixture.parts.ctx.log.capacity_bytes() / 4);
    // The page is put back as it was: its changes are there.
    fixture.repair(leaf, &sound);
    fixture.after_power_cut(3).assert_has(&keys);
    fixture.assert_has(&keys);
}

/// As if a damaged extent map had called the page of a leaf free: it is another page now, in the pool.
#[test]
fn changes_for_a_page_that_was_given_away_are_dropped_with_an_error() {
    let fixture = Fixture::new();
    let keys = fixture.make_pending(20);
    let leaf = fixture.leaf_of(&keys[7]);
    let mut mtr = fixture.parts.ctx.mtr_with(MTR_REDO_BYTES, 1).unwrap();
    let page = mtr.new_page(leaf);
    mtr.apply(page, &PageOp::Format { page_type: PageType::Overflow, level: 0, owner: 7 });
    mtr.commit();
    let error = fixture.parts.changes.merge_all().unwrap_err();
    assert!(error.to_string().contains("changes of index 100 were pending for it"), "{error}");
    assert!(matches!(&error, Error::CorruptPage { page, .. } if *page == leaf), "{error}");
    let stats = &fixture.parts.ctx.stats;
    assert_eq!((stats.change_buffer_merges.get(), stats.change_buffer_discarded_ops.get()), (19, 1));
    fixture.parts.changes.merge_all().unwrap();
    fixture.fill_log(60);
    fixture.parts.changes.step().unwrap();
}

/// Nothing can be carried: the leaf is lost, the others are merged, and the checkpoint passes all of them.
#[test]
fn a_damaged_leaf_does_not_keep_a_full_log_full() {
    let fixture = Fixture::new();
    let keys = fixture.make_pending(20);
    let leaf = fixture.leaf_of(&keys[7]);
    let sound = fixture.damage(leaf);
    fixture.fill_log(60);
    let (ctx, log) = (&fixture.parts.ctx, &fixture.parts.ctx.log);
    let reserved: Vec<_> = std::iter::from_fn(|| log.reserve_at_once(1 << 10)).collect();
    std::thread::scope(|scope| {
        let step = scope.spawn(|| fixture.parts.changes.step().unwrap());
        (0..1000).take_while(|_| !step.is_finished()).for_each(|_| std::thread::sleep(Duration::from_millis(10)));
        let is_stuck = !step.is_finished();
        drop(reserved);
        assert!(!is_stuck, "it waits for redo space");
    });
    let stats = &ctx.stats;
    assert_eq!((stats.change_buffer_merges.get(), stats.change_buffer_discarded_ops.get()), (19, 1));
    assert_eq!(stats.pages_lost.get(), 1);
    let error = ctx.pool.load(leaf).unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("1 buffered changes of index 100"), "{error}");
    ctx.pool.flush_all().unwrap();
    assert_eq!(fixture.checkpoint(), log.end_lsn());
    // It stays lost, and what is buffered for it then is forgotten when that is noticed.
    assert!(fixture.put(&keys[7]).unwrap());
    let cut = fixture.after_power_cut(3);
    assert!(cut.parts.ctx.pool.load(leaf).unwrap_err().is_lost());
    assert!(fixture.parts.changes.merge_all().unwrap_err().is_lost());
    assert_eq!((stats.change_buffer_discarded_ops.get(), stats.pages_lost.get()), (2, 1));
    fixture.parts.changes.merge_all().unwrap();
    assert_ne!(fixture.image(leaf), sound);
}

/// The leaf's old bytes are put back after the opening that had to do without them: they lack a change.
#[test]
fn a_leaf_that_was_lost_at_an_opening_stays_lost() {
    for zeros in [false, true] {
        let fixture = Fixture::new();
        let keys = fixture.make_pending(20);
        let leaf = fixture.leaf_of(&keys[7]);
        let sound = fixture.damage(leaf);
        if zeros {
            fixture.repair(leaf, &[0; 4096]);
        }
        fixture.parts.ctx.log.flush_to(fixture.parts.ctx.log.end_lsn()).unwrap();
        let opened = fixture.after_power_cut(3);
        let load = |fixture: &Fixture, key: &[u8]| fixture.parts.ctx.pool.load(fixture.leaf_of(key));
        let error = load(&opened, &keys[7]).unwrap_err();
        assert!(error.is_lost() && error.page() == Some(leaf), "{error}");
        assert_eq!((opened.parts.replayed.lost_pages, opened.parts.ctx.stats.pages_lost.get()), (1, 1));
        assert!(keys.iter().filter(|key| **key != keys[7]).all(|key| opened.has(key)));
        assert_ne!(opened.image(leaf), sound);
        let again = opened.after_power_cut(4);
        assert_eq!(again.parts.replayed.lost_pages, 0);
        assert!(load(&again, &keys[7]).unwrap_err().is_lost());
    }
}

/// A read fails once, and nothing is lost; twice, and the leaf is, or the database does not open.
#[test]
fn a_failed_read_at_the_opening_is_tried_once_more() {
    let fixture = Fixture::new();
    let keys = fixture.make_pending(3);
    fixture.parts.ctx.log.flush_to(fixture.parts.ctx.log.end_lsn()).unwrap();
    let image = fixture.parts.storage().cut(5);
    let overrides = OpenOverrides { recovery_threads: 1, finding_threads: 1, ..OpenOverrides::default() };
    let mut lost = [0, 0];
    for nth in 1..200 {
        for (more, lost) in lost.iter_mut().enumerate() {
            let (storage, faults) = (image.cut(6), Faults::new());
            (0..=more as u64).for_each(|more| faults.fail(Operation::Read, nth + more, FaultKind::ErrorOnce));
            // If the page that failed is not a leaf, the database may refuse to open.
            let opened = OpenParts::open_in(storage.map(|device| faults.wrap(device)), options(), &overrides);
            *lost += opened.map_or(0, |parts| parts.replayed.lost_pages);
        }
    }
    assert_eq!(lost, [0, keys.len()], "leaves lost by one failed read, and by two");
}

/// A closed database with a second table; every leaf of an index of the first is damaged.
struct Damaged {
    options: Options,
    db: TestDb,
    rows: super::Rows,
}

const OTHER_ROWS: u64 = 300;

impl Damaged {
    /// Changes of damaged leaves are pending, and rows of the other table are committed.
    fn new(page_store: PageStoreKind) -> Damaged {
        let merge = MergeAtClose::On;
        let options = Options { page_store, segment_size: 256 << 10, change_buffer_merge_at_close: merge, ..options() };
        let mut rng = Rng::with_seed(50);
        let (db, mut rows) = filled(options.clone(), 12_000, &mut rng);
        db.create_table("other", by_id()).unwrap();
        let db = db.reopen();
        damage_leaves(&db);
        let (table, other) = (db.table("t").unwrap(), db.table("other").unwrap());
        let mut txn = db.begin().unwrap();
        // Marking an entry needs no space, so no leaf is read for it.
        for id in (0..12_000u64).step_by(100) {
            assert!(txn.delete(&table, &values![id]).unwrap());
            rows.remove(&id);
        }
        (0..OTHER_ROWS).for_each(|id| assert!(txn.insert(&other, &values![id]).is_ok()));
        txn.commit().unwrap();
        assert!(db.stats().change_buffer_ops_buffered > 20, "{:?}", db.stats());
        Damaged { options, db, rows }
    }

    /// The database opens and has everything but the index, which can be made again.
    fn assert_repairable(&self, db: &Database, note: &str) {
        assert_eq!(in_order_of(db, &db.table("other").unwrap(), "PRIMARY").len() as u64, OTHER_ROWS, "{note}");
        let table = db.table("t").unwrap();
        assert_eq!(in_order_of(db, &table, "PRIMARY").len(), self.rows.len(), "{note}");
        let mut read = db.snapshot().unwrap();
        let error = read.scan(&table).index("by_a").iter().and_then(|rows| rows.collect::<crate::Result<Vec<_>>>());
        let error = error.map(|rows| rows.len()).unwrap_err();
        let named = error.to_string().contains("by a scan of table t, index by_a");
        assert!(error.page().is_some() && named, "{note}: {error}");
        drop(read);
        let report = db.repair_indexes(&mut |_, _| {}).unwrap();
        let named = report.found.findings.iter().all(|found| found.index.as_deref() == Some("by_a"));
        assert!(named && !report.found.findings.is_empty(), "{note}: {:?}", report.found);
        assert!(report.left.is_sound(), "{note}: {:?}", report.left);
        assert_same(db, &self.rows, note);
    }
}

/// Damages every third leaf of the index `by_a`, on the device.
fn damage_leaves(db: &TestDb) {
    let index = db.table("t").unwrap().shared.current.read().index(0).id();
    let store = db.context().pool.store();
    let mut page = vec![0; store.page_bytes()];
    let mut leaves = 0;
    for page_no in (0..db.space().page_count()).map(PageNo) {
        store.read(page_no, &mut page).unwrap();
        if matches!(header::page_type(&page), Ok(PageType::Leaf)) && header::owner(&page) == index.0 {
            let at = store.place(page_no).unwrap().unwrap().offset as usize + 200;
            let mask = if leaves % 3 == 0 { 0x55 } else { 0 };
            db.storage.memory_devices().unwrap()[0].damage(|bytes| bytes[at] ^= mask);
            leaves += 1;
        }
    }
    assert!(leaves > 50, "{leaves}");
}

const STORES: [PageStoreKind; 2] = [PageStoreKind::InPlace, PageStoreKind::OutOfPlace];

#[test]
fn a_database_with_damaged_leaves_and_pending_changes_opens_and_is_repaired() {
    for page_store in STORES {
        let damaged = Damaged::new(page_store);
        let after_a_cut = damaged.db.storage.cut(3);
        damaged.db.clone().close().unwrap();
        for (storage, note) in [(after_a_cut, "after a power cut"), (damaged.db.storage.clone(), "closed")] {
            let note = format!("{page_store:?}, {note}");
            let overlaid = Database::open_storage_idle(storage.overlaid().unwrap(), damaged.options.clone()).unwrap();
            assert!(!overlaid.check().unwrap().is_sound(), "{note}");
            drop(overlaid);
            let db = TestDb::on(&storage, damaged.options.clone());
            assert!(db.stats().pages_lost > 5, "{note}");
            damaged.assert_repairable(&db, &note);
            let db = db.after_power_cut(4);
            assert_same(&db, &damaged.rows, &note);
        }
    }
}

/// The redo of the pending changes is there still when no thread needs their leaves any more.
#[test]
fn a_crash_after_the_repair_or_the_drop_of_damaged_leaves_is_recovered() {
    for page_store in STORES {
        let mut damaged = Damaged::new(page_store);
        damaged.assert_repairable(&damaged.db, "while open");
        let db = damaged.db.after_power_cut(3);
        assert_same(&db, &damaged.rows, "repaired");
        let mut rng = Rng::with_seed(51);
        let table = db.table("t").unwrap();
        (0..20).for_each(|_| transact(&db, &table, &mut damaged.rows, &mut rng));
        assert_same(&db, &damaged.rows, "changed");
    }
    let damaged = Damaged::new(PageStoreKind::InPlace);
    damaged.db.drop_table("t").unwrap();
    let db = damaged.db.after_power_cut(3);
    assert!(db.check().unwrap().is_sound(), "dropped");
    assert_eq!(in_order_of(&db, &db.table("other").unwrap(), "PRIMARY").len() as u64, OTHER_ROWS);
}

#[test]
fn a_backup_that_left_damaged_leaves_out_is_restored() {
    for page_store in STORES {
        let damaged = Damaged::new(page_store);
        let folder = tempfile::tempdir().unwrap();
        let (dest, target) = (folder.path().join("backup"), folder.path().join("restored"));
        let without = BackupOptions { skip_damaged: true, max_bytes_per_s: 0, ..BackupOptions::default() };
        damaged.db.backup(&dest, &without, &mut |_| Continue(())).unwrap();
        let options = RestoreOptions { database: damaged.options.clone(), ..RestoreOptions::default() };
        Database::restore(&[dest], &target, &options, &mut |_| Continue(())).unwrap();
        let db = Database::open(&target, damaged.options.clone()).unwrap();
        let found = db.check().unwrap().findings;
        assert!(found.iter().any(|finding| finding.text.contains("a backup left it out")), "{found:?}");
        damaged.assert_repairable(&db, &format!("{page_store:?}, restored"));
    }
}
