//! Keys sort as values do, decode to what was encoded, and damaged bytes are an error.

use super::super::row_layout::RowLayout;
use super::super::testing::{compare, refs, same, table_and_rows};
use super::*;
use proptest::prelude::*;
use std::cmp::Ordering;

fn layout(table: &TableDefinition) -> KeyLayout {
    KeyLayout::new(table, &(0..table.columns.len()).collect::<Vec<_>>())
}

fn key(table: &TableDefinition, row: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    layout(table).encode_values(table, &refs(row), &mut out).unwrap();
    out
}

proptest! {
    #[test]
    fn order_of_keys_is_order_of_values((table, rows) in table_and_rows(2)) {
        let mut columns = rows[0].iter().zip(&rows[1]).map(|(a, b)| compare(a, b));
        let by_value = columns.find(|order| order.is_ne()).unwrap_or(Ordering::Equal);
        prop_assert_eq!(key(&table, &rows[0]).cmp(&key(&table, &rows[1])), by_value);
    }

    #[test]
    fn keys_of_rows_are_keys_of_values((table, rows) in table_and_rows(1)) {
        let row_layout = RowLayout::new(&table);
        let mut bytes = Vec::new();
        row_layout.encode(&refs(&rows[0]), None, &mut bytes).unwrap();
        let mut from_row = Vec::new();
        let has_null = layout(&table).encode_row(RowRef::new(&row_layout, &bytes), &mut from_row);
        prop_assert_eq!(has_null, rows[0].contains(&Value::Null));
        prop_assert_eq!(from_row, key(&table, &rows[0]));
    }

    #[test]
    fn keys_decode((table, rows) in table_and_rows(1), tail in prop::collection::vec(any::<u8>(), 0..5)) {
        let mut bytes = key(&table, &rows[0]);
        let len = bytes.len();
        bytes.extend(tail);
        let (values, used) = layout(&table).decode(&bytes).unwrap();
        prop_assert_eq!(used, len);
        for (i, column) in table.columns.iter().enumerate() {
            prop_assert!(same(column.ty, values[i].as_ref(), rows[0][i].as_ref()));
        }
    }

    #[test]
    fn prefixes_are_ranges((table, rows) in table_and_rows(2), columns in 1usize..8) {
        let columns = columns.min(table.columns.len());
        let mut low = Vec::new();
        layout(&table).encode_values(&table, &refs(&rows[0][..columns]), &mut low).unwrap();
        let is_below = |key: &[u8]| successor(low.clone()).is_none_or(|high| key < high.as_slice());
        let inside = |key: &[u8]| key >= low.as_slice() && is_below(key);
        prop_assert!(inside(&key(&table, &rows[0])));
        let equal = rows[0][..columns].iter().zip(&rows[1]).all(|(a, b)| compare(a, b).is_eq());
        prop_assert_eq!(inside(&key(&table, &rows[1])), equal);
    }

    #[test]
    fn garbage_never_panics((table, _) in table_and_rows(1), bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = layout(&table).decode(&bytes);
    }

    #[test]
    fn differs_iff_key_differs((table, rows) in table_and_rows(2), pick in any::<bool>()) {
        let row_layout = RowLayout::new(&table);
        let mut encoded = [Vec::new(), Vec::new()];
        let second = if pick { 1 } else { 0 };
        row_layout.encode(&refs(&rows[0]), None, &mut encoded[0]).unwrap();
        row_layout.encode(&refs(&rows[second]), None, &mut encoded[1]).unwrap();
        let [old, new] = encoded.each_ref().map(|bytes| RowRef::new(&row_layout, bytes));
        prop_assert_eq!(layout(&table).differs(old, new), key(&table, &rows[0]) != key(&table, &rows[second]));
    }
}

fn text_table() -> TableDefinition {
    super::super::schema::Schema::new()
        .column("n", Type::U8)
        .column("name", Type::Text(4))
        .primary_key(&["n", "name"])
        .check("t")
        .unwrap()
}

#[test]
fn a_beginning_of_text_covers_what_begins_so() {
    let table = text_table();
    let mut low = Vec::new();
    layout(&table).encode_start(&table, &crate::values![7, "Sa"], &mut low).unwrap();
    for (name, inside) in [("Sa", true), ("San", true), ("Sb", false), ("S", false), ("Sa\u{0}", true)] {
        let found = key(&table, &[Value::UInt(7), Value::Text(name.to_string())]);
        assert_eq!(found.starts_with(&low), inside, "{name}");
    }
    let error = layout(&table).encode_start(&table, &crate::values![7], &mut low).unwrap_err();
    assert!(error.to_string().contains("column n"), "{error}");
}

#[test]
fn wrong_keys_are_named() {
    let table = text_table();
    let encode = |values: &[ValueRef<'_>]| {
        layout(&table).encode_full(&table, values, &mut Vec::new()).map_err(|e| e.to_string())
    };
    assert_eq!(encode(&crate::values![7]).unwrap_err(), "column n, name: 1 values given for a key of 2 columns");
    assert_eq!(encode(&crate::values![300, "x"]).unwrap_err(), "column n: 300 does not fit type u8");
    assert_eq!(encode(&crate::values![3, null]).unwrap_err(), "column name: NULL in a column that is never NULL");
    // A text longer than the column takes may be searched for; there is no such row.
    assert!(encode(&crate::values![3, "longer than four"]).is_ok());
}

#[test]
fn successor_of_the_last_prefix_is_none() {
    assert_eq!(successor(vec![1, 0xff, 0xff]), Some(vec![2]));
    assert_eq!(successor(vec![0xff]), None);
    assert_eq!(successor(Vec::new()), None);
}
