//! Tables of text and numbers.

use crate::page::{Width, card};
use maud::{Markup, Render, html};

/// A table; columns after the first `texts` hold numbers and are set to the right.
///
/// Where the first column says the same in several rows one below the other, a line separates these groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<C = String> {
    /// Heading.
    pub title: String,
    /// The caption.
    pub caption: String,
    /// Columns of text at the left.
    pub texts: usize,
    /// Names of the columns.
    pub head: Vec<String>,
    /// Rows, each with a cell for each column.
    pub rows: Vec<Vec<C>>,
}

impl<C> Default for Table<C> {
    fn default() -> Table<C> {
        Table { title: String::new(), caption: String::new(), texts: 1, head: Vec::new(), rows: Vec::new() }
    }
}

impl<C: Render> Table<C> {
    /// A table with these columns, the first `texts` of them text.
    pub fn new(title: &str, texts: usize, head: &[&str]) -> Table<C> {
        let head = head.iter().map(ToString::to_string).collect();
        Table { title: title.into(), texts, head, ..Table::default() }
    }

    /// With these rows.
    pub fn with(mut self, rows: impl IntoIterator<Item = Vec<C>>) -> Table<C> {
        self.rows = rows.into_iter().collect();
        self
    }

    /// In a card.
    pub fn card(&self, width: Width) -> Markup {
        card(
            &self.title,
            width,
            html! {
                @if !self.caption.is_empty() { p.caption { (self.caption) } }
                (self)
            },
        )
    }

    /// Whether each row begins a group of rows with equal first cells; all false if no two adjacent rows have equal
    /// first cells.
    fn first_of_group(&self) -> Vec<bool> {
        let names: Vec<String> =
            self.rows.iter().map(|row| row.first().map_or(String::new(), |c| c.render().into_string())).collect();
        let differs = |n: usize| n > 0 && names[n] != names[n - 1];
        let grouped = names.windows(2).any(|pair| pair[0] == pair[1]);
        (0..names.len()).map(|n| grouped && differs(n)).collect()
    }
}

impl<C: Render> Render for Table<C> {
    fn render(&self) -> Markup {
        let number = |n: usize| (n >= self.texts).then_some("n");
        html! {
            div.scroll {
                table {
                    thead { tr { @for (n, name) in self.head.iter().enumerate() { th class=[number(n)] { (name) } } } }
                    tbody {
                        @for (row, first) in self.rows.iter().zip(self.first_of_group()) {
                            tr class=[first.then_some("first")] {
                                @for (n, cell) in row.iter().enumerate() { td class=[number(n)] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 2]]) -> Table {
        Table::new("T", 1, &["name", "count"]).with(rows.iter().map(|row| row.map(String::from).to_vec()))
    }

    #[test]
    fn numbers_are_set_to_the_right_and_texts_escaped() {
        let text = table(&[["<i>", "1"]]).card(Width::Full).into_string();
        assert!(text.contains("<td>&lt;i&gt;</td><td class=\"n\">1</td>"), "{text}");
    }

    #[test]
    fn a_line_separates_groups_only() {
        let grouped = table(&[["a", "1"], ["a", "2"], ["b", "3"]]).render().into_string();
        assert_eq!(grouped.matches("first").count(), 1);
        let plain = table(&[["a", "1"], ["b", "2"], ["c", "3"]]).render().into_string();
        assert_eq!(plain.matches("first").count(), 0);
    }
}
