//! What a planner wants to know of a table.

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
    /// How many different values its first column has, its first two columns together, and so on.
    pub distinct: Vec<u64>,
}
