//! Writing a dump.
//!
//! Rule: before the first byte is written, the transaction has used every table and every index, so none of them can
//! change or be dropped until the end. If one changed before that, another snapshot is taken.

use super::head::{End, Head};
use super::stream::{BlockWriter, Kind};
use super::{DumpReport, DumpedTable};
use crate::db::raw::{RawRead, RawRow, RawSeek, RawTable};
use crate::db::{Database, ReadTxn};
use crate::error::{Error, Result};
use crate::page::varint;
use crate::table::definition::PRIMARY;
use crate::table::definition_form::{TableForm, to_json};
use crate::table::{Table, TableDefinition};
use std::io::Write;
use std::sync::Arc;

/// Bytes of rows that are compressed together.
const BLOCK_BYTES: usize = 1 << 20;
/// Snapshots that are tried while tables and indexes change.
const TRIES: usize = 20;
/// Rows between two reports of progress.
const PROGRESS_ROWS: u64 = 1024;

impl Database {
    /// Writes the whole database as one stream: every table with its definition, its attachment and the next number of
    /// its auto-increment column, and the rows of one snapshot. [`load`](Self::load) makes a database of it, of this
    /// version or any later one (docs/format.md), for any page size and options.
    ///
    /// Transactions continue meanwhile; changes of tables wait, as they do for any transaction that uses the table.
    /// Changes of transactions that are prepared are not in the snapshot.
    ///
    /// ```
    /// use highwater::{Database, Options, Schema, Type, values};
    /// # let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    /// let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).primary_key(&["id"]);
    /// let people = db.create_table("people", schema.index("by_name", &["name"]))?;
    /// db.transact(|txn| txn.insert(&people, &values![1u64, "Ada"]).map(drop))?;
    ///
    /// let mut dump = Vec::new();
    /// assert_eq!(db.dump(&mut dump)?.rows(), 1);
    ///
    /// let copy = Database::open(other.path(), Options::default())?;
    /// copy.load(&dump[..])?;
    /// let people = copy.table("people")?;
    /// let found = copy.snapshot()?.get_by(&people, "by_name", &values!["Ada"])?;
    /// assert_eq!(found.unwrap().u64(0), 1);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`] if it cannot be written; [`Error::LockWaitTimeout`] if a change of a table blocks it for too
    /// long; a damaged page. The output is then incomplete, and a load refuses it.
    pub fn dump(&self, into: impl Write) -> Result<DumpReport> {
        self.dump_with(into, &mut |_, _| {})
    }

    /// As [`dump`](Self::dump). `on_progress` gets the number of rows that were written, and about how many there are.
    ///
    /// # Errors
    /// As [`dump`](Self::dump).
    pub fn dump_with(&self, into: impl Write, on_progress: &mut dyn FnMut(u64, u64)) -> Result<DumpReport> {
        let (mut read, tables) = hold_tables(self)?;
        let about = tables.iter().map(|(table, _)| self.approximate_rows(table)).sum::<Result<u64>>()?;
        let mut writer = BlockWriter::new(into)?;
        let program = concat!("highwater ", env!("CARGO_PKG_VERSION")).to_string();
        let page_bytes = self.options().page_size.bytes().unwrap_or_default() as u32;
        writer.block(Kind::Head, 0, &to_json(&Head { program, page_bytes, tables: tables.len() as u32 }))?;
        for (number, (table, definition)) in tables.iter().enumerate() {
            let form = TableForm::of(definition, table.next_number());
            writer.block(Kind::Table, number as u32, &to_json(&form))?;
        }
        let (mut report, mut rows) = (DumpReport::default(), Rows { block: Vec::new(), done: 0, about, on_progress });
        for (number, (table, _)) in tables.iter().enumerate() {
            let written = rows.write(&mut read, table, number as u32, &mut writer)?;
            report.tables.push(DumpedTable { name: table.name().to_string(), rows: written });
        }
        let is_unchanged = |(table, held): &(Table, Arc<TableDefinition>)| table.definition().columns == held.columns;
        debug_assert!(tables.iter().all(is_unchanged), "rule: a table changes while it is dumped");
        let end = End { rows: report.tables.iter().map(|table| table.rows).collect() };
        writer.block(Kind::End, 0, &to_json(&end))?;
        report.bytes = writer.finish()?;
        Ok(report)
    }
}

type HeldTables = Vec<(Table, Arc<TableDefinition>)>;

/// A snapshot that uses every table with every index, and the tables as it sees them.
fn hold_tables(db: &Database) -> Result<(ReadTxn, HeldTables)> {
    let mut tries = 0;
    loop {
        tries += 1;
        let mut read = db.snapshot()?;
        match db.tables().into_iter().map(|table| hold_table(&mut read, table)).collect() {
            Ok(held) => return Ok((read, held)),
            Err(Error::TableDropped { .. } | Error::TableChanged { .. } | Error::Usage(_)) if tries < TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

fn hold_table(read: &mut ReadTxn, table: Table) -> Result<(Table, Arc<TableDefinition>)> {
    read.scan(&table).limit(1).count()?;
    let definition = table.definition();
    for index in &definition.indexes {
        // An index younger than the snapshot is an error: the snapshot's rows may not be unique by it.
        read.scan(&table).index(&index.name).limit(1).count()?;
    }
    Ok((table, definition))
}

/// Rows on their way into blocks.
struct Rows<'p> {
    block: Vec<u8>,
    done: u64,
    about: u64,
    on_progress: &'p mut dyn FnMut(u64, u64),
}

impl Rows<'_> {
    /// Writes the rows of a table; returns how many.
    fn write(
        &mut self,
        read: &mut ReadTxn,
        table: &Table,
        number: u32,
        writer: &mut BlockWriter<impl Write>,
    ) -> Result<u64> {
        debug_assert!(self.block.is_empty(), "{} bytes of another table's rows are not written", self.block.len());
        let before = self.done;
        let (table, mut row) = (RawTable::from(table.clone()), RawRow::default());
        let mut cursor = table.cursor(PRIMARY, RawRead::default());
        let mut is_on_row = cursor.seek(read, RawSeek::AtLeast, &[])?;
        while is_on_row {
            cursor.read_row(&mut row)?;
            put_row(&row, &mut self.block);
            self.done += 1;
            is_on_row = cursor.next(read)?;
            if self.block.len() >= BLOCK_BYTES {
                writer.block(Kind::Rows, number, &self.block)?;
                self.block.clear();
            }
            if self.done.is_multiple_of(PROGRESS_ROWS) {
                (self.on_progress)(self.done, self.about.max(self.done));
            }
        }
        if !self.block.is_empty() {
            writer.block(Kind::Rows, number, &self.block)?;
            self.block.clear();
        }
        Ok(self.done - before)
    }
}

/// Writes each column: 0 for NULL, otherwise its length + 1 and its bytes.
fn put_row(row: &RawRow, out: &mut Vec<u8>) {
    for column in 0..row.columns() {
        match row.column(column) {
            None => varint::put(out, 0),
            Some(bytes) => {
                varint::put(out, bytes.len() as u64 + 1);
                out.extend_from_slice(bytes);
            }
        }
    }
}
