//! The checks of `cargo xtask tidy` over the whole tree.
//!
//! Rules
//! 1. Every source file opens with `//!`: what holds in it.
//! 2. No source file has more than [`MAX_LINES`] lines: split it by concept.
//! 3. The engine's layers point down ([`layers`]). The device crate and the storage crate know nothing of the engine.
//! 4. No line says that something is still to be done.

use crate::layers;
use crate::source::{code_without_comments, is_test_file};
use std::io;
use std::path::{Path, PathBuf};

/// Lines a source file may have.
pub const MAX_LINES: usize = 1000;

/// Where source lives.
const FOLDERS: [&str; 2] = ["crates", "xtask"];

/// Crates that must not name the engine: (folder, name of the crate they may not use).
const INDEPENDENT: [&str; 2] = ["crates/storage/", "crates/device/"];

const ENGINE: &str = "crates/engine/src/";

/// Everything wrong under `root`, in order of path.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn check(root: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut findings = Vec::new();
    for file in &files {
        let path = file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        findings.extend(check_file(&path, &std::fs::read_to_string(file)?));
    }
    Ok(findings)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// What is wrong with one file.
pub fn check_file(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(format!("{path}:1: does not open with //! and the rules that hold in it"));
    }
    let lines = text.lines().count();
    if lines > MAX_LINES {
        findings.push(format!("{path}: {lines} lines, more than {MAX_LINES}; split it by concept"));
    }
    for (n, line) in text.lines().enumerate() {
        if unfinished(line) {
            findings.push(format!("{path}:{}: says that something is still to be done", n + 1));
        }
    }
    if let Some(engine_path) = path.strip_prefix(ENGINE).filter(|path| !is_test_file(path)) {
        findings.extend(layers::check(engine_path, text));
    }
    if INDEPENDENT.iter().any(|folder| path.starts_with(folder)) {
        findings.extend(uses_of_engine(path, text));
    }
    findings
}

/// The words are put together here, so that this file does not hold them.
fn unfinished(line: &str) -> bool {
    [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"]].iter().any(|word| line.contains(&word.concat()))
        || [["todo", "!("], ["unimplemented", "!("]].iter().any(|word| line.contains(&word.concat()))
}

fn uses_of_engine(path: &str, text: &str) -> Vec<String> {
    let lines = code_without_comments(text).into_iter();
    let named = lines.filter(|(_, line)| line.contains("highwater::"));
    named.map(|(n, _)| format!("{path}:{n}: uses the engine, which is above it")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_header_is_found() {
        assert_eq!(check_file("crates/lab/src/x.rs", "use std::io;\n").len(), 1);
        assert_eq!(check_file("crates/lab/src/x.rs", "//! What holds.\nuse std::io;\n").len(), 0);
    }

    #[test]
    fn a_long_file_is_found() {
        let text = |lines: usize| format!("//! Long.\n{}", "\n".repeat(lines - 1));
        assert_eq!(check_file("crates/cli/src/x.rs", &text(MAX_LINES)).len(), 0);
        assert_eq!(check_file("crates/cli/src/x.rs", &text(MAX_LINES + 1)).len(), 1);
    }

    #[test]
    fn unfinished_work_is_found() {
        for word in [["TO", "DO"], ["FIX", "ME"]] {
            let text = format!("//! X.\n// {}: later\n", word.concat());
            assert_eq!(check_file("crates/cli/src/x.rs", &text).len(), 1, "{word:?}");
        }
    }

    #[test]
    fn a_device_that_knows_the_engine_is_found() {
        assert_eq!(check_file("crates/device/src/x.rs", "//! X.\nuse highwater::Database;\n").len(), 1);
        assert_eq!(check_file("crates/device/src/x.rs", "//! X.\nuse highwater_storage::Device;\n").len(), 0);
    }

    #[test]
    fn a_tree_with_a_layer_turned_round_is_found() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("crates/engine/src/pool");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("mod.rs"), "//! Pool.\nuse crate::txn::Txn;\n").unwrap();
        std::fs::write(folder.join("pool_test.rs"), "//! Tests.\nuse crate::db::Database;\n").unwrap();
        let findings = check(root.path()).unwrap();
        assert_eq!(findings, ["crates/engine/src/pool/mod.rs:2: layer pool uses txn, which is above it"]);
    }
}
