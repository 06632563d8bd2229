//! The public calls of a reader of a database that another process has open, and of its snapshots.

use super::link::{Link, Received};
use super::message::{Answer, Request, TableAnswer, columns_to, first_row};
use super::reader_changes::ReaderChanges;
use super::value::to_fields;
use crate::db::database::Database;
use crate::error::{Error, Result};
use crate::stats::MetricsFormat;
use crate::table::definition_form::{Described, NextNumber, TableForm, from_json};
use crate::table::{Row, RowLayout, TableDefinition, ValueRef};
use highwater_storage::real_path;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads a database that another process has open, concurrently with its writers: snapshots, tables and counters. See
/// [`Database::open_reader`].
#[derive(Clone, Debug)]
pub struct Reader {
    folder: PathBuf,
}

/// A table of a database that another process has open.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedTable {
    /// Its definition.
    pub definition: TableDefinition,
    /// The next number of its auto-increment column; `None` if it has no such column or no number is left.
    pub next_number: Option<u64>,
    /// About how many rows it has.
    pub approximate_rows: u64,
}

impl ServedTable {
    fn of(answer: TableAnswer) -> Result<ServedTable> {
        let TableAnswer { definition, approximate_rows } = answer;
        let form: TableForm = from_json(definition.as_bytes()).map_err(Error::Served)?;
        let Described { definition, next_number } = form.describe()?;
        let next_number = match next_number {
            NextNumber::Next(next) => Some(next),
            NextNumber::NoColumn | NextNumber::NoneLeft => None,
        };
        Ok(ServedTable { definition, next_number, approximate_rows })
    }
}

impl Database {
    /// Reads a database that another process (or this one) has open, without keeping its writers waiting: the process
    /// that has it open runs each [snapshot](Reader::snapshot) as a transaction of its own and sends the rows,
    /// through a socket in the folder. A reader that dies holds nothing: its snapshot ends with it.
    ///
    /// The other process serves readers by itself, as many at a time as its option `max_readers` says. A database that
    /// no process has open is read with [`open_read_only`](Self::open_read_only), which keeps writers from opening it.
    ///
    /// ```
    /// use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let folder = dir.path();
    /// // In one process:
    /// let db = Database::open(folder, Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).primary_key(&["id"]);
    /// let people = db.create_table("people", schema.index("by_name", &["name"]))?;
    /// db.transact(|txn| txn.insert_many(&people, [values![1u64, "Ada"], values![2u64, "Grace"]]))?;
    ///
    /// // In another one:
    /// let reader = Database::open_reader(folder)?;
    /// let mut snapshot = reader.snapshot()?;
    /// assert_eq!(snapshot.get("people", &values![1u64])?.unwrap().str("name"), "Ada");
    /// let names = snapshot.scan("people").index("by_name").from(&values!["B"]).iter()?;
    /// assert_eq!(names.map(|row| row.map(|row| row.u64("id"))).collect::<Result<Vec<_>, _>>()?, [2]);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotServed`] if no process that serves readers has it open; [`Error::ReaderDisconnected`] if that
    /// process is of another version; [`Error::Served`] if it serves as many readers as it may.
    pub fn open_reader(dir: impl AsRef<Path>) -> Result<Reader> {
        let folder = real_path(dir.as_ref());
        Link::connect(&folder)?;
        Ok(Reader { folder })
    }
}

impl Reader {
    /// The folder of the database.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A snapshot: what had committed at its first read. It is a connection of its own, which a reader makes again
    /// after the other process was started again.
    ///
    /// # Errors
    /// As [`Database::open_reader`].
    pub fn snapshot(&self) -> Result<ReaderSnapshot> {
        Link::connect(&self.folder).map(ReaderSnapshot::of_link)
    }

    /// Every table, by name.
    ///
    /// # Errors
    /// As [`Database::open_reader`]; what the engine answers.
    pub fn tables(&self) -> Result<Vec<ServedTable>> {
        let mut link = Link::connect(&self.folder)?;
        match link.answer(&Request::Tables)? {
            Answer::Tables(tables) => tables.into_iter().map(ServedTable::of).collect(),
            _ => Err(link.unexpected()),
        }
    }

    /// The counters of the process that has the database open; see [`Database::metrics_text`].
    ///
    /// # Errors
    /// As [`Database::open_reader`].
    pub fn metrics_text(&self, format: MetricsFormat) -> Result<String> {
        let mut link = Link::connect(&self.folder)?;
        match link.answer(&Request::Metrics { is_openmetrics: format == MetricsFormat::OpenMetrics })? {
            Answer::Metrics(text) => Ok(text),
            _ => Err(link.unexpected()),
        }
    }
}

impl Reader {
    /// The row changes that transactions have committed after the transaction `since`, as [`Database::changes`] hands
    /// them out: durable, in an order in which they can be applied, from 0 on all that are kept. It is a connection of
    /// its own; [`wait`](ReaderChanges::wait) waits for changes that are yet to come. After the end of the other
    /// process, or a crash of it, a consumer makes the stream again with the last number that it keeps.
    ///
    /// ```
    /// use highwater::{Database, Options, Schema, Type, values};
    /// use std::time::Duration;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let folder = dir.path();
    /// // In one process:
    /// let db = Database::open(folder, Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).primary_key(&["id"]).log_changes();
    /// let table = db.create_table("t", schema)?;
    ///
    /// // In another one:
    /// let mut changes = Database::open_reader(folder)?.changes(0)?;
    /// assert!(changes.next().is_none());
    /// db.transact(|txn| txn.insert(&table, &values![7u64]))?;
    /// assert!(changes.wait(Duration::from_secs(60))?);
    /// let change = changes.next().unwrap()?;
    /// assert_eq!((change.table.as_str(), change.row.unwrap().u64("id")), ("t", 7));
    /// assert_eq!(changes.position(), change.sequence);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::open_reader`] and [`Database::changes`].
    pub fn changes(&self, since: u64) -> Result<ReaderChanges> {
        ReaderChanges::begin(Link::connect(&self.folder)?, since)
    }

    /// Number of the last transaction whose changes [`changes`](Self::changes) returns now; 0 if there is none.
    ///
    /// # Errors
    /// As [`Database::open_reader`] and [`Database::last_change`].
    pub fn last_change(&self) -> Result<u64> {
        let mut link = Link::connect(&self.folder)?;
        match link.answer(&Request::LastChange)? {
            Answer::LastChange(last) => Ok(last),
            _ => Err(link.unexpected()),
        }
    }

    /// Makes every commit so far durable, as [`Database::flush_log`] does, because a snapshot may show commits that are
    /// not durable. For a copy of a table that begins with a snapshot and continues with [`changes`](Self::changes).
    ///
    /// # Errors
    /// As [`Database::open_reader`] and [`Database::flush_log`].
    pub fn flush_log(&self) -> Result<()> {
        let mut link = Link::connect(&self.folder)?;
        match link.answer(&Request::FlushLog)? {
            Answer::LogFlushed => Ok(()),
            _ => Err(link.unexpected()),
        }
    }

    /// Gives the bytes of a dump to `on_bytes`; returns each table with the number of its rows.
    pub(crate) fn receive_dump(&self, on_bytes: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Vec<(String, u64)>> {
        let mut link = Link::connect(&self.folder)?;
        link.send(&Request::Dump)?;
        loop {
            match link.receive()? {
                Received::Dump => on_bytes(&link.frame)?,
                Received::Answer(Answer::Dumped(tables)) => return Ok(tables),
                _ => return Err(link.unexpected()),
            }
        }
    }
}

/// A table that a snapshot uses.
pub(super) struct UsedTable {
    pub(super) number: u32,
    pub(super) described: ServedTable,
    /// Of its whole rows.
    pub(super) layout: Arc<RowLayout>,
}

impl UsedTable {
    pub(super) fn definition(&self) -> &TableDefinition {
        &self.described.definition
    }

    /// The layout of rows of these columns.
    pub(super) fn layout_of(&self, columns: &[usize]) -> Result<Arc<RowLayout>> {
        RowLayout::of_columns(self.definition(), columns).map(Arc::new)
    }
}

/// A snapshot of a database that another process has open ([`Reader::snapshot`]): every read sees what had committed
/// at the first one. It ends when it is dropped. Tables that it has read do not change until then.
pub struct ReaderSnapshot {
    pub(super) link: Link,
    tables: HashMap<String, Arc<UsedTable>>,
}

impl ReaderSnapshot {
    pub(super) fn of_link(link: Link) -> ReaderSnapshot {
        ReaderSnapshot { link, tables: HashMap::new() }
    }

    /// Another snapshot of the same moment, by a connection of its own: to read it on several threads, or to look up
    /// rows while a scan of this one runs. The moment is now, if this one has read nothing yet. Each of the two may be
    /// dropped before the other.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let folder = dir.path();
    /// # let db = Database::open(folder, Options::default())?;
    /// # let numbers = db.create_table("numbers", Schema::new().column("n", Type::U64).primary_key(&["n"]))?;
    /// # db.transact(|txn| (0..10u64).try_for_each(|n| txn.insert(&numbers, &values![n]).map(drop)))?;
    /// let mut low = Database::open_reader(folder)?.snapshot()?;
    /// let mut high = low.same_snapshot()?;
    /// let counted = std::thread::spawn(move || high.scan("numbers").from(&values![5u64]).count());
    /// let below = low.scan("numbers").to_exclusive(&values![5u64]).count()?;
    /// assert_eq!(below + counted.join().unwrap()?, 10);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::open_reader`]; [`Error::ReaderDisconnected`].
    pub fn same_snapshot(&mut self) -> Result<ReaderSnapshot> {
        let Answer::Shared { offer } = self.link.answer(&Request::Share)? else {
            return Err(self.link.unexpected());
        };
        let mut link = Link::connect(self.link.folder())?;
        match link.answer(&Request::Join { offer })? {
            Answer::Joined => Ok(ReaderSnapshot::of_link(link)),
            _ => Err(link.unexpected()),
        }
    }

    /// A table, as the snapshot sees it.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`]; [`Error::LockWaitTimeout`] while the table is being changed;
    /// [`Error::ReaderDisconnected`].
    pub fn table(&mut self, name: &str) -> Result<ServedTable> {
        self.used(name).map(|used| used.described.clone())
    }

    pub(super) fn used(&mut self, name: &str) -> Result<Arc<UsedTable>> {
        if let Some(used) = self.tables.get(name) {
            return Ok(Arc::clone(used));
        }
        let Answer::Table(answer) = self.link.answer(&Request::Table { name })? else {
            return Err(self.link.unexpected());
        };
        let (number, described) = (self.tables.len() as u32, ServedTable::of(answer)?);
        let columns: Vec<usize> = (0..described.definition.columns.len()).collect();
        let layout = Arc::new(RowLayout::of_columns(&described.definition, &columns)?);
        let used = Arc::new(UsedTable { number, described, layout });
        self.tables.insert(name.to_string(), Arc::clone(&used));
        Ok(used)
    }

    /// The row of a primary key.
    ///
    /// # Errors
    /// As [`table`](Self::table) and [`ReadTxn::get`](crate::ReadTxn::get).
    pub fn get(&mut self, table: &str, key: &[ValueRef<'_>]) -> Result<Option<Row>> {
        let used = self.used(table)?;
        let layout = Arc::clone(&used.layout);
        self.get_row(&used, key, None, &layout)
    }

    /// As [`get`](Self::get), but only these columns of the row, by their positions in the table: the row has them in
    /// this order, and no others.
    ///
    /// # Errors
    /// As [`get`](Self::get); `BadValue` for a column that the table does not have.
    pub fn get_columns(&mut self, table: &str, key: &[ValueRef<'_>], columns: &[usize]) -> Result<Option<Row>> {
        let used = self.used(table)?;
        let layout = used.layout_of(columns)?;
        self.get_row(&used, key, Some(columns_to(columns)?), &layout)
    }

    fn get_row(
        &mut self,
        used: &UsedTable,
        key: &[ValueRef<'_>],
        columns: Option<Vec<u32>>,
        layout: &Arc<RowLayout>,
    ) -> Result<Option<Row>> {
        self.link.send(&Request::Get { table: used.number, key: to_fields(key), columns })?;
        match self.link.receive()? {
            Received::Rows { are_last: true } => {}
            _ => return Err(self.link.unexpected()),
        }
        match first_row(&self.link.frame) {
            Some((row, [])) => Ok(Some(Row::of_bytes(layout, row.to_vec()))),
            None if self.link.frame.is_empty() => Ok(None),
            _ => Err(self.link.fail("a row that ends beyond its frame")),
        }
    }

    /// The first row, in the order of an index, whose leading columns of that index have these values.
    ///
    /// # Errors
    /// As [`get`](Self::get); [`Error::NoSuchIndex`].
    pub fn get_by(&mut self, table: &str, index: &str, values: &[ValueRef<'_>]) -> Result<Option<Row>> {
        self.scan(table).index(index).prefix(values).first()
    }
}
