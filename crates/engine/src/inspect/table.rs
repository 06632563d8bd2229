//! A table and its trees, as the catalog of a data file has them.
//!
//! Rule: they are made from the catalog's records alone; whether the pages are as these say is seen when they are read.

use crate::config::Collations;
use crate::table::catalog_entry::TableEntry;
use crate::table::covered::CoveredLayout;
use crate::table::definition::PRIMARY;
use crate::table::key::KeyLayout;
use crate::table::{RowLayouts, TableDefinition};
use crate::types::PageNo;

/// A tree of a table, as the catalog has it.
#[derive(Clone, Debug)]
pub struct RawTree {
    /// Its name; "PRIMARY" for the rows.
    pub name: String,
    /// Its number, which its pages carry.
    pub id: u32,
    /// Its segment.
    pub segment: u32,
    /// Its root page.
    pub root: PageNo,
    /// Whether two rows may have the same entry.
    pub unique: bool,
    /// The layout of the first part of its keys.
    pub key: KeyLayout,
    /// The layout of the covered columns of its entries.
    pub covered: CoveredLayout,
    /// Longest key that it takes.
    pub max_key_bytes: u16,
}

/// A table, as the catalog has it.
#[derive(Debug)]
pub struct RawTable {
    /// Its number, which undo records carry.
    pub id: u32,
    /// The definition.
    pub definition: TableDefinition,
    /// Owner of its overflow pages.
    pub overflow_segment: u32,
    /// No auto-increment number at or above this was given.
    pub auto_increment_bound: u64,
    /// Its trees, that of the rows first.
    pub trees: Vec<RawTree>,
    /// The layouts of its rows.
    pub layouts: RowLayouts,
}

/// The table of an entry of the catalog.
pub(super) fn raw_table(entry: TableEntry) -> RawTable {
    let layouts = RowLayouts::of_table(&entry);
    let TableEntry { id, record, definition, indexes, .. } = entry;
    let rows = RawTree {
        name: PRIMARY.to_string(),
        id: record.clustered.id.0,
        segment: record.clustered.segment.0,
        root: record.clustered.root,
        unique: true,
        covered: CoveredLayout::default(),
        max_key_bytes: record.clustered.max_key_bytes,
        key: KeyLayout::new(&definition, &definition.primary_key, &Collations::default()),
    };
    let secondary = indexes.iter().zip(&definition.indexes).map(|(index, positioned)| RawTree {
        name: positioned.name.clone(),
        id: index.tree.id.0,
        segment: index.tree.segment.0,
        root: index.tree.root,
        unique: positioned.unique,
        key: KeyLayout::new(&definition, &positioned.columns, &Collations::default()),
        covered: CoveredLayout::new(&definition, positioned),
        max_key_bytes: index.tree.max_key_bytes,
    });
    RawTable {
        id: id.0,
        trees: std::iter::once(rows).chain(secondary).collect(),
        layouts,
        overflow_segment: record.overflow.0,
        auto_increment_bound: record.auto_increment_bound,
        definition,
    }
}
