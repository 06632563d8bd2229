//! Tests of the transaction layer on real pages in memory: a database of one table of three columns.
//!
//! A row is `(key, (a, b, rest))`: `a` has an index, `b` a unique one in which empty counts as NULL. Columns hold no
//! zero byte, so an index column is stored as its bytes and a zero.

#[cfg(target_pointer_width = "64")]
mod active_model;
mod basics;
mod crash;
mod growth;
mod isolation;
mod levels;
mod model;
mod overflowing;
mod purging;
mod streams;
mod table;
mod threads;
#[cfg(target_pointer_width = "64")]
mod views_model;

use self::table::{OVERFLOW_SEGMENT, OneTable, Row, TestTable, row};
use super::*;
use crate::btree::{BTree, Seek};
use crate::config::Options;
use crate::db::open_parts::OpenParts;
use crate::error::{Error, Result};
use crate::lock::LockMode;
use crate::row::format::{EntryValue, ROW_HEADER_BYTES, RowHeader};
use crate::testing::{open, records, small_options};
use crate::types::{IndexId, PageNo, SegmentId};
use highwater_storage::{Device, StorageSet};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

const FIRST_SEGMENT: u32 = 50;
const TREES: usize = 3;

/// A database with the table.
pub(super) struct Db {
    pub(super) system: Arc<TxnSystem>,
    pub(super) table: Arc<TestTable>,
    pub(super) parts: OpenParts,
    roots: Vec<PageNo>,
}

impl Db {
    pub(super) fn new() -> Db {
        Db::with(StorageSet::memory(), small_options())
    }

    /// A new database in a storage set.
    pub(super) fn with(storage: StorageSet, options: Options) -> Db {
        let mut parts = open(storage, options);
        parts.start_threads().unwrap();
        let mut roots = Vec::new();
        for i in 0..TREES as u32 {
            parts.space.prepare(&parts.ctx).unwrap();
            let mut mtr = parts.ctx.mtr_with(4096, 1).unwrap();
            let (id, segment) = (IndexId(7 + i), SegmentId(FIRST_SEGMENT + i));
            roots.push(BTree::create(parts.space.clone(), &mut mtr, id, segment).unwrap().root());
            mtr.commit();
        }
        parts.space.prepare(&parts.ctx).unwrap();
        let mut mtr = parts.ctx.mtr_with(4096, 1).unwrap();
        TxnSystem::format(&parts.space, &mut mtr).unwrap();
        let lsn = mtr.commit();
        parts.ctx.log.flush_to(lsn).unwrap();
        Db::attach(parts, roots)
    }

    fn attach(parts: OpenParts, roots: Vec<PageNo>) -> Db {
        let tree = |(i, root): (usize, &PageNo)| {
            let i = i as u32;
            BTree::open(parts.space.clone(), IndexId(7 + i), SegmentId(FIRST_SEGMENT + i), *root)
        };
        let table = Arc::new(TestTable { trees: roots.iter().enumerate().map(tree).collect() });
        let system = Arc::new(TxnSystem::open(parts.ctx.clone(), parts.space.clone(), parts.changes.clone()).unwrap());
        let tables: Arc<dyn Tables> = Arc::new(OneTable(table.clone()));
        system.recover(&tables).unwrap();
        Db { system, table, parts, roots }
    }

    /// The database again, after the power was cut at this moment; what was not durable is lost as the seed says.
    pub(super) fn after_power_cut(&self, seed: u64) -> Db {
        self.opened_from(self.parts.storage().cut(seed))
    }

    fn opened_from(&self, storage: StorageSet) -> Db {
        let mut parts = open(storage, self.parts.options.clone());
        parts.start_threads().unwrap();
        Db::attach(parts, self.roots.clone())
    }

    /// The devices as they are, with nothing left to recover.
    fn flushed(&self) -> StorageSet {
        let ctx = &self.parts.ctx;
        ctx.log.flush_to(ctx.log.end_lsn()).unwrap();
        ctx.pool.flush_all().unwrap();
        ctx.log.checkpoint(ctx.log.end_lsn()).unwrap();
        self.parts.storage().cut(0)
    }

    /// The database again as it is, each device put through `wrap`.
    pub(super) fn reopened(&self, wrap: impl FnMut(Arc<dyn Device>) -> Arc<dyn Device>) -> Db {
        self.opened_from(self.flushed().map(wrap))
    }

    /// The database again as it is, from a device on which a byte of this page is wrong, and with no page in memory.
    pub(super) fn with_damaged(&self, page: PageNo) -> Db {
        let storage = self.flushed();
        let [data, _, doublewrite] = storage.memory_devices().unwrap();
        data.damage(|bytes| bytes[page.0 as usize * 4096 + 100] ^= 1);
        // Lest opening repairs the page from there.
        doublewrite.damage(|bytes| bytes[..4096].fill(0));
        self.opened_from(storage)
    }

    pub(super) fn begin(&self) -> Session {
        self.begin_with(TxnOptions::default())
    }

    pub(super) fn read_committed(&self) -> Session {
        self.begin_with(TxnOptions { isolation: Isolation::ReadCommitted, ..TxnOptions::default() })
    }

    pub(super) fn begin_with(&self, options: TxnOptions) -> Session {
        self.begin_as(options, Access::ReadWrite)
    }

    pub(super) fn begin_as(&self, options: TxnOptions, access: Access) -> Session {
        let txn = self.system.begin(&options, access).unwrap();
        Session { system: self.system.clone(), txn: Some(txn), table: self.table.clone() }
    }

    /// Commits these rows.
    pub(super) fn fill(&self, rows: &[(&str, Row)]) {
        let mut session = self.begin();
        for (key, row) in rows {
            session.insert(key, row).unwrap();
        }
        session.commit();
    }

    pub(super) fn purge_all(&self) {
        while self.system.purge_step(100).unwrap() > 0 {}
    }

    /// Every record of tree `i`, delete-marked ones too.
    pub(super) fn records(&self, i: usize) -> BTreeMap<Vec<u8>, Vec<u8>> {
        records(&self.parts, &self.table.trees[i])
    }

    /// Rows and live entries of the whole table, as the newest versions have it, checked against each other. With
    /// `purged`, also that nothing delete-marked is left.
    pub(super) fn check(&self, purged: bool) -> BTreeMap<Vec<u8>, Row> {
        let mut expected: [BTreeMap<Vec<u8>, Vec<u8>>; 2] = Default::default();
        let mut rows = BTreeMap::new();
        for (key, value) in self.records(0) {
            let header = RowHeader::decode(&value).unwrap();
            assert!(!purged || !header.is_delete_marked(), "row {key:?} is delete-marked after purge");
            if header.is_delete_marked() {
                continue;
            }
            let mut payload = value[ROW_HEADER_BYTES..].to_vec();
            super::read::resolve(&self.parts.ctx, &*self.table, Wanted::ALL, &header, &mut payload).unwrap();
            for (i, expected) in expected.iter_mut().enumerate() {
                let (mut entry, mut value) = (Vec::new(), Vec::new());
                let made = self.table.entry(i, &key, &payload, &mut entry).unwrap();
                super::write::put_entry_value(&*self.table, i, made, &payload, &mut value);
                expected.insert(entry, value);
            }
            rows.insert(key, Row::decode(&payload));
        }
        for (i, expected) in expected.iter().enumerate() {
            let mut live = BTreeMap::new();
            for (key, value) in self.records(i + 1) {
                let found = EntryValue::decode(&value, key.len()).unwrap();
                assert!(!purged || !found.delete_marked, "entry {key:?} is delete-marked after purge");
                if !found.delete_marked {
                    live.insert(key, value);
                }
            }
            assert_eq!(&live, expected, "index {i} against the rows");
        }
        rows
    }

    /// Used pages of the overflow segment.
    pub(super) fn overflow_pages(&self) -> usize {
        self.parts.space.pages_of(OVERFLOW_SEGMENT).len()
    }
}

/// A transaction on the table.
pub(super) struct Session {
    system: Arc<TxnSystem>,
    txn: Option<Box<Txn>>,
    table: Arc<TestTable>,
}

impl Session {
    pub(super) fn txn(&mut self) -> &mut Txn {
        self.txn.as_mut().unwrap()
    }

    pub(super) fn op<'a>(&'a mut self, key: &'a [u8]) -> RowOp<'a> {
        RowOp { system: &self.system, txn: self.txn.as_mut().unwrap(), table: &*self.table, key }
    }

    pub(super) fn insert(&mut self, key: &str, row: &Row) -> Result<()> {
        self.op(key.as_bytes()).insert(&row.encode())
    }

    pub(super) fn update(&mut self, key: &str, row: &Row) -> Result<bool> {
        self.op(key.as_bytes()).update(&mut |_, new, _| {
            new.extend_from_slice(&row.encode());
            Ok(true)
        })
    }

    /// Changes `a` alone: `rest` is kept as it is, also on overflow pages.
    pub(super) fn update_a(&mut self, key: &str, a: &str) -> Result<bool> {
        self.op(key.as_bytes()).update(&mut |old, new, outside| {
            new.extend_from_slice(&Row { a: a.into(), ..Row::decode(old) }.encode());
            if let Some(outside) = outside {
                outside.numbers().collect::<Vec<_>>().into_iter().for_each(|number| outside.keep(number, number));
            }
            Ok(true)
        })
    }

    pub(super) fn delete(&mut self, key: &str) -> Result<bool> {
        self.op(key.as_bytes()).delete()
    }

    pub(super) fn get(&mut self, key: &str) -> Option<Row> {
        self.get_with(key, LockMode::None).unwrap()
    }

    pub(super) fn get_with(&mut self, key: &str, lock: LockMode) -> Result<Option<Row>> {
        let mut out = Vec::new();
        Ok(self.op(key.as_bytes()).get(lock, Wanted::ALL, &mut out)?.then(|| Row::decode(&out)))
    }

    /// Keys a scan delivers.
    pub(super) fn scan(&mut self, options: &ScanOptions<'_>) -> Result<Vec<String>> {
        Ok(self.scan_rows(options)?.into_iter().map(|(key, _)| key).collect())
    }

    pub(super) fn scan_rows(&mut self, options: &ScanOptions<'_>) -> Result<Vec<(String, Row)>> {
        let mut cursor = self.cursor(options)?;
        let mut found = Vec::new();
        while self.next(&mut cursor)? {
            found.push((String::from_utf8(cursor.key().to_vec()).unwrap(), Row::decode(cursor.payload())));
        }
        Ok(found)
    }

    /// Keys of all rows.
    pub(super) fn keys(&mut self) -> Vec<String> {
        self.scan(&ScanOptions::default()).unwrap()
    }

    pub(super) fn cursor(&mut self, options: &ScanOptions<'_>) -> Result<RowCursor> {
        self.system.scan(self.txn.as_mut().unwrap(), self.table.clone(), options)
    }

    pub(super) fn next(&mut self, cursor: &mut RowCursor) -> Result<bool> {
        cursor.next(&self.system, self.txn.as_mut().unwrap())
    }

    /// Fixes the snapshot now instead of at the first read.
    pub(super) fn open_view(&mut self) {
        self.txn.as_mut().unwrap().open_view(&self.system);
    }

    pub(super) fn savepoint(&mut self) -> Savepoint {
        self.txn().savepoint()
    }

    pub(super) fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        self.system.rollback_to(self.txn.as_mut().unwrap(), savepoint)
    }

    pub(super) fn commit(self) {
        self.try_commit().unwrap();
    }

    pub(super) fn try_commit(mut self) -> Result<()> {
        self.system.commit(self.txn.take().unwrap())
    }

    pub(super) fn rollback(self) {
        self.try_rollback().unwrap();
    }

    pub(super) fn try_rollback(mut self) -> Result<()> {
        self.system.rollback(self.txn.take().unwrap())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(txn) = self.txn.take() {
            let _ = self.system.rollback(txn);
        }
    }
}

/// Bounds of the entries of index `i` whose column is `value`.
pub(super) fn entries_of(value: &str) -> (Vec<u8>, Vec<u8>) {
    let mut lower = value.as_bytes().to_vec();
    lower.push(0);
    let mut upper = value.as_bytes().to_vec();
    upper.push(1);
    (lower, upper)
}

pub(super) fn by(index: usize, range: &(Vec<u8>, Vec<u8>)) -> ScanOptions<'_> {
    ScanOptions {
        index: Some(index),
        lower: Bound::Included(&range.0),
        upper: Bound::Excluded(&range.1),
        ..ScanOptions::default()
    }
}

pub(super) fn is_duplicate(result: Result<()>) -> bool {
    matches!(result, Err(Error::DuplicateKey { .. }))
}

/// A statement running on a thread of its own, because it may wait for a lock.
pub(super) struct Running<R> {
    thread: std::thread::JoinHandle<(Session, R)>,
    system: Arc<TxnSystem>,
    holder: Arc<crate::lock::Holder>,
}

impl Session {
    /// Runs a statement on another thread.
    pub(super) fn run<R: Send + 'static>(
        mut self,
        statement: impl FnOnce(&mut Session) -> R + Send + 'static,
    ) -> Running<R> {
        let (system, holder) = (self.system.clone(), self.txn().holder.clone());
        let thread = std::thread::spawn(move || {
            let result = statement(&mut self);
            (self, result)
        });
        Running { thread, system, holder }
    }

    /// Runs a statement that has to wait.
    pub(super) fn run_blocked<R: Send + 'static>(
        self,
        statement: impl FnOnce(&mut Session) -> R + Send + 'static,
    ) -> Running<R> {
        let running = self.run(statement);
        running.await_block();
        running
    }
}

impl<R> Running<R> {
    pub(super) fn await_block(&self) {
        let give_up = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !self.system.locks.is_waiting(&self.holder) {
            assert!(std::time::Instant::now() < give_up, "the statement does not wait");
            assert!(!self.thread.is_finished(), "the statement did not wait");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    pub(super) fn finish(self) -> (Session, R) {
        self.thread.join().unwrap()
    }
}

/// A small generator of the tests' own, so that a seed means the same for ever.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}
