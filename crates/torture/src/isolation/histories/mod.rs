//! Random histories: threads of transactions that append to lists and read them, and a checker of their reads.
//!
//! | file | what |
//! |---|---|
//! | `history.rs` | a history: operations of transactions, final lists |
//! | `load.rs` | the load that creates a history |
//! | `check.rs`, `graph.rs` | the anomalies in it |
//!
//! Rules
//! 1. Every transaction of a history has the same setting. The checker names all anomalies; forbidden ones fail the
//!    run; the others are counted, which shows that the checker can find them.
//! 2. The seed determines the transactions, but not the scheduling of threads, so it does not repeat the history.
//! 3. A lock wait that times out is a failure: a deadlock was not detected.

mod check;
mod graph;
mod history;
mod load;

pub use check::{Anomaly, Finding, check};
pub use history::{Element, History, Key, Op, Transaction};
pub use load::{Sizes, run};

use super::Setting;
use fastrand::Rng;
use highwater::Database;
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;

/// Counts over histories of one setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Histories.
    pub histories: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that were rolled back: by choice, as deadlock victims, or because of a write conflict.
    pub rolled_back: u64,
    /// Anomalies, by how many histories showed them.
    pub anomalies: BTreeMap<Anomaly, u64>,
}

impl Tally {
    /// Makes a history on a new table of `db`, checks it and counts it.
    ///
    /// # Errors
    /// [`Error::Data`] names the anomalies that the setting forbids and the transactions that show them; the engine's.
    pub fn add(&mut self, db: &Database, setting: Setting, sizes: &Sizes, rng: &mut Rng) -> Result<()> {
        let history = run(db, setting, sizes, rng)?;
        self.histories += 1;
        let committed = history.transactions.iter().filter(|one| one.committed).count() as u64;
        self.committed += committed;
        self.rolled_back += history.transactions.len() as u64 - committed;
        let found = check(&history, setting);
        let mut kinds: Vec<Anomaly> = found.iter().map(|finding| finding.anomaly).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.into_iter().for_each(|kind| *self.anomalies.entry(kind).or_default() += 1);
        let forbidden = found.iter().filter(|finding| finding.anomaly.is_forbidden(setting));
        // One of each kind says enough.
        let mut said = Vec::new();
        let lines: Vec<String> = forbidden
            .filter(|finding| {
                !said.contains(&finding.anomaly) && {
                    said.push(finding.anomaly);
                    true
                }
            })
            .map(|finding| format!("{}: {}", finding.anomaly.name(), finding.what))
            .collect();
        match lines.is_empty() {
            true => Ok(()),
            false => Err(Error::Data(format!("{} allowed what it forbids\n{}", setting.name(), lines.join("\n")))),
        }
    }
}

#[cfg(test)]
mod histories_test;
