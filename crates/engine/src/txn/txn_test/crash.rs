//! Power cuts: committed rows survive, other changes do not, and no page leaks.

use super::*;
use crate::page::node::TreeLimits;
use crate::row::format::ROW_HEADER_BYTES;

/// Random transactions until the seed ends the loop; `committed` gets the committed rows; returns an open transaction.
fn work(db: &Db, random: &mut Random, committed: &mut BTreeMap<Vec<u8>, Row>) -> Session {
    loop {
        let mut session = db.begin();
        let mut rows = committed.clone();
        for _ in 0..1 + random.below(40) {
            change(&mut session, random, &mut rows);
        }
        match random.below(8) {
            0 => return session,
            1 => session.rollback(),
            _ => {
                session.commit();
                *committed = rows;
            }
        }
        if random.below(3) == 0 {
            db.system.purge_step(random.below(60) as usize).unwrap();
        }
    }
}

fn change(session: &mut Session, random: &mut Random, rows: &mut BTreeMap<Vec<u8>, Row>) {
    let key = format!("k{:03}", random.below(150));
    let length = if random.below(10) == 0 { random.below(30_000) } else { random.below(100) };
    let new = row(&format!("a{}", random.below(9)), &key, &"r".repeat(length as usize));
    let before = rows.get(key.as_bytes()).is_some();
    match random.below(4) {
        0 if before => assert!(is_duplicate(session.insert(&key, &new))),
        0 => {
            session.insert(&key, &new).unwrap();
            rows.insert(key.into_bytes(), new);
        }
        1 => {
            assert_eq!(session.update(&key, &new).unwrap(), before);
            if before {
                rows.insert(key.into_bytes(), new);
            }
        }
        2 => {
            let a = format!("a{}", random.below(9));
            assert_eq!(session.update_a(&key, &a).unwrap(), before);
            if let Some(row) = rows.get_mut(key.as_bytes()) {
                row.a = a.into_bytes();
            }
        }
        _ => {
            assert_eq!(session.delete(&key).unwrap(), before);
            rows.remove(key.as_bytes());
        }
    }
}

fn assert_sound(db: &Db, committed: &BTreeMap<Vec<u8>, Row>, seed: u64) {
    assert_eq!(&db.check(false), committed, "seed {seed}");
    assert_eq!(db.system.active_count(), 0);
}

fn assert_nothing_leaked(db: &Db, committed: &BTreeMap<Vec<u8>, Row>, seed: u64) {
    db.purge_all();
    assert_eq!(&db.check(true), committed, "seed {seed}");
    let chain = |(key, row): (&Vec<u8>, &Row)| {
        let inline = TreeLimits::usual(4096).max_value_bytes(key.len()) - ROW_HEADER_BYTES;
        if row.encode().len() > inline { row.rest.len().div_ceil(4040) } else { 0 }
    };
    let pages: usize = committed.iter().map(chain).sum();
    assert_eq!(db.overflow_pages(), pages, "seed {seed}: overflow pages");
    let undo = db.parts.space.pages_of(crate::space::SEGMENT_UNDO).len();
    assert_eq!(undo, db.system.undo_pages().unwrap().len(), "seed {seed}: undo pages");
}

#[test]
fn committed_transactions_survive_power_cuts() {
    for seed in 1..=8 {
        let mut random = Random(seed);
        let mut db = Db::new();
        let mut committed = BTreeMap::new();
        for life in 0..4 {
            let open = work(&db, &mut random, &mut committed);
            if random.below(2) == 0 {
                // What the open transaction has done is in the log, too.
                db.parts.ctx.log.flush_to(db.parts.ctx.log.end_lsn()).unwrap();
            }
            let next = db.after_power_cut(seed * 100 + life);
            std::mem::forget(open);
            drop(db);
            assert_sound(&next, &committed, seed);
            // Again, in the middle of what recovery has begun.
            if random.below(2) == 0 {
                next.parts.ctx.log.flush_to(next.parts.ctx.log.end_lsn()).unwrap();
            }
            db = next.after_power_cut(seed * 100 + 50 + life);
            assert_sound(&db, &committed, seed);
        }
        assert_nothing_leaked(&db, &committed, seed);
    }
}

#[test]
fn a_cut_at_any_moment_of_a_large_rows_life_leaks_nothing() {
    let big = Row { a: b"a".to_vec(), b: b"b".to_vec(), rest: vec![7; 100_000] };
    for seed in 0..10 {
        let db = Db::new();
        let mut committed = BTreeMap::new();
        if seed % 2 == 0 {
            db.fill(&[("k", big.clone())]);
            committed.insert(b"k".to_vec(), big.clone());
        }
        let flushed = |db: &Db| db.parts.ctx.log.flush_to(db.parts.ctx.log.end_lsn()).unwrap();
        let mut session = db.begin();
        if seed % 2 == 0 {
            session.update("k", &Row { rest: vec![8; 90_000], ..big.clone() }).unwrap();
            flushed(&db);
            session.delete("k").unwrap();
        } else {
            session.insert("k", &big).unwrap();
        }
        if seed % 3 == 0 {
            flushed(&db);
        }
        if seed % 5 == 1 {
            session.commit();
            committed = BTreeMap::from([(b"k".to_vec(), big.clone())]);
        } else {
            std::mem::forget(session);
        }
        let next = db.after_power_cut(seed);
        drop(db);
        let expected = if seed % 5 == 1 && seed % 2 == 0 { BTreeMap::new() } else { committed };
        assert_sound(&next, &expected, seed);
        assert_nothing_leaked(&next, &expected, seed);
    }
}

/// A chain that versions share, replaced, deleted and purged: cut after every few steps, in the middle of which
/// recovery is cut as well.
#[test]
fn a_cut_at_any_moment_of_a_shared_chains_life_leaks_nothing() {
    let big = |seed: u8| Row { a: b"a".to_vec(), b: b"b".to_vec(), rest: vec![seed; 9000] };
    for cut_after in 0..14u64 {
        let db = Db::new();
        db.fill(&[("k", big(1))]);
        let (mut session, mut expected) = (db.begin(), Some(big(1)));
        let mut row = big(1);
        for step in 0..cut_after {
            match step % 7 {
                0 => row.a = b"x".to_vec(),
                1 | 4 => row.rest = vec![step as u8 + 2; 9000],
                2 => row.a = b"y".to_vec(),
                _ => {}
            }
            match step % 7 {
                0 | 2 => assert!(session.update_a("k", std::str::from_utf8(&row.a).unwrap()).unwrap()),
                1 | 4 => assert!(session.update("k", &row).unwrap()),
                3 => {
                    session.commit();
                    session = db.begin();
                    expected = Some(row.clone());
                }
                5 => drop(db.system.purge_step(1 + step as usize % 3).unwrap()),
                _ => assert!(session.delete("k").unwrap() && session.insert("k", &row).is_ok()),
            }
        }
        db.parts.ctx.log.flush_to(db.parts.ctx.log.end_lsn()).unwrap();
        let next = db.after_power_cut(cut_after);
        std::mem::forget(session);
        drop(db);
        let expected: BTreeMap<_, _> = expected.into_iter().map(|row| (b"k".to_vec(), row)).collect();
        assert_sound(&next, &expected, cut_after);
        next.parts.ctx.log.flush_to(next.parts.ctx.log.end_lsn()).unwrap();
        next.system.purge_step(2).unwrap();
        let last = next.after_power_cut(cut_after + 100);
        assert_sound(&last, &expected, cut_after);
        assert_nothing_leaked(&last, &expected, cut_after);
    }
}

#[test]
fn ids_never_come_back() {
    let db = Db::new();
    db.fill(&[("a", row("", "", ""))]);
    let mut session = db.begin();
    session.insert("b", &row("", "", "")).unwrap();
    let id = session.txn().id;
    std::mem::forget(session);
    let next = db.after_power_cut(1);
    let mut session = next.begin();
    session.insert("c", &row("", "", "")).unwrap();
    assert!(session.txn().id > id);
    session.commit();
    assert_eq!(next.begin().keys(), ["a", "c"]);
}

/// Killed again right after the opening that rolled a transaction back: its number was given then and must not be given
/// a second time.
#[test]
fn numbers_given_at_an_opening_never_come_back() {
    let db = Db::new();
    let mut open = db.begin();
    open.insert("a", &row("", "", "")).unwrap();
    db.parts.ctx.log.flush_to(db.parts.ctx.log.end_lsn()).unwrap();
    let next = db.after_power_cut(1);
    std::mem::forget(open);
    next.parts.ctx.log.flush_to(next.parts.ctx.log.end_lsn()).unwrap();
    let given_below = next.system.next_id();
    let last = next.after_power_cut(2);
    assert!(last.system.next_id() >= given_below, "{} after {given_below}", last.system.next_id());
}

/// Ids and numbers are below the durable limit, however many are assigned in a row, also for a caller that did not
/// request a raise before.
#[test]
fn no_id_is_above_the_durable_limit() {
    let db = Db::new();
    let system = &db.system;
    let limit = || crate::undo::read_directories(&db.parts.ctx, &db.parts.space).unwrap().2;
    let holders: Vec<Arc<crate::lock::Holder>> = (0..3).map(|_| Arc::default()).collect();
    for _ in 0..150_000 {
        let ids: Vec<_> = holders.iter().map(|holder| system.activate(holder, 0).unwrap()).collect();
        for id in ids {
            assert!(system.begin_commit(id, 0, false).unwrap() < system.limit_of_ids());
            system.deactivate(id, 0);
        }
    }
    assert!(system.limit_of_ids() <= limit() && system.next_id() <= limit(), "{} {}", system.next_id(), limit());
    assert!(system.next_id() > 900_000, "some steps of the limit");
}
