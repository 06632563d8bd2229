//! What read and write transactions share: the transaction below, the tables it uses, its buffers.
//!
//! Rules
//! 1. A table's lock is taken at its first use and given back after the transaction below has ended, never before.
//! 2. A transaction writes a table with its newest version (set of indexes): an index may come while it has only read, so it takes the
//!    version anew when its lock becomes one for writing; from then on none can come or go. While it only reads none can go: its version
//!    is the newest or lacks the youngest indexes, and is taken anew when an index is named that it lacks. The layout of rows is the
//!    same in all versions, and an open cursor keeps the one it began with.
//! 3. Once the database is closed every call is [`Error::Closed`], also one that would need nothing of it.
//! 4. Keys and rows are built in buffers that live as long as the session: no allocation per call but the row that is returned.

use super::database::Inner;
use super::scan::Range;
use crate::error::{Error, Result};
use crate::table::handle::TableShared;
use crate::table::lock::Mode;
use crate::table::version::TableVersion;
use crate::table::{Changes, Row, RowRef, Table, ValueRef};
use crate::txn::{Cursor, Isolation, LockMode, Savepoint, ScanOptions, TrxOptions, Txn};
use smallvec::SmallVec;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

/// What a session's buffers begin with: most keys and rows never make them grow.
const KEY_BYTES: usize = 64;
const ROW_BYTES: usize = 512;

/// A transaction and the tables it uses.
pub(crate) struct Session {
    // Declared, and so dropped, before the tables it uses.
    txn: Txn,
    tables: SmallVec<[Used; 4]>,
    inner: Arc<Inner>,
    timeout: Duration,
    isolation: Isolation,
    /// The database's schema version when the transaction began.
    schema_version: u64,
    key: Vec<u8>,
    row: Vec<u8>,
}

struct Used {
    table: Arc<TableShared>,
    rows: Arc<TableVersion>,
    mode: Mode,
}

/// The parts of a call: the transaction and the table, borrowed apart from the buffers.
macro_rules! parts {
    ($self:ident, $used:expr) => {
        (&mut $self.txn, &*$self.tables[$used].rows)
    };
}

impl Session {
    pub(crate) fn begin(inner: &Arc<Inner>, options: TrxOptions) -> Result<Session> {
        inner.check_running()?;
        let schema_version = inner.schema_version();
        Ok(Session {
            txn: inner.txn_system().begin(options)?,
            inner: inner.clone(),
            tables: SmallVec::new(),
            timeout: Duration::from_millis(options.lock_wait_timeout_ms),
            isolation: options.isolation,
            schema_version,
            key: Vec::with_capacity(KEY_BYTES),
            row: Vec::with_capacity(ROW_BYTES),
        })
    }

    /// Locks the table at its first use; returns its place in `tables`.
    #[inline]
    pub(crate) fn using(&mut self, table: &Table, mode: Mode) -> Result<usize> {
        self.inner.check_not_closed()?;
        match self.tables.iter().position(|used| Arc::ptr_eq(&used.table, &table.shared)) {
            Some(at) if self.tables[at].mode >= mode => Ok(at),
            Some(at) => self.upgrade(at, mode),
            None => self.start_using(table, mode),
        }
    }

    /// Makes a read lock one for writing; see rule 2.
    #[cold]
    fn upgrade(&mut self, at: usize, mode: Mode) -> Result<usize> {
        let used = &mut self.tables[at];
        used.table.lock.upgrade(self.timeout)?;
        used.mode = mode;
        used.rows = used.table.current.read().clone();
        Ok(at)
    }

    fn start_using(&mut self, table: &Table, mode: Mode) -> Result<usize> {
        let shared = &table.shared;
        if !self.inner.owns(shared) {
            return Err(Error::Usage(format!("table {} belongs to another database", shared.name)));
        }
        shared.lock.lock(&shared.name, mode, self.timeout)?;
        let rows = shared.current.read().clone();
        self.tables.push(Used { table: shared.clone(), rows, mode });
        Ok(self.tables.len() - 1)
    }

    pub(crate) fn rows(&self, used: usize) -> &Arc<TableVersion> {
        &self.tables[used].rows
    }

    /// Position of an index of a table in use (`None` = the primary key), in its newest version if the one in use lacks it.
    pub(crate) fn index_position(&mut self, used: usize, name: &str) -> Result<Option<usize>> {
        let used = &mut self.tables[used];
        used.rows.index_position(name).or_else(|_| {
            used.rows = used.table.current.read().clone();
            used.rows.index_position(name)
        })
    }

    /// Reads the row of a key into `self.row`.
    #[inline]
    fn read(&mut self, table: &Table, key: &[ValueRef<'_>], lock: LockMode) -> Result<Option<usize>> {
        let used = self.using(table, Mode::Read)?;
        let (txn, rows) = parts!(self, used);
        self.key.clear();
        rows.key.encode_full(&rows.definition, key, &mut self.key)?;
        let found = txn.get(rows, &self.key, lock, &mut self.row)?;
        self.inner.check_running()?;
        Ok(found.then_some(used))
    }

    #[inline]
    pub(crate) fn get(&mut self, table: &Table, key: &[ValueRef<'_>], lock: LockMode) -> Result<Option<Row>> {
        let Some(used) = self.read(table, key, lock)? else { return Ok(None) };
        Ok(Some(RowRef::new(&self.tables[used].rows.layout, &self.row).to_row(&self.tables[used].rows.layout)))
    }

    #[inline]
    pub(crate) fn get_with<R>(
        &mut self,
        table: &Table,
        key: &[ValueRef<'_>],
        lock: LockMode,
        look: impl FnOnce(RowRef<'_>) -> R,
    ) -> Result<Option<R>> {
        let Some(used) = self.read(table, key, lock)? else { return Ok(None) };
        Ok(Some(look(RowRef::new(&self.tables[used].rows.layout, &self.row))))
    }

    #[inline]
    pub(crate) fn insert(&mut self, table: &Table, values: &[ValueRef<'_>]) -> Result<Option<u64>> {
        let used = self.using(table, Mode::Write)?;
        let (txn, rows) = parts!(self, used);
        let generated = table.shared.generate(|column| values.get(column).is_some_and(|value| value.is_null()))?;
        let number = generated.map(|(column, number)| (column, ValueRef::UInt(number)));
        rows.layout.encode(values, number, &mut self.row)?;
        self.key.clear();
        rows.key_of(&self.row, &mut self.key);
        rows.check_keys(&self.key, &self.row)?;
        if generated.is_none() {
            table.shared.observe(rows, &self.row)?;
        }
        txn.insert(rows, &self.key, &self.row)?;
        Ok(generated.map(|(_, number)| number))
    }

    #[inline]
    pub(crate) fn modify(
        &mut self,
        table: &Table,
        key: &[ValueRef<'_>],
        mut change: impl FnMut(RowRef<'_>, &mut Changes<'_>),
    ) -> Result<bool> {
        let used = self.using(table, Mode::Write)?;
        let (txn, rows) = parts!(self, used);
        self.key.clear();
        rows.key.encode_full(&rows.definition, key, &mut self.key)?;
        let mut moves = false;
        let found = txn.update(rows, &self.key, &mut |old, new| {
            moves = apply(rows, old, new, &mut change)?;
            if moves {
                return Err(Error::Usage("the row moves to another key".to_string()));
            }
            rows.check_keys(&self.key, new)?;
            Ok(old != new.as_slice())
        });
        let found = if moves { self.relocate(used, &mut change) } else { found }?;
        self.inner.check_running()?;
        Ok(found)
    }

    /// Changes a row in its key: as a deletion and an insertion.
    #[cold]
    fn relocate(&mut self, used: usize, change: &mut dyn FnMut(RowRef<'_>, &mut Changes<'_>)) -> Result<bool> {
        let (txn, rows) = parts!(self, used);
        if !txn.get(rows, &self.key, LockMode::Exclusive, &mut self.row)? {
            return Ok(false);
        }
        let (mut new_row, mut new_key) = (Vec::new(), Vec::new());
        apply(rows, &self.row, &mut new_row, change)?;
        rows.key_of(&new_row, &mut new_key);
        rows.check_keys(&new_key, &new_row)?;
        let before = txn.savepoint();
        let done = txn.delete(rows, &self.key).and_then(|_| txn.insert(rows, &new_key, &new_row));
        match done {
            Ok(()) => Ok(true),
            Err(Error::Deadlock) => Err(Error::Deadlock),
            Err(error) => {
                txn.rollback_to(before)?;
                Err(error)
            }
        }
    }

    #[inline]
    pub(crate) fn delete(&mut self, table: &Table, key: &[ValueRef<'_>]) -> Result<bool> {
        let used = self.using(table, Mode::Write)?;
        let (txn, rows) = parts!(self, used);
        self.key.clear();
        rows.key.encode_full(&rows.definition, key, &mut self.key)?;
        let found = txn.delete(rows, &self.key)?;
        self.inner.check_running()?;
        Ok(found)
    }

    /// Opens a cursor over an index (`None` = the rows themselves).
    pub(crate) fn cursor(&mut self, used: usize, index: Option<usize>, range: &Range) -> Result<Cursor> {
        let rows = &self.tables[used].rows;
        if let Some(i) = index
            && self.isolation != Isolation::ReadCommitted
            && range.lock == LockMode::None
            && rows.indexes[i].since > self.schema_version
        {
            let name = &rows.definition.indexes[i].name;
            let reason = format!("index {name} is younger than this transaction; begin a new one to use it");
            return Err(Error::Usage(reason));
        }
        let options = ScanOptions {
            index,
            lower: if range.low.is_empty() { Bound::Unbounded } else { Bound::Included(&range.low) },
            upper: range.high.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
            reverse: range.reverse,
            lock: range.lock,
            limit: range.limit,
        };
        self.txn.scan(rows.clone(), &options)
    }

    /// Moves a cursor to its next row.
    #[inline]
    pub(crate) fn next(&mut self, cursor: &mut Cursor) -> Result<bool> {
        self.inner.check_not_closed()?;
        let found = cursor.next(&mut self.txn)?;
        self.inner.check_running()?;
        Ok(found)
    }

    pub(crate) fn savepoint(&mut self) -> Savepoint {
        self.txn.savepoint()
    }

    pub(crate) fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.inner.check_not_closed()?;
        self.txn.rollback_to(savepoint)
    }

    pub(crate) fn commit(self) -> Result<()> {
        self.inner.check_not_closed()?;
        let Session { txn, tables, .. } = self;
        let done = txn.commit();
        drop(tables);
        done
    }

    pub(crate) fn rollback(self) -> Result<()> {
        self.inner.check_not_closed()?;
        let Session { txn, tables, .. } = self;
        let done = txn.rollback();
        drop(tables);
        done
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        self.table.lock.unlock(self.mode);
    }
}

/// Makes `new` the row that `change` makes of `old`; true if its key changes.
#[inline]
fn apply(
    rows: &TableVersion,
    old: &[u8],
    new: &mut Vec<u8>,
    change: &mut (impl FnMut(RowRef<'_>, &mut Changes<'_>) + ?Sized),
) -> Result<bool> {
    let mut changes = Changes::new(&rows.layout);
    change(rows.row(old), &mut changes);
    if let Some(error) = changes.take_error() {
        return Err(error);
    }
    rows.layout.rebuild(old, &changes, new)?;
    let names_key = changes.columns().any(|column| rows.definition.is_key(column));
    Ok(names_key && rows.key.differs(rows.row(old), rows.row(new)))
}
