//! Scans that look at rows in place: the same rows as those of an iterator, and the engine is closed meanwhile.

use crate::support::{memory, open, sound};
use crate::testing::by_id;
use highwater::{
    Database, Error, Isolation, Result, RowRef, Scan, Schema, Table, TxnOptions, Type, ValueRef, WriteTxn, values,
};
use highwater_storage::{FaultKind, Faults, Operation, StorageSet};
use std::ops::ControlFlow::{Break, Continue};

/// id | group | body; rows of up to three pages.
fn bodies(db: &Database) -> Table {
    let schema = by_id().column("group", Type::U32).column("body", Type::Binary(10_000)).index("by_group", &["group"]);
    db.create_table("bodies", schema).unwrap()
}

fn put(txn: &mut WriteTxn, table: &Table, id: u64, group: u32, bytes: usize) {
    let body = vec![id as u8; bytes];
    if !txn.update(table, &values![id], &[(1, group.into()), (2, body.as_slice().into())]).unwrap() {
        txn.insert(table, &values![id, group, body.as_slice()]).unwrap();
    }
}

/// Changes rows at random: of many sizes, some inserted, some deleted.
fn change(txn: &mut WriteTxn, table: &Table, random: &mut fastrand::Rng, rows: u32) {
    for _ in 0..rows {
        let id = random.u64(..400);
        match random.u32(..8) {
            0 => drop(txn.delete(table, &values![id]).unwrap()),
            1 => put(txn, table, id, random.u32(..9), random.usize(1500..9000)),
            _ => put(txn, table, id, random.u32(..9), random.usize(..700)),
        }
    }
}

/// How to scan.
#[derive(Debug)]
struct How {
    index: &'static str,
    bounds: Option<[u64; 2]>,
    reverse: bool,
    limit: Option<usize>,
    locks: u8,
    /// Rows until the closure says stop.
    max: usize,
}

impl How {
    fn draw(random: &mut fastrand::Rng, may_lock: bool) -> How {
        let index = ["PRIMARY", "PRIMARY", "by_group"][random.usize(..3)];
        let bounds = (index == "PRIMARY" && random.bool()).then(|| [random.u64(..400), random.u64(..400)]);
        let limit = random.bool().then(|| random.usize(..60));
        let max = if random.bool() { random.usize(1..60) } else { usize::MAX };
        let locks = if may_lock { random.u8(..5) } else { 0 };
        How { index, bounds, reverse: random.bool(), limit, locks, max }
    }

    fn apply<'s, 'v>(&self, bounds: &'v [[ValueRef<'v>; 1]; 2], scan: Scan<'s, 'v>) -> Scan<'s, 'v> {
        let scan = scan.index(self.index).limit(self.limit.unwrap_or(usize::MAX));
        let scan = if self.bounds.is_some() { scan.from(&bounds[0]).to_exclusive(&bounds[1]) } else { scan };
        let scan = if self.reverse { scan.rev() } else { scan };
        match self.locks {
            3 => scan.for_share(),
            4 => scan.for_update(),
            _ => scan,
        }
    }

    /// Both ways through the same rows; `begin` begins a scan and hands it over.
    fn compare(&self, mut begin: impl FnMut(&mut dyn FnMut(Scan<'_, '_>))) -> usize {
        let [low, high] = self.bounds.unwrap_or_default();
        let bounds = [values![low], values![high]];
        let (mut iterated, mut visited, mut shown) = (Vec::new(), Vec::new(), 0);
        begin(&mut |scan| {
            let rows = self.apply(&bounds, scan).iter().unwrap().take(self.max);
            iterated = rows.map(|row| row.unwrap().to_values()).collect();
        });
        begin(&mut |scan| {
            let look = |row: RowRef<'_>| {
                visited.push(row.values().map(ValueRef::to_value).collect::<Vec<_>>());
                if visited.len() < self.max { Continue(()) } else { Break(()) }
            };
            shown = self.apply(&bounds, scan).visit(look).unwrap();
        });
        assert!(iterated == visited, "{self:?}: {} rows, visited {}", iterated.len(), visited.len());
        assert_eq!(shown, visited.len() as u64, "{self:?}");
        visited.len()
    }
}

/// Snapshots of every age, transactions of every level with changes of their own, and a database that was reopened.
#[test]
fn the_same_rows_are_visited_as_iterated_over() {
    let storage = StorageSet::memory();
    let mut random = fastrand::Rng::with_seed(15);
    let mut db = open(&storage);
    let mut table = bodies(&db);
    let mut seen = 0;
    for round in 0..30 {
        let mut old = db.snapshot().unwrap();
        let mut older = db.begin().unwrap();
        older.scan(&table).count().unwrap();
        old.scan(&table).count().unwrap();
        let mut writer = db.begin().unwrap();
        change(&mut writer, &table, &mut random, 60);
        if round % 3 > 0 {
            writer.commit().unwrap();
            writer = db.begin().unwrap();
            change(&mut writer, &table, &mut random, 10);
        }
        for _ in 0..10 {
            seen += How::draw(&mut random, false).compare(|look| look(old.scan(&table)));
            seen += How::draw(&mut random, false).compare(|look| look(older.scan(&table)));
            seen += How::draw(&mut random, true).compare(|look| look(writer.scan(&table)));
        }
        writer.commit().unwrap();
        for isolation in Isolation::ALL {
            let mut txn = db.begin_with(TxnOptions { isolation, ..TxnOptions::default() }).unwrap();
            change(&mut txn, &table, &mut random, 5);
            seen += How::draw(&mut random, true).compare(|look| look(txn.scan(&table)));
        }
        drop((old, older));
        if round % 10 == 9 {
            db.close().unwrap();
            db = open(&storage);
            table = db.table("bodies").unwrap();
        }
    }
    assert!(seen > 10_000, "{seen}");
    sound(&db);
}

fn is_refused<T>(result: Result<T>) -> bool {
    matches!(result.map(drop), Err(Error::Usage(what)) if what.contains("inside a closure"))
}

/// Whether the rows are in place, are copied from overflow pages, or come by an index.
#[test]
fn the_engine_is_closed_to_the_closure() {
    let db = memory();
    let table = bodies(&db);
    let mut txn = db.begin().unwrap();
    (0..9).for_each(|id| put(&mut txn, &table, id, 1, 100 + 2000 * (id as usize % 3)));
    txn.commit().unwrap();
    for index in ["PRIMARY", "by_group"] {
        let mut rows = 0;
        let (mut read, mut inside) = (db.snapshot().unwrap(), Some(db.begin().unwrap()));
        let mut other = read.same_snapshot().unwrap();
        put(inside.as_mut().unwrap(), &table, 100, 7, 10);
        let visited = read.scan(&table).index(index).visit(|row| {
            rows += 1;
            assert!(is_refused(db.begin()) && is_refused(db.snapshot()) && is_refused(other.get(&table, &values![1])));
            assert!(is_refused(other.prefetch(&table, [values![1]])) && is_refused(other.scan(&table).count()));
            if let Some(writer) = &mut inside {
                let row = values![200, 7, &b"more"[..]];
                assert!(is_refused(writer.insert(&table, &row)) && is_refused(writer.delete(&table, &values![1])));
                assert!(is_refused(writer.insert_many(&table, [row])));
            }
            assert!(is_refused(db.create_table("more", Schema::new().column("a", Type::U8).primary_key(&["a"]))));
            assert_eq!(row.u64(0), rows - 1);
            // It is rolled back when the visit is over.
            drop(inside.take());
            Continue(())
        });
        visited.unwrap();
        assert_eq!(rows, 9, "{index}");
        db.transact(|txn| txn.insert(&table, &values![100, 7, &b"free"[..]]).map(drop)).unwrap();
        db.transact(|txn| txn.delete(&table, &values![100]).map(drop)).unwrap();
    }
}

#[test]
fn an_error_of_the_closure_ends_the_visit_and_is_returned() {
    let db = memory();
    let table = bodies(&db);
    let mut txn = db.begin().unwrap();
    (0..9).for_each(|id| put(&mut txn, &table, id, 1, 100));
    let mut seen = 0;
    let ended: std::result::Result<u64, Box<dyn std::error::Error>> = txn.scan(&table).try_visit(|row| {
        seen += 1;
        if row.u64("id") == 4 {
            Err("of the test")?
        }
        Ok(Continue(()))
    });
    assert_eq!((ended.unwrap_err().to_string().as_str(), seen), ("of the test", 5));
    let mut stop_at =
        |last: u64| txn.scan(&table).visit(|row| if row.u64(0) == last { Break(()) } else { Continue(()) });
    assert_eq!((stop_at(4).unwrap(), stop_at(99).unwrap()), (5, 9));
    let missing = txn.scan(&table).index("none").try_visit(|_| Ok::<_, Box<dyn std::error::Error>>(Continue(())));
    assert!(missing.unwrap_err().downcast::<Error>().is_ok_and(|error| matches!(*error, Error::NoSuchIndex { .. })));
    put(&mut txn, &table, 4, 2, 300);
}

/// Nothing stays latched.
#[test]
fn a_closure_that_panics_ends_the_visit_alone() {
    let db = memory();
    let table = bodies(&db);
    let mut txn = db.begin().unwrap();
    (0..9).for_each(|id| put(&mut txn, &table, id, 1, 100));
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        txn.scan(&table).visit(|row| if row.u64(0) == 4 { panic!("of the test") } else { Continue(()) })
    }));
    assert!(ended.is_err());
    put(&mut txn, &table, 4, 2, 3000);
    assert_eq!(txn.scan(&table).count().unwrap(), 9);
    txn.commit().unwrap();
    sound(&db);
}

/// Pages in memory may hold changes of a commit whose redo could not be made durable.
#[test]
fn a_visit_ends_when_the_database_stops() {
    let faults = Faults::new();
    let storage = StorageSet::memory().map(|device| faults.wrap(device));
    let db = open(&storage);
    let table = bodies(&db);
    let mut txn = db.begin().unwrap();
    (0..100).for_each(|id| put(&mut txn, &table, id, 1, 500));
    txn.commit().unwrap();
    let mut read = db.snapshot().unwrap();
    let stop = || {
        faults.fail(Operation::Sync, 1, FaultKind::ErrorOnce);
        assert!(db.transact(|txn| txn.delete(&table, &values![99])).is_err());
    };
    let mut seen = 0;
    let ended = read.scan(&table).visit(|_| {
        // Another thread's: the engine is closed to this one. The next leaves are reached from the previous one.
        if seen == 30 {
            std::thread::scope(|scope| scope.spawn(stop).join()).unwrap();
        }
        seen += 1;
        Continue(())
    });
    assert!(matches!(ended, Err(Error::Poisoned(_))), "{ended:?}");
    assert!((31..40).contains(&seen), "{seen} rows: more than the leaf had");
}
