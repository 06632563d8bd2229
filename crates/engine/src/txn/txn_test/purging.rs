//! Purge removes all that is invisible to every snapshot, and nothing else.

use super::*;
use crate::space::SEGMENT_UNDO;

pub(super) fn undo_pages(db: &Db) -> usize {
    db.parts.space.pages_of(SEGMENT_UNDO).len()
}

fn fill(db: &Db, n: usize) {
    let mut session = db.begin();
    for i in 0..n {
        session.insert(&format!("{i:05}"), &row(&format!("a{}", i % 9), &format!("b{i}"), "some text")).unwrap();
    }
    session.commit();
}

#[test]
fn purge_to_empty() {
    let db = Db::new();
    fill(&db, 1000);
    for round in 0..3 {
        let mut session = db.begin();
        for i in 0..1000 {
            session.update(&format!("{i:05}"), &row(&format!("a{round}"), &format!("c{i}"), "other text")).unwrap();
        }
        session.commit();
    }
    let mut session = db.begin();
    for i in 0..1000 {
        assert!(session.delete(&format!("{i:05}")).unwrap());
    }
    session.commit();
    let before = undo_pages(&db);
    assert!(before > 20, "{before} undo pages");
    assert_eq!(db.system.history_list_length(), 5);
    db.purge_all();
    for i in 0..TREES {
        assert!(db.records(i).is_empty(), "tree {i}");
    }
    assert_eq!(db.system.history_list_length(), 0);
    // The directory and the last page of the one stream.
    assert_eq!(undo_pages(&db), 2);
    assert_eq!(db.system.undo_pages().unwrap().len(), 2);
    // Leaves are merged on the way.
    assert!(db.parts.space.pages_of(SegmentId(FIRST_SEGMENT)).len() < 20);
}

#[test]
fn small_steps_do_the_same() {
    let db = Db::new();
    fill(&db, 200);
    let mut session = db.begin();
    for i in (0..200).step_by(2) {
        session.delete(&format!("{i:05}")).unwrap();
    }
    session.commit();
    let mut steps = 0;
    while db.system.purge_step(7).unwrap() > 0 {
        steps += 1;
    }
    assert!(steps > 20);
    assert_eq!(db.check(true).len(), 100);
}

#[test]
fn what_a_snapshot_needs_stays() {
    let db = Db::new();
    fill(&db, 50);
    let mut old = db.begin();
    old.open_view();
    let range = entries_of("a4");
    let expected = old.scan(&by(0, &range)).unwrap();
    let mut session = db.begin();
    for i in 0..50 {
        let key = format!("{i:05}");
        if i % 2 == 0 {
            session.delete(&key).unwrap();
        } else {
            // Away and back again: the entry is marked, unmarked, and still the snapshot's.
            session.update(&key, &row("away", &format!("b{i}"), "")).unwrap();
            session.update(&key, &row(&format!("a{}", i % 9), &format!("b{i}"), "")).unwrap();
        }
    }
    session.commit();
    db.purge_all();
    assert_eq!(old.scan(&by(0, &range)).unwrap(), expected);
    assert_eq!(old.keys().len(), 50);
    assert!(db.system.history_list_length() > 0);
    old.commit();
    db.purge_all();
    assert_eq!(db.check(true).len(), 25);
}

/// The record that moved the row away from "x" is purged; a later version has "x" again, and a snapshot reads it.
#[test]
fn an_entry_that_a_later_version_needs_stays() {
    let db = Db::new();
    db.fill(&[("k", row("x", "", ""))]);
    let change = |a: &str| {
        let mut session = db.begin();
        session.update("k", &row(a, "", "")).unwrap();
        session.commit();
    };
    change("y");
    let [mut holds_purge, mut reads_x] = [(); 2].map(|()| db.begin());
    holds_purge.open_view();
    change("x");
    reads_x.open_view();
    change("y");
    db.purge_all();
    let range = entries_of("x");
    assert_eq!(reads_x.scan(&by(0, &range)).unwrap(), ["k"]);
    holds_purge.commit();
    reads_x.commit();
    db.purge_all();
    db.check(true);
}

#[test]
fn a_deletion_purged_while_its_row_is_being_replaced() {
    for commit in [false, true] {
        let db = Db::new();
        fill(&db, 1);
        let mut session = db.begin();
        session.delete("00000").unwrap();
        session.commit();
        let mut session = db.begin();
        session.insert("00000", &row("new", "new", "")).unwrap();
        db.purge_all();
        assert_eq!(db.system.history_list_length(), 0);
        if commit {
            session.commit()
        } else {
            session.rollback()
        }
        db.purge_all();
        assert_eq!(db.check(true).len(), usize::from(commit));
    }
}

#[test]
fn rolled_back_changes_do_not_take_entries_along() {
    let db = Db::new();
    db.fill(&[("k", row("v0", "", ""))]);
    let mut old = db.begin();
    old.open_view();
    let mut session = db.begin();
    session.update("k", &row("v1", "", "")).unwrap();
    session.commit();
    let mut session = db.begin();
    session.update("k", &row("v0", "", "")).unwrap();
    session.rollback();
    let range = entries_of("v0");
    assert_eq!(old.scan(&by(0, &range)).unwrap(), ["k"]);
    assert!(db.begin().scan(&by(0, &range)).unwrap().is_empty());
    old.commit();
    db.purge_all();
    db.check(true);
}

#[test]
fn purge_goes_on_where_a_restart_left_it() {
    let db = Db::new();
    fill(&db, 400);
    for round in 0..5 {
        let mut session = db.begin();
        for i in 0..400 {
            session.update(&format!("{i:05}"), &row(&format!("r{round}"), &format!("b{i}"), "")).unwrap();
        }
        session.commit();
    }
    db.system.purge_step(900).unwrap();
    let db = db.after_power_cut(1);
    let length = db.system.history_list_length();
    assert!((3..=6).contains(&length), "{length}");
    db.purge_all();
    assert_eq!(db.check(true).len(), 400);
    assert_eq!((db.system.history_list_length(), undo_pages(&db)), (0, 2));
}

/// Many streams, several threads, a concurrent writer and a snapshot: purge removes everything that it may, and the
/// snapshot still sees the same rows.
#[test]
fn several_threads_purge_side_by_side() {
    let db = Db::new();
    fill(&db, 120);
    let mut old = db.begin();
    let expected = old.scan_rows(&by(0, &(vec![], vec![255]))).unwrap();
    for round in 0..12 {
        let mut sessions: Vec<_> = (0..12).map(|_| db.begin()).collect();
        for (n, session) in sessions.iter_mut().enumerate() {
            for i in (n..120).step_by(12) {
                let key = format!("{i:05}");
                match (i + round) % 5 {
                    0 => drop(session.delete(&key).unwrap()),
                    1 => drop(session.insert(&key, &row(&format!("a{round}"), &format!("b{i}"), "back"))),
                    _ => drop(session.update(&key, &row(&format!("a{}", round % 3), &format!("b{i}"), "x")).unwrap()),
                }
            }
        }
        sessions.into_iter().for_each(Session::commit);
    }
    let purge = || (0..3).for_each(|_| while db.system.purge_step(13).unwrap() > 0 {});
    std::thread::scope(|scope| {
        (0..3).for_each(|_| drop(scope.spawn(purge)));
        for n in 0..200 {
            db.fill(&[(&format!("y{n}"), row("a1", "", ""))]);
        }
    });
    assert_eq!(old.scan_rows(&by(0, &(vec![], vec![255]))).unwrap(), expected);
    old.commit();
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(purge))));
    db.purge_all();
    db.check(true);
    assert_eq!(db.system.history_list_length(), 0);
    let state = db.system.purge_state();
    assert_eq!((state.purge_pending_records, state.skipped, state.oldest_view_age.as_secs()), (0, 0, 0));
    assert!(state.undo_bytes >= 12 * 4096, "{state:?}");
}

/// Records of transactions that ended before the opening are purged and not counted off.
#[test]
fn what_waits_is_counted_from_the_opening_on() {
    let db = Db::new();
    fill(&db, 50);
    db.purge_all();
    let mut session = db.begin();
    (0..50).for_each(|i| assert!(session.delete(&format!("{i:05}")).unwrap()));
    session.commit();
    assert_eq!(db.system.purge_state().purge_pending_records, 51);
    let db = db.after_power_cut(1);
    db.fill(&[("new", row("a", "", ""))]);
    assert_eq!(db.system.purge_state().purge_pending_records, 2);
    assert!(db.system.history_list_length() >= 2);
    db.purge_all();
    assert_eq!((db.system.history_list_length(), db.system.purge_state().purge_pending_records), (0, 0));
    db.check(true);
}

/// Writers are slowed while purge is too far behind, and no longer.
#[test]
fn a_long_history_slows_writers() {
    let db = Db::new();
    let limits = LagLimits { max_purge_lag: 10, max_delay_us: 1000 };
    let system = TxnSystem::open(db.parts.ctx.clone(), db.parts.space.clone(), db.parts.changes.clone());
    let system = Arc::new(system.unwrap());
    system.set_lag_limits(limits);
    let tables: Arc<dyn Tables> = Arc::new(OneTable(db.table.clone()));
    system.recover(&tables).unwrap();
    let db = Db { system, ..db };
    let delays = || db.parts.ctx.stats.purge_lag_delays.get();
    let mut old = db.begin();
    old.open_view();
    for n in 0..15 {
        db.fill(&[(&format!("k{n}"), row("a", "", ""))]);
    }
    assert_eq!(delays(), 4, "from the eleventh on");
    assert_eq!(db.parts.ctx.stats.purge_lag_delay_us.get(), 4 * 1000);
    old.commit();
    db.purge_all();
    db.fill(&[("last", row("a", "", ""))]);
    assert_eq!(delays(), 4);
}

/// A writer was active when the power went: its records were not counted before the opening, and are not counted off.
#[test]
fn records_of_a_transaction_that_a_crash_cut_off_are_not_counted() {
    let db = Db::new();
    fill(&db, 20);
    let mut open = db.begin();
    (0..20).for_each(|i| assert!(open.delete(&format!("{i:05}")).unwrap()));
    db.parts.ctx.log.flush_to(db.parts.ctx.log.end_lsn()).unwrap();
    let db = {
        let next = db.after_power_cut(1);
        std::mem::forget(open);
        next
    };
    let unpurged = || db.system.purge_state().purge_pending_records;
    assert_eq!((db.system.history_list_length(), unpurged()), (2, 0));
    db.fill(&[("new", row("a", "", ""))]);
    assert_eq!(unpurged(), 2);
    db.purge_all();
    assert_eq!((db.system.history_list_length(), unpurged()), (0, 0));
    assert_eq!(db.check(true).len(), 21);
}

/// The keys of a row leaf in the middle, and the leaf on its right.
fn leaf_in_the_middle(db: &Db) -> (Vec<String>, PageNo) {
    let tree = db.table.clustered();
    let leaf = tree.leaf(&db.parts.ctx, Seek::Covers(b"00200")).unwrap();
    let mut key = Vec::new();
    let key_at = |slot| {
        leaf.key_into(slot, &mut key);
        String::from_utf8(key.clone()).unwrap()
    };
    let keys: Vec<String> = (0..leaf.len()).map(key_at).collect();
    let upper = leaf.upper().unwrap().to_vec();
    drop(leaf);
    (keys, tree.leaf(&db.parts.ctx, Seek::Covers(&upper)).unwrap().page_no())
}

/// A leaf's neighbour is damaged: the leaf is not merged with it, and rollback and purge do all else.
#[test]
fn a_damaged_neighbour_holds_up_no_thread() {
    let db = Db::new();
    fill(&db, 400);
    db.purge_all();
    let given_up = |db: &Db| db.parts.ctx.stats.btree_merges_abandoned.get();

    let (keys, right) = leaf_in_the_middle(&db);
    let mut session = db.begin();
    for n in 0..300 {
        session.insert(&format!("{}-{n:03}", keys[keys.len() - 1]), &row("new", "", "some text")).unwrap();
    }
    let rolled_back = db.with_damaged(right);
    assert_eq!(rolled_back.system.active_count(), 0, "{:?}", rolled_back.system.purge_state());
    assert!(rolled_back.parts.ctx.pool.load(right).is_err() && given_up(&rolled_back) > 0);
    session.rollback();

    let (keys, right) = leaf_in_the_middle(&db);
    let mut session = db.begin();
    keys.iter().for_each(|key| assert!(session.delete(key).unwrap()));
    session.commit();
    let purged = db.with_damaged(right);
    purged.purge_all();
    let state = purged.system.purge_state();
    assert_eq!((state.history_list_length, state.skipped), (0, 0), "{state:?}");
    assert!(given_up(&purged) > 0);
}

/// One indexed column of a wide row changes: undo keeps that column and the entry, not the row.
#[test]
fn undo_of_a_moved_entry_is_small() {
    let db = Db::new();
    let wide = |a: &str| Row { rest: vec![7; 500], ..row(a, "b", "") };
    db.fill(&[("k", wide("one"))]);
    let mut old = db.begin();
    old.open_view();
    let mut session = db.begin();
    session.update("k", &wide("two")).unwrap();
    let tail = |session: &mut Session| session.txn().undo.as_ref().unwrap().tail().offset;
    let before = tail(&mut session);
    session.update("k", &wide("six")).unwrap();
    let bytes = tail(&mut session) - before;
    assert!(bytes < 64, "{bytes} bytes of undo");
    let savepoint = session.savepoint();
    session.update("k", &wide("ten")).unwrap();
    session.rollback_to(savepoint).unwrap();
    assert_eq!(db.check(false).len(), 1);
    session.commit();
    assert_eq!(old.scan(&by(0, &entries_of("one"))).unwrap(), ["k"]);
    assert_eq!(old.get("k"), Some(wide("one")));
    old.commit();
    db.purge_all();
    assert_eq!(db.check(true).into_values().collect::<Vec<_>>(), [wide("six")]);
}
