//! A running subject, with a common interface: start, load, run, observe, stop.

use super::{Files, Installed, Server, Settings, SubjectKind, sysbench};
use highwater::{Database, Options};
use highwater_bench::result::{Condition, RunResult};
use highwater_bench::run::{RunOptions, run};
use highwater_bench::store::embedded::Embedded;
use highwater_bench::workload::{Load, Progress, load_or_reuse};
use highwater_bench::{Error, Result};
use highwater_device::disk::Disk;
use highwater_storage::StorageSet;
use std::sync::Arc;

/// A subject that runs.
pub enum Running {
    /// Highwater in this process.
    Highwater(Embedded),
    /// A server.
    Server(Box<Server>),
}

impl Running {
    /// Starts a subject on `files`: makes the database when the folder is empty, opens it (with recovery) otherwise.
    ///
    /// # Errors
    /// [`Error::Usage`] for settings that the subject does not have; the subject's.
    pub fn start(installed: &Installed, files: &Files, settings: &Settings) -> Result<Running> {
        if installed.kind.is_server() {
            return Ok(Running::Server(Box::new(Server::start(installed, files, settings)?)));
        }
        refuse_memory_limit(settings)?;
        files.create()?;
        let options = settings.options(files.log.as_deref())?;
        Ok(Running::Highwater(Embedded::new(Database::open(&files.data, options)?)))
    }

    /// Starts Highwater on devices; results say what `disk` did.
    ///
    /// # Errors
    /// As [`Running::start`].
    pub fn on_storage(set: StorageSet, disk: Arc<Disk>, settings: &Settings) -> Result<Running> {
        refuse_memory_limit(settings)?;
        let options: Options = settings.options(None)?;
        Ok(Running::Highwater(Embedded::on_disk(Database::open_storage(set, options)?, disk)))
    }

    /// The kind of the subject.
    pub fn kind(&self) -> SubjectKind {
        match self {
            Running::Highwater(_) => SubjectKind::Highwater,
            Running::Server(server) => server.kind(),
        }
    }

    /// Loads the data unless they are there already.
    ///
    /// # Errors
    /// The subject's; [`Error::Usage`] when other data are there.
    pub fn load(&self, load: &Load, threads: usize, progress: &dyn Progress) -> Result<()> {
        match (self, load) {
            (Running::Server(server), Load::Sysbench(config)) if sysbench::has(config) => {
                sysbench::load(server, config, threads, progress)
            }
            (Running::Server(server), load) => {
                load_or_reuse(server.store(), &*load.mysql(), threads, progress).map(drop)
            }
            (Running::Highwater(store), load) => load_or_reuse(store, &*load.embedded(), threads, progress).map(drop),
        }
    }

    /// Runs the workload and measures it. The result says on what; counters that the subject does not have are not in
    /// it.
    ///
    /// # Errors
    /// The subject's.
    pub fn run(&self, load: &Load, options: &RunOptions, line: &mut dyn FnMut(&str)) -> Result<RunResult> {
        let mut result = match (self, load) {
            (Running::Server(server), Load::Sysbench(config)) if sysbench::has(config) => {
                sysbench::run(server, config, options, line).map_err(|error| server.explained(error))?
            }
            (Running::Server(server), load) => {
                run(server.store(), &*load.mysql(), options, line).map_err(|error| server.explained(error))?
            }
            (Running::Highwater(store), load) => run(store, &*load.embedded(), options, line)?,
        };
        self.describe(&mut result);
        Ok(result)
    }

    /// Puts the subject and its configuration into a result.
    fn describe(&self, result: &mut RunResult) {
        result.config.insert("subject".into(), self.kind().to_string());
        match self {
            Running::Highwater(store) => {
                result.config.insert("subject_version".into(), env!("CARGO_PKG_VERSION").into());
                let options = store.database().options().values();
                result.config.extend(options.into_iter().map(|(name, value)| (name.to_string(), value)));
            }
            Running::Server(server) => {
                result.config.insert("subject_version".into(), server.version().into());
                result.config.extend(server.config().clone());
            }
        }
    }

    /// The workload's conditions on the data (TPC-C's twelve).
    ///
    /// # Errors
    /// The subject's.
    pub fn conditions(&self, load: &Load) -> Result<Vec<Condition>> {
        match self {
            Running::Highwater(store) => load.embedded().conditions(store),
            Running::Server(server) => load.mysql().conditions(server.store()),
        }
    }

    /// Every problem that the subject's own check of all its data finds.
    ///
    /// # Errors
    /// The subject's; then nothing is known about the data.
    pub fn check_tables(&self) -> Result<Vec<String>> {
        match self {
            Running::Highwater(store) => {
                let report = store.database().check()?;
                Ok(report.findings.iter().map(ToString::to_string).collect())
            }
            Running::Server(server) => server.store().check_tables(),
        }
    }

    /// Stops it cleanly.
    ///
    /// # Errors
    /// The subject's.
    pub fn stop(self) -> Result<()> {
        match self {
            Running::Highwater(store) => Ok(store.database().clone().close()?),
            Running::Server(server) => server.stop(),
        }
    }

    /// Ends a server at once, as a crash would. Highwater, in this process, cannot be killed alone; it is closed
    /// without waiting for its result.
    pub fn kill(self) {
        match self {
            Running::Highwater(store) => drop(store.database().clone().close()),
            Running::Server(server) => server.kill(),
        }
    }

    /// The process number of a server.
    pub fn pid(&self) -> Option<u32> {
        match self {
            Running::Highwater(_) => None,
            Running::Server(server) => Some(server.pid()),
        }
    }
}

fn refuse_memory_limit(settings: &Settings) -> Result<()> {
    match settings.memory_limit_bytes {
        None => Ok(()),
        Some(_) => Err(Error::Usage(
            "highwater runs in this process: put the process into a memory group (MemoryGroup::enter) instead of \
             limiting the subject"
                .into(),
        )),
    }
}
