//! The two passes over a file: the first checks every line, the second inserts the rows.

use super::columns::{Known, Target};
use super::file::{Header, Place, Record, each_line, file_bytes};
use super::unfinished::Unfinished;
use super::{CsvError, ImportArgs, Imported, OnError, Result};
use crate::csv_field::{Field, shortened};
use crate::progress::Progress;
use highwater::{Database, Error, Table, ValueRef, WriteTxn};
use highwater_bench::interrupt;

/// Bad lines reported one by one; the rest is counted.
const REPORTED: u64 = 20;
/// Rows of a transaction that fills a new table.
const NEW_TABLE_BATCH: u64 = 10_000;

/// Reads the whole file: checks fields of given types, infers the others. With `OnError::Stop` a bad line is an error.
pub(super) fn survey(args: &ImportArgs, header: &Header, columns: &mut [Known]) -> Result<()> {
    let mut progress = Progress::new("checking", file_bytes(args));
    let (mut rows, mut bad) = (0u64, BadLines::default());
    each_line(args, header, |record, place| {
        rows += 1;
        if rows.is_multiple_of(1024) {
            progress.at(place.byte, rows);
        }
        super::must_go_on()?;
        if let Err(reason) = check_line(columns, record, &args.null)
            && args.on_error == OnError::Stop
        {
            bad.report(args, &progress, place, &reason);
        }
        Ok(())
    })?;
    match bad.count {
        0 => Ok(()),
        count => Err(CsvError::Data(format!("{count} bad lines in {}; nothing was imported", args.shown().display()))),
    }
}

fn check_line(columns: &mut [Known], record: &Record, null: &str) -> std::result::Result<(), String> {
    check_count(columns.len(), record)?;
    let is_text = record.is_text.iter().copied().chain(std::iter::repeat(false));
    for ((known, field), is_text) in columns.iter_mut().zip(&record.fields).zip(is_text) {
        known.see(field, null, is_text).map_err(|reason| format!("column {}: {reason}", known.name()))?;
    }
    Ok(())
}

fn check_count(columns: usize, record: &Record) -> std::result::Result<(), String> {
    let Record { fields, wrong, .. } = record;
    match wrong {
        Some(wrong) => return Err(wrong.clone()),
        None if fields.len() == columns => return Ok(()),
        None => {}
    }
    let start = String::from_utf8_lossy(fields.get(0).unwrap_or_default()).into_owned();
    Err(format!("{} fields instead of {columns} (the first is {:?})", fields.len(), shortened(&start)))
}

/// Counts bad lines and reports the first of them.
#[derive(Default)]
struct BadLines {
    count: u64,
}

impl BadLines {
    fn report(&mut self, args: &ImportArgs, progress: &Progress, place: Place, reason: &str) {
        self.count += 1;
        if self.count <= REPORTED {
            progress.line(&format!("line {}: {reason}", place.line(args)));
        } else if self.count == REPORTED + 1 {
            progress.line("more bad lines follow");
        }
    }
}

pub(super) fn insert_all(
    args: &ImportArgs,
    db: &Database,
    table: &Table,
    (header, targets): (&Header, &[Target]),
    unfinished: Option<&Unfinished<'_>>,
) -> Result<Imported> {
    // A table in the making shows nothing of its batches.
    let commit_every = args.commit_every.unwrap_or(if unfinished.is_some() { NEW_TABLE_BATCH } else { 0 });
    let mut progress = Progress::new("importing", file_bytes(args));
    let mut bad = BadLines::default();
    let (txn, last) = (Some(db.begin()?), Place::default());
    let mut load = Load { args, db, table, unfinished, txn, rows: 0, committed: 0, last };
    each_line(args, header, |record, place| {
        if interrupt::is_requested() {
            return Err(load.stopped(place, "interrupted"));
        }
        match load.insert(targets, record)? {
            Ok(()) => {}
            Err(reason) if args.on_error == OnError::Skip => bad.report(args, &progress, place, &reason),
            Err(reason) => return Err(load.stopped(place, &reason)),
        }
        if commit_every > 0 && load.rows - load.committed >= commit_every {
            load.commit(place)?;
        }
        if load.rows.is_multiple_of(1024) {
            progress.at(place.byte, load.rows);
        }
        Ok(())
    })?;
    load.commit(Place::default())?;
    Ok(Imported { table: args.table.clone(), rows: load.rows, skipped: bad.count })
}

/// Rows on their way into the table.
struct Load<'a> {
    args: &'a ImportArgs,
    db: &'a Database,
    table: &'a Table,
    /// The record of a new table.
    unfinished: Option<&'a Unfinished<'a>>,
    txn: Option<WriteTxn>,
    rows: u64,
    committed: u64,
    /// The last line committed.
    last: Place,
}

impl Load<'_> {
    /// Inserts a line. The inner error is a problem of the line itself.
    fn insert(&mut self, targets: &[Target], record: &Record) -> Result<std::result::Result<(), String>> {
        let txn = match &mut self.txn {
            Some(txn) => txn,
            none => none.insert(self.db.begin()?),
        };
        let fields = match read_line(targets, record, &self.args.null) {
            Ok(fields) => fields,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut values = vec![ValueRef::Null; self.table.columns().len()];
        for (target, field) in targets.iter().zip(&fields) {
            values[target.column] = field.value();
        }
        match txn.insert(self.table, &values) {
            Ok(_) => {
                self.rows += 1;
                Ok(Ok(()))
            }
            Err(
                error @ (Error::DuplicateKey { .. }
                | Error::BadValue { .. }
                | Error::KeyTooLong { .. }
                | Error::RowTooLarge { .. }),
            ) => Ok(Err(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn commit(&mut self, place: Place) -> Result<()> {
        if let Some(mut txn) = self.txn.take() {
            if let Some(unfinished) = self.unfinished {
                unfinished.note(&mut txn, self.rows)?;
            }
            txn.commit()?;
        }
        self.committed = self.rows;
        self.last = place;
        Ok(())
    }

    fn stopped(&mut self, place: Place, reason: &str) -> CsvError {
        self.txn = None;
        let kept = match self.committed {
            0 => "nothing was imported".to_string(),
            _ if self.unfinished.is_some() => "nothing was imported".to_string(),
            rows => format!("the {rows} rows up to line {} were imported", self.last.line(self.args)),
        };
        CsvError::Data(format!("line {}: {reason}; {kept}", place.line(self.args)))
    }
}

fn read_line<'r>(targets: &[Target], record: &'r Record, null: &str) -> std::result::Result<Vec<Field<'r>>, String> {
    check_count(targets.len(), record)?;
    let read = |(target, field): (&Target, &'r [u8])| {
        target.read(field, null).map_err(|reason| format!("column {}: {reason}", target.name))
    };
    targets.iter().zip(&record.fields).map(read).collect()
}
