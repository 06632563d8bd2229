//! LMDB, through heed.
//!
//! Rules
//! 1. A tree is a named database. One transaction writes at a time; readers read the map in place.
//! 2. Durable is LMDB's default. Relaxed is `MDB_NOSYNC` with a sync every second: a power cut in between may damage
//!    the file, not only lose commits; LMDB has nothing between the two.
//! 3. It has no cache of its own. Where data are larger than memory read-ahead is off, as its documentation advises.

use crate::failure::failed;
use crate::kv::{Kv, KvClient, KvRead, KvWrite, Range};
use crate::settings::{EverySecond, Settings};
use heed::types::Bytes;
use heed::{AnyTls, Database, Env, EnvFlags, EnvOpenOptions, MdbError, PutFlags, RoTxn, RwTxn, WithTls};
use highwater_bench::Result;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;

/// Address space for the map; the file grows as it is filled.
const MAP_BYTES: usize = 256 << 30;
const TREES: u32 = 64;

type Tree = Database<Bytes, Bytes>;

fn lmdb(error: impl std::fmt::Display) -> highwater_bench::Error {
    failed("lmdb", error)
}

/// An open environment.
#[derive(Clone)]
pub(crate) struct Lmdb {
    env: Env<WithTls>,
    syncs: Option<Arc<EverySecond>>,
}

impl Kv for Lmdb {
    type Tree = Tree;
    type Client = Client;

    fn open(folder: &Path, settings: &Settings) -> Result<Lmdb> {
        std::fs::create_dir_all(folder).map_err(lmdb)?;
        let mut flags = EnvFlags::empty();
        flags.set(EnvFlags::NO_SYNC, !settings.durable);
        flags.set(EnvFlags::NO_READ_AHEAD, settings.beyond_memory);
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES).max_dbs(TREES).max_readers(settings.clients as u32 + 64);
        // SAFETY: no other process uses the folder, and the flags are ones that LMDB documents for one process.
        let env = unsafe { options.flags(flags).open(folder) }.map_err(lmdb)?;
        let synced = env.clone();
        let syncs = (!settings.durable).then(|| EverySecond::start(move || synced.force_sync().map_err(lmdb)));
        Ok(Lmdb { env, syncs: syncs.map(Arc::new) })
    }

    fn tree(&self, name: &str) -> Result<Tree> {
        let mut txn = self.env.write_txn().map_err(lmdb)?;
        let tree = self.env.create_database(&mut txn, Some(name)).map_err(lmdb)?;
        txn.commit().map_err(lmdb)?;
        Ok(tree)
    }

    fn client(&self) -> Result<Client> {
        Ok(Client { env: self.env.clone() })
    }

    fn close(self) -> Result<()> {
        drop(self.syncs);
        self.env.force_sync().map_err(lmdb)?;
        self.env.prepare_for_closing().wait();
        Ok(())
    }

    fn version() -> String {
        let version = heed::lmdb_version();
        format!("{}.{}.{}", version.major, version.minor, version.patch)
    }
}

/// One thread's access.
pub(crate) struct Client {
    env: Env<WithTls>,
}

impl KvClient for Client {
    type Tree = Tree;
    type Write<'c> = Write<'c>;
    type Read<'c> = Read<'c>;

    fn write(&mut self) -> Result<Write<'_>> {
        Ok(Write(self.env.write_txn().map_err(lmdb)?))
    }

    fn read(&mut self) -> Result<Read<'_>> {
        Ok(Read(self.env.read_txn().map_err(lmdb)?))
    }
}

/// A snapshot.
pub(crate) struct Read<'c>(RoTxn<'c, WithTls>);

/// The transaction that writes.
pub(crate) struct Write<'c>(RwTxn<'c>);

fn get<R>(txn: &RoTxn<'_, AnyTls>, tree: &Tree, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
    Ok(tree.get(txn, key).map_err(lmdb)?.map(look))
}

fn scan(
    txn: &RoTxn<'_, AnyTls>,
    tree: &Tree,
    range: &Range<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> Result<()> {
    // LMDB knows no empty key.
    let from = if range.from.is_empty() { Bound::Unbounded } else { Bound::Included(range.from) };
    let to = if range.to.is_empty() { Bound::Unbounded } else { Bound::Excluded(range.to) };
    let bounds = (from, to);
    let mut each = |entry: heed::Result<(&[u8], &[u8])>| -> Result<ControlFlow<()>> {
        let (key, value) = entry.map_err(lmdb)?;
        Ok(visit(key, value))
    };
    if range.reverse {
        for entry in tree.rev_range(txn, &bounds).map_err(lmdb)? {
            if each(entry)?.is_break() {
                break;
            }
        }
        return Ok(());
    }
    for entry in tree.range(txn, &bounds).map_err(lmdb)? {
        if each(entry)?.is_break() {
            break;
        }
    }
    Ok(())
}

impl KvRead for Read<'_> {
    type Tree = Tree;

    fn get<R>(&mut self, tree: &Tree, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        get(&self.0, tree, key, look)
    }

    fn scan(
        &mut self,
        tree: &Tree,
        range: &Range<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        scan(&self.0, tree, range, visit)
    }

    fn finish(self) -> Result<()> {
        Ok(())
    }
}

impl KvRead for Write<'_> {
    type Tree = Tree;

    fn get<R>(&mut self, tree: &Tree, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        get(&self.0, tree, key, look)
    }

    fn scan(
        &mut self,
        tree: &Tree,
        range: &Range<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        scan(&self.0, tree, range, visit)
    }

    fn finish(self) -> Result<()> {
        self.0.commit().map_err(lmdb)
    }
}

impl KvWrite for Write<'_> {
    fn insert(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<bool> {
        match tree.put_with_flags(&mut self.0, PutFlags::NO_OVERWRITE, key, value) {
            Ok(()) => Ok(true),
            Err(heed::Error::Mdb(MdbError::KeyExist)) => Ok(false),
            Err(error) => Err(lmdb(error)),
        }
    }

    fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        tree.put(&mut self.0, key, value).map_err(lmdb)
    }

    fn delete(&mut self, tree: &Tree, key: &[u8]) -> Result<()> {
        tree.delete(&mut self.0, key).map(drop).map_err(lmdb)
    }

    fn rollback(self) -> Result<()> {
        self.0.abort();
        Ok(())
    }
}
