//! Reading the change log.
//!
//! Rules
//! 1. A stream reads a few parts at a time, each time with a new view, which it closes at once: so a slow consumer does
//!    not hold purge back.
//! 2. A stream checks that parts are consecutive, changes complete, and rows and keys valid for their tables. Otherwise
//!    it ends with [`Error::Corrupt`].

use super::entry::{Entry, read};
use super::trim::trimmed;
use crate::db::database::Database;
use crate::error::{Error, Result};
use crate::table::handle::TableShared;
use crate::table::{DateTime, Row, Value, ValueRef};
use crate::txn::check_outside_row_closure;
use crate::types::TableId;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of parts that are read at once.
const BATCH_BYTES: usize = 64 << 10;
/// A wait without end.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The kind of a change: of a row, or of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The row is new.
    Insert,
    /// The row was there, and has other values.
    Update,
    /// The row was deleted.
    Delete,
    /// The table itself was changed: truncated, dropped or renamed, its columns altered, or the logging of its changes
    /// switched on or off. A consumer copies the table again, or removes its copy if the database no longer has the
    /// table. In rare cases, after a crash or an error, the table is unchanged.
    TableChanged,
}

/// A change by a committed transaction. Several changes of one row by one transaction are one change.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Change {
    /// Number of the transaction. Numbers ascend, with gaps. A consumer that has all changes of the transaction
    /// continues from this number.
    pub sequence: u64,
    /// Time immediately before the commit, or of the prepare.
    pub time: DateTime,
    /// Name of the table, as it was then.
    pub table: String,
    /// The change.
    pub kind: ChangeKind,
    /// Values of the primary key's columns, in its order; empty if the table was changed.
    pub key: Vec<Value>,
    /// The row as it was then, in the columns that the table has now; `None` if it was deleted.
    pub row: Option<Row>,
    /// Whether this is the last change of its transaction.
    pub ends_transaction: bool,
}

/// A stream of changes; see [`Database::changes`]. It is an iterator that ends before the first transaction that is
/// prepared or just committing, also one of the engine's own that removes expired rows, and continues when there are
/// more changes. After an error it is at its end.
pub struct ChangeStream {
    db: Database,
    /// All changes up to this number were returned.
    since: u64,
    /// Up to which number it may read.
    readable: u64,
    /// The last part that was read: number and part.
    last_part: (u64, u64),
    parts: VecDeque<Part>,
    /// Of the transaction `sequence`: what was not decoded yet begins at `decoded`. Whether its end was.
    bytes: Vec<u8>,
    decoded: usize,
    sequence: u64,
    time: DateTime,
    is_whole: bool,
    /// The tables of its changes.
    tables: HashMap<TableId, Named>,
    /// A change that is the last of its transaction unless another one follows.
    held: Option<Change>,
    /// The next change, if [`wait`](Self::wait) has found it.
    found: Option<Change>,
    has_failed: bool,
}

struct Part {
    sequence: u64,
    part: u64,
    bytes: Vec<u8>,
}

/// A table as a transaction names it.
struct Named {
    name: String,
    /// `None`: there is no such table any more.
    table: Option<Arc<TableShared>>,
}

impl Database {
    /// The row changes that transactions have committed in tables that log them
    /// ([`Schema::log_changes`](crate::Schema::log_changes)): those after the transaction `since`; 0 begins with all
    /// that are kept. They come transaction by transaction, in an order in which they can be applied. Changes that are
    /// returned are durable.
    ///
    /// A consumer applies the changes of a transaction and keeps its number, both or neither. After a crash, of
    /// whichever side, it continues from that number. A row comes as it is after the transaction, so a change may be
    /// applied twice. A copy of a table with rows begins with [`last_change`](Database::last_change), then takes the
    /// rows by a snapshot and calls [`flush_log`](Database::flush_log), then applies what follows that number.
    ///
    /// ```
    /// use highwater::{ChangeKind, Database, Schema, Type, values};
    /// # let db = Database::in_memory()?;
    /// let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).primary_key(&["id"]);
    /// let people = db.create_table("people", schema.log_changes())?;
    /// db.transact(|txn| {
    ///     txn.insert(&people, &values![1, "Ada"])?;
    ///     txn.insert(&people, &values![2, "Grace"])
    /// })?;
    /// db.transact(|txn| txn.delete(&people, &values![1]))?;
    ///
    /// let changes = db.changes(0)?.collect::<Result<Vec<_>, _>>()?;
    /// let kinds: Vec<_> = changes.iter().map(|change| (change.kind, change.ends_transaction)).collect();
    /// assert_eq!(kinds, [(ChangeKind::Insert, false), (ChangeKind::Insert, true), (ChangeKind::Delete, true)]);
    /// assert_eq!(changes[1].row.as_ref().unwrap().str("name"), "Grace");
    /// assert_eq!(db.changes(changes[2].sequence)?.count(), 0);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ChangesTrimmed`] if changes after `since` are no longer kept; [`Error::Usage`] if `since` is above the
    /// last number: it is a number of another database, or of this one before it was restored.
    pub fn changes(&self, since: u64) -> Result<ChangeStream> {
        check_outside_row_closure()?;
        self.inner.check_running()?;
        let last = self.inner.changes.last();
        if since > last {
            let reason = format!("no change has the number {since} yet; the last one is {last}");
            return Err(Error::Usage(format!("{reason}: the position belongs to another state of the database")));
        }
        let mut stream = ChangeStream {
            db: self.clone(),
            since,
            readable: since,
            last_part: (since, u64::from(u32::MAX)),
            parts: VecDeque::new(),
            bytes: Vec::new(),
            decoded: 0,
            sequence: since,
            time: DateTime::from_unix_us(0),
            is_whole: true,
            tables: HashMap::new(),
            held: None,
            found: None,
            has_failed: false,
        };
        stream.read_parts()?;
        Ok(stream)
    }

    /// Number of the last transaction whose changes [`changes`](Self::changes) returns now; 0 if there is none.
    ///
    /// # Errors
    /// I/O; the database is closed or has stopped.
    pub fn last_change(&self) -> Result<u64> {
        check_outside_row_closure()?;
        self.inner.check_running()?;
        let Some(table) = self.inner.changes.table()? else { return Ok(0) };
        let readable = self.inner.changes.readable(self.inner.storage.is_read_only())?;
        let mut read = self.snapshot()?;
        let last = read.scan(table).to(&[ValueRef::UInt(readable)]).rev().first()?.map_or(0, |row| row.u64(0));
        Ok(last.max(trimmed(&mut read.txn, table)?))
    }
}

impl Iterator for ChangeStream {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Result<Change>> {
        if let Some(found) = self.found.take() {
            return Some(Ok(found));
        }
        if self.has_failed {
            return None;
        }
        let next = self.next_change();
        self.has_failed = next.is_err();
        next.transpose()
    }
}

impl ChangeStream {
    /// All changes up to the transaction of this number were returned: the number to continue from.
    pub fn position(&self) -> u64 {
        match &self.found {
            Some(found) if found.ends_transaction => self.since.min(found.sequence - 1),
            _ => self.since,
        }
    }

    /// Waits until there is a change to read; false if there is none within `timeout`, or if the stream has ended with
    /// an error.
    ///
    /// ```
    /// # use highwater::{Database, Schema, Type, values};
    /// # use std::time::Duration;
    /// # let db = Database::in_memory()?;
    /// # let schema = Schema::new().column("id", Type::U64).primary_key(&["id"]).log_changes();
    /// # let table = db.create_table("t", schema)?;
    /// let mut changes = db.changes(0)?;
    /// assert!(!changes.wait(Duration::from_millis(1))?);
    /// db.transact(|txn| txn.insert(&table, &values![7]))?;
    /// while changes.wait(Duration::from_millis(1))? {
    ///     let change = changes.next().unwrap()?;
    ///     assert_eq!(change.row.unwrap().u64("id"), 7);
    /// }
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As of the stream; the database is closed or has stopped, or the wait is
    /// [interrupted](crate::InterruptHandle).
    pub fn wait(&mut self, timeout: Duration) -> Result<bool> {
        let now = Instant::now();
        let deadline = now.checked_add(timeout).unwrap_or(now + FOR_EVER);
        loop {
            if self.found.is_none() {
                self.found = self.next().transpose()?;
            }
            if self.found.is_some() || self.has_failed {
                return Ok(self.found.is_some());
            }
            let (inner, interrupt) = (&self.db.inner, &self.db.interrupt);
            let check = || {
                inner.check_running().and_then(|()| interrupt.as_ref().map_or(Ok(()), |interrupt| interrupt.check()))
            };
            if !inner.changes.wait_beyond(self.readable, deadline, check)? {
                return Ok(false);
            }
        }
    }

    /// The next change. Reads the next entries until it is known whether this is the last change of its transaction.
    fn next_change(&mut self) -> Result<Option<Change>> {
        check_outside_row_closure()?;
        self.db.inner.check_running()?;
        loop {
            // Entries after the end of a transaction do not belong to it.
            let undecoded = if self.is_whole { &[][..] } else { &self.bytes[self.decoded..] };
            let Some((entry, bytes)) = read(undecoded)? else {
                match self.next_part()? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            let next = match entry {
                Entry::End => {
                    (self.is_whole, self.since) = (true, self.sequence);
                    let last = self.held.take().map(|held| Change { ends_transaction: true, ..held });
                    self.decoded += bytes;
                    match last {
                        Some(last) => return Ok(Some(last)),
                        None => continue,
                    }
                }
                Entry::Begin { unix_us } => {
                    self.time = DateTime::from_unix_us(unix_us);
                    None
                }
                Entry::Table { id, name } => {
                    let named = named(&self.db, self.tables.remove(&id), id, name);
                    self.tables.insert(id, named);
                    None
                }
                entry => change_of((self.sequence, self.time), &self.tables, &entry)?,
            };
            self.decoded += bytes;
            if let Some(next) = next
                && let Some(before) = self.held.replace(next)
            {
                return Ok(Some(before));
            }
        }
    }

    /// Takes another part; false if there is none.
    fn next_part(&mut self) -> Result<bool> {
        if self.parts.is_empty() {
            self.read_parts()?;
        }
        debug_assert!(!self.is_whole || self.held.is_none(), "rule 2: a change is held after its end");
        let is_decoded = self.decoded == self.bytes.len();
        let wrong = |what: &str| Err(Error::Corrupt(format!("the change log: transaction {}: {what}", self.sequence)));
        let Some(Part { sequence, part, bytes }) = self.parts.pop_front() else {
            return if self.is_whole { Ok(false) } else { wrong("its end is missing") };
        };
        let follows = if self.is_whole { sequence > self.sequence && part == 0 } else { sequence == self.sequence };
        if !follows || self.is_whole && !is_decoded {
            return wrong("parts are missing, or there are too many");
        }
        self.bytes.drain(..self.decoded);
        self.bytes.extend_from_slice(&bytes);
        (self.decoded, self.sequence, self.is_whole) = (0, sequence, false);
        Ok(true)
    }

    /// Reads the next parts of transactions that have ended.
    fn read_parts(&mut self) -> Result<()> {
        let Some(table) = self.db.inner.changes.table()? else { return Ok(()) };
        self.readable = self.db.inner.changes.readable(self.db.inner.storage.is_read_only())?;
        let mut read = self.db.snapshot()?;
        let trimmed = trimmed(&mut read.txn, table)?;
        if self.since < trimmed {
            return Err(Error::ChangesTrimmed { since: self.since, trimmed });
        }
        let (from, to) = (self.last_part, [ValueRef::UInt(self.readable)]);
        let from = [ValueRef::UInt(from.0), ValueRef::UInt(from.1)];
        let mut rows = read.scan(table).from_exclusive(&from).to(&to).iter()?;
        let mut left = BATCH_BYTES;
        while left > 0
            && let Some(row) = rows.next_ref()?
        {
            let (sequence, part, bytes) = (row.u64(0), row.u64(1), row.bytes(2).to_vec());
            let is_next = (sequence, part) == (self.last_part.0, self.last_part.1 + 1);
            if !is_next && part != 0 {
                let reason = format!("part {part} of transaction {sequence} follows another one");
                return Err(Error::Corrupt(format!("the change log: {reason}")));
            }
            self.last_part = (sequence, part);
            left = left.saturating_sub(bytes.len().max(1));
            self.parts.push_back(Part { sequence, part, bytes });
        }
        Ok(())
    }
}

/// The table that a transaction names; `known`: what was known of it.
fn named(db: &Database, known: Option<Named>, id: TableId, name: &str) -> Named {
    let known = known.and_then(|known| known.table).filter(|table| table.lock.check(&table.name).is_ok());
    let found = || db.inner.registry.with_ids(&BTreeSet::from([id])).pop();
    Named { name: name.to_string(), table: known.or_else(found) }
}

/// The change that an entry says; `None` if its table is gone.
fn change_of(
    (sequence, time): (u64, DateTime),
    tables: &HashMap<TableId, Named>,
    entry: &Entry<'_>,
) -> Result<Option<Change>> {
    let (kind, id, key, row) = match *entry {
        Entry::Insert { table, key, row } => (ChangeKind::Insert, table, key, Some(row)),
        Entry::Update { table, key, row } => (ChangeKind::Update, table, key, Some(row)),
        Entry::Delete { table, key } => (ChangeKind::Delete, table, key, None),
        Entry::TableChanged { table } => (ChangeKind::TableChanged, table, &[][..], None),
        Entry::Begin { .. } | Entry::Table { .. } | Entry::End => return Ok(None),
    };
    let corrupt = |what: &str| Error::Corrupt(format!("the change log: transaction {sequence}: {what}"));
    let named = tables.get(&id).ok_or_else(|| corrupt("a change of a table that is not named"))?;
    let mut change =
        Change { sequence, time, table: named.name.clone(), kind, key: Vec::new(), row: None, ends_transaction: false };
    if kind == ChangeKind::TableChanged {
        return Ok(Some(change));
    }
    let Some(table) = &named.table else { return Ok(None) };
    let version = table.current.read().clone();
    let (values, key_bytes) = version.key.decode(key)?;
    if key_bytes != key.len() {
        return Err(corrupt("a key is longer than those of its table"));
    }
    change.key = values;
    change.row = row.map(|row| version.layouts.to_row(row)).transpose()?;
    Ok(Some(change))
}
