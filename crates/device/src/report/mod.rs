//! Reports of a replay: a table for the terminal and a page for the browser.

#[cfg(target_os = "linux")]
mod mount_text;
mod page;
mod text;

#[cfg(target_os = "linux")]
pub use mount_text::{mount_line, mount_table};
pub use page::html;
pub use text::text;

use crate::error::{DeviceError, Result};
use crate::replay::ReplayResult;
use highwater_storage::OutputFile;
use std::path::Path;

/// Writes the page.
pub fn write_html(result: &ReplayResult, path: &Path) -> Result<()> {
    OutputFile::write(path, html(result)?.as_bytes())
        .map_err(|e| DeviceError::io(format!("writing {}", path.display()), e))
}

/// The file's name, for headings.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A write amplification as text.
fn write_amplification(factor: f64) -> String {
    format!("{factor:.3}")
}

#[cfg(test)]
#[path = "report_test.rs"]
mod tests;
