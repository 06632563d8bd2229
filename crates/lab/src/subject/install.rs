//! Finding the servers that `scripts/install-servers` installs, and the engines of `highwater-compare`.
//!
//! Rules
//! 1. MySQL 5.6 lies in the folder that HIGHWATER_SERVERS names, or in `~/.cache/highwater/servers`; all other programs
//!    are searched for in PATH and in the folders of system commands.
//! 2. The only program started for the search is the server with `--version`.

use super::{SubjectKind, peer};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A subject that can be started.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Which.
    pub kind: SubjectKind,
    /// Its version.
    pub version: String,
    pub(super) programs: Option<Programs>,
}

/// What starts and drives a server.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) server: PathBuf,
    pub(super) sysbench: PathBuf,
    /// MariaDB's program that makes a data folder; MySQL 5.6 brings a folder to copy.
    pub(super) install_db: Option<PathBuf>,
}

impl Programs {
    /// The folder of the server program: MySQL 5.6's base, with its libraries.
    pub(super) fn base(&self) -> &Path {
        self.server.parent().unwrap_or(Path::new("/"))
    }
}

/// A subject that is not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which.
    pub kind: SubjectKind,
    /// What was not found, and where.
    pub what: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.is_server() {
            true => write!(f, "{} is not installed ({}); run scripts/install-servers", self.kind, self.what),
            false => write!(f, "{} cannot be measured ({}); run cargo xtask compare-build", self.kind, self.what),
        }
    }
}

impl std::error::Error for Missing {}

/// Folders that hold system commands, in or out of a user's PATH.
const SYSTEM_FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// What the environment says about the search.
struct Search {
    path: OsString,
    servers: PathBuf,
}

impl Search {
    fn here() -> Search {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache"))).unwrap_or_default();
        Search {
            path: variable("PATH").unwrap_or_default(),
            servers: variable("HIGHWATER_SERVERS").map_or_else(|| cache.join("highwater/servers"), PathBuf::from),
        }
    }

    fn command(&self, kind: SubjectKind, name: &str) -> Result<PathBuf, Missing> {
        let folders = std::env::split_paths(&self.path).chain(SYSTEM_FOLDERS.iter().map(PathBuf::from));
        let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
        found.ok_or_else(|| Missing { kind, what: format!("no {name} in PATH") })
    }

    fn programs(&self, kind: SubjectKind) -> Result<Programs, Missing> {
        let (server, install_db) = match kind {
            SubjectKind::Mariadb | SubjectKind::Myrocks => {
                (self.command(kind, "mariadbd")?, Some(self.command(kind, "mariadb-install-db")?))
            }
            _ => (self.servers.join("mysql-5.6/server/mysqld"), None),
        };
        if !server.is_file() {
            return Err(Missing { kind, what: format!("no {}", server.display()) });
        }
        if kind == SubjectKind::Myrocks && !has_plugin(&server, MYROCKS) {
            let what = format!("no {MYROCKS} among the plugins of {}", server.display());
            return Err(Missing { kind, what });
        }
        Ok(Programs { server, install_db, sysbench: self.command(kind, "sysbench")? })
    }
}

/// The plugin that is MyRocks.
const MYROCKS: &str = "ha_rocksdb.so";

/// Whether MariaDB has a plugin: in a folder `plugin` below `lib`, beside the folder of its programs.
fn has_plugin(server: &Path, name: &str) -> bool {
    let root = server.ancestors().nth(2).unwrap_or(Path::new("/"));
    let folders = ["lib/mysql", "lib64/mysql", "lib/mariadb", "lib64/mariadb"];
    folders.iter().any(|folder| root.join(folder).join("plugin").join(name).is_file())
}

/// Looks for a subject.
pub(super) fn find(kind: SubjectKind) -> Result<Installed, Missing> {
    if kind.is_peer() {
        return peer::version(kind).map(|version| Installed { kind, version, programs: None });
    }
    if !kind.is_server() {
        return Ok(Installed { kind, version: env!("CARGO_PKG_VERSION").into(), programs: None });
    }
    let programs = Search::here().programs(kind)?;
    Ok(Installed { kind, version: version(kind, &programs)?, programs: Some(programs) })
}

/// The server's version: the word after `Ver`.
fn version(kind: SubjectKind, programs: &Programs) -> Result<String, Missing> {
    let mut command = Command::new(&programs.server);
    command.args(["--no-defaults", "--version"]).env("LD_LIBRARY_PATH", programs.base()).stdin(Stdio::null());
    let missing = |what: String| Missing { kind, what: format!("{}: {what}", programs.server.display()) };
    let output = command.output().map_err(|error| missing(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.split_whitespace().skip_while(|word| *word != "Ver").nth(1);
    version.map(str::to_string).ok_or_else(|| missing(format!("printed no version: {}", text.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_missing_is_one_line_that_names_the_script() {
        let empty = tempfile::tempdir().unwrap();
        let search = Search { path: OsString::new(), servers: empty.path().into() };
        let missing = search.programs(SubjectKind::Mysql).unwrap_err().to_string();
        assert!(missing.starts_with("mysql is not installed (no ") && missing.ends_with("run scripts/install-servers"));
        assert!(missing.contains("mysql-5.6/server/mysqld") && !missing.contains('\n'), "{missing}");
    }

    #[test]
    fn a_server_without_its_plugin_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let [programs, plugins] = ["sbin", "lib/mysql/plugin"].map(|folder| root.path().join(folder));
        for folder in [&programs, &plugins] {
            std::fs::create_dir_all(folder).unwrap();
        }
        for name in ["mariadbd", "mariadb-install-db", "sysbench"] {
            std::fs::write(programs.join(name), "").unwrap();
        }
        let search = Search { path: programs.into_os_string(), servers: root.path().into() };
        assert!(search.programs(SubjectKind::Mariadb).is_ok());
        let missing = search.programs(SubjectKind::Myrocks).unwrap_err().to_string();
        assert!(missing.starts_with("myrocks is not installed (no ha_rocksdb.so among the plugins of "), "{missing}");
        assert!(missing.ends_with("run scripts/install-servers"), "{missing}");
        std::fs::write(plugins.join(MYROCKS), "").unwrap();
        assert!(search.programs(SubjectKind::Myrocks).is_ok());
    }

    #[test]
    fn a_program_that_says_no_version_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let server = folder.path().join("mysqld");
        for (script, wanted) in [("echo mysqld  Ver 5.6.24 for Linux", Some("5.6.24")), ("exit 1", None)] {
            std::fs::write(&server, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
            let programs = Programs { server: server.clone(), sysbench: PathBuf::new(), install_db: None };
            assert_eq!(version(SubjectKind::Mysql, &programs).ok().as_deref(), wanted);
        }
    }

    #[test]
    fn highwater_is_always_there() {
        assert_eq!(find(SubjectKind::Highwater).unwrap().kind, SubjectKind::Highwater);
    }
}
