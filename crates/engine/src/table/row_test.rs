//! Rows decode to what was encoded, changes change what they name, and damaged bytes are read without panic.

use super::super::definition::TableDefinition;
use super::super::owned_row::Row;
use super::super::schema::Schema;
use super::super::testing::{refs, same, table_and_rows};
use super::super::value::Value;
use super::*;
use crate::error::Error;
use crate::table::Changes;
use crate::txn::MAX_ROW_BYTES;
use crate::values;
use proptest::prelude::*;
use std::sync::Arc;

fn encode(layout: &RowLayout, row: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    layout.encode(&refs(row), None, &mut out).unwrap();
    out
}

proptest! {
    #[test]
    fn rows_round_trip((table, rows) in table_and_rows(1)) {
        let layout = RowLayout::new(&table);
        let bytes = encode(&layout, &rows[0]);
        let row = RowRef::new(&layout, &bytes);
        row.verify().unwrap();
        for (i, column) in table.columns.iter().enumerate() {
            prop_assert!(same(column.ty, row.get(i), rows[0][i].as_ref()));
            prop_assert_eq!(row.is_null(i), rows[0][i] == Value::Null);
        }
    }

    #[test]
    fn changes_equal_encoding_anew(
        (table, rows) in table_and_rows(3),
        picks in prop::collection::vec((0usize..8, 1usize..3), 0..6),
    ) {
        let layout = RowLayout::new(&table);
        let mut expected = rows[0].clone();
        let mut changes = Changes::new(&layout);
        for (column, row) in picks {
            let column = column % table.columns.len();
            expected[column] = rows[row][column].clone();
            changes.put(column, &rows[row][column]);
        }
        prop_assert!(changes.take_error().is_none());
        let mut out = Vec::new();
        layout.rebuild(&encode(&layout, &rows[0]), &changes, &mut out).unwrap();
        prop_assert_eq!(out, encode(&layout, &expected));
    }

    #[test]
    fn garbage_never_panics((table, rows) in table_and_rows(1), bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let layout = RowLayout::new(&table);
        let row = RowRef::new(&layout, &bytes);
        let _ = row.verify();
        let _ = format!("{row:?}");
        let mut changes = Changes::new(&layout);
        changes.put(0, &rows[0][0]);
        let mut out = Vec::new();
        if layout.rebuild(&bytes, &changes, &mut out).is_ok() {
            prop_assert!(same(table.columns[0].ty, RowRef::new(&layout, &out).get(0), rows[0][0].as_ref()));
        }
    }

    #[test]
    fn a_damaged_row_reads_without_panic(
        (table, rows) in table_and_rows(1),
        at in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        flip in 1u8..,
    ) {
        let layout = RowLayout::new(&table);
        let mut bytes = encode(&layout, &rows[0]);
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            bytes.truncate(cut.index(bytes.len()) + 1);
        }
        let row = RowRef::new(&layout, &bytes);
        let _ = row.verify();
        let _ = row.values().count();
    }
}

fn small() -> (TableDefinition, RowLayout) {
    let table = Schema::new()
        .column("id", Type::U32)
        .column("delta", Type::I16)
        .nullable("price", Type::Decimal(9, 2))
        .nullable("note", Type::Text(5))
        .column("ratio", Type::F32)
        .primary_key(&["id"])
        .check("t")
        .unwrap();
    let layout = RowLayout::new(&table);
    (table, layout)
}

#[test]
fn typed_getters_read_their_columns() {
    let (_, layout) = small();
    let mut bytes = Vec::new();
    layout.encode(&values![7, -3, Decimal::new(1250, 2), "abc", 0.5], None, &mut bytes).unwrap();
    assert_eq!(bytes.len(), 1 + 1 + 4 + 2 + 8 + 4 + 2 + 3);
    let row = Row::of_bytes(&Arc::new(layout), bytes);
    assert_eq!((row.u64(0), row.i64(0), row.i64(1)), (7, 7, -3));
    assert_eq!(
        (row.decimal(2).to_string().as_str(), row.str(3), row.bytes(3), row.f64(4)),
        ("12.50", "abc", b"abc".as_slice(), 0.5)
    );
    assert_eq!(format!("{row:?}"), "{id: 7, delta: -3, price: 12.50, note: abc, ratio: 0.5}");
    assert_eq!(row, row.clone());
}

#[test]
fn null_reads_as_zero_and_empty() {
    let (_, layout) = small();
    let mut bytes = Vec::new();
    layout.encode(&values![7, -3, null, null, 0], None, &mut bytes).unwrap();
    let row = RowRef::new(&layout, &bytes);
    assert!(row.is_null(2) && row.is_null(3) && !row.is_null(0));
    assert_eq!((row.decimal(2), row.str(3), row.get(3)), (Decimal::from(0), "", ValueRef::Null));
}

#[test]
#[should_panic(expected = "column 3 (note) is read as an unsigned integer but has type text(5)")]
fn a_getter_of_another_type_panics_with_the_column() {
    let (_, layout) = small();
    RowRef::new(&layout, &[]).u64(3);
}

#[test]
fn bad_values_name_their_column() {
    let (_, layout) = small();
    let encode = |row: &[ValueRef<'_>]| layout.encode(row, None, &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(encode(&values![1, 2]), "column (row): 2 values given for 5 columns");
    assert_eq!(encode(&values![null, 2, null, null, 0]), "column id: NULL in a column that is never NULL");
    assert_eq!(encode(&values![1, 2, null, "longer", 0]), "column note: 6 bytes are longer than the 5 allowed");
    assert_eq!(encode(&values![1, 40000, null, null, 0]), "column delta: 40000 does not fit type i16");
    let mut changes = Changes::new(&layout);
    changes.put(1, 5);
    changes.put(9, 5);
    changes.put(0, ValueRef::Null);
    assert_eq!(changes.take_error().unwrap().to_string(), "column number 9: there is no such column");
}

#[test]
fn rows_beyond_the_limit_are_refused() {
    let max = super::super::types::MAX_VALUE_BYTES;
    let table =
        Schema::new().column("id", Type::U8).column("blob", Type::Binary(max)).primary_key(&["id"]).check("t").unwrap();
    let layout = RowLayout::new(&table);
    let blob = vec![1u8; max as usize];
    let error = layout.encode(&values![1, &blob], None, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, Error::RowTooLarge { bytes, limit_bytes: MAX_ROW_BYTES } if bytes > MAX_ROW_BYTES));
    assert!(layout.encode(&values![1, &blob[..8 << 20]], None, &mut Vec::new()).is_ok());
}

/// Such a row had the values of another one and not its bytes.
#[test]
fn a_null_bit_of_no_column_is_damage() {
    let schema = Schema::new().column("a", crate::Type::U8).nullable("b", crate::Type::U8).primary_key(&["a"]);
    let table = schema.check("t").unwrap();
    let layout = RowLayout::new(&table);
    let mut bytes = encode(&layout, &[Value::UInt(1), Value::UInt(2)]);
    RowRef::new(&layout, &bytes).verify().unwrap();
    bytes[1] |= 0x80;
    let error = RowRef::new(&layout, &bytes).verify().unwrap_err().to_string();
    assert!(error.contains("bits of no column"), "{error}");
}

/// Rule 2 of the layout: equal rows are equal bytes.
#[test]
fn a_null_text_with_zero_bytes_is_no_row() {
    let schema = Schema::new().column("id", Type::U8).nullable("text", Type::Text(8)).primary_key(&["id"]);
    let layout = RowLayout::new(&schema.check("t").unwrap());
    let mut bytes = encode(&layout, &[Value::UInt(1), Value::Null]);
    RowRef::new(&layout, &bytes).verify().unwrap();
    let end_at = bytes.len() - 2;
    bytes[end_at] = 2;
    bytes.extend([0, 0]);
    let error = RowRef::new(&layout, &bytes).verify().unwrap_err().to_string();
    assert!(error.contains("NULL with a value"), "{error}");
}
