//! Links and paths in the documents lead somewhere.
//!
//! Rules
//! 1. A relative link of a document names a file or folder that exists, and after `#` a heading of that document. A
//!    link to an item of the API (`crate::`) is rustdoc's to check.
//! 2. A path between backticks that begins with one of [`ROOTS`] exists; so does a `layer/file.rs` of ARCHITECTURE.md
//!    below the engine's source. A name with a space, `*` or an upper-case placeholder is an example and is not looked
//!    for.
//! 3. A symbolic link to a document is not checked as a document: relative links begin at the document's own place.

use std::io;
use std::path::{Path, PathBuf};

/// Where paths in documents begin.
const ROOTS: [&str; 5] = ["crates/", "docs/", "fuzz/", "scripts/", "xtask/"];

/// Below it are the layers that ARCHITECTURE.md names without their root.
const ENGINE: &str = "crates/engine/src";

/// What is wrong with the documents under `root`.
///
/// # Errors
/// A folder or document that cannot be read.
pub(crate) fn check(root: &Path) -> io::Result<Vec<String>> {
    let mut findings = Vec::new();
    for path in documents(root)? {
        let text = std::fs::read_to_string(root.join(&path))?;
        findings.extend(check_document(root, &path, &text));
    }
    Ok(findings)
}

/// The documents under `root`, in order.
///
/// # Errors
/// A folder that cannot be read.
pub(crate) fn documents(root: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    collect(root, &mut found)?;
    found.sort();
    let name = |file: PathBuf| file.strip_prefix(root).unwrap_or(&file).to_string_lossy().into_owned();
    Ok(found.into_iter().map(name).collect())
}

fn collect(folder: &Path, documents: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            collect(&path, documents)?;
        } else if name.ends_with(".md") && !path.is_symlink() {
            documents.push(path);
        }
    }
    Ok(())
}

fn check_document(root: &Path, path: &str, text: &str) -> Vec<String> {
    let document = root.join(path);
    let mut findings = Vec::new();
    for (n, line) in outside_code_blocks(text) {
        let links = between(line, "](", ")").filter(|link| !link.contains("://") && !link.starts_with("crate::"));
        let missing_links = links.filter(|link| !leads_somewhere(&document, link));
        findings.extend(missing_links.map(|link| format!("{path}:{n}: the link {link} leads nowhere")));
        let named = between(line, "`", "`").filter(|name| !exists(root, path, name));
        findings.extend(named.map(|name| format!("{path}:{n}: there is no {name}")));
    }
    findings
}

/// Rule 1.
fn leads_somewhere(document: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
    let folder = document.parent().unwrap_or(document);
    let target = if file.is_empty() { document.to_path_buf() } else { folder.join(file) };
    match heading.filter(|_| target.extension().is_some_and(|kind| kind == "md")) {
        None => target.exists(),
        Some(heading) => std::fs::read_to_string(&target).is_ok_and(|text| {
            outside_code_blocks(&text).any(|(_, line)| line.starts_with('#') && heading_name(line) == heading)
        }),
    }
}

/// The name under which links find a heading.
fn heading_name(line: &str) -> String {
    let text = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    text.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

/// Whether `name` is not a path, or its file or folder exists.
fn exists(root: &Path, document: &str, name: &str) -> bool {
    let is_example = name.contains([' ', '*', '<', '{'])
        || name.split('/').any(|part| !part.is_empty() && part == part.to_uppercase());
    if is_example || !name.contains('/') {
        return true;
    }
    if ROOTS.iter().any(|start| name.starts_with(start)) {
        return root.join(name).exists();
    }
    let in_engine = document == "ARCHITECTURE.md" && name.ends_with(".rs");
    !in_engine || root.join(ENGINE).join(name).exists() || root.join("crates/engine").join(name).exists()
}

fn outside_code_blocks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    text.lines().enumerate().filter_map(move |(n, line)| {
        let fence = line.trim_start().starts_with("```");
        in_block ^= fence;
        (!in_block && !fence).then_some((n + 1, line))
    })
}

/// Every text between `open` and the next `close`, one after another.
fn between<'a>(line: &'a str, open: &'static str, close: &'static str) -> impl Iterator<Item = &'a str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(open)?;
        let (inside, after) = after.split_once(close)?;
        rest = after;
        Some(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_paths_that_lead_nowhere_are_found() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("crates/engine/src/pool")).unwrap();
        std::fs::write(root.path().join("crates/engine/src/pool/lru.rs"), "").unwrap();
        let good = "# Pool: `lru`\n[pool](crates/engine/src/pool), `pool/lru.rs`, `crates/engine/src`, `DIR/a`\n\
                    [us](https://example.org/x) [i](crate::Pool::new) [a](#pool-lru) [b](ARCHITECTURE.md#pool-lru)\n";
        std::fs::write(root.path().join("ARCHITECTURE.md"), good).unwrap();
        assert_eq!(check(root.path()).unwrap(), Vec::<String>::new());
        for bad in [
            "[pool](crates/pool)",
            "`pool/gone.rs`",
            "`crates/gone`",
            "`crates/gone/`",
            "[a](crates) [b](gone.md#x)",
            "[a](#lru)",
            "[a](ARCHITECTURE.md#lru)",
        ] {
            std::fs::write(root.path().join("ARCHITECTURE.md"), format!("```\n`crates/x`\n```\n{bad}\n")).unwrap();
            assert_eq!(check(root.path()).unwrap().len(), 1, "{bad}");
        }
    }
}
