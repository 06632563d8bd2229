//! What a cell shows of a row of data, and how figures are rounded.
//!
//! Rules
//! 1. A cell is a text with placeholders: `{tps}` is the field of the column `tps`; `{pages_read/transactions}` and
//!    `{redo_bytes/1000}` are quotients; `{tps/base}` and `{base/tps}` compare a field with that of the base row. `:2`
//!    at a placeholder's end asks for two decimals, `:text` for the field as it is.
//! 2. Without that, a figure has three significant digits or all those before the decimal point, and never more
//!    decimals than its field. A quotient by a number, a change of the unit, has no zeros after its last digit.
//! 3. A field of several runs, separated by blanks, shows two of them both, and more as their median with the least and
//!    the greatest. A field that is not a number shows as it is.
//! 4. An empty field shows as [`ABSENT`]; so does a cell of which every placeholder is empty.

use super::data::Row;
use super::template::display_name;

/// The text in place of a figure that was not measured.
pub(super) const ABSENT: &str = "–";

/// A cell of the template.
pub(super) struct Cell(Vec<Piece>);

enum Piece {
    Text(String),
    Value(Value),
}

/// A placeholder.
struct Value {
    name: String,
    divisor: Option<String>,
    decimals: Option<usize>,
    /// Not a figure, even if it reads as one: the name of a build.
    as_text: bool,
}

/// What a placeholder shows.
struct Shown {
    text: String,
    /// To compare with other cells.
    figure: Option<f64>,
}

impl Cell {
    /// Reads a cell.
    ///
    /// # Errors
    /// A brace that is not closed, decimals that are not a number.
    pub(super) fn parse(text: &str) -> Result<Cell, String> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let (inside, after) = after.split_once('}').ok_or_else(|| format!("{text}: no closing brace"))?;
            pieces.extend([Piece::Text(before.to_string()), Piece::Value(Value::parse(inside)?)]);
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_string()));
        Ok(Cell(pieces))
    }

    /// The text of the cell for a row, and the figure of its first placeholder.
    ///
    /// # Errors
    /// A column that the data does not have; a quotient of what is not a number.
    pub(super) fn show(&self, row: &Row, base: Option<&Row>) -> Result<(String, Option<f64>), String> {
        let (mut text, mut figure, mut values, mut absent) = (String::new(), None, 0, 0);
        for piece in &self.0 {
            match piece {
                Piece::Text(piece) => text += piece,
                Piece::Value(value) => {
                    let shown = value.show(row, base)?;
                    values += 1;
                    absent += usize::from(shown.text == ABSENT);
                    text += &shown.text;
                    figure = figure.or(shown.figure);
                }
            }
        }
        Ok(if values > 0 && values == absent { (ABSENT.to_string(), None) } else { (text, figure) })
    }
}

impl Value {
    fn parse(text: &str) -> Result<Value, String> {
        let (quotient, form) = text.rsplit_once(':').unwrap_or((text, ""));
        let decimals = match form {
            "" | "text" => None,
            _ => Some(form.parse().map_err(|error| format!("{text}: {error}"))?),
        };
        let (name, divisor) = match quotient.split_once('/') {
            Some((name, divisor)) => (name, Some(divisor.to_string())),
            None => (quotient, None),
        };
        Ok(Value { name: name.to_string(), divisor, decimals, as_text: form == "text" })
    }

    fn show(&self, row: &Row, base: Option<&Row>) -> Result<Shown, String> {
        let Some(divisor) = &self.divisor else { return Ok(self.show_field(row.get(&self.name)?)) };
        let field = |name: &str, other: &str| match (name, base) {
            ("base", Some(base)) => number(base.get(other)?),
            ("base", None) => Ok(None),
            _ => number(row.get(name)?),
        };
        let unit = divisor.parse().ok();
        let (over, under) = match unit {
            Some(_) => (field(&self.name, "")?, unit),
            None => (field(&self.name, divisor)?, field(divisor, &self.name)?),
        };
        let Some(quotient) = over.zip(under).map(|(over, under): (f64, f64)| over / under) else {
            return Ok(Shown { text: ABSENT.to_string(), figure: None });
        };
        let mut text = rounded(quotient, self.decimals, usize::MAX);
        if unit.is_some() && self.decimals.is_none() && text.contains('.') {
            text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        }
        Ok(Shown { text, figure: Some(quotient) })
    }

    /// Rules 2 to 4.
    fn show_field(&self, field: &str) -> Shown {
        let runs = field.split(' ').map(|run| run.parse().ok()).collect::<Option<Vec<f64>>>().filter(|_| !self.as_text);
        let has = field.split(' ').map(|run| run.split_once('.').map_or(0, |(_, decimals)| decimals.len())).max();
        let show = |run: f64| rounded(run, self.decimals, has.unwrap_or(0));
        let Some(mut runs) = runs else {
            let text = if field.is_empty() { ABSENT } else { display_name(field) };
            return Shown { text: text.to_string(), figure: None };
        };
        runs.sort_by(f64::total_cmp);
        let median = (runs[(runs.len() - 1) / 2] + runs[runs.len() / 2]) / 2.0;
        let text = match runs[..] {
            [run] => show(run),
            [least, greatest] => format!("{}, {}", show(least), show(greatest)),
            [least, .., greatest] => format!("{} ({} to {})", show(median), show(least), show(greatest)),
            [] => ABSENT.to_string(),
        };
        Shown { text, figure: Some(median) }
    }
}

/// The number in a field; none in an empty one.
fn number(field: &str) -> Result<Option<f64>, String> {
    match field {
        "" => Ok(None),
        _ => field.parse().map(Some).map_err(|_| format!("{field:?} is not a number to divide")),
    }
}

/// A figure with `decimals`, or by rule 2 with at most `most`.
fn rounded(figure: f64, decimals: Option<usize>, most: usize) -> String {
    let by_size = match figure.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        0.0 => 0,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{figure:.*}", decimals.unwrap_or(by_size.min(most)));
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let digits = whole.trim_start_matches('-').len();
    let places = whole.char_indices().map(|(n, digit)| {
        let left = whole.len() - n;
        let opens = digit.is_ascii_digit() && left < digits && left % 3 == 0;
        format!("{}{digit}", if opens { "," } else { "" })
    });
    places.collect::<String>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(cell: &str, row: &Row) -> String {
        let base = Row::from([("tps", "50"), ("runs", "1")]);
        Cell::parse(cell).and_then(|cell| cell.show(row, Some(&base))).map_or_else(|error| error, |(text, _)| text)
    }

    #[test]
    fn placeholders_are_fields_and_quotients() {
        let row = Row::from([
            ("tps", "200"),
            ("peer", "rocksdb"),
            ("none", ""),
            ("runs", "3 1 2"),
            ("two", "2.5 1"),
            ("build", "45631e5"),
        ]);
        for (cell, text) in [
            ("{tps} of {peer}", "200 of RocksDB"),
            ("{tps/1000}, {tps/100}", "0.2, 2"),
            ("{tps/1000:1}", "0.2"),
            ("{tps/base}, 1/{base/tps:1}", "4.00, 1/0.2"),
            ("{none}, {tps/none}", ABSENT),
            ("{none}, {tps}", "–, 200"),
            ("{runs}; {two}", "2 (1 to 3); 1.0, 2.5"),
            ("{build:text}", "45631e5"),
            ("{tps:x}", "tps:x: invalid digit found in string"),
            ("{gone}", "the data has no column gone"),
            ("{tps/peer}", "\"rocksdb\" is not a number to divide"),
            ("{tps", "{tps: no closing brace"),
        ] {
            assert_eq!(show(cell, &row), text, "{cell}");
        }
    }

    #[test]
    fn figures_have_three_digits_and_no_more_decimals_than_their_field() {
        let all = |figure| rounded(figure, None, usize::MAX);
        assert_eq!(
            [0.0, 0.1234, 1.234, 12.34, 1234.5, -1_234_567.0].map(all),
            ["0", "0.123", "1.23", "12.3", "1,234", "-1,234,567"]
        );
        assert_eq!((rounded(66.0, None, 0), rounded(1.3783, Some(3), 9)), ("66".into(), "1.378".into()));
    }
}
