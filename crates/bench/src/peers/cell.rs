//! One measurement: open, warm up, run or load, read the kernel's counters, close, verify.
//!
//! Rules
//! 1. The warm-up is a separate run with other random numbers, so that no row is cached because it is drawn again.
//!    Before it all rows are read if they fit in memory; otherwise the files are dropped from the page cache.
//! 2. Space is that of the closed database. The rows are verified after a reopening, so durable rows are verified.
//! 3. The kernel's counters are those of the measurement, except for bytes: dirty pages of the warm-up are written
//!    during the measurement, and not every engine has a call to write them before. Bytes until the database is closed
//!    are therefore those of warm-up and measurement, whose transactions are counted.
//! 4. The counters are those of the process that the database is in. A server has ended when it is closed, so its own
//!    end before that; the device's continue.

use super::expected::expected;
use super::index_scan::IndexScans;
use super::process::{Instructions, Mark, forget_cached, peak_memory_bytes, space_bytes, sync_folder};
use super::{Answer, PeerWorkload, Process, Request, Task, Verify, redb_benchmark, verify};
use crate::error::{Error, Result};
use crate::result::RunResult;
use crate::run::{self, RunOptions};
use crate::store::Store;
use crate::workload::{Load, Silent, Workload};
use std::time::Instant;

/// Changes the seed of the warm-up.
const WARM_UP: u64 = 1 << 40;

/// A database that can be opened, closed and opened again.
pub trait Database {
    /// The open database.
    type Store: Store;

    /// Version of the engine.
    fn version(&self) -> String;
    /// Opens or creates it.
    ///
    /// # Errors
    /// The engine's.
    fn open(&mut self) -> Result<Self::Store>;
    /// Makes everything durable and closes. No session and no other handle is used any more.
    ///
    /// # Errors
    /// The engine's.
    fn close(&mut self, store: Self::Store) -> Result<()>;
    /// The process that it is in while it is open.
    fn pid(&self) -> u32 {
        std::process::id()
    }
}

/// Performs the requested measurement on a database.
///
/// # Errors
/// The database's; [`Error::Usage`] for what a workload does not have.
pub fn measure<D: Database>(request: &Request, database: &mut D) -> Result<Answer> {
    let instructions = Instructions::start();
    // What a copy left to be written is not the engine's.
    sync_folder(&request.folder);
    if request.beyond_memory {
        forget_cached(&request.folder);
    }
    let answer = Answer { version: database.version(), ..Answer::default() };
    let store = database.open()?;
    let pid = database.pid();
    let mut cell = Cell { request, database, pid, instructions, warm_up: RunResult::default(), answer };
    if request.workload == PeerWorkload::Redb {
        let before = cell.mark();
        cell.answer.steps = redb_benchmark::run(&store, request)?;
        cell.answer.process = cell.mark().since(&before);
        cell.close(store, &before)?;
        return Ok(cell.answer);
    }
    let load = cell.load_of(request.seed)?;
    let before = match request.task {
        Task::Load => cell.load(&store, &load)?,
        Task::Run => cell.run(&store, &load)?,
    };
    cell.close(store, &before)?;
    cell.verify(&load)?;
    Ok(cell.answer)
}

struct Cell<'c, D: Database> {
    request: &'c Request,
    database: &'c mut D,
    /// The process that had the database open during the measurement.
    pid: u32,
    instructions: Instructions,
    /// The run before the measurement; nothing if there is none.
    warm_up: RunResult,
    answer: Answer,
}

impl<D: Database> Cell<'_, D> {
    fn mark(&mut self) -> Mark {
        Mark::now(self.pid, &mut self.instructions, &self.request.folder)
    }

    fn load_of(&self, seed: u64) -> Result<Load> {
        let none = || Error::Usage(format!("{} has no such task", self.request.workload.name()));
        self.request.workload.load(self.request.data_bytes, seed).ok_or_else(none)
    }

    fn workload(&self, load: &Load) -> Box<dyn Workload<D::Store>> {
        match load {
            Load::Sysbench(config) if self.request.workload == PeerWorkload::IndexScans => {
                Box::new(IndexScans::new(config.clone()))
            }
            load => load.over(),
        }
    }

    fn load(&mut self, store: &D::Store, load: &Load) -> Result<Mark> {
        let before = self.mark();
        self.answer.run = run::load(store, &*self.workload(load), self.request.clients, &Silent)?;
        self.answer.loaded_rows = load.units();
        Ok(before)
    }

    /// Runs the warm-up and the measurement; returns the mark before the warm-up.
    fn run(&mut self, store: &D::Store, load: &Load) -> Result<Mark> {
        let request = self.request;
        let options = |seconds| RunOptions { threads: request.clients, seconds, ..RunOptions::default() };
        if !request.beyond_memory {
            verify::contents(store, &load.tables(), Verify::Indexes)?;
        }
        let first = self.mark();
        if request.warmup_s > 0.0 {
            let other = self.workload(&self.load_of(request.seed ^ WARM_UP)?);
            self.warm_up = run::run(store, &*other, &options(request.warmup_s), &mut |_| {})?;
            self.answer.warmup_transactions = self.warm_up.transactions;
        }
        let before = self.mark();
        self.answer.run = run::run(store, &*self.workload(load), &options(request.seconds), &mut |_| {})?;
        self.answer.process = self.mark().since(&before);
        Ok(first)
    }

    /// Closes the database and adds the counts of the close.
    fn close(&mut self, store: D::Store, before: &Mark) -> Result<()> {
        let (open, peak) = (self.mark().since(before), peak_memory_bytes(self.pid));
        let closing = Instant::now();
        self.database.close(store)?;
        self.answer.close_s = closing.elapsed().as_secs_f64();
        sync_folder(&self.request.folder);
        let closed = self.mark().since(before);
        let is_own = self.pid == std::process::id();
        self.answer.device_written_bytes_closed = closed.device_written_bytes;
        if self.request.task == Task::Load {
            let server = Process { device_written_bytes: closed.device_written_bytes, ..open };
            self.answer.process = if is_own { closed } else { server };
        }
        self.answer.peak_memory_bytes = if is_own { peak_memory_bytes(self.pid) } else { peak };
        self.answer.space_bytes = space_bytes(&self.request.folder);
        Ok(())
    }

    /// Reopens the database and verifies its contents.
    fn verify(&mut self, load: &Load) -> Result<()> {
        let store = self.database.open()?;
        let (contents, conditions) = verify::contents(&store, &load.tables(), self.request.verify)?;
        let expected = expected(self.request, load, &[&self.warm_up, &self.answer.run]);
        self.answer.conditions = conditions;
        self.answer.conditions.extend(expected.iter().flat_map(|expected| expected.conditions(&contents)));
        self.answer.contents = contents;
        self.answer.conditions.extend(self.workload(load).conditions(&store)?);
        self.database.close(store)
    }
}

#[cfg(test)]
#[path = "cell_test.rs"]
mod tests;
