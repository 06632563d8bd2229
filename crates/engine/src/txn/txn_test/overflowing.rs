//! Rows larger than a leaf takes.

use super::*;
use highwater_storage::{FaultKind, Faults, Operation};

fn large(n: usize, seed: u8) -> Row {
    let rest = (0..n).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed) | 1).collect();
    Row { a: format!("a{}", seed % 3).into_bytes(), b: format!("b{seed}").into_bytes(), rest }
}

#[test]
fn large_rows_come_back_whole() {
    let db = Db::new();
    let mut session = db.begin();
    for (i, n) in [900, 950, 1000, 4050, 4096, 20_000, 300_000].into_iter().enumerate() {
        session.insert(&format!("k{i}"), &large(n, i as u8)).unwrap();
    }
    session.commit();
    let mut session = db.begin();
    for (i, n) in [900, 950, 1000, 4050, 4096, 20_000, 300_000].into_iter().enumerate() {
        assert_eq!(session.get(&format!("k{i}")), Some(large(n, i as u8)));
    }
    assert_eq!(session.scan_rows(&ScanOptions::default()).unwrap().len(), 7);
    let range = entries_of("a1");
    assert_eq!(session.scan_rows(&by(0, &range)).unwrap()[1].1, large(4096, 4));
    assert!(session.delete("k6").unwrap());
    session.commit();
    db.purge_all();
    assert_eq!(db.check(true).len(), 6);
}

#[test]
fn old_versions_keep_their_pages_until_purged() {
    let db = Db::new();
    db.fill(&[("k", large(50_000, 1)), ("small", row("s", "s", ""))]);
    let pages = db.overflow_pages();
    assert!(pages > 10);
    let mut old = db.begin();
    old.open_view();
    for (n, seed) in [(60_000, 2), (100, 3), (70_000, 4)] {
        let mut session = db.begin();
        assert!(session.update("k", &large(n, seed)).unwrap());
        assert!(session.update("small", &large(n, seed + 10)).unwrap());
        session.commit();
        db.purge_all();
        assert_eq!(old.get("k"), Some(large(50_000, 1)));
        assert_eq!(old.get("small"), Some(row("s", "s", "")));
    }
    let mut session = db.begin();
    session.delete("k").unwrap();
    session.delete("small").unwrap();
    session.commit();
    db.purge_all();
    assert_eq!(old.get("k"), Some(large(50_000, 1)));
    drop(old);
    db.purge_all();
    assert!(db.check(true).is_empty());
    assert_eq!(db.overflow_pages(), 0);
}

#[test]
fn rollback_frees_every_page() {
    let db = Db::new();
    db.fill(&[("k", large(50_000, 1)), ("gone", large(30_000, 2))]);
    let mut session = db.begin();
    session.delete("gone").unwrap();
    session.commit();
    let pages = db.overflow_pages();
    let mut session = db.begin();
    session.insert("n", &large(40_000, 3)).unwrap();
    session.insert("gone", &large(40_000, 4)).unwrap();
    let savepoint = session.savepoint();
    session.update("k", &large(60_000, 5)).unwrap();
    session.update("k", &large(10, 6)).unwrap();
    session.update("k", &large(61_000, 7)).unwrap();
    session.rollback_to(savepoint).unwrap();
    assert_eq!(session.get("k"), Some(large(50_000, 1)));
    assert!(is_duplicate(session.insert("dup", &large(80_000, 1))));
    assert!(is_duplicate(session.insert("k", &large(80_000, 9))));
    session.delete("k").unwrap();
    session.rollback();
    // What the deletion left behind went with the rollback: all see it as deleted.
    assert!(db.overflow_pages() <= pages);
    assert_eq!(db.begin().keys(), ["k"]);
    db.purge_all();
    assert_eq!(db.check(true).len(), 1);
    let mut session = db.begin();
    session.delete("k").unwrap();
    session.commit();
    db.purge_all();
    assert_eq!(db.overflow_pages(), 0);
}

/// A read of purge that fails once costs nothing: no page of a chain is left behind.
#[test]
fn purge_tries_a_failed_read_again() {
    let made = Db::new();
    made.fill(&[("k", large(50_000, 1)), ("small", row("s", "s", ""))]);
    let mut session = made.begin();
    session.delete("k").unwrap();
    session.update("small", &large(9_000, 2)).unwrap();
    session.commit();
    let mut session = made.begin();
    session.update("small", &row("t", "t", "")).unwrap();
    session.commit();
    let (mut nth, mut fails) = (0, true);
    while fails {
        let faults = Faults::new();
        let db = made.reopened(|device| faults.wrap(device));
        assert!(db.overflow_pages() > 12);
        db.parts.ctx.pool.evict_all_clean();
        nth += 1;
        faults.fail(Operation::Read, nth, FaultKind::ErrorOnce);
        db.purge_all();
        fails = faults.failures() > 0;
        assert_eq!((db.overflow_pages(), db.system.purge_state().skipped), (0, 0), "read {nth}");
    }
    assert!(nth > 10, "{nth} reads");
}

/// The memory of an ended transaction serves the next one, but not what a large row took of it.
#[test]
fn the_memory_of_large_rows_is_released() {
    let db = Db::new();
    db.fill(&[("k", large(500_000, 1))]);
    let mut session = db.begin();
    session.update("k", &large(400_000, 2)).unwrap();
    session.commit();
    let kept = &db.system.spare().buffers;
    let largest = [&kept.old_row, &kept.new_row, &kept.value, &kept.record].map(Vec::capacity).into_iter().max();
    assert!(largest.unwrap() <= super::super::KEPT_ROW_BYTES, "{largest:?}");
}

#[test]
fn eight_mebibytes_fit_one_row() {
    let options = Options {
        page_size: crate::config::PageSize::Bytes(16384),
        buffer_pool_size: 8 << 20,
        log_file_size: 16 << 20,
        ..small_options()
    };
    let db = Db::with(StorageSet::memory(), options);
    let mut session = db.begin();
    session.insert("big", &large(8 << 20, 1)).unwrap();
    assert_eq!(session.get("big"), Some(large(8 << 20, 1)));
    let huge = session.insert("huge", &large(MAX_ROW_BYTES + 1, 2));
    assert!(matches!(huge, Err(Error::RowTooLarge { .. })));
    session.commit();
    assert_eq!(db.check(false).len(), 1);
    let mut session = db.begin();
    session.delete("big").unwrap();
    session.commit();
    db.purge_all();
    assert_eq!(db.overflow_pages(), 0);
}
