//! fjall: its transactional database with one writer at a time.
//!
//! Rules
//! 1. Trees share a keyspace ([`prefixed`](super::prefixed)).
//! 2. Durable commits persist the journal with `SyncAll`. Relaxed ones go to the operating system, and the journal is
//!    synced every second.
//! 3. Of the cache a quarter is the memtable, the rest the block cache.

use super::prefixed::{self, Keys, Tree, within};
use crate::failure::failed;
use crate::kv::{Kv, KvClient, KvRead, KvWrite, Range};
use crate::settings::{EverySecond, Settings};
use fjall::{
    KeyspaceCreateOptions, PersistMode, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace, SingleWriterWriteTx,
    Snapshot,
};
use highwater_bench::Result;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Smallest limit of its journals that it takes.
const MIN_JOURNAL_BYTES: u64 = 64 << 20;

fn fjall(error: impl std::fmt::Display) -> highwater_bench::Error {
    failed("fjall", error)
}

/// An open database.
#[derive(Clone)]
pub(crate) struct Fjall {
    db: SingleWriterTxDatabase,
    keys: SingleWriterTxKeyspace,
    durable: bool,
    syncs: Option<Arc<EverySecond>>,
}

impl Kv for Fjall {
    type Tree = Tree;
    type Client = Client;

    fn open(folder: &Path, settings: &Settings) -> Result<Fjall> {
        let memtable = settings.memtable_bytes();
        let db = SingleWriterTxDatabase::builder(folder)
            .cache_size(settings.cache_bytes - memtable)
            .max_journaling_size((memtable * 4).max(MIN_JOURNAL_BYTES))
            .open()
            .map_err(fjall)?;
        // Of two memtables, the one that is being flushed and the one that is written to.
        let options = move || KeyspaceCreateOptions::default().max_memtable_size(memtable / 2);
        let keys = db.keyspace("rows", options).map_err(fjall)?;
        let synced = db.clone();
        let sync = move || synced.persist(PersistMode::SyncAll).map_err(fjall);
        let syncs = (!settings.durable).then(|| Arc::new(EverySecond::start(sync)));
        Ok(Fjall { db, keys, durable: settings.durable, syncs })
    }

    fn tree(&self, name: &str) -> Result<Tree> {
        let get = |key: &[u8]| Ok(self.keys.get(key).map_err(fjall)?.map(|value| value.to_vec()));
        prefixed::number(name, get, |key, value| self.keys.insert(key, value).map_err(fjall))
    }

    fn client(&self) -> Result<Client> {
        Ok(Client { fjall: Fjall { syncs: None, ..self.clone() }, buffers: Keys::default() })
    }

    fn close(self) -> Result<()> {
        drop(self.syncs);
        self.db.persist(PersistMode::SyncAll).map_err(fjall)
    }

    fn version() -> String {
        env!("VERSION_FJALL").into()
    }
}

/// One thread's access.
pub(crate) struct Client {
    fjall: Fjall,
    buffers: Keys,
}

impl KvClient for Client {
    type Tree = Tree;
    type Write<'c> = Write<'c>;
    type Read<'c> = Read<'c>;

    fn write(&mut self) -> Result<Write<'_>> {
        let mode = if self.fjall.durable { PersistMode::SyncAll } else { PersistMode::Buffer };
        let txn = self.fjall.db.write_tx().durability(Some(mode));
        Ok(Write { txn, keys: &self.fjall.keys, buffers: &mut self.buffers })
    }

    fn read(&mut self) -> Result<Read<'_>> {
        Ok(Read { snapshot: self.fjall.db.read_tx(), keys: &self.fjall.keys, buffers: &mut self.buffers })
    }
}

/// A snapshot.
pub(crate) struct Read<'c> {
    snapshot: Snapshot,
    keys: &'c SingleWriterTxKeyspace,
    buffers: &'c mut Keys,
}

/// The transaction that writes.
pub(crate) struct Write<'c> {
    txn: SingleWriterWriteTx<'c>,
    keys: &'c SingleWriterTxKeyspace,
    buffers: &'c mut Keys,
}

fn scan(
    read: &impl Readable,
    keys: &SingleWriterTxKeyspace,
    (from, to): (&[u8], &[u8]),
    reverse: bool,
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> Result<()> {
    let mut entries = read.range(keys, from..to);
    while let Some(entry) = if reverse { entries.next_back() } else { entries.next() } {
        let (key, value) = entry.into_inner().map_err(fjall)?;
        if visit(within(&key), &value).is_break() {
            break;
        }
    }
    Ok(())
}

impl KvRead for Read<'_> {
    type Tree = Tree;

    fn get<R>(&mut self, tree: &Tree, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let found = self.snapshot.get(self.keys, self.buffers.key(*tree, key)).map_err(fjall)?;
        Ok(found.map(|value| look(&value)))
    }

    fn scan(
        &mut self,
        tree: &Tree,
        range: &Range<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let bounds = self.buffers.range(*tree, range.from, range.to);
        scan(&self.snapshot, self.keys, bounds, range.reverse, visit)
    }

    fn finish(self) -> Result<()> {
        Ok(())
    }
}

impl KvRead for Write<'_> {
    type Tree = Tree;

    fn get<R>(&mut self, tree: &Tree, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let found = self.txn.get(self.keys, self.buffers.key(*tree, key)).map_err(fjall)?;
        Ok(found.map(|value| look(&value)))
    }

    fn scan(
        &mut self,
        tree: &Tree,
        range: &Range<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let bounds = self.buffers.range(*tree, range.from, range.to);
        scan(&self.txn, self.keys, bounds, range.reverse, visit)
    }

    fn finish(self) -> Result<()> {
        self.txn.commit().map_err(fjall)
    }
}

impl KvWrite for Write<'_> {
    fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.txn.insert(self.keys, self.buffers.key(*tree, key), value);
        Ok(())
    }

    fn delete(&mut self, tree: &Tree, key: &[u8]) -> Result<()> {
        self.txn.remove(self.keys, self.buffers.key(*tree, key));
        Ok(())
    }

    fn rollback(self) -> Result<()> {
        self.txn.rollback();
        Ok(())
    }
}
