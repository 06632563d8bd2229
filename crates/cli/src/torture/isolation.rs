//! `highwater torture isolation`: random transactions at each isolation level, in threads on a database in memory, and
//! a search for anomalies in their reads ([`highwater_torture::isolation::histories`]).

use crate::engine_options::EngineOptions;
use crate::failure::Failure;
use crate::output::Lines;
use crate::workload_options::named;
use clap::Args;
use fastrand::Rng;
use highwater::Database;
use highwater_storage::StorageSet;
use highwater_torture::isolation::Setting;
use highwater_torture::isolation::histories::{Anomaly, Sizes, Tally};
use std::time::{Duration, Instant};

/// Small, so that pages leave the pool.
const ENGINE_DEFAULTS: &[(&str, &str)] = &[
    ("page_size", "4K"),
    ("buffer_pool_size", "1M"),
    ("log_file_size", "4M"),
    ("log_buffer_size", "1M"),
    ("segment_size", "256K"),
];
/// Histories of each setting on one database.
const HISTORIES: u64 = 20;
/// Maximum number of lists of a history: few lists give contention, many give phantoms.
const MAX_KEYS: u64 = 16;

pub(super) const EXAMPLES: &str = "\
Examples:
  highwater torture isolation --seconds 60
  highwater torture isolation --setting serializable --threads 8 --seconds 600 --seed 7

docs/design/isolation.md says what is looked for, and which anomalies each setting forbids.";

/// What is run, and for how long.
#[derive(Args, Clone, Debug)]
pub(super) struct IsolationOptions {
    /// Seconds to run
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    seconds: u64,
    /// Level of isolation, or first-committer-wins; can be given more than once [default: all, in turn]
    #[arg(long, value_name = "SETTING", value_parser = named(Setting::ALL, Setting::name))]
    setting: Vec<Setting>,
    /// Threads that run transactions
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(2..=1000))]
    threads: u64,
    /// Transactions of each thread in one history
    #[arg(long, default_value_t = 60, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    transactions: u64,
    /// Seed of the random numbers [default: drawn, and printed]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    engine: EngineOptions,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Failed`] names the anomalies and the transactions that show them.
pub(super) fn run(options: &IsolationOptions) -> Result<(), Failure> {
    let lines = Lines { stdout_taken: false };
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    lines.write(&format!("seed {seed} (--seed {seed} repeats the transactions, not when they run)"));
    let settings = if options.setting.is_empty() { Setting::ALL.to_vec() } else { options.setting.clone() };
    let mut tallies: Vec<(Setting, Tally)> = settings.into_iter().map(|setting| (setting, Tally::default())).collect();
    let mut rng = Rng::with_seed(seed);
    let end = Instant::now() + Duration::from_secs(options.seconds);
    while Instant::now() < end {
        let engine = options.engine.options(ENGINE_DEFAULTS)?;
        let db = Database::open_storage(StorageSet::memory(), engine)?;
        some(&db, &mut tallies, options, &mut rng, end)
            .map_err(|error| Failure::Failed(format!("with seed {seed}: {error}")))?;
        match db.check()?.findings.first() {
            None => db.close()?,
            Some(finding) => return Err(Failure::Failed(format!("with seed {seed}: {finding}"))),
        }
    }
    tallies.iter().for_each(|(setting, tally)| lines.write(&line(*setting, tally)));
    Ok(())
}

/// Some histories of each setting.
fn some(
    db: &Database,
    tallies: &mut [(Setting, Tally)],
    options: &IsolationOptions,
    rng: &mut Rng,
    end: Instant,
) -> highwater_bench::Result<()> {
    for _ in 0..HISTORIES {
        for (setting, tally) in &mut *tallies {
            // Each setting at least once.
            if Instant::now() < end || tally.histories == 0 {
                let keys = rng.u64(2..=MAX_KEYS);
                let (threads, transactions) = (options.threads as usize, options.transactions as usize);
                tally.add(db, *setting, &Sizes { threads, transactions, keys }, rng)?;
            }
        }
    }
    Ok(())
}

fn line(setting: Setting, tally: &Tally) -> String {
    let Tally { histories, committed, rolled_back, anomalies } = tally;
    let counts: Vec<String> =
        anomalies.iter().map(|(kind, count)| format!("{} {count}", Anomaly::name(*kind))).collect();
    let seen = if counts.is_empty() { "no anomaly".into() } else { format!("allowed: {}", counts.join(", ")) };
    format!(
        "{}: {histories} histories, {committed} transactions committed, {rolled_back} rolled back; {seen}",
        setting.name()
    )
}
