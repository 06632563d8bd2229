//! Savepoints: points of a transaction to roll back to.
//!
//! Rule: a rollback to a savepoint removes the later ones, and only them.

use crate::undo::UndoPlace;

/// A point to roll back to.
#[derive(Clone, Copy, Debug)]
pub struct Savepoint {
    /// Undo position; `None`: before the first write.
    pub(super) at: Option<UndoPlace>,
    pub(super) txn_serial: u64,
    /// Counts the savepoints of its transaction, from 1.
    pub(super) number: u64,
}

/// The savepoints of a transaction: how many there were, and which a rollback to an earlier one has removed.
#[derive(Debug, Default)]
pub(super) struct Savepoints {
    taken: u64,
    /// Runs of removed savepoints, ascending, with gaps between them: the number before the first of the run, and the
    /// last.
    removed: Vec<(u64, u64)>,
}

impl Savepoints {
    pub(super) fn take(&mut self) -> u64 {
        self.taken += 1;
        self.taken
    }

    pub(super) fn is_removed(&self, number: u64) -> bool {
        let runs = self.removed.partition_point(|(before, _)| *before < number);
        runs.checked_sub(1).is_some_and(|run| number <= self.removed[run].1)
    }

    /// Removes those after `number`, which is there.
    pub(super) fn remove_after(&mut self, number: u64) {
        let is_there = number <= self.taken && !self.is_removed(number);
        debug_assert!(is_there, "a rollback to the savepoint {number} of {}, which is not there", self.taken);
        while self.removed.pop_if(|(before, _)| *before >= number).is_some() {}
        if self.taken > number {
            self.removed.push((number, self.taken));
        }
        let are_apart = self.removed.is_sorted_by(|before, after| before.1 <= after.0);
        debug_assert!(are_apart, "the removed savepoints overlap: {:?}", self.removed);
    }

    pub(super) fn clear(&mut self) {
        self.taken = 0;
        self.removed.clear();
    }
}
