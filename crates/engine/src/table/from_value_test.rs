//! Every value reads as what it was made of, or is an error that says why.

use super::super::schema::Schema;
use super::super::testing::{refs, table_and_rows};
use super::super::types::Type;
use super::*;
use crate::values;
use proptest::prelude::*;

fn refusal<'a, T: FromValue<'a> + std::fmt::Debug>(value: impl Into<ValueRef<'a>>) -> String {
    T::from_value(value.into()).unwrap_err().to_string()
}

#[test]
fn integers_are_read_as_any_integer_that_holds_them() {
    assert_eq!(u8::from_value(255.into()).unwrap(), 255);
    assert_eq!(i64::from_value(u64::from(u32::MAX).into()).unwrap(), i64::from(u32::MAX));
    assert_eq!(i128::from_value(u64::MAX.into()).unwrap(), i128::from(u64::MAX));
    assert_eq!(refusal::<u8>(256), "256 does not fit u8");
    assert_eq!(refusal::<u64>(-1), "-1 does not fit u64");
    assert_eq!(refusal::<i64>(u64::MAX), "18446744073709551615 does not fit i64");
    assert_eq!(refusal::<i8>(-129), "-129 does not fit i8");
}

#[test]
fn floats_are_not_rounded() {
    assert_eq!(f32::from_value(0.5.into()).unwrap(), 0.5);
    assert!(f32::from_value(f64::NAN.into()).unwrap().is_nan());
    assert_eq!(f32::from_value(f64::INFINITY.into()).unwrap(), f32::INFINITY);
    assert_eq!(refusal::<f32>(0.1), "0.1 does not fit f32");
    assert!(refusal::<f32>(1e300).ends_with("does not fit f32"));
    assert_eq!(refusal::<f64>(1), "an integer is read as a floating point number");
}

#[test]
fn another_kind_and_null_are_refused() {
    assert_eq!(refusal::<u64>("7"), "text is read as u64");
    assert_eq!(refusal::<&str>(b"x".as_slice()), "bytes is read as text");
    assert_eq!(refusal::<bool>(1), "an integer is read as true or false");
    assert_eq!(refusal::<String>(None::<&str>), "NULL is read as text; an Option takes it");
    assert_eq!(refusal::<Option<u8>>(300), "300 does not fit u8");
    assert_eq!(refusal::<[u8; 4]>(b"abc".as_slice()), "3 bytes are read as 4");
    assert_eq!(<[u8; 3]>::from_value(b"abc".as_slice().into()).unwrap(), *b"abc");
    assert_eq!(Option::<u8>::from_value(ValueRef::Null).unwrap(), None);
}

#[test]
fn a_refusal_names_the_column_and_its_type() {
    let schema = Schema::new().column("id", Type::U64).nullable("name", Type::Text(20)).primary_key(&["id"]);
    let layout = RowLayout::new(&schema.check("people").unwrap());
    let mut bytes = Vec::new();
    layout.encode(&values![7u64, null], None, &mut bytes).unwrap();
    let row = RowRef::new(&layout, &bytes);
    assert_eq!((row.try_get::<i8>(0).unwrap(), row.try_get::<Option<&str>>("name").unwrap()), (7, None));
    let refusals = [
        (row.try_get::<bool>("id").unwrap_err(), "column id: an integer is read as true or false (its type is u64)"),
        (
            row.try_get::<&str>(1).unwrap_err(),
            "column name: NULL is read as text; an Option takes it (its type is text(20))",
        ),
        (row.try_get::<u64>("age").unwrap_err(), "column age: there is no such column"),
        (row.try_get::<u64>(2).unwrap_err(), "column number 2: there is no such column"),
    ];
    for (refusal, message) in refusals {
        assert_eq!(refusal.to_string(), message);
    }
}

proptest! {
    #[test]
    fn every_value_reads_as_it_is((table, rows) in table_and_rows(1)) {
        let layout = RowLayout::new(&table);
        let mut bytes = Vec::new();
        layout.encode(&refs(&rows[0]), None, &mut bytes).unwrap();
        let row = RowRef::new(&layout, &bytes);
        for (i, column) in table.columns.iter().enumerate() {
            let value = row.get(i);
            // NaN is no equal of itself.
            let same = |read: ValueRef<'_>| format!("{read:?}") == format!("{value:?}");
            prop_assert!(same(row.try_get::<ValueRef<'_>>(&column.name).unwrap()));
            prop_assert!(same(row.try_get::<Value>(i).unwrap().as_ref()));
            let typed = match column.ty {
                ty if ty.is_signed_integer() => row.try_get::<Option<i64>>(i).unwrap().into(),
                ty if ty.is_unsigned_integer() => row.try_get::<Option<u64>>(i).unwrap().into(),
                Type::F32 => row.try_get::<Option<f32>>(i).unwrap().into(),
                Type::F64 => row.try_get::<Option<f64>>(i).unwrap().into(),
                Type::Decimal(..) => row.try_get::<Option<Decimal>>(i).unwrap().into(),
                Type::Bool => row.try_get::<Option<bool>>(i).unwrap().into(),
                Type::Date => row.try_get::<Option<Date>>(i).unwrap().into(),
                Type::Time => row.try_get::<Option<Time>>(i).unwrap().into(),
                Type::DateTime => row.try_get::<Option<DateTime>>(i).unwrap().into(),
                Type::Uuid => row.try_get::<Option<Uuid>>(i).unwrap().into(),
                Type::Text(_) | Type::Json(_) => row.try_get::<Option<&str>>(i).unwrap().into(),
                _ => row.try_get::<Option<&[u8]>>(i).unwrap().into(),
            };
            prop_assert!(same(typed), "{typed:?} {value:?}");
        }
    }
}
