//! Options of the raw API's reads.

#[cfg(doc)]
use super::RawTable;
use crate::lock::{LockMode, LockWait};

/// Options of reads of rows.
#[derive(Clone, Debug, Default)]
pub struct RawRead {
    /// Whether rows are locked; [`LockMode::None`]: they are read as the transaction's level says.
    pub lock: LockMode,
    /// The behavior at locks of other transactions, if it overrides the transaction's.
    pub lock_wait: Option<LockWait>,
    /// Columns, by position, that will be asked for; `None`: all. Long columns that are not among them are not read.
    pub columns: Option<Vec<usize>>,
    /// Whether only keys and entries of a cursor are requested: then rows are read only where the index was changed
    /// lately.
    pub keys_only: bool,
    /// Whether a cursor over an index reads the rows of its entries only where it must: where the index lacks one of
    /// `columns` ([`RawTable::index_has`]), was changed lately, or rows are locked. Then a row that it reads may have
    /// these columns only. A cursor over the rows copies these columns of several rows at once, if it locks none.
    pub covering: bool,
}
