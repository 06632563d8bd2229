//! Visibility of entries: whether a version of a row that a snapshot may still read has an entry.
//!
//! Rules
//! 1. A check walks from a version of the row to the oldest visible one. A walk of more than [`SHORT_WALK`] versions is
//!    cached, so that many checks of one row walk its versions once (`entry_history.rs`).
//! 2. No thread reads a version of an active transaction that is not the row's newest. So rollback walks the versions
//!    of its own transaction only while they are few, and checks the versions below them, whose newest it finds once.

use super::entry_history::{Histories, MAX_ENTRIES};
use super::own_versions::{OwnVersions, Version};
use super::versions::{StoredRow, step_back};
use super::view::ReadView;
use crate::error::Result;
use crate::row::format::RowHeader;
use crate::txn::overflow_columns::Wanted;
use crate::types::{IndexId, TxnId};
use std::collections::HashSet;

/// Number of versions that a check walks through before it builds the row's history. (Few in tests, whose rows seldom
/// have many versions.)
const SHORT_WALK: usize = if cfg!(test) { 2 } else { 16 };

/// Rows whose version below a transaction's own is remembered.
const MAX_BASES: usize = 1 << 12;

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

/// The start of a walk.
struct Start<'v> {
    version: &'v Version,
    /// Whether the row is locked by the caller; otherwise the version was its newest, and may be so no longer.
    locked: bool,
}

/// The result of a walk.
enum Walked {
    Stopped,
    /// Behind the oldest version that may be seen.
    Ended,
    /// The row has changed: what was read may be anything.
    Changed,
}

/// The result for rollback: whether an entry is still needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needed {
    pub(crate) is_needed: bool,
    /// Whether the transaction's own versions were looked at.
    pub(crate) own_too: bool,
}

fn name_of(row: &StoredRow<'_>) -> (IndexId, Vec<u8>) {
    (row.table.clustered().id(), row.key.to_vec())
}

impl EntryOf<'_> {
    /// Whether no snapshot needs what is older than this version: every snapshot sees it or a newer one, or the index
    /// was built from it or a newer one, so that no older snapshot reads by it.
    fn is_oldest(&self, version: &RowHeader) -> bool {
        self.purge_view.sees(version.trx_id) || self.row.table.is_before_index(self.i, version.trx_id)
    }

    fn index(&self) -> IndexId {
        self.row.table.index(self.i).id()
    }

    /// Whether any version of the row that may still be seen has the entry. No lock is needed.
    pub(crate) fn is_needed(&self, histories: &mut Histories) -> Result<bool> {
        loop {
            let mut payload = Vec::new();
            let Some(header) = self.row.newest(&mut payload)? else { return Ok(false) };
            let start = Start { version: &Version { header, payload }, locked: false };
            if let Some(is_needed) = self.ask(&start, histories.under(self.purge_view))? {
                return Ok(is_needed);
            }
        }
    }

    /// Whether a version that may still be seen has the entry, of those from `version` on, to which transaction `own`
    /// takes the row back. The caller has locked the row and holds the purge view. The versions of `own` may be left
    /// out (rule 2).
    pub(crate) fn is_needed_from(&self, version: &Version, own: TxnId, rows: &mut OwnVersions) -> Result<Needed> {
        debug_assert_ne!(own, TxnId(0), "rule 2: versions of no transaction are passed");
        if version.header.trx_id != own {
            return Ok(Needed { is_needed: self.ask_locked(version, &mut rows.histories)?, own_too: true });
        }
        if let Some(is_needed) = self.ask_few(&Start { version, locked: true })?.flatten() {
            return Ok(Needed { is_needed, own_too: true });
        }
        let name = name_of(&self.row);
        if !rows.bases.contains_key(&name) {
            if rows.bases.len() == MAX_BASES {
                rows.bases.clear();
            }
            rows.bases.insert(name.clone(), self.base(version.clone(), own)?);
        }
        let is_needed = match rows.bases.get(&name).and_then(Option::as_ref) {
            Some(base) => self.ask_locked(base, &mut rows.histories)?,
            None => false,
        };
        Ok(Needed { is_needed, own_too: false })
    }

    /// The newest version that is not of transaction `own`.
    fn base(&self, Version { mut header, mut payload }: Version, own: TxnId) -> Result<Option<Version>> {
        while header.trx_id == own {
            if !step_back(self.row.ctx, self.row.key, &mut header, &mut payload)? {
                return Ok(None);
            }
        }
        Ok(Some(Version { header, payload }))
    }

    fn ask_locked(&self, version: &Version, histories: &mut Histories) -> Result<bool> {
        let answer = self.ask(&Start { version, locked: true }, histories.under(self.purge_view))?;
        Ok(answer.unwrap_or(true))
    }

    /// Whether a version from `start` on has the entry; `None` if the row has changed.
    fn ask(&self, start: &Start<'_>, histories: &mut Histories) -> Result<Option<bool>> {
        if !histories.has(self.index(), self.row.key) {
            match self.ask_few(start)? {
                None => return Ok(None),
                Some(Some(is_needed)) => return Ok(Some(is_needed)),
                Some(None) => {}
            }
        }
        self.ask_history(start, histories)
    }

    /// Whether one of the first versions has the entry; `Some(None)` if they do not decide, `None` if the row has
    /// changed.
    fn ask_few(&self, start: &Start<'_>) -> Result<Option<Option<bool>>> {
        let (mut passed, mut found) = (0, false);
        let walked = self.walk(start, &mut |_, entry| {
            passed += 1;
            found = entry == Some(self.entry);
            found || passed == SHORT_WALK
        })?;
        Ok(match walked {
            Walked::Changed => None,
            Walked::Ended => Some(Some(false)),
            Walked::Stopped => Some(found.then_some(true)),
        })
    }

    /// As [`EntryOf::ask`], by the row's history, which is brought up to date.
    fn ask_history(&self, start: &Start<'_>, histories: &mut Histories) -> Result<Option<bool>> {
        let mut history = histories.take(self.index(), self.row.key);
        let newest = start.version.header;
        let (mut met, mut found, mut entries) = (history.newest == Some(newest), false, HashSet::new());
        if !met {
            let walked = self.walk(start, &mut |header, entry| {
                met = history.newest == Some(*header);
                found |= entry == Some(self.entry);
                if !met && entries.len() <= MAX_ENTRIES {
                    entries.extend(entry.map(|entry| histories.hash(entry)));
                }
                met
            })?;
            if matches!(walked, Walked::Changed) {
                return Ok(None);
            }
            history.extend(newest, entries, met);
        }
        let is_needed = found || history.has(histories.hash(self.entry));
        histories.keep(self.index(), self.row.key, history);
        Ok(Some(is_needed))
    }

    /// Shows the versions from `start` on, with the entry of each that is not a deletion, until `visit` returns true.
    fn walk(&self, start: &Start<'_>, visit: &mut dyn FnMut(&RowHeader, Option<&[u8]>) -> bool) -> Result<Walked> {
        let Version { mut header, mut payload } = start.version.clone();
        let (mut whole, mut entry) = (Vec::new(), Vec::new());
        loop {
            entry.clear();
            if !header.is_delete_marked() {
                let mut payload_row = &payload;
                if header.is_overflow() {
                    whole.clone_from(&payload);
                    let row = StoredRow { wanted: Wanted::entry(self.i), ..self.row };
                    if start.locked {
                        row.resolve(&header, &mut whole)?;
                    } else if !row.resolve_unlocked(&start.version.header, &header, &mut whole)? {
                        return Ok(Walked::Changed);
                    }
                    payload_row = &whole;
                }
                self.row.table.entry(self.i, self.row.key, payload_row, &mut entry)?;
            }
            if visit(&header, (!header.is_delete_marked()).then_some(&entry[..])) {
                return Ok(Walked::Stopped);
            }
            if self.is_oldest(&header) || !step_back(self.row.ctx, self.row.key, &mut header, &mut payload)? {
                return Ok(Walked::Ended);
            }
        }
    }
}
