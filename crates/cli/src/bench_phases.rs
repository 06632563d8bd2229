//! Code of the benchmarks whose clients run through phases: `shrink` and `online-index`.

use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::fresh::remove_benchmark;
use crate::output::{Json, Lines, json_must_be_writable, write_json};
use crate::signals;
use clap::Args;
use highwater::Database;
use highwater_bench::environment::environment;
use serde_json::{Map, Value};
use std::path::Path;

/// Options.
#[derive(Args, Clone, Debug)]
pub(crate) struct PhaseOptions {
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Remove the benchmark database that is in the folder first
    #[arg(long)]
    fresh: bool,
    /// Write the result as JSON to FILE; with -, write only the JSON to stdout
    #[arg(long, value_name = "FILE")]
    json: Option<Json>,
    #[command(flatten)]
    pub engine: EngineOptions,
}

impl PhaseOptions {
    /// Opens the database of the folder `dir`, or creates it; a signal stops the benchmark from then on.
    ///
    /// # Errors
    /// That of the engine, of the file of `--json`, or [`Failure::Usage`].
    pub(crate) fn open(&self, dir: &Path) -> Result<Database, Failure> {
        json_must_be_writable(self.json.as_ref())?;
        let options = self.engine.options(&[])?;
        signals::stop(None)?;
        if self.fresh {
            remove_benchmark(dir, options.log_dir.as_deref())?;
        }
        Ok(Database::open(dir, options)?)
    }

    /// Prints the result, and writes it as JSON, with the environment of a database in `dir`, where that is asked for.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn report(&self, dir: &Path, table: &str, mut result: Value) -> Result<(), Failure> {
        let lines = Lines { stdout_taken: self.json == Some(Json::Stdout) };
        lines.write(table);
        let Some(json) = &self.json else { return Ok(()) };
        let environment: Map<String, Value> =
            environment(Some(dir)).into_iter().map(|(name, value)| (name, value.into())).collect();
        result["environment"] = environment.into();
        write_json(json, &format!("{result:#}"))
    }
}
