//! Multi-row INSERT statements, for loads.

use super::sql::{name, names};
use super::table::MysqlTable;
use highwater::ValueRef;
use std::fmt::Write;

/// Length at which a statement is sent; the server accepts 64 MiB.
const FULL_BYTES: usize = 1 << 20;

/// Collected rows by table, in the order of the tables' first rows.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    statements: Vec<(u64, String)>,
}

impl Bulk {
    /// Adds a row; returns a full statement, which the caller runs now.
    pub(super) fn add(&mut self, table: &MysqlTable, row: &[ValueRef<'_>]) -> Option<String> {
        let at = match self.statements.iter().position(|(id, _)| *id == table.id) {
            Some(at) => at,
            None => {
                self.statements.push((table.id, String::new()));
                self.statements.len() - 1
            }
        };
        let text = &mut self.statements[at].1;
        if text.is_empty() {
            let columns = names(table.columns.iter().map(String::as_str));
            let _ = write!(text, "INSERT INTO {} ({columns}) VALUES ", name(&table.name));
        } else {
            text.push(',');
        }
        push_row(text, row);
        (text.len() >= FULL_BYTES).then(|| std::mem::take(text))
    }

    /// Takes the statements for all collected rows.
    pub(super) fn take(&mut self) -> impl Iterator<Item = String> + use<> {
        std::mem::take(&mut self.statements).into_iter().map(|(_, text)| text).filter(|text| !text.is_empty())
    }
}

fn push_row(text: &mut String, row: &[ValueRef<'_>]) {
    text.push('(');
    for (n, value) in row.iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        push_literal(text, *value);
    }
    text.push(')');
}

/// Appends a value as an SQL literal. Writing to a String cannot fail.
fn push_literal(text: &mut String, value: ValueRef<'_>) {
    let _ = match value {
        ValueRef::Null => write!(text, "NULL"),
        ValueRef::Int(number) => write!(text, "{number}"),
        ValueRef::UInt(number) => write!(text, "{number}"),
        ValueRef::F64(number) => write!(text, "{number:e}"),
        ValueRef::Decimal(number) => write!(text, "{number}"),
        ValueRef::DateTime(_) | ValueRef::Date(_) | ValueRef::Time(_) => write!(text, "'{value}'"),
        ValueRef::Bool(truth) => write!(text, "{}", u8::from(truth)),
        ValueRef::Uuid(uuid) => {
            text.push_str("x'");
            uuid.as_bytes().iter().try_for_each(|byte| write!(text, "{byte:02x}")).and_then(|()| write!(text, "'"))
        }
        ValueRef::Text(value) => return push_quoted(text, value),
        ValueRef::Bytes(bytes) => {
            text.push_str("x'");
            bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}")).and_then(|()| write!(text, "'"))
        }
    };
}

fn push_quoted(text: &mut String, value: &str) {
    text.push('\'');
    for c in value.chars() {
        match c {
            '\'' | '\\' => text.extend(['\\', c]),
            '\0' => text.push_str("\\0"),
            c => text.push(c),
        }
    }
    text.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater::{DateTime, Decimal};

    #[test]
    fn literals_are_the_servers() {
        let literal = |value: ValueRef<'_>| {
            let mut text = String::new();
            push_literal(&mut text, value);
            text
        };
        assert_eq!(literal(ValueRef::Null), "NULL");
        assert_eq!(literal(ValueRef::Int(-5)), "-5");
        assert_eq!(literal(ValueRef::Decimal(Decimal::new(-1250, 2))), "-12.50");
        assert_eq!(literal(ValueRef::Text("it's a \\ \0")), "'it\\'s a \\\\ \\0'");
        assert_eq!(literal(ValueRef::Bytes(&[0, 255])), "x'00ff'");
        assert_eq!(literal(ValueRef::DateTime(DateTime::from_unix_us(1_500_000))), "'1970-01-01T00:00:01.5'");
    }
}
