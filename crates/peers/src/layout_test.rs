//! Rows and entries read back, and keys order as their values do.

use super::*;
use highwater::values;
use highwater_bench::store::{Column, IndexSpec, TableSpec, column, nullable};

const COLUMNS: &[Column] = &[
    column("a", Type::U32),
    column("name", Type::Text(20)),
    column("n", Type::I32),
    nullable("note", Type::Text(20)),
    nullable("x", Type::I64),
];
const INDEXES: &[IndexSpec] =
    &[IndexSpec { name: "by_n", columns: &["n"] }, IndexSpec { name: "by_name", columns: &["name", "note"] }];

fn layout() -> Layout {
    let spec = TableSpec {
        name: "t".into(),
        columns: COLUMNS,
        auto_increment: None,
        primary_key: &["a", "name"],
        indexes: INDEXES,
    };
    Definition::from(&spec).layout().unwrap()
}

fn encoded(layout: &Layout, row: &[ValueRef<'_>]) -> (Vec<u8>, Vec<u8>) {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    layout.push_primary(row, &mut key).unwrap();
    layout.push_value(row, &mut value).unwrap();
    (key, value)
}

#[test]
fn a_row_reads_back_and_changes() {
    let layout = layout();
    let (key, mut value) = encoded(&layout, &values![7, "Ada", -5, "first", null]);
    let row = RowBytes { layout: &layout, key: &key, value: &value };
    assert_eq!((row.number(0), row.bytes(1), row.number(2), row.bytes(3)), (7, &b"Ada"[..], -5, &b"first"[..]));
    assert!(row.is_null(4) && !row.is_null(3) && !row.is_null(0));
    layout.change(3, "a longer one".into(), &mut value).unwrap();
    layout.change(4, 1i64.into(), &mut value).unwrap();
    layout.change(2, 6.into(), &mut value).unwrap();
    let row = RowBytes { layout: &layout, key: &key, value: &value };
    assert_eq!((row.number(2), row.bytes(3), row.number(4), row.is_null(4)), (6, &b"a longer one"[..], 1, false));
    layout.change(3, ValueRef::Null, &mut value).unwrap();
    assert!(RowBytes { layout: &layout, key: &key, value: &value }.is_null(3));
    assert!(layout.change(0, 1.into(), &mut value).is_err() && layout.change(2, "x".into(), &mut value).is_err());
}

#[test]
fn keys_order_as_values_do() {
    let layout = layout();
    let key = |a: u32, name: &str| encoded(&layout, &values![a, name, 0, null, null]).0;
    let ordered = [key(1, ""), key(1, "a"), key(1, "ab"), key(1, "b"), key(2, ""), key(300, "a")];
    assert!(ordered.is_sorted() && ordered.windows(2).all(|pair| pair[0] != pair[1]));
    let entry = |n: i32| {
        let (key, value) = encoded(&layout, &values![1, "a", n, null, null]);
        let mut entry = Vec::new();
        layout.push_entry(0, &RowBytes { layout: &layout, key: &key, value: &value }, &mut entry);
        entry
    };
    assert!([i32::MIN, -1, 0, 1, 256, i32::MAX].map(entry).is_sorted());
}

#[test]
fn an_entry_holds_the_primary_key_once() {
    let layout = layout();
    let (key, value) = encoded(&layout, &values![7, "Ada", -5, "first", null]);
    let row = RowBytes { layout: &layout, key: &key, value: &value };
    for (index, bytes) in [(0, 4 + 4 + 4), (1, 4 + 7 + 4)] {
        let (mut entry, mut primary) = (Vec::new(), Vec::new());
        layout.push_entry(index, &row, &mut entry);
        layout.push_primary_of(index, &entry, &mut primary);
        assert_eq!((entry.len(), &primary), (bytes, &key));
    }
}

#[test]
fn what_no_key_can_hold_is_refused() {
    let (layout, mut key) = (layout(), Vec::new());
    assert!(layout.push_primary(&values![7, "a\0b", -5, null, null], &mut key).is_err());
    assert!(layout.push_value(&values![7, "a", null, null, null], &mut key).is_err(), "n may not be NULL");
}
