//! Prepared transactions: the calls of a coordinator, and their owners.
//!
//! Rules
//! 1. A prepared transaction is in `PreparedTxns` from before its prepare is written until after its end. Its owner is
//!    a [`PreparedTxn`], or it is *detached* and has no owner.
//! 2. It holds the locks of the tables that it has changed, and its row locks. It is outside the gate: a check does not
//!    wait for it. Its commit changes no row; its rollback enters the gate first.
//! 3. A schema change of a table that a detached transaction has changed is refused at once, because only a coordinator
//!    ends that transaction, perhaps after days. A schema change waits for a prepared transaction with an owner, as for
//!    any other transaction.
//! 4. A call that fails leaves it prepared and detached, except a rollback that has begun.

use super::database::{Database, DatabaseInner, OpenGuard};
use super::prepared_list::{PreparedInfo, PreparedParts, time_of};
use super::write_txn::{HAS_NOT_ENDED, WriteTxn};
use crate::error::Result;
use crate::txn::{Txn, check_outside_row_closure};
use crate::types::Lsn;
use crate::undo::Xid;
use std::time::Duration;

/// A check ends by itself.
const UNTIL_CHECK_ENDS: Duration = Duration::MAX;

impl WriteTxn {
    /// Prepares the transaction to be committed: the first phase of two. When it returns, every change is durable under
    /// the name `xid`, independent of `flush_log_at_trx_commit`, and the transaction survives any crash with its rows
    /// locked, until it is committed or rolled back. Both succeed on a full disk too. Threads that prepare at the same
    /// time share one sync.
    ///
    /// `None`: the transaction had changed nothing. It has ended, its locks are released, and there is no second phase
    /// for it.
    ///
    /// A coordinator over two databases (it would note its decision where both look after a crash):
    /// ```
    /// use highwater::{Database, Options, Schema, Type, Xid, values};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let open = |name: &str| {
    /// #     let db = Database::open(dir.path().join(name), Options::default())?;
    /// #     let schema = Schema::new().column("id", Type::U64).column("pieces", Type::U64).primary_key(&["id"]);
    /// #     db.create_table("goods", schema)?;
    /// #     Ok::<Database, highwater::Error>(db)
    /// # };
    /// let (shop, store) = (open("shop")?, open("store")?);
    /// let mut branches = Vec::new();
    /// for (db, branch, pieces) in [(&shop, "shop", 1u64), (&store, "store", 99)] {
    ///     let mut txn = db.begin()?;
    ///     txn.insert(&db.table("goods")?, &values![17, pieces])?;
    ///     // An error here rolls this branch back; dropping `branches` would not end the others: roll them back.
    ///     branches.extend(txn.prepare(Xid::new(1, b"order-17", branch.as_bytes())?)?);
    /// }
    /// // All said yes. This is where the coordinator makes its decision durable; then nothing stops it.
    /// for branch in branches {
    ///     branch.commit()?;
    /// }
    ///
    /// // After a crash: what is still prepared ends as the coordinator decided.
    /// for db in [&shop, &store] {
    ///     for left in db.prepared() {
    ///         db.finish_prepared(&left.xid, true)?;
    ///     }
    /// }
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`DuplicateXid`](crate::Error::DuplicateXid), [`DiskFull`](crate::Error::DiskFull), those of
    /// [`commit`](Self::commit). The transaction is rolled back then; after a failed sync the next opening decides.
    pub fn prepare(mut self, xid: Xid) -> Result<Option<PreparedTxn>> {
        self.check_may_end()?;
        let txn = self.txn.as_mut().expect(HAS_NOT_ENDED);
        txn.check_active()?;
        self.inner.prepared.enter(&xid)?;
        let sequence = match self.log_changes() {
            Ok(sequence) => sequence,
            Err(error) => {
                self.inner.prepared.remove(&xid);
                return Err(error);
            }
        };
        let txn = self.txn.as_mut().expect(HAS_NOT_ENDED);
        let prepared = if txn.has_written() { self.inner.txns.prepare(txn, &xid).map(Some) } else { Ok(None) };
        let mark = match prepared {
            Ok(Some(mark)) => mark,
            other => {
                self.inner.prepared.remove(&xid);
                return match other {
                    Ok(_) => self.commit().map(|()| None),
                    Err(error) => Err(error),
                };
            }
        };
        if std::mem::take(&mut self.is_inside) {
            self.inner.gate.leave_writer();
        }
        let (txn, mut scratch) = (self.txn.take().expect(HAS_NOT_ENDED), self.scratch.take().expect(HAS_NOT_ENDED));
        scratch.tables.release_read();
        debug_assert!(txn.has_written(), "rule 1: {xid} is prepared, and has nothing to commit");
        self.inner.prepared.set_info(PreparedInfo {
            transaction: txn.number().unwrap_or(0),
            time: time_of(&mark),
            xid: mark.xid,
            undo_records: mark.records,
            tables: scratch.tables.names(),
            is_detached: false,
        });
        let parts = Some(PreparedParts { txn: Some(txn), scratch, _sequence: sequence });
        Ok(Some(PreparedTxn { xid, parts, inner: self.inner.clone() }))
    }
}

/// A transaction that is prepared: it reads and writes no more, and any thread may commit it or roll it back.
///
/// Dropping it does not end it: it stays prepared, as after [`detach`](PreparedTxn::detach).
#[must_use = "a prepared transaction that is dropped stays prepared, with its rows locked"]
pub struct PreparedTxn {
    xid: Xid,
    /// `None` once it has ended or is detached.
    parts: Option<PreparedParts>,
    // Dropped last: it may be what keeps the database open.
    inner: OpenGuard,
}

impl PreparedTxn {
    /// Its name.
    pub fn xid(&self) -> &Xid {
        &self.xid
    }

    /// Commits it: [`commit_ordered`](Self::commit_ordered), then a wait as `flush_log_at_trx_commit` says.
    ///
    /// # Errors
    /// The database is closed or has stopped, or a page cannot be read. If it is not committed, it stays prepared and
    /// is detached.
    pub fn commit(mut self) -> Result<()> {
        let (lsn, flush_log) = self.end(|inner, slot| inner.txns.commit_ordered(slot))?;
        self.inner.ctx.log.commit(lsn, flush_log)
    }

    /// Commits it without a wait: others see its changes and its locks are released when this returns, in the order of
    /// the calls. The commit is durable with everything before it once the log is durable up to the LSN that is
    /// returned; [`Database::wait_durable`] waits for that. If a crash comes first, the transaction is prepared again.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, Xid, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// # let table = db.create_table("log", Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
    /// let mut group = Vec::new();
    /// for id in 1..4u64 {
    ///     let mut txn = db.begin()?;
    ///     txn.insert(&table, &values![id])?;
    ///     group.extend(txn.prepare(Xid::new(1, &id.to_le_bytes(), b"")?)?);
    /// }
    /// // The coordinator syncs its own log, once for the group; then:
    /// let mut last = 0;
    /// for prepared in group {
    ///     last = prepared.commit_ordered()?;
    /// }
    /// db.wait_durable(last)?;
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_ordered(mut self) -> Result<u64> {
        self.end(|inner, slot| inner.txns.commit_ordered(slot)).map(|(lsn, _)| lsn.0)
    }

    /// Undoes everything, durably as `flush_log_at_trx_commit` says. It waits for a check of the database that runs.
    ///
    /// # Errors
    /// As [`commit`](Self::commit). A damaged page ends the rollback: it is no longer prepared, and its rows stay
    /// locked until the next opening, which tries again.
    pub fn rollback(mut self) -> Result<()> {
        self.end(|inner, slot| {
            inner.gate.enter_writer(UNTIL_CHECK_ENDS, || true)?;
            let rolled_back = inner.txns.roll_back_prepared(slot);
            inner.gate.leave_writer();
            rolled_back
        })
    }

    /// Leaves it prepared, without an owner: [`Database::finish_prepared`] ends it, or
    /// [`Database::take_prepared`] makes a `PreparedTxn` of it again.
    pub fn detach(self) {}

    /// Ends it by `end`, which empties the slot if it does.
    fn end<R>(&mut self, end: impl FnOnce(&DatabaseInner, &mut Option<Box<Txn>>) -> Result<R>) -> Result<R> {
        check_outside_row_closure()?;
        self.inner.check_not_closed()?;
        let parts = self.parts.as_mut().expect(HAS_NOT_ENDED);
        debug_assert!(parts.txn.is_some(), "the prepared transaction {} ends twice", self.xid);
        let ended = end(&self.inner, &mut parts.txn);
        if parts.txn.is_none()
            && let Some(mut parts) = self.parts.take()
        {
            parts.scratch.tables.release();
            self.inner.prepared.remove(&self.xid);
            self.inner.keep_scratch(parts.scratch);
        }
        ended
    }
}

impl Drop for PreparedTxn {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else { return };
        if self.inner.ctx.poison.check_owner().is_err() {
            // The parent's; it ends it.
            return std::mem::forget(parts);
        }
        self.inner.prepared.put(&self.xid, parts);
    }
}

impl Database {
    /// The prepared transactions that have not ended, by name: those of this run, and those that were found when the
    /// database was opened. Empty after an orderly life of all coordinators.
    pub fn prepared(&self) -> Vec<PreparedInfo> {
        if self.inner.check_not_closed().is_err() { Vec::new() } else { self.inner.prepared.list() }
    }

    /// Makes this handle's caller the owner of a prepared transaction that is detached.
    ///
    /// # Errors
    /// [`NoSuchXid`](crate::Error::NoSuchXid); [`Usage`](crate::Error::Usage) if it has an owner, or the database was
    /// opened to be read only.
    pub fn take_prepared(&self, xid: &Xid) -> Result<PreparedTxn> {
        self.check_writable()?;
        let parts = Some(self.inner.prepared.take(xid)?);
        Ok(PreparedTxn { xid: xid.clone(), parts, inner: self.open.local().clone() })
    }

    /// Commits a detached prepared transaction, or rolls it back.
    ///
    /// # Errors
    /// Those of [`take_prepared`](Self::take_prepared), [`PreparedTxn::commit`] and [`PreparedTxn::rollback`].
    pub fn finish_prepared(&self, xid: &Xid, commit: bool) -> Result<()> {
        let prepared = self.take_prepared(xid)?;
        if commit { prepared.commit() } else { prepared.rollback() }
    }

    /// Returns when the log is durable up to this LSN, which [`PreparedTxn::commit_ordered`], [`WriteTxn::commit_lsn`]
    /// or [`Database::lsn`] has returned. Threads that wait at the same time share one sync.
    ///
    /// # Errors
    /// An I/O error; the database has stopped then. [`Usage`](crate::Error::Usage) for an LSN beyond the
    /// end of the log.
    pub fn wait_durable(&self, lsn: u64) -> Result<()> {
        check_outside_row_closure()?;
        self.inner.check_not_closed()?;
        self.inner.ctx.log.flush_to(Lsn(lsn))
    }
}
