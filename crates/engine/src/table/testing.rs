//! Random types, values, tables and rows for this layer's property tests.

use super::date::{Date, Time};
use super::datetime::DateTime;
use super::decimal::{Decimal, power_of_ten};
use super::definition::{Column, TableDefinition};
use super::types::Type;
pub(crate) use super::value::compare;
use super::value::{Value, ValueRef};
use super::value_form::fit;
use proptest::prelude::*;

pub(crate) fn any_type() -> impl Strategy<Value = Type> {
    prop_oneof![
        Just(Type::I8),
        Just(Type::I16),
        Just(Type::I32),
        Just(Type::I64),
        Just(Type::U8),
        Just(Type::U16),
        Just(Type::U32),
        Just(Type::U64),
        Just(Type::F32),
        Just(Type::F64),
        Just(Type::DateTime),
        Just(Type::Bool),
        Just(Type::Date),
        Just(Type::Time),
        Just(Type::Uuid),
        Just(Type::I24),
        Just(Type::U24),
        Just(Type::Fixed(3)),
        Just(Type::Fixed(200)),
        Just(Type::Decimal(12, 2)),
        Just(Type::Decimal(38, 10)),
        Just(Type::Text(40)),
        Just(Type::Text(70_000)),
        Just(Type::Binary(40)),
        Just(Type::Json(300)),
    ]
}

/// Small numbers and extremes alike, so that ties and edges both happen.
fn any_integer() -> impl Strategy<Value = i128> {
    prop_oneof![
        -3i128..4,
        any::<i8>().prop_map(i128::from),
        any::<i32>().prop_map(i128::from),
        any::<i64>().prop_map(i128::from),
        any::<u64>().prop_map(i128::from)
    ]
}

fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        any::<f32>().prop_map(f64::from),
        Just(0.0),
        Just(-0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY)
    ]
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![prop::collection::vec(0u8..4, 0..6), prop::collection::vec(any::<u8>(), 0..40)]
}

fn any_json() -> impl Strategy<Value = String> {
    let text = "\\PC{0,10}".prop_map(|text| serde_json::Value::String(text).to_string());
    let number = any_integer().prop_map(|n| n.to_string());
    let plain = prop_oneof![Just("null".to_string()), Just(" true".to_string()), text.clone(), number].boxed();
    let list = prop::collection::vec(plain.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(" ,")));
    prop_oneof![plain.clone(), list, (text, plain).prop_map(|(name, value)| format!("{{{name}:{value}\n}}"))]
}

pub(crate) fn value_of(ty: Type, nullable: bool) -> BoxedStrategy<Value> {
    let value = match ty {
        Type::Text(_) => prop_oneof!["[\u{0}\u{1}\u{2}a]{0,6}", "\\PC{0,10}"].prop_map(Value::Text).boxed(),
        Type::Json(_) => any_json().prop_map(Value::Text).boxed(),
        Type::Fixed(len) => prop_oneof![
            prop::collection::vec(0u8..3, usize::from(len)),
            prop::collection::vec(any::<u8>(), usize::from(len))
        ]
        .prop_map(Value::Bytes)
        .boxed(),
        Type::Binary(_) => any_bytes().prop_map(Value::Bytes).boxed(),
        Type::DateTime => any::<i64>().prop_map(|us| Value::DateTime(DateTime::from_unix_us(us))).boxed(),
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Date => any::<i32>().prop_map(|days| Value::Date(Date::from_unix_days(days))).boxed(),
        Type::Time => {
            (0..=Time::MAX.us_since_midnight()).prop_map(|us| Value::Time(Time::from_us(us).unwrap())).boxed()
        }
        Type::Uuid => any::<[u8; 16]>().prop_map(|bytes| Value::Uuid(bytes.into())).boxed(),
        Type::F32 => any_float().prop_map(|x| Value::F64(f64::from(x as f32))).boxed(),
        Type::F64 => any_float().prop_map(Value::F64).boxed(),
        Type::Decimal(precision, scale) => {
            let limit = power_of_ten(precision).unwrap();
            (any_integer(), -limit + 1..limit, any::<bool>())
                .prop_map(move |(small, wide, pick)| {
                    Value::Decimal(Decimal::new(if pick { small % limit } else { wide }, scale))
                })
                .boxed()
        }
        integer => {
            let (low, high) = integer.integer_range().unwrap();
            let wrap = move |n: i128| low + (n - low).rem_euclid(high - low + 1);
            any_integer()
                .prop_map(move |n| match low {
                    0 => Value::UInt(wrap(n) as u64),
                    _ => Value::Int(wrap(n) as i64),
                })
                .boxed()
        }
    };
    if nullable { prop_oneof![1 => Just(Value::Null), 4 => value].boxed() } else { value }
}

/// A table of some columns, the first of which is the primary key.
pub(crate) fn any_table() -> impl Strategy<Value = TableDefinition> {
    prop::collection::vec((any_type(), any::<bool>()), 1..8).prop_map(|columns| TableDefinition {
        name: "t".to_string(),
        columns: columns
            .into_iter()
            .enumerate()
            .map(|(i, (ty, nullable))| Column {
                name: format!("c{i}"),
                ty: match ty {
                    // No key has JSON.
                    Type::Json(max) if i == 0 => Type::Text(max),
                    ty => ty,
                },
                nullable: nullable && i > 0,
                default: None,
                collation: None,
            })
            .collect(),
        primary_key: vec![0.into()],
        auto_increment: None,
        expires: None,
        long_keys: false,
        log_changes: false,
        indexes: Vec::new(),
        attachment: Vec::new(),
    })
}

pub(crate) fn row_of(table: &TableDefinition) -> BoxedStrategy<Vec<Value>> {
    table.columns.iter().map(|c| value_of(c.ty, c.nullable)).collect::<Vec<_>>().boxed()
}

/// `count` rows of one random table.
pub(crate) fn table_and_rows(count: usize) -> impl Strategy<Value = (TableDefinition, Vec<Vec<Value>>)> {
    any_table().prop_flat_map(move |table| {
        let rows = prop::collection::vec(row_of(&table), count);
        (Just(table), rows)
    })
}

pub(crate) fn refs(row: &[Value]) -> Vec<ValueRef<'_>> {
    row.iter().map(Value::as_ref).collect()
}

/// Whether two values of one type are kept as the same bytes.
pub(crate) fn same(ty: Type, a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    fit(ty, a).unwrap() == fit(ty, b).unwrap()
}
