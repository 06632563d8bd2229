//! Estimates, and numbers of tables.

use crate::support::{memory, memory_with, options, sound};
use crate::testing::{by_id, commit_all};
use highwater::{Database, Error, Options, Table, TableChange, Type, values};

const ROWS: u64 = 20_000;

/// id, every third number | town, one of 40 | mail, all different, in another order.
fn people(db: &Database) -> Table {
    let schema = by_id()
        .column("town", Type::U32)
        .column("mail", Type::Text(60))
        .index("by_town", &["town", "mail"])
        .index("by_mail", &["mail"]);
    let table = db.create_table("people", schema).unwrap();
    for first in (0..ROWS).step_by(1000) {
        commit_all(db, first..first + 1000, |txn, n| {
            let mail = format!("{:06}@example.net", n * 7919 % 1_000_003);
            txn.insert(&table, &values![3 * n, n * 31 % 40, mail.as_str()])
        });
    }
    table
}

#[test]
fn estimates_are_exact_in_a_page_and_near_beyond_it() {
    let db = memory_with(Options { buffer_pool_size: 16 << 20, log_file_size: 32 << 20, ..options() });
    let table = people(&db);
    let mut read = db.snapshot().unwrap();
    let mut worst = 1.0f64;
    for (from, rows) in [(0, ROWS), (0, 10), (30_000, 5000), (59_000, 300), (12_345, 1000), (100, 15_000)] {
        let (from, to) = ([from.into()], [(from + 3 * rows).into()]);
        let scan = |read: &mut highwater::ReadTxn| read.scan(&table).from(&from).to_exclusive(&to).count().unwrap();
        let (real, about) = (scan(&mut read), read.scan(&table).from(&from).to_exclusive(&to).estimate().unwrap());
        worst = worst.max(about as f64 / real as f64).max(real as f64 / about.max(1) as f64);
    }
    assert!(worst < 1.5, "{worst}");
    let town = [7u32.into()];
    let about = read.scan(&table).index("by_town").prefix(&town).estimate().unwrap();
    assert!((350..=700).contains(&about), "{about} of 500");
    assert_eq!(read.scan(&table).index("by_town").prefix(&[99u32.into()]).estimate().unwrap(), 0);
    assert_eq!(read.scan(&table).limit(3).estimate().unwrap(), 3);
    // Few rows are in one page.
    let (from, to) = ([300u64.into()], [330u64.into()]);
    let exact = read.scan(&table).from(&from).to_exclusive(&to).estimate().unwrap();
    assert!((9..=13).contains(&exact), "{exact}");
}

#[test]
fn a_table_is_analyzed_without_being_read() {
    let db = memory_with(Options { buffer_pool_size: 16 << 20, log_file_size: 32 << 20, ..options() });
    let table = people(&db);
    assert_eq!(table.statistics(), None);
    let read_before = db.stats().rows_read;
    let found = db.analyze("people").unwrap();
    assert_eq!(db.stats().rows_read, read_before);
    assert_eq!(table.statistics().unwrap(), found);
    let near = |about: u64, real: u64| (real * 2 / 3..=real * 3 / 2).contains(&about);
    assert!(near(found.rows, ROWS) && near(db.approximate_rows(&table).unwrap(), ROWS), "{found:?}");
    assert!(found.row_bytes > ROWS * 30 && found.row_bytes < ROWS * 120, "{found:?}");
    let [by_town, by_mail] = &found.indexes[..] else { panic!("{found:?}") };
    assert!((20..=400).contains(&by_town.distinct[0]) && near(by_town.distinct[1], ROWS), "{by_town:?}");
    assert!(near(by_mail.distinct[0], ROWS) && by_mail.name == "by_mail", "{by_mail:?}");
    assert!(matches!(db.analyze("nobody"), Err(Error::NoSuchTable { .. })));
    db.drop_table("people").unwrap();
    assert!(matches!(db.approximate_rows(&table), Err(Error::TableDropped { .. })));
}

#[test]
fn an_empty_table_has_no_rows() {
    let db = memory();
    let table = db.create_table("empty", by_id().index("again", &["id"])).unwrap();
    let found = db.analyze("empty").unwrap();
    assert_eq!((found.rows, &found.indexes[0].distinct[..]), (0, &[0][..]));
    assert_eq!(db.snapshot().unwrap().scan(&table).estimate().unwrap(), 0);
}

/// The numbers of an index stay under its new name, and go with it.
#[test]
fn what_was_found_survives_reopenings_and_renames() {
    let db = memory();
    let schema = by_id().column("a", Type::U64).column("b", Type::U64);
    let table = db.create_table("t", schema.index("by_a", &["a"]).index("by_b", &["b", "a"]));
    let table = table.unwrap();
    commit_all(&db, 0..500, |txn, n| txn.insert(&table, &values![n, n % 7, n % 90]));
    let found = db.analyze("t").unwrap();
    db.alter_table("t", &[TableChange::rename_index("by_b", "b_first"), TableChange::drop_column("x")]).unwrap_err();
    let table = db.alter_table("t", &[TableChange::rename_index("by_b", "b_first")]).unwrap();
    let mut right = found;
    right.indexes[1].name = "b_first".into();
    assert_eq!(table.statistics().as_ref(), Some(&right));
    db.flush_log().unwrap();
    let cut = db.after_power_cut(1);
    assert_eq!(cut.table("t").unwrap().statistics().as_ref(), Some(&right));
    cut.drop_index("t", "by_a").unwrap();
    cut.create_index("t", "by_a", &["a"], false).unwrap();
    right.indexes.remove(0);
    assert_eq!(cut.table("t").unwrap().statistics().as_ref(), Some(&right), "a new index has none");
    let truncated = cut.truncate_table("t").unwrap();
    assert_eq!(truncated.statistics(), None);
    sound(&cut);
}
