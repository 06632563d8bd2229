//! The tables a transaction uses: their locks and the versions it works with.
//!
//! Rules
//! 1. A table's lock is taken at its first use and given back after the transaction has ended, never before.
//! 2. A transaction writes a table with its newest version (set of indexes): an index may be added while it has only
//!    read, so it takes the version anew when its lock becomes one for writing; from then on no index can be added or
//!    dropped. While it only reads no index can be dropped: its version is the newest or lacks the youngest indexes,
//!    and is taken anew when an index is named that it lacks. The layout of rows is the same in all versions, and an
//!    open cursor keeps the one it began with.

use crate::error::Result;
use crate::table::handle::TableShared;
use crate::table::lock::Mode;
use crate::table::version::TableVersion;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// A table in use. Dropping it gives the lock back.
struct TableUse {
    table: Arc<TableShared>,
    version: Arc<TableVersion>,
    mode: Mode,
}

impl TableUse {
    fn renew(&mut self) {
        self.version = self.table.current.read().clone();
    }

    /// Makes a read lock one for writing; see rule 2.
    #[cold]
    fn upgrade(&mut self, mode: Mode, timeout: Duration) -> Result<()> {
        self.table.lock.upgrade(timeout)?;
        self.mode = mode;
        self.renew();
        Ok(())
    }
}

impl Drop for TableUse {
    fn drop(&mut self) {
        self.table.lock.unlock(self.mode);
    }
}

/// The tables a transaction uses. They are few: one is found by looking at each.
#[derive(Default)]
pub(crate) struct TableUses(SmallVec<[TableUse; 4]>);

impl TableUses {
    /// The place of a table that is in use, locked in `mode` from now on.
    #[inline]
    pub(crate) fn find(&mut self, table: &Arc<TableShared>, mode: Mode, timeout: Duration) -> Result<Option<usize>> {
        let Some(at) = self.0.iter().position(|used| Arc::ptr_eq(&used.table, table)) else { return Ok(None) };
        if self.0[at].mode < mode {
            self.0[at].upgrade(mode, timeout)?;
        }
        Ok(Some(at))
    }

    /// Locks a table that is not in use; returns its place.
    pub(crate) fn add(&mut self, table: &Arc<TableShared>, mode: Mode, timeout: Duration) -> Result<usize> {
        table.lock.lock(&table.name, mode, timeout)?;
        let version = table.current.read().clone();
        self.0.push(TableUse { table: table.clone(), version, mode });
        Ok(self.0.len() - 1)
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
