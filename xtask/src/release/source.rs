//! The crates as cargo publishes them, and the licences of what is linked into the program.

use super::{Failure, Release, copy, finish, output};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Packages every crate that may be published.
///
/// # Errors
/// In words.
pub fn crates(release: &Release<'_>, packages: &Path) -> Result<(), Failure> {
    let names = published(&metadata(release.root, &["--no-deps"])?)?;
    let mut cargo = Command::new("cargo");
    cargo.args(["package", "--no-verify", "--allow-dirty", "--locked"]).current_dir(release.root);
    for name in &names {
        cargo.args(["-p", name]);
    }
    finish(&mut cargo)?;
    for name in names {
        let file = format!("{name}-{}.crate", release.version);
        copy(&packages.join(&file), &release.out.join(&file))?;
    }
    Ok(())
}

fn metadata(root: &Path, more: &[&str]) -> Result<Value, Failure> {
    let mut cargo = Command::new("cargo");
    let text = output(cargo.args(["metadata", "--format-version", "1", "--locked"]).args(more).current_dir(root))?;
    serde_json::from_slice(&text).map_err(|error| format!("cargo metadata: {error}"))
}

/// Members that are not kept from being published.
fn published(metadata: &Value) -> Result<BTreeSet<String>, Failure> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let published = packages.iter().filter(|package| package["publish"] != Value::Array(Vec::new()));
    Ok(published.filter_map(|package| package["name"].as_str().map(String::from)).collect())
}

/// Name, version and licence of each crate that is linked into the program.
///
/// # Errors
/// In words.
pub fn licences(root: &Path) -> Result<String, Failure> {
    let mut cargo = Command::new("cargo");
    cargo.args(["tree", "--locked", "-p", "highwater-cli", "--edges", "normal", "--prefix", "none"]);
    let text = output(cargo.args(["--format", "{p}\t{l}\t{r}"]).current_dir(root))?;
    let lines: BTreeSet<String> = String::from_utf8_lossy(&text).lines().filter_map(of_others).collect();
    let head = "Crates of others that are linked into this program, with their licences and where their source is.\n\n";
    Ok(head.to_string() + &lines.into_iter().map(|line| line + "\n").collect::<String>())
}

/// The line of a crate, unless it is the workspace's own (whose path stands behind its name).
fn of_others(line: &str) -> Option<String> {
    let mut fields = line.trim_end_matches(" (*)").split('\t');
    let (name, licence) = (fields.next()?, fields.next()?);
    let is_own = name.contains(" (/");
    (!is_own && !name.is_empty())
        .then(|| format!("{}: {licence}; {}", name.replace(" (proc-macro)", ""), fields.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_from_being_published_is_left_out() {
        let metadata = serde_json::json!({"packages": [
            {"name": "b", "publish": null}, {"name": "a", "publish": ["crates-io"]}, {"name": "x", "publish": []},
        ]});
        assert_eq!(published(&metadata).unwrap().into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(published(&Value::Null).is_err());
    }

    #[test]
    fn crates_of_others_have_their_licence() {
        let line = "serde v1.0.1\tMIT OR Apache-2.0\thttps://example.org/serde (*)";
        assert_eq!(of_others(line).unwrap(), "serde v1.0.1: MIT OR Apache-2.0; https://example.org/serde");
        assert_eq!(of_others("highwater v0.1.0 (/somewhere/crates/engine)\tMIT\t"), None);
        assert_eq!(of_others(""), None);
    }
}
