//! The background threads of a database: cleaner, LRU flusher, change buffer, archive, readers, log, purge, drops.
//!
//! Rules
//! 1. No logic here: a step does a bounded amount of work. Then its thread pauses, for a fixed time or until it is
//!    woken ([`Notify`]); a step that must run again at once wakes its own thread.
//! 2. A step that fails stops the database (fail-stop) and its thread; so does a step that panics.
//! 3. Threads end in the order of [`ShutdownPhase`]: one that waits for redo space or a frame gets it while those run
//!    that make some. All of them at once would leave it waiting for ever, and the closing for it.

use super::dropping::Dropping;
use super::open_parts::OpenParts;
use crate::context::Context;
use crate::error::Result;
use crate::pool::ReadBuffer;
use crate::pool::cleaner::{Cleaner, LruFlusher, checkpoint, checkpoint_target};
use crate::space::Space;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::notify::Notify;
use crate::sync::thread::JoinHandle;
use crate::txn::{TxnSystem, yield_cpu};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The log thread's pause: what commits did not wait for is synced once a second.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// The pause of threads that read ahead, when nothing is wanted.
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

/// When a thread ends, at the closing (rule 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownPhase {
    /// Purge, drops, and those that read ahead: they wait for redo space and frames.
    First,
    /// The change buffer's: what is pending holds the checkpoint back.
    Second,
    /// Those that make room: cleaner, LRU flusher, archive, log.
    Last,
}

impl ShutdownPhase {
    const ALL: [ShutdownPhase; 3] = [ShutdownPhase::First, ShutdownPhase::Second, ShutdownPhase::Last];
}

/// A thread, and how its pause is ended.
struct Running {
    phase: ShutdownPhase,
    thread: JoinHandle<()>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// The threads of one database. Dropping it stops and joins them.
#[derive(Default)]
pub struct Background {
    stop: [Arc<AtomicBool>; ShutdownPhase::ALL.len()],
    threads: Vec<Running>,
}

impl Background {
    /// Starts a thread that runs `step` then `pause`, over and over. `notify` ends a pause early.
    ///
    /// # Errors
    /// [`crate::Error::Usage`] if the system cannot start a thread.
    pub fn spawn(
        &mut self,
        name: &str,
        phase: ShutdownPhase,
        ctx: Arc<Context>,
        mut step: impl FnMut() -> Result<()> + Send + 'static,
        pause: impl Fn() + Send + 'static,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<()> {
        let stop = self.stop[phase as usize].clone();
        let run = move || {
            while !stop.load(Ordering::Acquire) && !ctx.poison.is_set() {
                match catch_unwind(AssertUnwindSafe(&mut step)) {
                    Ok(Ok(())) => pause(),
                    Ok(Err(error)) => ctx.poison.set(&error.to_string()),
                    Err(_) => ctx.poison.set("a background thread panicked"),
                }
            }
        };
        let thread = crate::sync::thread::Builder::new().name(format!("hw-{name}")).spawn(run);
        let thread = thread.map_err(|e| crate::error::Error::Usage(format!("cannot start thread {name}: {e}")))?;
        self.threads.push(Running { phase, thread, wake: Box::new(wake) });
        Ok(())
    }

    /// Stops and joins the threads whose turn it is.
    pub fn stop(&mut self, phase: ShutdownPhase) {
        self.stop[phase as usize].store(true, Ordering::Release);
        let (ending, going_on): (Vec<Running>, Vec<Running>) =
            self.threads.drain(..).partition(|running| running.phase == phase);
        self.threads = going_on;
        ending.iter().for_each(|running| (running.wake)());
        for running in ending {
            // The thread has already stopped the database after a panic.
            let _ = running.thread.join();
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        ShutdownPhase::ALL.into_iter().for_each(|phase| self.stop(phase));
    }
}

impl OpenParts {
    /// Starts the threads of cleaner, LRU flusher, change buffer, archive and log, and those that read ahead.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start_threads(&mut self) -> Result<()> {
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

    fn start_readers(&mut self) -> Result<()> {
        if self.options.read_io_threads > 0 {
            self.ctx.pool.start_readers();
        }
        for n in 0..self.options.read_io_threads {
            let (ctx, pauser, waker) = (self.ctx.clone(), self.ctx.clone(), self.ctx.clone());
            let mut buffer = ReadBuffer::default();
            let step = move || {
                ctx.pool.read_ahead_step(&mut buffer);
                Ok(())
            };
            let (pause, wake) = (move || pauser.pool.await_request(READERS_PAUSE), move || waker.pool.stop_readers());
            self.background.spawn(&format!("read-{n}"), ShutdownPhase::First, self.ctx.clone(), step, pause, wake)?;
        }
        Ok(())
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

/// Starts the purge threads. Each pauses when a step finds nothing to do; all but the first also pause while too few
/// streams wait. A step that fails is repeated later: purge alone never stops the database.
pub(super) fn start_purge(parts: &mut OpenParts, txns: &Arc<TxnSystem>) -> Result<()> {
    for others in 0..parts.options.purge_threads as usize {
        let (system, ctx, notify) = (txns.clone(), parts.ctx.clone(), Arc::new(Notify::default()));
        let (again, waker) = (notify.clone(), notify.clone());
        let step = move || {
            if others > 0 && !system.purge_needs(others) {
                return Ok(());
            }
            match system.purge_round(PURGE_BATCH, others == 0) {
                Ok(0) => {}
                Ok(_) => {
                    yield_cpu();
                    again.wake();
                }
                Err(error) if ctx.poison.is_set() => return Err(error),
                Err(_) => ctx.stats.purge_retries.inc(),
            }
            Ok(())
        };
        let name = format!("purge-{others}");
        parts.background.spawn(
            &name,
            ShutdownPhase::First,
            parts.ctx.clone(),
            step,
            move || notify.wait(PURGE_PAUSE),
            move || waker.wake(),
        )?;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::small_parts;
    use std::sync::atomic::AtomicU64;

    /// A thread that waits for what another one does ends, whichever was started first.
    #[test]
    fn who_waits_for_others_ends_before_them() {
        let parts = small_parts();
        let (mut background, done) = (Background::default(), Arc::new(AtomicU64::new(0)));
        for (phase, name) in
            [(ShutdownPhase::Last, "makes"), (ShutdownPhase::Second, "waits"), (ShutdownPhase::First, "waits-too")]
        {
            let done = done.clone();
            let step = move || {
                let before = done.load(Ordering::SeqCst);
                match phase {
                    ShutdownPhase::Last => drop(done.fetch_add(1, Ordering::SeqCst)),
                    _ => {
                        while done.load(Ordering::SeqCst) < before + 20 {
                            std::thread::yield_now();
                        }
                    }
                }
                Ok(())
            };
            background
                .spawn(name, phase, parts.ctx.clone(), step, || std::thread::sleep(Duration::from_millis(1)), || {})
                .unwrap();
        }
        while done.load(Ordering::SeqCst) < 10 {
            std::thread::yield_now();
        }
        drop(background);
    }
}
