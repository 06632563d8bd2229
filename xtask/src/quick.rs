//! `cargo xtask quick`: format, tidy, and the lints and unit tests of what was changed.
//!
//! Rules
//! 1. Changed is what differs from the branch `main`; on `main` itself, with nothing uncommitted, what the last commit
//!    changed. Files that git does not know count too.
//! 2. Tests of a changed file are those of its module's folder: `crates/engine/src/pool/lru/mod.rs` selects the tests
//!    of `pool::`. A file at the root of a crate selects them all.

use crate::process::finish;
use crate::steps::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Runs the checks.
///
/// # Errors
/// The first that fails.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let changed = changed(root)?;
    let cargo = |arguments: &[String]| finish(Command::new("cargo").args(arguments).current_dir(root));
    cargo(&words("fmt --all --check"))?;
    let findings = crate::tidy::check(root).map_err(|error| error.to_string())?;
    findings.iter().for_each(|finding| println!("{finding}"));
    if !findings.is_empty() {
        return Err(format!("{} findings", findings.len()));
    }
    let selected = selected(&changed);
    if selected.is_empty() {
        println!("no source file differs");
        return Ok(());
    }
    let names: Vec<String> = selected
        .keys()
        .map(|folder| package(root, folder).map(|name| vec!["--package".to_string(), name]))
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    cargo(&[words("clippy --all-targets"), names, words("-- -D warnings")].concat())?;
    for (folder, modules) in &selected {
        let kind = if root.join(folder).join("src/lib.rs").exists() { "--lib" } else { "--bins" };
        let test = [words("test --package"), vec![package(root, folder)?, kind.to_string(), "--".to_string()]].concat();
        cargo(&[test, modules.iter().cloned().collect()].concat())?;
    }
    Ok(())
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_string).collect()
}

/// Rule 1.
fn changed(root: &Path) -> Result<Vec<String>, Failure> {
    let lines = |arguments: &str| {
        let output = Command::new("git").args(arguments.split(' ')).current_dir(root).output();
        let output = output.map_err(|error| format!("git {arguments}: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect::<Vec<_>>()),
            false => Err(format!("git {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        }
    };
    let base = lines("merge-base HEAD main")?.concat();
    let mut changed = lines(&format!("diff --name-only {base}"))?;
    changed.extend(lines("ls-files --others --exclude-standard")?);
    if changed.is_empty() {
        changed = lines("diff --name-only HEAD~1")?;
    }
    Ok(changed)
}

/// The folders of the changed packages, each with the filters of its tests (none: all of them).
fn selected(changed: &[String]) -> BTreeMap<String, BTreeSet<String>> {
    let mut selected: BTreeMap<String, Option<BTreeSet<String>>> = BTreeMap::new();
    for path in changed.iter().filter(|path| path.ends_with(".rs")) {
        let of_workspace = |(folder, _): &(&str, &str)| !["crates/peers", "fuzz", "python"].contains(folder);
        let Some((folder, within)) = path.split_once("/src/").filter(of_workspace) else { continue };
        let modules = selected.entry(folder.to_string()).or_insert_with(|| Some(BTreeSet::new()));
        match (within.split_once('/'), modules.as_mut()) {
            (Some((module, _)), Some(modules)) => drop(modules.insert(format!("{module}::"))),
            (None, _) => *modules = None,
            (_, None) => {}
        }
    }
    selected.into_iter().map(|(folder, modules)| (folder, modules.unwrap_or_default())).collect()
}

/// The name of the package in a folder.
fn package(root: &Path, folder: &str) -> Result<String, Failure> {
    let path = root.join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    name.map(str::to_string).ok_or_else(|| format!("{}: no name", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_selects_the_tests_of_its_module() {
        let changed = [
            "crates/engine/src/pool/lru/mod.rs",
            "crates/engine/src/log/space.rs",
            "crates/lab/src/lib.rs",
            "crates/lab/src/subject/mod.rs",
            "crates/peers/src/main.rs",
            "fuzz/src/lib.rs",
            "python/src/scan.rs",
            "README.md",
        ];
        let selected = selected(&changed.map(str::to_string));
        assert_eq!(selected["crates/engine"], BTreeSet::from(["log::".to_string(), "pool::".to_string()]));
        assert_eq!((selected["crates/lab"].len(), selected.len()), (0, 2));
    }

    #[test]
    fn a_package_has_the_name_of_its_manifest() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(package(&root, "crates/engine").unwrap(), "highwater");
        assert!(package(&root, "crates/none").is_err());
    }
}
