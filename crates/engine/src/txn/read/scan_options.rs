//! The options of a scan.

use crate::lock::{LockMode, LockWait};
use std::ops::Bound;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanOptions<'k> {
    /// Secondary index to follow; `None`: the rows in key order.
    pub index: Option<usize>,
    /// Bounds on the keys: of rows, or of entries (index columns, then the row's key).
    pub lower: Bound<&'k [u8]>,
    /// See `lower`.
    pub upper: Bound<&'k [u8]>,
    /// From the upper end down.
    pub reverse: bool,
    /// The lock mode of the rows.
    pub lock: LockMode,
    /// The behavior at locks of others, if it overrides the transaction's.
    pub lock_wait: Option<LockWait>,
    /// Whether each row is locked only when it is requested.
    pub one_by_one: bool,
    /// No more rows than this will be requested.
    pub limit: usize,
    /// Keys are requested, and no payloads (`scan.rs`, rule 4).
    pub keys_only: bool,
    /// Requested columns of the payloads; `None`: all.
    pub columns: Option<&'k [usize]>,
}

impl Default for ScanOptions<'_> {
    fn default() -> Self {
        ScanOptions {
            index: None,
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            reverse: false,
            lock: LockMode::None,
            lock_wait: None,
            one_by_one: false,
            limit: usize::MAX,
            keys_only: false,
            columns: None,
        }
    }
}
