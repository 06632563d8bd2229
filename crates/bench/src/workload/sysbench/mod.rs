//! sysbench's OLTP profiles.
//!
//! Source: sysbench 1.0.20, `src/lua/oltp_common.lua` (tables, statements, defaults) and `src/lua/oltp_*.lua` (which
//! statements a profile runs).
//!
//! Rules
//! 1. Tables `sbtest1..N`: id (auto-increment), k, c, pad, index on k made after the rows, k drawn from `--rand-type`.
//! 2. A transaction's statements of one kind all go to one table, drawn uniformly; row numbers come from `--rand-type`.
//! 3. read_write, read_only and write_only are one transaction an event; the others are single statements in
//!    autocommit.
//! 4. c is ten groups of eleven digits (119 characters), pad five (59).
//! 5. Statements count as sysbench counts them: begin and commit are "other", so is a change that found no row.

mod distribution;
mod profile;

pub use distribution::{Distribution, RandType};
pub use profile::Profile;

use super::random::{push_digits, rng};
use super::{Batch, Client, Outcome, Progress, Workload, in_parallel, open_table, options};
use crate::error::Result;
use crate::store::{Column, IndexSpec, Store, TableSpec, Transaction, column};
use fastrand::Rng;
use highwater::Type;
use highwater::values;
use std::collections::BTreeMap;

pub(crate) const ID: usize = 0;
pub(crate) const K: usize = 1;
pub(crate) const C: usize = 2;

const COLUMNS: &[Column] =
    &[column("id", Type::I32), column("k", Type::I32), column("c", Type::Text(120)), column("pad", Type::Text(60))];

const C_GROUPS: usize = 10;
const PAD_GROUPS: usize = 5;

/// Options, with sysbench's names and defaults.
#[derive(Clone, Debug)]
pub struct Config {
    /// Which profile.
    pub profile: Profile,
    /// Number of tables.
    pub tables: u64,
    /// Rows per table.
    pub table_size: u64,
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

impl Default for Config {
    fn default() -> Config {
        Config {
            profile: Profile::ReadWrite,
            tables: 1,
            table_size: 10_000,
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

impl Sysbench {
    /// A workload with these options.
    pub fn new(config: Config) -> Sysbench {
        Sysbench { config }
    }

    fn table_name(number: u64) -> String {
        format!("sbtest{}", number + 1)
    }

    fn load_table<S: Store>(&self, store: &S, number: u64, progress: &dyn Progress) -> Result<()> {
        let name = Sysbench::table_name(number);
        let table = store.create_table(&TableSpec {
            name: name.clone(),
            columns: COLUMNS,
            auto_increment: Some("id"),
            primary_key: &["id"],
            indexes: &[],
        })?;
        let mut strings = Strings::new(rng(self.config.seed, number | 1 << 40));
        let rows = Distribution::new(self.config.rand_type, 1, self.config.table_size);
        Batch::new(progress).run(&mut store.session()?, 0..self.config.table_size, |txn, _| {
            let k = rows.next(&mut strings.rng);
            strings.next_row();
            txn.insert(&table, &values![null, k, strings.c.as_str(), strings.pad.as_str()])?;
            Ok(1)
        })?;
        store.create_index(&name, &IndexSpec { name: "k", columns: &["k"] })
    }
}

/// Reused buffers for c and pad.
#[derive(Debug)]
pub(crate) struct Strings {
    pub(crate) rng: Rng,
    pub(crate) c: String,
    pub(crate) pad: String,
}

impl Strings {
    pub(crate) fn new(rng: Rng) -> Strings {
        Strings { rng, c: String::with_capacity(120), pad: String::with_capacity(60) }
    }

    pub(crate) fn next_c(&mut self) {
        groups(&mut self.rng, &mut self.c, C_GROUPS);
    }

    pub(crate) fn next_row(&mut self) {
        self.next_c();
        groups(&mut self.rng, &mut self.pad, PAD_GROUPS);
    }
}

fn groups(rng: &mut Rng, out: &mut String, groups: usize) {
    out.clear();
    for group in 0..groups {
        if group > 0 {
            out.push('-');
        }
        push_digits(rng, out, 11);
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
        options([
            ("workload", "sysbench".into()),
            ("tables", self.config.tables.to_string()),
            ("table_size", self.config.table_size.to_string()),
        ])
    }

    fn options(&self) -> BTreeMap<String, String> {
        let c = &self.config;
        options([
            ("profile", c.profile.name().into()),
            ("tables", c.tables.to_string()),
            ("table_size", c.table_size.to_string()),
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
    use crate::workload::{Silent, load_or_reuse};

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
    fn templates_are_groups_of_digits() {
        let mut strings = Strings::new(rng(1, 1));
        strings.next_row();
        assert_eq!((strings.c.len(), strings.pad.len()), (119, 59));
        for text in [&strings.c, &strings.pad] {
            assert!(text.split('-').all(|g| g.len() == 11 && g.bytes().all(|b| b.is_ascii_digit())), "{text}");
        }
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
