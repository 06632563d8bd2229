//! A compiler with the standard library of other targets, out of Debian's packages.
//!
//! Rules
//! 1. Nothing is installed: the packages are unpacked into a folder, and the compiler runs with the loader and the
//!    libraries that are unpacked with it.
//! 2. They come from the place that this system's own packages come from, of the suite [`SUITE`]: the stable one has a
//!    compiler that is too old. apt has a configuration of its own for that, in the same folder.
//! 3. A folder is used once it is whole, and unpacked again when [`MARK`] says something else.

use crate::process::{output, write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SUITE: &str = "testing";
/// Of which machines there are packages to be had.
const MACHINES: &str = "amd64,i386,arm64";
/// The compiler, the libraries, and the source for targets that have no package.
const PACKAGES: [&str; 5] = ["rustc", "rust-src", "libstd-rust-dev", "libstd-rust-dev:i386", "libstd-rust-dev:arm64"];
/// Which version of the folder's layout this is, and the file that says so.
const MARK: (&str, &str) = ("complete", "1\n");
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Whether this system has what a toolchain is made with.
pub(super) fn can_be_made() -> bool {
    cfg!(target_arch = "x86_64") && Path::new(KEYS).exists() && runs("apt-get") && runs("dpkg")
}

fn runs(program: &str) -> bool {
    let quiet = Command::new(program).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// The program that is the compiler, unpacked in `folder` unless it is there.
///
/// # Errors
/// In words: the command that failed.
pub(super) fn compiler(folder: &Path) -> Result<PathBuf, String> {
    let (program, mark) = (folder.join("rustc"), folder.join(MARK.0));
    if std::fs::read_to_string(&mark).is_ok_and(|text| text == MARK.1) {
        return Ok(program);
    }
    println!("unpacking Debian's compiler into {}", folder.display());
    let _ = std::fs::remove_dir_all(folder);
    let apt = Apt::new(folder)?;
    apt.run("apt-get", &["update"])?;
    let found = String::from_utf8_lossy(&apt.run("apt-cache", &DEPENDS)?).into_owned();
    let wanted: Vec<&str> = PACKAGES.into_iter().chain(libraries(&found)).collect();
    apt.run("apt-get", &[&["download"], &wanted[..]].concat())?;
    let root = folder.join("root");
    for entry in std::fs::read_dir(&apt.downloads).map_err(|error| format!("{}: {error}", apt.downloads.display()))? {
        let package = entry.map_err(|error| error.to_string())?.path();
        output(Command::new("dpkg").arg("--extract").arg(package).arg(&root))?;
    }
    write_program(&program, &root)?;
    let _ = std::fs::remove_dir_all(&apt.downloads);
    write(&mark, MARK.1)?;
    Ok(program)
}

/// Has apt list what the standard library needs, and what that needs.
const DEPENDS: [&str; 9] = [
    "depends",
    "--recurse",
    "--no-recommends",
    "--no-suggests",
    "--no-conflicts",
    "--no-breaks",
    "--no-replaces",
    "--no-enhances",
    "libstd-rust-dev",
];

/// The packages of libraries in what apt lists: a package begins its line, what it needs is indented.
fn libraries(listed: &str) -> impl Iterator<Item = &str> {
    let names = listed.lines().filter(|line| !line.starts_with([' ', '<', '|']) && !line.contains(':'));
    names.filter(|name| (name.starts_with("lib") || name.starts_with("zlib")) && *name != "libstd-rust-dev")
}

/// apt with a configuration of its own.
struct Apt {
    options: Vec<String>,
    downloads: PathBuf,
}

impl Apt {
    fn new(folder: &Path) -> Result<Apt, String> {
        let (apt, downloads) = (folder.join("apt"), folder.join("downloads"));
        for made in [apt.join("lists/partial"), apt.join("cache/archives/partial"), downloads.clone()] {
            std::fs::create_dir_all(&made).map_err(|error| format!("{}: {error}", made.display()))?;
        }
        let format = "$(LABEL) $(REPO_URI)";
        let known = output(Command::new("apt-get").args(["indextargets", "--format", format]))?;
        let known = String::from_utf8_lossy(&known).into_owned();
        let from =
            known.lines().find_map(|line| line.strip_prefix("Debian ")).ok_or("apt has no source of Debian's")?;
        write(&apt.join("sources.list"), format!("deb [signed-by={KEYS} arch={MACHINES}] {from} {SUITE} main\n"))?;
        let option = |name: &str, value: &Path| format!("{name}={}", value.display());
        let options = vec![
            option("Dir::Etc::sourcelist", &apt.join("sources.list")),
            "Dir::Etc::sourceparts=-".to_string(),
            option("Dir::State::lists", &apt.join("lists")),
            option("Dir::Cache", &apt.join("cache")),
            format!("APT::Architectures={MACHINES}"),
            "APT::Sandbox::User=root".to_string(),
            "Acquire::Languages=none".to_string(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_string(),
        ];
        Ok(Apt { options, downloads })
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let mut command = Command::new(program);
        self.options.iter().for_each(|option| {
            command.args(["-o", option]);
        });
        output(command.args(arguments).current_dir(&self.downloads))
    }
}

/// Rule 1.
fn write_program(program: &Path, root: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let usr = root.join("usr");
    let usr = usr.display();
    let text = format!(
        "#!/bin/sh\nexec {usr}/lib64/ld-linux-x86-64.so.2 --library-path {usr}/lib/x86_64-linux-gnu {usr}/bin/rustc \
         \"$@\"\n"
    );
    write(program, text.as_bytes())?;
    let set = std::fs::set_permissions(program, PermissionsExt::from_mode(0o755));
    set.map_err(|error| format!("{}: {error}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_those_that_apt_lists_as_packages() {
        let listed = "libstd-rust-dev\n  Depends: libstd-rust-1.97\nlibstd-rust-1.97\n  Depends: libc6\nlibc6\n\
                      <libc-virtual>\ngcc-16-base\nzlib1g\nlibc6:i386\n";
        assert_eq!(libraries(listed).collect::<Vec<_>>(), ["libstd-rust-1.97", "libc6", "zlib1g"]);
    }

    #[test]
    fn a_failed_command_says_what_it_printed() {
        let failure = output(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(failure.contains("why") && failure.contains("exit status: 3"), "{failure}");
    }
}
