//! The benchmark whose table redb's README shows, on every engine.
//!
//! Source: redb 4, `crates/redb-bench`: keys of 24 random bytes and values of 150; bulk load of 5,000,000 pairs in one
//! transaction, 1,000 transactions of one write, 100 of 1,000 writes, 1,000,000 reads of random keys (twice), 500,000
//! ranges of ten, reads of all keys by 4, 8, 16 and 32 threads, removal of half of them in one transaction, size.
//!
//! Rules
//! 1. The steps, their sizes and their order are the source's; other sizes only for a shorter run, where everything is
//!    smaller in proportion.
//! 2. Each step draws the same pairs in the same order from the same seed, so the loaded pairs are read.
//! 3. Left out: `len()` and compaction, which the bench's stores do not have.

use super::Request;
use crate::error::{Error, Result};
use crate::store::{Column, Read, RowView, Scan, Session, Store, TableSpec, Transaction, column};
use highwater::{Type, ValueRef};
use std::ops::ControlFlow;
use std::time::Instant;

const KEY_BYTES: usize = 24;
const VALUE_BYTES: usize = 150;
const PAIRS: u64 = 5_000_000;
const SINGLE_WRITES: u64 = 1_000;
const BATCHES: u64 = 100;
const BATCH_WRITES: u64 = 1_000;
const READS: u64 = 1_000_000;
const RANGES: u64 = 500_000;
const RANGE_PAIRS: usize = 10;
const READERS: [u64; 4] = [4, 8, 16, 32];
const SEED: u64 = 3;

const COLUMNS: &[Column] =
    &[column("key", Type::Binary(KEY_BYTES as u32)), column("value", Type::Binary(VALUE_BYTES as u32))];

/// Pairs in the order in which they are drawn.
#[derive(Clone)]
struct Pairs(fastrand::Rng);

impl Pairs {
    fn new() -> Pairs {
        Pairs(fastrand::Rng::with_seed(SEED))
    }

    fn next(&mut self) -> ([u8; KEY_BYTES], [u8; VALUE_BYTES]) {
        let (mut key, mut value) = ([0; KEY_BYTES], [0; VALUE_BYTES]);
        self.0.fill(&mut key);
        self.0.fill(&mut value);
        (key, value)
    }

    /// Generators at the start of each of this many equal parts of the pairs.
    fn shards(parts: u64, pairs: u64) -> Vec<Pairs> {
        let mut pairs_left = Pairs::new();
        let part = |_| {
            let begin = pairs_left.clone();
            (0..pairs / parts).for_each(|_| {
                pairs_left.next();
            });
            begin
        };
        (0..parts).map(part).collect()
    }
}

/// Bytes of the pairs of the whole benchmark.
pub(super) const WHOLE_BYTES: u64 = PAIRS * (KEY_BYTES + VALUE_BYTES) as u64;

/// The results of the steps.
type Steps = Vec<(String, f64, String)>;

struct Benchmark<'b, S: Store> {
    store: &'b S,
    table: S::Table,
    steps: Steps,
}

pub(super) fn run<S: Store>(store: &S, request: &Request) -> Result<Steps> {
    let spec =
        TableSpec { name: "pairs".into(), columns: COLUMNS, auto_increment: None, primary_key: &["key"], indexes: &[] };
    let (table, part) = (store.create_table(&spec)?, (WHOLE_BYTES / request.data_bytes.max(1)).max(1));
    let mut benchmark = Benchmark { store, table, steps: Steps::new() };
    let pairs = PAIRS / part;
    let mut drawn = Pairs::new();
    benchmark.step("bulk load", |b| b.write(&mut drawn, 1, pairs))?;
    benchmark.step("individual writes", |b| b.write(&mut drawn, SINGLE_WRITES / part.min(10), 1))?;
    benchmark.step("batch writes", |b| b.write(&mut drawn, BATCHES / part.min(10), BATCH_WRITES))?;
    for _ in 0..2 {
        benchmark.step("random reads", |b| b.read(Pairs::new(), READS / part))?;
    }
    benchmark.step("random range reads", |b| b.ranges(RANGES / part))?;
    for readers in READERS {
        let shards = Pairs::shards(readers, pairs);
        benchmark.step(&format!("random reads ({readers} threads)"), |b| b.read_by(shards, pairs / readers))?;
    }
    benchmark.step("removals", |b| b.remove(pairs / 2))?;
    Ok(benchmark.steps)
}

fn key(key: &[u8]) -> [ValueRef<'_>; 1] {
    [ValueRef::Bytes(key)]
}

impl<S: Store> Benchmark<'_, S> {
    fn step(&mut self, name: &str, work: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        let begun = Instant::now();
        work(self)?;
        self.steps.push((name.into(), begun.elapsed().as_secs_f64() * 1000.0, "ms".into()));
        Ok(())
    }

    fn write(&self, pairs: &mut Pairs, transactions: u64, writes: u64) -> Result<()> {
        let mut session = self.store.session()?;
        for _ in 0..transactions {
            let mut txn = session.begin()?;
            for _ in 0..writes {
                let (key, value) = pairs.next();
                txn.insert(&self.table, &[ValueRef::Bytes(&key), ValueRef::Bytes(&value)])?;
            }
            txn.finish()?;
        }
        Ok(())
    }

    fn read(&self, mut pairs: Pairs, reads: u64) -> Result<()> {
        let mut session = self.store.session()?;
        let mut read = session.snapshot()?;
        for _ in 0..reads {
            let (drawn, value) = pairs.next();
            let same = read.get(&self.table, &key(&drawn), |row| row.bytes(1) == value)?;
            if same != Some(true) {
                return Err(Error::Data(format!("a key reads as {same:?}, not as the value that was written")));
            }
        }
        read.finish()
    }

    fn ranges(&self, ranges: u64) -> Result<()> {
        let mut session = self.store.session()?;
        let (mut read, mut pairs) = (session.snapshot()?, Pairs::new());
        for _ in 0..ranges {
            let (drawn, _) = pairs.next();
            let scan = Scan { from: Some(ValueRef::Bytes(&drawn)), limit: RANGE_PAIRS, ..Scan::all() };
            read.scan(&self.table, &scan, |row| {
                std::hint::black_box(row.bytes(1));
                ControlFlow::Continue(())
            })?;
        }
        read.finish()
    }

    fn read_by(&self, shards: Vec<Pairs>, reads: u64) -> Result<()> {
        std::thread::scope(|scope| {
            let reader = |pairs| scope.spawn(move || self.read(pairs, reads));
            let threads: Vec<_> = shards.into_iter().map(reader).collect();
            let died = || Error::Data("a reader panicked".into());
            threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| died())?)
        })
    }

    fn remove(&self, removals: u64) -> Result<()> {
        let (mut session, mut pairs) = (self.store.session()?, Pairs::new());
        let mut txn = session.begin()?;
        for _ in 0..removals {
            let (drawn, _) = pairs.next();
            if !txn.delete(&self.table, &key(&drawn))? {
                return Err(Error::Data("a key to remove is not there".into()));
            }
        }
        txn.finish()
    }
}
