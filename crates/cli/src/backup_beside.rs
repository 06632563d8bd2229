//! `bench --backup-to DEST`: a backup beside the measurement, to see what it costs.

use crate::backup::describe;
use crate::engine_options::size;
use crate::failure::Failure;
use crate::output::Lines;
use clap::Args;
use highwater::{BackupOptions, Database};
use highwater_bench::interrupt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

/// A backup beside a measurement.
#[derive(Args, Clone, Debug)]
pub struct BackupBeside {
    /// Take a full backup into DEST, a new or empty folder, beside the run
    #[arg(long, value_name = "DEST")]
    backup_to: Option<PathBuf>,
    /// Bytes of pages that the backup reads in a second at most; 0 = no limit
    #[arg(long, default_value = "64M", value_name = "BYTES", value_parser = size, requires = "backup_to")]
    backup_rate: u64,
}

impl BackupBeside {
    /// Runs `run`, and the backup beside it if one was asked for; both have ended then.
    ///
    /// # Errors
    /// That of the backup; `run`'s own is within.
    pub fn beside<R>(&self, database: &Database, lines: Lines, run: impl FnOnce() -> R) -> Result<R, Failure> {
        let Some(dest) = &self.backup_to else { return Ok(run()) };
        let options = BackupOptions { max_bytes_per_s: self.backup_rate, ..BackupOptions::default() };
        let take = || {
            let started = Instant::now();
            let manifest = database.backup(dest, &options, &mut |_| match interrupt::is_requested() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })?;
            lines.write(&describe(&manifest, started.elapsed().as_secs_f64()));
            Ok(())
        };
        std::thread::scope(|scope| {
            let backup = scope.spawn(take);
            let done = run();
            let taken: Result<(), Failure> = backup.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            taken.map(|()| done)
        })
    }
}
