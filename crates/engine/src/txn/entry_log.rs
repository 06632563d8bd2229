//! Changes of the entries of an index during its online build.
//!
//! While the builder fills the tree, no other thread uses it: writers log their entry changes here. The builder takes
//! the logged changes in pieces and applies them to the filled tree.
//!
//! Rules
//! 1. A change is a state: the entry exists with this value, is delete-marked, or does not exist. So the last change of
//!    an entry decides, for any state of the tree; an entry without a change is as in the builder's view of the rows.
//! 2. Changes of one entry are logged in their order, because the transaction that makes them has the row locked.
//! 3. Every transaction that writes the table logs its changes, beginning before the builder's view is opened, so no
//!    change is lost between the view and the log.
//! 4. Purge ignores such an index. The builder's view is open until writers change the tree, so no undo record of a
//!    logged change is purged before; and the tree never had the entries that changes before the view left.
//! 5. Writers do not search for duplicates in such an index; the builder does, before the index is used.
//! 6. [`EntryLog::finish`] applies the last changes and directs the following ones to the tree, under the mutex, so no
//!    change overtakes another.
//! 7. A writer that logs a change holds no latch, so it can be slowed while the builder falls behind, or memory fills
//!    up.

use crate::error::{Error, Result};
use crate::page::PageBytes;
use crate::pool::held_latches;
use crate::row::format::EntryValue;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::time::Duration;

/// Bytes of noted changes from which each writer pauses after a change, and for how long.
const FULL_BYTES: usize = 64 << 20;
const FULL_PAUSE_US: u64 = 10_000;
/// The pause of a writer while the builder falls behind, at first and at most.
const FIRST_PAUSE_US: u64 = 200;
const MAX_PAUSE_US: u64 = 100_000;

/// Where changes go.
const TO_LOG: u8 = 0;
const TO_TREE: u8 = 1;
/// The build was given up.
const NOWHERE: u8 = 2;

/// The change of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryChange<'a> {
    /// It is there, with this value.
    Put(&'a [u8]),
    /// It is there, delete-marked.
    Mark,
    /// It is gone.
    Remove,
}

/// A noted change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoggedChange<'a> {
    pub(crate) entry: &'a [u8],
    pub(crate) change: EntryChange<'a>,
}

/// Noted changes, one after another: kind u8, length of the entry u16, of the value u16, entry, value.
#[derive(Debug, Default)]
pub(crate) struct LoggedChanges {
    pub(crate) bytes: Vec<u8>,
    pub(crate) count: usize,
}

const HEAD_BYTES: usize = 5;
const PUT: u8 = 0;
const MARK: u8 = 1;
const REMOVE: u8 = 2;

impl LoggedChanges {
    fn push(&mut self, LoggedChange { entry, change }: LoggedChange<'_>) {
        debug_assert_eq!(self.count == 0, self.bytes.is_empty(), "{} changes are noted", self.count);
        let (kind, value) = match change {
            EntryChange::Put(value) => (PUT, value),
            EntryChange::Mark => (MARK, &[][..]),
            EntryChange::Remove => (REMOVE, &[][..]),
        };
        debug_assert!(entry.len().max(value.len()) <= usize::from(u16::MAX), "an entry of {} bytes", entry.len());
        self.bytes.push(kind);
        // Keys and values of a page are shorter than 64 KiB.
        [entry, value].iter().for_each(|part| self.bytes.extend_from_slice(&(part.len() as u16).to_le_bytes()));
        [entry, value].iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.count += 1;
    }

    /// The changes in their order.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the bytes are not those of changes.
    pub(crate) fn decode(&self) -> Result<Vec<LoggedChange<'_>>> {
        let (mut changes, mut rest) = (Vec::with_capacity(self.count), &self.bytes[..]);
        while !rest.is_empty() {
            let wrong = || Error::Corrupt("a noted change of an index is damaged".to_string());
            let (head, parts) = rest.split_at_checked(HEAD_BYTES).ok_or_else(wrong)?;
            let (entry, parts) = parts.split_at_checked(usize::from(head.u16_at(1))).ok_or_else(wrong)?;
            let (value, behind) = parts.split_at_checked(usize::from(head.u16_at(3))).ok_or_else(wrong)?;
            let change = match head[0] {
                PUT => {
                    EntryValue::decode(value, entry.len())?;
                    EntryChange::Put(value)
                }
                MARK => EntryChange::Mark,
                REMOVE => EntryChange::Remove,
                _ => return Err(wrong()),
            };
            changes.push(LoggedChange { entry, change });
            rest = behind;
        }
        debug_assert_eq!(changes.len(), self.count, "changes are not read as they were noted");
        Ok(changes)
    }
}

/// The log of an index that is being built; see the file's head.
#[derive(Debug, Default)]
pub(crate) struct EntryLog {
    goes: AtomicU8,
    noted: Mutex<LoggedChanges>,
    pause_us: AtomicU64,
}

impl EntryLog {
    /// Notes a change; false if it has to go to the tree.
    pub(crate) fn take(&self, entry: &[u8], change: EntryChange<'_>) -> bool {
        if self.goes.load(Acquire) == TO_TREE {
            return false;
        }
        held_latches::expect_none("a change is noted for the builder of an index, which may slow its writer (rule 7)");
        let bytes = {
            let mut noted = self.noted.lock();
            match self.goes.load(Relaxed) {
                TO_TREE => return false,
                TO_LOG => noted.push(LoggedChange { entry, change }),
                _ => return true,
            }
            noted.bytes.len()
        };
        let full_us = if bytes > FULL_BYTES { FULL_PAUSE_US } else { 0 };
        match self.pause_us.load(Relaxed).max(full_us) {
            0 => {}
            pause_us => crate::sync::thread::sleep(Duration::from_micros(pause_us)),
        }
        true
    }

    /// Whether changes are noted here, or the build was given up: the tree is the builder's.
    pub(crate) fn is_open(&self) -> bool {
        self.goes.load(Acquire) != TO_TREE
    }

    /// Bytes of what was noted and not taken.
    pub(crate) fn bytes(&self) -> usize {
        self.noted.lock().bytes.len()
    }

    /// Takes what was noted.
    pub(crate) fn take_noted(&self) -> LoggedChanges {
        std::mem::take(&mut *self.noted.lock())
    }

    /// Writers pause longer: the builder falls behind.
    pub(crate) fn slow_writers(&self) {
        let pause_us = self.pause_us.load(Relaxed);
        self.pause_us.store((2 * pause_us).clamp(FIRST_PAUSE_US, MAX_PAUSE_US), Relaxed);
    }

    /// Hands the last changes to `apply`, while writers that change entries wait, and lets the following ones go to the
    /// tree. More than `max` changes are not the last ones: false, and nothing happens.
    ///
    /// # Errors
    /// Those of `apply`; changes are noted as before then.
    pub(crate) fn finish(&self, max: usize, apply: impl FnOnce(&LoggedChanges) -> Result<()>) -> Result<bool> {
        let mut noted = self.noted.lock();
        debug_assert_eq!(self.goes.load(Relaxed), TO_LOG, "rule 6: the log of an index is finished twice");
        if noted.count > max {
            return Ok(false);
        }
        apply(&noted)?;
        *noted = LoggedChanges::default();
        self.goes.store(TO_TREE, Release);
        Ok(true)
    }

    /// The build is given up: changes go nowhere from now on.
    pub(crate) fn give_up(&self) {
        let mut noted = self.noted.lock();
        debug_assert_ne!(self.goes.load(Relaxed), TO_TREE, "rule 6: a build is given up whose tree writers use");
        *noted = LoggedChanges::default();
        self.goes.store(NOWHERE, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::format::entry_header;

    #[test]
    fn changes_are_noted_in_order_until_they_go_to_the_tree() {
        let (log, value) = (EntryLog::default(), entry_header(1));
        let changes = [EntryChange::Put(&value), EntryChange::Mark, EntryChange::Remove];
        changes.iter().for_each(|change| assert!(log.take(b"entry", *change)));
        assert!(log.is_open() && !log.finish(2, |_| Ok(())).unwrap());
        let noted = log.take_noted();
        let decoded: Vec<_> = noted.decode().unwrap().iter().map(|noted| (noted.entry, noted.change)).collect();
        assert_eq!(decoded, changes.map(|change| (&b"entry"[..], change)));
        assert!(log.take(b"e", EntryChange::Mark));
        assert!(log.finish(1, |_| Err(Error::Deadlock)).is_err() && log.is_open());
        assert!(log.finish(1, |last| (last.count == 1).then_some(()).ok_or(Error::Deadlock)).unwrap());
        assert!(!log.is_open() && !log.take(b"e", EntryChange::Mark));
    }

    #[test]
    fn a_build_that_was_given_up_takes_changes_and_forgets_them() {
        let log = EntryLog::default();
        log.take(b"e", EntryChange::Mark);
        log.give_up();
        assert!(log.take(b"e", EntryChange::Mark) && log.is_open() && log.bytes() == 0);
    }

    #[test]
    fn damaged_changes_are_an_error() {
        let mut noted = LoggedChanges::default();
        noted.push(LoggedChange { entry: b"entry", change: EntryChange::Put(&entry_header(3)) });
        for cut in 1..noted.bytes.len() {
            let damaged = LoggedChanges { bytes: noted.bytes[..cut].to_vec(), count: 1 };
            assert!(damaged.decode().is_err(), "{cut}");
        }
        noted.bytes[0] = 9;
        assert!(noted.decode().is_err());
    }
}
