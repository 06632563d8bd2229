//! The checks of `cargo xtask tidy` over the whole tree.
//!
//! | check | file |
//! |---|---|
//! | how a source file looks: header, lines, columns, nothing unfinished | `look.rs` |
//! | places of tests, first file of a module's folder | `rooms.rs` |
//! | the engine's layers point down | `layers.rs` |
//! | files in a layer do not use each other; rooms in order; a type's methods are together | `circles.rs` |
//! | the engine's primitives can be replaced by a checker's | `primitives.rs` |
//! | the crates' dependencies point down | `crates.rs` |
//! | the patterns of mutants fit the source | `mutants/` |
//! | links and paths in the documents lead somewhere | `links.rs` |
//! | the tables of `docs/results` are those of their data | `results/` |
//! | no words of the house where the field has one | `words.rs`, `words.txt` |

use crate::source::is_test_file;
use crate::words::Words;
use crate::{circles, crates, layers, links, look, mutants, primitives, results, rooms};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Where source lives.
const FOLDERS: [&str; 4] = ["crates", "fuzz", "python", "xtask"];

const ENGINE: &str = "crates/engine/src/";

/// Everything wrong under `root`, in order of path.
///
/// # Errors
/// A folder or file that cannot be read.
pub(crate) fn check(root: &Path) -> io::Result<Vec<String>> {
    let mut findings = check_tree(root)?;
    findings.extend(mutants::check(root));
    findings.extend(circles::check(&engine_files(root)?));
    Ok(findings)
}

/// The text of the engine's files without tests, by their paths under `crates/engine/src`.
fn engine_files(root: &Path) -> io::Result<BTreeMap<String, String>> {
    let folder = root.join(ENGINE);
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    let name = |file: &PathBuf| file.strip_prefix(&folder).unwrap_or(file).to_string_lossy().replace('\\', "/");
    let sources = files.iter().map(|file| (name(file), file));
    let sources = sources.filter(|(name, _)| name.ends_with(".rs") && !is_test_file(name));
    sources.map(|(name, file)| Ok((name, std::fs::read_to_string(file)?))).collect()
}

fn check_tree(root: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files)?;
    }
    let name = |file: &PathBuf| file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/");
    let mut paths: Vec<String> = files.iter().map(name).collect();
    paths.sort();
    let mut findings = rooms::check(&paths);
    for path in paths.iter().filter(|path| path.ends_with(".rs")) {
        findings.extend(check_file(path, &std::fs::read_to_string(root.join(path))?));
    }
    for path in paths.iter().filter(|path| path.ends_with("/Cargo.toml")) {
        findings.extend(crates::check(path, &std::fs::read_to_string(root.join(path))?));
    }
    findings.extend(links::check(root)?);
    findings.extend(results::check(root));
    findings.extend(check_words(root, &paths)?);
    Ok(findings)
}

/// Words in the sources and documents.
fn check_words(root: &Path, paths: &[String]) -> io::Result<Vec<String>> {
    let words = Words::read();
    let sources = paths.iter().filter(|path| path.ends_with(".rs") && *path != "xtask/src/words.rs").cloned();
    let mut findings = Vec::new();
    for path in sources.chain(links::documents(root)?) {
        findings.extend(words.check(&path, &std::fs::read_to_string(root.join(&path))?));
    }
    Ok(findings)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.is_dir() {
            files.push(path);
        } else if path.file_name().is_some_and(|name| name != "target") {
            collect(&path, files)?;
        }
    }
    Ok(())
}

/// What is wrong with one source file.
fn check_file(path: &str, text: &str) -> Vec<String> {
    let mut findings = look::check(path, text);
    findings.extend(rooms::check_inline_tests(path, text));
    if let Some(engine_path) = path.strip_prefix(ENGINE).filter(|path| !is_test_file(path)) {
        findings.extend(layers::check(engine_path, text));
        findings.extend(primitives::check(engine_path, text));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_with_a_layer_turned_round_is_found() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("crates/engine/src/pool");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("mod.rs"), "//! Pool.\nuse crate::txn::Txn;\n").unwrap();
        std::fs::write(folder.join("pool_test.rs"), "//! Tests.\nuse crate::db::Database;\n").unwrap();
        let findings = check_tree(root.path()).unwrap();
        assert_eq!(findings, ["crates/engine/src/pool/mod.rs:2: layer pool uses txn, which is above it"]);
    }
}
