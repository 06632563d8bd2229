//! Rows larger than a leaf takes.

use super::*;
use crate::row::format::{OverflowRef, ROW_HEADER_BYTES};
use crate::txn::overflow_columns::OverflowRow;
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

/// The chains of the newest version of a row.
fn chains(db: &Db, key: &str) -> Vec<OverflowRef> {
    let value = &db.records(0)[key.as_bytes()];
    if !RowHeader::decode(value).unwrap().is_overflow() {
        return Vec::new();
    }
    let stored = OverflowRow::decode(&value[ROW_HEADER_BYTES..]).unwrap();
    stored.refs().map(|column| column.chain).collect()
}

/// A chain belongs to every version that has its column: it is neither read nor written by a change of another column,
/// and goes once, with the last of them.
#[test]
fn versions_share_the_chain_of_a_column_that_no_change_touches() {
    let db = Db::new();
    let first = large(50_000, 1);
    db.fill(&[("k", first.clone())]);
    let (pages, chain) = (db.overflow_pages(), chains(&db, "k"));
    assert_eq!((pages, chain.len()), (13, 1));
    let mut old = db.begin();
    old.open_view();
    db.parts.ctx.pool.evict_all_clean();
    for n in 0..5 {
        let (lsn, read) = (db.parts.ctx.log.end_lsn().0, db.parts.ctx.stats.pages_read.get());
        let mut session = db.begin();
        assert!(session.update_a("k", &format!("n{n}")).unwrap());
        session.commit();
        let (redo, read) = (db.parts.ctx.log.end_lsn().0 - lsn, db.parts.ctx.stats.pages_read.get() - read);
        assert!(redo < 1500 && read < 10, "change {n}: {redo} bytes of redo, {read} pages read");
    }
    assert_eq!((chains(&db, "k"), db.overflow_pages()), (chain.clone(), pages));
    db.purge_all();
    assert_eq!(old.get("k"), Some(first.clone()), "the versions between are purged");
    let mut session = db.begin();
    assert!(session.update("k", &large(9_000, 2)).unwrap());
    assert!(session.update_a("k", "last").unwrap());
    session.commit();
    db.purge_all();
    assert_eq!(old.get("k"), Some(first), "an older version has the chain");
    assert_eq!(db.overflow_pages(), pages + 3);
    drop(old);
    db.purge_all();
    assert_eq!(db.overflow_pages(), 3);
    assert_eq!(db.check(true)[&b"k"[..]], Row { a: b"last".to_vec(), ..large(9_000, 2) });
}

/// What a rollback undoes to a version whose chain it shares leaves that chain alone.
#[test]
fn rollback_leaves_shared_chains_alone() {
    let db = Db::new();
    db.fill(&[("k", large(50_000, 1))]);
    let chain = chains(&db, "k");
    let mut session = db.begin();
    assert!(session.update_a("k", "x").unwrap());
    let savepoint = session.savepoint();
    assert!(session.update_a("k", "y").unwrap());
    assert!(session.update("k", &large(20_000, 2)).unwrap());
    assert!(session.update_a("k", "z").unwrap());
    assert!(session.delete("k").unwrap());
    session.insert("k", &large(30_000, 3)).unwrap();
    session.rollback_to(savepoint).unwrap();
    assert_eq!((chains(&db, "k"), db.overflow_pages()), (chain.clone(), 13));
    assert_eq!(session.get("k"), Some(Row { a: b"x".to_vec(), ..large(50_000, 1) }));
    session.rollback();
    assert_eq!((chains(&db, "k"), db.overflow_pages()), (chain, 13));
    db.purge_all();
    assert_eq!((db.check(true).len(), db.overflow_pages()), (1, 13));
    let mut session = db.begin();
    assert!(session.update_a("k", "x").unwrap() && session.delete("k").unwrap());
    session.commit();
    db.purge_all();
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
    // The rollback removed what the deletion left: all transactions see the row as deleted.
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
