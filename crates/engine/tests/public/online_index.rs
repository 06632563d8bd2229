//! Indexes are built while writers run: the index has their changes, except those that are rolled back.

use crate::support::{all, await_purge, check_indexes, memory, memory_with, open, options, sound};
use crate::testing::{by_id, commit_all};
use highwater::{BuildProgress, Database, Error, Options, Result, Table, Type, ValueRef, WriteTxn, values};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ROWS: u64 = 1500;

/// id | x (the same number), nullable | n.
fn filled(db: &Database) -> Table {
    let schema = by_id().nullable("x", Type::U64).column("n", Type::U64);
    let table = db.create_table("t", schema.index("by_n", &["n"])).unwrap();
    commit_all(db, 0..ROWS, |txn, id| txn.insert(&table, &values![id, id, id % 7]));
    table
}

/// Where a build is when it calls.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    Reading,
    Writing,
    CatchingUp,
}

/// Builds by_x, and calls `meanwhile` once for each part of the build.
fn built(db: &Database, unique: bool, mut meanwhile: impl FnMut(At)) -> Result<()> {
    let mut last = None;
    db.create_index_with_progress("t", "by_x", &["x"], unique, &mut |progress: BuildProgress| {
        let at = match progress {
            BuildProgress { entries: 0, rows, .. } if rows < ROWS => At::Reading,
            BuildProgress { entries, .. } if entries < ROWS / 256 * 256 => At::Writing,
            _ => At::CatchingUp,
        };
        if last != Some(at) {
            last = Some(at);
            meanwhile(at);
        }
        Ok(())
    })
}

fn set_x(txn: &mut WriteTxn, table: &Table, id: u64, x: u64) {
    assert!(txn.update(table, &values![id], &[(1, ValueRef::UInt(x))]).unwrap());
}

/// Every kind of change, on rows from `id` on; `x` is a number that no row has.
fn change(txn: &mut WriteTxn, table: &Table, id: u64, x: u64) {
    set_x(txn, table, id, x);
    set_x(txn, table, id + 1, x + 1);
    set_x(txn, table, id + 1, id + 1);
    assert!(txn.delete(table, &values![id + 2]).unwrap());
    assert!(txn.delete(table, &values![id + 3]).unwrap());
    txn.insert(table, &values![id + 3, x + 3, 3]).unwrap();
    txn.insert(table, &values![x, x + 4, 4]).unwrap();
    txn.insert(table, &values![x + 1, x + 5, 4]).unwrap();
    assert!(txn.delete(table, &values![x + 1]).unwrap());
    assert!(txn.update(table, &values![id + 5], &[(0, ValueRef::UInt(x + 2))]).unwrap());
    assert!(txn.update(table, &values![id + 6], &[(1, ValueRef::Null)]).unwrap());
    assert!(txn.update(table, &values![id + 7], &[(2, ValueRef::UInt(99))]).unwrap());
}

/// Purge leaves nothing behind.
fn clean(db: &Database, table: &Table) {
    check_indexes(db, table);
    sound(db);
    await_purge(db);
    check_indexes(db, table);
    let report = db.check().unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.counts.entries_delete_marked, 0);
}

#[test]
fn what_writers_do_meanwhile_is_in_the_index_and_what_they_undo_is_not() {
    for unique in [false, true] {
        let db = memory();
        let table = filled(&db);
        let mut step = 0;
        let mut met = Vec::new();
        built(&db, unique, |at| {
            met.push(at);
            let (id, x) = (100 * step, 100_000 + 1000 * step);
            step += 1;
            db.transact(|txn| {
                change(txn, &table, id, x);
                Ok(())
            })
            .unwrap();
            let mut undone = db.begin().unwrap();
            change(&mut undone, &table, id + 20, x + 100);
            undone.rollback().unwrap();
            let mut partly = db.begin().unwrap();
            change(&mut partly, &table, id + 40, x + 200);
            let savepoint = partly.savepoint();
            change(&mut partly, &table, id + 60, x + 300);
            set_x(&mut partly, &table, id + 40, x + 350);
            partly.rollback_to(savepoint).unwrap();
            partly.commit().unwrap();
        })
        .unwrap();
        assert_eq!(met, [At::Reading, At::Writing, At::CatchingUp]);
        clean(&db, &table);
    }
}

/// Transactions that are open over the end of a build change the tree from then on; those that the build began before
/// have no part in it.
#[test]
fn transactions_outlive_a_build() {
    for commits in [false, true] {
        let db = memory();
        let table = filled(&db);
        let mut open = Vec::new();
        built(&db, false, |_| {
            let mut txn = db.begin().unwrap();
            change(&mut txn, &table, 100 * open.len() as u64, 100_000 * (1 + open.len() as u64));
            open.push(txn);
        })
        .unwrap();
        for (n, mut txn) in open.into_iter().enumerate() {
            change(&mut txn, &table, 500 + 100 * n as u64, 1_000_000 * (1 + n as u64));
            let end = if commits { WriteTxn::commit } else { WriteTxn::rollback };
            end(txn).unwrap();
        }
        clean(&db, &table);
    }
}

#[test]
fn old_snapshots_read_on_and_do_not_use_the_new_index() {
    let db = memory();
    let table = filled(&db);
    let mut snapshot = db.snapshot().unwrap();
    let before: Vec<_> = snapshot.scan(&table).iter().unwrap().map(|row| row.unwrap().to_values()).collect();
    built(&db, false, |at| {
        if at == At::Reading {
            db.transact(|txn| {
                change(txn, &table, 0, 100_000);
                Ok(())
            })
            .unwrap();
        }
        assert!(matches!(db.snapshot().unwrap().scan(&table).index("by_x").count(), Err(Error::NoSuchIndex { .. })));
        assert_eq!(table.definition().indexes.len(), 1);
    })
    .unwrap();
    let after: Vec<_> = snapshot.scan(&table).iter().unwrap().map(|row| row.unwrap().to_values()).collect();
    assert!(before == after);
    assert!(matches!(snapshot.scan(&table).index("by_x").count(), Err(Error::Usage(_))));
    drop(snapshot);
    clean(&db, &table);
}

#[test]
fn a_unique_index_is_refused_for_rows_that_are_equal_in_the_end() {
    // What happens meanwhile, and whether the build succeeds.
    type Case = (&'static str, fn(&Database, &Table), bool);
    let cases: [Case; 6] = [
        ("a writer inserts an equal row", |db, t| insert(db, t, 9000, 5), false),
        ("two writers insert equal rows", |db, t| (9000..9002).for_each(|id| insert(db, t, id, 7000)), false),
        ("an equal row comes and goes", |db, t| (insert(db, t, 9000, 5), delete(db, t, 9000)).0, true),
        (
            "an equal row is rolled back",
            |db, t| {
                let mut txn = db.begin().unwrap();
                txn.insert(t, &values![9000, 5, 0]).unwrap();
                txn.rollback().unwrap();
            },
            true,
        ),
        (
            "two rows change places",
            |db, t| {
                db.transact(|txn| Ok([(3, 70_000), (4, 3), (3, 4)].map(|(id, x)| set_x(txn, t, id, x))))
                    .map(drop)
                    .unwrap()
            },
            true,
        ),
        (
            "NULLs are equal to none",
            |db, t| commit_all(db, 9000..9009u64, |txn, id| txn.insert(t, &values![id, null, 0])),
            true,
        ),
    ];
    for (what, meanwhile, succeeds) in cases {
        for when in [At::Reading, At::CatchingUp] {
            let db = memory();
            let table = filled(&db);
            let done = built(&db, true, |at| {
                if at == when {
                    meanwhile(&db, &table);
                }
            });
            match done {
                Ok(()) => assert!(succeeds, "{what}, {when:?}"),
                Err(Error::DuplicateKey { index, .. }) => assert!(!succeeds && index == "by_x", "{what}, {when:?}"),
                Err(error) => panic!("{what}, {when:?}: {error}"),
            }
            assert_eq!(table.definition().indexes.len(), 1 + usize::from(succeeds), "{what}, {when:?}");
            clean(&db, &table);
        }
    }
}

fn insert(db: &Database, table: &Table, id: u64, x: u64) {
    db.transact(|txn| txn.insert(table, &values![id, x, 0]).map(drop)).unwrap();
}

fn delete(db: &Database, table: &Table, id: u64) {
    db.transact(|txn| txn.delete(table, &values![id]).map(drop)).unwrap();
}

/// What a rollback brings back counts: the end waits for it.
#[test]
fn the_end_of_a_unique_build_waits_for_writers() {
    let db = memory_with(Options { lock_wait_timeout_ms: 20_000, ..options() });
    let table = filled(&db);
    std::thread::scope(|scope| {
        let done = built(&db, true, |at| {
            if at != At::Reading {
                return;
            }
            let mut txn = db.begin().unwrap();
            assert!(txn.delete(&table, &values![5]).unwrap());
            insert(&db, &table, 9000, 5);
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(300));
                txn.rollback().unwrap();
            });
        });
        assert!(matches!(done, Err(Error::DuplicateKey { .. })), "{done:?}");
    });
    clean(&db, &table);
}

#[test]
fn a_build_that_is_stopped_leaves_nothing() {
    let db = memory();
    let table = filled(&db);
    for stop_at in 1..20 {
        let (mut calls, mut open) = (0, None);
        let stopped = db.create_index_with_progress("t", "by_x", &["x"], stop_at % 2 == 0, &mut |_| {
            calls += 1;
            if calls == 1 {
                let mut txn = db.begin()?;
                set_x(&mut txn, &table, stop_at, 50_000 + stop_at);
                open = Some(txn);
            }
            if calls == stop_at { Err(Error::Usage("enough".to_string())) } else { Ok(()) }
        });
        if calls < stop_at {
            // The open transaction keeps the end of a unique build waiting.
            assert!(matches!(stopped, Ok(()) | Err(Error::LockWaitTimeout)), "{stopped:?}");
        } else {
            assert!(matches!(stopped, Err(Error::Usage(_))), "{stopped:?}");
        }
        let mut txn = open.unwrap();
        set_x(&mut txn, &table, stop_at, stop_at);
        set_x(&mut txn, &table, stop_at + 100, 60_000 + stop_at);
        txn.commit().unwrap();
        if stopped.is_ok() {
            db.drop_index("t", "by_x").unwrap();
        }
        assert_eq!(table.definition().indexes.len(), 1);
    }
    clean(&db, &table);
    db.create_index("t", "by_x", &["x"], true).unwrap();
    clean(&db, &table);
}

/// A panic of the closure ends the build as an error of it does: writers do not note changes from then on.
#[test]
fn a_build_whose_closure_panics_leaves_nothing() {
    let db = memory();
    let table = filled(&db);
    let panicking = || {
        db.create_index_with_progress("t", "by_x", &["x"], false, &mut |progress| {
            if progress.entries > 0 { panic!("the closure's") } else { Ok(()) }
        })
    };
    let panic = catch_unwind(AssertUnwindSafe(panicking)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the closure's"));
    assert_eq!(table.definition().indexes.len(), 1);
    db.transact(|txn| {
        change(txn, &table, 0, 100_000);
        Ok(())
    })
    .unwrap();
    db.create_index("t", "by_x", &["x"], true).unwrap();
    clean(&db, &table);
}

#[test]
fn a_crash_finds_all_of_the_index_or_nothing() {
    for unique in [false, true] {
        let db = memory();
        let table = filled(&db);
        let mut cuts = Vec::new();
        let mut still_open = None;
        built(&db, unique, |_| {
            let n = cuts.len() as u64;
            db.transact(|txn| {
                change(txn, &table, 100 * n, 100_000 * (n + 1));
                Ok(())
            })
            .unwrap();
            let mut undone = db.begin().unwrap();
            change(&mut undone, &table, 100 * n + 50, 100_000 * (n + 1) + 500);
            db.flush_log().unwrap();
            cuts.extend((0..3).map(|seed| db.storage.cut(seed)));
            undone.rollback().unwrap();
        })
        .unwrap();
        let mut txn = db.begin().unwrap();
        change(&mut txn, &table, 1000, 900_000);
        db.flush_log().unwrap();
        still_open.replace(txn);
        let finished = db.storage.cut(7);
        for (cut, has_index) in cuts.into_iter().map(|cut| (cut, false)).chain([(finished, true)]) {
            let db = open(&cut);
            let table = db.table("t").unwrap();
            assert_eq!(table.definition().indexes.iter().any(|index| index.name == "by_x"), has_index);
            clean(&db, &table);
            if !has_index {
                db.create_index("t", "by_x", &["x"], unique).unwrap();
                clean(&db, &table);
            }
        }
    }
}

/// Writers with rollbacks, and one build after the other. Returns how long the longest statement took.
#[test]
fn builds_with_busy_writers() {
    let db = memory_with(Options { lock_wait_timeout_ms: 20_000, ..options() });
    let table = filled(&db);
    let (stop, during, longest_us) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let is_building = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..4u64 {
            let (db, table, stop, during, longest_us, is_building) =
                (&db, &table, &stop, &during, &longest_us, &is_building);
            scope.spawn(move || {
                let mut n = writer;
                while !stop.load(Ordering::Relaxed) {
                    n += 4;
                    let begin = Instant::now();
                    let written = write_randomly(db, table, n);
                    longest_us.fetch_max(begin.elapsed().as_micros() as u64, Ordering::Relaxed);
                    if let Err(error) = written {
                        let expected = matches!(error, Error::Deadlock | Error::DuplicateKey { .. });
                        assert!(expected, "{error}");
                    }
                    during.fetch_add(u64::from(is_building.load(Ordering::Relaxed)), Ordering::Relaxed);
                }
            });
        }
        for round in 0..6 {
            is_building.store(true, Ordering::Relaxed);
            let built = db.create_index("t", "by_x", &["x"], round % 3 == 2);
            is_building.store(false, Ordering::Relaxed);
            match built {
                Ok(()) => {
                    check_indexes(&db, &table);
                    sound(&db);
                    db.drop_index("t", "by_x").unwrap();
                }
                Err(error) => assert!(matches!(error, Error::DuplicateKey { .. }) && round % 3 == 2, "{error}"),
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    println!("{} transactions during builds, the longest took {longest_us:?} us", during.load(Ordering::Relaxed));
    assert!(during.load(Ordering::Relaxed) > 0);
    db.create_index("t", "by_x", &["x"], false).unwrap();
    clean(&db, &table);
    assert!(!all(&db, &table, "by_x").is_empty());
}

/// A transaction of a few statements, by a number; one in three is rolled back.
fn write_randomly(db: &Database, table: &Table, n: u64) -> Result<()> {
    let pick = |salt: u64| (n * 31 + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let mut txn = db.begin()?;
    for statement in 0..4 {
        let (id, x) = (pick(statement) % ROWS, 10_000 + pick(statement + 50));
        match pick(statement + 100) % 4 {
            0 => drop(txn.delete(table, &values![id])?),
            1 => drop(txn.update(table, &values![id], &[(2, ValueRef::UInt(x))])?),
            2 => drop(txn.update(table, &values![id], &[(1, ValueRef::UInt(x))])?),
            _ => match txn.insert(table, &values![id, x, 1]) {
                Err(Error::DuplicateKey { .. }) | Ok(_) => {}
                Err(error) => return Err(error),
            },
        }
    }
    if n.is_multiple_of(3) { txn.rollback() } else { txn.commit() }
}
