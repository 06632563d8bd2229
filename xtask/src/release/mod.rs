//! `cargo xtask release`: every file of a release, in `target/release-files`: the crates as cargo publishes them, an
//! archive of the program with its manual and completions, Debian's package of the same, an archive of the C API, the
//! wheel for Python, and the checksums of all.
//!
//! Rules
//! 1. A release is made from a clean checkout of the commit that has its tag: tag, version and CHANGELOG agree, or
//!    nothing is made. `--untagged` leaves out the tag and the clean checkout, for a try.
//! 2. What the program knows of itself (version, pages, completions) it is asked for.
//! 3. Dates in the files are the commit's, names and owners are the same everywhere: who makes the release again on the
//!    same system gets the same archive.

mod debian;
mod source;
mod version;

use crate::process::{self, finish, output, write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a part failed.
type Failure = String;

/// The package of the program, and that of the C API.
const PROGRAM: &str = "highwater-cli";
const C_API: &str = "highwater-capi";

/// Page and completion files of the program, relative to where a package is installed.
const MANUAL: &str = "share/man/man1";
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/highwater"),
    ("zsh", "share/zsh/vendor-completions/_highwater"),
    ("fish", "share/fish/vendor_completions.d/highwater.fish"),
];

/// What a release is made of.
struct Release<'r> {
    root: &'r Path,
    version: String,
    /// Seconds since 1970 of the commit.
    date: u64,
    program: PathBuf,
    out: PathBuf,
    /// How `dpkg-deb` compresses.
    compression: &'static [&'static str],
}

/// Makes every file.
///
/// # Errors
/// In words: what does not agree, or the command that failed.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let target = process::target(root)?;
    let out = target.join("release-files");
    let is_tagged = match arguments {
        [] => true,
        ["--untagged"] => false,
        ["--package", program] => return try_package(root, Path::new(program), &out),
        _ => return Err("cargo xtask release takes nothing, --untagged, or --package PROGRAM".to_string()),
    };
    let version = version::of_workspace(root)?;
    version::must_agree(root, &version, is_tagged)?;
    empty(&out)?;
    let mut build = Command::new("cargo");
    finish(build.args(["build", "--release", "--locked", "-p", PROGRAM, "-p", C_API]).current_dir(root))?;
    let program = target.join("release/highwater");
    let date = version::date(root)?;
    let release = Release { root, version, date, program, out, compression: &["-Zxz"] };
    source::crates(&release, &target)?;
    program_archive(&release)?;
    debian::package(&release)?;
    c_archive(&release)?;
    crate::python::release_wheel(root, &release.out)?;
    checksums(&release.out)
}

/// Debian's package of a program that is built, as [`run`] makes it but less compressed; what is in it is checked.
///
/// # Errors
/// In words.
pub(crate) fn try_package(root: &Path, program: &Path, out: &Path) -> Result<(), Failure> {
    let program = std::path::absolute(program).map_err(|error| error.to_string())?;
    empty(out)?;
    let (version, date) = (version::of_workspace(root)?, version::date(root)?);
    let release = Release { root, version, date, program, out: out.into(), compression: &["-Zgzip", "-z1"] };
    let file = debian::package(&release)?;
    debian::check(&file)
}

/// A folder with nothing in it.
fn empty(folder: &Path) -> Result<(), Failure> {
    let text = |error: std::io::Error| format!("{}: {error}", folder.display());
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(text(error)),
        _ => std::fs::create_dir_all(folder).map_err(text),
    }
}

/// The program, its pages and completions below a folder, as both the archive and Debian's package have them.
fn install(release: &Release<'_>, prefix: &Path) -> Result<(), Failure> {
    let program = prefix.join("bin/highwater");
    copy(&release.program, &program)?;
    finish(Command::new("strip").arg("--strip-unneeded").arg(&program))?;
    let pages = prefix.join(MANUAL);
    std::fs::create_dir_all(&pages).map_err(|error| format!("{}: {error}", pages.display()))?;
    finish(Command::new(&release.program).arg("man").arg("--all-to").arg(&pages))?;
    for (shell, file) in COMPLETIONS {
        write(&prefix.join(file), &output(Command::new(&release.program).args(["completions", shell]))?)?;
    }
    Ok(())
}

/// `highwater-VERSION-SYSTEM.tar.gz`: the program, its pages and completions, licences and README.
fn program_archive(release: &Release<'_>) -> Result<(), Failure> {
    archive(release, PROGRAM, "highwater", &["README.md", "CHANGELOG.md"], |folder| install(release, folder))
}

/// `highwater-c-VERSION-SYSTEM.tar.gz`: the C API's libraries, header and pkg-config file, licences and README.
fn c_archive(release: &Release<'_>) -> Result<(), Failure> {
    let built = release.program.parent().ok_or("the program is in no folder")?;
    archive(release, C_API, "highwater-c", &["crates/capi/README.md"], |folder| {
        let mut script = Command::new(release.root.join("scripts/install-capi"));
        finish(script.arg("--folder").arg(folder).arg("--built").arg(built))?;
        finish(
            Command::new("strip")
                .arg("--strip-debug")
                .args(["libhighwater.so", "libhighwater.a"].map(|library| folder.join("lib").join(library))),
        )
    })
}

/// An archive of what `fill` puts into a folder, with `documents`, our licences and those of what `package` links.
fn archive(
    release: &Release<'_>,
    package: &str,
    name: &str,
    documents: &[&str],
    fill: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let name = format!("{name}-{}-{}", release.version, system()?);
    let folder = release.out.join(&name);
    fill(&folder)?;
    for file in documents.iter().chain(&["LICENSE-MIT", "LICENSE-APACHE"]).map(Path::new) {
        copy(&release.root.join(file), &folder.join(file.file_name().unwrap_or_default()))?;
    }
    write(&folder.join("THIRD-PARTY"), source::licences(release.root, package)?.as_bytes())?;
    let (date, file) = (format!("--mtime=@{}", release.date), release.out.join(format!("{name}.tar.gz")));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", &date, "--use-compress-program", "gzip -9n"]);
    finish(tar.arg("-cf").arg(file).arg(&name).current_dir(&release.out))?;
    std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// The system that the compiler builds for, such as `x86_64-unknown-linux-gnu`.
fn system() -> Result<String, Failure> {
    let text = output(Command::new("rustc").arg("-vV"))?;
    let text = String::from_utf8_lossy(&text);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from).ok_or_else(|| "rustc -vV names no host".to_string())
}

/// `SHA256SUMS` of all files, by name.
fn checksums(out: &Path) -> Result<(), Failure> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(out).map_err(|error| format!("{}: {error}", out.display()))? {
        names.push(entry.map_err(|error| error.to_string())?.file_name());
    }
    names.sort();
    let sums = output(Command::new("sha256sum").args(&names).current_dir(out))?;
    write(&out.join("SHA256SUMS"), &sums)?;
    print!("{}", String::from_utf8_lossy(&sums));
    println!("in {}", out.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let text = |error: std::io::Error| format!("{} to {}: {error}", from.display(), to.display());
    to.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::copy(from, to)).map(drop).map_err(text)
}
