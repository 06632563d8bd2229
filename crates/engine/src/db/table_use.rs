//! The tables a transaction uses: their locks and the versions it works with.
//!
//! Rules
//! 1. A table's lock is taken at its first use and given back after the transaction has ended, never before.
//! 2. A transaction writes a table with its newest version (set of indexes): an index may be added while it has only
//!    read, so it takes the version anew when its lock becomes one for writing; from then on no index can be added or
//!    dropped. While it only reads no index can be dropped: its version is the newest or lacks the youngest indexes,
//!    and is taken anew when an index is named that it lacks. The layout of rows is the same in all versions, and an
//!    open cursor keeps the one it began with.
//! 3. What a transaction knows of its tables is kept for the next one that gets its memory, unlocked: to find a table
//!    there writes no memory that other threads read. Once it is locked it is taken anew if the table has another
//!    version by now. Of a dropped table the description stays until then, nothing else.

use crate::error::Result;
use crate::sync::atomic::Ordering::Acquire;
use crate::table::handle::TableShared;
use crate::table::lock::Mode;
use crate::table::version::TableVersion;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// Tables that are kept for the next transaction.
const MOST_KEPT: usize = 10;

/// A table in use, or one that an earlier transaction used.
struct TableUse {
    table: Arc<TableShared>,
    version: Arc<TableVersion>,
    /// How many versions had become current before this one was taken, at most.
    versions: u64,
    /// `None` between two transactions.
    mode: Option<Mode>,
}

impl TableUse {
    fn renew(&mut self) {
        self.versions = self.table.versions.load(Acquire);
        self.version = self.table.current.read().clone();
    }

    /// Locks a table that an earlier transaction used.
    fn lock(&mut self, mode: Mode, timeout: Duration) -> Result<()> {
        self.table.lock.lock(&self.table.name, mode, timeout)?;
        self.mode = Some(mode);
        if self.versions != self.table.versions.load(Acquire) {
            self.renew();
        }
        Ok(())
    }

    /// Makes a read lock one for writing; see rule 2.
    #[cold]
    fn upgrade(&mut self, mode: Mode, timeout: Duration) -> Result<()> {
        self.table.lock.upgrade(timeout)?;
        self.mode = Some(mode);
        self.renew();
        Ok(())
    }

    fn unlock(&mut self) {
        if let Some(mode) = self.mode.take() {
            self.table.lock.unlock(mode);
        }
    }
}

/// The tables a transaction uses. They are few: one is found by looking at each.
#[derive(Default)]
pub(crate) struct TableUses(SmallVec<[TableUse; MOST_KEPT]>);

impl TableUses {
    /// The place of a table that is in use, or that an earlier transaction used, locked in `mode` from now on.
    #[inline]
    pub(crate) fn find(&mut self, table: &Arc<TableShared>, mode: Mode, timeout: Duration) -> Result<Option<usize>> {
        let Some(at) = self.0.iter().position(|used| Arc::ptr_eq(&used.table, table)) else { return Ok(None) };
        match self.0[at].mode {
            Some(held) if held >= mode => {}
            Some(_) => self.0[at].upgrade(mode, timeout)?,
            None => self.0[at].lock(mode, timeout)?,
        }
        Ok(Some(at))
    }

    /// Locks a table that is not known; returns its place.
    pub(crate) fn add(&mut self, table: &Arc<TableShared>, mode: Mode, timeout: Duration) -> Result<usize> {
        table.lock.lock(&table.name, mode, timeout)?;
        let versions = table.versions.load(Acquire);
        let version = table.current.read().clone();
        self.0.push(TableUse { table: table.clone(), version, versions, mode: Some(mode) });
        Ok(self.0.len() - 1)
    }

    /// Gives all locks back; the transaction has ended. Some tables are kept for the next one.
    pub(crate) fn release(&mut self) {
        self.0.iter_mut().for_each(TableUse::unlock);
        if self.0.len() > MOST_KEPT {
            self.0.clear();
        }
    }

    #[inline]
    pub(crate) fn version(&self, at: usize) -> &Arc<TableVersion> {
        &self.0[at].version
    }

    /// Position of an index (`None` = the primary key), in the table's newest version if the one in use lacks it.
    pub(crate) fn index_position(&mut self, at: usize, name: &str) -> Result<Option<usize>> {
        let used = &mut self.0[at];
        used.version.index_position(name).or_else(|_| {
            used.renew();
            used.version.index_position(name)
        })
    }
}

impl Drop for TableUses {
    fn drop(&mut self) {
        self.release();
    }
}
