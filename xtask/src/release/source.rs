//! The crates as cargo publishes them, and the licences of what is linked in.

use super::{Failure, Release, copy};
use crate::package;
use crate::process::output;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The file of every crate that may be published.
///
/// # Errors
/// In words.
pub(super) fn crates(release: &Release<'_>, target: &Path) -> Result<(), Failure> {
    for package in package::make(release.root, target)? {
        let file = package.file(target);
        let name = file.file_name().ok_or("a crate's file has no name")?;
        copy(&file, &release.out.join(name))?;
    }
    Ok(())
}

/// Name, version and licence of each crate that is linked into what `package` makes.
///
/// # Errors
/// In words.
pub(super) fn licences(root: &Path, package: &str) -> Result<String, Failure> {
    let mut cargo = Command::new("cargo");
    cargo.args(["tree", "--locked", "-p", package, "--edges", "normal", "--prefix", "none"]);
    let text = output(cargo.args(["--format", "{p}\t{l}\t{r}"]).current_dir(root))?;
    let lines: BTreeSet<String> = String::from_utf8_lossy(&text).lines().filter_map(of_others).collect();
    let head = "Crates of others that are linked into these files, with their licences and where their source is.\n\n";
    Ok(head.to_string() + &lines.into_iter().map(|line| line + "\n").collect::<String>())
}

/// The line of a crate, unless it is the workspace's own (whose path is after its name).
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
    fn crates_of_others_have_their_licence() {
        let line = "serde v1.0.1\tMIT OR Apache-2.0\thttps://example.org/serde (*)";
        assert_eq!(of_others(line).unwrap(), "serde v1.0.1: MIT OR Apache-2.0; https://example.org/serde");
        assert_eq!(of_others("highwater v0.1.0 (/somewhere/crates/engine)\tMIT\t"), None);
        assert_eq!(of_others(""), None);
    }
}
