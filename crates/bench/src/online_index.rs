//! Builds an index of a large table while clients change the table, and measures the build and the clients.
//!
//! Rules
//! 1. The table is sysbench's, loaded without a secondary index. The clients run `write_only` over all of its rows,
//!    drawn uniformly: a transaction updates the column of the index in one row and another column in a second one,
//!    deletes a third and inserts it again.
//! 2. Clients run before the build, during it, after it, and during a rebuild if one is requested.
//! 3. After that the index must have an entry for each loaded row, and a check, which compares entries with rows, must
//!    find nothing.
//! 4. The index is dropped at the end. So the database can be measured again without another load.

use crate::concurrent_clients::{Clients, Phase, with_clients};
use crate::error::{Error, Result};
use crate::store::embedded::Embedded;
use crate::workload::sysbench::{self, Profile, RandType, Sysbench};
use crate::workload::{Progress, Workload, load_or_reuse};
use highwater::{Database, Table};
use std::time::Instant;

const TABLE: &str = "sbtest1";
const INDEX: &str = "k";

/// The parameters of the measurement.
#[derive(Clone, Debug)]
pub struct Config {
    /// Rows of the table.
    pub rows: u64,
    /// Client threads.
    pub threads: usize,
    /// Seconds of the clients' run before the build, and after it.
    pub seconds: f64,
    /// Whether a rebuild is measured too.
    pub rebuild: bool,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// One build.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The clients during the build; its seconds are the time of the build.
    pub clients: Phase,
    /// Changes of entries that the clients logged for it.
    pub noted_changes: u64,
    /// Bytes that it wrote to its temporary files.
    pub sorted_bytes: u64,
}

/// The result.
#[derive(Clone, Copy, Debug)]
pub struct OnlineIndex {
    /// Rows of the table, and entries of the index.
    pub rows: u64,
    /// Clients before the build.
    pub before: Phase,
    /// The build.
    pub build: Build,
    /// Clients after the build.
    pub after: Phase,
    /// The rebuild, if there was one.
    pub rebuild: Option<Build>,
    /// Seconds that the comparison of the index with the rows took.
    pub check_s: f64,
}

fn workload(config: &Config) -> Sysbench {
    Sysbench::new(sysbench::Config {
        profile: Profile::WriteOnly,
        table_size: config.rows,
        secondary_indexes: 0,
        rand_type: RandType::Uniform,
        seed: config.seed,
        ..sysbench::Config::default()
    })
}

/// Loads the table unless it exists, builds the index, compares it with the rows, drops it. `tell` gets a line for each
/// phase that begins.
///
/// # Errors
/// The engine's; [`Error::Usage`] if the database has another load; [`Error::Data`] if the index differs from the rows;
/// [`Error::Interrupted`].
pub fn measure(
    db: &Database,
    config: &Config,
    progress: &dyn Progress,
    tell: &mut dyn FnMut(&str),
) -> Result<OnlineIndex> {
    let (store, workload) = (Embedded::new(db.clone()), workload(config));
    load_or_reuse(&store, &workload, 1, progress)?;
    let table = db.table(TABLE)?;
    drop_index(db, &table)?;
    let client = |number: usize| {
        let mut client = workload.client(&store, number)?;
        Ok(move || client.run().map(drop))
    };
    let mut measured = with_clients(config.threads, client, |clients| Phases { db, config, clients }.run(tell))?;
    tell("Comparing the index with the rows");
    let since = Instant::now();
    compare(db, &table, config.rows)?;
    measured.check_s = since.elapsed().as_secs_f64();
    drop_index(db, &table)?;
    Ok(measured)
}

/// Drops the index (rule 4), also one left by an interrupted measurement.
fn drop_index(db: &Database, table: &Table) -> Result<()> {
    if table.definition().indexes.iter().any(|index| index.name == INDEX) {
        db.drop_index(table, INDEX)?;
        db.finish_drops()?;
    }
    Ok(())
}

/// Compares the index with the rows (rule 3).
fn compare(db: &Database, table: &Table, rows: u64) -> Result<()> {
    let mut read = db.snapshot()?;
    let found = [read.scan(table).count()?, read.scan(table).index(INDEX).count()?];
    drop(read);
    if found != [rows; 2] {
        return Err(Error::Data(format!("{} rows and {} entries of the index, not {rows}", found[0], found[1])));
    }
    let report = db.check()?;
    match report.findings.first() {
        Some(finding) => Err(Error::Data(format!("{} findings of the check: {finding}", report.findings.len()))),
        None => Ok(()),
    }
}

struct Phases<'a> {
    db: &'a Database,
    config: &'a Config,
    clients: &'a Clients,
}

impl Phases<'_> {
    fn run(&self, tell: &mut dyn FnMut(&str)) -> Result<OnlineIndex> {
        let Phases { db, config, clients } = *self;
        tell("Clients without a build");
        let before = clients.during(|| clients.pause(config.seconds))?;
        tell("Building the index");
        let build = self.build(|| {
            let mut on_progress = |_| match clients.must_end() {
                true => Err(highwater::Error::Usage("the build was stopped".into())),
                false => Ok(()),
            };
            let built = db.create_index_with_progress(TABLE, INDEX, &[INDEX], false, &mut on_progress);
            clients.may_go_on()?;
            Ok(built?)
        })?;
        tell("Clients with the index");
        let after = clients.during(|| clients.pause(config.seconds))?;
        let rebuild = config.rebuild.then(|| {
            tell("Building the index again");
            self.build(|| Ok(db.rebuild_index(TABLE, INDEX)?))
        });
        let rebuild = rebuild.transpose()?;
        Ok(OnlineIndex { rows: config.rows, before, build, after, rebuild, check_s: 0.0 })
    }

    fn build(&self, build: impl FnOnce() -> Result<()>) -> Result<Build> {
        let counted = || {
            let stats = self.db.stats();
            [stats.index_build_logged_changes, stats.sort_bytes_written]
        };
        let before = counted();
        let clients = self.clients.during(build)?;
        let after = counted();
        Ok(Build { clients, noted_changes: after[0] - before[0], sorted_bytes: after[1] - before[1] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Silent;
    use highwater::Options;

    #[test]
    fn an_index_is_built_and_built_again_with_clients() {
        let measured = |seconds| {
            let dir = tempfile::tempdir().unwrap();
            let db = Database::open(dir.path(), Options::default()).unwrap();
            let config = Config { rows: 20_000, threads: 2, seconds, rebuild: true, seed: 1 };
            let mut lines = Vec::new();
            let measured = measure(&db, &config, &Silent, &mut |line| lines.push(line.to_string())).unwrap();
            assert_eq!(lines.len(), 5, "{lines:?}");
            let builds = [&measured.build, measured.rebuild.as_ref().unwrap()];
            assert!(builds.iter().all(|build| build.clients.seconds > 0.0), "{measured:?}");
            println!("{measured:?}");
            let have_clients = measured.before.tps > 0.0 && measured.after.max_ms > 0.0;
            let are_brief = builds.iter().all(|build| build.clients.max_ms < 5000.0);
            (have_clients && are_brief).then_some((dir, db, config))
        };
        // Where others have the processors no transaction may end in a short phase, and one may take long.
        let (_dir, db, config) = [0.1, 0.4, 1.6, 6.4].into_iter().find_map(measured).unwrap();
        // The rows stay, and are compared.
        let again = Config { rebuild: false, ..config };
        assert!(measure(&db, &again, &Silent, &mut |_| {}).unwrap().rebuild.is_none());
        let table = db.table(TABLE).unwrap();
        assert!(table.definition().indexes.is_empty());
        let lost = compare(&db, &table, 20_001).unwrap_err();
        assert!(matches!(lost, Error::Engine(highwater::Error::NoSuchIndex { .. })), "{lost}");
        db.create_index(&table, INDEX, &[INDEX], false).unwrap();
        let lost = compare(&db, &table, 20_001).unwrap_err();
        assert!(lost.to_string().starts_with("20000 rows and 20000 entries"), "{lost}");
    }
}
