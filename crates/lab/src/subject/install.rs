//! Finding the servers that `scripts/install-servers` installs, and the engines of `highwater-peers`.
//!
//! Rules
//! 1. MySQL 5.6 is in the folder that HIGHWATER_SERVERS names, or in `~/.cache/highwater/servers`; all other programs
//!    are searched for in PATH and in the folders of system commands. MariaDB with Highwater's plugin is in the folder
//!    that HIGHWATER_MARIADB names, or in `target/mariadb`, where `scripts/build-mariadb-plugin --with-server` puts it.
//!    With HIGHWATER_MARIADB set that server runs InnoDB and MyRocks too: three engines in the same server.
//! 2. The only program started for the search is the server with `--version`.

use super::{SubjectKind, peer};
use std::ffi::{OsStr, OsString};
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

/// The programs that start and drive a server.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) server: PathBuf,
    pub(super) sysbench: PathBuf,
    /// MariaDB's program that makes a data folder; MySQL 5.6 brings a folder to copy.
    pub(super) install_db: Option<PathBuf>,
    /// A MariaDB that is not installed in the system.
    pub(super) unpacked: Option<Unpacked>,
}

/// A MariaDB whose files are all in one folder.
#[derive(Clone, Debug)]
pub(super) struct Unpacked {
    /// The root of its files, as `/usr` for an installed server.
    pub(super) root: PathBuf,
    /// Folder of the plugins.
    pub(super) plugins: PathBuf,
}

impl Unpacked {
    /// The paths of the server's files as arguments.
    pub(super) fn arguments(&self) -> Vec<String> {
        let share = self.root.join("share/mysql");
        let at = |name: &str, path: &Path| format!("--{name}={}", path.display());
        vec![
            at("basedir", &self.root),
            at("lc-messages-dir", &share),
            at("character-sets-dir", &share.join("charsets")),
            at("plugin-dir", &self.plugins),
        ]
    }

    /// Folders of the libraries that its programs need, for those that this system does not have.
    pub(super) fn libraries(&self) -> OsString {
        let folders = [self.root.with_file_name("lib"), self.root.join("lib")].map(|lib| lib.join(LIBRARIES));
        let [own, of_server] = folders.map(PathBuf::into_os_string);
        [own, of_server].join(OsStr::new(":"))
    }
}

impl Programs {
    /// The folder of the server program: MySQL 5.6's base, with its libraries.
    pub(super) fn base(&self) -> &Path {
        self.server.parent().unwrap_or(Path::new("/"))
    }

    /// Folders of the libraries that the server needs; none if it is installed in the system.
    pub(super) fn libraries(&self) -> Option<OsString> {
        match (&self.unpacked, &self.install_db) {
            (Some(unpacked), _) => Some(unpacked.libraries()),
            (None, None) => Some(self.base().as_os_str().to_os_string()),
            (None, Some(_)) => None,
        }
    }
}

/// A subject that is not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which.
    pub kind: SubjectKind,
    /// The missing program with the searched folders, or the failure of a program.
    pub what: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, what) = (self.kind, &self.what);
        match kind.is_server() {
            true if kind == SubjectKind::MariadbHighwater => {
                write!(f, "{kind} is not installed ({what}); run scripts/build-mariadb-plugin --with-server")
            }
            true => write!(f, "{kind} is not installed ({what}); run scripts/install-servers"),
            false => write!(f, "{} cannot be measured ({}); run cargo xtask peers-build", self.kind, self.what),
        }
    }
}

impl std::error::Error for Missing {}

/// Folders that hold system commands, in or out of a user's PATH.
const SYSTEM_FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// The settings of the search from the environment.
struct Search {
    path: OsString,
    servers: PathBuf,
    /// The folder of HIGHWATER_MARIADB.
    mariadb: Option<PathBuf>,
}

impl Search {
    fn here() -> Search {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| variable("HOME").map(|home| Path::new(&home).join(".cache"))).unwrap_or_default();
        Search {
            path: variable("PATH").unwrap_or_default(),
            servers: variable("HIGHWATER_SERVERS").map_or_else(|| cache.join("highwater/servers"), PathBuf::from),
            mariadb: variable("HIGHWATER_MARIADB").map(PathBuf::from),
        }
    }

    fn command(&self, kind: SubjectKind, name: &str) -> Result<PathBuf, Missing> {
        let folders = std::env::split_paths(&self.path).chain(SYSTEM_FOLDERS.iter().map(PathBuf::from));
        let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
        found.ok_or_else(|| Missing { kind, what: format!("no {name} in PATH") })
    }

    /// The folder of a MariaDB that is not installed in the system, for kinds that it runs.
    fn unpacked(&self, kind: SubjectKind) -> Option<PathBuf> {
        match kind {
            SubjectKind::MariadbHighwater => Some(self.mariadb.clone().unwrap_or_else(|| "target/mariadb".into())),
            SubjectKind::Mariadb | SubjectKind::Myrocks => self.mariadb.clone(),
            _ => None,
        }
    }

    fn unpacked_programs(&self, kind: SubjectKind, folder: &Path) -> Result<Programs, Missing> {
        let missing = |path: &Path| Missing { kind, what: format!("no {}", path.display()) };
        let folder = std::path::absolute(folder).map_err(|_| missing(folder))?;
        let root = folder.join("server/usr");
        let (plugins, plugin) = match kind {
            SubjectKind::MariadbHighwater => (folder.join("plugin"), HIGHWATER),
            _ => (plugins_of(&root), MYROCKS),
        };
        let (server, install_db) = (root.join("sbin/mariadbd"), root.join("bin/mariadb-install-db"));
        let needed = [server.clone(), install_db.clone(), plugins.join(plugin)];
        if let Some(path) = needed.iter().find(|path| !path.is_file()) {
            return Err(missing(path));
        }
        let unpacked = Some(Unpacked { root, plugins });
        Ok(Programs { server, install_db: Some(install_db), sysbench: self.command(kind, "sysbench")?, unpacked })
    }

    fn programs(&self, kind: SubjectKind) -> Result<Programs, Missing> {
        if let Some(folder) = self.unpacked(kind) {
            return self.unpacked_programs(kind, &folder);
        }
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
        Ok(Programs { server, install_db, sysbench: self.command(kind, "sysbench")?, unpacked: None })
    }
}

/// Environment variable with folders of libraries.
pub(super) const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
/// The folder below `lib` that has Debian's libraries for this processor.
const LIBRARIES: &str = "x86_64-linux-gnu";
/// The plugin that is MyRocks.
const MYROCKS: &str = "ha_rocksdb.so";
/// The plugin that is Highwater.
const HIGHWATER: &str = "ha_highwater.so";

/// Whether MariaDB has a plugin: in a folder `plugin` below `lib`, next to the folder of its programs.
fn has_plugin(server: &Path, name: &str) -> bool {
    let root = server.ancestors().nth(2).unwrap_or(Path::new("/"));
    let folders = ["lib/mysql", "lib64/mysql", "lib/mariadb", "lib64/mariadb"];
    folders.iter().any(|folder| root.join(folder).join("plugin").join(name).is_file())
}

/// The folder of the plugins of an unpacked MariaDB.
fn plugins_of(root: &Path) -> PathBuf {
    root.join("lib/mysql/plugin")
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
    command.args(["--no-defaults", "--version"]).stdin(Stdio::null());
    command.envs(programs.libraries().map(|folders| (LIBRARY_PATH, folders)));
    let missing = |what: String| Missing { kind, what: format!("{}: {what}", programs.server.display()) };
    let output = command.output().map_err(|error| missing(error.to_string()))?;
    let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let version = text.split_whitespace().skip_while(|word| *word != "Ver").nth(1);
    let printed = format!("{text} {errors}");
    version.map(str::to_string).ok_or_else(|| missing(format!("printed no version: {}", printed.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_missing_is_one_line_that_names_the_script() {
        let empty = tempfile::tempdir().unwrap();
        let search = Search { path: OsString::new(), servers: empty.path().into(), mariadb: None };
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
        let search = Search { path: programs.into_os_string(), servers: root.path().into(), mariadb: None };
        assert!(search.programs(SubjectKind::Mariadb).is_ok());
        let missing = search.programs(SubjectKind::Myrocks).unwrap_err().to_string();
        assert!(missing.starts_with("myrocks is not installed (no ha_rocksdb.so among the plugins of "), "{missing}");
        assert!(missing.ends_with("run scripts/install-servers"), "{missing}");
        std::fs::write(plugins.join(MYROCKS), "").unwrap();
        assert!(search.programs(SubjectKind::Myrocks).is_ok());
    }

    #[test]
    fn the_server_of_highwaters_plugin_runs_the_other_engines_too() {
        let root = tempfile::tempdir().unwrap();
        let [usr, plugins, path] = ["server/usr", "plugin", "bin"].map(|folder| root.path().join(folder));
        let of_system = plugins_of(&usr);
        for file in [
            usr.join("sbin/mariadbd"),
            usr.join("bin/mariadb-install-db"),
            of_system.join(MYROCKS),
            path.join("sysbench"),
        ] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let search =
            Search { path: path.into_os_string(), servers: root.path().into(), mariadb: Some(root.path().into()) };
        let missing = search.programs(SubjectKind::MariadbHighwater).unwrap_err().to_string();
        assert!(missing.contains("plugin/ha_highwater.so") && missing.contains("build-mariadb-plugin"), "{missing}");
        std::fs::create_dir(&plugins).unwrap();
        std::fs::write(plugins.join(HIGHWATER), "").unwrap();
        for (kind, expected) in [
            (SubjectKind::MariadbHighwater, &plugins),
            (SubjectKind::Mariadb, &of_system),
            (SubjectKind::Myrocks, &of_system),
        ] {
            let unpacked = search.programs(kind).unwrap().unpacked.unwrap();
            assert_eq!((&unpacked.root, &unpacked.plugins), (&usr, expected), "{kind}");
            assert!(unpacked.arguments()[3].ends_with(&format!("{}", expected.display())));
            let libraries = unpacked.libraries().into_string().unwrap();
            let folders: Vec<_> =
                libraries.split(':').map(|folder| Path::new(folder).strip_prefix(&root).unwrap()).collect();
            assert_eq!(folders, ["server/lib/x86_64-linux-gnu", "server/usr/lib/x86_64-linux-gnu"].map(Path::new));
        }
    }

    #[test]
    fn a_program_that_says_no_version_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let server = folder.path().join("mysqld");
        for (script, wanted) in [("echo mysqld  Ver 5.6.24 for Linux", Some("5.6.24")), ("exit 1", None)] {
            std::fs::write(&server, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
            let programs =
                Programs { server: server.clone(), sysbench: PathBuf::new(), install_db: None, unpacked: None };
            assert_eq!(version(SubjectKind::Mysql, &programs).ok().as_deref(), wanted);
        }
    }

    #[test]
    fn highwater_is_always_there() {
        assert_eq!(find(SubjectKind::Highwater).unwrap().kind, SubjectKind::Highwater);
    }
}
