//! redb.
//!
//! Rules
//! 1. A tree is a table. One transaction writes at a time; each statement opens its table, as the crate's API asks: a
//!    snapshot keeps those that it opened.
//! 2. Durable is `Durability::Immediate`. Relaxed is `Durability::None` with an immediate commit every second.

use crate::failure::failed;
use crate::kv::{Kv, KvClient, KvRead, KvWrite, Range};
use crate::settings::{EverySecond, Settings};
use highwater_bench::Result;
use redb::{
    Database, Durability, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition,
    WriteTransaction,
};
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;

type Definition<'n> = TableDefinition<'n, &'static [u8], &'static [u8]>;
type OpenTable = ReadOnlyTable<&'static [u8], &'static [u8]>;

fn redb(error: impl std::fmt::Display) -> highwater_bench::Error {
    failed("redb", error)
}

/// An open database.
#[derive(Clone)]
pub(crate) struct Redb {
    db: Arc<Database>,
    durability: Durability,
    syncs: Option<Arc<EverySecond>>,
}

/// Commits nothing, durably, and with it what was committed before.
fn sync(db: &Database) -> Result<()> {
    let mut txn = db.begin_write().map_err(redb)?;
    txn.set_durability(Durability::Immediate).map_err(redb)?;
    txn.commit().map_err(redb)
}

impl Kv for Redb {
    type Tree = Arc<str>;
    type Client = Client;

    fn open(folder: &Path, settings: &Settings) -> Result<Redb> {
        std::fs::create_dir_all(folder).map_err(redb)?;
        let mut builder = Database::builder();
        builder.set_cache_size(settings.cache_bytes as usize);
        let db = Arc::new(builder.create(folder.join("redb")).map_err(redb)?);
        let synced = db.clone();
        let syncs = (!settings.durable).then(|| EverySecond::start(move || sync(&synced)));
        let durability = if settings.durable { Durability::Immediate } else { Durability::None };
        Ok(Redb { db, durability, syncs: syncs.map(Arc::new) })
    }

    fn tree(&self, name: &str) -> Result<Arc<str>> {
        let txn = self.db.begin_write().map_err(redb)?;
        txn.open_table(Definition::new(name)).map(drop).map_err(redb)?;
        txn.commit().map_err(redb)?;
        Ok(name.into())
    }

    fn client(&self) -> Result<Client> {
        Ok(Client { db: self.db.clone(), durability: self.durability })
    }

    fn close(self) -> Result<()> {
        drop(self.syncs);
        sync(&self.db)
    }

    fn version() -> String {
        env!("VERSION_REDB").into()
    }
}

/// One thread's access.
pub(crate) struct Client {
    db: Arc<Database>,
    durability: Durability,
}

impl KvClient for Client {
    type Tree = Arc<str>;
    type Write<'c> = Write;
    type Read<'c> = Read;

    fn write(&mut self) -> Result<Write> {
        let mut txn = self.db.begin_write().map_err(redb)?;
        txn.set_durability(self.durability).map_err(redb)?;
        Ok(Write(txn))
    }

    fn read(&mut self) -> Result<Read> {
        Ok(Read { txn: self.db.begin_read().map_err(redb)?, open: Vec::new() })
    }
}

/// A snapshot.
pub(crate) struct Read {
    txn: ReadTransaction,
    open: Vec<(Arc<str>, OpenTable)>,
}

impl Read {
    fn table(&mut self, tree: &Arc<str>) -> Result<&OpenTable> {
        let at = match self.open.iter().position(|(name, _)| Arc::ptr_eq(name, tree)) {
            Some(at) => at,
            None => {
                let table = self.txn.open_table(Definition::new(tree)).map_err(redb)?;
                self.open.push((tree.clone(), table));
                self.open.len() - 1
            }
        };
        Ok(&self.open[at].1)
    }
}

pub(crate) struct Write(WriteTransaction);

fn scan(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    range: &Range<'_>,
    mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
) -> Result<()> {
    let to = if range.to.is_empty() { Bound::Unbounded } else { Bound::Excluded(range.to) };
    let mut entries = table.range::<&[u8]>((Bound::Included(range.from), to)).map_err(redb)?;
    while let Some(entry) = if range.reverse { entries.next_back() } else { entries.next() } {
        let (key, value) = entry.map_err(redb)?;
        if visit(key.value(), value.value()).is_break() {
            break;
        }
    }
    Ok(())
}

impl KvRead for Read {
    type Tree = Arc<str>;

    fn get<R>(&mut self, tree: &Arc<str>, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        Ok(self.table(tree)?.get(key).map_err(redb)?.map(|found| look(found.value())))
    }

    fn scan(
        &mut self,
        tree: &Arc<str>,
        range: &Range<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        scan(self.table(tree)?, range, visit)
    }

    fn finish(self) -> Result<()> {
        Ok(())
    }
}

impl KvRead for Write {
    type Tree = Arc<str>;

    fn get<R>(&mut self, tree: &Arc<str>, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let table = self.0.open_table(Definition::new(tree)).map_err(redb)?;
        let found = table.get(key).map_err(redb)?;
        Ok(found.map(|found| look(found.value())))
    }

    fn scan(
        &mut self,
        tree: &Arc<str>,
        range: &Range<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        scan(&self.0.open_table(Definition::new(tree)).map_err(redb)?, range, visit)
    }

    fn finish(self) -> Result<()> {
        self.0.commit().map_err(redb)
    }
}

impl KvWrite for Write {
    fn put(&mut self, tree: &Arc<str>, key: &[u8], value: &[u8]) -> Result<()> {
        let mut table = self.0.open_table(Definition::new(tree)).map_err(redb)?;
        table.insert(key, value).map(drop).map_err(redb)
    }

    fn delete(&mut self, tree: &Arc<str>, key: &[u8]) -> Result<()> {
        let mut table = self.0.open_table(Definition::new(tree)).map_err(redb)?;
        table.remove(key).map(drop).map_err(redb)
    }

    fn rollback(self) -> Result<()> {
        self.0.abort().map_err(redb)
    }
}
