//! A transaction: its states and its data. Its life, from begin to end, is in `life.rs`.
//!
//! ```text
//! Active --commit-----------------------> ended
//!   |  \--rollback----------------------> ended
//!   |--prepare---> Prepared --commit or rollback-> ended (every other call: an error; see `prepared.rs`)
//!   |--deadlock--> RolledBack --rollback-> ended      (every other call: an error)
//!   \--failed rollback--> Broken --rollback-> ended if the rollback succeeds now
//! ```

use super::options::{Access, Isolation};
use super::read::{OwnVersions, ViewHandle};
use super::row_closure::check_outside_row_closure;
use super::savepoint::{Savepoint, Savepoints};
use crate::config::FlushLog;
use crate::error::{Error, Result};
use crate::lock::{Holder, LockMode, LockWait};
use crate::row::format::{OverflowRef, RowHeader};
use crate::sync::IdGenerator;
use crate::sync::interrupt::Interrupt;
use crate::types::{IndexId, TableId, TxnId};
use crate::undo::record::PreparedMark;
use crate::undo::{UndoLog, UndoPlace};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TxnState {
    #[default]
    Active,
    Prepared,
    RolledBack,
    Broken,
}

/// A transaction. Its memory is reused for the next one, so that its buffers grow once.
#[derive(Debug, Default)]
pub(crate) struct Txn {
    pub(crate) state: TxnState,
    pub(crate) isolation: Isolation,
    pub(super) access: Access,
    pub(super) expiry_time: ExpiryTime,
    pub(crate) first_committer_wins: bool,
    /// Whether one of its calls has met a write conflict.
    pub(super) met_conflict: bool,
    /// Durability of its commit, if it overrides the option.
    pub(super) flush_log: Option<FlushLog>,
    /// Lock wait timeout, unless the statement overrides it.
    pub(super) lock_timeout: Duration,
    /// Behavior of the statement at locks of other transactions.
    pub(crate) lock_wait: LockWait,
    /// By which other threads interrupt it.
    pub(crate) interrupt: Option<Arc<Interrupt>>,
    /// Tells transactions of this process apart, read-only ones too.
    pub(crate) serial: u64,
    /// Id once it has written, else 0.
    pub(crate) id: TxnId,
    pub(crate) holder: Arc<Holder>,
    /// Its shard of the active set, and its list of views.
    pub(super) shard: usize,
    pub(crate) undo: Option<UndoLog>,
    /// Cache of its partial rollbacks.
    pub(super) own_versions: Option<Box<OwnVersions>>,
    pub(crate) view: Option<ViewHandle>,
    pub(super) statement: Option<Statement>,
    /// Mode in which an insertion locks its duplicate row; `None`: as a plain read.
    pub(crate) duplicate_lock: Option<LockMode>,
    /// Key of the last duplicate whose lock was asked for so.
    pub(crate) duplicate_key: Vec<u8>,
    /// Whether it may have changed rows of tables that log their changes.
    pub(crate) logs_changes: bool,
    /// Counts what may have changed rows: row operations and rollbacks to savepoints.
    pub(crate) changes: u64,
    pub(super) savepoints: Savepoints,
    /// The clustered indexes whose auto-increment locks the statement holds.
    pub(super) auto_increment_locks: Vec<IndexId>,
    pub(crate) buffers: RowBuffers,
}

/// The statement that a transaction is in.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(super) before: Savepoint,
    /// From its first plain read on, under READ COMMITTED.
    pub(super) view: Option<ViewHandle>,
}

/// The time by which rows are expired for a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ExpiryTime {
    /// No row is expired (rule 3 of `expiry.rs`).
    #[default]
    NotChecked,
    /// The time of its first call that needs one, which has not come yet.
    NotTaken,
    /// Microseconds since 1970.
    At(i64),
}

/// A transaction that was found prepared when the database was opened.
#[derive(Debug)]
pub(crate) struct RecoveredPrepared {
    pub(crate) txn: Box<Txn>,
    pub(crate) mark: PreparedMark,
    /// The tables that it has changed.
    pub(crate) tables: BTreeSet<TableId>,
}

/// Scratch memory of row operations.
#[derive(Debug, Default)]
pub(crate) struct RowBuffers {
    /// Row before the operation.
    pub(crate) old_row: Vec<u8>,
    /// Row after it.
    pub(crate) new_row: Vec<u8>,
    /// Stored value: header and payload.
    pub(crate) value: Vec<u8>,
    /// Undo record, and the moved entries in it.
    pub(crate) record: Vec<u8>,
    pub(crate) entries: Vec<u8>,
    /// Secondary entry keys, old and new.
    pub(crate) old_entry: Vec<u8>,
    pub(crate) new_entry: Vec<u8>,
    pub(crate) entry_value: Vec<u8>,
    /// Indexes whose entries may change.
    pub(crate) changed: Vec<usize>,
    /// Overflow chains that the operation's undo record names.
    pub(crate) chains: Vec<OverflowRef>,
}

impl RowBuffers {
    /// Releases what rows larger than usual have taken.
    pub(super) fn trim(&mut self) {
        for buffer in [&mut self.old_row, &mut self.new_row, &mut self.value, &mut self.record, &mut self.entries] {
            if buffer.capacity() > KEPT_ROW_BYTES {
                *buffer = Vec::new();
            }
        }
    }
}

/// Most bytes of a buffer for rows that is kept for the next transaction.
pub(crate) const KEPT_ROW_BYTES: usize = 64 << 10;

/// Ids that the memory of a transaction takes at once.
const IDS: u64 = 1 << 20;

impl Txn {
    /// Gives the transaction a serial that no other has.
    #[inline]
    pub(super) fn renew_serial(&mut self) {
        static NEXT: IdGenerator = IdGenerator::new();
        self.serial += 1;
        if self.serial.is_multiple_of(IDS) || self.serial == 1 {
            self.serial = NEXT.next() * IDS + 1;
        }
    }

    /// A transaction that has not begun, in this shard of the active set.
    pub(crate) fn new(shard: usize) -> Txn {
        Txn { shard, ..Txn::default() }
    }

    /// Its isolation level.
    pub(crate) fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Its number, from its first write on.
    pub(crate) fn number(&self) -> Option<u64> {
        (self.id != TxnId(0)).then_some(self.id.0)
    }

    /// Marks the present state, to be rolled back to.
    pub(crate) fn savepoint(&mut self) -> Savepoint {
        Savepoint { at: self.position(), txn_serial: self.serial, number: self.savepoints.take() }
    }

    /// Refuses calls that the transaction cannot serve in its state.
    #[inline]
    pub(crate) fn check_active(&self) -> Result<()> {
        check_outside_row_closure()?;
        self.check_state();
        match self.state {
            TxnState::Active => Ok(()),
            TxnState::Prepared => Err(Error::Usage("the transaction is prepared: it can only be ended".to_string())),
            TxnState::RolledBack => Err(Error::Usage("the transaction was rolled back; begin a new one".to_string())),
            TxnState::Broken => Err(Error::Usage("the transaction could not be rolled back".to_string())),
        }
    }

    /// Whether it was rolled back to end a deadlock.
    pub(crate) fn is_deadlock_victim(&self) -> bool {
        self.state == TxnState::RolledBack
    }

    /// Whether it failed because of a concurrent transaction (deadlock or write conflict), so that a retry may succeed.
    pub(crate) fn met_another(&self) -> bool {
        self.met_conflict || self.is_deadlock_victim()
    }

    /// Whether it wrote the version of this row.
    #[inline]
    pub(crate) fn wrote(&self, header: &RowHeader) -> bool {
        header.trx_id == self.id && self.id != TxnId(0)
    }

    /// Whether writes lock ranges.
    pub(crate) fn locks_ranges(&self) -> bool {
        self.isolation.locks_ranges()
    }

    /// Whether it may have explicit locks, on rows or ranges of keys, for which others may wait.
    pub(crate) fn holds_rows(&self) -> bool {
        self.holder.has_locks()
    }

    /// The lock mode of a read that asks for `lock`: a plain read under SERIALIZABLE takes a shared lock.
    #[inline]
    pub(crate) fn lock_of_read(&self, lock: LockMode) -> LockMode {
        match (self.isolation, lock) {
            (Isolation::Serializable, LockMode::None) => LockMode::Shared,
            (_, lock) => lock,
        }
    }

    /// Undo position of this moment; `None`: before the first write.
    pub(crate) fn position(&self) -> Option<UndoPlace> {
        let undo = self.undo.as_ref()?;
        undo.start().map(|_| undo.tail())
    }
}
