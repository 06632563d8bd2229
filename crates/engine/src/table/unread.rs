//! Columns of a row on overflow pages that are read on access, for the closure of `modify`.
//!
//! Rules
//! 1. The transaction has the row locked, and no latch is held: a column is read at the access, and its pages are not
//!    freed meanwhile.
//! 2. An access cannot fail. A column that cannot be read appears empty, and the change fails afterwards
//!    ([`UnreadColumns::check`]).

use crate::error::{Error, Result};
use crate::txn::Outside;
use std::sync::OnceLock;

/// The columns of one row that are read on access.
pub(crate) struct UnreadColumns<'o> {
    outside: &'o Outside<'o>,
    /// Each column's number, and its bytes once they are read.
    columns: Vec<(usize, OnceLock<Result<Vec<u8>>>)>,
}

impl<'o> UnreadColumns<'o> {
    pub(crate) fn new(outside: &'o Outside<'o>) -> UnreadColumns<'o> {
        UnreadColumns { outside, columns: outside.numbers().map(|number| (number.into(), OnceLock::new())).collect() }
    }

    /// All bytes of variable-length column `number`, of which the row itself has `first`.
    pub(super) fn column<'c>(&'c self, number: usize, first: &'c [u8]) -> &'c [u8] {
        let Some((_, bytes)) = self.columns.iter().find(|(of, _)| *of == number) else { return first };
        let read = || {
            let mut behind = Vec::new();
            self.outside.read(number as u16, &mut behind)?;
            Ok([first, &behind].concat())
        };
        bytes.get_or_init(read).as_deref().unwrap_or_default()
    }

    /// Returns the error of the first column that was accessed and could not be read.
    ///
    /// # Errors
    /// I/O, damage.
    pub(crate) fn check(self) -> Result<()> {
        let failed = |(_, bytes): (usize, OnceLock<Result<Vec<u8>>>)| bytes.into_inner().and_then(Result::err);
        self.columns.into_iter().find_map(failed).map_or(Ok(()), Err::<(), Error>)
    }
}
