//! Values between the engine's types and the server's.

use crate::store::{RowChanges, RowView};
use highwater::ValueRef;
use mysql::{Row, Value};

/// A row that the server sent.
#[derive(Debug)]
pub struct MysqlRow(pub(super) Row);

impl MysqlRow {
    fn value(&self, column: usize) -> &Value {
        self.0.as_ref(column).unwrap_or(&Value::NULL)
    }
}

/// A number as an integer of its smallest unit: "12.50" is 1250.
fn digits(text: &[u8]) -> i64 {
    let number = text.iter().filter(|c| c.is_ascii_digit());
    let unsigned = number.fold(0i64, |number, digit| number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')));
    if text.first() == Some(&b'-') { -unsigned } else { unsigned }
}

impl RowView for MysqlRow {
    fn u64(&self, column: usize) -> u64 {
        self.i64(column) as u64
    }

    fn i64(&self, column: usize) -> i64 {
        match self.value(column) {
            Value::Int(number) => *number,
            Value::UInt(number) => *number as i64,
            Value::Bytes(text) => digits(text),
            _ => 0,
        }
    }

    fn str(&self, column: usize) -> &str {
        match self.value(column) {
            Value::Bytes(text) => std::str::from_utf8(text).unwrap_or(""),
            _ => "",
        }
    }

    fn unscaled(&self, column: usize) -> i64 {
        self.i64(column)
    }

    fn is_null(&self, column: usize) -> bool {
        *self.value(column) == Value::NULL
    }
}

/// New values of a row, by column.
#[derive(Debug, Default)]
pub struct MysqlChanges {
    pub(super) set: Vec<(usize, Value)>,
}

impl RowChanges for MysqlChanges {
    /// Keeps the changes in the order of the columns, so that the same columns always use the same statement.
    fn put(&mut self, column: usize, value: ValueRef<'_>) {
        let value = to_value(value);
        match self.set.binary_search_by_key(&column, |(column, _)| *column) {
            Ok(at) => self.set[at].1 = value,
            Err(at) => self.set.insert(at, (column, value)),
        }
    }
}

/// The value as a parameter of a statement.
pub(super) fn to_value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::NULL,
        ValueRef::Int(number) => Value::Int(number),
        ValueRef::UInt(number) => Value::UInt(number),
        ValueRef::F64(number) => Value::Double(number),
        ValueRef::Decimal(number) => Value::Bytes(number.to_string().into_bytes()),
        ValueRef::Text(text) => Value::Bytes(text.as_bytes().to_vec()),
        ValueRef::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::DateTime(_) | ValueRef::Date(_) | ValueRef::Time(_) => Value::Bytes(value.to_string().into_bytes()),
        ValueRef::Bool(truth) => Value::UInt(truth.into()),
        ValueRef::Uuid(uuid) => Value::Bytes(uuid.as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_their_smallest_unit() {
        for (text, wanted) in [("12.50", 1250), ("-0.05", -5), ("0.1234", 1234), ("7", 7), ("-300000.00", -30_000_000)]
        {
            assert_eq!(digits(text.as_bytes()), wanted, "{text}");
        }
    }

    #[test]
    fn changes_are_sorted_and_the_last_wins() {
        let mut changes = MysqlChanges::default();
        changes.put(5, 1u64.into());
        changes.put(2, 2u64.into());
        changes.put(5, 3u64.into());
        assert_eq!(changes.set, [(2, Value::UInt(2)), (5, Value::UInt(3))]);
    }
}
