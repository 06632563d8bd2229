//! The two readings of a file: the first checks every line, the second inserts the rows.
//!
//! Rules
//! 1. Lines are inserted in batches, a batch by one call. If a line of it is bad, nothing of the batch is inserted, and
//!    it is done again line by line: so the first bad line is the one that is named, and all before it count.
//! 2. A transaction ends after `commit_every` rows exactly; skipped lines are no rows.

use super::columns::{Known, Target};
use super::file::{Place, each_line, file_bytes};
use super::{CsvError, ImportArgs, Imported, OnError, Result};
use crate::csv_field::{Field, shortened};
use crate::progress::Progress;
use highwater::{Database, Error, Table, ValueRef, WriteTxn};

/// Bad lines reported one by one; the rest is counted.
const REPORTED: u64 = 20;
/// Bytes of lines that are inserted at once.
const BATCH_BYTES: usize = 256 << 10;

/// Reads the whole file: checks fields of given types, infers the others. With `OnError::Stop` a bad line is an error.
pub(super) fn survey(args: &ImportArgs, columns: &mut [Known]) -> Result<()> {
    let mut progress = Progress::new("checking", file_bytes(args));
    let (mut rows, mut bad) = (0u64, BadLines::default());
    each_line(args, |record, place| {
        rows += 1;
        if rows.is_multiple_of(1024) {
            progress.at(place.byte, rows);
        }
        if let Err(reason) = check_line(columns, record, &args.null)
            && args.on_error == OnError::Stop
        {
            bad.report(args, &progress, place, &reason);
        }
        Ok(())
    })?;
    match bad.count {
        0 => Ok(()),
        count => Err(CsvError::Data(format!("{count} bad lines in {}; nothing was imported", args.file.display()))),
    }
}

fn check_line(columns: &mut [Known], record: &csv::ByteRecord, null: &str) -> std::result::Result<(), String> {
    check_count(columns.len(), record)?;
    for (known, field) in columns.iter_mut().zip(record) {
        known.see(field, null).map_err(|reason| format!("column {}: {reason}", known.name()))?;
    }
    Ok(())
}

fn check_count(columns: usize, record: &csv::ByteRecord) -> std::result::Result<(), String> {
    if record.len() == columns {
        return Ok(());
    }
    let start = String::from_utf8_lossy(record.get(0).unwrap_or_default()).into_owned();
    Err(format!("{} fields instead of {columns} (the first is {:?})", record.len(), shortened(&start)))
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
    targets: &[Target],
    is_new: bool,
) -> Result<Imported> {
    let mut progress = Progress::new("importing", file_bytes(args));
    let mut load = Load {
        args,
        db,
        table,
        targets,
        is_new,
        txn: None,
        batch: Batch::default(),
        bad: BadLines::default(),
        rows: 0,
        committed: 0,
        last: Place::default(),
    };
    let mut lines = 0u64;
    each_line(args, |record, place| {
        load.batch.push(record, place);
        if load.batch.bytes >= BATCH_BYTES || load.may_commit(load.batch.count as u64) {
            load.insert_batch(&progress)?;
        }
        if load.may_commit(0) {
            load.commit(place)?;
        }
        lines += 1;
        if lines.is_multiple_of(1024) {
            progress.at(place.byte, load.rows);
        }
        Ok(())
    })?;
    load.insert_batch(&progress)?;
    load.commit(Place::default())?;
    Ok(Imported { table: args.table.clone(), rows: load.rows, skipped: load.bad.count })
}

/// Lines that were read and are not inserted yet. Their memory is used again.
#[derive(Default)]
struct Batch {
    lines: Vec<(csv::ByteRecord, Place)>,
    count: usize,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, record: &csv::ByteRecord, place: Place) {
        if self.count == self.lines.len() {
            self.lines.push(Default::default());
        }
        let (copy, at) = &mut self.lines[self.count];
        copy.clear();
        copy.extend(record);
        *at = place;
        (self.count, self.bytes) = (self.count + 1, self.bytes + record.as_slice().len());
    }

    fn lines(&self) -> &[(csv::ByteRecord, Place)] {
        &self.lines[..self.count]
    }

    fn clear(&mut self) {
        (self.count, self.bytes) = (0, 0);
    }
}

/// Why the lines of a batch are not inserted by one call.
enum NotAtOnce {
    BadLine,
    Failed(Error),
}

impl From<Error> for NotAtOnce {
    fn from(error: Error) -> NotAtOnce {
        match is_of_line(&error) {
            true => NotAtOnce::BadLine,
            false => NotAtOnce::Failed(error),
        }
    }
}

/// Whether the row itself is why it cannot be inserted.
fn is_of_line(error: &Error) -> bool {
    matches!(
        error,
        Error::DuplicateKey { .. } | Error::BadValue { .. } | Error::KeyTooLong { .. } | Error::RowTooLarge { .. }
    )
}

/// Rows on their way into the table.
struct Load<'a> {
    args: &'a ImportArgs,
    db: &'a Database,
    table: &'a Table,
    targets: &'a [Target],
    is_new: bool,
    txn: Option<WriteTxn>,
    batch: Batch,
    bad: BadLines,
    rows: u64,
    committed: u64,
    /// The last line committed.
    last: Place,
}

impl Load<'_> {
    /// Whether a commit is due once so many rows more are inserted.
    fn may_commit(&self, more: u64) -> bool {
        self.args.commit_every > 0 && self.rows + more - self.committed >= self.args.commit_every
    }

    /// The transaction; a new one after a commit.
    fn txn(&mut self) -> Result<&mut WriteTxn> {
        Ok(match &mut self.txn {
            Some(txn) => txn,
            none => none.insert(self.db.begin()?),
        })
    }

    /// Inserts the lines that were read: by one call, or one by one if a line among them is bad. That one is named.
    fn insert_batch(&mut self, progress: &Progress) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let (table, targets, null) = (self.table, self.targets, &self.args.null);
        let inserted = self.txn()?.insert_many_with(table, |rows| {
            for (record, _) in batch.lines() {
                let fields = read_line(targets, record, null).map_err(|_| NotAtOnce::BadLine)?;
                rows.push(&row_of(table, targets, &fields))?;
            }
            Ok(())
        });
        match inserted {
            Ok(rows) => self.rows += rows,
            Err(NotAtOnce::BadLine) => batch.lines().iter().try_for_each(|line| self.insert_line(line, progress))?,
            Err(NotAtOnce::Failed(error)) => return Err(error.into()),
        }
        self.batch = batch;
        self.batch.clear();
        Ok(())
    }

    fn insert_line(&mut self, (record, place): &(csv::ByteRecord, Place), progress: &Progress) -> Result<()> {
        match self.try_line(record)? {
            Ok(()) => self.rows += 1,
            Err(reason) if self.args.on_error == OnError::Skip => self.bad.report(self.args, progress, *place, &reason),
            Err(reason) => return Err(self.stopped(*place, &reason)),
        }
        Ok(())
    }

    /// Inserts a line. The inner error is a problem of the line itself.
    fn try_line(&mut self, record: &csv::ByteRecord) -> Result<std::result::Result<(), String>> {
        let fields = match read_line(self.targets, record, &self.args.null) {
            Ok(fields) => fields,
            Err(reason) => return Ok(Err(reason)),
        };
        let (table, targets) = (self.table, self.targets);
        match self.txn()?.insert(table, &row_of(table, targets, &fields)) {
            Ok(_) => Ok(Ok(())),
            Err(error) if is_of_line(&error) => Ok(Err(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn commit(&mut self, place: Place) -> Result<()> {
        if let Some(txn) = self.txn.take() {
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
            _ if self.is_new => "nothing was imported".to_string(),
            rows => format!("the {rows} rows up to line {} were imported", self.last.line(self.args)),
        };
        CsvError::Data(format!("line {}: {reason}; {kept}", place.line(self.args)))
    }
}

/// The values of a row, in the order of the table's columns.
fn row_of<'r>(table: &Table, targets: &[Target], fields: &'r [Field<'_>]) -> Vec<ValueRef<'r>> {
    let mut values = vec![ValueRef::Null; table.columns().len()];
    for (target, field) in targets.iter().zip(fields) {
        values[target.column] = field.value();
    }
    values
}

fn read_line<'r>(
    targets: &[Target],
    record: &'r csv::ByteRecord,
    null: &str,
) -> std::result::Result<Vec<Field<'r>>, String> {
    check_count(targets.len(), record)?;
    let read = |(target, field): (&Target, &'r [u8])| {
        target.read(field, null).map_err(|reason| format!("column {}: {reason}", target.name))
    };
    targets.iter().zip(record).map(read).collect()
}
