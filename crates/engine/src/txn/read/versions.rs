//! The versions of a row: the newest one, and the walk back to the visible one.
//!
//! Rules
//! 1. A row is copied under its leaf's latch; undo pages and overflow pages are read after the latch is released.
//! 2. Undo records of versions that an open view does not see cannot be purged, and neither can records without which a
//!    visible version could not be built. So a walk that stops at the first visible version never meets a purged
//!    record.
//! 3. A reader of an overflow row's newest version without a lock or a view on it checks afterwards that the row is
//!    still the same: a rollback or purge may have freed the chain meanwhile.

use super::view::ReadView;
use crate::btree::{LeafPosition, Seek};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::row::format::{ROW_HEADER_BYTES, RowHeader};
use crate::txn::expiry::is_expired;
use crate::txn::overflow_columns::{Wanted, load};
use crate::txn::table_trees::TableTrees;
use crate::types::{RollPtr, TxnId};
use crate::undo::record::UndoKind;
use crate::undo::{place_of, with_record};

/// The reader's part in a walk through versions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visibility<'v> {
    pub(crate) view: &'v ReadView,
    /// The reader's transaction id, or 0.
    pub(crate) own: TxnId,
}

impl Visibility<'_> {
    /// Whether a version of `trx_id` is visible.
    #[inline]
    pub(crate) fn sees(&self, trx_id: TxnId) -> bool {
        self.view.sees(trx_id) || (trx_id == self.own && self.own != TxnId(0))
    }
}

/// A row by its key, as its tree stores it.
#[derive(Clone, Copy)]
pub(crate) struct StoredRow<'a> {
    pub(crate) ctx: &'a Context,
    pub(crate) table: &'a dyn TableTrees,
    pub(crate) key: &'a [u8],
    /// The columns that are read if they are on overflow pages.
    pub(crate) wanted: Wanted<'a>,
    /// The position of its leaf, if that was looked up in advance.
    pub(crate) way: Option<LeafPosition>,
    /// The time by which it is expired (`txn/expiry.rs`); `None`: it does not expire.
    pub(crate) now: Option<i64>,
}

impl<'a> StoredRow<'a> {
    /// A whole row that was not looked for yet.
    #[inline]
    pub(crate) fn new(ctx: &'a Context, table: &'a dyn TableTrees, key: &'a [u8]) -> StoredRow<'a> {
        StoredRow { ctx, table, key, wanted: Wanted::ALL, way: None, now: None }
    }
}

impl StoredRow<'_> {
    /// Copies the newest version: its header, and its stored payload into `out`.
    pub(crate) fn newest(&self, out: &mut Vec<u8>) -> Result<Option<RowHeader>> {
        let tree = self.table.clustered();
        let leaf = match self.way.and_then(|way| tree.leaf_of(self.ctx, way)) {
            Some(leaf) => leaf,
            None => tree.leaf(self.ctx, Seek::Covers(self.key))?,
        };
        let Ok(slot) = leaf.search(self.key) else { return Ok(None) };
        let value = leaf.value(slot);
        let header = RowHeader::decode(value)?;
        out.clear();
        out.extend_from_slice(&value[ROW_HEADER_BYTES..]);
        Ok(Some(header))
    }

    /// The visible version; its payload replaces `out`.
    pub(crate) fn visible(&self, visibility: Visibility<'_>, out: &mut Vec<u8>) -> Result<VersionWalk> {
        match self.newest(out)? {
            Some(mut header) => self.visible_version(visibility, &mut header, out),
            None => Ok(VersionWalk::default()),
        }
    }

    /// The newest version, committed or not; its payload replaces `out`. Returns whether the row exists.
    pub(crate) fn uncommitted(&self, out: &mut Vec<u8>) -> Result<bool> {
        loop {
            let Some(newest) = self.newest(out)? else { return Ok(false) };
            if newest.is_delete_marked() || is_expired(self.table, &newest, out, self.now)? {
                return Ok(false);
            }
            if self.resolve_unlocked(&newest, &newest, out)? {
                return Ok(true);
            }
        }
    }

    /// Replaces the payload of `version` by its row, if columns of it are on overflow pages. False: the newest version
    /// is no longer `newest`, what was read may be anything, start again.
    pub(crate) fn resolve_unlocked(
        &self,
        newest: &RowHeader,
        version: &RowHeader,
        payload: &mut Vec<u8>,
    ) -> Result<bool> {
        if !version.is_overflow() {
            return Ok(true);
        }
        let read = self.resolve(version, payload);
        let leaf = self.table.clustered().leaf(self.ctx, Seek::Covers(self.key))?;
        let same = match leaf.search(self.key) {
            Ok(slot) => RowHeader::decode(leaf.value(slot))? == *newest,
            Err(_) => false,
        };
        drop(leaf);
        if same { read.map(|()| true) } else { Ok(false) }
    }

    /// See [`resolve`]; nothing frees the overflow pages of this version meanwhile.
    pub(crate) fn resolve(&self, version: &RowHeader, payload: &mut Vec<u8>) -> Result<()> {
        resolve(self.ctx, self.table, self.wanted, version, payload)
    }

    /// Walks from a version (header and stored payload) to the first visible one and reads its overflow pages.
    pub(crate) fn visible_version(
        &self,
        visibility: Visibility<'_>,
        header: &mut RowHeader,
        payload: &mut Vec<u8>,
    ) -> Result<VersionWalk> {
        let mut steps = 0;
        while !visibility.sees(header.trx_id) {
            if !step_back(self.ctx, self.key, header, payload)? {
                return Ok(VersionWalk { exists: false, steps });
            }
            steps += 1;
        }
        let exists = !header.is_delete_marked() && !is_expired(self.table, header, payload, self.now)?;
        let walk = VersionWalk { exists, steps };
        if walk.exists {
            self.resolve(header, payload)?;
        }
        Ok(walk)
    }
}

/// Replaces the payload by its row, with the requested columns on overflow pages.
#[inline]
pub(crate) fn resolve(
    ctx: &Context,
    table: &dyn TableTrees,
    wanted: Wanted<'_>,
    version: &RowHeader,
    payload: &mut Vec<u8>,
) -> Result<()> {
    if version.is_overflow() { load(ctx, table, wanted, payload).map(drop) } else { Ok(()) }
}

/// Turns a version (header and stored payload) into the previous one. False if there is none.
pub(crate) fn step_back(ctx: &Context, key: &[u8], header: &mut RowHeader, payload: &mut Vec<u8>) -> Result<bool> {
    if header.roll_ptr == RollPtr::NONE {
        return Ok(false);
    }
    let place = place_of(header.roll_ptr);
    ctx.stats.mvcc_versions_traversed.inc();
    with_record(ctx, place, |record| {
        let (_, recorded_key) = record.row()?;
        if recorded_key != key {
            return Err(Error::corrupt_page(place.page, "a row points to the undo record of another one"));
        }
        if record.kind == UndoKind::Insert {
            return Ok(false);
        }
        let change = record.change()?;
        if record.kind == UndoKind::Update {
            change.apply(payload)?;
        }
        *header = change.old;
        Ok(true)
    })
}

/// The result of a walk to a visible version.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VersionWalk {
    /// Whether the row exists there.
    pub(crate) exists: bool,
    /// Number of newer versions passed.
    pub(crate) steps: usize,
}
