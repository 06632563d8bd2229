//! The database: opening and closing, background threads, transactions, scans, schema changes. The public face.

pub mod background;
pub mod core;
mod creation;
mod database;
#[cfg(test)]
mod fail_stop_test;
mod index_build;
#[cfg(test)]
mod lock_wait_test;
mod pairing;
mod probe;
mod read_txn;
mod scan;
mod table_use;
mod write_txn;

#[cfg(test)]
mod pairing_test;
#[cfg(test)]
mod read_only_test;
#[cfg(test)]
mod stale_test;

pub use database::Database;
pub use read_txn::ReadTxn;
pub use scan::{Scan, ScanIter};
pub use write_txn::{Inserted, WriteTxn};
