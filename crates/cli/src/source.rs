//! The database of a reading command: opened by this process, or by another process that serves it.
//!
//! Rules
//! 1. A command opens the database itself. If another process has it open, that process reads for the command
//!    ([`Database::open_reader`]), and changes of the database are refused.
//! 2. In both cases a command reads one snapshot.

use highwater::{
    Database, Error, ReadTxn, Reader, ReaderScan, ReaderSnapshot, Scan, ServedTable, TableDefinition, ValueRef,
    WriteTxn,
};
use highwater_storage::OpenError;
use std::ops::ControlFlow;
use std::path::Path;

/// A database that a command reads.
#[derive(Clone)]
pub(crate) enum Source {
    /// Opened by this process.
    Own(Database),
    /// Open in another process.
    Served {
        /// Its readers' calls.
        reader: Reader,
        /// The process, as text.
        by: String,
    },
}

impl Source {
    /// The database in `dir`: as `opened` opened it, or read by the process that has it open.
    ///
    /// # Errors
    /// Errors of the opening, also if the process that has it open serves no readers; those of
    /// [`Database::open_reader`].
    pub(crate) fn of(dir: &Path, opened: Result<Database, Error>) -> Result<Source, Error> {
        let in_use = match opened {
            Ok(db) => return Ok(Source::Own(db)),
            Err(Error::Open(in_use)) => in_use,
            Err(error) => return Err(error),
        };
        let OpenError::InUse { by, .. } = &in_use else { return Err(in_use.into()) };
        match Database::open_reader(dir) {
            Ok(reader) => Ok(Source::Served { reader, by: by.to_string() }),
            Err(Error::NotServed { .. }) => Err(in_use.into()),
            Err(error) => Err(error),
        }
    }

    /// The database, to be changed.
    ///
    /// # Errors
    /// In words: another process has it open.
    pub(crate) fn to_change(&self) -> Result<&Database, String> {
        match self {
            Source::Own(db) => Ok(db),
            Source::Served { by, .. } => Err(format!("read-only: {by} has this database open")),
        }
    }

    /// Every table, by name.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn tables(&self) -> Result<Vec<ServedTable>, Error> {
        match self {
            Source::Own(db) => db.tables().iter().map(|table| shown(db, table)).collect(),
            Source::Served { reader, .. } => reader.tables(),
        }
    }

    /// A snapshot of its own.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn snapshot(&self) -> Result<Snapshot<'_>, Error> {
        Ok(match self {
            Source::Own(db) => Snapshot::Own(db, db.snapshot()?),
            Source::Served { reader, .. } => Snapshot::Served(reader.snapshot()?),
        })
    }

    /// The definition of a table; `None` if it does not exist.
    pub(crate) fn definition(&self, table: &str) -> Option<TableDefinition> {
        self.snapshot().and_then(|mut snapshot| snapshot.table(table)).map(|table| table.definition).ok()
    }

    /// Closes it, if this process has opened it.
    ///
    /// # Errors
    /// Errors of the closing.
    pub(crate) fn close(self) -> Result<(), Error> {
        match self {
            Source::Own(db) => db.close(),
            Source::Served { .. } => Ok(()),
        }
    }
}

fn shown(db: &Database, table: &highwater::Table) -> Result<ServedTable, Error> {
    Ok(ServedTable {
        definition: (*table.definition()).clone(),
        next_number: table.next_number(),
        approximate_rows: db.approximate_rows(table)?,
    })
}

/// The position of a column.
///
/// # Errors
/// The table has no such column.
pub(crate) fn position(table: &TableDefinition, column: &str) -> Result<usize, Error> {
    let missing = |_| Error::NoSuchColumn { table: table.name.clone(), column: column.to_string() };
    table.position(column).map_err(missing)
}

/// The rows of a scan, in words that both kinds of scans know.
#[derive(Default)]
pub(crate) struct Range<'v> {
    /// `None`: by the primary key.
    pub index: Option<&'v str>,
    /// With `true`: inclusive.
    pub from: Option<(Vec<ValueRef<'v>>, bool)>,
    pub to: Option<(Vec<ValueRef<'v>>, bool)>,
    pub prefix: Option<Vec<ValueRef<'v>>>,
    pub starts: Option<Vec<ValueRef<'v>>>,
    pub is_reverse: bool,
    pub limit: Option<usize>,
}

/// The scan of a range; [`Scan`] and [`ReaderScan`] have the same calls.
macro_rules! described {
    ($scan:expr, $range:expr) => {{
        let (mut scan, range): (_, &Range<'_>) = ($scan, $range);
        if let Some(index) = range.index {
            scan = scan.index(index);
        }
        scan = match &range.from {
            Some((values, true)) => scan.from(values),
            Some((values, false)) => scan.from_exclusive(values),
            None => scan,
        };
        scan = match &range.to {
            Some((values, true)) => scan.to(values),
            Some((values, false)) => scan.to_exclusive(values),
            None => scan,
        };
        if let Some(values) = &range.prefix {
            scan = scan.prefix(values);
        }
        if let Some(values) = &range.starts {
            scan = scan.starts_with(values);
        }
        if let Some(limit) = range.limit {
            scan = scan.limit(limit);
        }
        if range.is_reverse { scan.rev() } else { scan }
    }};
}

/// The snapshot of a command.
pub(crate) enum Snapshot<'t> {
    /// An open transaction.
    Txn(&'t Database, &'t mut WriteTxn),
    Own(&'t Database, ReadTxn),
    Served(ReaderSnapshot),
}

/// A scan of either kind.
enum EitherScan<'s, 'v> {
    Own(Scan<'s, 'v>),
    Served(ReaderScan<'s, 'v>),
}

impl Snapshot<'_> {
    /// A table.
    ///
    /// # Errors
    /// No table has this name; those of the engine.
    pub(crate) fn table(&mut self, name: &str) -> Result<ServedTable, Error> {
        match self {
            Snapshot::Txn(db, _) | Snapshot::Own(db, _) => shown(db, &db.table(name)?),
            Snapshot::Served(read) => read.table(name),
        }
    }

    fn scan<'s, 'v>(&'s mut self, table: &'v str, range: &'v Range<'v>) -> Result<EitherScan<'s, 'v>, Error> {
        Ok(match self {
            Snapshot::Txn(db, txn) => EitherScan::Own(described!(txn.scan(&db.table(table)?), range)),
            Snapshot::Own(db, read) => EitherScan::Own(described!(read.scan(&db.table(table)?), range)),
            Snapshot::Served(read) => EitherScan::Served(described!(read.scan(table), range)),
        })
    }

    /// The number of rows in a range.
    ///
    /// # Errors
    /// Errors of the engine.
    pub(crate) fn count(&mut self, table: &str, range: &Range<'_>) -> Result<u64, Error> {
        match self.scan(table, range)? {
            EitherScan::Own(scan) => scan.count(),
            EitherScan::Served(scan) => scan.count(),
        }
    }

    /// Calls `on_row` with each row of a range until it breaks; with the named columns, or with all if none is named.
    ///
    /// # Errors
    /// Errors of the engine and of `on_row`.
    pub(crate) fn each_row<E: From<Error>>(
        &mut self,
        table: &str,
        range: &Range<'_>,
        columns: &[&str],
        mut on_row: impl FnMut(&mut dyn Iterator<Item = ValueRef<'_>>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let positions = match columns {
            [] => Vec::new(),
            names => {
                let definition = self.table(table)?.definition;
                names.iter().map(|name| position(&definition, name)).collect::<Result<Vec<usize>, Error>>()?
            }
        };
        match self.scan(table, range)? {
            EitherScan::Own(scan) => {
                let mut rows = if columns.is_empty() { scan.iter()? } else { scan.columns(&positions).iter()? };
                while let Some(row) = rows.next_ref()? {
                    if on_row(&mut row.values())?.is_break() {
                        break;
                    }
                }
            }
            EitherScan::Served(scan) => {
                for row in if columns.is_empty() { scan.iter()? } else { scan.select(columns)? } {
                    if on_row(&mut row?.values())?.is_break() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
