//! `cargo xtask miri` and `cargo xtask tsan`: the engine's tests under tools that see what tests do not: undefined
//! behaviour, and data races.
//!
//! Rules
//! 1. Both need a nightly toolchain with components that are not always there. What is missing is named, with the
//!    command that installs it; nothing is installed unasked.
//! 2. Each builds into a folder of its own within the target folder, and leaves other builds alone.
//! 3. What a tool cannot run is left out here, with the reason, not in the tests.

use crate::process::finish;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A component of the nightly toolchain, and a file of it below the toolchain's root.
const MIRI: (&str, &str) = ("miri", "bin/cargo-miri");
const SOURCE: (&str, &str) = ("rust-src", "lib/rustlib/src/rust/library/std/Cargo.toml");

/// What Miri runs: parts with `unsafe`, or with threads, that need no file. It is a few hundred times slower than the
/// processor; the rest takes it hours.
const UNDER_MIRI: &[&str] = &[
    "sync::sync_test::latch::",
    "pool::flush::list",
    "pool::frames::frame::",
    "pool::frames::frames_test::a_reader",
    "pool::frames::optimistic",
    "lock::deadlock",
    "lock::lock_test::a_cycle",
    "lock::lock_test::a_free_row",
    "lock::lock_test::readers",
    "lock::lock_test::stopping",
    "lock::lock_test::a_row_holder",
];

/// What ThreadSanitizer runs: tests in which threads work concurrently with each other.
const UNDER_TSAN: &[&str] = &[
    "_test::threads",
    "_test::group_commit",
    "_test::lock_wait",
    "_test::merging",
    "_test::reservations",
    "many_threads",
    "pool_test::",
    "shared_sync",
    "sync_test::latch::",
    "lock::lock_test::",
];

/// Left out: schedules are loom's matter, and it makes its own.
const NOT_UNDER_TSAN: &[&str] = &["_model::"];

/// Races that are meant: reads without a latch, which count only when the version is confirmed afterwards. The order
/// that this needs is checked by loom (`crates/engine/src/sync/sync_test/latch_model.rs`).
const MEANT: &str = "race:OptimisticPage\nrace:frames::optimistic\n";

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs [`UNDER_MIRI`] under Miri.
///
/// # Errors
/// In words: what to install, or that a test failed.
pub(crate) fn miri(root: &Path) -> Result<(), String> {
    need(&[MIRI, SOURCE])?;
    let mut command = cargo(root, "miri");
    command.args(["miri", "test", "--package", "highwater", "--lib", "--"]).args(UNDER_MIRI);
    // Files are the system's; a latch's address is its name for parked threads.
    command.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-permissive-provenance");
    finish(&mut command)
}

/// Runs [`UNDER_TSAN`] under ThreadSanitizer.
///
/// # Errors
/// As [`miri`].
pub(crate) fn tsan(root: &Path) -> Result<(), String> {
    need(&[SOURCE])?;
    let meant = target(root, "tsan").join("meant.txt");
    let text = |error: std::io::Error| format!("{}: {error}", meant.display());
    std::fs::create_dir_all(target(root, "tsan")).and_then(|()| std::fs::write(&meant, MEANT)).map_err(text)?;
    let mut command = cargo(root, "tsan");
    command.args(["test", "-Zbuild-std", "--target", TARGET, "--package", "highwater", "--lib", "--"]);
    command.args(UNDER_TSAN);
    command.args(NOT_UNDER_TSAN.iter().flat_map(|left_out| ["--skip", left_out]));
    command.env("RUSTFLAGS", "-Zsanitizer=thread");
    command.env("TSAN_OPTIONS", format!("suppressions={} history_size=4", meant.display()));
    finish(&mut command)
}

/// An error that says how to get what is not there of the nightly toolchain.
fn need(components: &[(&str, &str)]) -> Result<(), String> {
    let rustc = Command::new("rustc").args(["+nightly", "--print", "sysroot"]).stderr(Stdio::null()).output();
    let Some(sysroot) = rustc.ok().filter(|output| output.status.success()) else {
        return Err("there is no nightly toolchain; get it with: rustup toolchain install nightly".to_string());
    };
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot.stdout).trim_end());
    missing(&sysroot, components)
}

fn missing(sysroot: &Path, components: &[(&str, &str)]) -> Result<(), String> {
    let missing: Vec<&str> =
        components.iter().filter(|(_, file)| !sysroot.join(file).exists()).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the nightly toolchain has no {0}; get it with: rustup component add --toolchain nightly {0}",
        missing.join(" ")
    ))
}

fn target(root: &Path, tool: &str) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join(tool)
}

fn cargo(root: &Path, tool: &str) -> Command {
    let mut command = Command::new("cargo");
    // What the cargo that runs this says of its own toolchain is not for the other one.
    command.arg("+nightly").env_remove("RUSTC").env_remove("RUSTDOC").env_remove("CARGO");
    command.current_dir(root).env("CARGO_TARGET_DIR", target(root, tool)).stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_command_that_gets_it() {
        let sysroot = tempfile::tempdir().unwrap();
        let failure = missing(sysroot.path(), &[MIRI, SOURCE]).unwrap_err();
        assert!(failure.ends_with("rustup component add --toolchain nightly miri rust-src"), "{failure}");
        std::fs::create_dir(sysroot.path().join("bin")).unwrap();
        std::fs::write(sysroot.path().join(MIRI.1), "").unwrap();
        missing(sysroot.path(), &[MIRI]).unwrap();
    }
}
