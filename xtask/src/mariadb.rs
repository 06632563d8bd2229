//! `cargo xtask mariadb`: the plugin for MariaDB, built and tried in a server of its own.
//!
//! Rules
//! 1. `scripts/build-mariadb-plugin` says which version of the server it is; documents that name one name that one.
//! 2. All that is fetched, and the plugin, is below `target/mariadb`; databases are below the system's temporary folder
//!    while they are needed.
//! 3. Server and headers are packages of Debian 12. Where there are none the plugin is left out, and a line says so.

use crate::process::{self, finish};
use crate::tools;
use std::path::Path;
use std::process::Command;

const USAGE: &str = "wanted: cargo xtask mariadb [--kills N] [--as-tests] [--fetch]";
/// Debian's release that has the server.
const RELEASE: &str = "bookworm";
/// Of `scripts/test-mariadb-plugin`.
const TESTS: [&str; 9] = ["smoke", "duplicate", "hermitage", "package", "sample", "kill", "xa", "replica", "statement"];

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted<'a> {
    /// How often the server is killed.
    kills: &'a str,
    /// Build with the features that the tests of the workspace have, so that their build is used.
    as_tests: bool,
    /// Only fetch the server and the headers.
    fetch: bool,
}

/// Builds plugin and server and runs the tests, with as many kills as the arguments say, or one; or only fetches what
/// they need.
///
/// # Errors
/// The first failure; wrong arguments.
pub(crate) fn test(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let Wanted { kills, as_tests, fetch } = wanted(arguments)?;
    if !is_debian_12() {
        println!("left out: no apt with packages of Debian 12 ({RELEASE}) for amd64");
        return Ok(());
    }
    tools::ensure_cxx()?;
    let target = process::target(root)?;
    let script = |name: &str| {
        let mut command = Command::new(root.join("scripts").join(name));
        command.arg("--dir").arg(target.join("mariadb")).env("CARGO_TARGET_DIR", &target);
        command
    };
    if fetch {
        return finish(script("build-mariadb-plugin").args(["--with-server", "--fetch"]));
    }
    let mut tests = script("test-mariadb-plugin");
    tests.args(["--kills", kills, "--pairs", "1"]).args(TESTS);
    if as_tests {
        tests.env("HIGHWATER_AS_TESTS", "1");
    }
    finish(&mut tests)
}

fn wanted<'a>(arguments: &[&'a str]) -> Result<Wanted<'a>, String> {
    let mut wanted = Wanted { kills: "1", as_tests: false, fetch: false };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match (*argument, arguments.as_slice()) {
            ("--as-tests", _) => wanted.as_tests = true,
            ("--fetch", _) => wanted.fetch = true,
            ("--kills", [kills, ..]) if kills.parse::<u32>().is_ok() => {
                wanted.kills = kills;
                arguments.next();
            }
            _ => return Err(USAGE.to_string()),
        }
    }
    Ok(wanted)
}

fn is_debian_12() -> bool {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    cfg!(target_arch = "x86_64") && release.lines().any(|line| line == format!("VERSION_CODENAME={RELEASE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_name_the_version_that_the_script_builds_for() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
        let script = text("scripts/build-mariadb-plugin");
        let version = script.lines().find_map(|line| line.strip_prefix("VERSION=")).unwrap();
        let named = regex::Regex::new(r"MariaDB (\d+\.\d+\.\d+)").unwrap();
        for path in ["crates/mariadb/README.md", "CHANGELOG.md"] {
            let document = text(path);
            let mut versions = named.captures_iter(&document).map(|found| found[1].to_string()).peekable();
            assert!(versions.peek().is_some(), "{path} names no version");
            assert!(versions.all(|named| named == version), "{path} names another version than {version}");
        }
    }

    #[test]
    fn arguments_are_a_number_of_kills_and_two_switches() {
        assert_eq!(wanted(&[]), Ok(Wanted { kills: "1", as_tests: false, fetch: false }));
        let both = wanted(&["--as-tests", "--kills", "200", "--fetch"]);
        assert_eq!(both, Ok(Wanted { kills: "200", as_tests: true, fetch: true }));
        for wrong in [&["--kills", "many"][..], &["--kills"], &["fetch"]] {
            assert_eq!(wanted(wrong), Err(USAGE.to_string()));
        }
    }
}
