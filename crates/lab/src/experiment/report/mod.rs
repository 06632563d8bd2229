//! An experiment as one offline page. The paper's values are marked as such: dashed lines, separate columns.

mod parts;
mod tally;

pub use parts::claims_table;
pub use tally::Tally;

use super::{Figure, Outcome};
use highwater_bench::{Error, Result};
use highwater_report::{Markup, Page, Width};

/// The page as text.
///
/// # Errors
/// None in practice: every key of the JSON is text.
pub fn html(outcome: &Outcome, figures: &[Figure]) -> Result<String> {
    let json = serde_json::to_string(outcome).map_err(|e| Error::Usage(format!("as JSON: {e}")))?;
    let mut cards: Vec<Markup> = claims_table(outcome).iter().map(|table| table.card(Width::Full)).collect();
    cards.extend(figures.iter().map(figure));
    cards.extend([parts::notes(outcome), parts::rows(outcome), parts::config(outcome)]);
    let page = Page {
        title: &format!("{}: Highwater", outcome.experiment),
        brand: "Highwater laboratory",
        heading: &outcome.experiment,
        lead: &parts::lead(outcome),
        tiles: parts::tiles(outcome),
        groups: vec![cards],
        footer: "Every claim is computed from the rows of this page. Figures of the paper were measured on its \
                 authors’ machine; compare their shape with ours, not their size.",
        json: &json,
    };
    Ok(page.html())
}

fn figure(figure: &Figure) -> Markup {
    match figure {
        Figure::Chart(chart) => chart.card(),
        Figure::Bars(bars) => bars.card(),
        Figure::Table(table) => table.card(Width::Full),
    }
}

#[cfg(test)]
mod report_test;
