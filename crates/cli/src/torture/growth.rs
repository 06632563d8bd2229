//! `highwater torture growth`: the growth of operations' costs with their sizes, and of the purge backlog under skewed
//! loads ([`highwater_torture::growth`]).

use crate::failure::Failure;
use crate::output::Lines;
use clap::Args;
use highwater_torture::growth::{Growing, Growth, Load, MAX_RATIO, OPERATIONS, STEADY, Steady};

pub(super) const EXAMPLES: &str = "\
Examples:
  highwater torture growth
  highwater torture growth --only rollback --only purge
  highwater torture growth --scale 4

Each operation is done at N, 2N and 4N. Exit status 1 if 4N takes more than 9 times as long as N (N log N takes 4 to 5
times as long, a quadratic operation 16 times), or if the purge backlog, or its cost, grows under a steady load.";

/// What is measured.
#[derive(Args, Clone, Debug)]
pub(super) struct GrowthOptions {
    /// Only this operation or load; can be given more than once [default: all]
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// N is this many times what it is otherwise
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    scale: f64,
}

fn scale(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(scale) if (0.01..=100.0).contains(&scale) => Ok(scale),
        _ => Err("a number between 0.01 and 100".to_string()),
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Failed`] names what grows too fast.
pub(super) fn run(options: &GrowthOptions) -> Result<(), Failure> {
    let names: Vec<&str> =
        OPERATIONS.iter().map(|operation| operation.name).chain(STEADY.iter().map(|load| load.name)).collect();
    if let Some(unknown) = options.only.iter().find(|only| !names.contains(&only.as_str())) {
        return Err(Failure::Usage(format!("--only {unknown}: there are {}", names.join(", "))));
    }
    let is_wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let lines = Lines { stdout_taken: false };
    let mut wrong = Vec::new();
    for operation in OPERATIONS.iter().filter(|operation| is_wanted(operation.name)) {
        let growth = operation.measure(options.scale)?;
        lines.write(&of_operation(operation, options.scale, &growth));
        if !growth.is_bounded() {
            wrong.push(format!("{}: 4N takes {:.1} times as long as N", operation.name, growth.ratio()));
        }
    }
    for load in STEADY.iter().filter(|load| is_wanted(load.name)) {
        let steady = load.run()?;
        lines.write(&of_load(load, &steady));
        if !steady.is_steady() {
            wrong.push(format!("{}: {}", load.name, of_load(load, &steady)));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Failed(wrong.join("; "))) }
}

fn of_operation(operation: &Growing, scale: f64, growth: &Growth) -> String {
    let [n, twice, four] = growth.times.map(|time| format!("{:.1}", time.as_secs_f64() * 1e3));
    format!(
        "{:<14} N = {:<7} {n:>9} {twice:>9} {four:>9} ms   4N/N = {:>4.1} (at most {MAX_RATIO})   {}",
        operation.name,
        operation.size_at(scale),
        growth.ratio(),
        operation.of,
    )
}

fn of_load(load: &Load, steady: &Steady) -> String {
    let [second, last] = steady.times.map(|time| format!("{:.1}", time.as_secs_f64() * 1e3));
    let [left_before, left] = steady.left;
    let [undo_before, undo] = steady.undo_bytes.map(|bytes| bytes >> 10);
    format!(
        "{:<14} second quarter {second} ms, {left_before} transactions wait for purge, {undo_before} KiB of undo; last \
         {last} ms, {left}, {undo} KiB   {}",
        load.name, load.what
    )
}
