//! `cargo xtask package`: the files that the registry gets, and what is built of nothing else.
//!
//! Rules
//! 1. Every crate that is not marked `publish = false` is packaged. Nothing is published. A release has the same files
//!    ([`make`]).
//! 2. What is built of the packages sees them alone, each unpacked into a folder: a small program, with the default
//!    features and without any, which runs, and meets then what the first has made; and the command `highwater`, which
//!    is checked only.
//! 3. The versions of other crates are those of the project's lock file.

use crate::process::{self, finish, write};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that makes databases and looks at them; see its head.
pub(crate) const PROGRAM: &str = include_str!("program.rs");
/// The program with the default features, which runs first.
const FIRST: &str = "default";
/// The crate of the command, which uses all others.
const COMMAND: &str = "highwater-cli";

/// A crate that is published.
pub(crate) struct Package {
    name: String,
    version: String,
}

impl Package {
    /// Its file, once [`make`] has made it.
    pub(crate) fn file(&self, target: &Path) -> PathBuf {
        target.join(format!("package/{}-{}.crate", self.name, self.version))
    }
}

/// Makes the files and builds of them.
///
/// # Errors
/// In words: what cannot be packaged, or does not build or run as a package.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let target = process::target(root)?;
    let packages = make(root, &target)?;
    let work = target.join("package/built");
    let unpacked = work.join("crates");
    let _ = std::fs::remove_dir_all(&unpacked);
    std::fs::create_dir_all(&unpacked).map_err(|error| format!("{}: {error}", unpacked.display()))?;
    for package in &packages {
        finish(Command::new("tar").arg("-xzf").arg(package.file(&target)).arg("-C").arg(&unpacked))?;
    }
    let patches = patches(&packages, &unpacked);
    for (name, features) in [(FIRST, "true"), ("no-features", "false")] {
        run_program(root, &work, name, features, &patches, &packages)?;
    }
    check_command(root, &work, &packages, &patches)?;
    packages.iter().for_each(|package| println!("{}", package.file(&target).display()));
    Ok(())
}

/// Makes the file of each crate that is published.
///
/// # Errors
/// In words: what cannot be packaged.
pub(crate) fn make(root: &Path, target: &Path) -> Result<Vec<Package>, String> {
    let packages = published(root)?;
    let mut command = Command::new("cargo");
    command.args(["package", "--no-verify", "--allow-dirty", "--locked", "--target-dir"]).arg(target);
    for package in &packages {
        command.args(["--package", &package.name]);
    }
    finish(command.current_dir(root))?;
    Ok(packages)
}

/// The crates of the workspace that may be published, as cargo lists them.
fn published(root: &Path) -> Result<Vec<Package>, String> {
    let mut command = Command::new("cargo");
    command.args(["metadata", "--format-version", "1", "--no-deps", "--locked"]).current_dir(root);
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = named(&metadata)?;
    match packages.iter().any(|package| package.name == COMMAND) {
        true => Ok(packages),
        false => Err(format!("{COMMAND} is not among the crates that are published")),
    }
}

/// `publish` is null for a crate that goes anywhere, an empty list for one that goes nowhere.
fn named(metadata: &Value) -> Result<Vec<Package>, String> {
    let all = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let published = all.iter().filter(|package| package["publish"] != Value::Array(Vec::new()));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    Ok(published.map(|package| Package { name: text(&package["name"]), version: text(&package["version"]) }).collect())
}

/// The part of a manifest that puts the unpacked crates in the place of the registry's.
fn patches(packages: &[Package], unpacked: &Path) -> String {
    let line = |Package { name, version }: &Package| {
        format!("{name} = {{ path = {:?} }}\n", unpacked.join(format!("{name}-{version}")))
    };
    format!("[patch.crates-io]\n{}", packages.iter().map(line).collect::<String>())
}

fn run_program(
    root: &Path,
    work: &Path,
    name: &str,
    default_features: &str,
    patches: &str,
    packages: &[Package],
) -> Result<(), String> {
    let version = packages.iter().find(|package| package.name == "highwater").map(|package| &package.version);
    let version = version.ok_or("highwater is not among the crates that are published")?;
    let manifest = format!(
        "[package]\nname = \"program-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nhighwater = {{ version = \"{version}\", default-features = {default_features} }}\n\n{patches}"
    );
    let folder = work.join(name);
    let database = folder.join("database");
    let packed = work.join("packed");
    for stale in [&folder, &packed].into_iter().take(if name == FIRST { 2 } else { 1 }) {
        let _ = std::fs::remove_dir_all(stale);
    }
    write(&folder.join("Cargo.toml"), manifest.as_bytes())?;
    write(&folder.join("src/main.rs"), PROGRAM.as_bytes())?;
    take_versions(root, &folder)?;
    let mut command = Command::new("cargo");
    command.args(["run", "--quiet", "--target-dir"]).arg(work.join("target")).arg("--").arg(database).arg(packed);
    finish(command.current_dir(&folder))
}

/// Checks the command as a package. The workspace around it is one of its own: cargo would otherwise look for one in
/// the folders above, and find the project's.
fn check_command(root: &Path, work: &Path, packages: &[Package], patches: &str) -> Result<(), String> {
    let package = packages.iter().find(|package| package.name == COMMAND).ok_or("no command")?;
    let manifest =
        format!("[workspace]\nresolver = \"3\"\nmembers = [\"crates/{COMMAND}-{}\"]\n\n{patches}", package.version);
    write(&work.join("Cargo.toml"), manifest.as_bytes())?;
    take_versions(root, work)?;
    let mut command = Command::new("cargo");
    command.args(["check", "--quiet", "--package", COMMAND, "--bins", "--target-dir"]).arg(work.join("target"));
    finish(command.current_dir(work))
}

/// Gives a package in `folder` the versions of rule 3.
///
/// # Errors
/// In words.
pub(crate) fn take_versions(root: &Path, folder: &Path) -> Result<(), String> {
    let lock = std::fs::read(root.join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    write(&folder.join("Cargo.lock"), &lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_that_go_nowhere_are_left_out() {
        let metadata = serde_json::json!({"packages": [
            {"name": "a", "version": "1.0.0", "publish": null},
            {"name": "b", "version": "1.0.0", "publish": []},
            {"name": "c", "version": "1.0.0", "publish": ["crates-io"]},
        ]});
        let names: Vec<String> = named(&metadata).unwrap().into_iter().map(|package| package.name).collect();
        assert_eq!(names, ["a", "c"]);
        assert!(named(&Value::Null).is_err());
    }

    #[test]
    fn every_package_has_a_readme_licences_and_what_a_registry_shows() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for Package { name, .. } in published(&root).unwrap() {
            let folder = name.strip_prefix("highwater-").unwrap_or("engine");
            let folder = root.join("crates").join(folder);
            let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            for key in ["description", "repository", "keywords", "categories", "license", "rust-version", "include"] {
                assert!(manifest.lines().any(|line| line.starts_with(key)), "{name} says no {key}");
            }
            for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
                assert!(folder.join(file).is_file(), "{name} has no {file}");
            }
        }
    }
}
