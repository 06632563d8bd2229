//! `bench --backup-to DEST`: a backup concurrently with the measurement, and `--backup-pairs N`: the cost of backups,
//! measured by alternating runs with and without them.
//!
//! Rules
//! 1. Both runs of a pair use the same open database and have the same length. Their order changes from pair to pair,
//!    so that a drift (of the size of the data, of other programs) affects both sides alike.
//! 2. A request to stop ends the present backup and the measurement; the finished pairs are a result.
//! 3. In a run with backups one backup follows another without a pause until the run ends; each is removed before the
//!    next.

use crate::backup::describe;
use crate::engine_options::size;
use crate::failure::Failure;
use crate::output::{Lines, must_be_empty};
use clap::Args;
use highwater::{BackupManifest, BackupOptions, Database};
use highwater_bench::interrupt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;

/// `BackupOptions::default()` as text, for the help.
const DEFAULT_RATE: &str = "32M";

/// A backup concurrently with a measurement.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConcurrentBackup {
    /// Take a full backup into DEST, a new or empty folder, during the run
    #[arg(long, value_name = "DEST")]
    backup_to: Option<PathBuf>,
    /// Bytes of pages that the backup reads in a second at most; 0 = no limit
    #[arg(long, default_value = DEFAULT_RATE, value_name = "BYTES", value_parser = size, requires = "backup_to")]
    backup_rate: u64,
    /// Show what backups cost: run N times without and N times with one backup after the other, in turns
    #[arg(long, default_value_t = 0, value_name = "N", requires = "backup_to",
          value_parser = clap::value_parser!(u64).range(0..=1000))]
    backup_pairs: u64,
}

/// The throughput of a run: transactions in a second.
pub(crate) trait Throughput {
    /// Transactions in a second.
    fn tps(&self) -> f64;
}

impl Throughput for highwater_bench::result::RunResult {
    fn tps(&self) -> f64 {
        self.tps
    }
}

impl ConcurrentBackup {
    /// Runs `run` and, concurrently, what the options ask for; returns after all of it has ended. The result is that of
    /// the last run.
    ///
    /// # Errors
    /// That of a backup, that of `run`.
    pub(crate) fn run_concurrently<R: Throughput>(
        &self,
        database: &Database,
        lines: Lines,
        mut run: impl FnMut() -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let Some(dest) = &self.backup_to else { return run() };
        // Before anything is measured.
        must_be_empty(dest)?;
        if self.backup_pairs > 0 {
            return self.pairs(database, lines, dest, run);
        }
        std::thread::scope(|scope| {
            let backup = scope.spawn(|| {
                let started = Instant::now();
                let manifest = match self.take(database, dest, &AtomicBool::new(false)) {
                    // A request to stop ended it; what was measured is a result.
                    Err(highwater::Error::Usage(_)) if interrupt::is_requested() => return Ok(()),
                    taken => taken.map_err(Failure::from)?,
                };
                lines.write(&describe(&manifest, started.elapsed().as_secs_f64()));
                Ok(())
            });
            let done = run();
            backup.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).and(done)
        })
    }

    fn take(&self, database: &Database, dest: &Path, stop: &AtomicBool) -> highwater::Result<BackupManifest> {
        let options = BackupOptions { max_bytes_per_s: self.backup_rate, ..BackupOptions::default() };
        database.backup(dest, &options, &mut |_| match interrupt::is_requested() || stop.load(SeqCst) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }

    fn pairs<R: Throughput>(
        &self,
        database: &Database,
        lines: Lines,
        dest: &Path,
        mut run: impl FnMut() -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let (mut ratios, mut last, mut pair) = (Vec::new(), None, 0);
        while pair < self.backup_pairs && !interrupt::is_requested() {
            pair += 1;
            let is_first_without = pair % 2 == 1;
            let (mut plain, mut concurrent) = (None, None);
            for without in [is_first_without, !is_first_without] {
                let ran = match without {
                    true => run().map(|result| (result, 0)),
                    false => self.with_backups(database, dest, &mut run),
                };
                let (result, backups) = match ran {
                    Err(_) if interrupt::is_requested() && last.is_some() => break,
                    ran => ran?,
                };
                // A run that was cut short is not compared.
                if !interrupt::is_requested() {
                    *(if without { &mut plain } else { &mut concurrent }) = Some((result.tps(), backups));
                }
                last = Some(result);
            }
            if let (Some((plain, _)), Some((concurrent, backups))) = (plain, concurrent) {
                let ratio = concurrent / plain;
                lines.write(&format!(
                    "Pair {pair}: {plain:.1} transactions/s without, {concurrent:.1} with a backup ({ratio:.3}); \
                     {backups} backups finished"
                ));
                ratios.push(ratio);
            }
        }
        if !ratios.is_empty() {
            lines.write(&of_all(ratios));
        }
        last.ok_or_else(|| highwater_bench::Error::Interrupted.into())
    }

    /// A run during which backups are taken, one after another; counts the finished ones.
    fn with_backups<R>(
        &self,
        database: &Database,
        dest: &Path,
        run: &mut impl FnMut() -> Result<R, Failure>,
    ) -> Result<(R, u64), Failure> {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let backups = scope.spawn(|| {
                let mut finished = 0;
                while !stop.load(SeqCst) && !interrupt::is_requested() {
                    match self.take(database, dest, &stop) {
                        Ok(_) => finished += 1,
                        Err(_) if stop.load(SeqCst) || interrupt::is_requested() => break,
                        Err(error) => return Err(Failure::from(error)),
                    }
                    std::fs::remove_dir_all(dest).map_err(|error| {
                        Failure::Failed(format!("cannot remove the backup {}: {error}", dest.display()))
                    })?;
                }
                Ok(finished)
            });
            let done = run();
            stop.store(true, SeqCst);
            let finished = backups.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            finished.and_then(|finished| Ok((done?, finished)))
        })
    }
}

/// The ratios of all pairs in a line.
fn of_all(mut ratios: Vec<f64>) -> String {
    ratios.sort_by(f64::total_cmp);
    let (least, max) = (ratios[0], ratios[ratios.len() - 1]);
    let median = (ratios[(ratios.len() - 1) / 2] + ratios[ratios.len() / 2]) / 2.0;
    format!("With a backup: {median:.3} of the throughput without (median of {}, {least:.3} to {max:.3})", ratios.len())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_default_rate_is_that_of_a_backup() {
        let default = highwater::BackupOptions::default().max_bytes_per_s;
        assert_eq!(super::size(super::DEFAULT_RATE).ok(), Some(default));
    }

    #[test]
    fn the_median_of_pairs() {
        let line = |ratios: &[f64]| super::of_all(ratios.to_vec());
        assert!(line(&[0.9]).starts_with("With a backup: 0.900 of"), "{}", line(&[0.9]));
        let text = line(&[1.0, 0.8, 0.9, 1.1]);
        assert!(text.contains("0.950 of") && text.ends_with("(median of 4, 0.800 to 1.100)"), "{text}");
    }
}
