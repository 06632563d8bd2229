//! Deletes most rows of a table while clients update the rest, and measures the size of the files before and after.
//!
//! Rules
//! 1. The rows that are deleted are spread evenly over the table: no page becomes empty by itself, leaves must be
//!    merged. The id alone determines whether a row is deleted.
//! 2. Clients run from before the deletion until the space is returned. Each transaction updates one row that stays.
//! 3. Space counts as returned when purge has nothing left and the folder's allocated bytes have not fallen for
//!    `STEADY_FOR`; `MAX_WAIT` ends the wait in any case.
//! 4. The remaining rows are counted at the end, and a check must find nothing.

use crate::concurrent_clients::{Clients, Phase, with_clients};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::peers::space_bytes;
use crate::run::{RunOptions, run};
use crate::store::embedded::Embedded;
use crate::workload::user_table::{self, UserTable};
use crate::workload::{Silent, load_or_reuse};
use fastrand::Rng;
use highwater::{BackupOptions, Database, Table, values};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Rule 3.
const STEADY_FOR: Duration = Duration::from_secs(3);
const MAX_WAIT: Duration = Duration::from_secs(300);
/// Rule 3: history list length that counts as purged, because running clients always leave some transactions to purge.
const MAX_HISTORY: u64 = 2000;
/// Rows of a deleting transaction.
const ROWS_A_DELETION: u64 = 100;
/// Position of the column that clients update.
const DUTY: usize = 3;

/// The parameters of the measurement.
#[derive(Clone, Debug)]
pub struct Config {
    /// Bytes of column values to load.
    pub bytes: u64,
    /// Percent of the rows to delete, 1 to 99.
    pub percent: u64,
    /// Client threads.
    pub threads: usize,
    /// Seconds of the clients' run before the deletion.
    pub seconds: f64,
    /// Folder of the database.
    pub dir: PathBuf,
    /// An empty or new folder for the backups, which are removed again.
    pub backup_to: PathBuf,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// The size of the database at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes that the file system has allocated for the data file.
    pub data_bytes: u64,
    /// The same for all files of the database.
    pub allocated_bytes: u64,
    /// Bytes of a full backup.
    pub backup_bytes: u64,
}

/// The result.
#[derive(Clone, Copy, Debug)]
pub struct Shrunk {
    /// Rows before and after.
    pub rows: [u64; 2],
    /// Loaded.
    pub loaded: Footprint,
    /// After the deletion, purge, and the return of space.
    pub deleted: Footprint,
    /// After [`Database::compact`].
    pub compacted: Footprint,
    /// Pages that the compaction could not move, such as undo of clients; the file cannot end before them.
    pub fixed_pages: u64,
    /// Clients without the deletion.
    pub alone: Phase,
    /// Clients that run during the deletion.
    pub deleting: Phase,
    /// Clients between the last deletion and the return of the space.
    pub returning: Phase,
    /// Clients that run during the compaction.
    pub compacting: Phase,
}

/// Loads, deletes, waits, compacts. `tell` gets a line for each phase that begins.
///
/// # Errors
/// The engine's; [`Error::Data`] if a row is missing or a page is not sound; [`Error::Interrupted`].
pub fn measure(db: &Database, config: &Config, tell: &mut dyn FnMut(&str)) -> Result<Shrunk> {
    tell("Loading");
    let table = load(db, config)?;
    let before = ids(db, &table, config.percent)?;
    let loaded = footprint(db, config)?;
    let updates = Updates { table: &table, percent: config.percent, last: before.last };
    let client = |number: usize| {
        let (updates, mut rng) = (&updates, Rng::with_seed(config.seed.wrapping_add(number as u64)));
        Ok(move || updates.update(db, &mut rng))
    };
    let shrunk = with_clients(config.threads, client, |clients| {
        Phases { db, table: &table, config, clients }.run(&before, loaded, tell)
    })?;
    let left = ids(db, &table, config.percent)?;
    if (left.rows, left.kept) != (before.kept, before.kept) {
        return Err(Error::Data(format!("{} rows are left, not {}", left.rows, before.kept)));
    }
    let report = db.check()?;
    if !report.is_sound() {
        return Err(Error::Data(format!("the check has {} findings", report.findings.len())));
    }
    Ok(shrunk)
}

/// Rule 1.
fn is_deleted(id: u64, percent: u64) -> bool {
    id.wrapping_mul(37) % 100 < percent
}

fn load(db: &Database, config: &Config) -> Result<Table> {
    if !db.tables().is_empty() {
        return Err(Error::Usage("the folder has a database with tables: name a new one".into()));
    }
    let store = Embedded::new(db.clone());
    let load = user_table::Config { bytes: config.bytes, rows_per_transaction: 100, seed: config.seed };
    let workload = UserTable::new(load);
    load_or_reuse(&store, &workload, 1, &Silent)?;
    let options = RunOptions { threads: 2, seconds: 0.0, ..RunOptions::default() };
    run(&store, &workload, &options, &mut |_| {})?;
    Ok(db.table(user_table::TABLE)?)
}

/// Rows of the table.
struct Ids {
    rows: u64,
    kept: u64,
    last: u64,
}

fn ids(db: &Database, table: &Table, percent: u64) -> Result<Ids> {
    let mut found = Ids { rows: 0, kept: 0, last: 0 };
    let mut txn = db.snapshot()?;
    for key in txn.scan(table).keys()? {
        let key = key?;
        let id = key.u64(0);
        found.rows += 1;
        found.kept += u64::from(!is_deleted(id, percent));
        found.last = id;
    }
    Ok(found)
}

fn footprint(db: &Database, config: &Config) -> Result<Footprint> {
    let options = BackupOptions { max_bytes_per_s: 0, ..BackupOptions::default() };
    let backup = db.backup(&config.backup_to, &options, &mut |_| ControlFlow::Continue(()))?;
    std::fs::remove_dir_all(&config.backup_to).map_err(|error| Error::file(&config.backup_to, error))?;
    let data_bytes = std::fs::metadata(config.dir.join("data")).map_or(0, |file| file.blocks() * 512);
    Ok(Footprint { data_bytes, allocated_bytes: space_bytes(&config.dir), backup_bytes: backup.bytes() })
}

/// The transactions of a client.
struct Updates<'a> {
    table: &'a Table,
    percent: u64,
    last: u64,
}

impl Updates<'_> {
    /// Rule 2.
    fn update(&self, db: &Database, rng: &mut Rng) -> Result<()> {
        let id = loop {
            let id = rng.u64(1..=self.last);
            if !is_deleted(id, self.percent) {
                break id;
            }
        };
        let duty = format!("duty {}", rng.u32(..));
        db.transact(|txn| txn.update(self.table, &values![id], &[(DUTY, duty.as_str().into())]))?;
        Ok(())
    }
}

struct Phases<'a> {
    db: &'a Database,
    table: &'a Table,
    config: &'a Config,
    clients: &'a Clients,
}

impl Phases<'_> {
    fn run(&self, before: &Ids, loaded: Footprint, tell: &mut dyn FnMut(&str)) -> Result<Shrunk> {
        tell("Updating without a deletion");
        let alone = self.clients.during(|| self.clients.pause(self.config.seconds))?;
        tell(&format!("Deleting {} % of the rows", self.config.percent));
        let deleting = self.clients.during(|| self.delete(before.last))?;
        tell("Waiting until purge has ended and the space has come back");
        let returning = self.clients.during(|| self.wait_for_space())?;
        let deleted = footprint(self.db, self.config)?;
        tell("Compacting");
        let mut fixed_pages = 0;
        let compacting = self.clients.during(|| {
            let report = self.db.compact(&mut |_| match interrupt::is_requested() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })?;
            fixed_pages = report.fixed_pages;
            interrupt::check()
        })?;
        let compacted = footprint(self.db, self.config)?;
        let rows = [before.rows, before.kept];
        Ok(Shrunk { rows, loaded, deleted, compacted, fixed_pages, alone, deleting, returning, compacting })
    }

    fn delete(&self, last: u64) -> Result<()> {
        let mut from = 1;
        while from <= last {
            self.clients.may_go_on()?;
            let to = (from + ROWS_A_DELETION - 1).min(last);
            self.db.transact(|txn| {
                (from..=to)
                    .filter(|id| is_deleted(*id, self.config.percent))
                    .try_for_each(|id| txn.delete(self.table, &values![id]).map(drop))
            })?;
            from = to + 1;
        }
        Ok(())
    }

    /// Rule 3.
    fn wait_for_space(&self) -> Result<()> {
        let end = Instant::now() + MAX_WAIT;
        let (mut least, mut since) = (u64::MAX, Instant::now());
        while Instant::now() < end && since.elapsed() < STEADY_FOR {
            self.clients.pause(0.2)?;
            let bytes = space_bytes(&self.config.dir);
            if bytes < least || self.db.purge_state().history_list_length > MAX_HISTORY {
                (least, since) = (bytes.min(least), Instant::now());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater::Options;

    #[test]
    fn space_returns_with_clients() {
        // Where other processes have the processors no transaction may end during the deletion.
        assert!((0..3).any(|_| space_returns()));
    }

    /// Whether a client ran a transaction during the deletion, and most of the file was truncated.
    fn space_returns() -> bool {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            bytes: 4 << 20,
            percent: 90,
            threads: 2,
            seconds: 0.1,
            dir: dir.path().join("db"),
            backup_to: dir.path().join("backup"),
            seed: 1,
        };
        let db = Database::open(&config.dir, Options::default()).unwrap();
        let mut lines = Vec::new();
        let shrunk = measure(&db, &config, &mut |line| lines.push(line.to_string())).unwrap();
        assert_eq!(lines.len(), 5, "{lines:?}");
        assert!(shrunk.rows[0] > 5000 && shrunk.rows[1].abs_diff(shrunk.rows[0] / 10) < 10, "{shrunk:?}");
        let again = measure(&db, &config, &mut |_| {}).unwrap_err();
        assert!(again.to_string().contains("name a new one"), "{again}");
        println!("{shrunk:?}");
        let is_short = shrunk.compacted.data_bytes < shrunk.loaded.data_bytes / 2;
        assert!(is_short || shrunk.fixed_pages > 0, "{shrunk:?}");
        is_short && shrunk.deleting.tps > 0.0 && shrunk.deleting.max_ms > 0.0
    }
}
