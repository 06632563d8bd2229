//! What holds of a transaction that has ended, as assertions.

use super::system::TxnSystem;
use super::transaction::Txn;
use crate::sync::atomic::Ordering::Relaxed;
use crate::types::TxnId;

impl Txn {
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
        debug_assert!(self.holder.ranges.lock().is_empty(), "an ended transaction has ranges");
    }
}
