//! The settings under test: four levels, and first committer wins.

use highwater::{Isolation, TxnOptions};

/// An isolation level, with first committer wins or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Setting {
    /// READ UNCOMMITTED.
    ReadUncommitted,
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ as InnoDB has it.
    RepeatableRead,
    /// REPEATABLE READ with `first_committer_wins`, MariaDB's `innodb_snapshot_isolation`.
    FirstCommitterWins,
    /// SERIALIZABLE.
    Serializable,
}

highwater_storage::names!(Setting {
    ReadUncommitted => "read-uncommitted",
    ReadCommitted => "read-committed",
    RepeatableRead => "repeatable-read",
    FirstCommitterWins => "first-committer-wins",
    Serializable => "serializable",
});

impl Setting {
    /// The level.
    pub fn isolation(self) -> Isolation {
        match self {
            Setting::ReadUncommitted => Isolation::ReadUncommitted,
            Setting::ReadCommitted => Isolation::ReadCommitted,
            Setting::RepeatableRead | Setting::FirstCommitterWins => Isolation::RepeatableRead,
            Setting::Serializable => Isolation::Serializable,
        }
    }

    /// The options of a transaction of Highwater.
    pub fn options(self) -> TxnOptions {
        TxnOptions {
            isolation: self.isolation(),
            first_committer_wins: self == Setting::FirstCommitterWins,
            ..TxnOptions::default()
        }
    }

    /// The statements that a session of MariaDB runs before its first transaction on tables of a storage engine, whose
    /// name begins the variables.
    pub fn statements(self, engine: &str) -> [String; 2] {
        let level = self.isolation().name().to_uppercase().replace('-', " ");
        let on = if self == Setting::FirstCommitterWins { "ON" } else { "OFF" };
        [
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"),
            format!("SET SESSION {engine}_snapshot_isolation = {on}"),
        ]
    }
}
