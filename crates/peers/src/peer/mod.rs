//! The engines, a file or folder each.

pub mod fjall;
pub mod highwater;
pub mod lmdb;
pub mod prefixed;
pub mod redb;
#[cfg(feature = "rocksdb")]
pub mod rocksdb;
pub mod sqlite;
#[cfg(feature = "wiredtiger")]
pub mod wiredtiger;
