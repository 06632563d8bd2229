//! `bench --reader-processes N`: other processes that export the tables during the measurement, one table after
//! another.
//!
//! Rules
//! 1. A reader is a process of this program that runs `export`: its rows are those of one snapshot. When it has ended
//!    the next one starts, until the run ends.
//! 2. A failed export fails the run. An unfinished export at the end of the run is stopped and not counted.

use crate::failure::Failure;
use crate::output::Lines;
use crate::this_program;
use clap::Args;
use highwater::Database;
use highwater_bench::interrupt;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Readers that run during a measurement.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConcurrentReaders {
    /// Processes that export the tables during the run, one table after another, as fast as they can
    #[arg(long, default_value_t = 0, value_name = "N", conflicts_with = "device",
          value_parser = clap::value_parser!(u64).range(0..=1000))]
    reader_processes: u64,
}

impl ConcurrentReaders {
    /// Number of processes.
    pub(crate) fn processes(&self) -> u64 {
        self.reader_processes
    }

    /// Runs `run` with concurrent readers; returns after they have ended.
    ///
    /// # Errors
    /// That of a reader, that of `run`.
    pub(crate) fn run_concurrently<R>(
        &self,
        database: &Database,
        dir: Option<&Path>,
        lines: Lines,
        run: impl FnOnce() -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let Some(dir) = dir.filter(|_| self.reader_processes > 0) else { return run() };
        let tables: Vec<String> = database.tables().iter().map(|table| table.name().to_string()).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = |number| {
                let (tables, stop) = (&tables, &stop);
                scope.spawn(move || export_in_turns(dir, tables, number, stop))
            };
            let readers: Vec<_> = (0..self.reader_processes as usize).map(reader).collect();
            let done = run();
            stop.store(true, Relaxed);
            let mut finished = 0;
            for reader in readers {
                finished += reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            lines.write(&format!("{} reader processes exported {finished} tables", self.reader_processes));
            done
        })
    }
}

/// Exports one table after the other, beginning with the `number`th; returns how many exports finished.
fn export_in_turns(dir: &Path, tables: &[String], number: usize, stop: &AtomicBool) -> Result<u64, Failure> {
    let mut finished = 0;
    for table in tables.iter().cycle().skip(number % tables.len().max(1)) {
        let child = this_program::command()?
            .arg("export")
            .args([dir.as_os_str(), table.as_ref()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::Failed(format!("a reader process does not start: {error}")))?;
        if !ends_well(child, stop)? {
            break;
        }
        finished += 1;
    }
    Ok(finished)
}

/// Waits until a reader has ended; false if the run ended before it.
fn ends_well(mut child: Child, stop: &AtomicBool) -> Result<bool, Failure> {
    let failed = |what: String| Failure::Failed(format!("a reader process failed: {what}"));
    loop {
        if let Some(status) = child.try_wait().map_err(|error| failed(error.to_string()))? {
            if status.success() {
                return Ok(true);
            }
            let mut said = String::new();
            let _ = child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut said));
            return Err(failed(said.trim_end().into()));
        }
        if stop.load(Relaxed) || interrupt::is_requested() {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
