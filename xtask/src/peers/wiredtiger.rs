//! WiredTiger's library, compiled from the source that its vendor publishes.
//!
//! Rules
//! 1. The source is the package for Python, which Python's pip fetches; `crates/peers/wiredtiger.txt` says which
//!    version, and the checksum that pip compares.
//! 2. The library is static, and of the build type `Release`: without a type WiredTiger is built with its diagnostics.
//! 3. The folder is complete or created again: its last file is a copy of what `wiredtiger.txt` said.

use crate::process::{finish, write};
use crate::tools;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the library is built. No Python, no compressor that happens to be installed.
const OPTIONS: &[&str] = &[
    "-DCMAKE_BUILD_TYPE=Release",
    "-DENABLE_STATIC=1",
    "-DENABLE_SHARED=0",
    "-DENABLE_STRICT=0",
    "-DENABLE_PYTHON=0",
    "-DENABLE_MEMKIND=0",
    "-DENABLE_LZ4=0",
    "-DENABLE_SNAPPY=0",
    "-DENABLE_ZLIB=0",
    "-DENABLE_ZSTD=0",
    "-DENABLE_CPPSUITE=0",
    "-DENABLE_MODEL=0",
];

/// The folder with `libwiredtiger.a` and `include/wiredtiger.h`, which are made in `made` unless they are there.
///
/// # Errors
/// The first failure.
pub(super) fn ensure(peers: &Path, made: &Path) -> Result<PathBuf, String> {
    let requirement = peers.join("wiredtiger.txt");
    let wanted = std::fs::read(&requirement).map_err(|error| format!("{}: {error}", requirement.display()))?;
    let (build, kept) = (made.join("build"), made.join("made-from.txt"));
    if std::fs::read(&kept).is_ok_and(|kept| kept == wanted) {
        return Ok(build);
    }
    tools::ensure_python()?;
    tools::ensure_program("cmake", "cmake")?;
    tools::ensure_program("make", "make")?;
    if made.exists() {
        std::fs::remove_dir_all(made).map_err(|error| format!("{}: {error}", made.display()))?;
    }
    let source = made.join("source");
    unpack(&requirement, made, &source)?;
    let mut configure = Command::new("cmake");
    finish(configure.arg("-S").arg(&source).arg("-B").arg(&build).args(OPTIONS))?;
    let jobs = std::thread::available_parallelism().map_or(1, |jobs| jobs.get()).to_string();
    let mut compile = Command::new("cmake");
    finish(compile.arg("--build").arg(&build).args(["--target", "wiredtiger_static", "--parallel", &jobs]))?;
    write(&kept, wanted)?;
    Ok(build)
}

/// Fetches the source and unpacks it.
fn unpack(requirement: &Path, made: &Path, source: &Path) -> Result<(), String> {
    let (environment, fetched) = (made.join("python"), made.join("fetched"));
    finish(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let mut fetch = Command::new(environment.join("bin/python"));
    fetch.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    fetch.args(["--no-binary", "wiredtiger", "--require-hashes", "--requirement"]).arg(requirement);
    finish(fetch.arg("--dest").arg(&fetched))?;
    std::fs::create_dir_all(source).map_err(|error| format!("{}: {error}", source.display()))?;
    let archive = crate::python::the_file(&fetched)?;
    let mut unpack = Command::new("tar");
    finish(unpack.args(["--extract", "--strip-components=1", "--directory"]).arg(source).arg("--file").arg(archive))
}
