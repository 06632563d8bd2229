//! sysbench's OLTP profiles.
//!
//! Source: sysbench 1.0.20, `src/lua/oltp_common.lua` (tables, statements, defaults) and `src/lua/oltp_*.lua` (which
//! statements a profile runs).
//!
//! Rules
//! 1. Tables `sbtest1..N`: id (auto-increment), k, c, pad, index on k, k drawn from `--rand-type`. Indexes are created
//!    after the rows, unless `--create-indexes before` is set. More secondary indexes than one, which sysbench does not
//!    have, are on columns k2, k3 and so on, after pad, drawn like k; an index update then changes the column of one
//!    index, drawn uniformly. With one index everything is as in sysbench, the random numbers too.
//! 2. A transaction's statements of one kind all go to one table, drawn uniformly; row numbers come from `--rand-type`.
//! 3. read_write, read_only and write_only are one transaction an event; the others are single statements in
//!    autocommit.
//! 4. Statements count as sysbench counts them: begin and commit are "other", so is a change that found no row.

mod distribution;
mod profile;
mod table;

pub use distribution::{Distribution, RandType};
pub use profile::Profile;
pub use table::MAX_SECONDARY_INDEXES;

use super::random::rng;
use super::{Batch, Client, Outcome, Progress, Workload, in_parallel, open_table, options};
use crate::error::Result;
use crate::store::{Store, TableSpec};
use highwater::ValueRef;
use std::collections::BTreeMap;
use table::{Strings, columns, indexes};

/// The time at which a load creates the secondary indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CreateIndexes {
    /// Before the rows: each insertion of a row inserts its entries.
    Before,
    /// After the rows, as sysbench does.
    #[default]
    After,
}

highwater_storage::names!(CreateIndexes { Before => "before", After => "after" });

/// Options, with sysbench's names and defaults.
#[derive(Clone, Debug)]
pub struct Config {
    /// The profile.
    pub profile: Profile,
    /// Number of tables.
    pub tables: u64,
    /// Rows per table.
    pub table_size: u64,
    /// Secondary indexes of each table, up to [`MAX_SECONDARY_INDEXES`].
    pub secondary_indexes: usize,
    /// The time at which a load creates them.
    pub create_indexes: CreateIndexes,
    /// Distribution of row numbers.
    pub rand_type: RandType,
    /// Point selects per transaction.
    pub point_selects: u32,
    /// Simple range selects per transaction.
    pub simple_ranges: u32,
    /// SELECT SUM() per transaction.
    pub sum_ranges: u32,
    /// SELECT ... ORDER BY per transaction.
    pub order_ranges: u32,
    /// SELECT DISTINCT per transaction.
    pub distinct_ranges: u32,
    /// Rows per range.
    pub range_size: u64,
    /// Updates of the indexed column per transaction.
    pub index_updates: u32,
    /// Updates of a column without index per transaction.
    pub non_index_updates: u32,
    /// Pairs of delete and insert per transaction.
    pub delete_inserts: u32,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Config {
    /// Columns of a table.
    pub(crate) fn columns(&self) -> usize {
        table::columns(self.secondary_indexes).len()
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            profile: Profile::ReadWrite,
            tables: 1,
            table_size: 10_000,
            secondary_indexes: 1,
            create_indexes: CreateIndexes::After,
            rand_type: RandType::Special,
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            range_size: 100,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            seed: 1,
        }
    }
}

/// The workload.
#[derive(Clone, Debug)]
pub struct Sysbench {
    config: Config,
}

/// Prefix of its tables' names.
const TABLES: &str = "sbtest";

/// Whether the load creates a table of that name.
pub(super) fn makes(name: &str) -> bool {
    name.strip_prefix(TABLES).is_some_and(|number| number.parse::<u64>().is_ok())
}

impl Sysbench {
    /// A workload with these options.
    pub fn new(config: Config) -> Sysbench {
        Sysbench { config }
    }

    fn table_name(number: u64) -> String {
        format!("{TABLES}{}", number + 1)
    }

    fn load_table<S: Store>(&self, store: &S, number: u64, progress: &dyn Progress) -> Result<()> {
        let (name, config) = (Sysbench::table_name(number), &self.config);
        let whole = table_spec(config, number);
        let (before, after) = match config.create_indexes {
            CreateIndexes::Before => (whole.indexes, &[][..]),
            CreateIndexes::After => (&[][..], whole.indexes),
        };
        let table = store.create_table(&TableSpec { indexes: before, ..whole })?;
        let mut strings = Strings::new(rng(config.seed, number | 1 << 40));
        let keys = Distribution::new(config.rand_type, 1, config.table_size);
        Batch::new(progress).fill(&mut store.session()?, &table, config.table_size, |insert| {
            strings.next_keys(&keys, config.columns());
            strings.next_row();
            insert(&strings.row(ValueRef::Null)[..config.columns()])
        })?;
        after.iter().try_for_each(|index| store.create_index(&name, index))
    }
}

/// The table of that number, with the indexes that it has once it is loaded.
pub(super) fn table_spec(config: &Config, number: u64) -> TableSpec {
    TableSpec {
        name: Sysbench::table_name(number),
        columns: columns(config.secondary_indexes),
        auto_increment: Some("id"),
        primary_key: &["id"],
        indexes: indexes(config.secondary_indexes),
    }
}

impl<S: Store> Workload<S> for Sysbench {
    fn name(&self) -> String {
        format!("sysbench oltp_{}", self.config.profile.name())
    }

    fn kinds(&self) -> &'static [&'static str] {
        self.config.profile.kinds()
    }

    fn identity(&self) -> BTreeMap<String, String> {
        let mut identity = options([
            ("workload", "sysbench".into()),
            ("tables", self.config.tables.to_string()),
            ("table_size", self.config.table_size.to_string()),
        ]);
        // Databases loaded before there could be more than one do not say it.
        if self.config.secondary_indexes != 1 {
            identity.insert("secondary_indexes".into(), self.config.secondary_indexes.to_string());
        }
        identity
    }

    fn options(&self) -> BTreeMap<String, String> {
        let c = &self.config;
        options([
            ("profile", c.profile.name().into()),
            ("tables", c.tables.to_string()),
            ("table_size", c.table_size.to_string()),
            ("secondary_indexes", c.secondary_indexes.to_string()),
            ("create_indexes", c.create_indexes.name().into()),
            ("rand_type", c.rand_type.name().into()),
            ("point_selects", c.point_selects.to_string()),
            ("simple_ranges", c.simple_ranges.to_string()),
            ("sum_ranges", c.sum_ranges.to_string()),
            ("order_ranges", c.order_ranges.to_string()),
            ("distinct_ranges", c.distinct_ranges.to_string()),
            ("range_size", c.range_size.to_string()),
            ("index_updates", c.index_updates.to_string()),
            ("non_index_updates", c.non_index_updates.to_string()),
            ("delete_inserts", c.delete_inserts.to_string()),
            ("seed", c.seed.to_string()),
        ])
    }

    fn spoils_data(&self) -> bool {
        self.config.profile == Profile::Delete
    }

    fn load_units(&self) -> u64 {
        self.config.tables * self.config.table_size
    }

    fn load(&self, store: &S, threads: usize, progress: &dyn Progress) -> Result<()> {
        in_parallel(self.config.tables as usize, threads, |n| self.load_table(store, n as u64, progress))
    }

    fn client(&self, store: &S, number: usize) -> Result<Box<dyn Client>> {
        let tables =
            (0..self.config.tables).map(|n| open_table(store, &Sysbench::table_name(n))).collect::<Result<Vec<_>>>()?;
        Ok(Box::new(profile::SysbenchClient::<S>::new(self.config.clone(), store.session()?, tables, number)?))
    }
}

/// An outcome of the profile's only kind.
pub(crate) fn outcome() -> Outcome {
    Outcome::default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::model::Model;
    use crate::store::{Read, RowView, Scan, Session};
    use crate::workload::{Silent, load_or_reuse};
    use std::ops::ControlFlow;

    fn config(profile: Profile) -> Config {
        Config { profile, tables: 2, table_size: 300, ..Config::default() }
    }

    fn run(profile: Profile, events: u32) -> (Model, Vec<Outcome>) {
        let store = Model::default();
        let workload = Sysbench::new(config(profile));
        assert!(load_or_reuse(&store, &workload, 2, &Silent).unwrap());
        assert!(!load_or_reuse(&store, &workload, 2, &Silent).unwrap());
        let mut client = workload.client(&store, 0).unwrap();
        let outcomes = (0..events).map(|_| client.run().unwrap().unwrap()).collect();
        (store, outcomes)
    }

    #[test]
    fn statements_per_transaction_are_sysbenchs() {
        let expected = [
            (Profile::ReadWrite, (14, 4, 2)),
            (Profile::ReadOnly, (14, 0, 2)),
            (Profile::WriteOnly, (0, 4, 2)),
            (Profile::PointSelect, (1, 0, 0)),
            (Profile::Insert, (0, 1, 0)),
            (Profile::UpdateIndex, (0, 1, 0)),
            (Profile::UpdateNonIndex, (0, 1, 0)),
        ];
        for (profile, (reads, writes, other)) in expected {
            let (_, outcomes) = run(profile, 20);
            assert!(
                outcomes.iter().all(|o| *o == Outcome { reads, writes, other, ..Outcome::default() }),
                "{profile:?}"
            );
        }
    }

    #[test]
    fn row_counts_stay_as_the_profile_says() {
        let (store, _) = run(Profile::ReadWrite, 50);
        assert_eq!(store.count("sbtest1") + store.count("sbtest2"), 600);
        let (store, _) = run(Profile::Insert, 50);
        assert_eq!(store.count("sbtest1") + store.count("sbtest2"), 650);
        let (store, outcomes) = run(Profile::Delete, 50);
        let deleted: u32 = outcomes.iter().map(|o| o.writes).sum();
        assert_eq!(store.count("sbtest1") + store.count("sbtest2") + deleted as usize, 600);
        assert!(outcomes.iter().any(|o| o.other == 1), "no delete missed");
    }

    #[test]
    fn more_indexes_are_more_columns_and_the_same_statements() {
        for create_indexes in CreateIndexes::ALL {
            let store = Model::default();
            let config = Config { secondary_indexes: 3, create_indexes, ..config(Profile::ReadWrite) };
            let workload = Sysbench::new(config);
            load_or_reuse(&store, &workload, 1, &Silent).unwrap();
            let of_index = |name: &'static str, column: usize| {
                let (mut keys, table) = (Vec::new(), store.table("sbtest1").unwrap().unwrap());
                let (mut session, scan) = (store.session().unwrap(), Scan { index: Some(name), ..Scan::all() });
                let visit = |row: &_| {
                    keys.push(RowView::i64(row, column));
                    ControlFlow::Continue(())
                };
                session.snapshot().unwrap().scan(&table, &scan, visit).unwrap();
                keys
            };
            let before = [of_index("k", 1), of_index("k2", 4), of_index("k3", 5)];
            assert!(before.iter().all(|keys| keys.len() == 300 && keys.is_sorted() && keys[0] < keys[299]));
            assert!(before[0] != before[1] && before[1] != before[2]);
            let mut client = workload.client(&store, 0).unwrap();
            let whole = Outcome { reads: 14, writes: 4, other: 2, ..Outcome::default() };
            assert!((0..100).all(|_| client.run().unwrap() == Some(whole)));
            let after = [of_index("k", 1), of_index("k2", 4), of_index("k3", 5)];
            assert!(after.iter().zip(&before).all(|(after, before)| after.len() == 300 && after != before));
        }
    }

    #[test]
    fn index_updates_change_the_column_of_one_index_each() {
        let store = Model::default();
        let workload = Sysbench::new(Config { secondary_indexes: 3, tables: 1, ..config(Profile::UpdateIndex) });
        load_or_reuse(&store, &workload, 1, &Silent).unwrap();
        let sums = || {
            let (mut sums, table) = ([0; 3], store.table("sbtest1").unwrap().unwrap());
            let mut session = store.session().unwrap();
            let add = |row: &_| {
                [1, 4, 5].iter().zip(&mut sums).for_each(|(column, sum)| *sum += RowView::i64(row, *column));
                ControlFlow::Continue(())
            };
            session.snapshot().unwrap().scan(&table, &Scan::all(), add).unwrap();
            sums
        };
        let before = sums();
        let mut client = workload.client(&store, 0).unwrap();
        assert!((0..90).all(|_| client.run().unwrap().is_some()));
        let grown: Vec<i64> = sums().iter().zip(before).map(|(after, before)| after - before).collect();
        assert!(grown.iter().sum::<i64>() == 90 && grown.iter().all(|one| *one > 10), "{grown:?}");
    }

    #[test]
    fn another_number_of_indexes_is_refused() {
        let (store, _) = run(Profile::ReadOnly, 1);
        let other = Sysbench::new(Config { secondary_indexes: 2, ..config(Profile::ReadOnly) });
        let message = load_or_reuse(&store, &other, 1, &Silent).unwrap_err().to_string();
        assert!(message.contains("secondary_indexes=2"), "{message}");
    }

    #[test]
    fn another_size_is_refused() {
        let (store, _) = run(Profile::ReadOnly, 1);
        let other = Sysbench::new(Config { table_size: 301, ..config(Profile::ReadOnly) });
        let message = load_or_reuse(&store, &other, 1, &Silent).unwrap_err().to_string();
        assert!(message.contains("table_size=300") && message.contains("table_size=301"), "{message}");
    }

    #[test]
    fn a_deadlock_leaves_nothing_behind() {
        let store = Model::default();
        let workload = Sysbench::new(config(Profile::WriteOnly));
        load_or_reuse(&store, &workload, 1, &Silent).unwrap();
        let mut client = workload.client(&store, 0).unwrap();
        store.fail_next();
        assert!(crate::store::model::is_deadlock(&client.run().unwrap_err()));
        client.run().unwrap();
        assert_eq!(store.count("sbtest1") + store.count("sbtest2"), 600);
    }
}
