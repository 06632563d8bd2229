//! The figures of a report, and functions that create them from rows.

use super::judge::{Rows, number};
use super::metric::{Axis, Metric};
use super::outcome::title_of;
use super::{Row, metric};
use highwater_report::{Bars, Chart, Line, Table};

/// A figure of the report.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Lines over numbers, or bars over categories.
    Chart(Chart),
    /// Bars of one or more parts.
    Bars(Bars),
    /// A table.
    Table(Table),
}

/// A line of what was measured.
pub(super) fn measured(name: impl Into<String>, points: Vec<[f64; 2]>) -> Line {
    Line { name: name.into(), points, paper: false }
}

/// A line of what the document says.
pub(super) fn of_paper(name: impl Into<String>, points: Vec<[f64; 2]>) -> Line {
    Line { name: name.into(), points, paper: true }
}

/// A table with these columns of text and of numbers.
pub(super) fn table(title: &str, caption: &str, texts: &[&str], numbers: &[&str]) -> Table {
    Table { caption: caption.into(), ..Table::new(title, texts.len(), &[texts, numbers].concat()) }
}

/// A row of a table.
pub(super) fn cells(texts: &[&str], numbers: impl IntoIterator<Item = String>) -> Vec<String> {
    texts.iter().map(ToString::to_string).chain(numbers).collect()
}

/// Heads of columns and the values in them.
pub(super) type Columns<'c> = [(&'c str, Metric)];

pub(super) fn heads<'c>(columns: &Columns<'c>) -> Vec<&'c str> {
    columns.iter().map(|(head, _)| *head).collect()
}

/// Points at places 0, 1, 2 and so on.
pub(super) fn places(values: impl IntoIterator<Item = f64>) -> Vec<[f64; 2]> {
    values.into_iter().enumerate().map(|(n, value)| [n as f64, value]).collect()
}

/// Points of a series of a row; none if the row lacks the series.
pub(super) fn series(row: &Row, name: metric::Series) -> Vec<[f64; 2]> {
    row.series.get(name.name()).cloned().unwrap_or_default()
}

/// An experiment that varies one thing: how its tables and charts show it.
pub(super) struct Along<'a> {
    pub axis: Axis,
    pub values: &'a [&'a str],
    /// Head of its column in tables.
    pub head: &'a str,
    /// Label of the horizontal axis of charts.
    pub x_label: &'a str,
    /// Label of the document's figures, if it has any.
    pub paper: Option<&'a str>,
}

impl Along<'_> {
    /// A line for each subject and value, the document's first.
    pub(super) fn table(&self, rows: &[Row], title: &str, columns: &Columns<'_>) -> Figure {
        let mut table = table(title, "", &["Subject", self.head], &heads(columns));
        let first = Rows::of_first(rows);
        for (paper, value) in self.paper.iter().flat_map(|paper| self.values.iter().map(move |value| (paper, *value))) {
            let figure = |metric| first.paper(&[(self.axis, value)], metric).map_or("–".into(), number);
            table
                .rows
                .push(cells(&[&format!("Paper: {paper}"), value], columns.iter().map(|(_, metric)| figure(*metric))));
        }
        for of in Rows::of_each(rows) {
            for value in self.values {
                let numbers = columns.iter().map(|(_, metric)| number(of.value(&[(self.axis, value)], *metric)));
                table.rows.push(cells(&[title_of(of.subject), value], numbers));
            }
        }
        Figure::Table(table)
    }

    /// A line for each subject, and the document's last.
    pub(super) fn chart(&self, rows: &[Row], metric: Metric, title: &str, unit: &str) -> Figure {
        let points = |of: Rows<'_>| places(self.values.iter().map(|value| of.value(&[(self.axis, value)], metric)));
        let mut lines: Vec<Line> = Rows::of_each(rows).map(|of| measured(title_of(of.subject), points(of))).collect();
        let (first, places) = (Rows::of_first(rows), self.values.iter().enumerate());
        let papers = places.filter_map(|(n, value)| Some([n as f64, first.paper(&[(self.axis, value)], metric)?]));
        let papers: Vec<[f64; 2]> = papers.collect();
        if let Some(paper) = self.paper.filter(|_| !papers.is_empty()) {
            lines.push(of_paper(paper, papers));
        }
        Figure::Chart(Chart {
            title: title.into(),
            x_label: self.x_label.into(),
            y_label: unit.into(),
            categories: self.values.iter().map(ToString::to_string).collect(),
            lines,
            ..Chart::default()
        })
    }
}
