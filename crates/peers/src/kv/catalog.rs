//! The tables of a key-value engine: described in its tree `catalog`, kept open in memory.
//!
//! Rule: one table is made at a time: engines assign the numbers of trees without a transaction.

use super::{Kv, KvClient, KvRead, KvWrite, Range};
use crate::definition::Definition;
use crate::failure::failed;
use crate::layout::Layout;
use highwater_bench::Result;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A table: its layout and its trees.
#[derive(Debug)]
pub(crate) struct KvTable<T> {
    pub(super) layout: Layout,
    pub(super) definition: Definition,
    pub(super) rows: T,
    /// A tree for each index of the layout.
    pub(super) entries: Vec<T>,
    /// The next number of the auto-increment column; 0 until it is known.
    pub(super) next: Arc<AtomicU64>,
}

/// The tables.
pub(super) struct Catalog<K: Kv> {
    tree: K::Tree,
    making: Mutex<()>,
    open: RwLock<BTreeMap<String, Arc<KvTable<K::Tree>>>>,
}

impl<K: Kv> Catalog<K> {
    /// Reads the catalog of a database.
    pub(super) fn open(kv: &K) -> Result<Catalog<K>> {
        let tree = kv.tree("catalog")?;
        let mut texts: Vec<Vec<u8>> = Vec::new();
        let mut client = kv.client()?;
        let mut read = client.read()?;
        let all = Range { from: b"", to: b"", reverse: false, newest: false };
        read.scan(&tree, &all, |_, value| {
            texts.push(value.to_vec());
            ControlFlow::Continue(())
        })?;
        read.finish()?;
        let catalog = Catalog { tree, making: Mutex::new(()), open: RwLock::default() };
        for text in texts {
            let definition = serde_json::from_slice(&text).map_err(|e| failed("catalog", e))?;
            catalog.keep(kv, definition, Arc::default())?;
        }
        Ok(catalog)
    }

    fn keep(&self, kv: &K, definition: Definition, next: Arc<AtomicU64>) -> Result<Arc<KvTable<K::Tree>>> {
        let layout = definition.layout()?;
        let name = layout.name.clone();
        let rows = kv.tree(&name)?;
        let entries = layout.indexes.iter().map(|index| kv.tree(&format!("{name}.{}", index.name)));
        let entries = entries.collect::<Result<_>>()?;
        let table = Arc::new(KvTable { layout, definition, rows, entries, next });
        self.open.write().insert(name, table.clone());
        Ok(table)
    }

    /// Writes a table's definition and opens it.
    pub(super) fn put(&self, kv: &K, definition: Definition, next: Arc<AtomicU64>) -> Result<Arc<KvTable<K::Tree>>> {
        let _one = self.making.lock();
        let table = self.keep(kv, definition, next)?;
        let text = serde_json::to_vec(&table.definition).map_err(|e| failed("catalog", e))?;
        let mut client = kv.client()?;
        let mut txn = client.write()?;
        txn.put(&self.tree, table.layout.name.as_bytes(), &text)?;
        txn.finish()?;
        Ok(table)
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<KvTable<K::Tree>>> {
        self.open.read().get(name).cloned()
    }
}
