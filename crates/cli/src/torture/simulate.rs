//! `highwater torture simulate`: the whole engine on one thread, on simulated disks that fail, against an oracle
//! ([`highwater_torture::simulation`]).
//!
//! Each database has one thread; several run concurrently with each other. A failure names the seed of its database and
//! the command that repeats it. Then it searches for smaller cases: fewer lives, fewer steps, other seeds; it also
//! names the smallest failing case.

use crate::failure::Failure;
use crate::output::Lines;
use crate::progress::Progress;
use clap::Args;
use highwater_torture::simulation::{MAX_STEPS, Simulation, Tally, every_failure};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(super) const EXAMPLES: &str = "\
Examples:
  highwater torture simulate --cuts 10000
  highwater torture simulate --cuts 1000000
  highwater torture simulate --cuts 1000 --twice
  highwater torture simulate --every-failure --databases 20 --steps 60
  highwater torture simulate --seed 4711 --databases 1";

/// Lives of one database (openings that end with a cut, a failure or a close), before the next database is created.
const LIVES: u32 = 12;
/// Seeds tried for each size when a smaller case is looked for.
const SMALLER_SEEDS: u64 = 300;
/// Sizes of smaller cases: lives and steps.
const SMALLER: [(u32, u32); 5] = [(1, 30), (2, 30), (1, 100), (2, 100), (3, 200)];

/// What is simulated, and how often.
#[derive(Args, Clone, Debug)]
pub(super) struct SimulateOptions {
    /// Minimum number of power cuts; cuts during openings and other outcomes of the same cut count too
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    cuts: u64,
    /// Number of databases, instead of a number of cuts
    #[arg(long, conflicts_with = "cuts", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    databases: Option<u64>,
    /// Seed of the first database; the others count up from it [default: drawn, and printed]
    #[arg(long)]
    seed: Option<u64>,
    /// Lives of each database: openings that end with a cut, a failure or a close
    #[arg(long, default_value_t = LIVES, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    lives: u32,
    /// Maximum number of steps of a life
    #[arg(long, default_value_t = MAX_STEPS, value_parser = clap::value_parser!(u32).range(21..=1_000_000))]
    steps: u32,
    /// Run each database twice and compare the requests to the disks
    #[arg(long)]
    twice: bool,
    /// Instead of successive lives, repeat one short life of each database; each time another read, write, sync,
    /// growth, reservation or discard fails, or the disk is full from that growth on
    #[arg(long, conflicts_with_all = ["cuts", "lives", "twice"])]
    every_failure: bool,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Failed`] names what was lost or wrong, and how to repeat it.
pub(super) fn run(options: &SimulateOptions) -> Result<(), Failure> {
    let lines = Lines { stdout_taken: false };
    let first = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    lines.write(&format!("seed {first} (repeat with --seed {first})"));
    if options.every_failure {
        return fail_everything(first, options, &lines);
    }
    let total = options.databases.unwrap_or(options.cuts);
    let mut progress = Progress::new("simulating", total).counting("power cuts");
    let goes_on = |all: &Tally, begun: u64| options.databases.map_or(cuts_of(all) < options.cuts, |all| begun < all);
    let done = on_all_processors(
        first,
        goes_on,
        |seed| simulated(seed, options),
        |all, databases| {
            progress.at(options.databases.map_or(cuts_of(all), |_| databases), cuts_of(all));
        },
    );
    drop(progress);
    let (all, databases) = done.map_err(|(seed, error)| explained(seed, options, &error))?;
    let Tally { lives, cuts, recovery_cuts, failures, acknowledged, extent_maps, .. } = all;
    let Tally { silent_faults, silent_faults_reported, silent_faults_unseen, rollbacks_skipped, .. } = all;
    let twice = if options.twice { ", each run twice with the same history" } else { "" };
    lines.write(&format!(
        "{databases} databases{twice}: {lives} lives, {cuts} power cuts and {recovery_cuts} of openings, {failures} \
         failed operations; {silent_faults} silent faults of the disks: {silent_faults_reported} reported \
         ({rollbacks_skipped} rollbacks \
         skipped), {silent_faults_unseen} lost writes not seen, the others harmless; up to {extent_maps} extent maps; \
         {acknowledged} transactions and schema changes acknowledged, none lost, no wrong answer"
    ));
    Ok(())
}

/// With `--every-failure`.
fn fail_everything(first: u64, options: &SimulateOptions, lines: &Lines) -> Result<(), Failure> {
    let databases = options.databases.unwrap_or(1);
    let mut progress = Progress::new("failing", databases).counting("operations");
    let operations = AtomicU64::new(0);
    let fail = |seed| {
        let count = || {
            operations.fetch_add(1, Relaxed);
        };
        every_failure(seed, options.steps, count).map_err(|error| error.to_string())
    };
    let goes_on = |_: &Tally, begun| begun < databases;
    let done = on_all_processors(first, goes_on, fail, |_, ended| progress.at(ended, operations.load(Relaxed)));
    drop(progress);
    let (all, _) = done.map_err(|(seed, error)| explained_failure(seed, options.steps, &error))?;
    let operations = operations.into_inner();
    let Tally { failures, cuts, acknowledged, .. } = all;
    lines.write(&format!(
        "{databases} databases: {operations} operations made to fail, {failures} of them reached, {cuts} power cuts \
         afterwards; {acknowledged} transactions and schema changes acknowledged, none lost, no wrong answer"
    ));
    Ok(())
}

/// The progress of a run's databases.
#[derive(Default)]
struct Run {
    all: Tally,
    begun: u64,
    ended: u64,
    failed: Option<(u64, String)>,
}

/// Runs databases one after another on a thread for each processor, while `goes_on` returns true for their counts and
/// their number. Returns the counts and the number, or a failed seed and its error.
fn on_all_processors(
    first: u64,
    goes_on: impl Fn(&Tally, u64) -> bool + Sync,
    simulate: impl Fn(u64) -> Result<Tally, String> + Sync,
    tell: impl FnMut(&Tally, u64) + Send,
) -> Result<(Tally, u64), (u64, String)> {
    let run = Mutex::new((Run::default(), tell));
    let begin = || {
        let (run, _) = &mut *run.lock();
        let seed = (run.failed.is_none() && goes_on(&run.all, run.begun)).then(|| first.wrapping_add(run.begun));
        run.begun += u64::from(seed.is_some());
        seed
    };
    let work = || {
        while let Some(seed) = begin() {
            let done = simulate(seed);
            let (run, tell) = &mut *run.lock();
            run.ended += 1;
            match done {
                Ok(tally) => run.all.add(&tally),
                Err(error) => run.failed = Some((seed, error)),
            }
            tell(&run.all, run.ended);
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..processors).for_each(|_| drop(scope.spawn(work))));
    let (Run { all, ended, failed, .. }, _) = run.into_inner();
    failed.map_or(Ok((all, ended)), Err)
}

/// The failure with the command that repeats it, and one with fewer steps if there is one.
fn explained_failure(seed: u64, steps: u32, error: &str) -> Failure {
    let command =
        |steps| format!("highwater torture simulate --every-failure --seed {seed} --databases 1 --steps {steps}");
    let mut text = format!("database {seed}: {error}; repeat with: {}", command(steps));
    let fewer = [21, 30, 60, 120].into_iter().filter(|fewer| *fewer < steps);
    let found = fewer.map(|fewer| (fewer, every_failure(seed, fewer, || {}))).find_map(|(n, r)| Some((n, r.err()?)));
    if let Some((fewer, error)) = found {
        text += &format!("; a smaller case: {error}; {}", command(fewer));
    }
    Failure::Failed(text)
}

fn cuts_of(tally: &Tally) -> u64 {
    tally.cuts + tally.recovery_cuts
}

fn simulated(seed: u64, options: &SimulateOptions) -> Result<Tally, String> {
    let simulation = once(seed, options.lives, options.steps)?;
    // When an engine looks again whether a full disk has room depends on the clock.
    if options.twice && !simulation.has_small_disks() {
        let again = once(seed, options.lives, options.steps)?;
        if let Some(difference) = simulation.history().difference(again.history()) {
            return Err(format!("two runs differ {difference}"));
        }
    }
    Ok(simulation.tally())
}

fn once(seed: u64, lives: u32, steps: u32) -> Result<Simulation, String> {
    let mut simulation = Simulation::new(seed, steps);
    simulation.run(lives).map_err(|error| error.to_string())?;
    Ok(simulation)
}

/// The failure with the command that repeats it, and a smaller case if there is one.
fn explained(seed: u64, options: &SimulateOptions, error: &str) -> Failure {
    let command = |seed: u64, lives: u32, steps: u32| {
        format!("highwater torture simulate --seed {seed} --databases 1 --lives {lives} --steps {steps}")
    };
    let mut text = format!("database {seed}: {error}; repeat with: {}", command(seed, options.lives, options.steps));
    let smaller = SMALLER.iter().filter(|(lives, steps)| *lives < options.lives && *steps <= options.steps);
    let of_size = |size| (0..SMALLER_SEEDS).map(move |more| (seed.wrapping_add(more), size));
    let fewer_lives = (1..options.lives).map(|lives| (seed, (lives, options.steps)));
    let mut cases = smaller.copied().flat_map(of_size).chain(fewer_lives);
    let found = cases.find_map(|(seed, (lives, steps))| Some((seed, lives, steps, once(seed, lives, steps).err()?)));
    if let Some((seed, lives, steps, error)) = found {
        text += &format!("; a smaller case: {error}; {}", command(seed, lives, steps));
    }
    Failure::Failed(text)
}
