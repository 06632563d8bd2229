//! Keys sort as values do, decode to what was encoded, and damaged bytes are an error.

use super::super::row_layout::RowLayout;
use super::super::testing::{compare, refs, same, table_and_rows};
use super::*;
use crate::config::ASCII_CI;
use proptest::prelude::*;
use std::cmp::Ordering;

fn layout(table: &TableDefinition) -> KeyLayout {
    let columns: Vec<_> = (0..table.columns.len()).map(IndexColumn::from).collect();
    KeyLayout::new(table, &columns, &Collations::default())
}

/// A layout whose columns are as `how` says: bit 0 descending, bit 1 a prefix of a few bytes, bit 2 a collation.
fn mixed(table: &mut TableDefinition, how: &[u8]) -> KeyLayout {
    let mut columns = Vec::new();
    for (i, how) in how.iter().enumerate().take(table.columns.len()) {
        let Column { ty, collation, .. } = &mut table.columns[i];
        if matches!(ty, Type::Text(_)) && how & 4 != 0 {
            *collation = Some(ASCII_CI.to_string());
        }
        let prefix_bytes = (ty.fixed_bytes().is_none() && how & 2 != 0).then_some(1 + u16::from(how >> 3) % 4);
        columns.push(IndexColumn { column: i, descending: how & 1 != 0, prefix_bytes });
    }
    KeyLayout::new(table, &columns, &Collations::default())
}

/// What a key compares of a value, and the order in which it does.
fn compare_parts(part: &KeyPart, a: &Value, b: &Value) -> Ordering {
    let shape = |value: &Value| match value {
        Value::Text(text) => {
            let text = if part.collation.is_some() { text.to_ascii_lowercase() } else { text.clone() };
            Value::Bytes(cut(part, text.as_bytes()))
        }
        Value::Bytes(bytes) => Value::Bytes(cut(part, bytes)),
        other => other.clone(),
    };
    let order = compare(&shape(a), &shape(b));
    if part.descending { order.reverse() } else { order }
}

fn cut(part: &KeyPart, bytes: &[u8]) -> Vec<u8> {
    bytes[..bytes.len().min(part.prefix_bytes.map_or(usize::MAX, usize::from))].to_vec()
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
    fn order_of_mixed_keys_is_order_of_what_they_compare(
        (mut table, rows) in table_and_rows(2),
        how in prop::collection::vec(any::<u8>(), 8),
    ) {
        let layout = mixed(&mut table, &how);
        let encode = |row: &[Value]| {
            let mut out = Vec::new();
            layout.encode_values(&table, &refs(row), &mut out).map(|()| out)
        };
        let keys = [encode(&rows[0]).unwrap(), encode(&rows[1]).unwrap()];
        let parts = layout.parts().iter().enumerate();
        let mut orders = parts.map(|(i, part)| compare_parts(part, &rows[0][i], &rows[1][i]));
        prop_assert_eq!(keys[0].cmp(&keys[1]), orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal));
        // The key of the stored row is the same, it is as long as it may be, and has what it can.
        let row_layout = RowLayout::new(&table);
        let (mut bytes, mut from_row) = (Vec::new(), Vec::new());
        row_layout.encode(&refs(&rows[0]), None, &mut bytes).unwrap();
        layout.encode_row(RowRef::new(&row_layout, &bytes), &mut from_row).unwrap();
        prop_assert_eq!(&from_row, &keys[0]);
        prop_assert!(from_row.len() <= layout.max_bytes());
        let (values, used) = layout.decode(&[&from_row[..], &[0xff]].concat()).unwrap();
        prop_assert_eq!(used, from_row.len());
        for (i, part) in layout.parts().iter().enumerate().filter(|(_, part)| part.is_reversible()) {
            prop_assert!(same(part.ty, values[i].as_ref(), rows[0][i].as_ref()));
        }
        (0..from_row.len()).for_each(|len| assert!(layout.decode(&from_row[..len]).is_err()));
    }

    #[test]
    fn keys_of_rows_are_keys_of_values((table, rows) in table_and_rows(1)) {
        let row_layout = RowLayout::new(&table);
        let mut bytes = Vec::new();
        row_layout.encode(&refs(&rows[0]), None, &mut bytes).unwrap();
        let mut from_row = Vec::new();
        let has_null = layout(&table).encode_row(RowRef::new(&row_layout, &bytes), &mut from_row).unwrap();
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
