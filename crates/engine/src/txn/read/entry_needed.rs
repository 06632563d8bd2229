//! Which entries the versions of a row still need.

use super::view::ReadView;
use crate::context::Context;
use crate::error::Result;
use crate::txn::read::{resolve, resolve_unlocked, step_back, stored_row};
use crate::txn::stored::RowHeader;
use crate::txn::table_trees::TableTrees;

/// An entry of a row, and the view that bounds which versions anybody may still see: the first version it sees is the
/// oldest of them.
#[derive(Clone, Copy)]
pub(crate) struct EntryOf<'a> {
    pub(crate) rows: &'a dyn TableTrees,
    pub(crate) i: usize,
    pub(crate) key: &'a [u8],
    pub(crate) entry: &'a [u8],
    pub(crate) purge_view: &'a ReadView,
}

impl EntryOf<'_> {
    fn is_of(&self, row: &[u8]) -> bool {
        let mut entry = Vec::new();
        self.rows.entry(self.i, self.key, row, &mut entry);
        entry == self.entry
    }

    /// Whether any version of the row that may still be seen has the entry. Nothing need be locked.
    pub(crate) fn is_needed(&self, ctx: &Context) -> Result<bool> {
        let (mut payload, mut row) = (Vec::new(), Vec::new());
        'newest: loop {
            let Some(newest) = stored_row(ctx, self.rows, self.key, &mut payload)? else { return Ok(false) };
            let mut version = newest;
            loop {
                if !version.is_delete_marked() {
                    row.clone_from(&payload);
                    if !resolve_unlocked(ctx, self.rows, self.key, &newest, &version, &mut row)? {
                        continue 'newest;
                    }
                    if self.is_of(&row) {
                        return Ok(true);
                    }
                }
                if self.purge_view.sees(version.trx_id) || !step_back(ctx, self.key, &mut version, &mut payload)? {
                    return Ok(false);
                }
            }
        }
    }

    /// As [`EntryOf::is_needed`], for a version (header and stored payload) and those before it, of a row that the caller
    /// has locked, while the purge view is held.
    pub(crate) fn is_needed_from(&self, ctx: &Context, mut version: RowHeader, mut payload: Vec<u8>) -> Result<bool> {
        loop {
            if !version.is_delete_marked() {
                let mut row = payload.clone();
                resolve(ctx, &version, &mut row)?;
                if self.is_of(&row) {
                    return Ok(true);
                }
            }
            if self.purge_view.sees(version.trx_id) || !step_back(ctx, self.key, &mut version, &mut payload)? {
                return Ok(false);
            }
        }
    }
}
