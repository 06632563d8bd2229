//! The messages between a reader and the process that serves it.
//!
//! Rules
//! 1. A frame is its length (4 bytes, little-endian), a byte with its kind ([`Kind`]), and its contents. A reader sends
//!    only requests, and waits for the answer to each; the last answer of a request is neither [`Kind::Rows`] nor
//!    [`Kind::Dump`].
//! 2. The first request is [`Request::Hello`]. Both sides send [`PROTOCOL`], which changes with every change of the
//!    messages or of the row layout: programs of different versions refuse each other.
//! 3. Rows are consecutive, each after its length (a varint), in the row layout of exactly the requested columns.

use super::value::Field;
use crate::db::changes::ChangeKind;
use crate::error::{Error, Result};
use crate::page::varint::{self, VarintReader};
use crate::types::PageNo;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read};

/// The version of what is said.
pub(super) const PROTOCOL: u32 = 3;

/// Longest request: a few keys, each shorter than a page.
pub(super) const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Longest answer: a row and what surrounds it; or the definitions of all tables.
pub(super) const MAX_ANSWER_BYTES: usize = 256 << 20;

/// Offset of a frame's kind.
pub(super) const KIND_AT: usize = 4;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A [`Request`] or an [`Answer`].
    Message = 1,
    /// Rows; the reader answers whether it needs more.
    Rows = 2,
    /// Rows, the last ones.
    LastRows = 3,
    /// Bytes of a dump: frames of it follow each other until an [`Answer`].
    Dump = 4,
    /// Changes: a [`ChangesHead`], then each [`ChangeForm`].
    Changes = 5,
}

/// One end of a range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Bound<'a> {
    Open,
    #[serde(borrow)]
    Prefix(Vec<Field<'a>>),
    #[serde(borrow)]
    Inclusive(Vec<Field<'a>>),
    #[serde(borrow)]
    Exclusive(Vec<Field<'a>>),
}

/// The parts of a scan's rows that the reader requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Wanted {
    Rows,
    /// These columns, by position.
    Columns(Vec<u32>),
    /// How many there are.
    Count,
    /// About how many, without reading them.
    Estimate,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ScanForm<'a> {
    pub(super) index: Option<&'a str>,
    #[serde(borrow)]
    pub(super) from: Bound<'a>,
    #[serde(borrow)]
    pub(super) to: Bound<'a>,
    #[serde(borrow)]
    pub(super) starts_with: Option<Vec<Field<'a>>>,
    pub(super) is_reverse: bool,
    pub(super) limit: u64,
    pub(super) wanted: Wanted,
}

/// A reader's request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Request<'a> {
    Hello {
        protocol: u32,
    },
    /// Every table.
    Tables,
    /// The counters.
    Metrics {
        is_openmetrics: bool,
    },
    /// A table, to be named by its number from now on.
    Table {
        name: &'a str,
    },
    /// The row of a primary key, with these columns or all.
    Get {
        table: u32,
        #[serde(borrow)]
        key: Vec<Field<'a>>,
        columns: Option<Vec<u32>>,
    },
    Scan {
        table: u32,
        #[serde(borrow)]
        scan: ScanForm<'a>,
    },
    /// Offers the snapshot to another connection.
    Share,
    /// Before any read: takes the snapshot that another connection has offered.
    Join {
        offer: u64,
    },
    /// The whole database, of a snapshot of its own.
    Dump,
    /// A stream of the changes after this number begins.
    Changes {
        since: u64,
    },
    /// The next changes of the stream. If there are none they are waited for, this long.
    NextChanges {
        wait_ms: u64,
    },
    /// The number of the last change.
    LastChange,
    /// Every commit so far becomes durable.
    FlushLog,
    /// After rows: the next ones.
    More,
    /// After rows: no more of them.
    Stop,
}

/// A table as an answer describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TableAnswer {
    /// JSON of its [form](crate::table::definition_form).
    pub(super) definition: String,
    pub(super) approximate_rows: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Answer {
    Hello {
        protocol: u32,
    },
    Tables(Vec<TableAnswer>),
    Metrics(String),
    Table(TableAnswer),
    Count(u64),
    /// The number by which the snapshot is taken.
    Shared {
        offer: u64,
    },
    Joined,
    /// The end of a dump: each table with the number of its rows.
    Dumped(Vec<(String, u64)>),
    /// The stream of changes has begun.
    ChangesBegin,
    LastChange(u64),
    LogFlushed,
    Failed(Failure),
}

/// The head of a frame of changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ChangesHead {
    /// The number to continue from, once all changes of the frame were taken.
    pub(super) position: u64,
}

/// [`ChangeKind`] as a frame has it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ChangeKind")]
enum KindForm {
    Insert,
    Update,
    Delete,
    TableChanged,
}

/// A change as a frame has it; see [`Change`](crate::Change).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ChangeForm<'a> {
    pub(super) sequence: u64,
    pub(super) unix_us: i64,
    pub(super) table: &'a str,
    #[serde(with = "KindForm")]
    pub(super) kind: ChangeKind,
    #[serde(borrow)]
    pub(super) key: Vec<Field<'a>>,
    /// Name and type of each column of the table's rows, from this change on.
    pub(super) columns: Option<Vec<(String, String)>>,
    #[serde(borrow)]
    pub(super) row: Option<Vec<Field<'a>>>,
    pub(super) ends_transaction: bool,
}

/// An error of the engine. The kinds that a reader distinguishes are variants; the others are text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Failure {
    NoSuchTable(String),
    NoSuchIndex { table: String, index: String },
    NoSuchColumn { table: String, column: String },
    BadValue { column: String, reason: String },
    TableDropped(String),
    TableChanged(String),
    CorruptPage { page: u32, reason: String },
    LockWaitTimeout,
    Closed,
    Usage(String),
    ChangesTrimmed { since: u64, trimmed: u64 },
    Other(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::NoSuchTable { table } => Failure::NoSuchTable(table),
            Error::NoSuchIndex { table, index } => Failure::NoSuchIndex { table, index },
            Error::NoSuchColumn { table, column } => Failure::NoSuchColumn { table, column },
            Error::BadValue { column, reason } => Failure::BadValue { column, reason },
            Error::TableDropped { table } => Failure::TableDropped(table),
            Error::TableChanged { table } => Failure::TableChanged(table),
            Error::CorruptPage { page, reason, .. } => Failure::CorruptPage { page: page.0, reason },
            Error::LockWaitTimeout => Failure::LockWaitTimeout,
            Error::Closed => Failure::Closed,
            Error::Usage(reason) => Failure::Usage(reason),
            Error::ChangesTrimmed { since, trimmed } => Failure::ChangesTrimmed { since, trimmed },
            other => Failure::Other(other.to_string()),
        }
    }
}

impl Failure {
    /// The error, for the reader.
    pub(super) fn into_error(self) -> Error {
        match self {
            Failure::NoSuchTable(table) => Error::NoSuchTable { table },
            Failure::NoSuchIndex { table, index } => Error::NoSuchIndex { table, index },
            Failure::NoSuchColumn { table, column } => Error::NoSuchColumn { table, column },
            Failure::BadValue { column, reason } => Error::BadValue { column, reason },
            Failure::TableDropped(table) => Error::TableDropped { table },
            Failure::TableChanged(table) => Error::TableChanged { table },
            Failure::CorruptPage { page, reason } => Error::corrupt_page(PageNo(page), reason),
            Failure::LockWaitTimeout => Error::LockWaitTimeout,
            Failure::Closed => Error::Closed,
            Failure::Usage(reason) => Error::Usage(reason),
            Failure::ChangesTrimmed { since, trimmed } => Error::ChangesTrimmed { since, trimmed },
            Failure::Other(reason) => Error::Served(reason),
        }
    }
}

/// Appends a frame with a message to `out`.
pub(super) fn put_message(message: &impl Serialize, out: &mut Vec<u8>) {
    put_frame(Kind::Message, out, |out| extend(message, out));
}

/// Appends a message to a frame.
pub(super) fn extend(message: &impl Serialize, out: &mut Vec<u8>) {
    // Into memory: no message is refused.
    *out = postcard::to_extend(message, std::mem::take(out)).unwrap_or_default();
}

/// Appends a frame to `out`; `fill` appends what is in it.
pub(super) fn put_frame(kind: Kind, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, kind as u8]);
    fill(out);
    let len = (out.len() - begin - 4) as u32;
    out[begin..begin + 4].copy_from_slice(&len.to_le_bytes());
}

/// Appends a row to a frame of rows.
pub(super) fn put_row(row: &[u8], out: &mut Vec<u8>) {
    varint::put(out, row.len() as u64);
    out.extend_from_slice(row);
}

/// The first row of `rows`, and what follows it. `None` if there is no whole row: an error unless `rows` is empty.
pub(super) fn first_row(rows: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = VarintReader::new(rows);
    let len = usize::try_from(reader.number()?).ok()?;
    let row = reader.bytes(len)?;
    Some((row, &rows[reader.position()..]))
}

/// Reads a frame of at most `max_bytes` into `frame` (without its kind); `None` at the end of the connection.
///
/// # Errors
/// Of the connection; `InvalidData` for what is no frame.
pub(super) fn read_frame(from: &mut impl Read, frame: &mut Vec<u8>, max_bytes: usize) -> std::io::Result<Option<Kind>> {
    let mut head = [0; 5];
    let read = loop {
        match from.read(&mut head) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    if read == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[read..])?;
    let [a, b, c, d, kind] = head;
    let invalid = |what: String| std::io::Error::new(ErrorKind::InvalidData, what);
    let kind = match kind {
        1 => Kind::Message,
        2 => Kind::Rows,
        3 => Kind::LastRows,
        4 => Kind::Dump,
        5 => Kind::Changes,
        other => return Err(invalid(format!("a frame of the unknown kind {other}"))),
    };
    let len = u32::from_le_bytes([a, b, c, d]) as usize;
    if len == 0 || len - 1 > max_bytes {
        return Err(invalid(format!("a frame of {len} bytes")));
    }
    frame.clear();
    // Memory is taken as the bytes come.
    let read = from.take(len as u64 - 1).read_to_end(frame)?;
    if read < len - 1 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(kind))
}

/// The message of a frame.
///
/// # Errors
/// In words: it does not decode.
pub(super) fn message<'f, T: Deserialize<'f>>(frame: &'f [u8]) -> std::result::Result<T, String> {
    match first_message(frame)? {
        (message, []) => Ok(message),
        _ => Err("a message with bytes after its end".to_string()),
    }
}

/// The message at the beginning of `bytes`, and what follows it.
///
/// # Errors
/// In words: it does not decode.
pub(super) fn first_message<'f, T: Deserialize<'f>>(bytes: &'f [u8]) -> std::result::Result<(T, &'f [u8]), String> {
    postcard::take_from_bytes(bytes).map_err(|error| format!("a message that does not decode: {error}"))
}

/// Positions of columns as they were sent.
pub(super) fn columns_of(columns: &[u32]) -> Vec<usize> {
    columns.iter().map(|column| *column as usize).collect()
}

/// Positions of columns to be sent.
pub(super) fn columns_to(columns: &[usize]) -> Result<Vec<u32>> {
    let to_u32 = |column: &usize| u32::try_from(*column).ok();
    let sent = columns.iter().map(to_u32).collect::<Option<_>>();
    sent.ok_or_else(|| Error::Usage("a table has no such column".to_string()))
}
