//! The change log of a database that another process has open, as [`ChangeStream`](crate::ChangeStream) has it.

use super::link::{Link, Received};
use super::message::{Answer, ChangeForm, ChangesHead, Request, first_message};
use super::value::to_values;
use crate::db::changes::Change;
use crate::error::Result;
use crate::table::{DateTime, Row, RowLayout, Value, ValueRef};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A stream of changes from another process; see [`Reader::changes`](crate::Reader::changes). It is an iterator that
/// ends where a [`ChangeStream`](crate::ChangeStream) does, and continues when there are more changes. After an error
/// it is at its end. It counts as a reader (`max_readers`), and keeps nothing in the database.
pub struct ReaderChanges {
    link: Link,
    /// All changes up to this number were returned.
    since: u64,
    /// The changes that were received; those before `read` were returned.
    batch: Vec<u8>,
    read: usize,
    /// The position of the stream after the batch.
    position_behind: u64,
    /// Of the rows of each table.
    layouts: HashMap<String, Arc<RowLayout>>,
    has_failed: bool,
}

impl ReaderChanges {
    pub(super) fn begin(mut link: Link, since: u64) -> Result<ReaderChanges> {
        match link.answer(&Request::Changes { since })? {
            Answer::ChangesBegin => {}
            _ => return Err(link.unexpected()),
        }
        let (batch, layouts) = (Vec::new(), HashMap::new());
        Ok(ReaderChanges { link, since, batch, read: 0, position_behind: since, layouts, has_failed: false })
    }

    /// All changes up to the transaction of this number were returned: the number to continue from.
    pub fn position(&self) -> u64 {
        self.since
    }

    /// Waits until there is a change to read; false if there is none after this time, or if the stream has ended with
    /// an error.
    ///
    /// # Errors
    /// As [`ChangeStream::wait`](crate::ChangeStream::wait);
    /// [`ReaderDisconnected`](crate::Error::ReaderDisconnected) when the other process closes the database, or ends.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool> {
        if self.read == self.batch.len() && !self.has_failed {
            let received = self.receive(timeout);
            self.has_failed = received.is_err();
            received?;
        }
        Ok(self.read < self.batch.len())
    }

    /// Receives the next changes.
    fn receive(&mut self, wait: Duration) -> Result<()> {
        (self.read, self.batch) = (0, Vec::new());
        self.link.send(&Request::NextChanges { wait_ms: wait.as_millis().try_into().unwrap_or(u64::MAX) })?;
        let Received::Changes = self.link.receive()? else {
            return Err(self.link.unexpected());
        };
        let (ChangesHead { position }, changes) = match first_message(&self.link.frame) {
            Ok(first) => first,
            Err(reason) => return Err(self.link.fail(&reason)),
        };
        self.position_behind = position.max(self.since);
        self.batch = changes.to_vec();
        if changes.is_empty() {
            self.since = self.position_behind;
        }
        Ok(())
    }

    fn next_change(&mut self) -> Result<Option<Change>> {
        if !self.wait(Duration::ZERO)? {
            return Ok(None);
        }
        let decoded = first_message(&self.batch[self.read..]).and_then(|(form, behind)| {
            let change = change_of(&form, &mut self.layouts)?;
            Ok((change, self.batch.len() - behind.len()))
        });
        let (change, read) = decoded.map_err(|reason| self.link.fail(&reason))?;
        self.read = read;
        if change.ends_transaction {
            self.since = self.since.max(change.sequence);
        }
        if self.read == self.batch.len() {
            self.since = self.since.max(self.position_behind);
        }
        Ok(Some(change))
    }
}

impl Iterator for ReaderChanges {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Result<Change>> {
        if self.has_failed {
            return None;
        }
        let next = self.next_change();
        self.has_failed = next.is_err();
        next.transpose()
    }
}

/// The change that a form describes; an error as text.
fn change_of(
    form: &ChangeForm<'_>,
    layouts: &mut HashMap<String, Arc<RowLayout>>,
) -> std::result::Result<Change, String> {
    if let Some(columns) = &form.columns {
        let columns = columns.iter().map(|(name, ty)| Ok((name.clone(), ty.parse()?)));
        let layout = RowLayout::of_named_types(columns.collect::<std::result::Result<_, String>>()?)?;
        layouts.insert(form.table.to_string(), Arc::new(layout));
    }
    let row = match &form.row {
        Some(fields) => {
            let values = to_values(fields).ok_or("a row with a value that no type has")?;
            let layout = layouts.get(form.table).ok_or("a row of unknown columns")?;
            Some(row_of(layout, &values)?)
        }
        None => None,
    };
    let key = to_values(&form.key).ok_or("a key with a value that no type has")?;
    Ok(Change {
        sequence: form.sequence,
        time: DateTime::from_unix_us(form.unix_us),
        table: form.table.to_string(),
        kind: form.kind,
        key: key.into_iter().map(ValueRef::to_value).collect::<Vec<Value>>(),
        row,
        ends_transaction: form.ends_transaction,
    })
}

fn row_of(layout: &Arc<RowLayout>, values: &[ValueRef<'_>]) -> std::result::Result<Row, String> {
    let mut bytes = Vec::new();
    // In the layout of its table it may be as long as a row can be, and here it has a few bytes more.
    layout.encode_of_any_length(values, None, &mut bytes).map_err(|error| error.to_string())?;
    Ok(Row::of_bytes(layout, bytes))
}
