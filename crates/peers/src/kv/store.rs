//! A key-value engine as a store of the bench.
//!
//! Rule: an index of a table that has rows is made as a user would make it who wants it fast: entries are sorted in
//! memory, as many as fit a quarter of the cache ([`sort_bytes`]), and put in order, in transactions of [`ENTRIES`].

use super::catalog::{Catalog, KvTable};
use super::transaction::{KvTxn, Scratch};
use super::{Kv, KvClient, KvRead, KvWrite, Range};
use crate::definition::Definition;
use crate::failure::failed;
use crate::layout::RowBytes;
use crate::settings::{Peer, Settings};
use highwater_bench::Result;
use highwater_bench::store::{IndexSpec, Session, Store, StoreStats, TableSpec};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Memory in which entries of an index are sorted, as much as Highwater takes for it.
fn sort_bytes(settings: &Settings) -> usize {
    (settings.cache_bytes / 4).clamp(1 << 20, 64 << 20) as usize
}

/// Entries of a transaction that makes an index.
const ENTRIES: usize = 5_000;

/// A key-value engine as a store.
pub(crate) struct KvStore<K: Kv> {
    kv: K,
    catalog: Arc<Catalog<K>>,
    sort_bytes: usize,
}

impl<K: Kv> Clone for KvStore<K> {
    fn clone(&self) -> KvStore<K> {
        KvStore { kv: self.kv.clone(), catalog: self.catalog.clone(), sort_bytes: self.sort_bytes }
    }
}

impl<K: Kv> Peer for KvStore<K> {
    fn open(folder: &Path, settings: &Settings) -> Result<KvStore<K>> {
        let kv = K::open(folder, settings)?;
        let catalog = Arc::new(Catalog::open(&kv)?);
        Ok(KvStore { kv, catalog, sort_bytes: sort_bytes(settings) })
    }

    fn close(self) -> Result<()> {
        drop(self.catalog);
        self.kv.close()
    }

    fn version() -> String {
        K::version()
    }
}

/// Sorted entries, one after another.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

impl Entries {
    /// Memory that they take.
    fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<(usize, usize)>()
    }

    fn put<K: Kv>(&mut self, client: &mut K::Client, tree: &K::Tree) -> Result<()> {
        let bytes = &self.bytes;
        self.ends.sort_unstable_by(|a, b| bytes[a.0..a.1].cmp(&bytes[b.0..b.1]));
        for part in self.ends.chunks(ENTRIES) {
            let mut txn = client.write()?;
            part.iter().try_for_each(|(start, end)| txn.put(tree, &bytes[*start..*end], b""))?;
            txn.finish()?;
        }
        self.bytes.clear();
        self.ends.clear();
        Ok(())
    }
}

impl<K: Kv> KvStore<K> {
    /// The engine.
    #[cfg(test)]
    pub(super) fn kv(&self) -> &K {
        &self.kv
    }

    /// Puts the entries of all rows into an index that is empty.
    fn fill(&self, table: &KvTable<K::Tree>, index: usize) -> Result<()> {
        let (mut client, mut entries) = (self.kv.client()?, Entries::default());
        let mut from = Vec::new();
        loop {
            let mut read = client.read()?;
            let mut last = None;
            let rest = Range { from: &from, to: b"", reverse: false, newest: false };
            read.scan(&table.rows, &rest, |key, value| {
                let start = entries.bytes.len();
                table.layout.push_entry(index, &RowBytes { layout: &table.layout, key, value }, &mut entries.bytes);
                entries.ends.push((start, entries.bytes.len()));
                if entries.memory_bytes() < self.sort_bytes {
                    return ControlFlow::Continue(());
                }
                last = Some(key.to_vec());
                ControlFlow::Break(())
            })?;
            read.finish()?;
            entries.put::<K>(&mut client, &table.entries[index])?;
            match last {
                Some(mut last) => {
                    last.push(0);
                    from = last;
                }
                None => return Ok(()),
            }
        }
    }
}

impl<K: Kv> Store for KvStore<K> {
    type Table = Arc<KvTable<K::Tree>>;
    type Session = KvSession<K>;

    fn create_table(&self, spec: &TableSpec) -> Result<Self::Table> {
        if self.catalog.find(&spec.name).is_some() {
            return Err(failed("table", format!("{} exists", spec.name)));
        }
        self.catalog.put(&self.kv, Definition::from(spec), Arc::default())
    }

    fn create_index(&self, table: &str, index: &IndexSpec) -> Result<()> {
        let old = self.catalog.find(table).ok_or_else(|| failed("index", format!("there is no table {table}")))?;
        let mut definition = old.definition.clone();
        definition.add_index(index.name, index.columns);
        let table = self.catalog.put(&self.kv, definition, old.next.clone())?;
        self.fill(&table, table.entries.len() - 1)
    }

    fn table(&self, name: &str) -> Result<Option<Self::Table>> {
        Ok(self.catalog.find(name))
    }

    fn session(&self) -> Result<KvSession<K>> {
        Ok(KvSession { client: self.kv.client()?, scratch: Scratch::default() })
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }
}

/// One client of a key-value engine.
pub(crate) struct KvSession<K: Kv> {
    client: K::Client,
    scratch: Scratch,
}

impl<K: Kv> Session for KvSession<K> {
    type Table = Arc<KvTable<K::Tree>>;
    type Txn<'s> = KvTxn<'s, <K::Client as KvClient>::Write<'s>>;
    type Snapshot<'s> = KvTxn<'s, <K::Client as KvClient>::Read<'s>>;

    fn begin(&mut self) -> Result<Self::Txn<'_>> {
        Ok(KvTxn::new(self.client.write()?, &mut self.scratch))
    }

    fn snapshot(&mut self) -> Result<Self::Snapshot<'_>> {
        Ok(KvTxn::new(self.client.read()?, &mut self.scratch))
    }
}
