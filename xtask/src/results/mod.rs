//! The tables of `docs/results`: `cargo xtask results` writes them from measured rows, `cargo xtask tidy` compares.
//!
//! Rules
//! 1. A page `X.md` has blocks `<!-- table: NAME -->` to `<!-- end -->`. `X.json` in the same folder has the template
//!    of each ([`template`]), which names its data ([`data`]). The data are the only home of a figure.
//! 2. The text outside the blocks is written by hand and stays as it is.
//! 3. A block without a template, and a template without a block, is an error.

mod cell;
mod data;
#[cfg(test)]
mod results_test;
mod template;

use data::Source;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use template::Template;

/// Where the pages are, below the root of the tree.
const PAGES: &str = "docs/results";

const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end -->";

/// Writes the tables of every page under `root`.
///
/// # Errors
/// The first page whose tables cannot be made or written.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    for page in pages(root)? {
        let (before, after) = render(&page)?;
        if before != after {
            std::fs::write(&page, after).map_err(|error| format!("{}: {error}", page.display()))?;
            println!("{}", page.strip_prefix(root).unwrap_or(&page).display());
        }
    }
    Ok(())
}

/// Every page whose tables differ from those that [`write()`] makes, or cannot be made.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let differs = |page: PathBuf| match render(&page) {
        Ok((before, after)) => first_difference(&before, &after).map(|line| {
            let name = page.strip_prefix(root).unwrap_or(&page).display().to_string();
            format!("{name}:{line}: a table differs from its data; cargo xtask results writes it")
        }),
        Err(error) => Some(error),
    };
    pages(root).map_or_else(|error| vec![error], |pages| pages.into_iter().filter_map(differs).collect())
}

/// The line, from 1, at which two texts differ.
fn first_difference(before: &str, after: &str) -> Option<usize> {
    let same = before.lines().zip(after.lines()).take_while(|(before, after)| before == after).count();
    (before != after).then_some(same + 1)
}

/// The pages, in order; a template without a page counts as one.
fn pages(root: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = root.join(PAGES);
    let mut found = Vec::new();
    if folder.is_dir() {
        collect(&folder, &mut found).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|kind| kind == "md" || kind == "json") {
            found.push(path.with_extension("md"));
        }
    }
    Ok(())
}

/// The text of a page, and the same with its blocks filled.
fn render(page: &Path) -> Result<(String, String), String> {
    let named = |error: String| format!("{}: {error}", page.display());
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let text = read(page)?;
    let template = page.with_extension("json");
    let template = if template.exists() { read(&template)? } else { "{}".to_string() };
    let template = Template::parse(&template).map_err(named)?;
    let mut source = Source::new(page.parent().unwrap_or(page));
    let mut tables = BTreeMap::new();
    for (name, table) in template.tables() {
        let lines = table.lines(&mut source).map_err(|error| named(format!("table {name}: {error}")))?;
        tables.insert(name, lines);
    }
    let filled = fill(&text, tables).map_err(named)?;
    Ok((text, filled))
}

/// `text` with the lines of `tables` in its blocks. Each table is used once.
fn fill(text: &str, mut tables: BTreeMap<&str, Vec<String>>) -> Result<String, String> {
    let (mut filled, mut lines) = (String::with_capacity(text.len()), text.lines());
    while let Some(line) = lines.next() {
        filled += &format!("{line}\n");
        let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let table =
            tables.remove(name).ok_or_else(|| format!("no template for the table {name}, or a second block"))?;
        lines.find(|line| *line == END).ok_or_else(|| format!("no {END} behind the table {name}"))?;
        filled += &format!("\n{}\n\n{END}\n", table.join("\n"));
    }
    match tables.keys().next() {
        Some(name) => Err(format!("no block for the table {name}")),
        None => Ok(filled),
    }
}
