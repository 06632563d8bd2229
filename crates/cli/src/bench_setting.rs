//! The setting in a benchmark's result, in addition to the workload's options: the engine's effective options, the
//! durability of commits, the flushing of neighbors and its evidence, the machine and the time.

use highwater::config::{FlushLog, FlushNeighbors, OptionValue};
use highwater::{Database, Options};
use highwater_bench::environment::environment;
use highwater_bench::result::RunResult;
use std::path::Path;

/// Puts it into the configuration; `dir` is the folder of the database, if it is in one.
pub(crate) fn describe(result: &mut RunResult, database: &Database, dir: Option<&Path>) {
    let options = database.options();
    let engine = options.values().into_iter().map(|(name, value)| (name.to_string(), value));
    result.config.extend(engine);
    result.config.extend(environment(dir));
    if let Some(probe) = database.probe() {
        result.config.extend([
            ("flush_neighbors_chosen".into(), probe.choice.flush_neighbors.show()),
            ("write_depth_chosen".into(), probe.choice.write_depth.to_string()),
            ("probe".into(), probe.to_string()),
        ]);
    }
    result.config.extend([
        ("subject".into(), format!("highwater {}", env!("CARGO_PKG_VERSION"))),
        ("durability".into(), durability(&options).into()),
        ("data".into(), if result.load_s.is_some() { "freshly loaded" } else { "loaded by an earlier run" }.into()),
    ]);
}

/// The flushing of neighbors in one line; the evidence is in the result's `probe`, and `highwater inspect` shows it.
pub(crate) fn flushing(database: &Database) -> String {
    let asked = database.options().flush_neighbors;
    match (asked, database.probe()) {
        (FlushNeighbors::Auto, Some(probe)) => {
            let (choice, date) = (probe.choice, probe.date());
            let neighbors = choice.flush_neighbors.show();
            format!("flush_neighbors {neighbors}, {} writes in flight: auto, measured {date}", choice.write_depth)
        }
        (FlushNeighbors::Auto, None) => "flush_neighbors 0: auto, this device cannot be measured".into(),
        (asked, _) => format!("flush_neighbors {}", asked.show()),
    }
}

/// The durability of a commit when it returns.
fn durability(options: &Options) -> &'static str {
    match options.flush_log_at_trx_commit {
        FlushLog::Sync => "every commit was written and synced to the redo log before it returned",
        FlushLog::Write => "every commit was written to the redo log before it returned; synced once a second",
        FlushLog::EverySecond => "commits were written and synced once a second",
    }
}
