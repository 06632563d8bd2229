//! Assertions about a transaction in each state, and about an ended transaction.

use super::options::{Access, Isolation};
use super::system::TxnSystem;
use super::transaction::{Txn, TxnState};
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::TxnId;

impl Txn {
    /// Checks its state: a transaction with an id has a stream, a prepared one has written and reads no more, a
    /// rolled-back one has ended.
    pub(super) fn check_state(&self) {
        let (state, has_id) = (self.state, self.id != TxnId(0));
        let is_of_this = self.statement.as_ref().is_none_or(|statement| statement.before.txn_serial == self.serial);
        debug_assert!(is_of_this, "rule 2 of statements: {} has a statement of another transaction", self.id);
        let is_snapshot = self.isolation == Isolation::RepeatableRead;
        debug_assert!(is_snapshot || !self.first_committer_wins, "{:?} compares no commits", self.isolation);
        debug_assert!(self.access == Access::ReadWrite || self.undo.is_none(), "a reading transaction has undo");
        match state {
            TxnState::Active => {
                debug_assert_eq!(has_id, self.undo.is_some(), "the id {} and its stream", self.id);
                let named = self.holder.trx_id.load(Relaxed);
                debug_assert_eq!(named, self.id.0, "the holder of {} is that of another", self.id);
            }
            TxnState::Prepared => {
                debug_assert!(has_id && self.has_written(), "the transaction {} is prepared without a change", self.id);
                debug_assert!(
                    self.view.is_none() && self.statement.is_none(),
                    "rule 2: {} is prepared and reads",
                    self.id
                );
            }
            TxnState::RolledBack => {
                debug_assert!(!has_id && self.undo.is_none(), "{} was rolled back and has not ended", self.id);
            }
            TxnState::Broken => {}
        }
    }

    /// It has left the active set and the holders, and released its stream: only then its locks are released (rule 4 of
    /// [`super::system`]).
    pub(super) fn check_left(&self, system: &TxnSystem) {
        debug_assert!(self.undo.is_none(), "the locks of {} are released before its stream", self.id);
        let is_holder = || self.id != TxnId(0) && system.holder_of(self.id).is_some();
        debug_assert!(!is_holder(), "the locks of {} are released while it is active", self.id);
    }

    /// Its memory has nothing of a transaction, which another one may use.
    pub(super) fn check_ended(&self) {
        debug_assert_eq!(self.id, TxnId(0), "an ended transaction has an id");
        debug_assert!(self.undo.is_none(), "an ended transaction has a stream: {:?}", self.undo);
        debug_assert!(self.own_versions.is_none(), "an ended transaction remembers its versions");
        debug_assert!(self.view.is_none() && self.statement.is_none(), "an ended transaction has a view");
        debug_assert_eq!(self.holder.trx_id.load(Relaxed), 0, "an ended transaction holds rows by its id");
        debug_assert!(self.auto_increment_locks.is_empty(), "an ended transaction has locked numbers");
        debug_assert!(self.holder.ranges.lock().is_empty(), "an ended transaction has ranges");
    }
}
