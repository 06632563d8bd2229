//! `cargo xtask python`: the wheel for Python, built, installed in a fresh virtual environment and tested there. And
//! the wheel of a release, optimized, which is not tested again.
//!
//! Rules
//! 1. The crate is no member of the workspace and has its own lock file: a build of the project needs no Python. The
//!    workspace's format and lints do not reach it: its tests begin with its own.
//! 2. What is tested is the wheel that was built, not the folder of its source: tests run in another folder, with an
//!    environment that has nothing else of the project.
//! 3. All that is made is below `target/python`.

use crate::process::{self, finish};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the wheel and runs its tests.
///
/// # Errors
/// The first failure.
pub(crate) fn test(root: &Path) -> Result<(), String> {
    crate::tools::ensure_python()?;
    let target = process::target(root)?.join("python");
    let source = root.join("python").canonicalize().map_err(|error| format!("python: {error}"))?;
    let (environment, wheels) = (target.join("environment"), target.join("wheels"));
    for made in [&environment, &wheels] {
        // Not there is as good as removed; what cannot be removed is met again below.
        let _ = std::fs::remove_dir_all(made);
    }
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new("cargo");
        finish(command.args(arguments).current_dir(&source).env("CARGO_TARGET_DIR", target.join("cargo")))
    };
    cargo(&["fmt", "--check"])?;
    cargo(&["clippy", "--locked", "--all-targets", "--", "-D", "warnings"])?;
    finish(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let python = environment.join("bin/python");
    let pip = |arguments: &[&Path]| {
        let mut command = Command::new(&python);
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(arguments);
        finish(&mut command)
    };
    pip(&[Path::new("--requirement"), &source.join("tests/requirements.txt")])?;
    let mut build = Command::new(environment.join("bin/maturin"));
    build.args(["build", "--locked", "--profile", "dev", "--out"]).arg(&wheels);
    finish(build.current_dir(&source).env("CARGO_TARGET_DIR", target.join("cargo")))?;
    pip(&[&the_file(&wheels)?])?;
    let mut tests = Command::new(&python);
    // No caches in the source.
    tests.args(["-B", "-m", "pytest", "-p", "no:cacheprovider"]).arg(source.join("tests"));
    finish(tests.current_dir(&target))
}

/// Builds the wheel of a release into the folder `out`.
///
/// # Errors
/// The first failure.
pub(crate) fn release_wheel(root: &Path, out: &Path) -> Result<(), String> {
    crate::tools::ensure_python()?;
    let target = process::target(root)?.join("python");
    let environment = target.join("release-environment");
    finish(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let requirements = root.join("python/tests/requirements.txt");
    let list =
        std::fs::read_to_string(&requirements).map_err(|error| format!("{}: {error}", requirements.display()))?;
    let maturin = list.lines().find(|line| line.starts_with("maturin")).unwrap_or("maturin");
    let mut install = Command::new(environment.join("bin/python"));
    finish(install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", maturin]))?;
    let mut build = Command::new(environment.join("bin/maturin"));
    build.args(["build", "--locked", "--release", "--strip", "--out"]).arg(out).current_dir(root.join("python"));
    finish(build.env("CARGO_TARGET_DIR", target.join("cargo")))
}

/// The one file of a folder.
///
/// # Errors
/// There is none, or there are several.
pub(crate) fn the_file(folder: &Path) -> Result<PathBuf, String> {
    let text = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(text)?.collect::<Result<Vec<_>, _>>().map_err(text)?;
    match &entries[..] {
        [file] => Ok(file.path()),
        others => Err(format!("{}: {} files, not one", folder.display(), others.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_the_one_file_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert!(the_file(folder.path()).unwrap_err().ends_with("0 files, not one"));
        std::fs::write(folder.path().join("a.whl"), "").unwrap();
        assert_eq!(the_file(folder.path()), Ok(folder.path().join("a.whl")));
        std::fs::write(folder.path().join("b.whl"), "").unwrap();
        assert!(the_file(folder.path()).is_err());
    }
}
