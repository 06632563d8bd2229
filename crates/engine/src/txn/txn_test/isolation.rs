//! Plain reads next to changes: snapshots, leaves that leave the pool, versions that an index scan walks. (What each
//! level lets happen: `db/db_test/schedules`.)

use super::*;

#[test]
fn a_snapshot_stays_whole_while_everything_changes() {
    let db = Db::new();
    let mut session = db.begin();
    for i in 0..300 {
        session.insert(&format!("{i:03}"), &row(&format!("a{}", i % 3), &format!("b{i}"), "old")).unwrap();
    }
    session.commit();
    let mut snapshot = db.begin();
    snapshot.open_view();
    for round in 0..4 {
        let mut session = db.begin();
        for i in 0..300 {
            let key = format!("{i:03}");
            match (i + round) % 4 {
                0 => drop(session.delete(&key).unwrap()),
                1 => drop(session.insert(&key, &row("new", &format!("n{i}"), &"x".repeat(round * 40)))),
                _ => drop(session.update(&key, &row(&format!("a{round}"), &format!("c{i}"), "changed")).unwrap()),
            }
        }
        if round == 2 {
            session.rollback()
        } else {
            session.commit()
        }
        db.purge_all();
        let expected: Vec<String> = (0..300).map(|i| format!("{i:03}")).collect();
        assert_eq!(snapshot.keys(), expected);
        let reverse = ScanOptions { reverse: true, ..ScanOptions::default() };
        assert!(snapshot.scan(&reverse).unwrap().iter().rev().eq(expected.iter()));
        let range = entries_of("a1");
        assert_eq!(snapshot.scan(&by(0, &range)).unwrap().len(), 100);
        assert_eq!(snapshot.get("007"), Some(row("a1", "b7", "old")));
    }
    drop(snapshot);
    db.purge_all();
    db.check(true);
}

/// Between two batches the leaf is changed, leaves the pool, and comes back into another frame. Both are the first page
/// their frames ever held, so that the frames' versions are alike.
#[test]
fn a_scan_does_not_take_a_leaf_that_came_back_changed_for_the_one_it_left() {
    let db = Db::new();
    let keys: Vec<String> = (0..12).map(|n| format!("k{n:02}0")).collect();
    let rows: Vec<Row> = (0..12).map(|n| row("a", &format!("u{n}"), "old")).collect();
    db.fill(&keys.iter().map(String::as_str).zip(rows).collect::<Vec<_>>());
    let ctx = db.parts.ctx.clone();
    let leaf = db.table.clustered().root();
    let mut busy = Vec::new();
    let mut come_back_after = |frames: usize| {
        ctx.pool.flush_all().unwrap();
        ctx.pool.evict_all_clean();
        ctx.pool.take_frames(frames - busy.len(), &mut busy).unwrap();
        ctx.pool.load(leaf).unwrap();
        ctx.pool.frame_of(leaf)
    };
    let first = come_back_after(100);
    let mut reader = db.begin();
    let mut cursor = reader.cursor(&ScanOptions::default()).unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        assert!(reader.next(&mut cursor).unwrap());
        seen.push(String::from_utf8(cursor.key().to_vec()).unwrap());
    }
    let mut writer = db.begin();
    (1..4).for_each(|n| writer.insert(&format!("k00{n}"), &row("a", &format!("v{n}"), "new")).unwrap());
    writer.commit();
    assert_ne!(come_back_after(200), first);
    while reader.next(&mut cursor).unwrap() {
        seen.push(String::from_utf8(cursor.key().to_vec()).unwrap());
    }
    assert_eq!(seen, keys);
    ctx.pool.release_frames(busy);
}

/// Every entry of every old version of a row leads to the row. The scan must not walk its whole chain for each of them.
#[test]
fn an_index_scan_walks_the_versions_of_a_row_once() {
    const ROWS: u64 = 40;
    const VERSIONS: u64 = 30;
    let db = Db::new();
    let key = |n: u64| format!("k{n:02}");
    let at = |n: u64, version: u64| row(&format!("a{:03}", (n * 7 + version * 11) % 997), "", "");
    let fill: Vec<_> = (0..ROWS).map(|n| (key(n), at(n, 0))).collect();
    fill.iter().for_each(|(key, row)| db.fill(&[(key, row.clone())]));
    let mut old = db.begin();
    old.open_view();
    for version in 1..=VERSIONS {
        for n in 0..ROWS {
            let mut session = db.begin();
            session.update(&key(n), &at(n, version)).unwrap();
            session.commit();
        }
    }
    let all = (vec![], vec![255]);
    let steps = || db.parts.ctx.stats.mvcc_versions_traversed.get();
    let before = steps();
    let found = old.scan_rows(&by(0, &all)).unwrap();
    let taken = steps() - before;
    let mut expected: Vec<_> = (0..ROWS).map(|n| (key(n), at(n, 0))).collect();
    expected.sort_by(|x, y| x.1.a.cmp(&y.1.a));
    assert_eq!(found, expected);
    // Once to learn which entry is the row's, once to deliver it; short walks besides.
    assert!(taken <= 3 * ROWS * VERSIONS, "{taken} steps");
}

/// What a scan remembers of a row must not outlive a change of its own transaction, nor a rollback of one.
#[test]
fn an_index_scan_with_own_changes() {
    for roll_back in [false, true] {
        let db = Db::new();
        db.fill(&[("k", row("m", "", ""))]);
        let mut own = db.begin();
        own.open_view();
        for version in 0..20 {
            let mut session = db.begin();
            session.update("k", &row(&format!("c{version:02}"), "", "")).unwrap();
            session.commit();
        }
        let mut session = db.begin();
        session.update("k", &row("x", "", "")).unwrap();
        session.commit();
        let mut other = db.begin();
        other.insert("l", &row("d", "", "")).unwrap();
        other.commit();
        own.insert("own", &row("c005", "", "")).unwrap();
        let all = (vec![], vec![255]);
        let mut cursor = own.cursor(&by(0, &all)).unwrap();
        // The entry c00 comes first: the row's visible one, m, is remembered. The batch ends soon after.
        assert!(own.next(&mut cursor).unwrap());
        assert_eq!(cursor.key(), b"own");
        let savepoint = own.savepoint();
        own.update("k", &row("y", "", "")).unwrap();
        if roll_back {
            own.rollback_to(savepoint).unwrap();
        }
        assert!(own.next(&mut cursor).unwrap());
        assert_eq!(cursor.entry()[0], if roll_back { b'm' } else { b'y' });
        assert!(!own.next(&mut cursor).unwrap());
    }
}
