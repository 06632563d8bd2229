//! The schedules: steps of sessions, as data.
//!
//! After Martin Kleppmann's Hermitage tests (github.com/ept/hermitage), whose names are those of Adya's thesis (*Weak
//! Consistency*, 1999). Each begins with two rows, 1 => 10 and 2 => 20. A schedule differs from Hermitage's only so
//! that each transaction writes a distinct value, or reads once more.
//!
//! Rule: a step of a session that still waits is done when the session continues; steps of a session whose transaction
//! has failed are left out.

use super::play::Seen;

/// The rows of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Every row.
    All,
    /// Rows with this value.
    Value(i64),
    /// Rows whose value is divisible by this number.
    DivisibleBy(i64),
    /// Rows whose value is between these, both included, found by the index on it.
    Between(i64, i64),
}

/// The operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads the row of an id.
    Read(i64),
    /// Reads rows.
    ReadWhere(Which),
    /// Sets the value of a row.
    Write(i64, i64),
    /// Sets the value of rows.
    WriteWhere(Which, i64),
    /// Adds to the value of every row.
    AddToAll(i64),
    /// Inserts a row.
    Insert(i64, i64),
    /// Deletes rows.
    DeleteWhere(Which),
    /// Ends the transaction.
    Commit,
    /// Rolls the transaction back.
    Abort,
}

/// A session and its operation.
pub(super) type Step = (usize, Operation);

/// A schedule and the anomaly it may show.
pub struct Script {
    /// The anomaly.
    pub name: &'static str,
    /// Description of the anomaly.
    pub what: &'static str,
    /// Whether the table has an index on the value.
    pub indexed: bool,
    /// The steps, in the order in which they are begun.
    pub steps: &'static [Step],
    /// Whether it occurred.
    pub anomaly: fn(&Seen) -> bool,
    /// The promised outcomes of Highwater, for each [`Setting`](crate::isolation::Setting) in order.
    pub highwater: &'static str,
    /// The outcomes of InnoDB in MariaDB 10.11.
    pub innodb: &'static str,
}

use Operation::{Abort, AddToAll, Commit, DeleteWhere, Insert, Read, ReadWhere, Write, WriteWhere};
use Which::{All, Between, DivisibleBy, Value};

/// All of them. An outcome is `occurs`, or the way in which the anomaly is prevented; see [`Outcome`](super::Outcome).
pub static SCRIPTS: [Script; 18] = [
    Script {
        name: "G0",
        what: "dirty write",
        indexed: false,
        steps: &[(1, Write(1, 11)), (2, Write(1, 12)), (1, Write(2, 21)), (1, Commit), (2, Write(2, 22)), (2, Commit)],
        anomaly: |seen| ![[(1, 11), (2, 21)], [(1, 12), (2, 22)]].iter().any(|rows| seen.left == rows[..]),
        highwater: "waits waits waits conflict waits",
        innodb: "waits waits waits waits waits",
    },
    Script {
        name: "G1a",
        what: "aborted read",
        indexed: false,
        steps: &[(1, Write(1, 101)), (2, Read(1)), (1, Abort), (2, Read(1)), (2, Commit)],
        anomaly: |seen| seen.reads_of(2, 1).contains(&101),
        highwater: "occurs reads reads reads waits",
        innodb: "occurs reads reads reads waits",
    },
    Script {
        name: "G1b",
        what: "intermediate read",
        indexed: false,
        steps: &[(1, Write(1, 101)), (2, Read(1)), (1, Write(1, 11)), (1, Commit), (2, Read(1)), (2, Commit)],
        anomaly: |seen| seen.reads_of(2, 1).contains(&101),
        highwater: "occurs reads reads reads waits",
        innodb: "occurs reads reads reads waits",
    },
    Script {
        name: "G1c",
        what: "circular information flow",
        indexed: false,
        steps: &[(1, Write(1, 11)), (2, Write(2, 22)), (1, Read(2)), (2, Read(1)), (1, Commit), (2, Commit)],
        anomaly: |seen| seen.committed(&[1, 2]) && seen.reads_of(1, 2) == [22] && seen.reads_of(2, 1) == [11],
        highwater: "occurs reads reads reads deadlock",
        innodb: "occurs reads reads reads deadlock",
    },
    Script {
        name: "OTV",
        what: "observed transaction vanishes",
        indexed: false,
        steps: &[
            (1, Write(1, 11)),
            (1, Write(2, 19)),
            (2, Write(1, 12)),
            (1, Commit),
            (3, Read(1)),
            (3, Read(2)),
            (2, Write(2, 18)),
            (3, Read(2)),
            (2, Commit),
            (3, Read(2)),
            (3, Read(1)),
            (3, Commit),
        ],
        anomaly: |seen| seen.reads_of(3, 1).first() == Some(&12) && seen.reads_of(3, 2).contains(&19),
        highwater: "occurs waits waits conflict waits",
        innodb: "occurs waits waits waits waits",
    },
    Script {
        name: "PMP",
        what: "predicate, many preceders",
        indexed: false,
        steps: &[
            (1, ReadWhere(Value(30))),
            (2, Insert(3, 30)),
            (2, Commit),
            (1, ReadWhere(DivisibleBy(3))),
            (1, Commit),
        ],
        anomaly: |seen| seen.rows(0).is_empty() && seen.rows(3) == [(3, 30)],
        highwater: "occurs occurs reads reads waits",
        innodb: "occurs occurs reads reads waits",
    },
    Script {
        name: "PMP, write",
        what: "a write finds other rows than the read before it",
        indexed: false,
        steps: &[(1, AddToAll(10)), (2, ReadWhere(Value(20))), (2, DeleteWhere(Value(20))), (1, Commit), (2, Commit)],
        anomaly: |seen| seen.committed(&[2]) && seen.rows(1).iter().any(|(id, _)| seen.left_of(*id).is_some()),
        highwater: "waits occurs occurs conflict waits",
        innodb: "waits occurs occurs conflict waits",
    },
    Script {
        name: "P4",
        what: "lost update",
        indexed: false,
        steps: &[(1, Read(1)), (2, Read(1)), (1, Write(1, 11)), (2, Write(1, 12)), (1, Commit), (2, Commit)],
        anomaly: |seen| seen.committed(&[1, 2]) && seen.reads_of(1, 1) == [10] && seen.reads_of(2, 1) == [10],
        highwater: "occurs occurs occurs conflict deadlock",
        innodb: "occurs occurs occurs conflict deadlock",
    },
    Script {
        name: "G-single",
        what: "read skew",
        indexed: false,
        steps: &[
            (1, Read(1)),
            (2, Read(1)),
            (2, Read(2)),
            (2, Write(1, 12)),
            (2, Write(2, 18)),
            (2, Commit),
            (1, Read(2)),
            (1, Commit),
        ],
        anomaly: |seen| seen.reads_of(1, 1) == [10] && seen.reads_of(1, 2) == [18],
        highwater: "occurs occurs reads reads waits",
        innodb: "occurs occurs reads reads waits",
    },
    Script {
        name: "G-single, predicate",
        what: "read skew between two predicates",
        indexed: false,
        steps: &[
            (1, ReadWhere(DivisibleBy(5))),
            (2, WriteWhere(Value(10), 12)),
            (2, Commit),
            (1, ReadWhere(DivisibleBy(3))),
            (1, Commit),
        ],
        anomaly: |seen| seen.rows(0).len() == 2 && seen.rows(3) == [(1, 12)],
        highwater: "occurs occurs reads reads waits",
        innodb: "occurs occurs reads reads waits",
    },
    Script {
        name: "G-single, write",
        what: "a write misses a row that the read before it implies",
        indexed: false,
        steps: &[
            (1, Read(1)),
            (2, ReadWhere(All)),
            (2, Write(1, 12)),
            (2, Write(2, 18)),
            (2, Commit),
            (1, DeleteWhere(Value(20))),
            (1, Commit),
        ],
        anomaly: |seen| seen.committed(&[1, 2]) && seen.reads_of(1, 1) == [10] && seen.left_of(2).is_some(),
        highwater: "occurs occurs occurs conflict deadlock",
        innodb: "occurs occurs occurs conflict deadlock",
    },
    Script {
        name: "G-single, write, interleaved",
        what: "the same, begun before the other commits",
        indexed: false,
        steps: &[
            (1, Read(1)),
            (2, ReadWhere(All)),
            (2, Write(1, 12)),
            (2, Write(2, 18)),
            (1, DeleteWhere(Value(20))),
            (2, Commit),
            (1, Commit),
        ],
        anomaly: |seen| seen.committed(&[1, 2]) && seen.reads_of(1, 1) == [10] && seen.left_of(2).is_some(),
        highwater: "occurs occurs occurs conflict deadlock",
        innodb: "occurs occurs occurs conflict deadlock",
    },
    Script {
        name: "G2-item",
        what: "write skew",
        indexed: false,
        steps: &[
            (1, Read(1)),
            (1, Read(2)),
            (2, Read(1)),
            (2, Read(2)),
            (1, Write(1, 11)),
            (2, Write(2, 21)),
            (1, Commit),
            (2, Commit),
        ],
        anomaly: |seen| seen.committed(&[1, 2]) && seen.reads_of(1, 2) == [20] && seen.reads_of(2, 1) == [10],
        highwater: "occurs occurs occurs occurs deadlock",
        innodb: "occurs occurs occurs occurs deadlock",
    },
    Script {
        name: "G2",
        what: "write skew of predicates",
        indexed: false,
        steps: &[
            (1, ReadWhere(DivisibleBy(3))),
            (2, ReadWhere(DivisibleBy(3))),
            (1, Insert(3, 30)),
            (2, Insert(4, 42)),
            (1, Commit),
            (2, Commit),
        ],
        anomaly: |seen| seen.committed(&[1, 2]) && seen.rows(0).is_empty() && seen.rows(1).is_empty(),
        highwater: "occurs occurs occurs occurs deadlock",
        innodb: "occurs occurs occurs occurs deadlock",
    },
    Script {
        name: "G2, index",
        what: "the same by a secondary index",
        indexed: true,
        steps: &[
            (1, ReadWhere(Between(30, 50))),
            (2, ReadWhere(Between(30, 50))),
            (1, Insert(3, 30)),
            (2, Insert(4, 42)),
            (1, Commit),
            (2, Commit),
        ],
        anomaly: |seen| seen.committed(&[1, 2]) && seen.rows(0).is_empty() && seen.rows(1).is_empty(),
        highwater: "occurs occurs occurs occurs deadlock",
        innodb: "occurs occurs occurs occurs deadlock",
    },
    Script {
        name: "G2, missing rows",
        what: "write skew of rows that were not found",
        indexed: false,
        steps: &[(1, Read(4)), (2, Read(3)), (1, Insert(3, 30)), (2, Insert(4, 42)), (1, Commit), (2, Commit)],
        anomaly: |seen| seen.committed(&[1, 2]) && seen.rows(0).is_empty() && seen.rows(1).is_empty(),
        highwater: "occurs occurs occurs occurs deadlock",
        innodb: "occurs occurs occurs occurs deadlock",
    },
    Script {
        name: "G2, two edges",
        what: "a reader sees a state that no order explains (Fekete)",
        indexed: false,
        steps: &[
            (1, ReadWhere(All)),
            (2, Write(2, 25)),
            (2, Commit),
            (3, ReadWhere(All)),
            (3, Commit),
            (1, Write(1, 0)),
            (1, Commit),
        ],
        anomaly: |seen| {
            let before = seen.rows(0) == [(1, 10), (2, 20)];
            seen.committed(&[1, 2, 3]) && before && seen.rows(3) == [(1, 10), (2, 25)]
        },
        highwater: "occurs occurs occurs occurs deadlock",
        innodb: "occurs occurs occurs occurs deadlock",
    },
    Script {
        name: "G2, moved row",
        what: "write skew by a row that moves into a range of an index",
        indexed: true,
        steps: &[
            (1, ReadWhere(Between(30, 50))),
            (2, ReadWhere(Between(60, 80))),
            (1, Write(1, 70)),
            (2, Write(2, 40)),
            (1, Commit),
            (2, Commit),
        ],
        anomaly: |seen| seen.committed(&[1, 2]) && seen.rows(0).is_empty() && seen.rows(1).is_empty(),
        highwater: "occurs occurs occurs occurs deadlock",
        innodb: "occurs occurs occurs occurs deadlock",
    },
];
