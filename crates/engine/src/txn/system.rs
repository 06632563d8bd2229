//! The transaction system: ids, the active set, read views, and the parts every transaction works with.
//!
//! Terms. A transaction gets its *id* at its first write and its *number* when it ends, both from one counter. It is
//! active from its first write until it has ended: its id in a row is a lock, and snapshots made meanwhile do not see
//! it.
//!
//! Rules
//! 1. No mutex is common to all transactions that write: `active` (ids, numbers, which are active) and `holders` (the
//!    transaction of an id) have shards, and there are several lists of views. Order: list of views, the newest view,
//!    then a shard of the active set; a shard of the holders under page latches if necessary; none of them around I/O.
//! 2. `min_active` is at most the smallest active id, so a row with a lower id has no implicit lock; this check takes
//!    no mutex. Purge's views advance it, and other views only when it is behind by as many ids as the active set has
//!    shards: every thread that changes rows reads it, so its cache line must not be written for each view.
//! 3. Ids and numbers are below a durable limit. At the limit no id or number is assigned before the limit is raised,
//!    in big steps and with no latch held. It is raised early, when half a step is left. After a crash, numbering
//!    continues at the limit, which is raised before the first id or number is assigned, also for the rollbacks of
//!    recovery.
//! 4. End of a transaction, in this order: number given; state and number written to its undo header (the commit
//!    point); stream released; out of the active set; out of the holders; locks released; then the caller waits for the
//!    log. If the transaction left the set before the header is written, others could depend on changes that a crash
//!    undoes. If it left the holders before the set, a view could see a dependent change and not the change itself.
//! 5. A reader may see changes whose commit is in the log but not yet durable (as in InnoDB). The commit of a
//!    transaction that writes never returns before the commits on which it depends are durable, because the log is one
//!    sequence.

use super::active::{ActiveSet, MAX_SHARDS};
use super::holders::Holders;
use super::purge::{EndedTxns, LagLimits, LagLimitsInForce, PurgeDamage};
use super::read::{Histories, ReadView, ViewHandle, Views};
use super::table_trees::{TableTrees, Tables};
use super::transaction::{RecoveredPrepared, Txn};
use super::write::Unique;
use crate::change_buffer::ChangeBuffer;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::lock::{Holder, LockSystem};
use crate::mtr::Mtr;
use crate::space::Space;
use crate::stats::Stats;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use crate::sync::sharded::{CachePadded, ObjectPool, ShardedCounter};
use crate::sync::{Mutex, RwLock};
use crate::types::{TableId, TxnId};
use crate::undo::{Recovered, Stream, UndoSpace};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// By how much the durable limit of ids is raised each time.
const ID_STEP: u64 = 1 << 18;
/// Shards of the active set for each thread that can run at a time.
const SHARDS_PER_CPU: usize = 4;
/// Ended transactions kept for reuse, for each shard that threads have.
const MAX_SPARE: usize = 8;
/// Default of the lock wait timeout, if neither the transaction nor the database sets one.
const DEFAULT_LOCK_TIMEOUT_MS: u64 = 50_000;

/// Everything transactions share.
pub(crate) struct TxnSystem {
    pub(crate) ctx: Arc<Context>,
    pub(crate) space: Arc<Space>,
    pub(crate) changes: Arc<ChangeBuffer>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) locks: Arc<LockSystem>,
    pub(crate) undo: UndoSpace,
    pub(crate) unique: Unique,
    /// The view that purge works by; see `purge/`.
    pub(crate) purge_view: CachePadded<RwLock<ReadView>>,
    /// Caches of the purge threads for rows with many versions.
    pub(crate) purge_histories: ObjectPool<Histories>,
    /// Ended transactions whose undo is not purged.
    pub(crate) history: ShardedCounter,
    /// Records of those that have begun and ended since the opening.
    pub(crate) purge_pending_records: ShardedCounter,
    pub(crate) lag_limits: LagLimitsInForce,
    /// Default lock wait timeout of transactions in milliseconds.
    lock_timeout_ms: AtomicU64,
    /// The damage that purge passed over.
    pub(crate) purge_damage: PurgeDamage,
    /// Streams with something to purge.
    pub(crate) ended: EndedTxns,
    pub(super) active: ActiveSet,
    holders: Holders,
    views: Views,
    min_active: CachePadded<AtomicU64>,
    raising_limit: Mutex<()>,
    /// Counts the [`Txn`]s made, to spread them over the shards.
    made: AtomicUsize,
    started: Instant,
    /// Time of the last search for idle undo streams.
    pub(crate) streams_looked_at_ms: CachePadded<AtomicU64>,
    tables: OnceLock<Arc<dyn Tables>>,
    recovered: Mutex<Vec<Recovered>>,
    /// Transactions that were found prepared, until `db` takes them.
    pub(super) recovered_prepared: Mutex<Vec<RecoveredPrepared>>,
    /// Those that are still active because their rollback needs a missing collation.
    waiting_for_collation: Mutex<Vec<TxnId>>,
    spare: ObjectPool<Txn>,
}

impl TxnSystem {
    /// Lays out the empty undo directory in `mtr`, which must have one frame reserved;
    /// the caller has called [`Space::prepare`] before it.
    ///
    /// # Errors
    /// The data file is full.
    pub(crate) fn format(space: &Space, mtr: &mut Mtr<'_>) -> Result<()> {
        UndoSpace::format(space, mtr)
    }

    /// Opens the transaction system of a database whose pages are recovered. Transactions that were active stay so, and
    /// keep their rows locked, until [`TxnSystem::recover`].
    ///
    /// # Errors
    /// I/O, or damaged undo pages.
    pub(crate) fn open(ctx: Arc<Context>, space: Arc<Space>, changes: Arc<ChangeBuffer>) -> Result<TxnSystem> {
        let stats = Arc::clone(&ctx.stats);
        let opened = UndoSpace::open(Arc::clone(&ctx), Arc::clone(&space))?;
        let shards = (crate::sync::cpu_count() * SHARDS_PER_CPU).min(MAX_SHARDS);
        let active = ActiveSet::new(opened.id_limit.max(1), shards);
        let holders = Holders::default();
        let recovered = opened.recovered;
        for txn in &recovered {
            active.enter_again(shard_of_recovered(&active, txn.id), txn.id.0);
            holders.enter(txn.id, Arc::new(Holder { trx_id: AtomicU64::new(txn.id.0), ..Holder::default() }));
        }
        let mut purge_view = ReadView::default();
        purge_view.fill(&active);
        let min_active = CachePadded(AtomicU64::new(purge_view.up_limit_id));
        let purge_damage = PurgeDamage::default();
        for error in &opened.damage {
            stats.purge_streams_skipped.inc();
            purge_damage.note(error);
        }
        let views = Views::new(active.shards());
        Ok(TxnSystem {
            active,
            holders,
            views,
            min_active,
            made: AtomicUsize::new(0),
            started: Instant::now(),
            locks: LockSystem::open(Arc::clone(&stats), &ctx.poison),
            streams_looked_at_ms: CachePadded(AtomicU64::new(0)),
            ctx,
            space,
            changes,
            stats,
            undo: opened.undo,
            unique: Unique::default(),
            purge_view: CachePadded(RwLock::new(purge_view)),
            purge_histories: ObjectPool::new(1),
            ended: EndedTxns::new(opened.ended),
            history: ShardedCounter::new(opened.history),
            purge_pending_records: ShardedCounter::default(),
            lag_limits: LagLimitsInForce::default(),
            lock_timeout_ms: AtomicU64::new(DEFAULT_LOCK_TIMEOUT_MS),
            purge_damage,
            raising_limit: Mutex::new(()),
            tables: OnceLock::new(),
            recovered: Mutex::new(recovered),
            recovered_prepared: Mutex::default(),
            waiting_for_collation: Mutex::default(),
            spare: ObjectPool::new(MAX_SPARE),
        })
    }

    /// Slows writers when purge lags by more than `limits` allow.
    pub(crate) fn set_lag_limits(&self, limits: LagLimits) {
        self.lag_limits.set(limits);
    }

    /// Transactions that begin from now on wait this long for a lock if they do not say otherwise.
    pub(crate) fn set_lock_timeout(&self, lock_timeout: Duration) {
        self.lock_timeout_ms.store(lock_timeout.as_millis().try_into().unwrap_or(u64::MAX), Relaxed);
    }

    /// Default lock wait timeout of transactions.
    pub(crate) fn lock_timeout(&self) -> Duration {
        Duration::from_millis(self.lock_timeout_ms.load(Relaxed))
    }

    /// Rolls back what was active when the database went down, and remembers `tables` for rollbacks and purge. To be
    /// called once, before the first transaction. Prepared ones stay as they are, for
    /// [`TxnSystem::take_recovered_prepared`]. Returns how many were active. A transaction whose rollback meets
    /// damaged pages, or needs a collation that this program does not know, stays active, its rows locked: the next
    /// opening tries again.
    ///
    /// # Errors
    /// Any other error; the database cannot be used then.
    pub(crate) fn recover(&self, tables: &Arc<dyn Tables>) -> Result<usize> {
        let is_first = self.tables.set(Arc::clone(tables)).is_ok();
        debug_assert!(is_first, "the transactions are recovered twice");
        let recovered = std::mem::take(&mut *self.recovered.lock());
        let (prepared, active): (Vec<_>, Vec<_>) = recovered.into_iter().partition(|txn| txn.prepared.is_some());
        let count = active.len();
        for txn in prepared {
            self.adopt_prepared(txn)?;
        }
        for txn in active {
            let Some(holder) = self.holder_of(txn.id) else { continue };
            let (id, shard) = (txn.id, shard_of_recovered(&self.active, txn.id));
            match self.roll_back_recovered(txn, holder, shard) {
                Ok(()) => {}
                Err(error) if error.is_damage() || error.is_of_collation() => {
                    self.stats.rollbacks_skipped.inc();
                    match error.is_damage() {
                        true => self.purge_damage.note(&error),
                        false => self.waiting_for_collation.lock().push(id),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Whether the transaction was active at the crash and could not be rolled back because a collation is missing.
    pub(crate) fn waits_for_collation(&self, id: TxnId) -> bool {
        self.waiting_for_collation.lock().contains(&id)
    }

    /// The table, if it still exists.
    pub(crate) fn table(&self, id: TableId) -> Result<Option<Arc<dyn TableTrees>>> {
        match self.tables.get() {
            Some(tables) => Ok(tables.table(id)),
            None => Err(Error::Usage("the transaction system has not been recovered".to_string())),
        }
    }

    /// Every page of the undo log, directory included, in tests.
    #[cfg(test)]
    pub(crate) fn undo_pages(&self) -> Result<Vec<crate::types::PageNo>> {
        self.undo.pages()
    }

    // ---- ids

    /// Returns the number that `give` takes from the counter, and raises the durable limit when the counter is at it or
    /// near. The caller holds no latch.
    fn below_limit(&self, mut give: impl FnMut() -> Option<u64>) -> Result<u64> {
        loop {
            let given = give();
            // What was given is as near to the limit as the counter, but for allotments; all threads write that one.
            if given.is_none_or(|given| given + ID_STEP / 2 >= self.active.limit()) {
                let raised = self.raise_limit();
                // A number that was given is below the limit: its owner has entered with it.
                if given.is_none() {
                    raised?;
                }
            }
            if let Some(given) = given {
                return Ok(given);
            }
        }
    }

    fn raise_limit(&self) -> Result<()> {
        let _raising = self.raising_limit.lock();
        let (next, limit) = (self.active.next(), self.active.limit());
        if next + ID_STEP / 2 >= limit {
            let (before, limit) = (limit, limit.max(next) + ID_STEP);
            debug_assert!(before < limit, "the limit of ids falls from {before} to {limit}");
            self.undo.set_id_limit(limit)?;
            self.active.raise_limit(limit);
        }
        Ok(())
    }

    /// Makes `holder` an active transaction.
    ///
    /// # Errors
    /// The limit of ids cannot be raised.
    pub(crate) fn activate(&self, holder: &Arc<Holder>, shard: usize) -> Result<TxnId> {
        let id = TxnId(self.below_limit(|| self.active.enter(shard))?);
        self.check_active(id);
        debug_assert!(id.0 < self.active.limit(), "rule 3: the id {id} is not below the durable limit");
        self.holders.enter(id, Arc::clone(holder));
        holder.trx_id.store(id.0, crate::sync::atomic::Ordering::SeqCst);
        Ok(id)
    }

    /// Gives an ending transaction its number. A prepared one does not raise the limit early, which may have to wait.
    ///
    /// # Errors
    /// The limit of ids cannot be raised.
    pub(crate) fn begin_commit(&self, id: TxnId, shard: usize, is_prepared: bool) -> Result<u64> {
        if is_prepared && let Some(number) = self.active.begin_end(shard, id.0) {
            return Ok(number);
        }
        self.below_limit(|| self.active.begin_end(shard, id.0))
    }

    /// Takes the number of a transaction back whose end could not be written.
    pub(crate) fn abort_commit(&self, id: TxnId, shard: usize) {
        self.active.abort_end(shard, id.0);
    }

    /// Takes an ended transaction out of the active set.
    pub(crate) fn deactivate(&self, id: TxnId, shard: usize) {
        self.check_active(id);
        self.active.leave(shard, id.0);
        self.holders.leave(id);
    }

    /// Rule 2, for a transaction that is active.
    fn check_active(&self, id: TxnId) {
        debug_assert!(self.min_active() <= id.0, "the active id {id} is below the smallest, {}", self.min_active());
    }

    /// All ids and numbers in use are below this.
    pub(crate) fn next_id(&self) -> u64 {
        self.active.next()
    }

    /// The limit that ids are given below, in tests.
    #[cfg(test)]
    pub(crate) fn limit_of_ids(&self) -> u64 {
        self.active.limit()
    }

    /// Every id below this has ended.
    #[inline]
    pub(crate) fn min_active(&self) -> u64 {
        self.min_active.load(Acquire)
    }

    /// The transaction `id`, if it is active.
    #[inline]
    pub(crate) fn holder_of(&self, id: TxnId) -> Option<Arc<Holder>> {
        if id.0 < self.min_active() { None } else { self.holders.get(id) }
    }

    // ---- views

    /// Milliseconds since the database was opened.
    pub(crate) fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Opens a view of this moment for a transaction of this shard.
    pub(crate) fn open_view(&self, shard: usize) -> ViewHandle {
        let handle = self.views.open(&self.active, shard, || self.now_ms());
        self.raise_min_active(handle.view.up_limit_id, self.active.shards() as u64);
        handle
    }

    /// Makes `view` a copy of the oldest open view, or a view of this moment when none is open.
    pub(crate) fn copy_oldest_view(&self, view: &mut ReadView) {
        let up_limit_id = self.views.copy_oldest(&self.active, view);
        self.raise_min_active(up_limit_id, 1);
    }

    /// Writes only if it is behind by this many ids.
    #[inline]
    fn raise_min_active(&self, id: u64, behind: u64) {
        if self.min_active() + behind <= id {
            self.min_active.fetch_max(id, AcqRel);
        }
    }

    /// Milliseconds for which the oldest open view has been open; 0 if none is.
    pub(crate) fn oldest_view_age_ms(&self) -> u64 {
        self.views.oldest_age_ms(self.now_ms())
    }

    // ---- ended transactions

    /// A transaction that has not begun, in the memory of an ended one if there is one.
    pub(crate) fn spare(&self) -> Box<Txn> {
        self.spare.take().unwrap_or_else(|| {
            let shard = self.made.fetch_add(1, Relaxed) % self.active.shards();
            Box::new(Txn::new(shard))
        })
    }

    pub(crate) fn keep_spare(&self, txn: Box<Txn>) {
        txn.check_ended();
        self.spare.keep(txn);
    }

    /// Adds an ended transaction, whose stream is still bound, to the work of purge. Its `records` are counted until
    /// they are purged.
    pub(crate) fn note_ended(&self, stream: &Stream, number: u64, records: u64) {
        if self.undo.is_unusable(stream.number) {
            return;
        }
        debug_assert!(number < self.active.limit(), "rule 3: the number {number} is not below the durable limit");
        self.purge_pending_records.add(records);
        self.history.add(1);
        if stream.pending.fetch_add(1, AcqRel) == 0 {
            self.ended.put((number, stream.number));
        }
    }

    /// Number of active transactions that write, in tests.
    #[cfg(test)]
    pub(crate) fn active_count(&self) -> usize {
        self.active.count()
    }
}

/// The shard of a transaction that was active when the database went down.
pub(super) fn shard_of_recovered(active: &ActiveSet, id: TxnId) -> usize {
    id.0 as usize % active.shards()
}
