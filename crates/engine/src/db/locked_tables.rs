//! The tables a transaction uses: their locks and the versions it works with.
//!
//! Rules
//! 1. A table's lock is taken at its first use and released after the transaction has ended, never before.
//! 2. A transaction writes a table with its newest version (set of indexes): an index may be added while it has only
//!    read, so it takes the version again when its lock becomes one for writing; from then on none can be dropped,
//!    and one that is added meanwhile is in the version already, as one that is being built. While it only reads no
//!    index can be dropped: its version is the newest or lacks the youngest indexes, and is taken again when an index
//!    is named that it lacks. The layout of rows is the same in all versions, and an open cursor keeps the one it began
//!    with.
//! 3. The list of tables is kept, unlocked, for the next transaction that reuses the memory: a lookup there writes no
//!    memory that other threads read. After the table is locked, its version is taken again if it has changed. Of a
//!    dropped table only the description is kept until then.
//! 4. Transactions that read one snapshot form a *snapshot group*. A table that one of them has locked the others lock
//!    too, past a schema change that waits for it: else the schema change would wait for one of them, and they for the
//!    schema change.

use crate::error::{Error, Result};
use crate::lock::LockMode;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::Acquire;
use crate::sync::interrupt::Patience;
use crate::table::handle::TableShared;
use crate::table::lock::TableLockMode;
use crate::table::version::TableVersion;
use crate::txn::{Isolation, Txn};
use smallvec::SmallVec;
use std::sync::Arc;

/// Tables that are kept for the next transaction.
const MAX_KEPT: usize = 10;

/// A table that the transaction uses, or that an earlier transaction used.
struct LockedTable {
    table: Arc<TableShared>,
    version: Arc<TableVersion>,
    /// Upper bound of the number of versions that had become current before this one was taken.
    versions: u64,
    /// `None` between two transactions.
    mode: Option<TableLockMode>,
}

/// The tables that the transactions of a snapshot group have locked, one entry for each lock (rule 4).
#[derive(Default)]
pub(crate) struct SnapshotGroup(Mutex<Vec<Arc<TableShared>>>);

impl SnapshotGroup {
    /// Locks a table for reading, past a waiting schema change if one of them has it locked. A thread that has to wait
    /// was barred before any of them had it.
    fn lock(&self, table: &Arc<TableShared>, patience: Patience<'_>) -> Result<()> {
        let mut locked = self.0.lock();
        // Its lock stays until this mutex is free.
        if locked.iter().any(|held| Arc::ptr_eq(held, table)) {
            table.lock.lock_shared_with_waiter(TableLockMode::Read);
        } else if !table.lock.try_lock(TableLockMode::Read) {
            drop(locked);
            table.lock.lock(&table.name, TableLockMode::Read, patience)?;
            locked = self.0.lock();
        }
        locked.push(table.clone());
        Ok(())
    }

    /// Says that a lock is about to be released.
    fn leave(&self, table: &Arc<TableShared>) {
        let mut locked = self.0.lock();
        let found = locked.iter().position(|held| Arc::ptr_eq(held, table));
        debug_assert!(found.is_some(), "rule 4: {} is not among the tables of its snapshot", table.name);
        if let Some(at) = found {
            locked.swap_remove(at);
        }
    }
}

/// Locks a table for a transaction that may be in a snapshot group.
#[inline]
fn lock(
    table: &Arc<TableShared>,
    mode: TableLockMode,
    patience: Patience<'_>,
    snapshot_group: Option<&SnapshotGroup>,
) -> Result<()> {
    match snapshot_group {
        None => table.lock.lock(&table.name, mode, patience),
        Some(snapshot_group) => {
            debug_assert_eq!(mode, TableLockMode::Read, "a snapshot is only read");
            snapshot_group.lock(table, patience)
        }
    }
}

impl LockedTable {
    fn renew(&mut self) {
        self.versions = self.table.versions.load(Acquire);
        self.version = self.table.current.read().clone();
    }

    /// Locks a table that an earlier transaction used.
    fn lock(
        &mut self,
        mode: TableLockMode,
        patience: Patience<'_>,
        snapshot_group: Option<&SnapshotGroup>,
    ) -> Result<()> {
        debug_assert_eq!(self.mode, None, "the table {} is locked twice", self.table.name);
        lock(&self.table, mode, patience, snapshot_group)?;
        self.mode = Some(mode);
        if self.versions != self.table.versions.load(Acquire) {
            self.renew();
        }
        Ok(())
    }

    /// Makes a read lock one for writing; see rule 2.
    #[cold]
    fn upgrade(&mut self, mode: TableLockMode, patience: Patience<'_>) -> Result<()> {
        debug_assert_eq!(self.mode, Some(TableLockMode::Read), "the lock of {} does not become one", self.table.name);
        self.table.lock.upgrade(patience)?;
        self.mode = Some(mode);
        self.renew();
        Ok(())
    }

    fn unlock(&mut self, snapshot_group: Option<&SnapshotGroup>) {
        if let Some(mode) = self.mode.take() {
            snapshot_group.iter().for_each(|snapshot_group| snapshot_group.leave(&self.table));
            self.table.lock.unlock(mode);
        }
    }
}

/// The tables a transaction uses. They are few: one is found by looking at each.
#[derive(Default)]
pub(crate) struct LockedTables {
    uses: SmallVec<[LockedTable; MAX_KEPT]>,
    snapshot_group: Option<Arc<SnapshotGroup>>,
}

impl LockedTables {
    /// The place of a table that is in use, or that an earlier transaction used, locked in `mode` from now on.
    #[inline]
    pub(crate) fn find(
        &mut self,
        table: &Arc<TableShared>,
        mode: TableLockMode,
        patience: Patience<'_>,
    ) -> Result<Option<usize>> {
        let Some(at) = self.uses.iter().position(|used| Arc::ptr_eq(&used.table, table)) else { return Ok(None) };
        match self.uses[at].mode {
            Some(held) if held >= mode => {}
            Some(_) => self.uses[at].upgrade(mode, patience)?,
            None => self.uses[at].lock(mode, patience, self.snapshot_group.as_deref())?,
        }
        debug_assert!(self.uses[at].mode >= Some(mode), "rule 1: {} is locked for less than {mode:?}", table.name);
        self.check();
        Ok(Some(at))
    }

    /// Locks a table that is not known; returns its place.
    pub(crate) fn add(
        &mut self,
        table: &Arc<TableShared>,
        mode: TableLockMode,
        patience: Patience<'_>,
    ) -> Result<usize> {
        let is_used = self.uses.iter().any(|used| Arc::ptr_eq(&used.table, table));
        debug_assert!(!is_used, "the table {} is used twice by a transaction", table.name);
        lock(table, mode, patience, self.snapshot_group.as_deref())?;
        let versions = table.versions.load(Acquire);
        let version = table.current.read().clone();
        self.uses.push(LockedTable { table: table.clone(), version, versions, mode: Some(mode) });
        self.check();
        Ok(self.uses.len() - 1)
    }

    /// Rules 1 and 4: a table is here once, and a snapshot group only reads.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let is_own = |at: usize| !self.uses[..at].iter().any(|used| Arc::ptr_eq(&used.table, &self.uses[at].table));
            debug_assert!((0..self.uses.len()).all(is_own), "a table is here twice: {:?}", self.names());
            let writes = self.uses.iter().any(|used| used.mode == Some(TableLockMode::Write));
            debug_assert!(
                !writes || self.snapshot_group.is_none(),
                "rule 4: a snapshot group writes {:?}",
                self.names()
            );
        }
    }

    /// Makes `other`, of a transaction that has used nothing yet and reads the same snapshot, a member of this one's
    /// snapshot group.
    pub(crate) fn share_with(&mut self, other: &mut LockedTables) {
        debug_assert!(other.snapshot_group.is_none() && !other.holds_any(), "rule 4: a member has begun to read");
        let snapshot_group = self.snapshot_group.get_or_insert_with(|| {
            let locked = self.uses.iter().filter(|used| used.mode.is_some());
            Arc::new(SnapshotGroup(Mutex::new(locked.map(|used| used.table.clone()).collect())))
        });
        other.snapshot_group = Some(snapshot_group.clone());
        self.check();
    }

    /// Releases the locks of tables that were only read: the transaction is prepared and reads no more.
    pub(crate) fn release_read(&mut self) {
        let snapshot_group = self.snapshot_group.take();
        let read = self.uses.iter_mut().filter(|used| used.mode == Some(TableLockMode::Read));
        read.for_each(|used| used.unlock(snapshot_group.as_deref()));
    }

    /// Whether a table is locked.
    pub(crate) fn holds_any(&self) -> bool {
        self.uses.iter().any(|used| used.mode.is_some())
    }

    /// The names of the tables that are locked.
    pub(crate) fn names(&self) -> Vec<String> {
        let locked = self.uses.iter().filter(|used| used.mode.is_some());
        let mut names: Vec<String> = locked.map(|used| used.table.name.clone()).collect();
        names.sort();
        names
    }

    /// Whether this table is locked.
    pub(crate) fn has(&self, table: &Arc<TableShared>) -> bool {
        self.uses.iter().any(|used| used.mode.is_some() && Arc::ptr_eq(&used.table, table))
    }

    /// Releases all locks; the transaction has ended. Some tables are kept for the next one.
    pub(crate) fn release(&mut self) {
        let snapshot_group = self.snapshot_group.take();
        self.uses.iter_mut().for_each(|used| used.unlock(snapshot_group.as_deref()));
        debug_assert!(!self.holds_any(), "a table is locked by no transaction: {:?}", self.names());
        if self.uses.len() > MAX_KEPT {
            self.uses.clear();
        }
    }

    #[inline]
    pub(crate) fn version(&self, at: usize) -> &Arc<TableVersion> {
        debug_assert!(self.uses[at].mode.is_some(), "rule 1: {} is used without its lock", self.uses[at].table.name);
        &self.uses[at].version
    }

    /// Position of an index (`None` = the primary key), in the table's newest version if the one in use lacks it.
    pub(crate) fn index_position(&mut self, at: usize, name: &str) -> Result<Option<usize>> {
        let used = &mut self.uses[at];
        used.version.index_position(name).or_else(|_| {
            used.renew();
            used.version.index_position(name)
        })
    }
}

/// Whether a transaction that began at this schema version can read the table (rule 3 of `table_change.rs`).
///
/// # Errors
/// `Usage` if it cannot.
#[inline]
pub(super) fn check_since(version: &TableVersion, txn: &Txn, lock: LockMode, schema_version: u64) -> Result<()> {
    if version.since <= schema_version { Ok(()) } else { check_reads_present(version, txn, lock) }
}

#[cold]
fn check_reads_present(version: &TableVersion, txn: &Txn, lock: LockMode) -> Result<()> {
    let is_of_snapshot = txn.isolation() == Isolation::RepeatableRead;
    if !is_of_snapshot || (lock != LockMode::None && !txn.first_committer_wins) {
        return Ok(());
    }
    let name = &version.definition.name;
    let reason = format!("table {name} was truncated after this transaction began; begin a new transaction to use it");
    Err(Error::Usage(reason))
}

impl Drop for LockedTables {
    fn drop(&mut self) {
        self.release();
    }
}
