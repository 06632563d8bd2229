//! A workload like TPC-C.
//!
//! Source: TPC-C Standard Specification, revision 5.11; clause numbers name the source of a rule.
//!
//! Rules
//! 1. Tables, population, transactions, their mix and their random values are the specification's; terminals, think
//!    times and the scaling of terminals to warehouses are not. Results are new orders per minute, never "tpmC".
//! 2. A new order that rolls back for its unused item counts as a transaction, not as a new order.
//! 3. The load's constant C for last names is kept with the data (2.1.6.1 ties the run's to it).
//! 4. After a run the twelve consistency conditions (3.3.2) are checked on the whole database.

pub mod acknowledge;
mod consistency;
mod load;
pub mod losses;
mod new_order;
mod other;
mod payment;
mod random;
mod schema;
mod terminal;

pub use acknowledge::{Acknowledged, forget, verify};
pub use losses::{accept_losses, verify_prefix};
pub use terminal::{Kind, Mix};

use crate::error::Result;
use crate::result::Condition;
use crate::store::{Read, Session, Store, Transaction};
use crate::workload::random::rng;
use crate::workload::{Client, Outcome, Progress, Workload, options};
use acknowledge::Acknowledger;
use fastrand::Rng;
use random::Constants;
use schema::Tables;
pub(super) use schema::specs as table_specs;
use std::collections::BTreeMap;
use std::path::PathBuf;
use terminal::{Deck, Terminal, now_us};

/// Options.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of warehouses, about 100 MB each.
    pub warehouses: u64,
    /// Shares of the five transactions.
    pub mix: Mix,
    /// Seed of the run; the data come from [`Config::load_seed`].
    pub seed: u64,
    /// Seed of the data.
    pub load_seed: u64,
    /// Folder of the records of acknowledged commits, for the crash test.
    pub acknowledgements: Option<PathBuf>,
    /// Threads that check the consistency conditions.
    pub check_threads: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            warehouses: 1,
            mix: Mix::Specification,
            seed: 1,
            load_seed: 1,
            acknowledgements: None,
            check_threads: 2,
        }
    }
}

impl Config {
    /// The load's constant C for last names (2.1.6.1), 0 to 255.
    fn load_c_last(&self) -> u64 {
        rng(self.load_seed, 1 << 50).u64(0..=255)
    }

    /// The run's constants C, of all terminals.
    fn constants(&self) -> Constants {
        Constants::for_run(&mut rng(self.seed, 1 << 51), self.load_c_last())
    }
}

/// The workload.
#[derive(Clone, Debug)]
pub struct Tpcc {
    config: Config,
}

impl Tpcc {
    /// A workload with these options.
    pub fn new(config: Config) -> Tpcc {
        Tpcc { config }
    }

    /// Creates the crash test's table with one row for each of `clients`.
    ///
    /// # Errors
    /// The store's.
    pub fn prepare_acknowledgements<S: Store>(&self, store: &S, clients: usize) -> Result<()> {
        acknowledge::prepare(store, clients as u64)
    }

    fn terminal_client<S: Store>(&self, store: &S, number: usize) -> Result<TpccClient<S>> {
        let random = rng(self.config.seed, number as u64);
        let tables = Tables::open(store)?;
        let acknowledger = match &self.config.acknowledgements {
            Some(folder) => Some(Acknowledger::open(store, folder, number as u64)?),
            None => None,
        };
        let Config { warehouses, mix, .. } = self.config;
        Ok(TpccClient {
            session: store.session()?,
            deck: Deck::new(mix),
            terminal: Terminal::new(tables, random, warehouses, self.config.constants(), number as u64),
            again: None,
            acknowledger,
        })
    }
}

/// Whether the load or the crash test creates a table of that name.
pub(super) fn makes(name: &str) -> bool {
    name.starts_with("torture_") || table_specs().iter().any(|spec| spec.name == name)
}

impl<S: Store> Workload<S> for Tpcc {
    fn name(&self) -> String {
        "tpcc".into()
    }

    fn kinds(&self) -> &'static [&'static str] {
        Kind::NAMES
    }

    fn identity(&self) -> BTreeMap<String, String> {
        options([
            ("workload", "tpcc".into()),
            ("warehouses", self.config.warehouses.to_string()),
            ("load_seed", self.config.load_seed.to_string()),
        ])
    }

    fn options(&self) -> BTreeMap<String, String> {
        let c = &self.config;
        options([
            ("warehouses", c.warehouses.to_string()),
            ("mix", c.mix.name().into()),
            ("think_time", "none".into()),
            ("seed", c.seed.to_string()),
            ("load_seed", c.load_seed.to_string()),
        ])
    }

    fn load_units(&self) -> u64 {
        load::expected_rows(self.config.warehouses)
    }

    fn load(&self, store: &S, threads: usize, progress: &dyn Progress) -> Result<()> {
        let loader = load::Loader {
            store,
            tables: Tables::create(store)?,
            warehouses: self.config.warehouses,
            seed: self.config.load_seed,
            c_last: self.config.load_c_last(),
            now_us: now_us(),
            progress,
        };
        loader.run(threads)
    }

    fn client(&self, store: &S, number: usize) -> Result<Box<dyn Client>> {
        Ok(Box::new(self.terminal_client(store, number)?))
    }

    fn conditions(&self, store: &S) -> Result<Vec<Condition>> {
        consistency::check(store, self.config.warehouses, self.config.check_threads)
    }

    fn new_order_kind(&self) -> Option<usize> {
        Some(Kind::NewOrder as usize)
    }
}

/// One terminal with its connection.
pub struct TpccClient<S: Store> {
    session: S::Session,
    deck: Deck,
    terminal: Terminal<S::Table>,
    /// The transaction that failed with a retryable error, and the generator of its input: it is retried with the same
    /// input.
    again: Option<(Kind, Rng)>,
    acknowledger: Option<Acknowledger<S::Table>>,
}

impl<S: Store> TpccClient<S> {
    fn read(&mut self, kind: Kind) -> Result<()> {
        let mut read = self.session.snapshot()?;
        match kind {
            Kind::OrderStatus => self.terminal.order_status(&mut read)?,
            _ => self.terminal.stock_level(&mut read)?,
        }
        read.finish()
    }

    /// Whether it committed.
    fn write(&mut self, kind: Kind) -> Result<bool> {
        let mut txn = self.session.begin()?;
        let commit = match kind {
            Kind::NewOrder => self.terminal.new_order(&mut txn)?,
            Kind::Payment => self.terminal.payment(&mut txn).map(|()| true)?,
            _ => self.terminal.delivery(&mut txn).map(|()| true)?,
        };
        if !commit {
            txn.rollback()?;
            return Ok(false);
        }
        match &mut self.acknowledger {
            None => txn.finish()?,
            Some(acknowledger) => {
                acknowledger.mark(&mut txn)?;
                txn.finish()?;
                acknowledger.acknowledged()?;
            }
        }
        Ok(true)
    }
}

impl<S: Store> Client for TpccClient<S> {
    fn run(&mut self) -> Result<Option<Outcome>> {
        let kind = match &self.again {
            None => self.deck.draw(&mut self.terminal.rng),
            Some((kind, input)) => {
                self.terminal.rng = input.clone();
                *kind
            }
        };
        self.again = Some((kind, self.terminal.rng.clone()));
        self.terminal.outcome = Outcome { kind: kind as usize, other: 2, ..Outcome::default() };
        let committed = match kind {
            Kind::OrderStatus | Kind::StockLevel => self.read(kind).map(|()| true)?,
            Kind::NewOrder | Kind::Payment | Kind::Delivery => self.write(kind)?,
        };
        self.again = None;
        self.terminal.outcome.rolled_back = !committed;
        Ok(Some(self.terminal.outcome))
    }
}

#[cfg(test)]
mod tpcc_test;
