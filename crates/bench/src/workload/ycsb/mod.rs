//! YCSB's core workloads A to F.
//!
//! Source: YCSB (github.com/brianfrankcooper/YCSB, d9faaac), `workloads/workload[a-f]`, `CoreWorkload.java` and
//! `generator/`.
//!
//! Rules
//! 1. One table `usertable`: the key `user` + hash of the record's number, ten fields of 100 characters; reads read all
//!    fields, an update writes one, a read-modify-write reads all and writes one, a scan reads 1 to 100 records.
//! 2. Requests are scrambled zipfian; workload D prefers the latest. Inserts append record numbers; a request never
//!    names a record whose insert is not committed. Requests are scattered over the records at the run's start and, if
//!    the run inserts, a tenth more (in YCSB the expected inserts), so that the popular records stay the same.
//! 3. Every operation is a transaction of its own.
//! 4. A requested record was inserted: a record that is not found is an error and ends the run.

mod generator;

use super::random::{push_alphanumeric, rng};
use super::{Batch, Client, Outcome, Progress, Workload, in_parallel, key1, open_table, options};
use crate::backoff;
use crate::error::{Error, Result};
use crate::store::{Column, Read, RowChanges, RowView, Scan, Session, Store, TableSpec, Transaction, column};
use fastrand::Rng;
use generator::{Zipfian, fnv_hash};
use highwater::{Type, ValueRef};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const TABLE: &str = "usertable";
const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
const MAX_SCAN: u64 = 100;
/// One insert is expected for this many records.
const RECORDS_AN_INSERT: u64 = 10;
/// Records loaded in one unit of parallel work.
const LOAD_UNIT: u64 = 10_000;

const COLUMNS: &[Column] = &[
    column("ycsb_key", Type::Text(32)),
    column("field0", Type::Text(FIELD_BYTES as u32)),
    column("field1", Type::Text(FIELD_BYTES as u32)),
    column("field2", Type::Text(FIELD_BYTES as u32)),
    column("field3", Type::Text(FIELD_BYTES as u32)),
    column("field4", Type::Text(FIELD_BYTES as u32)),
    column("field5", Type::Text(FIELD_BYTES as u32)),
    column("field6", Type::Text(FIELD_BYTES as u32)),
    column("field7", Type::Text(FIELD_BYTES as u32)),
    column("field8", Type::Text(FIELD_BYTES as u32)),
    column("field9", Type::Text(FIELD_BYTES as u32)),
];

/// The core workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letter {
    /// Half reads, half updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Only reads.
    C,
    /// 95 % reads of the latest records, 5 % inserts.
    D,
    /// 95 % scans, 5 % inserts.
    E,
    /// Half reads, half read-modify-writes.
    F,
}

highwater_storage::names!(Letter {
    A => "a",
    B => "b",
    C => "c",
    D => "d",
    E => "e",
    F => "f",
});

impl Letter {
    /// The main operation, the other one, and the main one's percentage.
    fn operations(self) -> (Operation, Operation, u32) {
        match self {
            Letter::A => (Operation::Read, Operation::Update, 50),
            Letter::B => (Operation::Read, Operation::Update, 95),
            Letter::C => (Operation::Read, Operation::Read, 100),
            Letter::D => (Operation::Read, Operation::Insert, 95),
            Letter::E => (Operation::Scan, Operation::Insert, 95),
            Letter::F => (Operation::Read, Operation::ReadModifyWrite, 50),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

/// The kind of transaction that inserts.
pub(crate) const INSERT: &str = "insert";
const KINDS: &[&str] = &["read", "update", INSERT, "scan", "read_modify_write"];

/// Options.
#[derive(Clone, Debug)]
pub struct Config {
    /// The core workload.
    pub letter: Letter,
    /// Records loaded.
    pub records: u64,
    /// Seed.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config { letter: Letter::A, records: 100_000, seed: 1 }
    }
}

/// Record numbers assigned and committed.
#[derive(Debug)]
struct Inserts {
    next: AtomicU64,
    /// Every number below is committed.
    committed: AtomicU64,
    out_of_order: Mutex<BTreeSet<u64>>,
}

impl Inserts {
    fn new(records: u64) -> Inserts {
        Inserts { next: AtomicU64::new(records), committed: AtomicU64::new(records), out_of_order: Mutex::default() }
    }

    fn acknowledge(&self, number: u64) {
        let mut waiting = self.out_of_order.lock();
        waiting.insert(number);
        while waiting.remove(&self.committed.load(Relaxed)) {
            self.committed.fetch_add(1, Relaxed);
        }
    }
}

/// The workload.
#[derive(Debug)]
pub struct Ycsb {
    config: Config,
    inserts: Arc<Inserts>,
    zipfian: Zipfian,
}

impl Ycsb {
    /// A workload with these options.
    pub fn new(config: Config) -> Ycsb {
        let records = config.records.max(1);
        Ycsb { inserts: Arc::new(Inserts::new(records)), zipfian: Zipfian::new(records), config }
    }

    /// The record numbers over which requests are scattered.
    fn key_space(&self) -> u64 {
        let (records, (_, other, _)) = (self.inserts.committed.load(Relaxed), self.config.letter.operations());
        records + if other == Operation::Insert { records.div_ceil(RECORDS_AN_INSERT) } else { 0 }
    }

    /// Finds the end of the records that earlier runs inserted. (A killed run may have left a gap; insertions then meet
    /// the existing records after it.)
    fn count_records<S: Store>(&self, store: &S, table: &S::Table) -> Result<()> {
        let mut session = store.session()?;
        let mut read = session.snapshot()?;
        let mut key = String::new();
        loop {
            let next = self.inserts.next.load(Relaxed);
            write_key(&mut key, next);
            if read.get(table, &key1(key.as_str()), |_| ())?.is_none() {
                return read.finish();
            }
            self.inserts.next.store(next + 1, Relaxed);
            self.inserts.acknowledge(next);
        }
    }
}

pub(super) fn table_spec() -> TableSpec {
    TableSpec { name: TABLE.into(), columns: COLUMNS, auto_increment: None, primary_key: &["ycsb_key"], indexes: &[] }
}

fn write_key(key: &mut String, number: u64) {
    key.clear();
    // Writing to a String cannot fail.
    let _ = write!(key, "user{}", fnv_hash(number));
}

/// Reads every field, as a client would.
fn read_all(row: &impl RowView) {
    (1..=FIELDS).for_each(|field| {
        std::hint::black_box(row.str(field));
    });
}

/// Buffers of one record.
#[derive(Debug)]
struct Record {
    rng: Rng,
    key: String,
    text: String,
}

impl Record {
    fn new(rng: Rng) -> Record {
        Record { rng, key: String::with_capacity(32), text: String::with_capacity(FIELDS * FIELD_BYTES) }
    }

    fn draw(&mut self, bytes: usize) {
        self.text.clear();
        push_alphanumeric(&mut self.rng, &mut self.text, bytes);
    }

    fn insert<X: Transaction>(&mut self, txn: &mut X, table: &X::Table, number: u64) -> Result<()> {
        self.draw(FIELDS * FIELD_BYTES);
        write_key(&mut self.key, number);
        let mut row = [ValueRef::Text(&self.key); FIELDS + 1];
        for field in 0..FIELDS {
            row[field + 1] = ValueRef::Text(&self.text[field * FIELD_BYTES..(field + 1) * FIELD_BYTES]);
        }
        txn.insert(table, &row)?;
        Ok(())
    }
}

impl<S: Store> Workload<S> for Ycsb {
    fn name(&self) -> String {
        format!("ycsb {}", self.config.letter.name())
    }

    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn identity(&self) -> BTreeMap<String, String> {
        options([("workload", "ycsb".into()), ("records", self.config.records.to_string())])
    }

    fn options(&self) -> BTreeMap<String, String> {
        let c = &self.config;
        options([
            ("letter", c.letter.name().into()),
            ("records", c.records.to_string()),
            ("fields", FIELDS.to_string()),
            ("field_bytes", FIELD_BYTES.to_string()),
            ("seed", c.seed.to_string()),
        ])
    }

    fn load_units(&self) -> u64 {
        self.config.records
    }

    fn load(&self, store: &S, threads: usize, progress: &dyn Progress) -> Result<()> {
        let table = store.create_table(&table_spec())?;
        in_parallel(self.config.records.div_ceil(LOAD_UNIT) as usize, threads, |unit| {
            let first = unit as u64 * LOAD_UNIT;
            let mut record = Record::new(rng(self.config.seed, unit as u64 | 1 << 40));
            let range = first..(first + LOAD_UNIT).min(self.config.records);
            Batch::new(progress)
                .run(&mut store.session()?, range, |txn, number| record.insert(txn, &table, number).map(|()| 1))
        })
    }

    fn client(&self, store: &S, number: usize) -> Result<Box<dyn Client>> {
        let table = open_table(store, TABLE)?;
        if number == 0 {
            self.count_records(store, &table)?;
        }
        Ok(Box::new(YcsbClient::<S> {
            session: store.session()?,
            table,
            letter: self.config.letter,
            key_space: self.key_space(),
            inserts: self.inserts.clone(),
            zipfian: self.zipfian.clone(),
            record: Record::new(rng(self.config.seed, number as u64)),
        }))
    }
}

/// One thread.
pub struct YcsbClient<S: Store> {
    session: S::Session,
    table: S::Table,
    letter: Letter,
    /// See rule 2.
    key_space: u64,
    inserts: Arc<Inserts>,
    zipfian: Zipfian,
    record: Record,
}

impl<S: Store> YcsbClient<S> {
    /// Draws a committed record and writes its key.
    fn draw_key(&mut self) {
        let committed = self.inserts.committed.load(Relaxed);
        let rng = &mut self.record.rng;
        let number = match self.letter {
            Letter::D => self.zipfian.latest(rng, committed),
            _ => self.zipfian.scrambled(rng, committed, self.key_space),
        };
        write_key(&mut self.record.key, number);
    }

    fn read(&mut self, outcome: &mut Outcome) -> Result<()> {
        let mut read = self.session.snapshot()?;
        let found = read.get(&self.table, &key1(self.record.key.as_str()), |row| read_all(row))?;
        outcome.reads += 1;
        read.finish()?;
        self.must_be(found.is_some())
    }

    fn scan(&mut self, outcome: &mut Outcome) -> Result<()> {
        let count = self.record.rng.u64(1..=MAX_SCAN) as usize;
        let mut read = self.session.snapshot()?;
        let scan = Scan { from: Some(self.record.key.as_str().into()), limit: count, ..Scan::all() };
        let mut first = None;
        read.scan(&self.table, &scan, |row| {
            first.get_or_insert_with(|| row.str(0) == self.record.key);
            read_all(row);
            ControlFlow::Continue(())
        })?;
        outcome.reads += 1;
        read.finish()?;
        self.must_be(first == Some(true))
    }

    fn change(&mut self, read_first: bool, outcome: &mut Outcome) -> Result<()> {
        self.record.draw(FIELD_BYTES);
        let field = self.record.rng.usize(1..=FIELDS);
        let mut txn = self.session.begin()?;
        let (key, text) = (key1(self.record.key.as_str()), self.record.text.as_str());
        let found = txn.modify(&self.table, &key, |row, set| {
            if read_first {
                read_all(row);
            }
            set.put(field, text.into());
        })?;
        outcome.reads += u32::from(read_first);
        outcome.changed(found);
        txn.finish()?;
        self.must_be(found)
    }

    /// See rule 4.
    fn must_be(&self, found: bool) -> Result<()> {
        if found { Ok(()) } else { Err(Error::Data(format!("{TABLE} has no {}, which was inserted", self.record.key))) }
    }

    fn insert(&mut self, outcome: &mut Outcome) -> Result<()> {
        let (mut number, mut conflicts) = (self.inserts.next.fetch_add(1, Relaxed), 0);
        loop {
            let mut txn = self.session.begin()?;
            match self.record.insert(&mut txn, &self.table, number).and_then(|()| txn.finish()) {
                // A number that was assigned must be inserted, or the latest ones would never become visible.
                Err(error) if error.is_retryable() => {
                    outcome.other += 1;
                    conflicts += 1;
                    backoff::pause(conflicts);
                }
                // By a run that was killed.
                Err(Error::Engine(highwater::Error::DuplicateKey { .. })) => {
                    outcome.other += 1;
                    self.inserts.acknowledge(number);
                    number = self.inserts.next.fetch_add(1, Relaxed);
                }
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        self.inserts.acknowledge(number);
        outcome.writes += 1;
        Ok(())
    }
}

impl<S: Store> Client for YcsbClient<S> {
    fn run(&mut self) -> Result<Option<Outcome>> {
        let (main, other, percent) = self.letter.operations();
        let operation = if self.record.rng.u32(..100) < percent { main } else { other };
        let mut outcome = Outcome { kind: operation as usize, ..Outcome::default() };
        if operation != Operation::Insert {
            self.draw_key();
        }
        match operation {
            Operation::Read => self.read(&mut outcome)?,
            Operation::Update => self.change(false, &mut outcome)?,
            Operation::ReadModifyWrite => self.change(true, &mut outcome)?,
            Operation::Scan => self.scan(&mut outcome)?,
            Operation::Insert => self.insert(&mut outcome)?,
        }
        Ok(Some(outcome))
    }
}

#[cfg(test)]
mod ycsb_test;
