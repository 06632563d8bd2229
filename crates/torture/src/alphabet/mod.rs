//! The alphabet of the tortures: operations with the engine's public calls (*letters*), the values of its options, and
//! an oracle of the right answers.
//!
//! A [`Player`] plays random letters on an open database: statements of several open transactions, reads by held
//! snapshots, schema changes, calls on the database as a whole. `torture simulate` plays on the engine without threads,
//! `torture power` on one with threads, each with options that [`options`] draws.
//!
//! Rules
//! 1. A letter calls the engine through [`call!`](played::call), which notes the name of the call.
//! 2. Every public call and every option is played, or is exempt with a reason in `alphabet_test.rs`, which compares
//!    the lists with the engine's source.
//! 3. Every answer is compared with the oracle's.
//!
//! | file | what |
//! |---|---|
//! | `choices` | the decisions, of a seed or of bytes |
//! | `options` | values of options |
//! | `content` | rows, keys, schemas |
//! | `oracle`, `found` | the expected contents of the database; the actual ones |
//! | `actor` | open transactions and snapshots |
//! | `consumer` | a consumer of the change log |
//! | `expiring` | a table whose rows expire |
//! | `prepared` | transactions that are prepared, and their ends |
//! | `reads`, `scan`, `walk`, `writes` | their statements, and the right answers |
//! | `raw`, `random_writes` | the same by the raw API; the choice of the next statement |
//! | `statements` | statements of several calls, sessions, numbers |
//! | `schema` | tables and indexes |
//! | `whole` | calls on the database as a whole |
//! | `copies` | backups, restores, salvage, reading only |
//! | `player` | the player |
//! | `played`, `alphabet_test` | the record of played calls; the exemptions |

pub(crate) mod actor;
pub(crate) mod choices;
mod consumer;
pub(crate) mod content;
pub(crate) mod copies;
mod expiring;
pub(crate) mod found;
pub mod options;
pub(crate) mod oracle;
pub(crate) mod played;
pub(crate) mod player;
mod prepared;
mod random_writes;
mod raw;
mod reads;
mod scan;
mod schema;
mod statements;
mod walk;
pub(crate) mod whole;
mod writes;

use highwater::Database;
use highwater::config::FlushLog;
use oracle::Changes;
use played::Played;
pub(crate) use player::{Player, Scene, Stage};

/// The state of the database when a transaction acts.
pub(crate) struct World<'a> {
    pub db: &'a Database,
    pub played: &'a Played,
    /// Uncommitted changes of the other transactions.
    pub others: &'a Changes,
    /// Whether no operation has failed. A failed rollback leaves its changes, which dirty reads see, until the next
    /// opening.
    pub is_sound: bool,
    /// Whether statements insert many long rows, so that the file grows.
    pub fills: bool,
    /// Whether no other transaction is open: nothing is locked.
    pub is_alone: bool,
    /// The default durability of a commit.
    pub flush_log: FlushLog,
}

#[cfg(test)]
mod alphabet_test;
