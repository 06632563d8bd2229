//! A MySQL or MariaDB server under the laboratory's control: created, started, stopped, killed.
//!
//! Rules
//! 1. Its files are in the folders given, its socket and temporary files in a folder with a short path that is removed
//!    with it.
//! 2. A data folder is created under another name and renamed when it is complete, so an interrupted creation is
//!    repeated.
//! 3. Starting ends when the server answers, fails when it has ended or takes too long; the error quotes the end of its
//!    log.
//! 4. Stopping sends SIGTERM, after which the server flushes every page, and kills a server that does not end in time.
//!    Dropping kills.

use super::config::{self, Options, ServerPaths};
use super::copy::{copy_file, copy_folder};
use super::install::{LIBRARY_PATH, Programs, Unpacked};
use super::{Files, Installed, MemoryGroup, Settings, SubjectKind};
use highwater_bench::interrupt;
use highwater_bench::store::mysql::{Flavor, MysqlStore};
use highwater_bench::{Error, Result};
use highwater_device::guard::{Guard, Guarded};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest start, recovery included.
const START: Duration = Duration::from_secs(600);
/// Longest stop: every dirty page is written.
const STOP: Duration = Duration::from_secs(300);
/// Lines of the server's log in an error.
const LOG_LINES: usize = 12;

/// A running server.
#[derive(Debug)]
pub struct Server {
    kind: SubjectKind,
    version: String,
    sysbench: PathBuf,
    place: ServerPaths,
    config: BTreeMap<String, String>,
    /// Bytes of its log that were there before it started.
    old_log_bytes: usize,
    child: Child,
    guard: Guard,
    store: Option<MysqlStore>,
    // Dropped last: a folder and a group that the server used.
    _run: tempfile::TempDir,
    group: Option<Arc<MemoryGroup>>,
}

impl Server {
    /// Starts a server on `files`, making its database when the folder is empty.
    ///
    /// # Errors
    /// [`Error::Usage`] for settings it does not have, [`Error::Server`] when it does not start.
    pub fn start(installed: &Installed, files: &Files, settings: &Settings) -> Result<Server> {
        let group = settings.memory_limit_bytes.map(MemoryGroup::new).transpose()?;
        Server::start_in(installed, files, settings, group.map(Arc::new))
    }

    /// As [`Server::start`], in a memory group that may outlive it; the settings' limit is not looked at.
    pub(super) fn start_in(
        installed: &Installed,
        files: &Files,
        settings: &Settings,
        group: Option<Arc<MemoryGroup>>,
    ) -> Result<Server> {
        let Some(programs) = &installed.programs else {
            return Err(Error::Usage(format!("{} is no server", installed.kind)));
        };
        files.create()?;
        let run = tempfile::Builder::new().prefix("highwater-").tempdir_in("/tmp");
        let run = run.map_err(|e| Error::file("/tmp", e))?;
        let files = Files {
            data: absolute(&files.data)?,
            log: files.log.as_deref().map(absolute).transpose()?,
            system: files.system.as_deref().map(absolute).transpose()?,
        };
        let place = ServerPaths::new(programs.base(), &files, run.path());
        let options = config::options(installed.kind, &place, settings)?;
        create(installed.kind, programs, &files, &place, settings)?;
        let mut guard = Guard::new().map_err(|e| Error::file("/bin/sh", e))?;
        guard.holds(Guarded::Folder, run.path()).map_err(no_guard)?;
        let old_log_bytes = std::fs::metadata(&place.error_log).map_or(0, |about| about.len() as usize);
        let child = spawn(&mut guard, programs, &files, &place, &options, group.as_deref())?;
        let mut config = config::record(&options);
        config.extend(settings.memory_limit_bytes.map(|bytes| ("memory_limit_bytes".into(), bytes.to_string())));
        let (kind, version, sysbench) = (installed.kind, installed.version.clone(), programs.sysbench.clone());
        let mut server = Server {
            kind,
            version,
            sysbench,
            place,
            config,
            old_log_bytes,
            child,
            guard,
            store: None,
            _run: run,
            group,
        };
        server.store = Some(server.wait_until_ready()?);
        Ok(server)
    }

    /// The kind of server.
    pub fn kind(&self) -> SubjectKind {
        self.kind
    }

    /// Its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.place.socket()
    }

    /// Every option it was started with.
    pub fn config(&self) -> &BTreeMap<String, String> {
        &self.config
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its memory group, if memory is limited.
    pub fn memory_group(&self) -> Option<&MemoryGroup> {
        self.group.as_deref()
    }

    pub(super) fn sysbench(&self) -> &Path {
        &self.sysbench
    }

    /// Connections to it.
    pub fn store(&self) -> &MysqlStore {
        self.store.as_ref().expect("set before the server is returned")
    }

    fn wait_until_ready(&mut self) -> Result<MysqlStore> {
        let deadline = Instant::now() + START;
        loop {
            interrupt::check()?;
            if let Some(status) = self.child.try_wait().map_err(|e| Error::file("the server", e))? {
                return Err(self.failed(&format!("ended while starting ({status})")));
            }
            match MysqlStore::connect(&self.place.socket(), flavor(self.kind)) {
                Ok(store) => return Ok(store),
                Err(error) if Instant::now() >= deadline => {
                    return Err(self.failed(&format!("does not answer after {} s: {error}", START.as_secs())));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// The error of a workload, with the errors that the server has logged since it was started.
    pub(super) fn explained(&self, error: Error) -> Error {
        let Error::Server(said) = error else { return error };
        let log = std::fs::read(&self.place.error_log).unwrap_or_default();
        match errors_in(&String::from_utf8_lossy(log.get(self.old_log_bytes..).unwrap_or_default())) {
            logged if logged.is_empty() => Error::Server(said),
            logged => Error::Server(format!("{said}; {} logged:\n{}", self.kind, tail(&logged, LOG_LINES))),
        }
    }

    fn failed(&self, what: &str) -> Error {
        Error::Server(format!(
            "{} {} {what}; its log ({}):\n{}",
            self.kind,
            self.version,
            self.place.error_log.display(),
            end_of_log(&self.place.error_log, self.old_log_bytes)
        ))
    }

    /// Stops it: every page is written, the log is empty afterwards.
    ///
    /// # Errors
    /// [`Error::Server`] when it had to be killed, or ended with an error.
    pub fn stop(mut self) -> Result<()> {
        drop(self.store.take());
        signal(&self.child, "TERM")?;
        let deadline = Instant::now() + STOP;
        loop {
            match self.child.try_wait().map_err(|e| Error::file("the server", e))? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(self.failed(&format!("stopped with {status}"))),
                None if Instant::now() >= deadline => {
                    return Err(self.failed(&format!("was killed: it did not stop in {} s", STOP.as_secs())));
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Ends it at once (SIGKILL): what a crash of the server leaves.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.store.take());
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.guard.finish();
    }
}

/// The clean-up shell cannot be given its instructions.
fn no_guard(error: std::io::Error) -> Error {
    Error::file("the pipe to the clean-up shell", error)
}

fn flavor(kind: SubjectKind) -> Flavor {
    match kind {
        SubjectKind::Mariadb => Flavor::Mariadb,
        SubjectKind::Myrocks => Flavor::Myrocks,
        SubjectKind::MariadbHighwater => Flavor::Highwater,
        _ => Flavor::Mysql,
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(|e| Error::file(path, e))
}

fn signal(child: &Child, name: &str) -> Result<()> {
    let status = Command::new("/bin/sh").args(["-c", &format!("kill -{name} {}", child.id())]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Error::Server(format!("the server (process {}) is gone", child.id()))),
        Err(error) => Err(Error::file("/bin/sh", error)),
    }
}

/// The server with its messages in its log and nothing on this process's output.
fn spawn(
    guard: &mut Guard,
    programs: &Programs,
    files: &Files,
    place: &ServerPaths,
    options: &Options,
    group: Option<&MemoryGroup>,
) -> Result<Child> {
    let file = files.data.join("my.cnf");
    std::fs::write(&file, config::file(options)).map_err(|e| Error::file(&file, e))?;
    let mut command = guard.command(&programs.server, group.map(MemoryGroup::path)).map_err(no_guard)?;
    command.arg(format!("--defaults-file={}", file.display()));
    command.args(programs.unpacked.iter().flat_map(Unpacked::arguments));
    as_this_user(&mut command);
    let log = OpenOptions::new().create(true).append(true).open(&place.error_log);
    let log = log.map_err(|e| Error::file(&place.error_log, e))?;
    command.stderr(Stdio::from(log)).stdout(Stdio::null());
    command.envs(programs.libraries().map(|folders| (LIBRARY_PATH, folders)));
    command.spawn().map_err(|e| Error::file(&programs.server, e))
}

/// Servers refuse to run as root without this option.
fn as_this_user(command: &mut Command) {
    let root = std::fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0);
    if root {
        command.arg("--user=root");
    }
}

/// Makes the server's data folder unless it is there.
fn create(
    kind: SubjectKind,
    programs: &Programs,
    files: &Files,
    place: &ServerPaths,
    settings: &Settings,
) -> Result<()> {
    if place.data.is_dir() {
        return move_log(&place.data, &place.log);
    }
    let new = files.data.join("db.new");
    if new.exists() {
        std::fs::remove_dir_all(&new).map_err(|e| Error::file(&new, e))?;
    }
    if let Some(log) = &files.log {
        refuse_other_log(log)?;
    }
    match &programs.install_db {
        Some(install_db) => install(kind, (install_db, programs.unpacked.as_ref()), &new, &place.run, settings)?,
        None => copy_folder(&programs.base().join("data"), &new)?,
    }
    std::fs::rename(&new, &place.data).map_err(|e| Error::file(&place.data, e))?;
    move_log(&place.data, &place.log)
}

/// The folder of Highwater's database in a data folder of MariaDB, as the plugin names it (`cpp/handlerton.cc`).
const HIGHWATER_HOME: &str = "#highwater";

/// The files of a redo log in its own folder: those of InnoDB, and that of Highwater.
fn log_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::file(folder, e))?;
    let is_log = |name: &str| name.starts_with("ib_logfile") || name == "redo";
    let is_log = |path: &PathBuf| path.file_name().is_some_and(|name| is_log(&name.to_string_lossy()));
    Ok(entries.flatten().map(|entry| entry.path()).filter(is_log).collect())
}

fn refuse_other_log(folder: &Path) -> Result<()> {
    match log_files(folder)?.first() {
        Some(file) => Err(Error::Usage(format!("{}: the redo log of another database", file.display()))),
        None => Ok(()),
    }
}

/// Moves the redo log of a new data folder to its own folder, which may be on another file system.
fn move_log(from: &Path, to: &Path) -> Result<()> {
    if from == to {
        return Ok(());
    }
    let home = from.join(HIGHWATER_HOME);
    let of_highwater = if home.is_dir() { log_files(&home)? } else { Vec::new() };
    for file in log_files(from)?.into_iter().chain(of_highwater) {
        let target = to.join(file.file_name().unwrap_or_default());
        copy_file(&file, &target)?;
        std::fs::remove_file(&file).map_err(|e| Error::file(&file, e))?;
    }
    Ok(())
}

fn install(
    kind: SubjectKind,
    (install_db, unpacked): (&Path, Option<&Unpacked>),
    folder: &Path,
    run: &Path,
    settings: &Settings,
) -> Result<()> {
    let mut command = Command::new(install_db);
    command.arg("--no-defaults").arg(format!("--datadir={}", folder.display()));
    // A server that starts removes all temporary tables in this folder, those of others too.
    command.arg(format!("--tmpdir={}", run.display()));
    command.args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]);
    match kind {
        SubjectKind::Myrocks | SubjectKind::MariadbHighwater => {
            command.args(["--skip-innodb", "--default-storage-engine=Aria"])
        }
        _ => command.arg(format!("--innodb-page-size={}", settings.page_bytes)),
    };
    if let Some(unpacked) = unpacked {
        command.arg(format!("--basedir={}", unpacked.root.display())).arg("--force");
        command.env(LIBRARY_PATH, unpacked.libraries());
    }
    as_this_user(&mut command);
    let output = command.stdin(Stdio::null()).output().map_err(|e| Error::file(install_db, e))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said);
    Err(Error::Server(format!("{} failed ({}):\n{}", install_db.display(), output.status, tail(&said, LOG_LINES))))
}

/// The errors in the log after `old_bytes`, or the log's end if there are none.
fn end_of_log(path: &Path, old_bytes: usize) -> String {
    match std::fs::read(path) {
        Ok(text) => errors_or_end(&String::from_utf8_lossy(text.get(old_bytes..).unwrap_or_default())),
        Err(error) => error.to_string(),
    }
}

fn errors_in(text: &str) -> String {
    text.lines().filter(|line| line.contains("[ERROR]")).flat_map(|line| [line, "\n"]).collect()
}

fn errors_or_end(text: &str) -> String {
    let errors = errors_in(text);
    tail(if errors.is_empty() { text } else { &errors }, LOG_LINES)
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_is_its_last_lines() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
        assert_eq!(errors_or_end("a\nb [ERROR] x\nc\n"), "b [ERROR] x");
        assert_eq!(errors_or_end("a\nb\n"), "a\nb");
        assert!(end_of_log(Path::new("/nowhere/x"), 0).contains("No such file"));
    }

    #[test]
    fn a_log_of_another_database_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        refuse_other_log(folder.path()).unwrap();
        std::fs::write(folder.path().join("ib_logfile0"), "x").unwrap();
        assert!(refuse_other_log(folder.path()).unwrap_err().to_string().contains("ib_logfile0"));
    }

    #[test]
    fn the_logs_of_both_engines_move_to_the_folder_of_logs() {
        let folder = tempfile::tempdir().unwrap();
        let [data, log] = ["data", "log"].map(|name| folder.path().join(name));
        let home = data.join(HIGHWATER_HOME);
        for folder in [&home, &log] {
            std::fs::create_dir_all(folder).unwrap();
        }
        for file in [data.join("ib_logfile0"), home.join("redo"), home.join("data")] {
            std::fs::write(&file, file.file_name().unwrap().as_encoded_bytes()).unwrap();
        }
        move_log(&data, &data).unwrap();
        assert!(home.join("redo").is_file(), "the data folder is the folder of logs");
        move_log(&data, &log).unwrap();
        for name in ["ib_logfile0", "redo"] {
            assert_eq!(std::fs::read(log.join(name)).unwrap(), name.as_bytes());
        }
        assert!(home.join("data").is_file() && !home.join("redo").exists() && !data.join("ib_logfile0").exists());
        assert!(refuse_other_log(&log).is_err());
    }
}
