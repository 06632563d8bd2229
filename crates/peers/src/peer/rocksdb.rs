//! RocksDB: its `TransactionDB`.
//!
//! Rules
//! 1. Trees share a column family ([`prefixed`](super::prefixed)), as MyRocks keeps its indexes.
//! 2. Locks are pessimistic: what is changed is read with `GetForUpdate`, the newest committed value; plain reads of a
//!    transaction see a snapshot that is taken at the first of them. A transaction that waits too long for a lock, or
//!    in a circle, may try again.
//! 3. Durable commits sync the write-ahead log, in groups. Relaxed ones write it to the operating system, and it is
//!    synced every second.
//! 4. Options are those of RocksDB's "Setup Options and Basic Tuning": Bloom filters, index and filters in the block
//!    cache, levels sized from the last one, LZ4 and at the bottom Zstandard. The block cache is the HyperClockCache,
//!    which `rocksdb/cache.h` recommends over the LRUCache. Of the cache a quarter is memtables.
//! 5. Index and filters are divided into blocks, as its "Partitioned Index Filters" says for a cache that is small
//!    against the data: the filter of a whole file is larger than a shard of the cache.
//!    It would be read at each look.

use super::prefixed::{self, Keys, Tree, within};
use crate::failure::{conflict, failed};
use crate::kv::{Kv, KvClient, KvRead, KvWrite, Range};
use crate::settings::{EverySecond, Settings};
use highwater_bench::Result;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, DBCompressionType, DBPinnableSlice, ErrorKind, Options, ReadOptions,
    SingleThreaded, SnapshotWithThreadMode, Transaction, TransactionDB, TransactionDBOptions, TransactionOptions,
    WriteOptions,
};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const BLOCK_BYTES: usize = 16 << 10;
const BLOOM_BITS: f64 = 10.0;
const METADATA_BLOCK_BYTES: usize = 4 << 10;
const SYNC_BYTES: u64 = 1 << 20;
const LOCK_WAIT_MS: i64 = 1000;
/// A `TransactionDB` keeps flushed memtables, so that a transaction can be checked against what was written since its
/// snapshot. These are not (rule 2). The least there is: 0 means as much as all memtables.
const MIN_HISTORY_BYTES: i64 = 1;

type Db = TransactionDB<SingleThreaded>;
type Snapshot<'c> = SnapshotWithThreadMode<'c, Db>;

fn rocksdb(error: rocksdb::Error) -> highwater_bench::Error {
    match error.kind() {
        ErrorKind::Busy | ErrorKind::TimedOut | ErrorKind::TryAgain | ErrorKind::Expired => conflict(),
        _ => failed("rocksdb", error),
    }
}

fn options(settings: &Settings) -> Options {
    let memtables = settings.memtable_bytes();
    let mut blocks = BlockBasedOptions::default();
    // Of an entry's charge nothing is estimated: the cache's table grows as it needs.
    blocks.set_block_cache(&Cache::new_hyper_clock_cache((settings.cache_bytes - memtables) as usize, 0));
    blocks.set_block_size(BLOCK_BYTES);
    blocks.set_bloom_filter(BLOOM_BITS, false);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    blocks.set_partition_filters(true);
    blocks.set_metadata_block_size(METADATA_BLOCK_BYTES);
    blocks.set_pin_top_level_index_and_filter(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_max_background_jobs(std::thread::available_parallelism().map_or(2, |n| n.get().max(2)) as i32);
    options.set_bytes_per_sync(SYNC_BYTES);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    options.set_write_buffer_size((memtables / 2) as usize);
    options.set_max_write_buffer_number(2);
    options.set_max_write_buffer_size_to_maintain(MIN_HISTORY_BYTES);
    options
}

/// An open database.
#[derive(Clone)]
pub(crate) struct RocksDb {
    db: Arc<Db>,
    durable: bool,
    syncs: Option<Arc<EverySecond>>,
}

/// Writes the last assigned number again, synced, and so makes earlier commits durable.
fn sync(db: &Db) -> Result<()> {
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    db.put_opt(prefixed::name_key("synced"), b"", &synced).map_err(rocksdb)
}

impl Kv for RocksDb {
    type Tree = Tree;
    type Client = Client;

    fn open(folder: &Path, settings: &Settings) -> Result<RocksDb> {
        let mut locks = TransactionDBOptions::default();
        locks.set_default_lock_timeout(LOCK_WAIT_MS);
        locks.set_txn_lock_timeout(LOCK_WAIT_MS);
        let db = Arc::new(Db::open(&options(settings), &locks, folder).map_err(rocksdb)?);
        let synced = db.clone();
        let syncs = (!settings.durable).then(|| Arc::new(EverySecond::start(move || sync(&synced))));
        Ok(RocksDb { db, durable: settings.durable, syncs })
    }

    fn tree(&self, name: &str) -> Result<Tree> {
        let get = |key: &[u8]| self.db.get(key).map_err(rocksdb);
        prefixed::number(name, get, |key, value| self.db.put(key, value).map_err(rocksdb))
    }

    fn client(&self) -> Result<Client> {
        let mut writes = WriteOptions::default();
        writes.set_sync(self.durable);
        let mut transactions = TransactionOptions::default();
        transactions.set_deadlock_detect(true);
        Ok(Client { db: self.db.clone(), writes, transactions, buffers: Keys::default() })
    }

    fn close(self) -> Result<()> {
        drop(self.syncs);
        sync(&self.db)
    }

    fn version() -> String {
        env!("VERSION_ROCKSDB").into()
    }
}

/// One thread's access.
pub(crate) struct Client {
    db: Arc<Db>,
    writes: WriteOptions,
    transactions: TransactionOptions,
    buffers: Keys,
}

impl KvClient for Client {
    type Tree = Tree;
    type Write<'c> = Write<'c>;
    type Read<'c> = Read<'c>;

    fn write(&mut self) -> Result<Write<'_>> {
        let txn = self.db.transaction_opt(&self.writes, &self.transactions);
        Ok(Write { txn, db: &self.db, snapshot: None, buffers: &mut self.buffers })
    }

    fn read(&mut self) -> Result<Read<'_>> {
        let snapshot = self.db.snapshot();
        Ok(Read { reads: reading(&snapshot), db: &self.db, _snapshot: snapshot, buffers: &mut self.buffers })
    }
}

/// Options that read a snapshot. They hold its address only: they may not outlive it.
fn reading(snapshot: &Snapshot<'_>) -> ReadOptions {
    let mut reads = ReadOptions::default();
    reads.set_snapshot(snapshot);
    reads
}

/// A snapshot.
pub(crate) struct Read<'c> {
    reads: ReadOptions,
    db: &'c Db,
    _snapshot: Snapshot<'c>,
    buffers: &'c mut Keys,
}

/// A transaction that may write.
pub(crate) struct Write<'c> {
    txn: Transaction<'c, Db>,
    db: &'c Db,
    snapshot: Option<(ReadOptions, Snapshot<'c>)>,
    buffers: &'c mut Keys,
}

impl Write<'_> {
    fn snapshot(&mut self) -> &(ReadOptions, Snapshot<'_>) {
        let db = self.db;
        self.snapshot.get_or_insert_with(|| {
            let snapshot = db.snapshot();
            (reading(&snapshot), snapshot)
        })
    }
}

fn shown<R>(
    found: std::result::Result<Option<DBPinnableSlice<'_>>, rocksdb::Error>,
    look: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>> {
    Ok(found.map_err(rocksdb)?.map(|value| look(&value)))
}

/// Goes through the range of an iterator whose options have it as bounds. A transaction's iterator takes them for what
/// is committed only: what it wrote itself is found outside of them too.
fn run<D: rocksdb::DBAccess>(
    mut entries: rocksdb::DBRawIteratorWithThreadMode<'_, D>,
    (from, to): (&[u8], &[u8]),
    reverse: bool,
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> Result<()> {
    if reverse {
        entries.seek_for_prev(to);
        if entries.key() == Some(to) {
            entries.prev();
        }
    } else {
        entries.seek(from);
    }
    while let Some((key, value)) = entries.item() {
        if key < from || key >= to || visit(within(key), value).is_break() {
            return Ok(());
        }
        if reverse { entries.prev() } else { entries.next() }
    }
    entries.status().map_err(rocksdb)
}

fn bounded(mut reads: ReadOptions, (from, to): (&[u8], &[u8])) -> ReadOptions {
    reads.set_iterate_lower_bound(from);
    reads.set_iterate_upper_bound(to);
    reads
}

impl KvRead for Read<'_> {
    type Tree = Tree;

    fn get<R>(&mut self, tree: &Tree, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        shown(self.db.get_pinned_opt(self.buffers.key(*tree, key), &self.reads), look)
    }

    fn scan(
        &mut self,
        tree: &Tree,
        range: &Range<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let bounds = self.buffers.range(*tree, range.from, range.to);
        let entries = self.db.raw_iterator_opt(bounded(reading(&self._snapshot), bounds));
        run(entries, bounds, range.reverse, visit)
    }

    fn finish(self) -> Result<()> {
        Ok(())
    }
}

impl KvRead for Write<'_> {
    type Tree = Tree;

    fn get<R>(&mut self, tree: &Tree, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.snapshot();
        let Some((reads, _)) = &self.snapshot else { return Ok(None) };
        shown(self.txn.get_pinned_opt(self.buffers.key(*tree, key), reads), look)
    }

    fn get_for_update<R>(&mut self, tree: &Tree, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        shown(self.txn.get_pinned_for_update(self.buffers.key(*tree, key), true), look)
    }

    fn scan(
        &mut self,
        tree: &Tree,
        range: &Range<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let reads = if range.newest { ReadOptions::default() } else { reading(&self.snapshot().1) };
        let bounds = self.buffers.range(*tree, range.from, range.to);
        run(self.txn.raw_iterator_opt(bounded(reads, bounds)), bounds, range.reverse, visit)
    }

    fn finish(self) -> Result<()> {
        self.txn.commit().map_err(rocksdb)
    }
}

impl KvWrite for Write<'_> {
    fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.txn.put(self.buffers.key(*tree, key), value).map_err(rocksdb)
    }

    fn delete(&mut self, tree: &Tree, key: &[u8]) -> Result<()> {
        self.txn.delete(self.buffers.key(*tree, key)).map_err(rocksdb)
    }

    fn rollback(self) -> Result<()> {
        self.txn.rollback().map_err(rocksdb)
    }
}
