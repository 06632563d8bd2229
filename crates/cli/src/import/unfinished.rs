//! Unfinished imports into new tables: the next import recognizes the table of a killed one.
//!
//! Rules
//! 1. While a new table is being filled, the table [`RECORDS`] has a record of it, made before the table: the table's
//!    definition and the number of its committed rows. The count changes in the transactions of the rows.
//! 2. A table that matches its record, definition and number of rows included, was left by a killed import, and the
//!    next import drops it. Any other table of that name is the user's, and the record is obsolete.
//! 3. [`RECORDS`] is dropped when it has no record any more.

use super::{CsvError, Result};
use highwater::{Database, Schema, Table, TableDefinition, Type, WriteTxn, values};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The table of the records.
pub(super) const RECORDS: &str = "highwater_import";

/// The record of a new table.
pub(super) struct Unfinished<'a> {
    db: &'a Database,
    records: Table,
    table: &'a str,
}

impl<'a> Unfinished<'a> {
    /// Records that the table will be made.
    pub(super) fn begin(db: &'a Database, definition: &'a TableDefinition) -> Result<Unfinished<'a>> {
        if definition.name == RECORDS {
            return Err(CsvError::Usage(format!("{RECORDS} is the name of the table that records imports")));
        }
        let records = match db.has_table(RECORDS) {
            true => db.table(RECORDS)?,
            false => db.create_table(RECORDS, schema())?,
        };
        let this = Unfinished { db, records, table: &definition.name };
        db.transact(|txn| {
            txn.delete(&this.records, &values![this.table])?;
            txn.insert(&this.records, &values![this.table, look_of(definition), 0u64])
        })?;
        Ok(this)
    }

    /// The transaction commits this many rows in all.
    pub(super) fn note(&self, txn: &mut WriteTxn, rows: u64) -> Result<()> {
        txn.update(&self.records, &values![self.table], &[(2, rows.into())])?;
        Ok(())
    }

    /// The table is finished, or dropped.
    pub(super) fn finish(self) -> Result<()> {
        forget(self.db, &self.records, self.table)
    }
}

/// Drops the table of this name if a killed import left it; true if it did.
pub(super) fn drop_leftover(db: &Database, table: &str) -> Result<bool> {
    let records = match db.table(RECORDS) {
        Ok(records) if *records.definition() == schema().check(RECORDS)? => records,
        _ => return Ok(false),
    };
    let mut read = db.snapshot()?;
    let Some(record) = read.get(&records, &values![table])? else { return Ok(false) };
    let is_left = match db.table(table) {
        Ok(found) => look_of(&found.definition()) == record.u64(1) && read.scan(&found).count()? == record.u64(2),
        Err(_) => false,
    };
    drop(read);
    if is_left {
        db.drop_table(table)?;
    }
    forget(db, &records, table)?;
    Ok(is_left)
}

fn forget(db: &Database, records: &Table, table: &str) -> Result<()> {
    db.transact(|txn| txn.delete(records, &values![table]))?;
    let is_empty = db.snapshot()?.scan(records).limit(1).count()? == 0;
    if is_empty { Ok(db.drop_table(RECORDS)?) } else { Ok(()) }
}

fn schema() -> Schema {
    let schema = Schema::new().column("name", Type::Text(256)).column("definition", Type::U64);
    schema.column("rows", Type::U64).primary_key(&["name"])
}

/// The definition as a number, without the indexes that are built at the end.
fn look_of(definition: &TableDefinition) -> u64 {
    let mut made_first = definition.clone();
    made_first.indexes.retain(|index| index.unique);
    let mut hasher = DefaultHasher::new();
    format!("{made_first:?}").hash(&mut hasher);
    hasher.finish()
}
