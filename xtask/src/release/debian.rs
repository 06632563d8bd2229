//! Debian's package of the program, by `dpkg-deb` alone.
//!
//! Rule: what it depends on is computed from the libraries that the program names (`dpkg-shlibdeps`).

use super::{COMPLETIONS, Failure, MANUAL, Release, copy, empty, install, source};
use crate::process::{finish, output, write};
use std::path::{Path, PathBuf};
use std::process::Command;

const MAINTAINER: &str = "Highwater <highwater@users.noreply.github.com>";
const HOMEPAGE: &str = "https://github.com/highwater-db/highwater";
const DESCRIPTION: &str = "\
transactional storage engine for flash: benchmarks, checks and tools
 The highwater command looks at databases of the embedded storage engine
 Highwater, checks, backs up, dumps and salvages them, imports and exports
 tables, runs benchmarks (TPC-C, sysbench, YCSB), and emulates solid-state
 drives and hard disks for them.
";
/// Where the package's own documents lie.
const DOCUMENTS: &str = "usr/share/doc/highwater";

/// Makes the package; returns its file.
///
/// # Errors
/// In words.
pub(super) fn package(release: &Release<'_>) -> Result<PathBuf, Failure> {
    let tree = release.out.join("debian");
    empty(&tree)?;
    install(release, &tree.join("usr"))?;
    documents(release, &tree)?;
    compress(&tree.join("usr").join(MANUAL))?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = String::from_utf8_lossy(&architecture).trim().to_string();
    let depends = depends(&tree)?;
    let control = control(&release.version, &architecture, &depends, installed_kib(&tree)?);
    write(&tree.join("DEBIAN/control"), control.as_bytes())?;
    let sums =
        output(Command::new("sh").args(["-c", "find usr -type f | LC_ALL=C sort | xargs md5sum"]).current_dir(&tree))?;
    write(&tree.join("DEBIAN/md5sums"), &sums)?;
    finish(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&tree))?;
    let file = release.out.join(format!("highwater_{}_{architecture}.deb", release.version));
    let mut build = Command::new("dpkg-deb");
    build.arg("--root-owner-group").args(release.compression).arg("--build").arg(&tree).arg(&file);
    finish(build.env("SOURCE_DATE_EPOCH", release.date.to_string()))?;
    std::fs::remove_dir_all(&tree).map_err(|error| format!("{}: {error}", tree.display()))?;
    Ok(file)
}

/// Looks at a package: what a user looks for is in it, and it says what it needs.
///
/// # Errors
/// What is missing.
pub(super) fn check(file: &Path) -> Result<(), Failure> {
    let shown = |what: &str| output(Command::new("dpkg-deb").arg(what).arg(file));
    let (contents, control) = (shown("--contents")?, shown("--field")?);
    let (contents, control) = (String::from_utf8_lossy(&contents), String::from_utf8_lossy(&control));
    missing(&contents, &control).map_or(Ok(()), |what| Err(format!("{}: {what} is missing", file.display())))
}

fn missing(contents: &str, control: &str) -> Option<String> {
    let pages = ["highwater.1.gz", "highwater-bench-tpcc.1.gz"].map(|page| format!("usr/{MANUAL}/{page}"));
    let completions = COMPLETIONS.map(|(_, file)| format!("usr/{file}"));
    let documents = ["copyright", "changelog.gz"].map(|name| format!("{DOCUMENTS}/{name}"));
    let files = [String::from("usr/bin/highwater")].into_iter().chain(pages).chain(completions).chain(documents);
    let has = |file: &String| contents.lines().any(|line| line.ends_with(&format!(" ./{file}")));
    let mut files = files.filter(|file| !has(file));
    let says = |field: &&str| !control.lines().any(|line| line.starts_with(*field));
    let field = ["Package: highwater", "Depends: libc6 (>= ", "Installed-Size: "].into_iter().find(says);
    files.next().or_else(|| field.map(String::from))
}

fn documents(release: &Release<'_>, tree: &Path) -> Result<(), Failure> {
    let folder = tree.join(DOCUMENTS);
    let mit =
        std::fs::read_to_string(release.root.join("LICENSE-MIT")).map_err(|error| format!("LICENSE-MIT: {error}"))?;
    write(&folder.join("copyright"), copyright(&mit).as_bytes())?;
    write(&folder.join("THIRD-PARTY"), source::licences(release.root, super::PROGRAM)?.as_bytes())?;
    copy(&release.root.join("CHANGELOG.md"), &folder.join("NEWS.md"))?;
    let date = output(Command::new("date").args(["-u", "-R", "-d", &format!("@{}", release.date)]))?;
    let (version, date) = (&release.version, String::from_utf8_lossy(&date));
    let changelog = format!(
        "highwater ({version}) unstable; urgency=medium\n\n  * Release {version}: NEWS.md next to this file.\n\n \
         -- {MAINTAINER}  {date}"
    );
    write(&folder.join("changelog"), changelog.as_bytes())?;
    finish(Command::new("gzip").arg("-9n").arg(folder.join("changelog")))
}

/// Every manual page, as Debian has them.
fn compress(pages: &Path) -> Result<(), Failure> {
    let entries = std::fs::read_dir(pages).map_err(|error| format!("{}: {error}", pages.display()))?;
    let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    finish(Command::new("gzip").arg("-9n").args(files))
}

/// The packages of the libraries that the program names. The command wants a source package around it.
fn depends(tree: &Path) -> Result<String, Failure> {
    let around = tree.join("source");
    write(&around.join("debian/control"), b"Source: highwater\n\nPackage: highwater\nArchitecture: any\n")?;
    let mut command = Command::new("dpkg-shlibdeps");
    let found = output(command.args(["-O", "-e"]).arg(tree.join("usr/bin/highwater")).current_dir(&around))?;
    std::fs::remove_dir_all(&around).map_err(|error| format!("{}: {error}", around.display()))?;
    let found = String::from_utf8_lossy(&found);
    let depends = found.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    depends.map(String::from).ok_or_else(|| format!("dpkg-shlibdeps says {found:?}"))
}

fn installed_kib(tree: &Path) -> Result<u64, Failure> {
    let text = output(Command::new("du").args(["-sk", "--apparent-size"]).arg(tree.join("usr")))?;
    let text = String::from_utf8_lossy(&text);
    text.split_whitespace().next().and_then(|kib| kib.parse().ok()).ok_or_else(|| format!("du says {text:?}"))
}

fn control(version: &str, architecture: &str, depends: &str, installed_kib: u64) -> String {
    format!(
        "Package: highwater\nVersion: {version}\nSection: database\nPriority: optional\nArchitecture: {architecture}\n\
         Maintainer: {MAINTAINER}\nInstalled-Size: {installed_kib}\nDepends: {depends}\nHomepage: {HOMEPAGE}\n\
         Description: {DESCRIPTION}"
    )
}

/// In the form that Debian reads; the text of the Apache licence is on every system.
fn copyright(mit: &str) -> String {
    let holder = mit.lines().find(|line| line.starts_with("Copyright")).unwrap_or("Copyright the Highwater authors");
    let holder = holder.trim_start_matches("Copyright").trim_start_matches(" (c)").trim();
    let text: String = mit.lines().skip_while(|line| !line.starts_with("Permission")).map(in_field).collect();
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: highwater\n\
         Source: {HOMEPAGE}\nComment: THIRD-PARTY next to this file lists the crates that are linked in.\n\nFiles: *\n\
         Copyright: {holder}\nLicense: MIT or Apache-2.0\n\nLicense: MIT\n{text}\nLicense: Apache-2.0\n \
         On Debian systems its text is in /usr/share/common-licenses/Apache-2.0.\n"
    )
}

/// A line of a field of many lines.
fn in_field(line: &str) -> String {
    if line.is_empty() { " .\n".to_string() } else { format!(" {line}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_file_has_what_dpkg_wants() {
        let text = control("0.1.0", "amd64", "libc6 (>= 2.34)", 9000);
        for line in ["Version: 0.1.0", "Architecture: amd64", "Depends: libc6 (>= 2.34)", "Installed-Size: 9000"] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        assert!(text.ends_with('\n') && !text.contains("\n\n"), "{text}");
        let width = DESCRIPTION.lines().map(str::len).max();
        assert!(width <= Some(80), "{width:?}");
    }

    #[test]
    fn the_licence_is_that_of_the_source() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = copyright(&std::fs::read_to_string(root.join("LICENSE-MIT")).unwrap());
        assert!(text.contains("License: MIT\n Permission is hereby granted") && text.contains("\n .\n"), "{text}");
        assert!(text.lines().any(|line| line.len() > "Copyright: ".len() && line.starts_with("Copyright: ")), "{text}");
    }

    #[test]
    fn what_a_package_lacks_is_named() {
        let all = [
            "usr/bin/highwater",
            "usr/share/man/man1/highwater.1.gz",
            "usr/share/man/man1/highwater-bench-tpcc.1.gz",
            "usr/share/bash-completion/completions/highwater",
            "usr/share/zsh/vendor-completions/_highwater",
            "usr/share/fish/vendor_completions.d/highwater.fish",
            "usr/share/doc/highwater/copyright",
            "usr/share/doc/highwater/changelog.gz",
        ];
        let listed =
            |files: &[&str]| files.iter().map(|file| format!("-rw-r--r-- root/root 1 ./{file}\n")).collect::<String>();
        let fields = "Package: highwater\nDepends: libc6 (>= 2.36)\nInstalled-Size: 9000\n";
        assert_eq!(missing(&listed(&all), fields), None);
        for (n, file) in all.iter().enumerate() {
            let others = [&all[..n], &all[n + 1..]].concat();
            assert_eq!(missing(&listed(&others), fields).as_deref(), Some(*file));
        }
        assert_eq!(missing(&listed(&all), "Package: highwater\n").as_deref(), Some("Depends: libc6 (>= "));
    }
}
