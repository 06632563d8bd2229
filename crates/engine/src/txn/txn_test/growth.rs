//! What purge and rollback do grows with what was changed, however many versions one row has. Counted: versions walked.

use super::*;

fn steps(db: &Db) -> u64 {
    db.parts.ctx.stats.mvcc_versions_traversed.get()
}

/// The row of the `n`th update: most entries are new, every third comes again and again.
fn updated(n: usize) -> Row {
    row(&a(n), &format!("b{n}"), "")
}

fn a(n: usize) -> String {
    if n.is_multiple_of(3) { format!("again{}", n % 7) } else { format!("a{n}") }
}

fn commit(db: &Db, change: impl FnOnce(&mut Session)) {
    let mut session = db.begin();
    change(&mut session);
    session.commit();
}

/// Twice as much to do takes about twice as much; `work` returns what was counted.
fn assert_linear(mut work: impl FnMut(usize) -> u64) {
    let [small, large] = [400, 800].map(&mut work);
    assert!(large <= 3 * small + 1000, "{small} versions were walked for 400 updates, {large} for 800");
}

/// Purge is behind, and a snapshot keeps as many versions above what can be purged.
#[test]
fn purge_walks_the_versions_of_a_hot_row_once() {
    for transactions in [true, false] {
        assert_linear(|n| {
            let db = Db::new();
            db.fill(&[("k", updated(0))]);
            let change = |range: std::ops::Range<usize>| match transactions {
                true => range.for_each(|n| {
                    let mut session = db.begin();
                    assert!(session.update("k", &updated(n)).unwrap());
                    session.commit();
                }),
                false => {
                    let mut session = db.begin();
                    range.for_each(|n| assert!(session.update("k", &updated(n)).unwrap()));
                    session.commit();
                }
            };
            change(0..n);
            let mut old = db.begin();
            old.open_view();
            change(n..2 * n);
            let before = steps(&db);
            let mut purged = 0;
            while db.system.purge_step(17).unwrap() > 0 {
                // The row continues being changed.
                purged += 1;
                commit(&db, |session| assert!(session.update("k", &updated(5000 + purged)).unwrap()));
            }
            let walked = steps(&db) - before;
            assert_eq!(old.get("k"), Some(updated(n - 1)));
            assert_eq!(old.scan(&by(0, &entries_of(&a(n - 1)))).unwrap(), ["k"]);
            old.commit();
            db.purge_all();
            assert_eq!(db.check(true).len(), 1);
            walked
        });
    }
}

#[test]
fn a_row_with_too_many_versions_to_remember_is_walked() {
    let db = Db::new();
    db.fill(&[("k", updated(0))]);
    (1..20).for_each(|n| commit(&db, |session| assert!(session.update("k", &updated(n)).unwrap())));
    let mut old = db.begin();
    old.open_view();
    for from in (0..5000).step_by(1000) {
        commit(&db, |session| (from..from + 1000).for_each(|n| assert!(session.update("k", &updated(n)).unwrap())));
        db.fill(&[(&format!("other{from}"), updated(from + 10_000))]);
    }
    // One version for each transaction: those of a transaction that no view sees are many, too.
    db.purge_all();
    assert_eq!(old.get("k"), Some(updated(19)));
    old.commit();
    db.purge_all();
    assert_eq!(db.check(true).len(), 6);
}

#[test]
fn rollback_walks_the_versions_of_a_hot_row_once() {
    assert_linear(|n| {
        let db = Db::new();
        db.fill(&[("k", updated(0))]);
        // Committed versions that a snapshot keeps, below the transaction's own.
        let mut old = db.begin();
        old.open_view();
        (0..n).for_each(|n| commit(&db, |session| assert!(session.update("k", &updated(n)).unwrap())));
        let mut session = db.begin();
        (n..2 * n).for_each(|n| assert!(session.update("k", &updated(n)).unwrap()));
        session.delete("k").unwrap();
        session.insert("k", &updated(1)).unwrap();
        let before = steps(&db);
        session.rollback();
        let walked = steps(&db) - before;
        assert_eq!(db.check(false).into_values().collect::<Vec<_>>(), [updated(n - 1)]);
        assert_eq!(old.scan(&by(0, &entries_of(&a(0)))).unwrap(), ["k"]);
        old.commit();
        db.purge_all();
        assert_eq!(db.check(true).into_values().collect::<Vec<_>>(), [updated(n - 1)]);
        walked
    });
}

#[test]
fn rollbacks_to_savepoints_walk_the_versions_of_a_hot_row_once() {
    assert_linear(|n| {
        let db = Db::new();
        db.fill(&[("k", updated(0))]);
        let mut session = db.begin();
        let start = session.savepoint();
        (0..n).for_each(|n| assert!(session.update("k", &updated(n)).unwrap()));
        let before = steps(&db);
        for n in 0..n {
            let savepoint = session.savepoint();
            session.update("k", &updated(n)).unwrap();
            session.rollback_to(savepoint).unwrap();
        }
        let half = session.savepoint();
        (n..2 * n).for_each(|n| assert!(session.update("k", &updated(n)).unwrap()));
        session.rollback_to(half).unwrap();
        let walked = steps(&db) - before;
        assert_eq!(db.check(false).into_values().collect::<Vec<_>>(), [updated(n - 1)]);
        session.rollback_to(start).unwrap();
        session.update("k", &updated(3)).unwrap();
        session.commit();
        db.purge_all();
        assert_eq!(db.check(true).into_values().collect::<Vec<_>>(), [updated(3)]);
        walked
    });
}

#[test]
fn opening_after_a_crash_walks_the_versions_of_a_hot_row_once() {
    assert_linear(|n| {
        let db = Db::new();
        db.fill(&[("k", updated(0))]);
        let mut session = db.begin();
        (0..n).for_each(|n| assert!(session.update("k", &updated(n)).unwrap()));
        db.parts.ctx.log.flush_to(db.parts.ctx.log.end_lsn()).unwrap();
        let opened = db.after_power_cut(1);
        std::mem::forget(session);
        opened.purge_all();
        assert_eq!(opened.check(true).into_values().collect::<Vec<_>>(), [updated(0)]);
        steps(&opened)
    });
}

/// A value that a transaction may still return to, by a rollback to an older savepoint, is no other process's
/// meanwhile.
#[test]
fn a_unique_value_of_an_own_older_version_stays_taken() {
    let db = Db::new();
    db.fill(&[("k", row("a", "first", "")), ("other", row("a", "other", ""))]);
    let mut session = db.read_committed();
    session.update("k", &row("a", "back", "")).unwrap();
    let back = session.savepoint();
    (0..40).for_each(|n| assert!(session.update("k", &row("a", &format!("b{n}"), "")).unwrap()));
    let savepoint = session.savepoint();
    session.update("k", &row("a", "back", "")).unwrap();
    session.update("k", &row("a", "last", "")).unwrap();
    session.rollback_to(savepoint).unwrap();
    let other = db.read_committed().run_blocked(|other| other.update("other", &row("a", "back", "")).is_err());
    session.rollback_to(back).unwrap();
    session.commit();
    let (other, is_duplicate) = other.finish();
    assert!(is_duplicate);
    other.rollback();
    db.purge_all();
    let rows: Vec<_> = db.check(true).into_values().collect();
    assert_eq!(rows, [row("a", "back", ""), row("a", "other", "")]);
}

/// A unique value is inserted and deleted repeatedly while a snapshot is open: a search begins after the dead entries,
/// and finds an entry that was inserted again before them.
#[test]
fn a_search_for_duplicates_begins_behind_the_dead_entries() {
    let db = Db::new();
    let take_and_release = |key: &str| {
        db.fill(&[(key, row("a", "name", ""))]);
        commit(&db, |session| assert!(session.delete(key).unwrap()));
        // It learns that the transactions have ended.
        db.system.purge_step(1).unwrap();
    };
    let mut old = db.begin();
    old.open_view();
    take_and_release("a");
    (0..400).for_each(|n| take_and_release(&format!("k{n:03}")));
    let begins_at = || {
        let tree = db.table.index(1);
        String::from_utf8(db.system.unique.lock(tree, b"name\0").start(tree, b"name\0").to_vec()).unwrap()
    };
    assert!(begins_at().as_str() > "name\0k200", "{}", begins_at());
    db.fill(&[("a", row("a", "name", ""))]);
    assert_eq!(begins_at(), "name\0a");
    assert!(is_duplicate(db.begin().insert("z", &row("a", "name", ""))));
    commit(&db, |session| assert!(session.delete("a").unwrap()));
    take_and_release("z");
    // What rollback makes again is found, too.
    let mut session = db.begin();
    session.insert("b", &row("a", "name", "")).unwrap();
    let savepoint = session.savepoint();
    session.update("b", &row("a", "other", "")).unwrap();
    session.rollback_to(savepoint).unwrap();
    assert!(begins_at().as_str() <= "name\0b", "{}", begins_at());
    session.commit();
    assert!(is_duplicate(db.begin().insert("z", &row("a", "name", ""))));
    old.commit();
    db.purge_all();
    assert_eq!(db.check(true).len(), 1);
}
