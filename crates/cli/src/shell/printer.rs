//! Rows as a table, CSV or JSON.
//!
//! Rules
//! 1. CSV is in the format of `import` (`csv_field.rs`), with the empty text for NULL; JSON is an object in each line,
//!    as `import --format jsonl` reads it.
//! 2. A table is as wide as its first [`MEASURED`] rows; later rows are written as they come. Control characters are
//!    shown escaped, and long values are cut, which `…` shows; CSV and JSON have every value whole.

use crate::csv_field::write_field;
use clap::ValueEnum;
use highwater::ValueRef;
use std::io::{Result, Write};
use unicode_width::UnicodeWidthStr;

/// Rows of a table that are measured before the first one is written.
const MEASURED: usize = 1000;
/// Widest column of a table.
const MAX_WIDTH: usize = 60;

/// The format of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Columns below each other
    #[default]
    Table,
    /// CSV with the columns' names
    Csv,
    /// A JSON object in each line
    Json,
}

/// Rows on their way out.
pub(crate) struct Printer<'w> {
    form: Form,
    names: Vec<String>,
    out: &'w mut dyn Write,
    /// Rows that wait to be measured, and whether each cell is a number; `None` once the widths are known.
    waiting: Option<Vec<Vec<(String, bool)>>>,
    widths: Vec<usize>,
    field: String,
}

impl<'w> Printer<'w> {
    /// Begins rows with these columns.
    ///
    /// # Errors
    /// Errors of the output.
    pub(crate) fn begin(form: Form, names: Vec<String>, out: &'w mut dyn Write) -> Result<Printer<'w>> {
        let widths = names.iter().map(|name| name.width()).collect();
        let mut printer = Printer { form, names, out, waiting: Some(Vec::new()), widths, field: String::new() };
        if form == Form::Csv {
            let names = printer.names.clone();
            printer.csv(names.iter().map(|name| ValueRef::Text(name)))?;
        }
        Ok(printer)
    }

    /// Writes a row.
    ///
    /// # Errors
    /// Errors of the output.
    pub(crate) fn row<'v>(&mut self, values: impl Iterator<Item = ValueRef<'v>>) -> Result<()> {
        match self.form {
            Form::Csv => self.csv(values),
            Form::Json => self.json(values),
            Form::Table => {
                let cells: Vec<(String, bool)> = values.map(cell).collect();
                match &mut self.waiting {
                    Some(waiting) if waiting.len() < MEASURED => waiting.push(cells),
                    _ => {
                        self.measure()?;
                        self.line(&cells)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// The end.
    ///
    /// # Errors
    /// Errors of the output.
    pub(crate) fn end(mut self) -> Result<()> {
        if self.form == Form::Table {
            self.measure()?;
        }
        self.out.flush()
    }

    /// Writes the names and the rows that waited.
    fn measure(&mut self) -> Result<()> {
        let Some(rows) = self.waiting.take() else { return Ok(()) };
        for row in &rows {
            for (width, (text, _)) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(text.width());
            }
        }
        let names: Vec<(String, bool)> = self.names.iter().map(|name| (name.clone(), false)).collect();
        let rules: Vec<(String, bool)> = self.widths.iter().map(|width| ("-".repeat(*width), false)).collect();
        self.line(&names)?;
        self.line(&rules)?;
        rows.iter().try_for_each(|row| self.line(row))
    }

    fn line(&mut self, cells: &[(String, bool)]) -> Result<()> {
        let mut line = String::new();
        for ((text, is_number), width) in cells.iter().zip(&self.widths) {
            let blanks = " ".repeat(width.saturating_sub(text.width()));
            if *is_number {
                line.push_str(&blanks);
            }
            line.push_str(text);
            if !*is_number {
                line.push_str(&blanks);
            }
            line.push_str("  ");
        }
        writeln!(self.out, "{}", line.trim_end())
    }

    fn csv<'v>(&mut self, values: impl Iterator<Item = ValueRef<'v>>) -> Result<()> {
        for (column, value) in values.enumerate() {
            write_field(value, "", &mut self.field);
            let comma = if column == 0 { "" } else { "," };
            match self.field.contains(['"', ',', '\n', '\r']) {
                true => write!(self.out, "{comma}\"{}\"", self.field.replace('"', "\"\""))?,
                false => write!(self.out, "{comma}{}", self.field)?,
            }
        }
        writeln!(self.out)
    }

    fn json<'v>(&mut self, values: impl Iterator<Item = ValueRef<'v>>) -> Result<()> {
        for (column, (name, value)) in self.names.iter().zip(values).enumerate() {
            let begin = if column == 0 { "{" } else { ", " };
            let value = json_value(value, &mut self.field);
            write!(self.out, "{begin}{}: {value}", json_text(name))?;
        }
        writeln!(self.out, "}}")
    }
}

/// A value as JSON; `field` is overwritten.
pub(crate) fn json_value(value: ValueRef<'_>, field: &mut String) -> String {
    match value {
        ValueRef::Null => "null".to_string(),
        ValueRef::Int(_) | ValueRef::UInt(_) | ValueRef::Decimal(_) | ValueRef::Bool(_) => value.to_string(),
        ValueRef::F64(number) if number.is_finite() => value.to_string(),
        other => {
            // No text is the NULL text, so that none gets a backslash.
            write_field(other, "\0", field);
            json_text(field)
        }
    }
}

pub(crate) fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value in a table, and whether it is a number.
fn cell(value: ValueRef<'_>) -> (String, bool) {
    let is_number = matches!(value, ValueRef::Int(_) | ValueRef::UInt(_) | ValueRef::Decimal(_) | ValueRef::F64(_));
    if value.is_null() {
        return ("NULL".to_string(), false);
    }
    let mut text = String::new();
    write_field(value, "\0", &mut text);
    let mut shown = String::new();
    for character in text.chars() {
        match character.is_control() {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
        if shown.width() > MAX_WIDTH {
            while shown.width() >= MAX_WIDTH {
                shown.pop();
            }
            shown.push('…');
            break;
        }
    }
    (shown, is_number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater::{Value, values};

    fn printed(form: Form, rows: &[&[Value]]) -> String {
        let mut out = Vec::new();
        let mut printer = Printer::begin(form, vec!["id".into(), "name".into()], &mut out).unwrap();
        rows.iter().for_each(|row| printer.row(row.iter().map(Value::as_ref)).unwrap());
        printer.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_form() {
        let values = |id: i64, name: ValueRef<'_>| values![id, name].map(|value| value.to_value()).to_vec();
        let rows = [
            values(-7, "Åre, \"x\"".into()),
            values(100, "日本\n".into()),
            values(3, ValueRef::Null),
            values(4, "".into()),
        ];
        let rows: Vec<&[Value]> = rows.iter().map(|row| &row[..]).collect();
        let table = "id   name\n---  --------\n -7  Åre, \"x\"\n100  日本\\n\n  3  NULL\n  4\n";
        assert_eq!(printed(Form::Table, &rows), table);
        assert_eq!(printed(Form::Csv, &rows), "id,name\n-7,\"Åre, \"\"x\"\"\"\n100,\"日本\n\"\n3,\n4,\\\n");
        let json = "{\"id\": -7, \"name\": \"Åre, \\\"x\\\"\"}\n{\"id\": 100, \"name\": \"日本\\n\"}\n\
                    {\"id\": 3, \"name\": null}\n{\"id\": 4, \"name\": \"\"}\n";
        assert_eq!(printed(Form::Json, &rows), json);
        assert_eq!(printed(Form::Table, &[]), "id  name\n--  ----\n");
        let long = values(1, (&*"x".repeat(500)).into());
        assert!(printed(Form::Table, &[&long]).lines().all(|line| line.width() <= 66));
        let many: Vec<&[Value]> = std::iter::repeat_n(&rows[..], 600).flatten().copied().collect();
        assert_eq!(printed(Form::Table, &many).lines().count(), 2402);
    }
}
