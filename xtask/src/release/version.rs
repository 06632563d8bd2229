//! Whether what says which version this is agrees: the workspace, the CHANGELOG, the commit's tag.

use super::Failure;
use crate::process::output;
use std::path::Path;
use std::process::Command;

/// The version of the workspace.
///
/// # Errors
/// Its manifest cannot be read, or has none.
pub(super) fn of_workspace(root: &Path) -> Result<String, Failure> {
    let manifest = read(root, "Cargo.toml")?;
    let package = manifest.split("[workspace.package]").nth(1).unwrap_or_default();
    let version = package.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.map(String::from).ok_or_else(|| "Cargo.toml: no version in [workspace.package]".to_string())
}

/// Seconds since 1970 of the commit.
///
/// # Errors
/// There is none.
pub(super) fn date(root: &Path) -> Result<u64, Failure> {
    let text = git(root, &["log", "-1", "--format=%ct"])?;
    text.trim().parse().map_err(|error| format!("git log: {text:?}: {error}"))
}

/// Refuses a release whose tag or CHANGELOG is another version's, or whose checkout has changes.
///
/// # Errors
/// What differs, and what to do.
pub(super) fn must_agree(root: &Path, version: &str, is_tagged: bool) -> Result<(), Failure> {
    if is_tagged {
        let changed = git(root, &["status", "--porcelain"])?;
        if let Some(first) = changed.lines().next() {
            return Err(format!("the checkout has changes ({first}); commit them first"));
        }
        tags_agree(&git(root, &["tag", "--points-at", "HEAD"])?, version)?;
    }
    changelog_agrees(&read(root, "CHANGELOG.md")?, version, is_tagged)
}

fn tags_agree(tags: &str, version: &str) -> Result<(), Failure> {
    let wanted = format!("v{version}");
    match tags.lines().find(|tag| tag.starts_with('v')) {
        Some(tag) if tag == wanted => Ok(()),
        Some(tag) => Err(format!("the commit is tagged {tag}, but Cargo.toml says version {version}")),
        None => Err(format!("the commit has no tag; make it with: git tag {wanted} (or try with --untagged)")),
    }
}

/// The newest heading is that of this version, `## 0.1.0 (DATE)`; before the tag it may be `## Unreleased: 0.1, ...`.
fn changelog_agrees(changelog: &str, version: &str, is_tagged: bool) -> Result<(), Failure> {
    let heading = changelog.lines().find_map(|line| line.strip_prefix("## ")).unwrap_or_default();
    let (released, coming) = (heading.split(' ').next(), heading.strip_prefix("Unreleased: "));
    let coming = coming.map(|rest| rest.split([',', ' ']).next().unwrap_or_default());
    let is_coming = coming.is_some_and(|coming| version == coming || version.strip_suffix(".0") == Some(coming));
    match released == Some(version) || is_coming && !is_tagged {
        true => Ok(()),
        false => Err(format!(
            "CHANGELOG.md begins with \"{heading}\"; the heading of this release is \"## {version} (YEAR-MONTH-DAY)\""
        )),
    }
}

fn read(root: &Path, name: &str) -> Result<String, Failure> {
    std::fs::read_to_string(root.join(name)).map_err(|error| format!("{name}: {error}"))
}

fn git(root: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let text = output(Command::new("git").args(arguments).current_dir(root))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_this_versions_or_says_what_to_do() {
        assert_eq!(tags_agree("v0.1.0\n", "0.1.0"), Ok(()));
        assert_eq!(tags_agree("nightly\nv0.1.0\n", "0.1.0"), Ok(()));
        assert!(
            tags_agree("v0.2.0\n", "0.1.0").unwrap_err().contains("tagged v0.2.0, but Cargo.toml says version 0.1.0")
        );
        assert!(tags_agree("", "0.1.0").unwrap_err().contains("git tag v0.1.0"));
    }

    #[test]
    fn the_changelog_begins_with_this_version() {
        let agrees = |heading: &str, is_tagged| {
            changelog_agrees(&format!("# Changelog\n\n## {heading}\n\n## 0.0.9\n"), "0.1.0", is_tagged).is_ok()
        };
        assert!(agrees("0.1.0 (2026-12-01)", true) && agrees("0.1.0 (2026-12-01)", false));
        assert!(agrees("Unreleased: 0.1, the first version", false));
        for wrong in ["Unreleased: 0.1, the first version", "0.1.1 (2026-12-01)", "0.1", ""] {
            assert!(!agrees(wrong, true), "{wrong}");
        }
        assert!(!agrees("Unreleased: 0.2", false) && !agrees("0.0.9", false));
    }

    #[test]
    fn this_checkout_has_a_version_a_date_and_a_changelog_of_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let version = of_workspace(&root).unwrap();
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
        assert!(date(&root).unwrap() > 1_700_000_000);
        must_agree(&root, &version, false).unwrap();
    }
}
