//! `cargo xtask compare-build` and `compare-test`: the crate that compares Highwater with other storage engines.
//!
//! Rules
//! 1. The crate is no member of the workspace and has its own lock file: a build of the project never compiles another
//!    engine. Its programs lie in `target/compare`, where the laboratory looks for them.
//! 2. RocksDB and WiredTiger come from Debian's packages: a build of RocksDB takes longer than everything else
//!    together. Where they are not installed they are left out, and a line says so.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Feature of the crate, a file that shows that its library is there, Debian's packages.
const LIBRARIES: &[(&str, &str, &str)] = &[
    ("rocksdb", "/usr/include/rocksdb/c.h", "librocksdb-dev libclang-dev"),
    ("wiredtiger", "/usr/include/wiredtiger.h", "libwiredtiger-dev"),
];

/// Builds the program.
pub fn build(root: &Path) -> Result<(), String> {
    cargo(root, "build")?;
    println!("built highwater-compare, which highwater lab run peers starts");
    Ok(())
}

/// Runs the tests that every engine must pass.
pub fn test(root: &Path) -> Result<(), String> {
    cargo(root, "test")
}

fn cargo(root: &Path, verb: &str) -> Result<(), String> {
    let there = |(_, file, _): &&(&str, &str, &str)| Path::new(file).exists();
    for (name, file, packages) in LIBRARIES.iter().filter(|library| !there(library)) {
        println!("left out: {name} (no {file}); get it with: apt-get install {packages}");
    }
    let features: Vec<&str> = LIBRARIES.iter().filter(there).map(|(name, ..)| *name).collect();
    let mut command = Command::new("cargo");
    command.args([verb, "--release", "--no-default-features", "--features", &features.join(",")]);
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    command.arg("--target-dir").arg(target.join("compare"));
    // The crate's own configuration is read from its folder.
    command.current_dir(root.join("crates/compare")).stdin(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}
