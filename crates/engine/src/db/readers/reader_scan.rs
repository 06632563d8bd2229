//! Scans of a reader's snapshot, as [`Scan`](crate::Scan) has them.
//!
//! Rule: while the reader reads a batch, the next batch is in flight. An iterator that is dropped before the last batch
//! receives that batch, and tells the server to stop.

use super::link::{Link, Received};
use super::message::{Answer, Bound, Request, ScanForm, Wanted, columns_to, first_row};
use super::reader::{ReaderSnapshot, UsedTable};
use super::value::to_fields;
use crate::error::{Error, Result};
use crate::table::{Row, RowLayout, ValueRef};
use std::sync::Arc;

/// A scan being described; see [`iter`](ReaderScan::iter).
#[must_use = "a scan does nothing until iter() or another of its ends is called"]
pub struct ReaderScan<'s, 'v> {
    snapshot: &'s mut ReaderSnapshot,
    table: &'v str,
    index: Option<&'v str>,
    from: Bound<'v>,
    to: Bound<'v>,
    starts_with: Option<&'v [ValueRef<'v>]>,
    is_reverse: bool,
    limit: usize,
}

impl ReaderSnapshot {
    /// A scan of a table, to be described further.
    pub fn scan<'v>(&mut self, table: &'v str) -> ReaderScan<'_, 'v> {
        ReaderScan::new(self, table)
    }
}

impl<'s, 'v> ReaderScan<'s, 'v> {
    fn new(snapshot: &'s mut ReaderSnapshot, table: &'v str) -> ReaderScan<'s, 'v> {
        let (from, to) = (Bound::Open, Bound::Open);
        let (index, starts_with, is_reverse, limit) = (None, None, false, usize::MAX);
        ReaderScan { snapshot, table, index, from, to, starts_with, is_reverse, limit }
    }

    /// In the order of this index instead of the primary key.
    pub fn index(mut self, name: &'v str) -> Self {
        self.index = Some(name);
        self
    }

    /// From the first row whose key begins with these values or is greater.
    pub fn from(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.from = Bound::Inclusive(to_fields(values));
        self
    }

    /// From the first row whose key is greater and does not begin with these values.
    pub fn from_exclusive(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.from = Bound::Exclusive(to_fields(values));
        self
    }

    /// To the last row whose key begins with these values or is smaller.
    pub fn to(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.to = Bound::Inclusive(to_fields(values));
        self
    }

    /// To the last row whose key is smaller than these values.
    pub fn to_exclusive(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.to = Bound::Exclusive(to_fields(values));
        self
    }

    /// All rows whose first key columns have these values.
    pub fn prefix(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.from = Bound::Prefix(to_fields(values));
        self.to = self.from.clone();
        self
    }

    /// All rows whose first key columns have these values, except that the last column (text or binary) only begins
    /// with the last value. Overrides other bounds.
    pub fn starts_with(mut self, values: &'v [ValueRef<'v>]) -> Self {
        self.starts_with = Some(values);
        self
    }

    /// Backward, from the last row to the first.
    pub fn rev(mut self) -> Self {
        self.is_reverse = true;
        self
    }

    /// At most this many rows.
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }

    /// Starts the scan.
    ///
    /// # Errors
    /// As [`Scan::iter`](crate::Scan::iter) and [`ReaderSnapshot::table`].
    pub fn iter(self) -> Result<ReaderRows<'s>> {
        let used = self.snapshot.used(self.table)?;
        let layout = Arc::clone(&used.layout);
        self.rows(&used, layout, Wanted::Rows)
    }

    /// Starts a scan of some columns instead of rows: what it yields has them, in the order in which they are named.
    ///
    /// # Errors
    /// As [`iter`](Self::iter); [`Error::NoSuchColumn`].
    pub fn select(self, names: &[&str]) -> Result<ReaderRows<'s>> {
        let used = self.snapshot.used(self.table)?;
        let missing = |name: &str| Error::NoSuchColumn { table: self.table.to_string(), column: name.to_string() };
        let position = |name: &&str| used.definition().position(name).map_err(|_| missing(name));
        let columns = names.iter().map(position).collect::<Result<Vec<_>>>()?;
        let layout = used.layout_of(&columns)?;
        self.rows(&used, layout, Wanted::Columns(columns_to(&columns)?))
    }

    /// The first row of the scan.
    ///
    /// # Errors
    /// As [`iter`](Self::iter).
    pub fn first(self) -> Result<Option<Row>> {
        let max = self.limit.min(1);
        self.limit(max).iter()?.next().transpose()
    }

    /// Number of rows in the scan; the other process counts them.
    ///
    /// # Errors
    /// As [`iter`](Self::iter).
    pub fn count(self) -> Result<u64> {
        self.number(Wanted::Count)
    }

    /// About how many rows the scan would deliver, without reading them; see [`Scan::estimate`](crate::Scan::estimate).
    ///
    /// # Errors
    /// As [`iter`](Self::iter).
    pub fn estimate(self) -> Result<u64> {
        self.number(Wanted::Estimate)
    }

    fn number(self, wanted: Wanted) -> Result<u64> {
        let table = self.snapshot.used(self.table)?.number;
        let (link, scan) = self.form(wanted);
        match link.answer(&Request::Scan { table, scan })? {
            Answer::Count(count) => Ok(count),
            _ => Err(link.unexpected()),
        }
    }

    fn rows(self, used: &UsedTable, layout: Arc<RowLayout>, wanted: Wanted) -> Result<ReaderRows<'s>> {
        let table = used.number;
        let (link, scan) = self.form(wanted);
        link.send(&Request::Scan { table, scan })?;
        let mut rows = ReaderRows { link, layout, batch: Vec::new(), read: 0, comes: Comes::Batch };
        // An error of the scan is the first answer.
        rows.next_batch()?;
        Ok(rows)
    }

    fn form(self, wanted: Wanted) -> (&'s mut Link, ScanForm<'v>) {
        let ReaderScan { snapshot, index, from, to, starts_with, is_reverse, limit, .. } = self;
        let (starts_with, limit) = (starts_with.map(to_fields), limit as u64);
        (&mut snapshot.link, ScanForm { index, from, to, starts_with, is_reverse, limit, wanted })
    }
}

/// The expected messages of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comes {
    /// A batch, which was requested.
    Batch,
    Nothing,
}

/// The rows of a scan. After an error it ends.
pub struct ReaderRows<'s> {
    link: &'s mut Link,
    layout: Arc<RowLayout>,
    batch: Vec<u8>,
    /// Bytes of the batch that were delivered.
    read: usize,
    comes: Comes,
}

impl ReaderRows<'_> {
    /// Receives the next batch, and requests the one after it.
    fn next_batch(&mut self) -> Result<()> {
        self.comes = Comes::Nothing;
        self.read = 0;
        self.batch.clear();
        let Received::Rows { are_last } = self.link.receive()? else {
            return Err(self.link.unexpected());
        };
        std::mem::swap(&mut self.batch, &mut self.link.frame);
        if !are_last {
            self.link.send(&Request::More)?;
            self.comes = Comes::Batch;
        }
        Ok(())
    }

    fn next_row(&mut self) -> Result<Option<Row>> {
        while self.read == self.batch.len() {
            match self.comes {
                Comes::Batch => self.next_batch()?,
                Comes::Nothing => return Ok(None),
            }
        }
        let rest = &self.batch[self.read..];
        let Some((row, behind)) = first_row(rest) else {
            return Err(self.link.fail("a row that ends beyond its frame"));
        };
        self.read = self.batch.len() - behind.len();
        Ok(Some(Row::of_bytes(&self.layout, row.to_vec())))
    }
}

impl Iterator for ReaderRows<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        let next = self.next_row();
        if next.is_err() {
            self.read = self.batch.len();
            self.stop();
        }
        next.transpose()
    }
}

impl ReaderRows<'_> {
    /// Leaves the connection ready for the next request.
    fn stop(&mut self) {
        if self.comes == Comes::Batch && matches!(self.link.receive(), Ok(Received::Rows { are_last: false })) {
            // If it cannot be sent the connection has failed, as the next request will find.
            let _ = self.link.send(&Request::Stop);
        }
        self.comes = Comes::Nothing;
    }
}

impl Drop for ReaderRows<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}
