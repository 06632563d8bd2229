//! The transaction system: ids, the active set, read views, and the parts every transaction works with.
//!
//! Terms. A transaction gets its *id* at its first write and its *number* when it ends, both from one counter. It is active
//! from the one until it has ended: a row with its id is locked by it, snapshots made meanwhile do not see it.
//!
//! Rules
//! 1. One mutex guards the counter, the active set, the numbers in commit and the list of views. It is taken last (under
//!    page latches if need be), never around I/O.
//! 2. `min_active` is at most the smallest active id: a row whose id is below it is nobody's, without the mutex.
//! 3. Ids are below a durable limit that is raised, in big steps, before they reach it; after a crash counting goes on
//!    from the limit, which is raised before the first id or number is given, also to what recovery rolls back.
//! 4. End of a transaction, in this order: number given; state and number written to its undo header (the commit point);
//!    stream given back; out of the active set; locks released; then the caller waits for the log. If the set were left
//!    before the header is written, others could build on changes that a crash takes back.
//! 5. A reader may see, and be answered with, changes whose commit is in the log but not yet durable (as in InnoDB). A
//!    transaction that writes is never acknowledged before those it built on: the log is one sequence.

use super::lock::{Holder, LockSystem};
use super::purge::PurgeState;
use super::read_view::{ReadView, ViewHandle, ViewList};
use super::rows::{Rows, Tables};
use super::trx::TrxBody;
use super::undo::{Recovered, Stream, UndoSpace};
use crate::error::{Error, Result};
use crate::mtr::{Context, Mtr};
use crate::space::Space;
use crate::stats::Stats;
use crate::types::{TableId, TrxId};
use parking_lot::{Mutex, RwLock};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, OnceLock};

/// How far the durable limit of ids is raised at a time.
const ID_STEP: u64 = 1 << 18;
/// How close ids may come to the limit before it is raised; more than threads can take at once.
const ID_SLACK: u64 = 1 << 14;
/// Mutexes that make "look for a duplicate, then insert" one step, chosen by hash of the unique key.
const UNIQUE_STRIPES: usize = 256;
/// Transaction bodies kept for reuse.
const SPARE_BODIES: usize = 64;

#[derive(Debug, Default)]
struct Active {
    /// Next id or number.
    next: u64,
    /// Active ids, ascending, and their holders at the same places.
    ids: Vec<u64>,
    holders: Vec<Arc<Holder>>,
    /// Numbers given to transactions that have not ended, ascending.
    in_commit: Vec<u64>,
    /// Counts changes of `ids`.
    version: u64,
    views: ViewList,
}

/// Everything transactions share.
pub struct TrxSystem {
    pub(crate) ctx: Arc<Context>,
    pub(crate) space: Arc<Space>,
    pub(crate) stats: Arc<Stats>,
    pub(crate) locks: LockSystem,
    pub(crate) undo: UndoSpace,
    pub(crate) unique: Box<[Mutex<()>]>,
    pub(crate) purge: Mutex<PurgeState>,
    /// The view purge works by; see `purge.rs`.
    pub(crate) purge_view: RwLock<ReadView>,
    /// Ended transactions whose undo is not purged.
    pub(crate) history: AtomicU64,
    /// For each stream with something to purge, the number of its oldest ended transaction; smallest first.
    pub(crate) ended: Mutex<BinaryHeap<Reverse<(u64, usize)>>>,
    active: Mutex<Active>,
    min_active: AtomicU64,
    id_limit: AtomicU64,
    raising_limit: Mutex<()>,
    tables: OnceLock<Arc<dyn Tables>>,
    recovered: Mutex<Vec<Recovered>>,
    #[expect(clippy::vec_box, reason = "bodies are handed out and taken back; boxed, they do not move")]
    spare: Mutex<Vec<Box<TrxBody>>>,
}

impl TrxSystem {
    /// Lays out the empty undo directory in `mtr`, which must have one frame set aside;
    /// the caller has called [`Space::prepare`] before it.
    ///
    /// # Errors
    /// The data file is full.
    pub fn format(space: &Space, mtr: &mut Mtr<'_>) -> Result<()> {
        UndoSpace::format(space, mtr)
    }

    /// Opens the transaction system of a database whose pages are recovered. Transactions that were active stay so, and
    /// keep their rows locked, until [`TrxSystem::recover`].
    ///
    /// # Errors
    /// I/O, or undo pages that make no sense.
    pub fn open(ctx: Arc<Context>, space: Arc<Space>) -> Result<TrxSystem> {
        let stats = Arc::clone(&ctx.stats);
        let opened = UndoSpace::open(Arc::clone(&ctx), Arc::clone(&space))?;
        stats.history_list_length.set(opened.history);
        let mut active = Active { next: opened.id_limit.max(1), ..Active::default() };
        let mut recovered = opened.recovered;
        recovered.sort_by_key(|trx| trx.id);
        for trx in &recovered {
            active.ids.push(trx.id.0);
            active.holders.push(Arc::new(Holder { trx_id: AtomicU64::new(trx.id.0), ..Holder::default() }));
        }
        let mut purge_view = ReadView::default();
        purge_view.fill(&active.ids, None, active.next);
        let min_active = AtomicU64::new(active.ids.first().copied().unwrap_or(active.next));
        Ok(TrxSystem {
            id_limit: AtomicU64::new(active.next),
            active: Mutex::new(active),
            min_active,
            ctx,
            space,
            locks: LockSystem::new(Arc::clone(&stats)),
            stats,
            undo: opened.undo,
            unique: (0..UNIQUE_STRIPES).map(|_| Mutex::new(())).collect(),
            purge: Mutex::default(),
            purge_view: RwLock::new(purge_view),
            ended: Mutex::default(),
            history: AtomicU64::new(opened.history),
            raising_limit: Mutex::new(()),
            tables: OnceLock::new(),
            recovered: Mutex::new(recovered),
            spare: Mutex::new(Vec::new()),
        })
    }

    /// Rolls back what was active when the database went down, and remembers `tables` for rollbacks and purge. To be
    /// called once, before the first transaction. Returns how many there were.
    ///
    /// # Errors
    /// I/O or corruption; the database cannot be used then.
    pub fn recover(&self, tables: &Arc<dyn Tables>) -> Result<usize> {
        let _ = self.tables.set(Arc::clone(tables));
        let recovered = std::mem::take(&mut *self.recovered.lock());
        let count = recovered.len();
        for trx in recovered {
            let Some(holder) = self.holder_of(trx.id) else { continue };
            // Counting goes on from the limit itself: before its end takes a number, the limit must be above that.
            self.prepare_ids()?;
            let mut body = self.spare_body();
            body.adopt(trx, holder);
            super::rollback::roll_back_all(self, &mut body)?;
            body.end(self);
            self.keep_spare(body);
        }
        Ok(count)
    }

    /// The table, if it still exists.
    pub(crate) fn rows(&self, id: TableId) -> Result<Option<Arc<dyn Rows>>> {
        match self.tables.get() {
            Some(tables) => Ok(tables.rows(id)),
            None => Err(Error::Usage("the transaction system has not been recovered".to_string())),
        }
    }

    /// Every page of the undo log, directory included, in tests.
    #[cfg(test)]
    pub(crate) fn undo_pages(&self) -> Result<Vec<crate::types::PageNo>> {
        self.undo.pages()
    }

    // ---- ids

    /// Makes sure that ids can be given. The caller holds no latch.
    pub(crate) fn prepare_ids(&self) -> Result<()> {
        if self.active.lock().next + ID_SLACK < self.id_limit.load(Acquire) {
            return Ok(());
        }
        let _raising = self.raising_limit.lock();
        let limit = self.id_limit.load(Acquire);
        if self.active.lock().next + ID_SLACK >= limit {
            self.undo.set_id_limit(limit + ID_STEP)?;
            self.id_limit.store(limit + ID_STEP, Release);
        }
        Ok(())
    }

    /// Makes `holder` an active transaction.
    pub(crate) fn activate(&self, holder: &Arc<Holder>) -> TrxId {
        let mut active = self.active.lock();
        let id = active.next;
        active.next += 1;
        active.ids.push(id);
        active.holders.push(Arc::clone(holder));
        active.version += 1;
        holder.trx_id.store(id, std::sync::atomic::Ordering::SeqCst);
        TrxId(id)
    }

    /// Gives an ending transaction its number.
    pub(crate) fn begin_commit(&self) -> u64 {
        let mut active = self.active.lock();
        let number = active.next;
        active.next += 1;
        active.in_commit.push(number);
        number
    }

    /// Takes the number of a transaction back whose end could not be written.
    pub(crate) fn abort_commit(&self, number: u64) {
        self.active.lock().in_commit.retain(|in_commit| *in_commit != number);
    }

    /// Takes an ended transaction out of the active set.
    pub(crate) fn deactivate(&self, id: TrxId, number: Option<u64>) {
        let mut active = self.active.lock();
        if let Ok(at) = active.ids.binary_search(&id.0) {
            active.ids.remove(at);
            active.holders.remove(at);
        }
        if let Some(number) = number
            && let Ok(at) = active.in_commit.binary_search(&number)
        {
            active.in_commit.remove(at);
        }
        active.version += 1;
        let min = active.ids.first().copied().unwrap_or(active.next);
        self.min_active.store(min, Release);
    }

    /// Every id and number in use is below this.
    pub(crate) fn next_id(&self) -> u64 {
        self.active.lock().next
    }

    /// Every id below this has ended.
    #[inline]
    pub(crate) fn min_active(&self) -> u64 {
        self.min_active.load(Acquire)
    }

    /// The transaction `id`, if it is active.
    #[inline]
    pub(crate) fn holder_of(&self, id: TrxId) -> Option<Arc<Holder>> {
        if id.0 < self.min_active() {
            return None;
        }
        let active = self.active.lock();
        active.ids.binary_search(&id.0).ok().map(|at| Arc::clone(&active.holders[at]))
    }

    // ---- views

    /// Opens a view of this moment.
    pub(crate) fn open_view(&self) -> ViewHandle {
        let active = &mut *self.active.lock();
        let (ids, first, next) = (&active.ids, active.in_commit.first().copied(), active.next);
        active.views.open(active.version, |view| view.fill(ids, first, next))
    }

    /// Closes a view.
    pub(crate) fn close_view(&self, view: ViewHandle) {
        self.active.lock().views.close(view);
    }

    /// Makes `view` the oldest open view, or one of this moment when none is open.
    pub(crate) fn copy_oldest_view(&self, view: &mut ReadView) {
        let active = self.active.lock();
        match active.views.oldest() {
            Some(oldest) => view.copy_from(oldest),
            None => view.fill(&active.ids, active.in_commit.first().copied(), active.next),
        }
    }

    // ---- bodies

    pub(crate) fn spare_body(&self) -> Box<TrxBody> {
        self.spare.lock().pop().unwrap_or_default()
    }

    pub(crate) fn keep_spare(&self, body: Box<TrxBody>) {
        let mut spare = self.spare.lock();
        if spare.len() < SPARE_BODIES {
            spare.push(body);
        }
    }

    /// Adds an ended transaction to what purge has to do. Its stream is still bound.
    pub(crate) fn note_ended(&self, stream: &Stream, number: u64) {
        let length = self.history.fetch_add(1, Relaxed) + 1;
        self.stats.history_list_length.set(length);
        if stream.pending.fetch_add(1, AcqRel) == 0 {
            self.ended.lock().push(Reverse((number, stream.number)));
        }
    }

    /// Number of active transactions that write, in tests.
    #[cfg(test)]
    pub(crate) fn active_count(&self) -> usize {
        self.active.lock().ids.len()
    }
}
