//! An open table, which belongs to one handler of the server.

use crate::abi::{Array, Bytes, Columns, Context, TableInfo};
use crate::database::{Database, SharedTable};
use crate::failure::{Code, found, guarded};
use crate::row_count::{Changes, TableSize};
use crate::session::Session;
use highwater::raw::{RawColumn, RawCursor, RawRead, RawRow, RawSeek, RawTable};
use highwater::{Isolation, NumberRange, Result, TxnOptions};
use smallvec::SmallVec;
use std::sync::Arc;

/// Values of columns, borrowed.
pub(crate) type Values<'v> = SmallVec<[RawColumn<'v>; 32]>;

/// The values that the caller has.
#[inline]
pub(crate) fn values(columns: &Columns) -> Values<'_> {
    columns.elements().iter().map(Bytes::get).collect()
}

/// A handler's table.
pub struct Table {
    pub(crate) name: String,
    pub(crate) shared: Arc<SharedTable>,
    pub(crate) raw: RawTable,
    generation: u64,
    /// Made with the first move.
    pub(crate) cursor: Option<RawCursor>,
    pub(crate) has_cursor: bool,
    /// The cursor's index.
    pub(crate) index: Vec<u8>,
    /// Whether the cursor's last seek was an exact one.
    pub(crate) is_exact: bool,
    /// Whether it was one for the row of a primary key: the cursor itself has not moved.
    pub(crate) is_point: bool,
    /// The transaction in which it moved last.
    pub(crate) moved_in: u64,
    /// Start of the next move, if not the cursor's position.
    pub(crate) entry: Vec<u8>,
    pub(crate) read: RawRead,
    /// Positions of the returned columns.
    pub(crate) wanted: Vec<u32>,
    pub(crate) row: RawRow,
    pub(crate) has_row: bool,
    /// Whether the row that was read last is the cursor's; else its key is `row_key`.
    pub(crate) is_of_cursor: bool,
    pub(crate) row_key: Vec<u8>,
    pub(crate) key: Vec<u8>,
    pub(crate) changes: Changes,
}

impl Table {
    fn open(database: &Database, name: String) -> Result<Table> {
        let shared = database.shared(&name)?;
        let (raw, generation) = shared.current();
        Ok(Table {
            name,
            shared,
            raw,
            generation,
            cursor: None,
            has_cursor: false,
            index: Vec::new(),
            is_exact: false,
            is_point: false,
            moved_in: 0,
            entry: Vec::new(),
            read: RawRead::default(),
            wanted: Vec::new(),
            row: RawRow::default(),
            has_row: false,
            is_of_cursor: false,
            row_key: Vec::new(),
            key: Vec::new(),
            changes: Changes::default(),
        })
    }

    /// The table as it is now.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        if self.generation != self.shared.generation() {
            (self.raw, self.generation) = self.shared.current();
            self.close_cursor();
        }
    }

    fn info(&mut self, database: &Database) -> Result<TableInfo> {
        self.refresh();
        let table = self.raw.table();
        let TableSize { rows, row_bytes, index_bytes } = self.shared.rows.get(|| size_of(database, table))?;
        Ok(TableInfo { rows, row_bytes, index_bytes, next_number: table.next_number().unwrap_or(0) })
    }

    fn rows_per_key(&self, index: &str, columns: u32) -> Option<f64> {
        let statistics = self.raw.table().statistics()?;
        let found = statistics.indexes.iter().find(|found| found.name == index)?;
        let distinct = *found.distinct.get((columns as usize).checked_sub(1)?)?;
        (distinct != 0).then(|| statistics.rows as f64 / distinct as f64)
    }

    /// The beginning of an index's keys, or the end of the keys with that beginning.
    fn bound(&self, index: &str, columns: &Columns, after: bool) -> Result<Option<Vec<u8>>> {
        let mut key = Vec::new();
        self.raw.append_key(index, &values(columns), &mut key)?;
        Ok(if after { behind(key) } else { Some(key) })
    }

    fn estimate(&mut self, database: &Database, index: &str, bounds: [(Columns, bool); 2]) -> Result<u64> {
        self.refresh();
        let [low, high] =
            bounds.map(
                |(columns, after)| {
                    if columns.get().is_none() { Ok(None) } else { self.bound(index, &columns, after).map(Some) }
                },
            );
        let low = match low? {
            // Behind all keys.
            Some(None) => return Ok(0),
            low => low.flatten().unwrap_or_default(),
        };
        self.raw.approximate_entries(&database.db, index, &low, high?.flatten().as_deref())
    }

    fn row_number(&mut self, database: &Database) -> Result<u64> {
        self.refresh();
        let mut next = self.shared.next_row.lock();
        if *next == 0 {
            *next = last_row_number(database, &self.raw)? + 1;
        }
        *next += 1;
        Ok(*next - 1)
    }
}

/// The least key that is greater than all that begin so; `None`: there is none.
fn behind(mut key: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = key.pop() {
        if last != u8::MAX {
            key.push(last + 1);
            return Some(key);
        }
    }
    None
}

/// The greatest hidden key, committed or not.
fn last_row_number(database: &Database, table: &RawTable) -> Result<u64> {
    let isolation = Isolation::ReadUncommitted;
    let mut txn = database.db.begin_with(TxnOptions { isolation, ..TxnOptions::default() })?;
    let mut cursor = table.cursor("PRIMARY", RawRead { keys_only: true, ..RawRead::default() });
    let mut last = 0;
    if cursor.seek(&mut txn, RawSeek::AtMost, &[])?
        && let Some(key) = cursor.key().and_then(|key| key.first_chunk::<8>())
    {
        last = u64::from_be_bytes(*key);
    }
    txn.rollback()?;
    Ok(last)
}

fn size_of(database: &Database, table: &highwater::Table) -> Result<TableSize> {
    let rows = database.db.approximate_rows(table)?;
    let Some(found) = table.statistics() else { return Ok(TableSize { rows, ..TableSize::default() }) };
    let index_bytes = found.indexes.iter().map(|index| index.bytes).sum();
    Ok(TableSize { rows, row_bytes: found.row_bytes + found.overflow_bytes, index_bytes })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_open(database: &Database, name: Bytes, out: &mut Option<Box<Table>>) -> i32 {
    guarded(|| {
        *out = Some(Box::new(Table::open(database, name.text())?));
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_close(table: Option<Box<Table>>) {
    guarded(|| {
        drop(table);
        Ok(Code::Ok)
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_column(table: &Table, name: Bytes, position: &mut u32) -> i32 {
    guarded(|| {
        let name = name.text();
        let at = table.raw.table().columns().iter().position(|column| column.name == name);
        *position = at.unwrap_or(0) as u32;
        Ok(found(at.is_some()))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_index_has(table: &Table, index: Bytes, columns: Array<u32>) -> i32 {
    guarded(|| {
        let columns: Vec<usize> = columns.elements().iter().map(|at| *at as usize).collect();
        table.raw.index_has(&index.text(), &columns).map(found)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_truncate(table: &mut Table, database: &Database) -> i32 {
    guarded(|| {
        let truncated = database.db.truncate_table(&table.name)?;
        table.shared.exchange(truncated.into());
        table.refresh();
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_get_info(table: &mut Table, database: &Database, info: &mut TableInfo) -> i32 {
    guarded(|| {
        *info = table.info(database)?;
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_analyze(table: &mut Table, database: &Database) -> i32 {
    guarded(|| {
        table.refresh();
        let analyzed = database.db.analyze(&table.name).map(|_| Code::Ok);
        table.shared.rows.forget();
        analyzed
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_rows_per_key(table: &Table, index: Bytes, columns: u32, rows: &mut f64) -> i32 {
    guarded(|| {
        *rows = table.rows_per_key(&index.text(), columns).unwrap_or(0.0);
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_estimate(
    table: &mut Table,
    database: &Database,
    index: Bytes,
    low: Columns,
    low_after: u32,
    high: Columns,
    high_after: u32,
    entries: &mut u64,
) -> i32 {
    guarded(|| {
        *entries = table.estimate(database, &index.text(), [(low, low_after != 0), (high, high_after != 0)])?;
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_table_check(
    table: &Table,
    database: &Database,
    visit: extern "C" fn(Context, Bytes),
    context: Context,
) -> i32 {
    guarded(|| {
        let report = database.db.check()?;
        for finding in &report.findings {
            let line = finding.to_string();
            if finding.table.as_ref().is_none_or(|name| *name == table.name) {
                visit(context, Array::of(line.as_bytes()));
            }
        }
        Ok(found(report.is_sound()))
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_numbers_reserve(
    session: &mut Session,
    table: &mut Table,
    count: u64,
    every: u64,
    offset: u64,
    first: &mut u64,
) -> i32 {
    guarded(|| {
        table.refresh();
        let range = NumberRange { count, every, offset };
        *first = session.txn()?.reserve_numbers(table.raw.table(), range)?;
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_numbers_lock(session: &mut Session, table: &mut Table) -> i32 {
    guarded(|| {
        table.refresh();
        session.txn()?.lock_numbers(table.raw.table())?;
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_numbers_set(session: &mut Session, table: &mut Table, next: u64) -> i32 {
    guarded(|| {
        table.refresh();
        session.txn()?.set_next_number(table.raw.table(), next)?;
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_row_number(table: &mut Table, database: &Database, number: &mut u64) -> i32 {
    guarded(|| {
        *number = table.row_number(database)?;
        Ok(Code::Ok)
    })
}
