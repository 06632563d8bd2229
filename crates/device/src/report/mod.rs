//! What a replay found, for people: a table for the terminal and a page for the browser.
//!
//! Rules
//! 1. The page holds everything: style, charts (SVG) and the JSON. It loads nothing and needs no script.
//! 2. Every text that comes from outside (paths, names of files) is escaped; in the JSON every `<` is, so that no text can end its element.
//! 3. Sizes are binary (MiB, GiB), named as such.

#[cfg(target_os = "linux")]
mod mount_text;
mod page;
pub mod svg;
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

/// Text as HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Bytes with a binary unit.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// The file's name, for headings.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
#[path = "report_test.rs"]
mod tests;
