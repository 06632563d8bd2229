//! `--report`: a run as one offline page.
//!
//! Rules
//! 1. The page holds everything: style, script and data. It loads nothing from anywhere.
//! 2. The data are the run's JSON, unchanged, in a script element; `</` is escaped so that no text can end it.
//! 3. Charts are drawn by the page's own script as SVG; without scripts the tables are still there.

use crate::error::{Error, Result};
use crate::result::RunResult;
use std::path::Path;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("chart.js");

/// The page as text.
///
/// # Errors
/// As [`RunResult::to_json`].
pub fn html(result: &RunResult) -> Result<String> {
    let data = result.to_json()?.replace("</", "<\\/");
    Ok(PAGE
        .replace("{{title}}", &escape(&format!("Highwater: {}", result.workload)))
        .replace("{{style}}", STYLE)
        .replace("{{script}}", SCRIPT)
        .replace("{{data}}", &data))
}

/// Writes the page.
///
/// # Errors
/// [`Error::File`] when the file cannot be written.
pub fn write(result: &RunResult, path: &Path) -> Result<()> {
    std::fs::write(path, html(result)?).map_err(|e| Error::file(path, e))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
