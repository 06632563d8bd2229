//! The options of a transaction.
//!
//! Rule: of the levels, only REPEATABLE READ keeps a view for the whole transaction, and only it and SERIALIZABLE lock
//! ranges of keys.

use crate::config::FlushLog;
use std::str::FromStr;

/// The isolation level of a transaction. The levels and their meaning are InnoDB's; docs/design/isolation.md has the
/// table of anomalies, tested on both.
///
/// At every level: writes and locking reads (`get_for_update`, `for_share` and so on) work on the newest committed row
/// and lock it until the transaction ends; a write to a row that another transaction has changed waits until that one
/// has ended. So no level has dirty writes (G0), and a transaction always sees its own changes.
///
/// The level says what *plain* reads see, and whether locking reads and writes that find nothing also keep others from
/// inserting (range locks). Levels can be mixed: each transaction gets what its own level promises, except that
/// SERIALIZABLE is promised among transactions that are all SERIALIZABLE, and snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Plain reads see the newest version of each row, committed or not; they take no lock, wait for no transaction and
    /// need no view. Can happen: everything but dirty writes. A scan by an index can miss a row that is being moved in
    /// the index; it never returns a row that does not match the entry it was found by. Cost: the cheapest; holds back
    /// no purge. For estimates and monitoring, not for decisions.
    ReadUncommitted,
    /// Each plain read (a `get`, a whole scan) sees what had committed when it began; those of one statement
    /// ([`WriteTxn::statement`](crate::WriteTxn::statement)) see what had at the first of them. Cannot
    /// happen: aborted, intermediate and circular reads (G1a, G1b, G1c), half of a transaction in one read (OTV). Can
    /// happen: two reads see different states (PMP, G-single), lost updates (P4), write skew (G2-item, G2). No range
    /// locks: others may insert what a locking read did not find. Cost: a view for each read; purge is held back only
    /// while one runs.
    ReadCommitted,
    /// All plain reads see what had committed at the first one: one view. Cannot happen: what READ COMMITTED excludes,
    /// nor two plain reads of different states (PMP and G-single of reads). Can happen: a write works on the newest
    /// row, not on the one that was read, so updates can be lost (P4), also after a scan (G-single of writes); write
    /// skew (G2-item, G2). [`TxnOptions::first_committer_wins`] excludes all but write skew. Locking reads, and writes
    /// that find no row, lock ranges of keys. Cost: an open view holds back purge.
    #[default]
    RepeatableRead,
    /// Every plain read is a locking read in shared mode: it locks the rows it returns and the ranges it passed, also
    /// where it found nothing, on the rows and on the index it used. Cannot happen: any anomaly; the transactions are
    /// as if they had run one after another, in the order in which they committed. Cost: readers and writers wait for
    /// each other, deadlocks are common and end in [`Error::Deadlock`](crate::Error::Deadlock): be ready to run a
    /// transaction again. Memory for each row read. A read that need not lock: [`Database::snapshot`] is serializable
    /// too, and waits for no transaction.
    ///
    /// [`Database::snapshot`]: crate::Database::snapshot
    Serializable,
}

// In lower case the values of the option `transaction_isolation` of MySQL and MariaDB.
highwater_storage::names!(Isolation {
    ReadUncommitted => "read-uncommitted",
    ReadCommitted => "read-committed",
    RepeatableRead => "repeatable-read",
    Serializable => "serializable",
});
highwater_storage::shown_by_name!(Isolation);

impl FromStr for Isolation {
    type Err = String;

    /// Reads a level's name, with dashes, underscores or spaces, in capital or small letters; the error has all names.
    ///
    /// ```
    /// use highwater::Isolation;
    /// assert_eq!("READ COMMITTED".parse(), Ok(Isolation::ReadCommitted));
    /// assert!("snapshot".parse::<Isolation>().unwrap_err().contains("read-committed, repeatable-read"));
    /// ```
    fn from_str(text: &str) -> Result<Isolation, String> {
        let name = text.to_ascii_lowercase().replace(['_', ' '], "-");
        Isolation::named(&name).ok_or_else(|| format!("{text:?} is not one of {}", Isolation::names()))
    }
}

impl Isolation {
    /// Whether locking reads, and writes that find nothing, lock ranges of keys.
    pub(crate) fn locks_ranges(self) -> bool {
        matches!(self, Isolation::RepeatableRead | Isolation::Serializable)
    }
}

/// Options of a transaction; see [`Database::begin_with`](crate::Database::begin_with).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TxnOptions {
    /// The isolation level.
    pub isolation: Isolation,
    /// Milliseconds it waits for a lock; `None` = as the database's option `lock_wait_timeout_ms` says.
    pub lock_wait_timeout_ms: Option<u64>,
    /// Under REPEATABLE READ: a write or locking read of a row that another transaction changed after this one's
    /// snapshot fails with [`Error::WriteConflict`](crate::Error::WriteConflict) instead of working on the newest
    /// version. So no update is lost, and writes too see only the snapshot: snapshot isolation (Berenson et al., *A
    /// Critique of ANSI SQL Isolation Levels*, 1995), of which write skew is the only anomaly. The snapshot begins
    /// with the first read or write. MariaDB's name is `innodb_snapshot_isolation`. At other levels it does nothing.
    /// Cost: a transaction that only writes has a view too; those that fail have to run again.
    pub first_committer_wins: bool,
    /// Under REPEATABLE READ: its snapshot is of the moment of its begin, not of its first read: SQL's START
    /// TRANSACTION WITH CONSISTENT SNAPSHOT. At other levels it does nothing.
    pub snapshot_at_begin: bool,
    /// The durability of its commit; `None`: as the database's option `flush_log_at_trx_commit` says. A commit that
    /// waits for its redo makes all earlier ones durable too.
    pub flush_log_at_trx_commit: Option<FlushLog>,
}

/// The access of a transaction to rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// Snapshot reads only: writes and locking reads are refused.
    ReadOnly,
    #[default]
    ReadWrite,
}
