//! The background threads of a database: cleaner, LRU flusher, change buffer, archive, readers, log, purge, drops. How
//! they run and end: `threads.rs`.
//!
//! Rules
//! 1. No logic here: a step does a bounded amount of work. Then its thread pauses, for a fixed time or until it is
//!    woken ([`Notify`]); a step that must run again at once wakes its own thread.
//! 2. One read-ahead thread and one purge thread start at the opening, the others when they are needed
//!    ([`ThreadGroup`]): an idle database has one thread for each kind of work.

use super::dropping::Dropping;
use super::open_parts::OpenParts;
use super::threads::{ShutdownPhase, ThreadGroup};
use crate::context::Context;
use crate::error::Result;
use crate::pool::ReadBuffer;
use crate::pool::cleaner::{Cleaner, LruFlusher, checkpoint, checkpoint_target};
use crate::space::Space;
use crate::sync::notify::Notify;
use crate::txn::{TxnSystem, yield_cpu};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The log thread's pause: what commits did not wait for is synced once a second.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// Pause of the thread that archives redo when the archive has everything, or could not be written.
const ARCHIVE_PAUSE: Duration = Duration::from_millis(100);

/// The pause of read-ahead threads while no page is requested.
const READERS_PAUSE: Duration = Duration::from_secs(1);

/// Undo records in a purge step: a fraction of a millisecond.
pub(super) const PURGE_BATCH: usize = 100;
/// The purge thread's pause when it has caught up.
const PURGE_PAUSE: Duration = Duration::from_millis(20);

/// Milliseconds from one checkpoint for emptied extents to the next.
const DISCARD_CHECKPOINT_MS: u64 = 1000;

/// Checkpoints for the sake of emptied extents: those for redo space may be rare.
#[derive(Default)]
pub(super) struct DiscardCheckpoints {
    next_ms: u64,
}

impl DiscardCheckpoints {
    /// Discards the emptied extents that recovery does not need, after a checkpoint if that makes it more.
    pub(super) fn step(&mut self, ctx: &Context, space: &Space, now_ms: u64) -> Result<()> {
        let target = checkpoint_target(&ctx.pool, &ctx.log);
        if now_ms >= self.next_ms && space.awaits_checkpoint(ctx, target) {
            self.next_ms = now_ms + DISCARD_CHECKPOINT_MS;
            checkpoint(&ctx.pool, &ctx.log, target)?;
        }
        space.discard_step(ctx);
        Ok(())
    }
}

/// The pause of the thread that frees what was dropped, when nothing is.
const DROPPING_PAUSE: Duration = Duration::from_secs(1);

impl OpenParts {
    /// Starts the threads of the cleaner, LRU flusher, change buffer, archive, log and read-ahead.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn start_threads(&mut self) -> Result<()> {
        self.start_cleaner()?;
        self.start_lru_flusher()?;
        self.start_change_buffer()?;
        self.start_archiving()?;
        self.start_readers()?;
        self.ctx.pool.set_threads(true);
        self.start_log()
    }

    fn start_cleaner(&mut self) -> Result<()> {
        let (ctx, space, started) = (self.ctx.clone(), self.space.clone(), self.started);
        let (mut cleaner, is_read_only) = (Cleaner::new(&self.options), self.storage().is_read_only());
        // The log belongs to the context: a strong handle here would keep both alive forever.
        let (waker, changes) = (Arc::downgrade(&self.ctx), Arc::downgrade(&self.changes));
        let archiving = self.archiving.as_ref().map(Arc::downgrade);
        self.ctx.log.on_pressure(Box::new(move || {
            if let Some(ctx) = waker.upgrade() {
                ctx.pool.cleaner_notify().wake();
            }
            if let Some(changes) = changes.upgrade() {
                changes.wake().wake();
            }
            if let Some(archiving) = archiving.as_ref().and_then(Weak::upgrade) {
                archiving.wake().wake();
            }
        }));
        let (pauser, waker, mut discards) = (self.ctx.clone(), self.ctx.clone(), DiscardCheckpoints::default());
        let step = move || {
            let now_ms = started.elapsed().as_millis() as u64;
            cleaner.step(&ctx.pool, &ctx.log, now_ms)?;
            discards.step(&ctx, &space, now_ms)?;
            if !is_read_only && space.discard_found_step(&ctx) {
                ctx.pool.cleaner_notify().wake();
            }
            Ok(())
        };
        let interval = Duration::from_millis(self.options.cleaner_interval_ms);
        let pause = move || pauser.pool.cleaner_notify().wait(interval);
        self.background.spawn("cleaner", ShutdownPhase::Last, self.ctx.clone(), step, pause, move || {
            waker.pool.cleaner_notify().wake()
        })
    }

    fn start_lru_flusher(&mut self) -> Result<()> {
        let (ctx, started, mut flusher) = (self.ctx.clone(), self.started, LruFlusher::new());
        let (pauser, waker) = (self.ctx.clone(), self.ctx.clone());
        let step = move || flusher.step(&ctx.pool, started.elapsed().as_millis() as u64).map(drop);
        let interval = Duration::from_millis(self.options.cleaner_interval_ms);
        let pause = move || pauser.pool.lru_notify().wait(interval);
        self.background
            .spawn("lru", ShutdownPhase::Last, self.ctx.clone(), step, pause, move || waker.pool.lru_notify().wake())
    }

    fn start_change_buffer(&mut self) -> Result<()> {
        let (changes, pauser, waker) = (self.changes.clone(), self.changes.clone(), self.changes.clone());
        let step = move || {
            if changes.step()? {
                changes.wake().wake();
            }
            Ok(())
        };
        let interval = Duration::from_millis(self.options.cleaner_interval_ms);
        let pause = move || pauser.wake().wait(interval);
        self.background
            .spawn("changes", ShutdownPhase::Second, self.ctx.clone(), step, pause, move || waker.wake().wake())
    }

    /// Starts the thread that archives redo.
    ///
    /// # Errors
    /// The system cannot start a thread.
    fn start_archiving(&mut self) -> Result<()> {
        let Some(archiving) = self.archiving.clone() else { return Ok(()) };
        let (ctx, pauser, waker) = (self.ctx.clone(), archiving.clone(), archiving.clone());
        let step = move || {
            archiving.step(|| ctx.stats.redo_archive_failures.get());
            Ok(())
        };
        let pause = move || pauser.wake().wait(ARCHIVE_PAUSE);
        self.background
            .spawn("archive", ShutdownPhase::Last, self.ctx.clone(), step, pause, move || waker.wake().wake())
    }

    fn start_readers(&mut self) -> Result<()> {
        if self.options.read_io_threads == 0 {
            return Ok(());
        }
        self.ctx.pool.start_readers();
        let ctx = self.ctx.clone();
        let start = move |group: &Arc<ThreadGroup>, n: usize| {
            let (group, step_ctx, pauser, waker) = (group.clone(), ctx.clone(), ctx.clone(), ctx.clone());
            let mut buffer = ReadBuffer::default();
            let threads = group.threads();
            let step = move || {
                step_ctx.pool.read_ahead_step(&mut buffer, || group.grow());
                Ok(())
            };
            let (pause, wake) = (move || pauser.pool.await_request(READERS_PAUSE), move || waker.pool.stop_readers());
            threads.spawn(&format!("read-{n}"), ShutdownPhase::First, ctx.clone(), step, pause, wake)
        };
        self.background.begin_group(self.options.read_io_threads as usize, Box::new(start))
    }

    fn start_log(&mut self) -> Result<()> {
        let ctx = self.ctx.clone();
        let notify = Arc::new(Notify::default());
        let waker = notify.clone();
        let step = move || ctx.log.sync_step();
        self.background.spawn(
            "log",
            ShutdownPhase::Last,
            self.ctx.clone(),
            step,
            move || notify.wait(LOG_PAUSE),
            move || waker.wake(),
        )
    }
}

/// Starts the first purge thread, which starts the others: one more while more streams wait than there are threads.
/// Each pauses when a step finds nothing to do; all but the first also pause while too few streams wait. A step that
/// fails is repeated later: purge alone never stops the database.
pub(super) fn start_purge(parts: &mut OpenParts, txns: &Arc<TxnSystem>) -> Result<()> {
    let (ctx, txns) = (parts.ctx.clone(), txns.clone());
    let start = move |group: &Arc<ThreadGroup>, others: usize| {
        let notify = Arc::new(Notify::default());
        let (again, waker, threads) = (notify.clone(), notify.clone(), group.threads());
        let (group, system, step_ctx) = (group.clone(), txns.clone(), ctx.clone());
        let step = move || {
            if others > 0 && !system.purge_needs(others) {
                return Ok(());
            }
            if group.has_started(others + 1) && system.purge_needs(others + 1) {
                group.grow();
            }
            match system.purge_round(PURGE_BATCH, others == 0) {
                Ok(0) => {}
                Ok(_) => {
                    yield_cpu();
                    again.wake();
                }
                Err(error) if step_ctx.poison.is_set() => return Err(error),
                Err(_) => step_ctx.stats.purge_retries.inc(),
            }
            Ok(())
        };
        let (pause, wake) = (move || notify.wait(PURGE_PAUSE), move || waker.wake());
        threads.spawn(&format!("purge-{others}"), ShutdownPhase::First, ctx.clone(), step, pause, wake)
    };
    parts.background.begin_group(parts.options.purge_threads as usize, Box::new(start))
}

/// Starts the thread that frees what dropped tables and indexes have left, and the end of the file. A removal that
/// fails does not stop the database: the next opening tries again.
pub(super) fn start_dropping(parts: &mut OpenParts, dropping: &Arc<Dropping>) -> Result<()> {
    let (ctx, stepped, pauser, waker) = (parts.ctx.clone(), dropping.clone(), dropping.clone(), dropping.clone());
    let step = move || match stepped.background_step() {
        Ok(goes_on) => {
            if goes_on {
                yield_cpu();
                stepped.notify().wake();
            }
            Ok(())
        }
        Err(error) if ctx.poison.is_set() => Err(error),
        Err(_) => {
            ctx.stats.drops_postponed.inc();
            stepped.notify().wake();
            Ok(())
        }
    };
    let pause = move || pauser.notify().wait(DROPPING_PAUSE);
    parts.background.spawn("drop", ShutdownPhase::First, parts.ctx.clone(), step, pause, move || waker.notify().wake())
}
