//! Tables of the model: their columns, indexes and values.

use crate::input::Input;
use crate::values::Key;
use highwater::{DateTime, Decimal, Schema, Type, Value};

/// A table.
pub struct Shape {
    /// Its schema.
    pub schema: Schema,
    /// Types of its columns, and whether they may be NULL.
    columns: Vec<(Type, bool)>,
    /// Name, columns, whether it is unique; the primary key first.
    keys: Vec<(&'static str, Vec<usize>, bool)>,
    /// Whether the first column is auto-increment.
    pub counts: bool,
}

/// An index.
#[derive(Clone, Copy)]
pub struct Index<'s> {
    pub name: &'static str,
    pub columns: &'s [usize],
    pub unique: bool,
}

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

impl Shape {
    /// One of three tables.
    pub fn choose(input: &mut Input<'_>) -> Shape {
        let (columns, keys, counts) = match input.byte() % 3 {
            0 => (
                vec![
                    (Type::U32, false),
                    (Type::U8, false),
                    (Type::I16, true),
                    (Type::Text(40), true),
                    (Type::Binary(9000), true),
                    (Type::Json(7000), true),
                ],
                vec![("PRIMARY", vec![0], true), ("by_b", vec![1], false), ("by_cd", vec![2, 3], true)],
                false,
            ),
            1 => (
                vec![
                    (Type::Text(30), false),
                    (Type::U8, false),
                    (Type::DateTime, true),
                    (Type::Binary(20), false),
                    (Type::Text(6000), false),
                    (Type::Binary(5000), true),
                ],
                vec![("PRIMARY", vec![0, 1], true), ("by_c", vec![2], false), ("by_d", vec![3], true)],
                false,
            ),
            _ => (
                vec![
                    (Type::U16, false),
                    (Type::Decimal(10, 2), true),
                    (Type::F64, false),
                    (Type::I64, false),
                    (Type::Text(200), true),
                ],
                vec![("PRIMARY", vec![0], true), ("by_cb", vec![2, 1], false), ("by_e", vec![4], false)],
                true,
            ),
        };
        let add = |schema: Schema, (name, (ty, nullable)): (&str, &(Type, bool))| match nullable {
            true => schema.nullable(name, *ty),
            false => schema.column(name, *ty),
        };
        let mut schema = NAMES.into_iter().zip(&columns).fold(Schema::new(), add);
        for (name, columns, unique) in &keys {
            let names: Vec<&str> = columns.iter().map(|column| NAMES[*column]).collect();
            schema = match (*name, unique) {
                ("PRIMARY", _) => schema.primary_key(&names),
                (name, true) => schema.unique_index(name, &names),
                (name, false) => schema.index(name, &names),
            };
        }
        let schema = if counts { schema.auto_increment("a") } else { schema };
        Shape { schema, columns, keys, counts }
    }

    /// The primary key and the other indexes.
    pub fn indexes(&self) -> Vec<Index<'_>> {
        self.keys.iter().map(|(name, columns, unique)| Index { name, columns, unique: *unique }).collect()
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// The key of a row.
    pub fn key(&self, row: &[Value]) -> Key {
        Key(self.keys[0].1.iter().map(|column| row[*column].clone()).collect())
    }

    /// A value of a column: few different ones, so that rows meet.
    pub fn value(&self, column: usize, input: &mut Input<'_>) -> Value {
        let (ty, nullable) = self.columns[column];
        let n = input.byte();
        if nullable && n.is_multiple_of(5) {
            return Value::Null;
        }
        let small = n >> 2;
        match ty {
            Type::U8 => Value::UInt(u64::from(small % 8)),
            Type::U16 | Type::U32 => Value::UInt(u64::from(small)),
            Type::I16 | Type::I64 => Value::Int(i64::from(small % 16) - 8),
            Type::F64 => {
                Value::F64([0.0, -0.0, 1.5, -1.5, f64::INFINITY, f64::NAN, 1e300, 2.0][usize::from(small % 8)])
            }
            Type::Decimal(..) => Value::Decimal(Decimal::new(i128::from(small) - 30, 2)),
            Type::DateTime => Value::DateTime(DateTime::from_unix_us(i64::from(small % 16) * 1_000_000 - 5)),
            Type::Text(max) => Value::Text(text(small, max, input)),
            Type::Json(max) => Value::Text(json(small, max, input)),
            Type::Binary(max) => Value::Bytes(text(small, max, input).into_bytes()),
            _ => Value::UInt(0),
        }
    }

    /// A whole row.
    pub fn row(&self, input: &mut Input<'_>) -> Vec<Value> {
        (0..self.len()).map(|column| self.value(column, input)).collect()
    }

    /// Whether the column may be NULL.
    pub fn is_text(&self, column: usize) -> bool {
        matches!(self.columns[column].0, Type::Text(_) | Type::Binary(_) | Type::Json(_))
    }
}

/// JSON, sometimes as long as the column allows.
fn json(small: u8, max: u32, input: &mut Input<'_>) -> String {
    let words = ["null", "[]", "{\"a\": [1]}", " 1 ", "\"\\u0000\"", "-1e5"];
    match small >= 48 {
        true => format!("\"{}\"", "x".repeat(usize::from(input.u16()) % (max as usize - 4))),
        false => words[usize::from(small) % words.len()].to_string(),
    }
}

/// A text that begins as few others do, with bytes that keys escape; sometimes as long as the column allows.
fn text(small: u8, max: u32, input: &mut Input<'_>) -> String {
    let letters = ["", "a", "ab", "abc", "b", "\0", "\u{1}", "a\0"];
    let mut text = letters[usize::from(small % 8)].to_string();
    if small >= 48 && max > 100 {
        text.push_str(&"x".repeat(usize::from(input.u16()) % (max as usize - 4)));
    }
    text
}
