//! Scans by a secondary index: a hundred rows from a random key on, with all their columns.
//!
//! Rule: tables, identity and load are sysbench's.

use crate::error::{Error, Result};
use crate::store::{Read, RowView, Scan, Session, Store, TableSpec};
use crate::workload::random::rng;
use crate::workload::sysbench::{Config, Sysbench};
use crate::workload::{Client, Load, Outcome, Progress, Workload};

use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Rows of a scan.
const ROWS: usize = 100;
/// Texts of a row, which are read.
const TEXTS: [usize; 2] = [2, 3];

/// The workload.
pub(super) struct IndexScans {
    config: Config,
    tables: Sysbench,
}

impl IndexScans {
    /// A workload over these tables.
    pub(super) fn new(config: Config) -> IndexScans {
        IndexScans { tables: Sysbench::new(config.clone()), config }
    }
}

impl<S: Store> Workload<S> for IndexScans {
    fn name(&self) -> String {
        "index scans".into()
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["scan"]
    }

    fn identity(&self) -> BTreeMap<String, String> {
        Workload::<S>::identity(&self.tables)
    }

    fn options(&self) -> BTreeMap<String, String> {
        let mut options = Workload::<S>::options(&self.tables);
        options.insert("profile".into(), format!("{ROWS} rows by an index"));
        options
    }

    fn load_units(&self) -> u64 {
        Workload::<S>::load_units(&self.tables)
    }

    fn load(&self, store: &S, threads: usize, progress: &dyn Progress) -> Result<()> {
        self.tables.load(store, threads, progress)
    }

    fn client(&self, store: &S, number: usize) -> Result<Box<dyn Client>> {
        let specs = Load::Sysbench(self.config.clone()).tables();
        let missing = |name: &str| Error::Data(format!("table {name} is missing; load the workload first"));
        let open =
            |spec: &TableSpec| Ok((store.table(&spec.name)?.ok_or_else(|| missing(&spec.name))?, spec.indexes[0].name));
        let tables = specs.iter().map(open).collect::<Result<Vec<_>>>()?;
        let random = rng(self.config.seed, number as u64);
        Ok(Box::new(Scanner::<S> { session: store.session()?, tables, random, rows: self.config.table_size }))
    }
}

struct Scanner<S: Store> {
    session: S::Session,
    tables: Vec<(S::Table, &'static str)>,
    random: fastrand::Rng,
    rows: u64,
}

impl<S: Store> Client for Scanner<S> {
    fn run(&mut self) -> Result<Option<Outcome>> {
        let (table, index) = &self.tables[self.random.usize(..self.tables.len())];
        let from = self.random.u64(1..=self.rows);
        let mut read = self.session.snapshot()?;
        let scan = Scan { index: Some(index), from: Some(from.into()), limit: ROWS, ..Scan::all() };
        read.scan(table, &scan, |row| {
            TEXTS.iter().for_each(|column| {
                std::hint::black_box(row.str(*column));
            });
            ControlFlow::Continue(())
        })?;
        read.finish()?;
        Ok(Some(Outcome { reads: 1, ..Outcome::default() }))
    }
}
