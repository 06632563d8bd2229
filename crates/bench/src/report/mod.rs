//! `--report`: a run as one offline page. The page's JSON is the run's, unchanged.

mod charts;
mod head;
mod tables;

use crate::error::{Error, Result};
use crate::result::RunResult;
use highwater_report::Page;
use highwater_storage::OutputFile;
use std::path::Path;

/// The page as text.
///
/// # Errors
/// As [`RunResult::to_json`].
pub fn html(result: &RunResult) -> Result<String> {
    let page = Page {
        title: &format!("{}: Highwater", result.workload),
        brand: "Highwater",
        heading: &head::heading(result),
        lead: &head::lead(result),
        tiles: head::tiles(result),
        groups: vec![charts::charts(result), tables::tables(result)],
        footer: "Percentiles are within 1\u{a0}%. Hover or drag over a chart to read it; charts with the same axis \
                 share the cursor.",
        json: &result.to_json()?,
    };
    Ok(page.html())
}

fn option<'r>(result: &'r RunResult, name: &str) -> &'r str {
    result.config.get(name).map_or("", String::as_str)
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
    fn text_from_the_run_cannot_become_markup() {
        let page = html(&result()).unwrap();
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(!page.contains("<b>&"));
        let data = page.split("id=\"result\">").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap();
        assert_eq!(serde_json::from_str::<RunResult>(data).unwrap(), result());
    }
}
