//! `highwater torture power`: cuts the power of a simulated disk at random writes and syncs, thousands of times, and
//! compares every secondary index with the rows after each cut ([`highwater_torture::power_cuts`]).

use super::drawn::{self, End};
use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::output::Lines;
use clap::Args;
use fastrand::Rng;
use highwater::Options;
use highwater_torture::power_cuts::{Tally, Trial};

/// Small, so that the indexes do not fit the pool and the log turns often.
const ENGINE_DEFAULTS: &[(&str, &str)] = &[
    ("page_size", "4K"),
    ("buffer_pool_size", "1M"),
    ("log_file_size", "4M"),
    ("log_buffer_size", "1M"),
    ("cleaner_interval_ms", "5"),
    ("segment_size", "256K"),
    ("journal_size", "8M"),
];
/// Lives of one database (openings that end with a cut, a failure or a close), before the next database is created.
const LIVES: u64 = 20;

pub(super) const EXAMPLES: &str = "\
Examples:
  highwater torture power --cuts 3000
  highwater torture power --cuts 500 --change-buffering memory --seed 7
  highwater torture power --cuts 500 --page-store in-place --doublewrite journal
  highwater torture power --cuts 500 --page-store out-of-place --page-compression zstd";

/// What is cut, and how often.
#[derive(Args, Clone, Debug)]
pub(super) struct PowerOptions {
    /// Least number of power cuts, those of recovery included
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    cuts: u64,
    /// Seed of the random numbers [default: drawn, and printed]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Failed`] names what was lost or broken.
pub(super) fn run(options: &PowerOptions) -> Result<(), Failure> {
    let lines = Lines { stdout_taken: false };
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    lines.write(&format!("seed {seed} (repeat with --seed {seed})"));
    let (mut rng, mut all) = (Rng::with_seed(seed), Tally::default());
    for number in 0.. {
        if all.all_cuts() >= options.cuts {
            break;
        }
        let mut engine = options.engine.options(ENGINE_DEFAULTS)?;
        let mode = options.engine.rotated_buffering(number);
        let (store, compression) = options.engine.rotated_store(number);
        let protection = options.engine.rotated_protection(number);
        let chosen = [
            ("change_buffering", mode),
            ("page_store", store),
            ("page_compression", compression),
            ("doublewrite", protection),
        ];
        let trial_seed = rng.u64(..);
        let drawn = drawn::draw(&options.engine, End::PowerCut, trial_seed);
        for (name, value) in chosen.iter().chain(&drawn) {
            engine.set(name, value)?;
        }
        let drawn = drawn::described(&drawn);
        let tally = trial(engine, trial_seed, options.cuts - all.all_cuts())
            .map_err(|error| Failure::Failed(format!("database {number} with seed {seed}, {drawn}: {error}")))?;
        all.add(&tally);
        let what = if store == "in-place" { format!("doublewrite {protection}") } else { compression.to_string() };
        let Tally { cuts, recovery_cuts, buffered, merges, carried } = tally;
        lines.write(&format!(
            "database {number}, {store} {what}, change buffering {mode}, {drawn}: {cuts} power cuts and \
             {recovery_cuts} of recovery; {buffered} changes buffered, {merges} leaves merged, {carried} changes \
             carried forward; nothing lost"
        ));
    }
    let Tally { cuts, recovery_cuts, buffered, merges, carried } = all;
    lines.write(&format!(
        "{cuts} power cuts and {recovery_cuts} of recovery ({buffered} changes buffered, {merges} leaves merged, \
         {carried} changes carried forward): no acknowledged commit lost, every index agrees with its rows"
    ));
    Ok(())
}

fn trial(engine: Options, seed: u64, cuts: u64) -> highwater_bench::Result<Tally> {
    let mut trial = Trial::new(engine, seed)?;
    for _ in 0..LIVES {
        if trial.tally.all_cuts() < cuts {
            trial.live()?;
        }
    }
    Ok(trial.tally)
}
