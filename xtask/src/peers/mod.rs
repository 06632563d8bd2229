//! `cargo xtask peers-build` and `peers-test`: the crate that compares Highwater with other storage engines.
//!
//! Rules
//! 1. The crate is no member of the workspace and has its own lock file: a build of the project never compiles another
//!    engine. Its programs are in `target/peers`, where the laboratory looks for them.
//! 2. Every engine is compiled, optimized, in the version that the crate pins: RocksDB from a crate, which is most of
//!    the first build's time, WiredTiger from its vendor's source ([`wiredtiger`]). What that takes is installed where
//!    that is possible without asking; elsewhere the failure names it. `--without NAME` leaves one of the two out.
//! 3. The workspace's format and lints do not reach the crate: its tests begin with its own. All is built with one
//!    profile, so that RocksDB is compiled once.

mod wiredtiger;

use crate::process::finish;
use crate::tools;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Engines that can be left out: features of the crate.
const FEATURES: [&str; 2] = ["rocksdb", "wiredtiger"];

/// Builds the program.
///
/// # Errors
/// The first failure.
pub(crate) fn build(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let build = Build::prepare(root, &wanted(arguments)?)?;
    build.cargo(&["build", "--release"], &[])?;
    println!("built highwater-peers, which highwater lab run peers starts");
    Ok(())
}

/// Checks the crate's format and lints, and runs the tests that every engine must pass.
///
/// # Errors
/// The first failure.
pub(crate) fn test(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let wanted = wanted(arguments)?;
    finish(Command::new("cargo").args(["fmt", "--check"]).current_dir(folder(root)))?;
    let build = Build::prepare(root, &wanted)?;
    build.cargo(&["clippy", "--release", "--all-targets"], &["--", "-D", "warnings"])?;
    build.cargo(&["test", "--release"], &[])
}

/// The features that `--without NAME` leaves.
fn wanted(arguments: &[&str]) -> Result<Vec<&'static str>, String> {
    let mut wanted = FEATURES.to_vec();
    for pair in arguments.chunks(2) {
        match *pair {
            ["--without", name] if FEATURES.contains(&name) => wanted.retain(|feature| *feature != name),
            _ => return Err(format!("{}: give --without {}", pair.join(" "), FEATURES.join(" or --without "))),
        }
    }
    Ok(wanted)
}

/// The crate's own configuration is read from its folder.
fn folder(root: &Path) -> PathBuf {
    root.join("crates/peers")
}

/// What a build is given.
struct Build {
    folder: PathBuf,
    target: PathBuf,
    features: String,
    wiredtiger: Option<PathBuf>,
}

impl Build {
    /// Installs and makes what the features need.
    fn prepare(root: &Path, features: &[&str]) -> Result<Build, String> {
        tools::ensure_cxx()?;
        if features.contains(&"rocksdb") {
            tools::ensure_libclang()?;
        }
        let target = crate::process::target(root)?.join("peers");
        let folder = folder(root);
        let wiredtiger = match features.contains(&"wiredtiger") {
            true => Some(wiredtiger::ensure(&folder, &target.join("wiredtiger"))?),
            false => None,
        };
        Ok(Build { folder, target, features: features.join(","), wiredtiger })
    }

    fn cargo(&self, verb: &[&str], last: &[&str]) -> Result<(), String> {
        let mut command = Command::new("cargo");
        command.args(verb).args(["--locked", "--no-default-features", "--features", &self.features]);
        command.envs(self.wiredtiger.iter().map(|library| ("WIREDTIGER_DIR", library)));
        command.arg("--target-dir").arg(&self.target).args(last);
        finish(command.current_dir(&self.folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_left_out_when_that_is_asked_for() {
        assert_eq!(wanted(&[]).unwrap(), ["rocksdb", "wiredtiger"]);
        assert_eq!(wanted(&["--without", "rocksdb"]).unwrap(), ["wiredtiger"]);
        assert!(wanted(&["--without", "rocksdb", "--without", "wiredtiger"]).unwrap().is_empty());
        for wrong in [&["--without"][..], &["--without", "lmdb"], &["--with", "rocksdb"]] {
            let failure = wanted(wrong).unwrap_err();
            assert!(failure.ends_with(": give --without rocksdb or --without wiredtiger"), "{failure}");
        }
    }
}
