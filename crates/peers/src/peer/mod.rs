//! The engines, a file or folder each.

pub(crate) mod fjall;
pub(crate) mod highwater;
pub(crate) mod lmdb;
pub(crate) mod prefixed;
pub(crate) mod redb;
#[cfg(feature = "rocksdb")]
pub(crate) mod rocksdb;
pub(crate) mod sqlite;
#[cfg(feature = "wiredtiger")]
pub(crate) mod wiredtiger;
