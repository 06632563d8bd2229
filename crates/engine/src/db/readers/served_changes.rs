//! The change log as a stream of frames, for a reader in another process.
//!
//! Rules
//! 1. The columns of a table are sent before its first row, and again before the first row with other columns.
//! 2. The changes before an error are sent first; the error is the answer to the next request.

use super::message::{ChangeForm, ChangesHead, Kind, extend, put_frame};
use super::socket::{Stream, is_gone};
use super::value::{Field, to_fields};
use crate::db::Database;
use crate::db::changes::{Change, ChangeStream};
use crate::error::{Error, Result};
use crate::table::{Row, Type};
use std::collections::HashMap;
use std::io::{ErrorKind, Result as IoResult};
use std::time::{Duration, Instant};

/// A frame ends with the change that fills it to this size.
const FRAME_BYTES: usize = 64 << 10;
/// Interval at which a thread that waits for changes checks that the reader is still connected.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// A change stream and what its reader has received of it.
pub(super) struct ServedChanges {
    stream: ChangeStream,
    /// The columns last sent, by table (rule 1).
    sent: HashMap<String, Vec<(String, Type)>>,
    /// The answer to the next request (rule 2).
    failed: Option<Error>,
}

impl ServedChanges {
    pub(super) fn begin(db: &Database, since: u64) -> Result<ServedChanges> {
        Ok(ServedChanges { stream: db.changes(since)?, sent: HashMap::new(), failed: None })
    }

    /// Puts a frame of the next changes into `out`. Waits for changes up to `wait`; the frame is empty if there are
    /// none by then. The outer error: the reader has disconnected, or the server stops.
    pub(super) fn next_frame(&mut self, wait: Duration, reader: &Stream, out: &mut Vec<u8>) -> IoResult<Result<()>> {
        if let Some(failed) = self.failed.take() {
            return Ok(Err(failed));
        }
        match self.wait(wait, reader)? {
            Ok(()) => {}
            Err(error) => return Ok(Err(error)),
        }
        let (mut changes, mut position) = (Vec::new(), self.stream.position());
        while changes.len() < FRAME_BYTES {
            match self.stream.next() {
                Some(Ok(change)) => self.put(&change, &mut changes),
                Some(Err(error)) => self.failed = Some(error),
                None => break,
            }
            position = self.stream.position();
        }
        out.clear();
        put_frame(Kind::Changes, out, |out| {
            extend(&ChangesHead { position }, out);
            out.extend_from_slice(&changes);
        });
        Ok(Ok(()))
    }

    fn wait(&mut self, wait: Duration, reader: &Stream) -> IoResult<Result<()>> {
        let begin = Instant::now();
        loop {
            let left = wait.saturating_sub(begin.elapsed());
            match self.stream.wait(left.min(BETWEEN_LOOKS)) {
                Ok(false) if left > BETWEEN_LOOKS => {
                    if is_gone(reader)? {
                        return Err(ErrorKind::BrokenPipe.into());
                    }
                }
                Ok(_) => return Ok(Ok(())),
                // The server stops.
                Err(Error::Interrupted | Error::Closed) => return Err(ErrorKind::BrokenPipe.into()),
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    fn put(&mut self, change: &Change, out: &mut Vec<u8>) {
        let form = ChangeForm {
            sequence: change.sequence,
            unix_us: change.time.unix_us(),
            table: &change.table,
            kind: change.kind,
            key: change.key.iter().map(|value| Field::from(value.as_ref())).collect(),
            columns: change.row.as_ref().and_then(|row| self.columns_to_send(&change.table, row)),
            row: change.row.as_ref().map(|row| to_fields(&row.values().collect::<Vec<_>>())),
            ends_transaction: change.ends_transaction,
        };
        extend(&form, out);
    }

    /// Rule 1.
    fn columns_to_send(&mut self, table: &str, row: &Row) -> Option<Vec<(String, String)>> {
        let columns: Vec<(&str, Type)> = row.layout().named_types().collect();
        let known = self.sent.get(table);
        if known.is_some_and(|known| known.iter().map(|(name, ty)| (name.as_str(), *ty)).eq(columns.iter().copied())) {
            return None;
        }
        let owned = columns.iter().map(|(name, ty)| ((*name).to_string(), *ty)).collect();
        self.sent.insert(table.to_string(), owned);
        Some(columns.iter().map(|(name, ty)| ((*name).to_string(), ty.to_string())).collect())
    }
}
