//! Highwater: a transactional storage engine for flash.

pub mod config;
pub mod error;
pub mod stats;
pub mod sync;
pub mod types;

pub mod btree;
pub mod check;
pub mod db;
pub mod log;
pub mod mtr;
pub mod page;
pub mod pool;
pub mod recovery;
pub mod space;
pub mod table;
pub mod txn;

pub use check::{CheckReport, Finding};
pub use config::Options;
pub use db::{Database, Inserted, ReadTxn, Scan, ScanIter, TxnOptions, WriteTxn};
pub use error::{Error, Result};
pub use stats::StatsSnapshot;
pub use table::{
    Changes, Column, DateTime, Decimal, IndexDefinition, Row, RowRef, Schema, Table, TableDefinition, Type, Value,
    ValueRef,
};
pub use txn::{Isolation, Savepoint};
pub use types::PageNo;

#[cfg(test)]
pub(crate) mod testing;
