//! Calls on a database as a whole.

use super::choices::Choices;
use super::copies::{Backups, dumped};
use super::options::{Drawn, OPTIONS, is_refused_pool_size};
use super::played::call;
use super::player::Player;
use highwater::config::ChangeBuffering;
use highwater::{CheckReport, Database, Error as Engine, LatencySnapshot, MetricsFormat, PurgeWatch, Scan, Table};
use highwater_bench::{Error, Result};
use std::ops::ControlFlow;

/// One of this many of these calls is about backups, which take longest.
const BACKUPS: u32 = 8;

/// Dynamic options that are not changed: with one thread, no statement waits for a lock.
const NOT_CHANGED: [&str; 1] = ["lock_wait_timeout_ms"];

/// Damage that a check found, as an error.
///
/// # Errors
/// [`Engine::Corrupt`] with the first finding.
pub(crate) fn expect_sound(report: &CheckReport) -> Result<()> {
    match report.findings.first() {
        Some(finding) => Err(Engine::Corrupt(format!("the check found: {finding}")).into()),
        None => Ok(()),
    }
}

/// Ignores the error of a call that is refused because it waits for writing transactions.
fn unless_refused<T>(done: highwater::Result<T>) -> Result<Option<T>> {
    match done {
        Err(Engine::LockWaitTimeout) => Ok(None),
        done => Ok(Some(done?)),
    }
}

impl Player {
    /// Plays one call.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for a wrong answer.
    pub(super) fn call_whole(&mut self, db: &Database, backups: Option<&mut Backups>, rng: &mut Choices) -> Result<()> {
        if let (0, Some(backups)) = (rng.u32(..BACKUPS), backups) {
            return backups.play(self, db, rng);
        }
        match rng.u32(..16) {
            0..=3 => {
                call!(self.played, Database::flush_log(db))?;
                self.oracle.is_durable();
                Ok(())
            }
            4..=7 => {
                let mode = ChangeBuffering::ALL[rng.usize(..ChangeBuffering::ALL.len())];
                Ok(call!(self.played, Database::set_change_buffering(db, mode))?)
            }
            8 => {
                let report = match rng.bool() {
                    true => call!(self.played, Database::check(db)),
                    false => call!(self.played, Database::check_with(db, &mut |_, _| {})),
                };
                unless_refused(report)?.map_or(Ok(()), |report| expect_sound(&report))
            }
            10 => Ok(call!(self.played, Database::finish_drops(db))?),
            11 => self.change_options(db, rng),
            12 if rng.bool() => dumped(db, &self.oracle, &self.played, rng),
            13 => {
                let compacted = call!(self.played, Database::compact(db, &mut |_| ControlFlow::Continue(())));
                unless_refused(compacted).map(drop)
            }
            9 => {
                let report = call!(self.played, Database::repair_indexes(db, &mut |_, _| {}));
                unless_refused(report)?.map_or(Ok(()), |report| expect_sound(&report.found))
            }
            _ => self.observe(db),
        }
    }

    /// Changes an option while the database is open, to a value that it can be opened with too.
    fn change_options(&self, db: &Database, rng: &mut Choices) -> Result<()> {
        let is_changed = |option: &&Drawn| option.is_dynamic() && !NOT_CHANGED.contains(&option.name);
        let drawn: Vec<_> = OPTIONS.iter().filter(is_changed).collect();
        let drawn = drawn[rng.usize(..drawn.len())];
        let value = drawn.values[rng.usize(..drawn.values.len())];
        match rng.bool() {
            true => match call!(self.played, Database::set_option(db, drawn.name, value)) {
                Err(error) if is_refused_pool_size(&error) => {}
                done => done?,
            },
            false => {
                let io_capacity = rng.u64(16..5000);
                call!(self.played, Database::change_options(db, |options| options.io_capacity = io_capacity))?;
            }
        }
        Ok(())
    }

    /// Reads the statistics of a table, and checks that they are possible.
    fn estimate(&self, db: &Database, table: &Table) -> Result<()> {
        let played = &self.played;
        let about = call!(played, Database::approximate_rows(db, table));
        let analyzed = call!(played, Database::analyze(db, call!(played, Table::name(table))));
        let (Some(_), Some(found)) = (unless_refused(about)?, unless_refused(analyzed)?) else { return Ok(()) };
        let mut read = db.snapshot()?;
        let estimate = call!(played, Scan::estimate(read.scan(table)));
        unless_refused(estimate)?;
        match call!(played, Table::statistics(table)) == Some(found) {
            true => Ok(()),
            false => Err(Error::Data(format!("the statistics of table {} are others", table.name()))),
        }
    }

    /// Calls that report on the database and change nothing.
    fn observe(&self, db: &Database) -> Result<()> {
        let played = &self.played;
        let wrong = |what: &str| Err(Error::Data(format!("{what} of the open database is wrong")));
        let tables = call!(played, Database::tables(db));
        let names: Vec<&str> = tables.iter().map(|table| call!(played, Table::name(table))).collect();
        if !self.oracle.tables.keys().all(|name| names.contains(&name.as_str())) {
            return wrong("the list of tables");
        }
        if self.oracle.tables.keys().any(|name| !call!(played, Database::has_table(db, name))) {
            return wrong("whether it has a table");
        }
        for (name, model) in &self.oracle.tables {
            let definition = call!(played, Table::definition(&call!(played, Database::table(db, name))?));
            if definition.indexes.len() != model.indexes.len() {
                return wrong("a table's definition");
            }
            self.estimate(db, &call!(played, Database::table(db, name))?)?;
        }
        call!(played, Database::stats(db));
        if !call!(played, Database::metrics_text(db, MetricsFormat::OpenMetrics)).ends_with("# EOF\n") {
            return wrong("the text of metrics");
        }
        let purge = call!(played, Database::purge_state(db));
        call!(played, PurgeWatch::look(&mut PurgeWatch::default(), &purge));
        let lengths = call!(played, Database::list_lengths(db));
        if lengths.frames == 0 || lengths.dirty > lengths.frames {
            return wrong("the length of a list");
        }
        for latency in
            [call!(played, Database::page_read_latency(db)), call!(played, Database::free_frame_wait_latency(db))]
        {
            if call!(played, LatencySnapshot::count(&latency)) == 0 && latency.sum_us() > 0 {
                return wrong("a latency");
            }
        }
        let is_read_only = call!(played, Database::storage(db)).is_read_only();
        if call!(played, Database::is_recovered_in_memory(db)) && !is_read_only {
            return wrong("whether it was recovered in memory");
        }
        call!(played, Database::probe(db));
        if call!(played, Database::options(db)).page_size.bytes().is_none() {
            return wrong("the page size");
        }
        match call!(played, Database::archive_problem(db)) {
            Some(problem) => Err(Engine::Corrupt(problem).into()),
            None => Ok(()),
        }
    }
}
