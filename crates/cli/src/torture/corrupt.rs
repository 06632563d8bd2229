//! `highwater torture corrupt`: flips every byte of a small database, swaps its blocks, restores older ones, and checks
//! that each damage is reported or harmless ([`highwater_torture::corruption`]).

use crate::failure::Failure;
use crate::output::Lines;
use crate::progress::Progress;
use clap::Args;
use highwater_torture::corruption::{
    Damage, File, Kind, Left, STORES, Small, Tally, Whole, cases, flips, grouped, lives, run_groups,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const EXAMPLES: &str = "\
Examples:
  highwater torture corrupt
  highwater torture corrupt --every 101 --together 1
  highwater torture corrupt --every 101 --part 3/10
  highwater torture corrupt --keep /tmp/damaged
  highwater torture corrupt --under-load 100 --seed 7

Without --every all bytes are flipped, which takes minutes. With --under-load pages of each owner and type are damaged
while a load runs, and then the database is closed, crashes, is checked, repaired, backed up, restored or salvaged.

Exit status: 0 each damage was reported or is harmless; 1 one was not: the files with it are in the folder of --keep.";

/// Failures that are printed.
const SHOWN: usize = 20;

/// Options of the databases that are damaged under load.
const BESIDE: [&[(&str, &str)]; 6] = [
    &[("page_store", "in-place"), ("change_buffering", "disk")],
    &[("page_store", "in-place"), ("change_buffering", "memory")],
    &[("page_store", "in-place"), ("change_buffering", "off")],
    &[("page_store", "in-place"), ("change_buffering", "disk"), ("doublewrite", "journal")],
    &[("page_store", "out-of-place"), ("change_buffering", "disk")],
    &[("page_store", "out-of-place"), ("change_buffering", "memory"), ("page_compression", "lz4")],
];

/// What is damaged.
#[derive(Args, Clone, Debug)]
pub(super) struct CorruptOptions {
    /// Flip each byte of the headers and every Nth of the others
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    every: u64,
    /// With --every N: begin with this byte of each N
    #[arg(long, default_value_t = 0, value_name = "BYTE")]
    first: u64,
    /// Damage the headers, and of the other blocks each Nth from the Kth on; K counts from 0
    #[arg(long, value_name = "K/N", value_parser = part)]
    part: Option<(u64, u64)>,
    /// Damage the Kth of the databases (a page store each, closed and not) and each Nth after it; K counts from 0
    #[arg(long, value_name = "K/N", value_parser = part)]
    databases: Option<(u64, u64)>,
    /// Flip this many bytes at once, each in another page; where the outcome does not say what became of each, they are
    /// tried one by one
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1000))]
    together: u64,
    /// Threads [default: one for each processor]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1000))]
    threads: Option<u64>,
    /// Instead damage a page under load, this many times
    #[arg(long, alias = "beside", value_name = "LIVES", conflicts_with_all = ["every", "part", "databases", "together",
          "threads", "keep"], value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    under_load: Option<u64>,
    /// Seed of the first of these lives; the next ones follow
    #[arg(long, default_value_t = 1, requires = "under_load")]
    seed: u64,
    /// Folder for the files of the first failure; made when missing
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// [`Failure::NotFine`] if some damage is neither reported nor harmless, which has been printed.
pub(super) fn run(options: &CorruptOptions) -> Result<(), Failure> {
    let lines = Lines { stdout_taken: false };
    if let Some(count) = options.under_load {
        return under_load(count, options.seed, lines);
    }
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    let threads = options.threads.map_or(processors, |threads| threads as usize);
    let mut all = Tally::default();
    let databases = STORES.into_iter().flat_map(|store| [(store, Left::Closed), (store, Left::Stopped)]);
    let (chosen, one_in) = options.databases.unwrap_or((0, 1));
    for (store, left) in databases.skip(chosen as usize).step_by(one_in as usize) {
        let small = Arc::new(Small::new(store, left)?);
        let mut to_try = flips(&small, options.every, options.first % options.every)?;
        for kind in Kind::ALL {
            to_try.extend(cases(&small, kind, if options.every == 1 { 1 } else { 41 })?);
        }
        if let Some((number, parts)) = options.part {
            to_try.retain(|case| case.is_of_part(number, parts));
        }
        let mut progress = Progress::new("damaging", to_try.len() as u64).counting("places");
        let groups = grouped(&small, to_try, options.together as usize);
        let tally = run_groups(Arc::clone(&small), groups, threads, |done| progress.at(done as u64, done as u64));
        drop(progress);
        let store: Vec<String> = store.iter().map(|(name, value)| format!("{name} {value}")).collect();
        lines.write(&format!("{}, {}:", store.join(", "), name(left)));
        tally.lines().for_each(|line| lines.write(&line));
        if let (Some(dir), Some(first), true) = (&options.keep, tally.failures.first(), all.failures.is_empty()) {
            keep(dir, &small, &first.damages)?;
        }
        all.extend(tally);
    }
    for failure in all.failures.iter().take(SHOWN) {
        lines.write(&format!("not as it must be: {failure}"));
    }
    lines.write(&format!(
        "{} damages: {} reported, {} harmless, {} of old versions found by the check only, {} taken for torn writes, \
         {} not as they must be",
        all.all(),
        all.count("reported"),
        all.count("harmless"),
        all.count("found by the check only"),
        all.count("taken for a torn write"),
        all.failures.len()
    ));
    if all.failures.is_empty() { Ok(()) } else { Err(Failure::NotFine) }
}

/// Lives of databases that are damaged under load.
fn under_load(count: u64, seed: u64, lines: Lines) -> Result<(), Failure> {
    let wholes = BESIDE.iter().map(|own| Ok(Arc::new(Whole::new(own)?)));
    let wholes = wholes.collect::<Result<Vec<_>, highwater_bench::Error>>()?;
    let mut progress = Progress::new("damaging under load", count).counting("lives");
    let lived = lives(&wholes, seed..seed.saturating_add(count), |done| progress.at(done, done))?;
    drop(progress);
    lived.failures.iter().take(SHOWN).for_each(|failure| lines.write(&format!("not as it must be: {failure}")));
    lines.write(&format!(
        "{} lives: {} commits, the damage met in {}, {} calls refused, {} databases not opened as declared, {} not as \
         they must be",
        lived.lives,
        lived.commits,
        lived.met,
        lived.refused,
        lived.unopened,
        lived.failures.len()
    ));
    if lived.failures.is_empty() { Ok(()) } else { Err(Failure::NotFine) }
}

/// `K/N`, with K below N.
fn part(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once('/').and_then(|(number, parts)| Some((number.parse().ok()?, parts.parse().ok()?)));
    numbers.filter(|(number, parts)| number < parts).ok_or_else(|| "it is K/N with K below N".to_string())
}

fn name(left: Left) -> &'static str {
    match left {
        Left::Closed => "closed",
        Left::Stopped => "stopped without closing, with a torn page if in place",
    }
}

/// Writes the damaged files, for `highwater check` and `inspect`.
fn keep(dir: &Path, small: &Small, damages: &[Damage]) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    for file in File::ALL {
        let mut bytes = small.files[file as usize].to_vec();
        for damage in damages.iter().filter(|damage| damage.file == file) {
            bytes[damage.offset as usize..][..damage.bytes.len()].copy_from_slice(&damage.bytes);
        }
        let path = dir.join(file.name());
        std::fs::write(&path, bytes).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_below_its_number_of_parts() {
        assert_eq!((part("0/1"), part("9/10")), (Ok((0, 1)), Ok((9, 10))));
        for wrong in ["", "1", "1/", "/2", "2/2", "0/0", "-1/2", "1/2/3"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }
}
