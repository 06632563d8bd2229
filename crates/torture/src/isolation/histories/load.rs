//! The load that creates a history: threads run random transactions on a few lists.
//!
//! Rules
//! 1. A list is a row. The rows are on several pages; the longer ones become overflow rows. They have an index on their
//!    last element, so that each append moves an entry.
//! 2. An append locks the newest list: in one step (`modify`), or by a locking read and an update. Under settings that
//!    prevent lost updates some appends read the list without a lock.
//! 3. A list is read by its key, by a scan of all rows, by a scan of the index, forward or backward. What a scan does
//!    not return is an empty list, except under READ UNCOMMITTED, where a scan may miss rows.
//! 4. Between steps, and between the rows of a scan, a thread sometimes yields the CPU or sleeps, so that transactions
//!    overlap on few processors.

use super::history::{Element, History, Key, Op, Transaction};
use crate::isolation::Setting;
use fastrand::Rng;
use highwater::{Database, Row, RowRef, Schema, Table, TxnOptions, Type, ValueRef, WriteTxn, values};
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// The size of a history.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Threads.
    pub threads: usize,
    /// Transactions of each thread.
    pub transactions: usize,
    /// Lists.
    pub keys: u64,
}

const LIST: usize = 1;
const TAIL: usize = 2;
const PAD_BYTES: usize = 980;
const LIST_BYTES: u32 = 60_000;
/// Maximum number of steps of a transaction.
const MAX_STEPS: u32 = 5;
/// A lock wait of this length means that a deadlock was not detected.
const LOCK_WAIT_MS: u64 = 20_000;

fn schema() -> Schema {
    let schema = Schema::new().column("id", Type::U64).column("list", Type::Binary(LIST_BYTES));
    let schema = schema.column("tail", Type::U32).column("pad", Type::Binary(PAD_BYTES as u32));
    schema.primary_key(&["id"]).index("by_tail", &["tail"])
}

fn elements(bytes: &[u8]) -> Vec<Element> {
    bytes.chunks_exact(4).filter_map(|four| four.first_chunk().map(|four| Element::from_le_bytes(*four))).collect()
}

fn bytes_of(list: &[Element]) -> Vec<u8> {
    list.iter().flat_map(|element| element.to_le_bytes()).collect()
}

fn list_of(row: Option<&Row>) -> Vec<Element> {
    row.map(|row| elements(row.bytes(LIST))).unwrap_or_default()
}

/// State that the threads share.
struct Shared<'a> {
    db: &'a Database,
    table: Table,
    setting: Setting,
    sizes: Sizes,
    next_element: AtomicU32,
    /// Counts begins and ends of transactions.
    moments: AtomicU64,
}

/// Makes a history on a new table, which is dropped afterwards.
///
/// # Errors
/// The engine's.
pub fn run(db: &Database, setting: Setting, sizes: &Sizes, rng: &mut Rng) -> Result<History> {
    let name = format!("history_{:016x}", rng.u64(..));
    let table = db.create_table(&name, schema())?;
    let shared =
        &Shared { db, table, setting, sizes: *sizes, next_element: AtomicU32::new(1), moments: AtomicU64::new(1) };
    let mut transactions = Vec::new();
    let done: Vec<Result<Vec<Transaction>>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..sizes.threads)
            .map(|thread| (thread, rng.fork()))
            .map(|(thread, rng)| scope.spawn(move || Worker { shared, thread, rng }.run()))
            .collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.map(|done| done.unwrap_or_else(|_| Err(Error::Data("a thread panicked".into())))).collect()
    });
    for one in done {
        transactions.extend(one?);
    }
    let mut last = BTreeMap::new();
    let mut reader = db.snapshot()?;
    for row in reader.scan(&shared.table).iter()? {
        let row = row?;
        last.insert(row.u64(0), elements(row.bytes(LIST)));
    }
    drop(reader);
    db.drop_table(&name)?;
    Ok(History { transactions, last })
}

struct Worker<'a> {
    shared: &'a Shared<'a>,
    thread: usize,
    rng: Rng,
}

impl Worker<'_> {
    fn run(mut self) -> Result<Vec<Transaction>> {
        let mut done = Vec::with_capacity(self.shared.sizes.transactions);
        for _ in 0..self.shared.sizes.transactions {
            let options = TxnOptions { lock_wait_timeout_ms: Some(LOCK_WAIT_MS), ..self.shared.setting.options() };
            let begun = self.shared.moments.fetch_add(1, SeqCst);
            let txn = self.shared.db.begin_with(options)?;
            let mut running = Running { worker: &mut self, txn, ops: Vec::new(), statement: 0, taking_back: false };
            let ended = running.steps();
            let Running { txn, ops, .. } = running;
            let committed = match ended {
                Ok(true) => txn.commit().map(|()| true),
                Ok(false) => txn.rollback().map(|()| false),
                Err(highwater::Error::Deadlock | highwater::Error::WriteConflict) => Ok(false),
                Err(error) => Err(error),
            };
            let (thread, committed) = (self.thread, committed?);
            done.push(Transaction { thread, ops, committed, begun, ended: self.shared.moments.fetch_add(1, SeqCst) });
        }
        Ok(done)
    }

    fn pause(&mut self) {
        match self.rng.u32(..100) {
            0..30 => std::thread::yield_now(),
            30..40 => std::thread::sleep(Duration::from_micros(self.rng.u64(20..400))),
            _ => {}
        }
    }
}

/// A running transaction.
struct Running<'w, 'a> {
    worker: &'w mut Worker<'a>,
    txn: WriteTxn,
    ops: Vec<Op>,
    statement: u32,
    /// Whether its present operations will be undone.
    taking_back: bool,
}

type Step<T> = highwater::Result<T>;

impl Running<'_, '_> {
    fn key(&mut self) -> Key {
        self.worker.rng.u64(..self.worker.shared.sizes.keys)
    }

    /// Notes a list that a statement has read.
    fn read_one(&mut self, key: Key, list: Vec<Element>, locked: bool) {
        self.statement += 1;
        self.note(key, list, locked);
    }

    /// Notes one of several lists that a statement has read.
    fn note(&mut self, key: Key, list: Vec<Element>, locked: bool) {
        // The levels without range locks do not lock what is not there, and release what is taken back.
        let keeps = self.worker.shared.setting >= Setting::RepeatableRead;
        let locked = locked && (keeps || !list.is_empty() && !self.taking_back);
        self.ops.push(Op::Read { key, list, statement: self.statement, locked });
    }

    /// Runs the steps; returns whether to commit.
    fn steps(&mut self) -> Step<bool> {
        for _ in 0..self.worker.rng.u32(1..=MAX_STEPS) {
            self.worker.pause();
            self.taking_back = false;
            let key = self.key();
            match self.worker.rng.u32(..100) {
                0..34 => self.append(key)?,
                34..62 => {
                    let row = self.txn.get(&self.worker.shared.table, &values![key])?;
                    self.read_one(key, list_of(row.as_ref()), false);
                }
                62..76 => self.scan(false)?,
                76..84 => self.scan(true)?,
                84..91 => {
                    let table = &self.worker.shared.table;
                    let row = match self.worker.rng.bool() {
                        true => self.txn.get_for_share(table, &values![key])?,
                        false => self.txn.get_for_update(table, &values![key])?,
                    };
                    self.read_one(key, list_of(row.as_ref()), true);
                }
                _ => self.undone(key)?,
            }
        }
        self.worker.pause();
        Ok(self.worker.rng.u32(..10) > 0)
    }

    /// Appends, and undoes the append.
    fn undone(&mut self, key: Key) -> Step<()> {
        let savepoint = self.txn.savepoint();
        let before = self.appends();
        self.taking_back = true;
        self.append(key)?;
        self.worker.pause();
        if self.worker.rng.bool() {
            let other = self.key();
            self.append(other)?;
        }
        self.txn.rollback_to(savepoint)?;
        self.ops.push(Op::Undo(self.appends() - before));
        Ok(())
    }

    /// Number of appends that are not undone.
    fn appends(&self) -> usize {
        let ops = self.ops.iter();
        ops.fold(0, |count, op| match op {
            Op::Append { .. } => count + 1,
            Op::Undo(undone) => count - undone,
            Op::Read { .. } => count,
        })
    }

    /// Appends a new element to a list. A failure ends the transaction, but others may have seen the element.
    fn append(&mut self, key: Key) -> Step<()> {
        let element = self.worker.shared.next_element.fetch_add(1, Relaxed);
        let appended = self.try_append(key, element);
        self.ops.push(Op::Append { key, element });
        appended
    }

    fn try_append(&mut self, key: Key, element: Element) -> Step<()> {
        let plain = self.worker.shared.setting >= Setting::FirstCommitterWins;
        match self.worker.rng.u32(..if plain { 3 } else { 2 }) {
            0 => self.append_in_place(key, element),
            how => {
                let (table, locked) = (&self.worker.shared.table, how == 1);
                let row = match locked {
                    true => self.txn.get_for_update(table, &values![key])?,
                    false => self.txn.get(table, &values![key])?,
                };
                let mut list = list_of(row.as_ref());
                self.read_one(key, list.clone(), locked);
                self.worker.pause();
                list.push(element);
                match row {
                    Some(_) => self.write(key, &list).map(drop),
                    // Under the levels without range locks another may have been faster.
                    None => match self.insert(key, &list) {
                        Err(highwater::Error::DuplicateKey { .. }) => self.append_in_place(key, element),
                        done => done,
                    },
                }
            }
        }
    }

    fn write(&mut self, key: Key, list: &[Element]) -> Step<bool> {
        let (bytes, tail) = (bytes_of(list), list.last().copied().unwrap_or_default());
        let columns = [(LIST, ValueRef::Bytes(&bytes)), (TAIL, ValueRef::UInt(tail.into()))];
        self.txn.update(&self.worker.shared.table, &values![key], &columns)
    }

    fn insert(&mut self, key: Key, list: &[Element]) -> Step<()> {
        let (bytes, tail) = (bytes_of(list), list.last().copied().unwrap_or_default());
        let row = [
            ValueRef::UInt(key),
            ValueRef::Bytes(&bytes),
            ValueRef::UInt(tail.into()),
            ValueRef::Bytes(&[7; PAD_BYTES]),
        ];
        self.txn.insert(&self.worker.shared.table, &row).map(drop)
    }

    /// Reads the newest list and writes it in one step; inserts it if there is none.
    fn append_in_place(&mut self, key: Key, element: Element) -> Step<()> {
        loop {
            let mut before = Vec::new();
            let found = self.txn.modify(&self.worker.shared.table, &values![key], |row, set| {
                before = elements(row.bytes(LIST));
                let after = bytes_of(&[&before[..], &[element]].concat());
                set.put(LIST, ValueRef::Bytes(&after));
                set.put(TAIL, ValueRef::UInt(element.into()));
            })?;
            if found {
                self.read_one(key, before, true);
                return Ok(());
            }
            match self.insert(key, &[element]) {
                Err(highwater::Error::DuplicateKey { .. }) => {}
                done => {
                    done?;
                    self.read_one(key, Vec::new(), true);
                    return Ok(());
                }
            }
        }
    }

    /// Reads all lists in one statement.
    fn scan(&mut self, by_index: bool) -> Step<()> {
        let mut scan = self.txn.scan(&self.worker.shared.table);
        if by_index {
            scan = scan.index("by_tail");
        }
        if self.worker.rng.bool() {
            scan = scan.rev();
        }
        let mut found: BTreeMap<Key, Vec<Element>> = BTreeMap::new();
        let (mut rows, mut twice) = (scan.iter()?, None);
        while let Some(row) = rows.next_ref()? {
            let (key, list) = read_row(row);
            twice = found.insert(key, list).map(|_| key).or(twice);
            self.worker.pause();
        }
        self.statement += 1;
        let dirty = self.worker.shared.setting == Setting::ReadUncommitted;
        if let Some(key) = twice.filter(|_| !dirty) {
            return Err(highwater::Error::Corrupt(format!("a scan returned row {key} twice")));
        }
        for key in 0..self.worker.shared.sizes.keys {
            match found.remove(&key) {
                Some(list) => self.note(key, list, false),
                None if dirty => {}
                None => self.note(key, Vec::new(), false),
            }
        }
        Ok(())
    }
}

fn read_row(row: RowRef<'_>) -> (Key, Vec<Element>) {
    (row.u64(0), elements(row.bytes(LIST)))
}
