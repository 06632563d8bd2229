//! Key-value engines as stores: the interface of an engine, and tables and indexes on top of it.
//!
//! Rules
//! 1. A table is a tree of rows, a secondary index a tree of entries without values; the tables are described in a tree
//!    of their own.
//! 2. Index entries change in the transaction that changes their row.
//! 3. Everything is dispatched statically, and a client's buffers are used again: an engine pays for encoding rows, as
//!    any user of it does, and for nothing else.
//! 4. What an engine reads in place (memory map, page) is shown in place.

mod catalog;
#[cfg(test)]
mod kv_test;
mod store;
mod transaction;

pub(crate) use store::KvStore;

use crate::settings::Settings;
use highwater_bench::Result;
use std::ops::ControlFlow;
use std::path::Path;

/// A key-value engine. Cloning gives another handle.
pub(crate) trait Kv: Clone + Send + Sync + 'static {
    /// An ordered tree of keys and values.
    type Tree: Clone + Send + Sync + 'static;
    /// One thread's access.
    type Client: KvClient<Tree = Self::Tree>;

    /// Opens or creates the database in a folder.
    fn open(folder: &Path, settings: &Settings) -> Result<Self>;
    /// The tree of that name, made if there is none.
    fn tree(&self, name: &str) -> Result<Self::Tree>;
    /// Access for a thread.
    fn client(&self) -> Result<Self::Client>;
    /// Makes everything durable and closes. No other handle is used any more.
    fn close(self) -> Result<()>;
    fn version() -> String;
}

/// One thread's access.
pub(crate) trait KvClient: Send + 'static {
    /// An ordered tree.
    type Tree: Clone + Send + Sync + 'static;
    /// A transaction that may write.
    type Write<'c>: KvWrite<Tree = Self::Tree>;
    /// A snapshot.
    type Read<'c>: KvRead<Tree = Self::Tree>;

    /// Begins a transaction that may write.
    fn write(&mut self) -> Result<Self::Write<'_>>;
    /// Takes a snapshot.
    fn read(&mut self) -> Result<Self::Read<'_>>;
}

/// Which keys a scan visits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range<'r> {
    pub(crate) from: &'r [u8],
    /// Up to and without this one; to the end if it is empty.
    pub(crate) to: &'r [u8],
    /// The greatest first.
    pub(crate) reverse: bool,
    /// The newest committed state, where a transaction could also read an older one.
    pub(crate) newest: bool,
}

pub(crate) trait KvRead {
    /// An ordered tree.
    type Tree: Clone + Send + Sync + 'static;

    /// Shows the value of a key.
    fn get<R>(&mut self, tree: &Self::Tree, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>>;
    /// Shows the newest value of a key and keeps others from changing it, or fails later if one did.
    fn get_for_update<R>(&mut self, tree: &Self::Tree, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.get(tree, key, look)
    }
    /// Shows keys and values in order until `visit` breaks.
    fn scan(
        &mut self,
        tree: &Self::Tree,
        range: &Range<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()>;
    /// Ends a snapshot, or commits.
    fn finish(self) -> Result<()>;
}

pub(crate) trait KvWrite: KvRead {
    /// Puts a key that must not be there; false if it is.
    fn insert(&mut self, tree: &Self::Tree, key: &[u8], value: &[u8]) -> Result<bool> {
        if self.get_for_update(tree, key, |_| ())?.is_some() {
            return Ok(false);
        }
        self.put(tree, key, value)?;
        Ok(true)
    }
    /// Puts a key, whether it is there or not.
    fn put(&mut self, tree: &Self::Tree, key: &[u8], value: &[u8]) -> Result<()>;
    /// Removes a key, whether it is there or not.
    fn delete(&mut self, tree: &Self::Tree, key: &[u8]) -> Result<()>;
    /// Undoes everything.
    fn rollback(self) -> Result<()>;
}
