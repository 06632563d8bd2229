//! Highwater: a transactional storage engine for flash.
//!
//! Typed tables with secondary indexes in a folder of three files; transactions with row locks and snapshots; a buffer
//! pool, redo log and B+trees of InnoDB's architecture below.
//!
//! The [`guide`] explains tables, transactions, scans, options and memory, durability, backup and operating, with an
//! example each.
//!
//! What is public: the types re-exported here, [`config`] (every option), [`stats`] (every counter), [`conversions`]
//! (types of other crates in columns), [`inspect`] (looking at the files of a database), and [`raw`] (rows and keys as
//! bytes, for front ends).
//!
//! ```
//! use highwater::{Database, Options, Schema, Type, values};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let folder = dir.path();
//! let db = Database::open(folder, Options::default())?;
//! let people = db.create_table(
//!     "people",
//!     Schema::new()
//!         .column("id", Type::U64)
//!         .auto_increment("id")
//!         .column("last", Type::Text(64))
//!         .column("first", Type::Text(64))
//!         .nullable("born", Type::U16)
//!         .primary_key(&["id"])
//!         .index("by_name", &["last", "first"]),
//! )?;
//!
//! let mut txn = db.begin()?;
//! let ada = txn.insert(&people, &values![null, "Lovelace", "Ada", 1815])?.auto_increment.unwrap();
//! txn.insert(&people, &values![null, "Hopper", "Grace", null])?;
//! txn.commit()?; // durable when it returns
//!
//! let mut txn = db.begin()?;
//! txn.modify(&people, &values![ada], |row, set| set.put("born", row.u64("born") + 1))?;
//! txn.rollback()?;
//!
//! let mut read = db.snapshot()?;
//! assert_eq!(read.get(&people, &values![ada])?.unwrap().u64("born"), 1815);
//! for row in read.scan(&people).index("by_name").starts_with(&values!["L"]).iter()? {
//!     assert_eq!(row?.str("first"), "Ada");
//! }
//! # drop(read);
//! db.close()?;
//! # Ok::<(), highwater::Error>(())
//! ```
//!
//! Features, on by default: `lz4` and `zstd` compress pages of a store out of place
//! ([`page_compression`](Options::page_compression)), and dumps need `zstd`. Where one is needed that the program was
//! built without, the error names it.
//!
//! Features, off by default: with `serde` rows are read as structs of the program ([`RowRef`]`::to`) and made of them
//! ([`WriteTxn`]`::insert_from`); with `chrono`, `jiff`, `rust_decimal` and `uuid` types of those crates are values of
//! columns ([`conversions`]); with `tracing` the main happenings (openings, recoveries, closings, checkpoints, schema
//! changes, a stop after a failure) are events of the crate `tracing`, with the target `highwater`.

// The unit tests are those of the engine as it is; under a model checker (`models`) there are none.
#![cfg(not(all(test, shuttle)))]
#![cfg_attr(test, allow(clippy::duplicate_mod, reason = "models load the files they check once more, for loom"))]

pub mod config;
/// The guide: what a program needs to know, one chapter after the other.
pub mod guide {
    #![doc = include_str!("../docs/guide/README.md")]

    #[doc = include_str!("../docs/guide/tables.md")]
    pub mod tables {}

    #[doc = include_str!("../docs/guide/transactions.md")]
    pub mod transactions {}

    #[doc = include_str!("../docs/guide/scans.md")]
    pub mod scans {}

    #[doc = include_str!("../docs/guide/options.md")]
    pub mod options {}

    #[doc = include_str!("../docs/guide/durability.md")]
    pub mod durability {}

    #[doc = include_str!("../docs/guide/backup.md")]
    pub mod backup {}

    #[doc = include_str!("../docs/guide/operating.md")]
    pub mod operating {}
}
pub mod inspect;
#[doc(hidden)]
pub mod internals;
pub mod stats;

mod backup;
mod btree;
mod change_buffer;
mod check;
mod context;
mod db;
mod dump;
mod error;
mod lock;
mod log;
#[cfg(shuttle)]
pub mod models;
mod mtr;
mod page;
mod pool;
mod probe;
mod recovery;
mod row;
mod salvage;
mod space;
mod store;
mod sync;
mod table;
#[cfg(test)]
mod testing;
mod txn;
mod types;
mod undo;

pub use backup::{
    BackupManifest, BackupOptions, BackupProgress, Base, Commit, FileSum, OnBackupProgress, RestoreOptions,
    RestoreReport, Until,
};
pub use check::{CheckCounts, CheckReport, Finding, NotCompared, OnProgress};
pub use config::{
    ASCII_CI, ChangeBuffering, Collation, Collations, Doublewrite, EncryptionKey, FlushLog, FlushMethod,
    FlushNeighbors, MergeAtClose, Options, PageCompression, PageSize, PageStoreKind, VictimPolicy,
};
pub use db::raw;
pub use db::{
    BuildProgress, Change, ChangeKind, ChangeStream, ColumnIter, CompactionProgress, CompactionReport, Cursor,
    CursorTxn, Database, Inserted, Insertion, InterruptHandle, Migration, OnCompactionProgress, PreparedInfo,
    PreparedTxn, ReadTxn, Reader, ReaderChanges, ReaderRows, ReaderScan, ReaderSnapshot, RecoveryReport, RepairReport,
    Replaced, RowLockInfo, Rows, Scan, ScanIter, Seek, ServedTable, Session, TableRef, TxnWatch, Upserted, WriteTxn,
    rotate_key,
};
pub use dump::{Dump, DumpReport, DumpedTable, UNFINISHED as UNFINISHED_LOAD};
pub use error::{Error, PageDamage, Result};
pub use highwater_storage::{Device, StorageSet};
pub use inspect::{ListLengths, ProbeRecord};
pub use lock::{LockMode, LockWait, LockWaitEvent};
pub use salvage::{SalvageReport, SalvagedTable, salvage};
pub use stats::{LatencySnapshot, MetricsFormat, StatsSnapshot};
pub use table::conversions;
pub use table::{
    Changes, Column, ColumnIndex, Date, DateTime, Decimal, FromValue, Index, IndexColumn, IndexDefinition,
    IndexStatistics, NumberRange, Row, RowRef, Schema, Table, TableChange, TableDefinition, TableStatistics, Time,
    Type, Uuid, Value, ValueRef,
};
pub use txn::{Isolation, PurgeState, PurgeWatch, Savepoint, TxnOptions};
pub use types::PageNo;
pub use undo::Xid;

/// The example of the package's page compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The example of the project's page compiles.
#[cfg(doctest)]
#[doc = include_str!("../docs/project.md")]
struct Project;

/// The example of an async program runs.
#[cfg(doctest)]
#[doc = include_str!("../docs/async.md")]
struct Async;
