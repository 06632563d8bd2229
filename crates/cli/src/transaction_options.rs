//! Options of a command's transactions: their isolation level.

use crate::workload_options::named;
use clap::Args;
use highwater::{Isolation, TxnOptions};

/// The level of a command's transactions.
#[derive(Args, Clone, Debug)]
pub(crate) struct TransactionOptions {
    /// Level of isolation of the transactions that write
    #[arg(long, alias = "isolation", value_name = "LEVEL", default_value = "repeatable-read", ignore_case = true)]
    #[arg(value_parser = named(Isolation::ALL, Isolation::name))]
    transaction_isolation: Isolation,
    /// Under repeatable-read, fail a write to a row that another transaction changed after the snapshot (MariaDB's
    /// innodb_snapshot_isolation)
    #[arg(long)]
    first_committer_wins: bool,
}

impl TransactionOptions {
    /// As the engine takes them.
    pub(crate) fn options(&self) -> TxnOptions {
        TxnOptions {
            isolation: self.transaction_isolation,
            first_committer_wins: self.first_committer_wins,
            ..TxnOptions::default()
        }
    }

    /// For the configuration in a result.
    pub(crate) fn describe(&self) -> [(String, String); 2] {
        [
            ("transaction_isolation".into(), self.transaction_isolation.name().into()),
            ("first_committer_wins".into(), self.first_committer_wins.to_string()),
        ]
    }
}
