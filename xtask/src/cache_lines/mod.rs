//! `cargo xtask cache-lines`: which cache lines many cores would take from each other, and how many transactions each
//! of these lines admits. No such machine is needed: the lines are counted, not timed.
//!
//! How: threads of the release build take turns at transactions (`crates/engine/examples/turns.rs`) under valgrind's
//! tool lackey, which shows every access to memory ([`trace`]). Each thread is taken for a core of its own
//! ([`directory`]), and what it uses is looked up in the source ([`symbols`]).
//!
//! Rules
//! 1. A line is *contended* if it goes from one core to another more often than once in [`RARE`] transactions. By rule
//!    2 what is rarer admits 40 million transactions a second, which 64 cores do not reach with 1.6 µs for each.
//! 2. Its *ceiling*: a transfer is taken to last [`TRANSFER_NS`] ns, and cores that run concurrently with each other to
//!    take the line at every visit. So with V visits a transaction it admits 1 / (V * 100 ns) transactions a second, on
//!    any number of cores. The line with the least ceiling breaks first.
//! 3. A workload with more contended lines than [`WORKLOADS`] allows fails.

mod directory;
mod symbols;
mod table;
mod trace;

use crate::process::finish;
use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Stdio};
use trace::Trace;

/// See rule 1.
const RARE: u64 = 4;
/// How long a line takes from core to core: between two sockets, and within one when many ask for it.
const TRANSFER_NS: f64 = 100.0;
/// Each with the most contended lines it may have.
const WORKLOADS: [(&str, usize); 4] = [("read", 0), ("update", 1), ("insert", 3), ("mixed", 5)];
const CORES: [u8; 2] = [16, 64];
/// The directory's limit, and a core for background steps.
const MAX_CORES: u8 = 127;
const WARM_UP_ROUNDS: &str = "8";
/// Transactions that count, at least: some background steps are among them.
const TRANSACTIONS: usize = 640;
const BUILD: [&str; 7] = ["build", "--profile", "profiling", "--package", "highwater", "--example", "turns"];

/// What is counted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    cores: Vec<u8>,
    workloads: Vec<(&'static str, usize)>,
}

impl Wanted {
    /// Reads the command line: `[--cores N] [WORKLOAD]...`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(arguments: &[&str]) -> Result<Wanted, String> {
        let mut wanted = Wanted { cores: Vec::new(), workloads: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match WORKLOADS.iter().find(|(name, _)| name == argument) {
                Some(workload) => wanted.workloads.push(*workload),
                None if *argument == "--cores" => wanted.cores.push(cores(arguments.next())?),
                None => return Err(format!("{argument} is no workload")),
            }
        }
        if wanted.cores.is_empty() {
            wanted.cores.extend(CORES);
        }
        if wanted.workloads.is_empty() {
            wanted.workloads.extend(WORKLOADS);
        }
        Ok(wanted)
    }
}

fn cores(number: Option<&&str>) -> Result<u8, String> {
    let number = number.and_then(|number| number.parse().ok()).filter(|number| (1..=MAX_CORES).contains(number));
    number.ok_or_else(|| format!("--cores takes a number from 1 to {MAX_CORES}"))
}

/// Counts, and prints a table for each workload and number of cores.
///
/// # Errors
/// In words: a tool is missing or fails, or there are more contended lines than allowed.
pub(crate) fn run(root: &Path, wanted: &Wanted) -> Result<(), String> {
    crate::tools::ensure_valgrind()?;
    let target = crate::process::target(root)?;
    finish(Command::new("cargo").args(BUILD).current_dir(root))?;
    let program = target.join("profiling/examples/turns");
    let functions = symbols::Functions::of(&program)?;
    let scratch = std::env::temp_dir().join(format!("highwater-cache-lines-{}", std::process::id()));
    let mut failures = Vec::new();
    for cores in &wanted.cores {
        for (workload, allowed) in &wanted.workloads {
            let counted = trace_of(&program, &scratch, workload, *cores, &functions);
            // A file that cannot be removed is not a reason to fail.
            let _ = std::fs::remove_dir_all(&scratch);
            let contended = table::print(&program, workload, *cores, counted?)?;
            if contended > *allowed {
                failures.push(format!("{workload}, {cores} cores: {contended} contended lines, {allowed} are allowed"));
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Runs the workload on a new database.
fn trace_of(
    program: &Path,
    dir: &Path,
    workload: &str,
    cores: u8,
    functions: &symbols::Functions,
) -> Result<Trace, String> {
    std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let threads = cores.to_string();
    finish(Command::new(program).arg("load").arg(dir).arg(&threads))?;
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=lackey", "--trace-mem=yes", "--fair-sched=yes", "--log-fd=2"])
        .arg(program)
        .arg("run")
        .arg(dir);
    command.args([workload, &threads, WARM_UP_ROUNDS, &TRANSACTIONS.div_ceil(cores.into()).to_string()]);
    // The allocator makes as many arenas as a machine with this many cores has.
    command.env("MALLOC_ARENA_MAX", "512").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let lines = child.stderr.take().ok_or("valgrind has no standard error")?;
    let trace = trace::read(BufReader::with_capacity(1 << 20, lines), cores, &|address| functions.is_engine(address));
    let status = child.wait().map_err(|error| error.to_string())?;
    let trace = trace?;
    if status.success() { Ok(trace) } else { Err(format!("{command:?}: {status}\n{}", trace.messages.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_names_cores_and_workloads() {
        let wanted = Wanted::parse(&["--cores", "4", "update"]).unwrap();
        assert_eq!((wanted.cores, wanted.workloads[0].0), (vec![4], "update"));
        assert_eq!(Wanted::parse(&[]).unwrap().workloads.len(), WORKLOADS.len());
        for wrong in [&["--cores"][..], &["--cores", "128"], &["--cores", "0"], &["no-workload"]] {
            assert!(Wanted::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
