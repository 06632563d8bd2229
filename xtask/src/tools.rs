//! Programs that the tests need in addition to the toolchain.
//!
//! Rule: what is missing is installed where that is possible without asking (root on a system with apt); elsewhere the
//! failure says what to install.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Program, the arguments that show it runs, Debian's package.
const TOOLS: &[(&str, &str, &str)] = &[
    ("strace", "-V", "strace"),
    // Of programs in C and C++ that use the library.
    ("pkg-config", "--version", "pkgconf"),
    ("c++", "--version", "g++"),
    ("readelf", "--version", "binutils"),
];
/// The programs for the tests that mount.
const MOUNT_TOOLS: &[(&str, &str, &str)] =
    &[("mkfs.xfs", "-V", "xfsprogs"), ("mkfs.btrfs", "--version", "btrfs-progs")];

/// Makes sure every tool is there, with `mounts` those too that make file systems.
pub(crate) fn ensure(mounts: bool) -> Result<(), String> {
    let for_mounts = MOUNT_TOOLS.iter().filter(|_| mounts);
    TOOLS.iter().chain(for_mounts).try_for_each(|(program, argument, package)| ensure_one(program, argument, package))
}

/// Makes sure a C++ compiler is there, which the fuzzing targets are built with.
pub(crate) fn ensure_cxx() -> Result<(), String> {
    ensure_one("c++", "--version", "g++")
}

/// Makes sure libclang is there with its headers: crates read the headers of a C library with it.
pub(crate) fn ensure_libclang() -> Result<(), String> {
    if has_libclang() || (install("libclang-dev") && has_libclang()) {
        return Ok(());
    }
    let get = "get it with: apt-get install libclang-dev, or name its folder in LIBCLANG_PATH";
    Err(format!("libclang.so is not installed; {get}"))
}

/// The file without a version belongs to the package that has the headers.
fn has_libclang() -> bool {
    let mut folders: Vec<PathBuf> = std::env::var_os("LIBCLANG_PATH").map(PathBuf::from).into_iter().collect();
    folders.extend(["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from));
    let below = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    folders.extend(below.flat_map(|folder| [folder.join("lib"), folder]));
    folders.iter().any(|folder| folder.join("libclang.so").exists())
}

/// Makes sure a program of a Debian package is there.
pub(crate) fn ensure_program(program: &str, package: &str) -> Result<(), String> {
    ensure_one(program, "--version", package)
}

/// Makes sure valgrind is there, and what finds the source of an instruction.
pub(crate) fn ensure_valgrind() -> Result<(), String> {
    let tools = [("valgrind", "valgrind"), ("addr2line", "binutils"), ("nm", "binutils")];
    tools.iter().try_for_each(|(program, package)| ensure_one(program, "--version", package))
}

/// Whether Debian's packages can be made here.
pub(crate) fn packages_for_debian() -> bool {
    ["dpkg-deb", "dpkg-shlibdeps"].iter().all(|program| runs(program, &["--version"]))
}

/// Makes sure Python is there, and can make virtual environments with pip in them.
pub(crate) fn ensure_python() -> Result<(), String> {
    let works = || runs("python3", &["-c", "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 9))"]);
    if works() || (install("python3-venv") && works()) {
        return Ok(());
    }
    Err("there is no Python 3.9 or later that makes virtual environments; get it with: apt-get install python3-venv"
        .to_string())
}

fn ensure_one(program: &str, argument: &str, package: &str) -> Result<(), String> {
    if runs(program, &[argument]) || (install(package) && runs(program, &[argument])) {
        return Ok(());
    }
    Err(format!("{program} is not installed; get it with: apt-get install {package}"))
}

fn install(package: &str) -> bool {
    let install = ["install", "--yes", "--no-install-recommends", package];
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    is_root && (runs("apt-get", &install) || (runs("apt-get", &["update"]) && runs("apt-get", &install)))
}

fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    let quiet = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_enough_and_what_is_not_is_named() {
        ensure_one("cargo", "--version", "cargo").unwrap();
        let failure = ensure_one("no-such-program", "-V", "no-such-package-anywhere").unwrap_err();
        assert!(failure.contains("apt-get install no-such-package-anywhere"), "{failure}");
    }
}
