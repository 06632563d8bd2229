//! `cargo xtask compare-build` and `compare-test`: the crate that compares Highwater with other storage engines.
//!
//! Rules
//! 1. The crate is no member of the workspace and has its own lock file: a build of the project never compiles another
//!    engine. Its programs are in `target/compare`, where the laboratory looks for them.
//! 2. RocksDB and WiredTiger come from Debian's packages: a build of RocksDB takes longer than everything else
//!    together. Where they are not installed they are left out, and a line says so.
//! 3. The workspace's format and lints do not reach the crate: its tests begin with its own.

use crate::process::finish;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Feature of the crate, a file that shows that its library is there, Debian's packages.
const LIBRARIES: &[(&str, &str, &str)] = &[
    ("rocksdb", "/usr/include/rocksdb/c.h", "librocksdb-dev libclang-dev"),
    ("wiredtiger", "/usr/include/wiredtiger.h", "libwiredtiger-dev"),
];

/// Builds the program.
pub fn build(root: &Path) -> Result<(), String> {
    tell_what_is_left_out();
    cargo(root, &["build", "--release"], &[])?;
    println!("built highwater-compare, which highwater lab run peers starts");
    Ok(())
}

/// Checks the crate's format and lints, and runs the tests that every engine must pass.
pub fn test(root: &Path) -> Result<(), String> {
    tell_what_is_left_out();
    finish(Command::new("cargo").args(["fmt", "--check"]).current_dir(folder(root)))?;
    cargo(root, &["clippy", "--all-targets"], &["--", "-D", "warnings"])?;
    cargo(root, &["test", "--release"], &[])
}

/// The crate's own configuration is read from its folder.
fn folder(root: &Path) -> PathBuf {
    root.join("crates/compare")
}

fn is_there((_, file, _): &&(&str, &str, &str)) -> bool {
    Path::new(file).exists()
}

fn tell_what_is_left_out() {
    for (name, file, packages) in LIBRARIES.iter().filter(|library| !is_there(library)) {
        println!("left out: {name} (no {file}); get it with: apt-get install {packages}");
    }
}

fn cargo(root: &Path, verb: &[&str], last: &[&str]) -> Result<(), String> {
    let features: Vec<&str> = LIBRARIES.iter().filter(is_there).map(|(name, ..)| *name).collect();
    let target = crate::process::target(root)?;
    let mut command = Command::new("cargo");
    command.args(verb).args(["--no-default-features", "--features", &features.join(",")]);
    command.arg("--target-dir").arg(target.join("compare")).args(last);
    finish(command.current_dir(folder(root)))
}
