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
mod scan;
mod session;
mod transaction;

#[cfg(test)]
mod pairing_test;
#[cfg(test)]
mod read_only_test;
#[cfg(test)]
mod stale_test;

pub use database::Database;
pub use scan::{Scan, ScanIter};
pub use transaction::{Inserted, ReadTxn, TxnOptions, WriteTxn};
