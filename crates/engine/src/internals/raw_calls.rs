//! Calls of the raw API that any bytes say, compared with a model: the rows by their encoded keys.
//!
//! Laws
//! 1. No bytes lead to a panic; a call that is refused changes nothing.
//! 2. A row is refused iff a column of it has bytes that are no value of its type, or another row has its primary key
//!    or its place in the unique index; then that row is found.
//! 3. Both APIs read the rows that were written, in the order of the encoded keys, in both directions of a cursor.
//! 4. An index has an entry for each row, and the database passes its check.

use crate::config::PageSize;
use crate::db::deterministic::{BackgroundStep, DeterministicDb, OpenOverrides};
use crate::raw::{RawColumn, RawRead, RawRow, RawSeek, RawTable, RawVerdict};
use crate::{Database, Error, Index, LockMode, Options, Schema, Type, WriteTxn};
use highwater_storage::StorageSet;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

type Columns = Vec<Option<Vec<u8>>>;
type Rows = BTreeMap<Vec<u8>, Columns>;

/// Calls of an input.
const MAX_CALLS: usize = 200;
const INDEXES: [&str; 5] = ["PRIMARY", "by_number", "by_float", "by_text", "down"];
/// Column of the unique index.
const TEXT: usize = 2;

/// The rest of the input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn take(&mut self, len: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken.to_vec()
    }
}

fn schema() -> Schema {
    Schema::new()
        .column("a", Type::Fixed(2))
        .column("b", Type::I24)
        .nullable("text", Type::Text(40))
        .nullable("number", Type::U16)
        .nullable("long", Type::Binary(9000))
        .column("float", Type::F64)
        .primary_key(&["b", "a"])
        .index("by_number", &["number"])
        .index("by_float", &["float", "a"])
        .unique_index("by_text", &["text"])
        .index_with("down", Index::new(&["float", "text"]).descending("float").prefix("text", 3).covering(&["number"]))
}

/// A column of few different values, and sometimes of any bytes.
fn column(n: usize, input: &mut Input<'_>) -> Option<Vec<u8>> {
    let (what, small) = (input.byte(), input.byte());
    match (what, n) {
        (0..=3, _) => {
            let len = usize::from(small % 48);
            Some(input.take(len))
        }
        (4..=40, _) => None,
        (_, 0) => Some(vec![small & 1, small >> 5]),
        (_, 1) => Some(vec![small & 3, 0, [0, 0x7f, 0x80, 0xff][usize::from(small >> 6)]]),
        (_, TEXT) => Some(vec![b'a' + small % 26; usize::from(small >> 4)]),
        (_, 3) => Some(vec![small & 15, 0]),
        (_, 4) => Some(vec![small; [0, 1, 700, 8000][usize::from(what & 3)]]),
        _ => {
            Some([0.0, -0.0, 1.5, -1.5, f64::NAN, -f64::NAN, 1e300, 2.0][usize::from(small & 7)].to_le_bytes().to_vec())
        }
    }
}

/// The stored bytes of a row with these bytes, if they are values of its columns.
fn kept(n: usize, bytes: &Option<Vec<u8>>) -> Option<Option<Vec<u8>>> {
    let Some(bytes) = bytes else { return matches!(n, 2..=4).then_some(None) };
    let fits = match n {
        0 | 3 => bytes.len() == 2,
        1 => bytes.len() == 3,
        TEXT => bytes.len() <= 40 && std::str::from_utf8(bytes).is_ok(),
        4 => bytes.len() <= 9000,
        _ => bytes.len() == 8,
    };
    let float = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap_or_default());
    match (fits, n) {
        (false, _) => None,
        (true, 5) if float(bytes).is_nan() => Some(Some(f64::NAN.to_le_bytes().to_vec())),
        (true, 5) => Some(Some((float(bytes) + 0.0).to_le_bytes().to_vec())),
        (true, _) => Some(Some(bytes.clone())),
    }
}

fn refs(columns: &Columns) -> Vec<RawColumn<'_>> {
    columns.iter().map(Option::as_deref).collect()
}

struct Model<'w> {
    db: &'w Database,
    table: RawTable,
    committed: Rows,
    rows: Rows,
}

impl Model<'_> {
    fn key_of(&self, row: &Columns) -> Vec<u8> {
        let mut key = Vec::new();
        self.table.append_key("PRIMARY", &[row[1].as_deref(), row[0].as_deref()], &mut key).expect("a row has a key");
        key
    }

    /// A unique key: no row other than `own` may have it.
    fn other(&self, key: &[u8], row: &Columns, own: Option<&[u8]>) -> Option<Vec<u8>> {
        let same = |(other_key, other): &(&Vec<u8>, &Columns)| {
            Some(&other_key[..]) != own && (*other_key == key || row[TEXT].is_some() && other[TEXT] == row[TEXT])
        };
        self.rows.iter().find(same).map(|(key, _)| key.clone())
    }

    fn some_key(&self, input: &mut Input<'_>) -> Vec<u8> {
        let n = usize::from(input.byte());
        match self.rows.keys().nth(n % (self.rows.len() + 2)) {
            Some(key) => key.clone(),
            None => {
                let len = n % 9;
                input.take(len)
            }
        }
    }

    fn insert(&mut self, txn: &mut WriteTxn, input: &mut Input<'_>) {
        let count = 6 + usize::from(input.byte() == 0);
        let given: Columns = (0..count).map(|n| column(n, input)).collect();
        let columns: Option<Columns> = given.iter().enumerate().map(|(n, bytes)| kept(n, bytes)).collect();
        let Some(row) = columns.filter(|row| row.len() == 6) else {
            let refused = self.table.insert(txn, &refs(&given));
            return assert!(matches!(refused, Err(Error::BadValue { .. })), "law 2: {refused:?}");
        };
        let key = self.key_of(&row);
        match (self.table.insert(txn, &refs(&given)), self.other(&key, &row, None)) {
            (Ok(_), None) => drop(self.rows.insert(key, row)),
            (Err(Error::DuplicateKey { .. }), Some(_)) => {
                let found = self.table.duplicate_of(txn, &refs(&given), LockMode::Exclusive).expect("rows are read");
                let found = found.expect("law 2: the other row is there");
                let other = &self.rows[&found.key];
                assert!(found.key == key || other[TEXT] == row[TEXT], "law 2: {found:?}");
            }
            (done, other) => panic!("law 2: {done:?} and {other:?}"),
        }
    }

    fn update(&mut self, txn: &mut WriteTxn, input: &mut Input<'_>) {
        let key = self.some_key(input);
        let n = usize::from(input.byte() % 7);
        let bytes = column(n, input);
        let done = self.table.update(txn, &key, &[(n, bytes.as_deref())]);
        let Some(old) = self.rows.get(&key) else { return assert!(matches!(done, Ok(false)), "law 2: {done:?}") };
        let Some(kept) = kept(n, &bytes).filter(|_| n < 6) else {
            return assert!(matches!(done, Err(Error::BadValue { .. })), "law 2: {done:?}");
        };
        let mut row = old.clone();
        row[n] = kept;
        let new_key = self.key_of(&row);
        match (done, self.other(&new_key, &row, Some(&key))) {
            (Ok(true), None) => {
                self.rows.remove(&key);
                self.rows.insert(new_key, row);
            }
            (Err(Error::DuplicateKey { .. }), Some(_)) => {}
            (done, other) => panic!("law 2: {done:?} and {other:?}"),
        }
    }

    fn delete(&mut self, txn: &mut WriteTxn, input: &mut Input<'_>) {
        let key = self.some_key(input);
        let done = self.table.delete(txn, &key).expect("a row is deleted or not there");
        assert_eq!(done, self.rows.remove(&key).is_some(), "law 3");
    }

    fn get(&self, txn: &mut WriteTxn, input: &mut Input<'_>) {
        let (key, mut row) = (self.some_key(input), RawRow::default());
        let lock = [LockMode::None, LockMode::Shared, LockMode::Exclusive][usize::from(input.byte() % 3)];
        let found =
            self.table.get(txn, &key, &RawRead { lock, ..RawRead::default() }, &mut row).expect("a row is read");
        assert_eq!(found.then(|| columns_of(&row)).as_ref(), self.rows.get(&key), "law 3");
    }

    fn seek(&self, txn: &mut WriteTxn, input: &mut Input<'_>) {
        let (mut key, what) = (self.some_key(input), input.byte());
        key.truncate(usize::from(what >> 4));
        let begins = |found: &&Vec<u8>| found.starts_with(&key);
        let from = || self.rows.range((Bound::Included(key.clone()), Bound::Unbounded)).map(|(key, _)| key);
        let before =
            || self.rows.range((Bound::Unbounded, Bound::Excluded(key.clone()))).map(|(key, _)| key).next_back();
        let last = || from().take_while(begins).last();
        let (to, expected) = match what % 6 {
            0 => (RawSeek::Exact, from().next().filter(begins)),
            1 => (RawSeek::ExactLast, last()),
            2 => (RawSeek::AtLeast, from().next()),
            3 => (RawSeek::Above, from().find(|key| !begins(key))),
            4 => (RawSeek::AtMost, last().or_else(before)),
            _ => (RawSeek::Below, before()),
        };
        let mut cursor = self.table.cursor("PRIMARY", RawRead::default());
        assert!(cursor.next(txn).is_err() && cursor.key().is_none(), "law 1");
        let found = cursor.seek(txn, to, &key).expect("rows are read");
        assert_eq!(cursor.key().filter(|_| found), expected.map(Vec::as_slice), "law 3: {to:?} {key:?}");
        let Some(mut at) = expected else { return };
        for _ in 0..input.byte() % 4 {
            let is_up = input.byte() & 1 == 0;
            let within = |found: &&Vec<u8>| !matches!(to, RawSeek::Exact | RawSeek::ExactLast) || begins(found);
            let next = match is_up {
                true => self.rows.range((Bound::Excluded(at.clone()), Bound::Unbounded)).map(|(key, _)| key).next(),
                false => self.rows.range(..at.clone()).map(|(key, _)| key).next_back(),
            };
            let next = next.filter(within);
            let found = if is_up { cursor.next(txn) } else { cursor.prev(txn) }.expect("rows are read");
            assert_eq!(cursor.key().filter(|_| found), next.map(Vec::as_slice), "law 3: a move from {at:?}");
            let Some(next) = next else { return };
            at = next;
        }
    }

    /// Law 4, and each row by both APIs.
    fn compare(&self, txn: &mut WriteTxn) {
        for index in INDEXES {
            let mut cursor = self.table.cursor(index, RawRead::default());
            let (mut row, mut last, mut count) = (RawRow::default(), Vec::new(), 0);
            let mut found = cursor.seek(txn, RawSeek::AtLeast, &[]).expect("rows are read");
            while found {
                let (entry, key) = (cursor.entry().expect("a row"), cursor.key().expect("a row"));
                assert!(count == 0 || entry > &last[..], "law 3: {index} is in order");
                last = entry.to_vec();
                assert!(cursor.read_row(&mut row).expect("a row is read"), "law 3");
                assert_eq!(Some(&columns_of(&row)), self.rows.get(key), "law 3: {index}");
                count += 1;
                found = cursor.next(txn).expect("rows are read");
            }
            assert_eq!(count, self.rows.len(), "law 4: {index}");
            self.compare_covered(txn, index);
        }
        let typed = txn.scan(self.table.table()).iter().expect("rows are read");
        for (row, (_, expected)) in typed.zip(&self.rows) {
            let row = row.expect("a row is read");
            let long = expected[4].as_deref().unwrap_or(&[]);
            assert!(row.bytes(4) == long && Some(row.bytes(0)) == expected[0].as_deref(), "law 3: the typed API");
        }
    }

    /// Columns that an index may have, from its entries where it has them, after a filter.
    fn compare_covered(&self, txn: &mut WriteTxn, index: &str) {
        let columns = [3, 5, 1, 0];
        let read = RawRead { columns: Some(columns.to_vec()), covering: true, ..RawRead::default() };
        let mut cursor = self.table.cursor(index, read);
        let is_wanted = |second: Option<&[u8]>| second.is_some_and(|bytes| bytes[0] & 1 == 0);
        let has_filter = index != "PRIMARY";
        if has_filter {
            cursor.set_filter(&[1], move |entry| match is_wanted(entry.column(1)) {
                true => RawVerdict::Take,
                false => RawVerdict::Skip,
            });
        }
        let (mut row, mut count) = (RawRow::default(), 0);
        let mut found = cursor.seek(txn, RawSeek::AtMost, &[]).expect("rows are read");
        while found {
            assert!(cursor.read_row(&mut row).expect("a row is read"), "law 3");
            let expected = &self.rows[cursor.key().expect("a row")];
            for column in columns {
                assert_eq!(row.column(column), expected[column].as_deref(), "law 3: {index}, column {column}");
            }
            count += 1;
            found = cursor.prev(txn).expect("rows are read");
        }
        let expected = self.rows.values().filter(|row| !has_filter || is_wanted(row[1].as_deref())).count();
        assert_eq!(count, expected, "law 3: {index} is filtered");
    }

    fn transaction(&mut self, input: &mut Input<'_>, foreign: &RawTable) {
        let mut txn = self.db.begin().expect("a transaction begins");
        for _ in 0..=input.byte() % 24 {
            match input.byte() % 12 {
                0..=4 => self.insert(&mut txn, input),
                5 | 6 => self.update(&mut txn, input),
                7 => self.delete(&mut txn, input),
                8 => self.get(&mut txn, input),
                9 | 10 => self.seek(&mut txn, input),
                _ => {
                    let key = self.some_key(input);
                    assert!(matches!(foreign.delete(&mut txn, &key), Err(Error::Usage(_))), "law 1");
                }
            }
        }
        self.compare(&mut txn);
        if input.byte() & 3 == 0 {
            txn.rollback().expect("a transaction is rolled back");
            self.rows = self.committed.clone();
        } else {
            txn.commit().expect("a transaction is committed");
            self.committed = self.rows.clone();
        }
    }
}

fn columns_of(row: &RawRow) -> Columns {
    (0..row.columns()).map(|n| row.column(n).map(<[u8]>::to_vec)).collect()
}

fn open(storage: &StorageSet) -> DeterministicDb {
    let options = Options {
        page_size: PageSize::Bytes(4096),
        buffer_pool_size: 1 << 20,
        log_file_size: 4 << 20,
        log_buffer_size: 1 << 20,
        lock_wait_timeout_ms: 1,
        ..Options::default()
    };
    DeterministicDb::open(storage.clone(), options, &OpenOverrides::default(), Arc::default()).expect("it opens")
}

/// Makes the calls that the bytes say.
pub fn run(data: &[u8]) {
    let (storage, mut input) = (StorageSet::memory(), Input(data));
    let other = open(&StorageSet::memory());
    let foreign = RawTable::create(other.database(), "t", schema()).expect("a table is made");
    let first = open(&storage);
    let table = RawTable::create(first.database(), "t", schema()).expect("a table is made");
    let create_id = table.create_id();
    let mut model = Model { db: first.database(), table, committed: Rows::new(), rows: Rows::new() };
    for _ in 0..MAX_CALLS {
        if input.0.is_empty() {
            break;
        }
        model.transaction(&mut input, &foreign);
        first.step(BackgroundStep::Purge).expect("old versions are purged");
    }
    let rows = model.rows;
    first.close().expect("it closes");
    let again = open(&storage);
    let table = RawTable::open_by_create_id(again.database(), create_id).expect("the table is there");
    let model = Model { db: again.database(), table, committed: Rows::new(), rows };
    model.compare(&mut model.db.begin().expect("a transaction begins"));
    let report = again.database().check().expect("a database is checked");
    assert!(report.is_sound(), "law 4: {:?}", report.findings);
}

#[cfg(test)]
mod tests {
    use super::run;

    #[test]
    fn random_calls_break_no_law() {
        let mut state = 42u64;
        for len in (0..24).map(|n| n * n * 8) {
            let bytes = std::iter::repeat_with(|| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 40) as u8
            });
            run(&bytes.take(len).collect::<Vec<u8>>());
        }
    }
}
