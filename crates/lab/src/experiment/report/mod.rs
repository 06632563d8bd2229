//! An experiment as one offline page.
//!
//! Rules
//! 1. The page holds everything: style, charts (SVG) and the JSON. It loads nothing and needs no script.
//! 2. Every text passes `escape`; in the JSON every `<` is written otherwise, so that no text can end its element.
//! 3. What the paper measured is marked as the paper's: dashed lines, columns of their own.

mod chart;
mod parts;

use super::{Figure, Outcome};
use highwater_bench::report::{STYLE, escape, fill};
use highwater_bench::{Error, Result};

const PAGE: &str = include_str!("page.html");
const OWN_STYLE: &str = include_str!("style.css");

/// The page as text.
///
/// # Errors
/// None in practice: every key of the JSON is text.
pub fn html(outcome: &Outcome, figures: &[Figure]) -> Result<String> {
    let json = serde_json::to_string(outcome).map_err(|e| Error::Usage(format!("as JSON: {e}")))?;
    let parts = [
        ("title", format!("{}: Highwater", escape(&outcome.experiment))),
        ("style", format!("{STYLE}{OWN_STYLE}")),
        ("heading", escape(&outcome.experiment)),
        ("lead", parts::lead(outcome)),
        ("tiles", parts::tiles(outcome)),
        ("claims", parts::claims(outcome)),
        ("figures", figures.iter().map(figure).collect()),
        ("notes", parts::notes(outcome)),
        ("rows", parts::rows(outcome)),
        ("config", parts::config(outcome)),
        ("data", json.replace('<', "\\u003c")),
    ];
    Ok(fill(PAGE, &parts))
}

fn figure(figure: &Figure) -> String {
    match figure {
        Figure::Chart(chart) => chart::html(chart),
        Figure::Table(table) => parts::table(table),
    }
}

#[cfg(test)]
#[path = "report_test.rs"]
mod tests;
