//! `cargo xtask targets`: the library on other systems than this one.
//!
//! Rules
//! 1. Files go through the portable backend on this machine too (`--cfg highwater_portable`), and tests run over it.
//! 2. For each target the library is checked; where this machine can run its programs, the tests of the crate for files
//!    and a small program over the library run, under an emulator if necessary, and where it needs none, the engine's
//!    tests of [`ENGINE_TESTS`] too. A line for each says which.
//! 3. The standard library of a target is a package of Debian's, or is built of its source ([`toolchain`]). Where there
//!    is no apt the targets are left out, and a line says so.
//! 4. What is built is in folders of its own.

mod toolchain;

use crate::package::{PROGRAM, take_versions};
use crate::process::{self, finish, write};
use crate::tools;
use std::path::Path;
use std::process::Command;

/// What is done for a target besides the check of the library.
struct Target {
    name: &'static str,
    /// The C compiler, and Debian's package of it. Without one the feature `zstd` is left out.
    c_compiler: Option<(&'static str, &'static str)>,
    /// What runs its programs.
    runner: Option<&'static str>,
    /// Whether that is no emulator.
    is_native: bool,
    /// There is no package of its standard library.
    is_built_of_source: bool,
}

const TARGETS: &[Target] = &[
    Target {
        name: "i686-unknown-linux-gnu",
        c_compiler: Some(("i686-linux-gnu-gcc", "gcc-i686-linux-gnu")),
        runner: Some("/usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib"),
        is_native: true,
        is_built_of_source: false,
    },
    Target {
        name: "aarch64-unknown-linux-gnu",
        c_compiler: Some(("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")),
        runner: Some("qemu-aarch64 -L /usr/aarch64-linux-gnu"),
        is_native: false,
        is_built_of_source: false,
    },
    Target {
        name: "x86_64-unknown-linux-musl",
        c_compiler: Some(("musl-gcc", "musl-tools")),
        runner: None,
        is_native: false,
        is_built_of_source: true,
    },
    Target {
        name: "x86_64-pc-windows-gnu",
        c_compiler: Some(("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64")),
        runner: None,
        is_native: false,
        is_built_of_source: true,
    },
    Target { name: "aarch64-apple-darwin", c_compiler: None, runner: None, is_native: false, is_built_of_source: true },
];

/// Unit tests of the engine that run over the portable backend, here and on other targets: files, pages on them, redo,
/// recovery, backups, sockets.
const ENGINE_TESTS: [&str; 8] = [
    "backup::take",
    "db::db_test::file_generations",
    "db::db_test::two_phases",
    "db::readers",
    "log::format",
    "recovery::recovery_test",
    "store::in_place::journal",
    "store::out_of_place::codec",
];

/// The tests of the crate for files.
const OF_FILES: [&str; 3] = ["--package", "highwater-storage", "--lib"];

/// This machine, over the portable backend (rule 1), where targets are named.
const PORTABLE: &str = "portable";

/// Checks every target that can be checked here, or those that are named.
///
/// # Errors
/// In words: the command that failed; a name that is no target's.
pub(crate) fn run(root: &Path, names: &[&str]) -> Result<(), String> {
    let all = || std::iter::once(PORTABLE).chain(TARGETS.iter().map(|target| target.name));
    if let Some(unknown) = names.iter().find(|name| all().all(|known| known != **name)) {
        return Err(format!("{unknown} is not among the targets: {}", all().collect::<Vec<_>>().join(", ")));
    }
    let is_wanted = |name: &str| names.is_empty() || names.contains(&name);
    let folder = process::target(root)?.join("targets");
    if is_wanted(PORTABLE) {
        portable(root, &folder)?;
    }
    if !toolchain::can_be_made() {
        println!("left out: other targets, whose standard libraries come from Debian's packages for x86_64");
        return Ok(());
    }
    let compiler = toolchain::compiler(&folder.join("toolchain"))?;
    TARGETS
        .iter()
        .filter(|target| is_wanted(target.name))
        .try_for_each(|target| check(root, &folder, &compiler, target))
}

/// Rule 1.
fn portable(root: &Path, folder: &Path) -> Result<(), String> {
    for arguments in [OF_FILES.to_vec(), of_engine()] {
        let mut command = cargo(root, &folder.join("portable"));
        command.env("RUSTFLAGS", "--cfg highwater_portable").arg("test").arg("--quiet").args(arguments);
        finish(&mut command)?;
    }
    println!("portable backend on this machine: tests passed");
    Ok(())
}

/// What runs [`ENGINE_TESTS`].
fn of_engine() -> Vec<&'static str> {
    [&["--package", "highwater", "--lib", "--"][..], &ENGINE_TESTS].concat()
}

/// Rule 2.
fn check(root: &Path, folder: &Path, compiler: &Path, target: &Target) -> Result<(), String> {
    let mut base = cargo(root, &folder.join("build"));
    base.env("RUSTC", compiler);
    if let Some((program, package)) = target.c_compiler {
        tools::ensure_program(program, package)?;
        let name = target.name.replace('-', "_");
        base.env(format!("CC_{name}"), program);
        base.env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), program);
        if let Some(runner) = target.runner {
            base.env(format!("CARGO_TARGET_{}_RUNNER", name.to_uppercase()), runner);
        }
    }
    let Some(runner) = target.runner else {
        let mut command = base;
        command.args(["check", "--quiet", "--package", "highwater", "--lib", "--target", target.name]);
        if target.is_built_of_source {
            // A stable cargo builds the standard library only with an option that allows it.
            command.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_abort");
        }
        if target.c_compiler.is_none() {
            command.args(["--no-default-features", "--features", "lz4"]);
        }
        finish(&mut command)?;
        println!("{}: the library is checked", target.name);
        return Ok(());
    };
    if runner.starts_with("qemu") {
        tools::ensure_program("qemu-aarch64", "qemu-user")?;
    }
    let again = || {
        let mut command = cargo(root, &folder.join("build"));
        command.envs(base.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    };
    finish(again().args(["test", "--quiet", "--target", target.name]).args(OF_FILES))?;
    if target.is_native {
        finish(again().args(["test", "--quiet", "--target", target.name]).args(of_engine()))?;
    }
    let program = folder.join("program");
    make_program(root, &program)?;
    let databases = ["plain", "packed"].map(|name| program.join(name));
    for database in &databases {
        let _ = std::fs::remove_dir_all(database);
    }
    let mut command = again();
    command.args(["run", "--quiet", "--target", target.name, "--"]).args(databases).current_dir(&program);
    finish(&mut command)?;
    println!("{}: tests and a program passed", target.name);
    Ok(())
}

/// A program of its own that uses the library in the source tree.
fn make_program(root: &Path, folder: &Path) -> Result<(), String> {
    let engine = std::path::absolute(root.join("crates/engine")).map_err(|error| error.to_string())?;
    let manifest = format!(
        "[package]\nname = \"program\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [dependencies]\nhighwater = {{ path = {engine:?} }}\n"
    );
    write(&folder.join("Cargo.toml"), manifest.as_bytes())?;
    write(&folder.join("src/main.rs"), PROGRAM.as_bytes())?;
    take_versions(root, folder)
}

fn cargo(root: &Path, target: &Path) -> Command {
    let mut command = Command::new("cargo");
    // The versions in the lock file are those of every target.
    command.current_dir(root).env("CARGO_TARGET_DIR", target).env("HIGHWATER_TEST_PART", "0/4");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter that names no test would pass for one whose tests pass.
    #[test]
    fn each_name_of_tests_is_that_of_a_module() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/engine/src");
        for name in ENGINE_TESTS {
            let path = source.join(name.replace("::", "/"));
            assert!(path.is_dir() || path.with_extension("rs").is_file(), "{name}");
        }
    }
}
