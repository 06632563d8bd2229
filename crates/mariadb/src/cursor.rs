//! The cursor of an open table.
//!
//! Rules
//! 1. A table has one cursor. It outlives statements and transactions: it is opened again where it is needed.
//! 2. In another transaction than that of its last move it continues from its last entry.
//! 3. The row of a whole primary key is read without a cursor.
//! 4. After an exact seek the moves stay within the key, and lock nothing outside; the moves beyond start again after
//!    the current entry.

use crate::abi::{Bytes, Columns, ColumnsOut, Judge, Read};
use crate::failure::{Code, found, guarded};
use crate::session::Session;
use crate::table::{Table, values};
use highwater::raw::{RawCursor, RawSeek, RawVerdict};
use highwater::{Error, Result, WriteTxn};
use smallvec::SmallVec;

/// The seek of rule 3.
const POINT: u32 = 8;

impl Table {
    fn open_cursor(&mut self, index: &str, read: &Read) {
        self.refresh();
        self.read = read.raw();
        self.wanted.clear();
        self.wanted.extend_from_slice(read.wanted.elements());
        self.cursor = None;
        if let Some(judge) = read.filter.judge() {
            let mut cursor = self.raw.cursor(index, self.read.clone());
            set_filter(&mut cursor, read.filter.columns.elements(), judge);
            self.cursor = Some(cursor);
        }
        self.index.clear();
        self.index.extend_from_slice(index.as_bytes());
        (self.has_cursor, self.has_row, self.is_exact, self.is_point) = (true, false, false, false);
        self.entry.clear();
    }

    pub(crate) fn close_cursor(&mut self) {
        (self.cursor, self.has_cursor) = (None, false);
    }

    /// Moves the cursor by `go`, and returns the row at its new position.
    #[inline]
    fn go(
        &mut self,
        session: &mut Session,
        out: &mut [Bytes],
        go: impl FnOnce(&mut RawCursor, &mut WriteTxn) -> Result<bool>,
    ) -> Result<bool> {
        if !self.has_cursor {
            return Err(Error::Usage("the table has no cursor".to_string()));
        }
        (self.has_row, self.is_point) = (false, false);
        let (raw, index, read) = (&self.raw, &self.index, &self.read);
        let make = || raw.cursor(std::str::from_utf8(index).unwrap_or_default(), read.clone());
        let cursor = self.cursor.get_or_insert_with(make);
        let is_there = go(cursor, session.txn()?)?;
        self.moved_in = session.serial;
        if !is_there {
            return Ok(false);
        }
        if let Some(values) = cursor.values() {
            out.iter_mut().zip(values).for_each(|(place, value)| *place = value.map_or(Bytes::null(), Bytes::of));
        } else if cursor.read_row(&mut self.row)? {
            self.hand_out(&self.wanted, out);
        } else {
            return Ok(false);
        }
        self.entry.clear();
        (self.has_row, self.is_of_cursor) = (true, true);
        Ok(true)
    }

    /// The entry after which a move continues: the cursor's present or last position, unless another one was noted.
    fn place(&self) -> &[u8] {
        if !self.entry.is_empty() {
            return &self.entry;
        }
        self.cursor.as_ref().and_then(RawCursor::place).unwrap_or_default()
    }

    /// Key of the row that was read last; `None` if none was.
    pub(crate) fn key_of_row(&self) -> Option<&[u8]> {
        match &self.cursor {
            _ if !self.has_row => None,
            Some(cursor) if self.is_of_cursor => cursor.key(),
            _ => Some(&self.row_key),
        }
    }

    /// Reads the row of a whole primary key.
    fn point(&mut self, session: &mut Session, key: &[u8], out: &mut [Bytes]) -> Result<bool> {
        self.has_row = self.raw.get(session.txn()?, key, &self.read, &mut self.row)?;
        // A move beyond continues from here.
        (self.is_point, self.moved_in) = (true, 0);
        self.entry.clear();
        self.entry.extend_from_slice(key);
        self.is_of_cursor = false;
        if self.has_row {
            self.row_key.clear();
            self.row_key.extend_from_slice(key);
            self.hand_out(&self.wanted, out);
        }
        Ok(self.has_row)
    }

    /// Moves it by one row.
    fn step(&mut self, session: &mut Session, is_up: bool, out: &mut [Bytes]) -> Result<bool> {
        if self.is_point {
            // Rule 4: the key has one row.
            self.has_row = false;
            return Ok(false);
        }
        // Its transaction has ended: it continues from its last position.
        if self.moved_in != session.serial {
            return self.go_from_entry(session, is_up, out);
        }
        self.go(session, out, |cursor, txn| if is_up { cursor.next(txn) } else { cursor.prev(txn) })
    }

    fn go_from_entry(&mut self, session: &mut Session, is_up: bool, out: &mut [Bytes]) -> Result<bool> {
        let to = if is_up { RawSeek::Above } else { RawSeek::Below };
        let entry = self.place().to_vec();
        let found = self.go(session, out, |cursor, txn| cursor.seek(txn, to, &entry));
        if !matches!(found, Ok(true)) {
            self.entry = entry;
        }
        found
    }

    fn seek(&mut self, session: &mut Session, seek: u32, columns: &Columns, out: &mut [Bytes]) -> Result<bool> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let index = std::mem::take(&mut self.index);
        let name = std::str::from_utf8(&index).unwrap_or_default();
        let encoded =
            if !matches!(seek, 6 | 7) { self.raw.append_key(name, &values(columns), &mut key) } else { Ok(()) };
        self.index = index;
        let to = match seek {
            0 | POINT => RawSeek::Exact,
            1 => RawSeek::ExactLast,
            2 | 6 => RawSeek::AtLeast,
            3 => RawSeek::Above,
            5 => RawSeek::Below,
            _ => RawSeek::AtMost,
        };
        self.is_exact = matches!(to, RawSeek::Exact | RawSeek::ExactLast);
        let found = encoded.and_then(|()| match seek {
            POINT => self.point(session, &key, out),
            _ => self.go(session, out, |cursor, txn| cursor.seek(txn, to, &key)),
        });
        // A move beyond continues from where the key would be.
        if matches!(found, Ok(false)) && self.is_exact {
            self.entry.clone_from(&key);
        }
        self.key = key;
        found
    }

    /// A move that continues beyond an exact key.
    fn step_beyond(&mut self, session: &mut Session, is_up: bool, out: &mut [Bytes]) -> Result<bool> {
        if std::mem::take(&mut self.is_exact) && !self.place().is_empty() {
            return self.go_from_entry(session, is_up, out);
        }
        self.step(session, is_up, out)
    }
}

fn set_filter(cursor: &mut RawCursor, columns: &[u32], judge: Judge) {
    let columns: Vec<usize> = columns.iter().map(|at| *at as usize).collect();
    let places = columns.clone();
    cursor.set_filter(&columns, move |entry| {
        let values: SmallVec<[Bytes; 16]> =
            places.iter().map(|at| entry.column(*at).map_or(Bytes::null(), Bytes::of)).collect();
        match judge.ask(&values) {
            0 => RawVerdict::Take,
            1 => RawVerdict::Skip,
            2 => RawVerdict::End,
            _ => RawVerdict::Interrupt,
        }
    });
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_cursor_open(table: &mut Table, index: Bytes, read: &Read) -> i32 {
    guarded(|| {
        table.open_cursor(&index.text(), read);
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_cursor_seek(
    session: &mut Session,
    table: &mut Table,
    seek: u32,
    key: Columns,
    mut row: ColumnsOut,
) -> i32 {
    guarded(|| table.seek(session, seek, &key, row.elements()).map(found))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_cursor_next(session: &mut Session, table: &mut Table, mut row: ColumnsOut) -> i32 {
    guarded(|| table.step(session, true, row.elements()).map(found))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_cursor_prev(session: &mut Session, table: &mut Table, mut row: ColumnsOut) -> i32 {
    guarded(|| table.step(session, false, row.elements()).map(found))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_cursor_next_beyond(session: &mut Session, table: &mut Table, mut row: ColumnsOut) -> i32 {
    guarded(|| table.step_beyond(session, true, row.elements()).map(found))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_cursor_prev_beyond(session: &mut Session, table: &mut Table, mut row: ColumnsOut) -> i32 {
    guarded(|| table.step_beyond(session, false, row.elements()).map(found))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_cursor_close(table: &mut Table) {
    guarded(|| {
        table.close_cursor();
        Ok(Code::Ok)
    });
}
