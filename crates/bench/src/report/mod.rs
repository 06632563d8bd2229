//! `--report`: a run as one offline page.
//!
//! Rules
//! 1. The page holds everything: style, script and data. It loads nothing from anywhere.
//! 2. The data are the run's JSON, unchanged, in a script element; every `<` in it is escaped, so that no text can end the element.
//! 3. Charts are drawn by the page's own script as SVG. Tables and summary are plain HTML and need no script.

mod tables;

pub use tables::escape;

use crate::error::{Error, Result};
use crate::result::RunResult;
use highwater_storage::OutputFile;
use std::path::Path;

const PAGE: &str = include_str!("page.html");
/// The style that every page shares.
pub const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("chart.js");

/// The page as text.
///
/// # Errors
/// As [`RunResult::to_json`].
pub fn html(result: &RunResult) -> Result<String> {
    // `<` stands only inside strings, where JSON has another way to write it.
    let data = result.to_json()?.replace('<', "\\u003c");
    let parts = [
        ("title", format!("{}: Highwater", tables::escape(&result.workload))),
        ("heading", tables::heading(result)),
        ("lead", tables::lead(result)),
        ("tiles", tables::tiles(result)),
        ("tables", tables::tables(result)),
        ("style", STYLE.to_string()),
        ("script", SCRIPT.to_string()),
        ("data", data),
    ];
    Ok(fill(PAGE, &parts))
}

/// The template with each `{{name}}` replaced. What is put in is not looked at again.
pub fn fill(template: &str, parts: &[(&str, String)]) -> String {
    let mut pieces = template.split("{{");
    let mut page = pieces.next().unwrap_or("").to_string();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").unwrap_or(("", piece));
        page += parts.iter().find(|(part, _)| *part == name).map_or("", |(_, text)| text);
        page += rest;
    }
    page
}

/// Writes the page.
///
/// # Errors
/// [`Error::File`] when the file cannot be written.
pub fn write(result: &RunResult, path: &Path) -> Result<()> {
    OutputFile::write(path, html(result)?.as_bytes()).map_err(|e| Error::file(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Condition;

    fn result() -> RunResult {
        let condition =
            Condition { condition: "3.3.2.1".into(), text: "a < b".into(), holds: false, detail: "</script>".into() };
        let mut result = RunResult {
            workload: "tpcc".into(),
            elapsed_s: 1.0,
            consistency: Some(vec![condition]),
            ..RunResult::default()
        };
        result.config.insert("dir".into(), "<b>&{{data}}".into());
        result
    }

    #[test]
    fn the_page_is_offline_and_whole() {
        let page = html(&result()).unwrap();
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            let allowed = if outside == "http://" { 1 } else { 0 }; // the SVG name space, a name and no address
            assert_eq!(page.matches(outside).count(), allowed, "{outside}");
        }
        for place in ["{{title}}", "{{style}}", "{{script}}", "{{tiles}}", "{{tables}}"] {
            assert!(!page.contains(place), "{place}");
        }
    }

    #[test]
    fn text_from_the_run_cannot_become_markup() {
        let page = html(&result()).unwrap();
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(!page.contains("<b>&"));
        let data = page.split("id=\"result\">").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap();
        assert_eq!(serde_json::from_str::<RunResult>(data).unwrap(), result());
    }
}
