//! One reader's requests, answered: a snapshot, and the tables that it uses.
//!
//! Rules
//! 1. An error of the engine is an answer, and the connection continues. An error of the connection ends it.
//! 2. An unknown number of a table or a column in a request ends the connection, and so does a message that does not
//!    decode.
//! 3. Between two batches of rows, every [`ROWS_BETWEEN_LOOKS`] rows of a count, and repeatedly during a wait for
//!    changes, the thread checks whether the reader has disconnected or the server stops.

use super::message::{
    Answer, Bound, Failure, KIND_AT, Kind, MAX_REQUEST_BYTES, PROTOCOL, Request, ScanForm, TableAnswer, Wanted,
    columns_of, message, put_frame, put_message, put_row, read_frame,
};
use super::offers::OwnOffer;
use super::served_changes::ServedChanges;
use super::socket::{Stream, is_gone};
use super::value::to_values;
use crate::db::read_txn::ReadTxn;
use crate::db::scan::Scan;
use crate::db::{ColumnIter, Database};
use crate::error::{Error, Result};
use crate::stats::MetricsFormat;
use crate::table::definition_form::{TableForm, to_json};
use crate::table::{RowLayout, Table, TableDefinition, ValueRef};
use std::io::{Error as IoError, ErrorKind, Result as IoResult, Write};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of rows in the first batch of a scan, and in the last ones; each has four times as many as the previous one.
const BATCH_BYTES: [usize; 2] = [8 << 10, 256 << 10];
/// Rows that are counted before the thread looks whether the reader is there.
const ROWS_BETWEEN_LOOKS: u64 = 4096;
/// Most bytes of a dump in a frame.
const MAX_DUMP_FRAME_BYTES: usize = 1 << 20;
/// A reader begins within this time.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// A table that the snapshot uses, with its definition, which is fixed until the snapshot ends.
struct Held {
    table: Table,
    definition: Arc<TableDefinition>,
    /// Of whole rows, as they are sent.
    layout: Arc<RowLayout>,
}

/// One end of a connection.
pub(super) struct Connection {
    db: Database,
    stream: Stream,
    read: Option<ReadTxn>,
    offer: OwnOffer,
    tables: Vec<Held>,
    changes: Option<ServedChanges>,
    out: Vec<u8>,
}

fn invalid(what: impl Into<String>) -> IoError {
    IoError::new(ErrorKind::InvalidData, what.into())
}

/// A bound's values.
type Values<'f> = Vec<ValueRef<'f>>;

/// The ends of a scan, as values.
struct Ends<'f> {
    from: Values<'f>,
    to: Values<'f>,
    starts_with: Option<Values<'f>>,
}

impl<'f> Ends<'f> {
    fn of(form: &ScanForm<'f>) -> Option<Ends<'f>> {
        let of_bound = |bound: &Bound<'f>| match bound {
            Bound::Open => Some(Vec::new()),
            Bound::Prefix(fields) | Bound::Inclusive(fields) | Bound::Exclusive(fields) => to_values(fields),
        };
        let starts_with = match &form.starts_with {
            Some(fields) => Some(to_values(fields)?),
            None => None,
        };
        Some(Ends { from: of_bound(&form.from)?, to: of_bound(&form.to)?, starts_with })
    }
}

fn describe<'s, 'v>(read: &'s mut ReadTxn, table: &Table, form: &ScanForm<'v>, ends: &'v Ends<'v>) -> Scan<'s, 'v> {
    let mut scan = read.scan(table).limit(usize::try_from(form.limit).unwrap_or(usize::MAX));
    if let Some(index) = form.index {
        scan = scan.index(index);
    }
    scan = match form.from {
        Bound::Open => scan,
        // Both ends of a prefix are the same.
        Bound::Prefix(_) => scan.prefix(&ends.from),
        Bound::Inclusive(_) => scan.from(&ends.from),
        Bound::Exclusive(_) => scan.from_exclusive(&ends.from),
    };
    scan = match form.to {
        Bound::Open | Bound::Prefix(_) => scan,
        Bound::Inclusive(_) => scan.to(&ends.to),
        Bound::Exclusive(_) => scan.to_exclusive(&ends.to),
    };
    if let Some(values) = &ends.starts_with {
        scan = scan.starts_with(values);
    }
    if form.is_reverse { scan.rev() } else { scan }
}

/// The columns to read from a table, by position: all of them if the request names none.
fn wanted_columns(table: &TableDefinition, named: Option<&[u32]>) -> IoResult<Vec<usize>> {
    let columns = named.map_or_else(|| (0..table.columns.len()).collect(), columns_of);
    match columns.iter().find(|column| **column >= table.columns.len()) {
        Some(column) => Err(invalid(format!("table {} has no column {column}", table.name))),
        None => Ok(columns),
    }
}

fn table_answer(db: &Database, table: &Table) -> Result<TableAnswer> {
    let form = TableForm::of(&table.definition(), table.next_number());
    let definition = String::from_utf8_lossy(&to_json(&form)).into_owned();
    Ok(TableAnswer { definition, approximate_rows: db.approximate_rows(table)? })
}

impl Connection {
    pub(super) fn new(db: Database, stream: Stream, offer: OwnOffer) -> Connection {
        Connection { db, stream, read: None, offer, tables: Vec::new(), changes: None, out: Vec::new() }
    }

    /// Answers until the reader, or an error of the connection, ends it.
    pub(super) fn serve(mut self) -> IoResult<()> {
        self.stream.set_read_timeout(Some(HELLO_TIMEOUT))?;
        let mut frame = Vec::new();
        match self.request(&mut frame)? {
            Some(Request::Hello { protocol }) => self.greet(protocol)?,
            _ => return Err(invalid("a reader that does not say hello")),
        }
        self.stream.set_read_timeout(None)?;
        while let Some(request) = self.request(&mut frame)? {
            self.answer(request)?;
        }
        Ok(())
    }

    fn request<'f>(&mut self, frame: &'f mut Vec<u8>) -> IoResult<Option<Request<'f>>> {
        match read_frame(&mut self.stream, frame, MAX_REQUEST_BYTES)? {
            None => Ok(None),
            Some(Kind::Message) => message(frame).map(Some).map_err(invalid),
            Some(_) => Err(invalid("a reader that sends rows")),
        }
    }

    fn send(&mut self, answer: &Answer) -> IoResult<()> {
        self.out.clear();
        put_message(answer, &mut self.out);
        self.stream.write_all(&self.out)
    }

    fn send_result(&mut self, answer: Result<Answer>) -> IoResult<()> {
        self.send(&answer.unwrap_or_else(|error| Answer::Failed(Failure::from(error))))
    }

    fn greet(&mut self, theirs: u32) -> IoResult<()> {
        self.send(&Answer::Hello { protocol: PROTOCOL })?;
        match theirs == PROTOCOL {
            true => Ok(()),
            false => Err(invalid(format!("a reader of protocol {theirs}, not {PROTOCOL}"))),
        }
    }

    fn answer(&mut self, request: Request<'_>) -> IoResult<()> {
        match request {
            Request::Hello { .. } | Request::More | Request::Stop => Err(invalid("a request out of turn")),
            Request::Tables => {
                let tables = self.db.tables();
                let answers = tables.iter().map(|table| table_answer(&self.db, table)).collect::<Result<_>>();
                self.send_result(answers.map(Answer::Tables))
            }
            Request::Metrics { is_openmetrics } => {
                let format = if is_openmetrics { MetricsFormat::OpenMetrics } else { MetricsFormat::Prometheus };
                let text = self.db.metrics_text(format);
                self.send(&Answer::Metrics(text))
            }
            Request::Table { name } => {
                let answer = self.hold(name);
                self.send_result(answer.map(Answer::Table))
            }
            Request::Get { table, key, columns } => {
                let key = to_values(&key).ok_or_else(|| invalid("a key with a value that no type has"))?;
                self.get(table, &key, columns.as_deref())
            }
            Request::Scan { table, scan } => self.scan(table, &scan),
            Request::Share => {
                let other = self.read().and_then(ReadTxn::same_snapshot);
                let answer = other.map(|other| Answer::Shared { offer: self.offer.put(other) });
                self.send_result(answer)
            }
            Request::Join { .. } if self.read.is_some() => Err(invalid("a snapshot to join after a read")),
            Request::Join { offer } => {
                let taken = self.offer.all().take(offer);
                self.read = taken.map(|read| ReadTxn::new(self.db.interruptible(read.txn)));
                let joined = self.read.as_ref().map(|_| Answer::Joined);
                self.send_result(joined.ok_or_else(|| Error::Usage("the snapshot to join has ended".into())))
            }
            Request::Dump => self.dump(),
            Request::Changes { since } => {
                let begun = ServedChanges::begin(&self.db, since);
                let begun = begun.map(|changes| self.changes = Some(changes));
                self.send_result(begun.map(|()| Answer::ChangesBegin))
            }
            Request::NextChanges { wait_ms } => self.send_changes(Duration::from_millis(wait_ms)),
            Request::LastChange => {
                let last = self.db.last_change();
                self.send_result(last.map(Answer::LastChange))
            }
            Request::FlushLog => {
                let flushed = self.db.flush_log();
                self.send_result(flushed.map(|()| Answer::LogFlushed))
            }
        }
    }

    fn send_changes(&mut self, wait: Duration) -> IoResult<()> {
        let changes = self.changes.as_mut().ok_or_else(|| invalid("changes of no stream"))?;
        match changes.next_frame(wait, &self.stream, &mut self.out)? {
            Ok(()) => self.stream.write_all(&self.out),
            Err(error) => self.send(&Answer::Failed(error.into())),
        }
    }

    /// Sends a dump. If the reader has gone the dump fails, and so does the answer.
    fn dump(&mut self) -> IoResult<()> {
        let dumped = self.db.dump(DumpFrames { stream: self.stream.try_clone()?, frame: Vec::new() });
        self.send_result(
            dumped.map(|report| {
                Answer::Dumped(report.tables.into_iter().map(|table| (table.name, table.rows)).collect())
            }),
        )
    }

    /// The snapshot, begun if it is not.
    fn read(&mut self) -> Result<&mut ReadTxn> {
        if self.read.is_none() {
            self.read = Some(self.db.snapshot()?);
        }
        Ok(self.read.as_mut().expect("it was begun"))
    }

    /// Uses a table in the snapshot, which fixes its definition.
    fn hold(&mut self, name: &str) -> Result<TableAnswer> {
        let table = self.db.table(name)?;
        self.read()?.scan(&table).limit(1).count()?;
        let answer = table_answer(&self.db, &table)?;
        let definition = table.definition();
        let all: Vec<usize> = (0..definition.columns.len()).collect();
        let layout = Arc::new(RowLayout::of_columns(&definition, &all)?);
        self.tables.push(Held { table, definition, layout });
        Ok(answer)
    }

    /// The snapshot, and a table of it.
    fn used(&mut self, number: u32) -> IoResult<(&mut ReadTxn, &Held)> {
        match (&mut self.read, self.tables.get(number as usize)) {
            (Some(read), Some(held)) => Ok((read, held)),
            _ => Err(invalid(format!("a table {number} that was not asked for"))),
        }
    }

    fn get(&mut self, table: u32, key: &[ValueRef<'_>], columns: Option<&[u32]>) -> IoResult<()> {
        let (read, held) = self.used(table)?;
        let wanted = wanted_columns(&held.definition, columns)?;
        let row = read.get_columns(&held.table, key, &wanted).and_then(|row| {
            let Some(row) = row else { return Ok(None) };
            let layout = match columns {
                None => Arc::clone(&held.layout),
                Some(_) => Arc::new(RowLayout::of_columns(&held.definition, &wanted)?),
            };
            let (values, mut bytes) = (row.values().collect::<Vec<_>>(), Vec::new());
            debug_assert_eq!(values.len(), wanted.len(), "rule 3 of messages: a row of other columns than asked for");
            layout.encode(&values, None, &mut bytes)?;
            Ok(Some(bytes))
        });
        match row {
            Ok(row) => {
                self.out.clear();
                put_frame(Kind::LastRows, &mut self.out, |out| row.iter().for_each(|row| put_row(row, out)));
                self.stream.write_all(&self.out)
            }
            Err(error) => self.send(&Answer::Failed(error.into())),
        }
    }

    fn scan(&mut self, table: u32, form: &ScanForm<'_>) -> IoResult<()> {
        let ends = Ends::of(form).ok_or_else(|| invalid("a bound with a value that no type has"))?;
        let stream = self.stream.try_clone()?;
        let (read, held) = self.used(table)?;
        let (definition, scan) = (held.definition.clone(), describe(read, &held.table, form, &ends));
        let named = match &form.wanted {
            Wanted::Estimate => {
                let count = scan.estimate();
                return self.send_result(count.map(Answer::Count));
            }
            Wanted::Count => {
                let count = count(scan, &stream)?;
                return self.send_result(count.map(Answer::Count));
            }
            Wanted::Rows => None,
            Wanted::Columns(columns) => Some(&columns[..]),
        };
        let columns = wanted_columns(&definition, named)?;
        match scan.project(|_, _| Ok(columns)) {
            Ok(rows) => send_rows(rows, stream),
            Err(error) => self.send(&Answer::Failed(error.into())),
        }
    }
}

/// A dump on its way to a reader.
struct DumpFrames {
    stream: Stream,
    frame: Vec<u8>,
}

impl Write for DumpFrames {
    fn write(&mut self, bytes: &[u8]) -> IoResult<usize> {
        let bytes = &bytes[..bytes.len().min(MAX_DUMP_FRAME_BYTES)];
        self.frame.clear();
        put_frame(Kind::Dump, &mut self.frame, |out| out.extend_from_slice(bytes));
        self.stream.write_all(&self.frame)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> IoResult<()> {
        Ok(())
    }
}

fn count(scan: Scan<'_, '_>, stream: &Stream) -> IoResult<Result<u64>> {
    let mut rows = match scan.start(true) {
        Ok((rows, _)) => rows,
        Err(error) => return Ok(Err(error)),
    };
    let mut count = 0;
    loop {
        match rows.advance() {
            Ok(true) => count += 1,
            Ok(false) => return Ok(Ok(count)),
            Err(error) => return Ok(Err(error)),
        }
        if count.is_multiple_of(ROWS_BETWEEN_LOOKS) && is_gone(stream)? {
            return Err(ErrorKind::BrokenPipe.into());
        }
    }
}

/// The end of a batch of rows.
enum BatchEnd {
    /// There may be more.
    Full,
    LastRow,
    Failed(Failure),
}

/// Puts rows of about this many bytes into a frame.
fn fill_batch(rows: &mut ColumnIter<'_>, bytes: usize, batch: &mut Vec<u8>) -> BatchEnd {
    let mut end = BatchEnd::Full;
    batch.clear();
    put_frame(Kind::Rows, batch, |out| {
        while out.len() < bytes {
            match rows.next() {
                Some(Ok(row)) => put_row(row.encoded(), out),
                Some(Err(error)) => return end = BatchEnd::Failed(error.into()),
                None => return end = BatchEnd::LastRow,
            }
        }
    });
    end
}

/// Sends rows, batch by batch, as long as the reader requests more. What fails is sent in its turn, after the rows
/// before it.
fn send_rows(mut rows: ColumnIter<'_>, mut stream: Stream) -> IoResult<()> {
    let [mut batch_bytes, last_batch_bytes] = BATCH_BYTES;
    let (mut batch, mut request) = (Vec::new(), Vec::new());
    loop {
        let end = fill_batch(&mut rows, batch_bytes, &mut batch);
        if let BatchEnd::LastRow = end {
            batch[KIND_AT] = Kind::LastRows as u8;
            return stream.write_all(&batch);
        }
        stream.write_all(&batch)?;
        if read_frame(&mut stream, &mut request, MAX_REQUEST_BYTES)? != Some(Kind::Message) {
            return Err(ErrorKind::BrokenPipe.into());
        }
        match (message(&request).map_err(invalid)?, end) {
            (Request::Stop, _) => return Ok(()),
            (Request::More, BatchEnd::Failed(failure)) => {
                batch.clear();
                put_message(&Answer::Failed(failure), &mut batch);
                return stream.write_all(&batch);
            }
            (Request::More, _) => batch_bytes = (4 * batch_bytes).min(last_batch_bytes),
            _ => return Err(invalid("a request out of turn")),
        }
    }
}
