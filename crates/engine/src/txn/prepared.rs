//! Two-phase commit: a transaction is prepared, then committed or rolled back.
//!
//! Rules
//! 1. Prepared means: its changes, its name and the state PREPARED are durable. No crash ends such a transaction;
//!    recovery leaves it active, with its rows locked by its id.
//! 2. It reads and writes nothing more. Its view is closed, so it holds no version for itself; its explicit locks stay
//!    until it ends, and are lost with a crash, as in InnoDB.
//! 3. Its commit writes to one page, that of its header, in redo space that is reserved from its prepare on: it waits
//!    for no checkpoint and is not throttled. Its rollback takes only the space in the data file that every rollback
//!    may take. So its end fails only if the database stops, or a page that it needs cannot be read. After a failed
//!    commit it is still prepared.
//! 4. Before the first change is undone its header says that it is active: a crash during its rollback never leaves a
//!    prepared transaction that lacks changes.
//! 5. Its end has the order of every end (`system.rs`, rule 4).

use super::system::TxnSystem;
use super::transaction::{RecoveredPrepared, Txn, TxnState};
use crate::config::FlushLog;
use crate::error::Result;
use crate::space::reserve::{self, SpacePriority};
use crate::types::Lsn;
use crate::undo::Xid;
use crate::undo::record::{PreparedMark, TxnState as UndoState};

impl Txn {
    /// Whether it has changed anything, also if that was undone.
    pub(crate) fn has_written(&self) -> bool {
        self.undo.as_ref().is_some_and(|undo| undo.start().is_some())
    }

    /// Rule 4.
    pub(super) fn unprepare(&mut self, system: &TxnSystem) -> Result<()> {
        if self.state == TxnState::Prepared
            && let Some(undo) = &self.undo
        {
            undo.set_state(&system.ctx, UndoState::Active)?;
            self.state = TxnState::Active;
        }
        Ok(())
    }
}

impl TxnSystem {
    /// Prepares a transaction that has written; durable on return.
    ///
    /// # Errors
    /// As of a write: then the transaction is as it was. Those of a sync, after which the database has stopped.
    pub(crate) fn prepare(&self, txn: &mut Txn, xid: &Xid) -> Result<PreparedMark> {
        txn.check_active()?;
        let records = txn.undo.as_ref().map_or(0, |undo| undo.records);
        let mark = PreparedMark { xid: xid.clone(), unix_us: self.ctx.unix_us(), records };
        let _entitled = reserve::entitle(SpacePriority::Undo);
        if let Some(undo) = &mut txn.undo {
            let lsn = undo.prepare(&self.undo, txn.id, &mark)?;
            txn.state = TxnState::Prepared;
            (txn.view, txn.statement) = (None, None);
            self.ctx.log.flush_to(lsn)?;
            debug_assert!(self.ctx.log.durable_lsn() >= lsn, "rule 1: {} is prepared, and is not durable", txn.id);
        }
        txn.check_state();
        self.stats.trx_prepares.inc();
        Ok(mark)
    }

    /// Commits a prepared transaction: it is visible and its locks are released. Its redo is appended, not waited for.
    /// Takes the transaction out of its slot. Returns the LSN up to which the log has the commit, and how its redo is
    /// to be flushed.
    ///
    /// # Errors
    /// See rule 3; the transaction stays prepared.
    pub(crate) fn commit_ordered(&self, slot: &mut Option<Box<Txn>>) -> Result<(Lsn, Option<FlushLog>)> {
        let Some(mut txn) = slot.take() else { return Ok((self.ctx.log.end_lsn(), None)) };
        let state = txn.state;
        txn.check_state();
        match txn.finish(self, UndoState::Committed) {
            Ok(lsn) => {
                let flush_log = txn.flush_log;
                self.retire(txn);
                self.stats.trx_commits.inc();
                Ok((lsn.unwrap_or_else(|| self.ctx.log.end_lsn()), flush_log))
            }
            Err(error) => {
                debug_assert_eq!(txn.state, state, "rule 3: a commit that failed leaves another state");
                *slot = Some(txn);
                Err(error)
            }
        }
    }

    /// Rolls a prepared transaction back, and waits for its redo as its commit would.
    ///
    /// # Errors
    /// As of any rollback. If the transaction stays in its slot, it is still prepared.
    pub(crate) fn roll_back_prepared(&self, slot: &mut Option<Box<Txn>>) -> Result<()> {
        let Some(mut txn) = slot.take() else { return Ok(()) };
        txn.check_state();
        if let Err(error) = txn.unprepare(self) {
            *slot = Some(txn);
            return Err(error);
        }
        debug_assert_ne!(txn.state, TxnState::Prepared, "rule 4: a prepared transaction is being undone");
        let flush_log = txn.flush_log;
        self.rollback(txn)?;
        self.ctx.log.commit(self.ctx.log.end_lsn(), flush_log)
    }

    /// Takes the transactions that were found prepared at the opening.
    pub(crate) fn take_recovered_prepared(&self) -> Vec<RecoveredPrepared> {
        std::mem::take(&mut *self.recovered_prepared.lock())
    }
}
