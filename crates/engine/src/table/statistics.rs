//! Statistics of a table for a planner, and their form in the catalog.

use super::definition::IndexDefinition;
use super::record::{Writer, decode};
use crate::error::Result;
use crate::types::IndexId;
use std::collections::BTreeMap;

/// Numbers of a table, estimated from samples ([`Database::analyze`](crate::Database::analyze)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableStatistics {
    /// Rows.
    pub rows: u64,
    /// Bytes of the pages that hold the rows.
    pub row_bytes: u64,
    /// Bytes of the pages of rows, or parts of rows, too large for a page.
    pub overflow_bytes: u64,
    /// The secondary indexes, in the order of the table's definition.
    pub indexes: Vec<IndexStatistics>,
}

/// Numbers of a secondary index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatistics {
    /// Its name.
    pub name: String,
    /// Bytes of its pages.
    pub bytes: u64,
    /// Number of distinct values of its first column, of its first two columns together, and so on.
    pub distinct: Vec<u64>,
}

/// The numbers of a table as the catalog keeps them: those of an index under its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredStatistics {
    pub(crate) sizes: StoredSizes,
    pub(crate) indexes: BTreeMap<IndexId, StoredIndexStatistics>,
}

/// Rows, bytes of their pages, and of overflow pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredSizes {
    pub(crate) rows: u64,
    pub(crate) row_bytes: u64,
    pub(crate) overflow_bytes: u64,
}

/// Stored statistics of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredIndexStatistics {
    pub(crate) bytes: u64,
    pub(crate) distinct: Vec<u64>,
}

impl StoredSizes {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Writer::new();
        [self.rows, self.row_bytes, self.overflow_bytes].into_iter().for_each(|n| out.u64(n));
        debug_assert_eq!(StoredSizes::decode(&out.0).ok(), Some(self), "sizes are not read as they are written");
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<StoredSizes> {
        decode("statistics of a table", bytes, |r| {
            Some(StoredSizes { rows: r.u64()?, row_bytes: r.u64()?, overflow_bytes: r.u64()? })
        })
    }
}

impl StoredIndexStatistics {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u64(self.bytes);
        out.u8(self.distinct.len() as u8);
        self.distinct.iter().for_each(|n| out.u64(*n));
        let read = StoredIndexStatistics::decode(&out.0).ok();
        debug_assert_eq!(read.as_ref(), Some(self), "statistics are not read as they are written");
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<StoredIndexStatistics> {
        decode("statistics of an index", bytes, |r| {
            let (bytes, columns) = (r.u64()?, r.u8()?);
            Some(StoredIndexStatistics { bytes, distinct: (0..columns).map(|_| r.u64()).collect::<Option<_>>()? })
        })
    }
}

impl StoredStatistics {
    /// The statistics with the names of the present indexes, without indexes that were created since.
    pub(crate) fn named<'i>(&self, indexes: impl Iterator<Item = (IndexId, &'i IndexDefinition)>) -> TableStatistics {
        let StoredSizes { rows, row_bytes, overflow_bytes } = self.sizes;
        let named = |(id, definition): (IndexId, &IndexDefinition)| {
            let StoredIndexStatistics { bytes, distinct } = self.indexes.get(&id)?.clone();
            Some(IndexStatistics { name: definition.name.clone(), bytes, distinct })
        };
        TableStatistics { rows, row_bytes, overflow_bytes, indexes: indexes.filter_map(named).collect() }
    }
}
