//! Rows with columns on overflow pages: their references, and reads of these columns.
//!
//! ```text
//! payload with OVERFLOW   row | references | number of references u8
//! reference               number of a variable-length column u16, or REST | OverflowRef   (numbers ascend)
//! ```
//! In the row each column with a reference is empty; the chain has its bytes. (A reader appends the bytes of the chain
//! to those in the row.) With [`REST`], the last reference, the leaf has no row: the chain of that reference has it. So
//! the references can be decoded without the layout of rows.
//!
//! Rules
//! 1. The table selects the columns for chains ([`TableTrees::overflow_columns`]), among the columns that a change
//!    writes. The reference of an unchanged column is copied from the old version to the new one: its chain is neither
//!    read nor written, and belongs to both. Each change rewrites REST.
//! 2. The undo record of a change names the chains that the new version no longer has; that of a deletion names all.
//!    Purge frees these when no snapshot sees the previous version. Rollback frees the chains that the transaction has
//!    written.
//! 3. If an index that is younger than the row has an overflowed column, the next change of the row rewrites that
//!    column into the row. So the undo record of a change names the chains from which its moved entries are derived,
//!    and no other record frees them before.
//! 4. Only the functions that decode references may be called under a latch.

use super::overflow::{self, MAX_ROW_BYTES};
use super::table_trees::{ColumnRewrite, TableTrees};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::row::format::{OVERFLOW_REF_BYTES, OverflowRef};

/// Stands for a column: the chain has the row itself.
pub(crate) const REST: u16 = u16::MAX;
/// Bytes of one reference, and of their number.
pub(crate) const COLUMN_REF_BYTES: usize = 2 + OVERFLOW_REF_BYTES;
pub(crate) const COUNT_BYTES: usize = 1;

/// A column on overflow pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ColumnRef {
    /// Number of the variable-length column in its row, or [`REST`].
    pub number: u16,
    /// The chain with the bytes that the row does not have.
    pub chain: OverflowRef,
}

impl ColumnRef {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.chain.encode());
    }
}

/// The payload of an overflow row, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverflowRow<'p> {
    /// The row, as far as the leaf has it.
    pub row: &'p [u8],
    refs: &'p [u8],
}

impl<'p> OverflowRow<'p> {
    /// Takes a payload apart.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when there are no references after a row.
    pub(crate) fn decode(payload: &'p [u8]) -> Result<OverflowRow<'p>> {
        let wrong =
            || Error::Corrupt(format!("no references to overflow pages after a row of {} bytes", payload.len()));
        let (&count, front) = payload.split_last().ok_or_else(wrong)?;
        let row_bytes = front.len().checked_sub(usize::from(count) * COLUMN_REF_BYTES).filter(|_| count > 0);
        let (row, refs) = front.split_at(row_bytes.ok_or_else(wrong)?);
        let found = OverflowRow { row, refs };
        let (mut total, mut last) = (row.len(), None);
        for ColumnRef { number, chain } in found.refs() {
            if last >= Some(number) || chain.total_bytes == 0 || (number == REST && !row.is_empty()) {
                return Err(wrong());
            }
            (total, last) = (total + chain.total_bytes as usize, Some(number));
        }
        if total > MAX_ROW_BYTES {
            return Err(Error::Corrupt(format!("an overflow row of {total} bytes")));
        }
        Ok(found)
    }

    /// All references.
    pub(crate) fn refs(&self) -> impl Iterator<Item = ColumnRef> + 'p {
        self.refs.as_chunks::<COLUMN_REF_BYTES>().0.iter().map(|bytes| {
            let [low, high, chain @ ..] = bytes;
            ColumnRef { number: u16::from_le_bytes([*low, *high]), chain: OverflowRef::read(chain) }
        })
    }

    /// The chain of the whole row, if the leaf has no part of it.
    pub(crate) fn rest(&self) -> Option<OverflowRef> {
        self.refs().last().filter(|last| last.number == REST).map(|last| last.chain)
    }

    pub(crate) fn columns(&self) -> impl Iterator<Item = ColumnRef> + 'p {
        self.refs().filter(|column| column.number != REST)
    }
}

/// Bytes of this many references and their number.
pub(crate) const fn refs_bytes(count: usize) -> usize {
    count * COLUMN_REF_BYTES + COUNT_BYTES
}

/// Appends references, whose numbers ascend, to the row in front of them.
pub(crate) fn put_refs(refs: &[ColumnRef], out: &mut Vec<u8>) {
    debug_assert!(refs.is_sorted_by(|a, b| a.number < b.number), "references out of order: {refs:?}");
    debug_assert!((1..=usize::from(u8::MAX)).contains(&refs.len()), "a row has {} references", refs.len());
    debug_assert!(refs.iter().all(|column| column.chain.total_bytes > 0), "a chain of no bytes: {refs:?}");
    refs.iter().for_each(|column| column.put(out));
    out.push(refs.len() as u8);
}

/// Replaces `out` with the chains of the old version of a row that the new version does not have.
pub(crate) fn dropped_chains(old: &OverflowRow<'_>, new: Option<&OverflowRow<'_>>, out: &mut Vec<OverflowRef>) {
    let stays = |chain: OverflowRef| new.is_some_and(|new| new.refs().any(|column| column.chain == chain));
    out.clear();
    out.extend(old.refs().map(|column| column.chain).filter(|chain| !stays(*chain)));
}

/// Leaves the references to chains in `named` alone after a row; false if none is left, and no reference either.
pub(crate) fn retain_named(named: &[OverflowRef], payload: &mut Vec<u8>) -> Result<bool> {
    let stored = OverflowRow::decode(payload)?;
    let refs: Vec<ColumnRef> = stored.refs().filter(|column| named.contains(&column.chain)).collect();
    let row_bytes = stored.row.len();
    payload.truncate(row_bytes);
    if !refs.is_empty() {
        put_refs(&refs, payload);
    }
    Ok(!refs.is_empty())
}

/// The columns of a row that a reader needs completely.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'c> {
    /// By their position in the table; `None`: all.
    pub columns: Option<&'c [usize]>,
    /// The columns of these entries are needed too.
    pub entries: Entries,
}

/// Entries of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entries {
    None,
    /// The entry of one index.
    Of(usize),
    All,
}

impl Wanted<'_> {
    /// The whole row.
    pub(crate) const ALL: Wanted<'static> = Wanted { columns: None, entries: Entries::None };
    /// The columns of all entries of the row.
    pub(crate) const ENTRIES: Wanted<'static> = Wanted { columns: Some(&[]), entries: Entries::All };

    /// The columns of the entry of an index.
    pub(crate) const fn entry(i: usize) -> Wanted<'static> {
        Wanted { columns: Some(&[]), entries: Entries::Of(i) }
    }

    /// Whether no column on overflow pages is requested.
    pub(super) fn is_in_leaf(&self, table: &dyn TableTrees, stored: &OverflowRow<'_>) -> bool {
        !stored.refs().any(|column| column.number == REST || self.wants(table, stored.row, column.number))
    }

    /// Whether a column on overflow pages is requested; `row` is its row without them.
    fn wants(&self, table: &dyn TableTrees, row: &[u8], number: u16) -> bool {
        let is_named = |position| self.columns.is_none_or(|columns| columns.contains(&position));
        table.column_of(row, number).is_some_and(is_named)
            || match self.entries {
                Entries::None => false,
                Entries::Of(i) => table.entry_needs(i, row, number),
                Entries::All => (0..table.index_count()).any(|i| table.entry_needs(i, row, number)),
            }
    }
}

/// Replaces the payload of an overflow row by the row with the requested columns; the other columns have only their
/// bytes in the leaf. Returns the references of these others. The caller holds no latch.
pub(crate) fn load(
    ctx: &Context,
    table: &dyn TableTrees,
    wanted: Wanted<'_>,
    payload: &mut Vec<u8>,
) -> Result<Vec<ColumnRef>> {
    let mut out = Vec::new();
    let left = assemble(
        payload,
        |row, number| wanted.wants(table, row, number),
        &mut |chain, bytes| overflow::read(ctx, chain, bytes),
        &mut |row, column, out| table.rebuild_columns(row, column, out),
        &mut out,
    )?;
    *payload = out;
    Ok(left)
}

/// Replaces its buffer by the bytes of a chain.
pub(crate) type ReadChain<'f> = dyn FnMut(OverflowRef, &mut Vec<u8>) -> Result<()> + 'f;
/// [`TableTrees::rebuild_columns`].
pub(crate) type RebuildColumns<'f> = dyn FnMut(&[u8], &mut ColumnRewrite<'_>, &mut Vec<u8>) -> Result<()> + 'f;

/// Replaces `out` with the row of an overflow payload; columns that `wants` refuses have only their bytes in the
/// payload. Returns the references of these.
pub(crate) fn assemble(
    payload: &[u8],
    wants: impl Fn(&[u8], u16) -> bool,
    read: &mut ReadChain<'_>,
    rebuild: &mut RebuildColumns<'_>,
    out: &mut Vec<u8>,
) -> Result<Vec<ColumnRef>> {
    let stored = OverflowRow::decode(payload)?;
    let mut row = stored.row.to_vec();
    if let Some(rest) = stored.rest() {
        read(rest, &mut row)?;
    }
    let (wanted, left): (Vec<_>, Vec<_>) = stored.columns().partition(|column| wants(&row, column.number));
    let mut chains = Vec::with_capacity(wanted.len());
    for column in wanted {
        let mut bytes = Vec::new();
        read(column.chain, &mut bytes)?;
        chains.push((column.number, bytes));
    }
    if chains.is_empty() {
        *out = row;
        return Ok(left);
    }
    let mut missing = chains.len();
    let mut append = |number: u16, bytes: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(bytes);
        if let Some((_, chain)) = chains.iter().find(|(of, _)| *of == number) {
            out.extend_from_slice(chain);
            missing -= 1;
        }
    };
    rebuild(&row, &mut append, out)?;
    if missing > 0 {
        return Err(Error::Corrupt("a row has overflow pages for a column that it does not have".to_string()));
    }
    Ok(left)
}

/// The columns of an old row that a row closure did not get, as it sees them.
pub(crate) struct Outside<'o> {
    pub(super) ctx: &'o Context,
    pub(super) columns: &'o [ColumnRef],
    pub(super) kept: Vec<ColumnRef>,
}

impl Outside<'_> {
    /// Their numbers.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u16> + '_ {
        self.columns.iter().map(|column| column.number)
    }

    /// Replaces `out` with the bytes that the old row lacks of a column.
    ///
    /// # Errors
    /// I/O, damage.
    pub(crate) fn read(&self, number: u16, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        match self.columns.iter().find(|column| column.number == number) {
            Some(column) => overflow::read(self.ctx, column.chain, out),
            None => Ok(()),
        }
    }

    /// Whether a column, of which the old row has `first`, is `bytes`.
    ///
    /// # Errors
    /// I/O, damage; a column of another length is not read.
    pub(crate) fn is_same(&self, number: u16, first: &[u8], bytes: &[u8]) -> Result<bool> {
        let behind = bytes.strip_prefix(first).filter(|behind| {
            self.columns
                .iter()
                .any(|column| column.number == number && column.chain.total_bytes as usize == behind.len())
        });
        let (Some(behind), mut found) = (behind, Vec::new()) else { return Ok(false) };
        self.read(number, &mut found)?;
        Ok(found == behind)
    }

    /// Whether the new row does not keep all of them.
    pub(crate) fn is_changed(&self) -> bool {
        self.kept.len() < self.columns.len()
    }

    /// The new row has the column as the old one has it; with `new` as its number.
    pub(crate) fn keep(&mut self, old: u16, new: u16) {
        let column = self.columns.iter().find(|column| column.number == old);
        self.kept.extend(column.map(|column| ColumnRef { number: new, ..*column }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::PageNo;

    fn column(number: u16, total_bytes: u32) -> ColumnRef {
        ColumnRef { number, chain: OverflowRef { total_bytes, first: PageNo(u32::from(number) + 9), stamp: 77 } }
    }

    #[test]
    fn references_are_found_behind_a_row() {
        let mut payload = b"row".to_vec();
        let refs = [column(1, 5000), column(7, 80)];
        put_refs(&refs, &mut payload);
        assert_eq!(payload.len(), 3 + refs_bytes(2));
        let found = OverflowRow::decode(&payload).unwrap();
        assert_eq!((found.row, found.refs().collect::<Vec<_>>()), (&b"row"[..], refs.to_vec()));
        assert!(found.rest().is_none());
        let mut rest = Vec::new();
        put_refs(&[column(7, 80), column(REST, 900)], &mut rest);
        let other = OverflowRow::decode(&rest).unwrap();
        assert_eq!(other.rest(), Some(column(REST, 900).chain));
        assert_eq!(other.columns().collect::<Vec<_>>(), [column(7, 80)]);
        let mut dropped = Vec::new();
        dropped_chains(&found, Some(&other), &mut dropped);
        assert_eq!(dropped, [column(1, 5000).chain]);
        dropped_chains(&other, None, &mut dropped);
        assert_eq!(dropped.len(), 2);
        assert!(retain_named(&[column(7, 80).chain], &mut rest).unwrap());
        assert_eq!(OverflowRow::decode(&rest).unwrap().refs().collect::<Vec<_>>(), [column(7, 80)]);
        assert!(!retain_named(&[], &mut payload).unwrap());
        assert_eq!(payload, b"row");
    }

    #[test]
    fn what_are_no_references_is_refused() {
        let decodes = |row: &[u8], refs: &[ColumnRef], count: u8| {
            let mut payload = row.to_vec();
            refs.iter().for_each(|column| column.put(&mut payload));
            payload.push(count);
            OverflowRow::decode(&payload).is_ok()
        };
        assert!(OverflowRow::decode(&[]).is_err() && !decodes(b"row", &[], 0));
        assert!(decodes(b"", &[column(1, 5)], 1) && !decodes(b"", &[column(1, 5)], 2));
        assert!(!decodes(b"", &[column(1, 0)], 1), "an empty chain");
        assert!(!decodes(b"", &[column(2, 5), column(2, 5)], 2), "twice the same column");
        assert!(!decodes(b"r", &[column(REST, 5)], 1), "a row here and a row there");
        let half = (MAX_ROW_BYTES / 2) as u32;
        assert!(decodes(b"", &[column(1, half), column(2, half)], 2));
        assert!(!decodes(b"", &[column(1, half), column(2, half + 1)], 2), "a row that is too long");
    }
}
