//! Which entries the versions of a row still need.

use super::versions::{StoredRow, resolve, step_back};
use super::view::ReadView;
use crate::error::Result;
use crate::txn::stored::RowHeader;

/// An entry of a row, and the view that bounds which versions may still be seen: the first version that this view sees
/// is the oldest of them.
#[derive(Clone, Copy)]
pub(crate) struct EntryOf<'a> {
    pub(crate) row: StoredRow<'a>,
    /// The index.
    pub(crate) i: usize,
    pub(crate) entry: &'a [u8],
    pub(crate) purge_view: &'a ReadView,
}

impl EntryOf<'_> {
    fn is_of(&self, row: &[u8]) -> bool {
        let mut entry = Vec::new();
        self.row.table.entry(self.i, self.row.key, row, &mut entry);
        entry == self.entry
    }

    /// Whether nobody needs what is older than this version: every snapshot sees it or a newer one, or the index was
    /// built from it or a newer one, so that no older snapshot reads by it.
    fn is_oldest(&self, version: &RowHeader) -> bool {
        self.purge_view.sees(version.trx_id) || self.row.table.is_before_index(self.i, version.trx_id)
    }

    /// Whether any version of the row that may still be seen has the entry. No lock is needed.
    pub(crate) fn is_needed(&self) -> Result<bool> {
        let (mut payload, mut row) = (Vec::new(), Vec::new());
        'newest: loop {
            let Some(newest) = self.row.newest(&mut payload)? else { return Ok(false) };
            let mut version = newest;
            loop {
                if !version.is_delete_marked() {
                    row.clone_from(&payload);
                    if !self.row.resolve_unlocked(&newest, &version, &mut row)? {
                        continue 'newest;
                    }
                    if self.is_of(&row) {
                        return Ok(true);
                    }
                }
                if self.is_oldest(&version) || !step_back(self.row.ctx, self.row.key, &mut version, &mut payload)? {
                    return Ok(false);
                }
            }
        }
    }

    /// As [`EntryOf::is_needed`], for a version (header and stored payload) and those before it, of a row that the
    /// caller has locked, while the purge view is held.
    pub(crate) fn is_needed_from(&self, mut version: RowHeader, mut payload: Vec<u8>) -> Result<bool> {
        loop {
            if !version.is_delete_marked() {
                let mut row = payload.clone();
                resolve(self.row.ctx, &version, &mut row)?;
                if self.is_of(&row) {
                    return Ok(true);
                }
            }
            if self.is_oldest(&version) || !step_back(self.row.ctx, self.row.key, &mut version, &mut payload)? {
                return Ok(false);
            }
        }
    }
}
