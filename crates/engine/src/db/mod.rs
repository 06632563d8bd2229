//! The database, the part that users call: opening and closing, background threads, transactions, scans, schema
//! changes.
//!
//! | file | what |
//! |---|---|
//! | `database` | the handle; closing |
//! | `opening`, `parts`, `creation`, `file_generations`, `probe` | the steps of an opening |
//! | `recovery_report` | the report of an opening after a crash |
//! | `background`, `threads` | the threads; how they run, when they are started, how they end |
//! | `backup`, `archiving` | backups; the archive of redo |
//! | `write_txn`, `read_txn`, `locked_tables` | the calls of a transaction, and the tables it uses |
//! | `txn_scratch` | memory of a transaction that the next one reuses |
//! | `deferred_end` | the end of a transaction that is dropped |
//! | `prepared`, `prepared_list` | prepared transactions |
//! | `row_calls`, `row_change` | changes of one row by both APIs; rows in closures |
//! | `session`, `statement` | transactions of a connection; statements of several calls |
//! | `raw/` | the raw API: rows and keys as bytes |
//! | `insert_many`, `delete_many` | many rows inserted or deleted by one call |
//! | `struct_calls` | rows of structs of the program, by serde |
//! | `upsert` | insertions that find or change their duplicate |
//! | `lock_wait`, `interrupt` | wait policies of statements; ending a wait from another thread |
//! | `interrupt_handle` | the handle by which another thread ends a wait |
//! | `transact` | transactions that are run again |
//! | `scan`, `scan_steps`, `visit`, `cursor` | scans; their rows shown in place; positions that live between calls |
//! | `columns`, `column_iter` | reads of some columns |
//! | `numbers`, `counter_wait` | auto-increment numbers, their lock |
//! | `readers/` | readers in other processes: served, and what they call |
//! | `gate` | keeps transactions that write, schema changes and checks apart |
//! | `schema_change`, `index_build` | tables and indexes are created, online, and dropped |
//! | `encryption` | keys of encrypted databases |
//! | `dropping` | pages of dropped tables and indexes are freed in the background |
//! | `expiry`, `expiry_thread` | expired rows are removed in the background |
//! | `handle_thread` | a thread that ends with the last handle of the program |
//! | `table_ref` | tables by handle or by name |
//! | `changes/` | the change log: row changes that committed, in order |
//! | `compact` | pages are moved to the front of the data file, and its end is cut off |
//! | `table_change`, `migration` | changes of names and columns, truncation; changes of a table to match a schema |
//! | `deterministic` | a database whose steps the caller runs, without threads |
//! | `runtime_options` | options are changed while the database is open |
//! | `rebuild` | secondary indexes are rebuilt from the rows |
//! | `statistics` | numbers for a planner |
//! | `observe` | counters, latencies, the check |

// In the order in which a program uses them, which is that of the documentation of `Database`; blank lines keep it.
mod opening;

mod schema_change;

mod table_change;

mod migration;

mod index_build;

mod transact;

mod session;

mod prepared;

mod interrupt;

pub(crate) mod expiry;

mod changes;

mod readers;

mod backup;

mod compact;

mod dropping;

mod rebuild;

mod encryption;

mod runtime_options;

mod recovery_report;

mod observe;

mod statistics;

mod lock_list;

mod database;

// Without calls of `Database`.
mod archiving;
mod background;
mod column_iter;
mod columns;
mod counter_wait;
mod creation;
mod cursor;
mod deferred_end;
mod delete_many;
pub(crate) mod deterministic;
mod expiry_thread;
mod file_generations;
mod gate;
mod get_many;
mod handle_thread;
mod insert_many;
mod interrupt_handle;
mod lock_wait;
mod locked_tables;
mod numbers;
pub(crate) mod open_overrides;
pub(crate) mod open_parts;
mod prepared_list;
mod probe;
pub mod raw;
mod read_txn;
mod row_calls;
mod row_change;
mod scan;
mod scan_steps;
mod statement;
#[cfg(feature = "serde")]
mod struct_calls;
mod table_ref;
mod threads;
mod txn_scratch;
mod upsert;
mod visit;
mod write_txn;

pub(crate) use changes::CHANGE_LOG;
pub use changes::{Change, ChangeKind, ChangeStream};
pub use column_iter::ColumnIter;
pub use compact::{CompactionProgress, CompactionReport, OnCompactionProgress};
pub use cursor::{Cursor, CursorTxn, Seek};
pub use database::Database;
pub use encryption::rotate_key;
pub use index_build::BuildProgress;
pub use insert_many::Rows;
pub use interrupt_handle::InterruptHandle;
pub use lock_list::{RowLockInfo, TxnWatch};
pub use migration::Migration;
pub use prepared::PreparedTxn;
pub use prepared_list::PreparedInfo;
pub use read_txn::ReadTxn;
pub use readers::{Reader, ReaderChanges, ReaderRows, ReaderScan, ReaderSnapshot, ServedTable};
pub use rebuild::RepairReport;
pub use recovery_report::RecoveryReport;
pub use scan::{Scan, ScanIter};
pub use session::Session;
pub use table_ref::TableRef;
pub use upsert::{Insertion, Replaced, Upserted};
pub use write_txn::{Inserted, WriteTxn};

#[cfg(test)]
mod db_test;
#[cfg(test)]
pub(crate) mod testing;
