//! One measurement: open, warm up, run or load, look at the kernel's counters, close, verify.
//!
//! Rules
//! 1. The warm-up is a run of its own with other random numbers, so that the kernel's counters are of the measurement
//!    alone, and nothing is cached because it is drawn again. Before it all rows are read where they fit memory; where
//!    they do not, the operating system is asked to forget the files.
//! 2. Space is that of the closed database. What is verified is read after it was opened again: it is what is kept.

use crate::index_scan::IndexScans;
use crate::process::{Instructions, Mark, forget_cached, peak_memory_bytes, space_bytes, sync_folder};
use crate::redb_benchmark;
use crate::settings::{Peer, Settings};
use crate::verify;
use highwater_bench::compared::{Answer, Compared, Request, Task, Verify};
use highwater_bench::run::{self, RunOptions};
use highwater_bench::store::Store;
use highwater_bench::workload::{Load, Silent, Workload};
use highwater_bench::{Error, Result};
use std::time::Instant;

/// Changes the seed of the warm-up.
const WARM_UP: u64 = 1 << 40;

fn workload<S: Store>(request: &Request, load: &Load) -> Box<dyn Workload<S>> {
    match load {
        Load::Sysbench(config) if request.workload == Compared::IndexScans => Box::new(IndexScans::new(config.clone())),
        load => load.over(),
    }
}

fn load_of(request: &Request, seed: u64) -> Result<Load> {
    let none = || Error::Usage(format!("{} has no such task", request.workload.name()));
    request.workload.load(request.data_bytes, seed).ok_or_else(none)
}

fn settings(request: &Request) -> Settings {
    Settings {
        cache_bytes: request.cache_bytes,
        durable: request.durable,
        clients: request.clients,
        beyond_memory: request.beyond_memory,
        options: request.options.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}

/// Does what is asked, on an engine.
pub fn measure<P: Peer>(request: &Request) -> Result<Answer> {
    let mut instructions = Instructions::start();
    let mut answer = Answer { version: P::version(), ..Answer::default() };
    let settings = settings(request);
    // What a copy left to be written is not the engine's.
    sync_folder(&request.folder);
    if request.beyond_memory {
        forget_cached(&request.folder);
    }
    let store = P::open(&request.folder, &settings)?;
    if request.workload == Compared::Redb {
        let before = Mark::now(&mut instructions, &request.folder);
        answer.steps = redb_benchmark::run(&store, request)?;
        answer.process = Mark::now(&mut instructions, &request.folder).since(&before);
        return closed(request, answer, store, &before, &mut instructions);
    }
    let load = load_of(request, request.seed)?;
    let before = match request.task {
        Task::Load => {
            let before = Mark::now(&mut instructions, &request.folder);
            answer.run = run::load(&store, &*workload::<P>(request, &load), request.clients, &Silent)?;
            answer.loaded_rows = load.units();
            before
        }
        Task::Run => run_on(request, &store, &load, &mut answer, &mut instructions)?,
    };
    answer = closed(request, answer, store, &before, &mut instructions)?;
    verified::<P>(request, &settings, &load, answer)
}

fn run_on<P: Peer>(
    request: &Request,
    store: &P,
    load: &Load,
    answer: &mut Answer,
    instructions: &mut Instructions,
) -> Result<Mark> {
    let options = |seconds| RunOptions { threads: request.clients, seconds, ..RunOptions::default() };
    if !request.beyond_memory {
        verify::contents(store, &load.tables(), Verify::Indexes)?;
    }
    if request.warmup_s > 0.0 {
        let other = load_of(request, request.seed ^ WARM_UP)?;
        run::run(store, &*workload::<P>(request, &other), &options(request.warmup_s), &mut |_| {})?;
    }
    let before = Mark::now(instructions, &request.folder);
    answer.run = run::run(store, &*workload::<P>(request, load), &options(request.seconds), &mut |_| {})?;
    answer.process = Mark::now(instructions, &request.folder).since(&before);
    Ok(before)
}

/// Closes the database and counts what that adds.
fn closed<P: Peer>(
    request: &Request,
    mut answer: Answer,
    store: P,
    before: &Mark,
    instructions: &mut Instructions,
) -> Result<Answer> {
    let closing = Instant::now();
    store.close()?;
    answer.close_s = closing.elapsed().as_secs_f64();
    sync_folder(&request.folder);
    let whole = Mark::now(instructions, &request.folder).since(before);
    answer.device_written_bytes_closed = whole.device_written_bytes;
    if request.task == Task::Load {
        answer.process = whole;
    }
    answer.peak_memory_bytes = peak_memory_bytes();
    answer.space_bytes = space_bytes(&request.folder);
    Ok(answer)
}

/// Opens the database again and verifies what it holds.
fn verified<P: Peer>(request: &Request, settings: &Settings, load: &Load, mut answer: Answer) -> Result<Answer> {
    let store = P::open(&request.folder, settings)?;
    let (contents, conditions) = verify::contents(&store, &load.tables(), request.verify)?;
    answer.contents = contents;
    answer.conditions = conditions;
    answer.conditions.extend(workload::<P>(request, load).conditions(&store)?);
    store.close()?;
    Ok(answer)
}
