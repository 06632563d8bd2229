//! Templates of tables: the JSON file of a page.
//!
//! Rules
//! 1. Three parts describe a cell: that of its table (`cells`), of its row and of its column. The column's entries
//!    override the row's, and the row's override the table's. `data` names a CSV file, `where` selects one of its rows
//!    by the values of columns, and `cell` is the text to show (see the module `cell`).
//! 2. `each` lists columns of the data. A row or column with `each` stands for one row or column for each combination
//!    of their values in the selected data, in the data's order. The values follow its label.
//! 3. A label equal to the one above it is omitted, unless a label to its left changed.

use super::cell::{self, Cell};
use super::data::{DataFile, Source};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The tables of a page by name, in the file's order.
pub(super) struct Template(Vec<(String, Table)>);

/// What describes the cells of a row, a column or a whole table.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Part {
    /// The row's labels or the column's heading.
    label: Vec<String>,
    each: Vec<String>,
    /// A CSV file, relative to the page's folder.
    data: Option<String>,
    #[serde(rename = "where")]
    filters: BTreeMap<String, String>,
    /// The row that `base` in a cell refers to: `where`, overridden by these.
    base: BTreeMap<String, String>,
    cell: Option<String>,
    bold: Option<Bold>,
}

/// Which figure of a row is bold, among the columns with this entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Bold {
    Greatest,
    Least,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// Headings of the columns that have the rows' labels.
    head: Vec<String>,
    /// The part of all cells.
    #[serde(default)]
    cells: Part,
    rows: Vec<Part>,
    columns: Vec<Part>,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is not JSON of this form.
    pub(super) fn parse(text: &str) -> Result<Template, String> {
        let tables: Map<String, Value> = serde_json::from_str(text).map_err(|error| format!("template: {error}"))?;
        let read = |(name, value): (String, Value)| match serde_json::from_value(value) {
            Ok(table) => Ok((name, table)),
            Err(error) => Err(format!("template of {name}: {error}")),
        };
        tables.into_iter().map(read).collect::<Result<_, String>>().map(Template)
    }

    /// The tables by name.
    pub(super) fn tables(&self) -> impl Iterator<Item = (&str, &Table)> {
        self.0.iter().map(|(name, table)| (name.as_str(), table))
    }
}

impl Part {
    /// Rule 1: the entries of both; those of `over` override those of `self`.
    fn under(&self, over: &Part) -> Part {
        Part {
            data: over.data.clone().or_else(|| self.data.clone()),
            filters: merged(&self.filters, &over.filters),
            base: merged(&self.base, &over.base),
            cell: over.cell.clone().or_else(|| self.cell.clone()),
            bold: over.bold.or(self.bold),
            ..over.clone()
        }
    }

    fn file<'s>(&self, source: &'s mut Source) -> Result<&'s DataFile, String> {
        source.file(self.data.as_deref().ok_or("no entry `data`")?)
    }

    /// Rule 2: the parts that `self` stands for, in a table with the part `cells`.
    fn expand(&self, cells: &Part, source: &mut Source) -> Result<Vec<Part>, String> {
        if self.each.is_empty() {
            return Ok(vec![self.clone()]);
        }
        let whole = cells.under(self);
        let line = |values: Vec<String>| {
            let mut line = self.clone();
            line.label.extend(values.iter().map(|value| display_name(value).to_string()));
            line.filters.extend(self.each.iter().cloned().zip(values));
            line
        };
        let combinations = whole.file(source)?.combinations(&self.each, &whole.filters)?;
        Ok(combinations.into_iter().map(line).collect())
    }

    /// The text of the cell that `self` describes completely, and its figure.
    fn show(&self, source: &mut Source) -> Result<(String, Option<f64>), String> {
        let cell = Cell::parse(self.cell.as_deref().ok_or("neither row nor column has an entry `cell`")?)?;
        let file = self.file(source)?;
        let Some(row) = file.find(&self.filters)? else { return Ok((cell::ABSENT.to_string(), None)) };
        let base = if self.base.is_empty() { None } else { file.find(&merged(&self.filters, &self.base))? };
        cell.show(&row, base.as_ref())
    }
}

fn merged(below: &BTreeMap<String, String>, above: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    below.iter().chain(above).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// How a table names a value of the data.
pub(super) fn display_name(value: &str) -> &str {
    const NAMES: [(&str, &str); 11] = [
        ("highwater", "Highwater"),
        ("mysql", "MySQL 5.6.24"),
        ("mariadb", "MariaDB 10.11"),
        ("mariadb-highwater", "Highwater in MariaDB"),
        ("myrocks", "MyRocks"),
        ("rocksdb", "RocksDB"),
        ("wiredtiger", "WiredTiger"),
        ("lmdb", "LMDB"),
        ("sqlite", "SQLite"),
        ("many", "16"),
        ("one", "1"),
    ];
    NAMES.iter().find(|(name, _)| *name == value).map_or(value, |(_, shown)| shown)
}

impl Table {
    /// The table in Markdown.
    ///
    /// # Errors
    /// A file that cannot be read; a column or a value that it does not have; more than one row for a cell.
    pub(super) fn lines(&self, source: &mut Source) -> Result<Vec<String>, String> {
        let rows = self.expand(&self.rows, source)?;
        let columns = self.expand(&self.columns, source)?;
        let headings = self.head.iter().cloned().chain(columns.iter().map(|column| column.label.join(", ")));
        let headings: Vec<String> = headings.collect();
        let mut lines = vec![markdown(&headings), format!("|{}", "---|".repeat(headings.len()))];
        let mut above: Vec<String> = vec![String::new(); self.head.len()];
        for row in &rows {
            if row.label.len() != self.head.len() {
                return Err(format!("{} headings for the labels {:?}", self.head.len(), row.label));
            }
            let cells = self.cells(row, &columns, source)?;
            let labels = without_repeats(&row.label, &above);
            lines.push(markdown(&[labels, cells].concat()));
            above.clone_from(&row.label);
        }
        Ok(lines)
    }

    fn expand(&self, parts: &[Part], source: &mut Source) -> Result<Vec<Part>, String> {
        let expanded: Result<Vec<_>, String> = parts.iter().map(|part| part.expand(&self.cells, source)).collect();
        expanded.map(|parts| parts.concat())
    }

    fn cells(&self, row: &Part, columns: &[Part], source: &mut Source) -> Result<Vec<String>, String> {
        let (mut cells, mut rivals) = (Vec::new(), Vec::new());
        for column in columns {
            let part = self.cells.under(row).under(column);
            let (text, figure) = part.show(source)?;
            rivals.extend(part.bold.zip(figure).map(|(bold, figure)| (cells.len(), bold, figure)));
            cells.push(text);
        }
        let rank = |bold: Bold, figure: f64| if bold == Bold::Least { -figure } else { figure };
        let best = rivals.into_iter().max_by(|a, b| rank(a.1, a.2).total_cmp(&rank(b.1, b.2)));
        if let Some((n, ..)) = best {
            cells[n] = format!("**{}**", cells[n]);
        }
        Ok(cells)
    }
}

/// Rule 3.
fn without_repeats(labels: &[String], above: &[String]) -> Vec<String> {
    let same = labels.iter().zip(above).take_while(|(label, above)| label == above).count();
    let shown = |(n, label): (usize, &String)| if n < same { String::new() } else { label.clone() };
    labels.iter().enumerate().map(shown).collect()
}

fn markdown(cells: &[String]) -> String {
    let cells: Vec<String> =
        cells.iter().map(|cell| if cell.is_empty() { " |".to_string() } else { format!(" {cell} |") }).collect();
    format!("|{}", cells.concat())
}
