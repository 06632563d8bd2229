//! Reading a dump and loading it.
//!
//! Rules
//! 1. The head and the definitions are read, checked, and compared with the existing tables before anything is created.
//! 2. Each block of rows is a transaction. Indexes are built after the end block is read; then the tables get their
//!    names.
//! 3. After a failure every table that the load created is dropped; the error names a table that cannot be dropped.

use super::head::{End, Head};
use super::stream::{Block, BlockReader, Kind};
use super::{DumpReport, DumpedTable, UNFINISHED};
use crate::db::Database;
use crate::db::raw::{RawColumn, RawTable};
use crate::error::{Error, Result};
use crate::page::varint::VarintReader;
use crate::table::definition_form::{Described, NextNumber, TableForm, from_json};
use crate::table::{Index, NumberRange, Schema, Table, TableChange, TableDefinition};
use crate::txn::TxnOptions;
use std::collections::BTreeSet;
use std::io::Read;

/// A dump whose head and definitions were read.
///
/// ```
/// # use highwater::{Database, Dump, Options, Schema, Type};
/// # let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
/// # let db = Database::open(dir.path(), Options::default())?;
/// # db.create_table("people", Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
/// # let mut stream = Vec::new();
/// # db.dump(&mut stream)?;
/// let dump = Dump::read(&stream[..])?;
/// assert_eq!(dump.tables()[0].name, "people");
/// // A database with pages of the same size, so that every key fits.
/// let mut options = Options::default();
/// options.set("page_size", &dump.page_bytes().to_string())?;
/// let copy = Database::open(other.path(), options)?;
/// dump.load_into(&copy)?;
/// # Ok::<(), highwater::Error>(())
/// ```
pub struct Dump<R> {
    reader: BlockReader<R>,
    head: Head,
    tables: Vec<Described>,
    definitions: Vec<TableDefinition>,
}

impl<R: Read> Dump<R> {
    /// Reads the beginning of a dump, up to its rows. Nothing is loaded yet.
    ///
    /// # Errors
    /// [`Error::BadDump`] if it is not a dump, is damaged or truncated, or has a format that this version does not
    /// know; [`Error::Schema`] for an invalid definition of a table; [`Error::Storage`] if it cannot be read.
    pub fn read(from: R) -> Result<Dump<R>> {
        let mut reader = BlockReader::new(from)?;
        let block = reader.block()?;
        let head: Head = parse(&block, Kind::Head)?;
        let (mut tables, mut names) = (Vec::new(), BTreeSet::new());
        for number in 0..head.tables {
            let block = reader.block()?;
            let form: TableForm = parse(&block, Kind::Table)?;
            if block.table != number || !names.insert(form.name.clone()) {
                return Err(block.place.damaged("has a table out of turn"));
            }
            tables.push(form.describe()?);
        }
        let definitions = tables.iter().map(|table| table.definition.clone()).collect();
        Ok(Dump { reader, head, tables, definitions })
    }

    /// The tables, by name.
    pub fn tables(&self) -> &[TableDefinition] {
        &self.definitions
    }

    /// Size of the pages that the tables were on. Keys that fit them fit pages of this size and larger ones.
    pub fn page_bytes(&self) -> u64 {
        self.head.page_bytes.into()
    }

    /// The program that wrote it, with its version.
    pub fn program(&self) -> &str {
        &self.head.program
    }

    /// Loads the tables, which must not exist. They get their names when all rows are loaded and all indexes built;
    /// until then their names begin with [`UNFINISHED`](crate::UNFINISHED_LOAD). If the load fails, its tables are
    /// dropped. After a crash the program has to drop the tables with such names; tables with their own names are
    /// complete.
    ///
    /// # Errors
    /// As [`read`](Self::read); [`Error::TableExists`]; [`Error::DumpedRow`] names a row that this database refuses (a
    /// key too long for its smaller pages, say); those of [`Database::create_table`] and [`Database::create_index`];
    /// [`Error::DiskFull`], an I/O error.
    pub fn load_into(mut self, db: &Database) -> Result<DumpReport> {
        self.check_names(db)?;
        let mut load = Load { db, created: Vec::new(), tables: Vec::new(), rows: Vec::new() };
        match load.run(&mut self) {
            Ok(()) => Ok(DumpReport { tables: load.report(&self), bytes: self.reader.bytes }),
            Err(error) => Err(load.undo(self.with_own_names(error))),
        }
    }

    /// The error with the names that the tables have in the dump. Names with longer numbers come first: others are
    /// their beginnings.
    fn with_own_names(&self, error: Error) -> Error {
        let own = |text: String| {
            let tables = self.definitions.iter().enumerate().rev();
            tables.fold(text, |text, (number, table)| text.replace(&format!("{UNFINISHED}{number}"), &table.name))
        };
        match error {
            Error::KeyTooLong { key, bytes, limit_bytes } => Error::KeyTooLong { key: own(key), bytes, limit_bytes },
            Error::DuplicateKey { table, index } => Error::DuplicateKey { table: own(table), index },
            Error::DumpedRow { table, row, source } => {
                Error::DumpedRow { table, row, source: Box::new(self.with_own_names(*source)) }
            }
            other => other,
        }
    }

    fn check_names(&self, db: &Database) -> Result<()> {
        if let Some(table) = db.tables().iter().find(|table| table.name().starts_with(UNFINISHED)) {
            let reason = "is of a load that runs, or was cut off by a crash: then drop it";
            return Err(Error::Usage(format!("table {} {reason}", table.name())));
        }
        match self.definitions.iter().find(|table| db.has_table(&table.name)) {
            Some(table) => Err(Error::TableExists { table: table.name.clone() }),
            None => Ok(()),
        }
    }
}

impl Database {
    /// Loads a dump, as [`Dump::load_into`] does.
    ///
    /// # Errors
    /// Those of [`Dump::read`] and [`Dump::load_into`].
    pub fn load(&self, from: impl Read) -> Result<DumpReport> {
        Dump::read(from)?.load_into(self)
    }
}

/// The JSON form of a block that must be of this kind.
fn parse<'b, T: serde::Deserialize<'b>>(block: &'b Block, kind: Kind) -> Result<T> {
    if block.kind != kind {
        return Err(block.place.damaged(&format!("is of kind {:?} where {kind:?} belongs", block.kind)));
    }
    from_json(&block.bytes).map_err(|reason| block.place.damaged(&format!("is not understood: {reason}")))
}

/// A load that runs.
struct Load<'d> {
    db: &'d Database,
    /// Names that the created tables have now.
    created: Vec<String>,
    tables: Vec<Table>,
    /// Rows loaded into each.
    rows: Vec<u64>,
}

impl Load<'_> {
    fn run(&mut self, dump: &mut Dump<impl Read>) -> Result<()> {
        for (number, table) in dump.tables.iter().enumerate() {
            let name = format!("{UNFINISHED}{number}");
            let mut bare = table.definition.clone();
            bare.indexes.clear();
            // The rows come as a table that has changed, at the end.
            bare.log_changes = false;
            self.tables.push(self.db.create_table(&name, Schema::of(&bare))?);
            self.created.push(name);
            self.rows.push(0);
        }
        let end = loop {
            let block = dump.reader.block()?;
            match block.kind {
                Kind::Rows => self.load_rows(&block, &dump.definitions)?,
                _ => break parse::<End>(&block, Kind::End).map(|end| (end, block.place))?,
            }
        };
        if end.0.rows != self.rows {
            let (has, says) = (self.rows.iter().sum::<u64>(), end.0.rows.iter().fold(0u64, |a, b| a.wrapping_add(*b)));
            return Err(end.1.damaged(&format!("says that there are {says} rows, and {has} came")));
        }
        dump.reader.must_end()?;
        self.finish(&dump.tables)
    }

    fn load_rows(&mut self, block: &Block, definitions: &[TableDefinition]) -> Result<()> {
        let number = block.table as usize;
        let Some(definition) = definitions.get(number) else {
            return Err(block.place.damaged("has rows of a table that is not described"));
        };
        let width = definition.columns.len();
        let columns = columns_of(&block.bytes).filter(|columns| columns.len().is_multiple_of(width));
        let Some(columns) = columns else { return Err(block.place.damaged("has bytes that are no rows")) };
        let table = RawTable::from(self.tables[number].clone());
        let mut txn = self.db.begin()?;
        match table.insert_many(&mut txn, columns.chunks(width)) {
            Ok(inserted) => {
                debug_assert_eq!(inserted as usize, columns.len() / width, "rule 2: a row of a block is left out");
                self.rows[number] += inserted;
            }
            Err(error) => {
                drop(txn);
                return Err(self.refused_row(&table, &definition.name, columns.chunks(width), number, error));
            }
        }
        txn.commit()
    }

    /// The refused row, for the message.
    fn refused_row<'c>(
        &self,
        into: &RawTable,
        table: &str,
        rows: impl Iterator<Item = &'c [RawColumn<'c>]>,
        number: usize,
        error: Error,
    ) -> Error {
        let Ok(mut txn) = self.db.begin_with(TxnOptions::default()) else { return error };
        for (at, row) in rows.enumerate() {
            if let Err(error) = into.insert(&mut txn, row) {
                let (table, row) = (table.to_string(), self.rows[number] + at as u64 + 1);
                return Error::DumpedRow { table, row, source: Box::new(error) };
            }
        }
        error
    }

    /// Rule 2.
    fn finish(&mut self, tables: &[Described]) -> Result<()> {
        for (number, table) in tables.iter().enumerate() {
            let definition = &table.definition;
            for index in &definition.indexes {
                self.db.create_index_with(&self.created[number], &index.name, Index::of(definition, index))?;
            }
            self.set_next_number(number, table)?;
            if definition.log_changes {
                self.db.alter_table(&self.created[number], &[TableChange::LogChanges(true)])?;
            }
        }
        for (number, table) in tables.iter().enumerate() {
            let name = &table.definition.name;
            self.db.rename_table(&self.created[number], name)?;
            self.created[number].clone_from(name);
        }
        Ok(())
    }

    fn set_next_number(&self, number: usize, table: &Described) -> Result<()> {
        let loaded = &self.tables[number];
        let mut txn = self.db.begin()?;
        match table.next_number {
            NextNumber::NoColumn => {}
            NextNumber::Next(next) => txn.set_next_number(loaded, next)?,
            NextNumber::NoneLeft => {
                // The greatest row's number may be smaller.
                while let Some(next) = loaded.next_number() {
                    let count = last_of(table).saturating_sub(next) + 1;
                    txn.reserve_numbers(loaded, NumberRange { count, ..NumberRange::default() })?;
                }
            }
        }
        txn.commit()
    }

    fn report(&self, dump: &Dump<impl Read>) -> Vec<DumpedTable> {
        let table = |(table, rows): (&TableDefinition, &u64)| DumpedTable { name: table.name.clone(), rows: *rows };
        dump.definitions.iter().zip(&self.rows).map(table).collect()
    }

    /// Rule 3.
    fn undo(self, error: Error) -> Error {
        let Load { db, created, tables, .. } = self;
        drop(tables);
        let left = created.iter().filter_map(|name| db.drop_table(name).err().map(|why| format!("{name} ({why})")));
        match left.collect::<Vec<_>>() {
            left if left.is_empty() => error,
            left => Error::BadDump(format!("{error}; tables that could not be dropped: {}", left.join(", "))),
        }
    }
}

/// The last number of the auto-increment column.
fn last_of(table: &Described) -> u64 {
    let TableDefinition { columns, auto_increment, .. } = &table.definition;
    let range = auto_increment.and_then(|column| columns[column].ty.integer_range());
    range.map_or(0, |(_, last)| u64::try_from(last).unwrap_or(u64::MAX)).min(u64::MAX - 1)
}

/// The columns of rows, one after another; `None` if the bytes are no columns.
fn columns_of(bytes: &[u8]) -> Option<Vec<RawColumn<'_>>> {
    let (mut reader, mut columns) = (VarintReader::new(bytes), Vec::new());
    while !reader.is_at_end() {
        columns.push(match reader.u32()? {
            0 => None,
            length => Some(reader.bytes(length as usize - 1)?),
        });
    }
    Some(columns)
}
