//! Purge and rollbacks skip a damaged page.

use super::*;
use crate::config::{ChangeBuffering, Options};

/// Each leaf is read when it is changed: so purge and rollback meet the damage, and no pending change makes redo need
/// the page.
fn options() -> Options {
    Options { change_buffering: ChangeBuffering::Off, ..small_options() }
}

/// A database of two tables with much to purge, on which purge has not run.
fn unpurged() -> StorageSet {
    let storage = closed(1500);
    let db = Database::open_storage_idle(storage.clone(), options()).unwrap();
    let (table, other) = (db.table("person").unwrap(), db.table("empty").unwrap());
    for n in 0..200u64 {
        let mut txn = db.begin().unwrap();
        txn.insert(&other, &values![null, name(n).as_str(), null, "short"]).unwrap();
        for id in (n * 7 + 2..n * 7 + 9).filter(|id| id % 11 != 1) {
            txn.update(&table, &values![id], &[(1, "moved".into())]).unwrap();
        }
        txn.commit().unwrap();
    }
    let mut txn = db.begin().unwrap();
    txn.delete(&other, &values![7]).unwrap();
    txn.commit().unwrap();
    db.close().unwrap();
    forget_doublewrite(&storage);
    storage
}

fn break_page(storage: &StorageSet, page: PageNo) {
    data(storage).damage(|bytes| bytes[page.0 as usize * PAGE_BYTES + 200] ^= 1);
}

/// Opens it with purge running, lets purge do what it can, and writes and reads what is not on the bad page.
fn use_around(storage: &StorageSet, what: &str, round: u64) -> Database {
    let db = Database::open_storage(storage.clone(), options()).unwrap();
    let started = std::time::Instant::now();
    while db.purge_state().history_list_length > 0 {
        assert!(started.elapsed().as_secs() < 120, "{what}: {:?}", db.purge_state());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(!db.context().poison.is_set(), "{what}");
    let (table, other) = (db.table("person").unwrap(), db.table("empty").unwrap());
    let mut txn = db.begin().unwrap();
    assert!(txn.get(&other, &values![3]).unwrap().is_some(), "{what}");
    txn.update(&other, &values![4], &[(1, format!("round {round}").as_str().into())]).unwrap();
    txn.insert(&table, &values![5000 + round, format!("zz {round}").as_str(), null, "new"]).unwrap();
    let readable = (1..1500u64).filter(|id| txn.get(&table, &values![*id]).is_ok()).count();
    assert!(readable >= 1350, "{what}: {readable} rows are readable");
    txn.commit().unwrap();
    db
}

/// Purge skips a bad page: nothing stops, what is elsewhere is read and written, `check` names the page.
#[test]
fn purge_goes_around_a_damaged_page() {
    let intact = unpurged();
    for index in 0..2 {
        let id = index_id(&intact, index);
        let marked = |page: Node<'_>| (0..page.count()).filter(|slot| page.value(*slot)[0] & 1 == 1).count();
        let page = find_page(&intact, |bytes| is_leaf_of(bytes, id) && (index == 0 || marked(Node::new(bytes)) > 4));
        let storage = copy(&intact);
        break_page(&storage, page);
        let what = format!("leaf {page} of index {index}");
        let db = use_around(&storage, &what, 0);
        let state = db.purge_state();
        assert!(state.skipped > 0 && state.damage.iter().any(|t| t.contains(&page.to_string())), "{what}: {state:?}");
        expect(&db.check().unwrap(), &[&format!("page {page}:")]);
        db.close().unwrap();
        use_around(&storage, &what, 1).close().unwrap();
    }
}

/// A stream whose own pages are bad is given up; transactions continue in others, also after an opening that meets it.
#[test]
fn purge_gives_up_a_damaged_stream() {
    let intact = unpurged();
    let undo = |bytes: &[u8]| {
        let fields = crate::undo::UndoFields::read(bytes, PageNo(0));
        header::page_type(bytes).unwrap() == PageType::Undo && fields.is_ok_and(|fields| fields.next != PageNo(0))
    };
    let page = find_page(&intact, undo);
    break_page(&intact, page);
    for round in 0..2 {
        let db = use_around(&intact, "undo page", round);
        let state = db.purge_state();
        assert!(state.skipped > 0 && state.damage.iter().any(|text| text.contains(&page.to_string())), "{state:?}");
        expect(&db.check().unwrap(), &[&format!("page {page}:")]);
        db.close().unwrap();
    }
}

/// A transaction that a crash cut off and that cannot be rolled back keeps its rows, and nothing else is stopped.
#[test]
fn a_rollback_at_opening_goes_around_a_damaged_page() {
    let storage = unpurged();
    let db = Database::open_storage_idle(storage.clone(), options()).unwrap();
    let (table, other) = (db.table("person").unwrap(), db.table("empty").unwrap());
    while db.transactions().purge_step(1000).unwrap() > 0 {}
    let mut open = db.begin().unwrap();
    for id in 2..10u64 {
        open.update(&table, &values![id], &[(1, "cut off".into())]).unwrap();
    }
    let (pool, log) = (&db.context().pool, &db.context().log);
    pool.flush_all().unwrap();
    let end = crate::pool::cleaner::checkpoint_target(pool, log);
    log.flush_to(end).unwrap();
    log.checkpoint(end).unwrap();
    let left = storage.cut(1);
    drop(open);
    // The rows' first leaf: after the checkpoint replay has nothing to do on it, so it is not read before the rollback.
    forget_doublewrite(&left);
    let id = index_id(&storage, 0);
    let page = find_page(&left, |bytes| is_leaf_of(bytes, id) && Node::new(bytes).lower().is_none_or(<[u8]>::is_empty));
    break_page(&left, page);
    drop((db, other));
    let db = Database::open_storage(left, options()).unwrap();
    assert_eq!(db.stats().rollbacks_skipped, 1, "{:?}", db.purge_state());
    let other = db.table("empty").unwrap();
    let mut txn = db.begin().unwrap();
    txn.update(&other, &values![4], &[(1, "after".into())]).unwrap();
    txn.commit().unwrap();
}
