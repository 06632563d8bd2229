//! The threads of a database: their loop, the start of threads on demand, the order in which they end.
//!
//! Rules
//! 1. A step that fails stops the database (fail-stop) and its thread; so does a step that panics.
//! 2. Threads end in the order of [`ShutdownPhase`]: a thread that waits for redo space or a frame gets it while the
//!    threads that free them still run. If all ended at once, it would wait for ever, and the close for it.
//! 3. A thread that is started while its phase ends is either joined with that phase or not started; the lock of the
//!    list decides.
//! 4. Of a [`ThreadGroup`] one thread runs from the beginning. A thread that finds more work than the running threads
//!    can do starts the next one, which then keeps running. If the system refuses a thread, the group works without it.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::thread::JoinHandle;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The phase of the close in which a thread ends (rule 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownPhase {
    /// Purge, drops and read-ahead: these threads wait for redo space and frames.
    First,
    /// The change buffer's: what is pending holds the checkpoint back.
    Second,
    /// The threads that free space: cleaner, LRU flusher, archive, log.
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

/// The list of a database's threads.
#[derive(Default)]
pub(super) struct Threads {
    stop: [Arc<AtomicBool>; ShutdownPhase::ALL.len()],
    running: Mutex<Vec<Running>>,
}

impl Threads {
    /// Starts a thread that runs `step` then `pause`, over and over, unless those of its phase have been stopped.
    /// `wake` ends a pause early.
    ///
    /// # Errors
    /// [`Error::Usage`] if the system cannot start a thread.
    pub(super) fn spawn(
        &self,
        name: &str,
        phase: ShutdownPhase,
        ctx: Arc<Context>,
        mut step: impl FnMut() -> Result<()> + Send + 'static,
        pause: impl Fn() + Send + 'static,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<()> {
        let stop = self.stop[phase as usize].clone();
        let mut running = self.running.lock();
        if stop.load(Ordering::Acquire) {
            return Ok(());
        }
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
        let thread = thread.map_err(|e| Error::Usage(format!("cannot start thread {name}: {e}")))?;
        running.push(Running { phase, thread, wake: Box::new(wake) });
        Ok(())
    }

    /// Stops and joins the threads whose turn it is.
    fn stop(&self, phase: ShutdownPhase) {
        let earlier = &self.stop[..phase as usize];
        let have_ended = earlier.iter().all(|stop| stop.load(Ordering::Acquire));
        debug_assert!(have_ended, "rule 2: the threads of {phase:?} end before those of an earlier phase");
        let ending: Vec<Running> = {
            let mut running = self.running.lock();
            self.stop[phase as usize].store(true, Ordering::Release);
            let (ending, going_on) = running.drain(..).partition(|thread| thread.phase == phase);
            *running = going_on;
            ending
        };
        ending.iter().for_each(|thread| (thread.wake)());
        for thread in ending {
            // The thread has already stopped the database after a panic.
            let _ = thread.thread.join();
        }
        let are_left = self.running.lock().iter().any(|thread| thread.phase == phase);
        debug_assert!(!are_left, "rule 3: a thread of {phase:?} was started while its phase ended");
    }
}

/// The threads of one database. Dropping it stops and joins them.
#[derive(Default)]
pub(crate) struct Background {
    threads: Arc<Threads>,
}

impl Background {
    /// As [`Threads::spawn`].
    ///
    /// # Errors
    /// As there.
    pub(super) fn spawn(
        &self,
        name: &str,
        phase: ShutdownPhase,
        ctx: Arc<Context>,
        step: impl FnMut() -> Result<()> + Send + 'static,
        pause: impl Fn() + Send + 'static,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<()> {
        self.threads.spawn(name, phase, ctx, step, pause, wake)
    }

    /// Starts the first thread of a group of at most `most`; `start` starts the `n`th one, counted from 0.
    ///
    /// # Errors
    /// Errors of starting the first thread.
    pub(super) fn begin_group(&self, most: usize, start: Start) -> Result<()> {
        debug_assert!(most > 0, "rule 4: a group without its first thread");
        let started = AtomicUsize::new(1);
        let group = Arc::new(ThreadGroup { threads: self.threads.clone(), most, started, start });
        (group.start)(&group, 0)
    }

    /// Stops and joins the threads whose turn it is.
    pub(crate) fn stop(&mut self, phase: ShutdownPhase) {
        self.threads.stop(phase);
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        ShutdownPhase::ALL.into_iter().for_each(|phase| self.threads.stop(phase));
    }
}

/// Starts a thread of a group.
pub(super) type Start = Box<dyn Fn(&Arc<ThreadGroup>, usize) -> Result<()> + Send + Sync>;

/// Threads with the same work (rule 4).
pub(super) struct ThreadGroup {
    threads: Arc<Threads>,
    most: usize,
    /// At most `most`.
    started: AtomicUsize,
    start: Start,
}

impl ThreadGroup {
    /// The list that they are in.
    pub(super) fn threads(&self) -> Arc<Threads> {
        self.threads.clone()
    }

    /// Whether this many were started and there may be more.
    pub(super) fn has_started(&self, count: usize) -> bool {
        let started = self.started.load(Ordering::Relaxed);
        started == count && started < self.most
    }

    /// Starts one more thread, unless all are.
    pub(super) fn grow(self: &Arc<ThreadGroup>) {
        let one_more = |started: usize| (started < self.most).then_some(started + 1);
        debug_assert!(self.started.load(Ordering::Relaxed) > 0, "rule 4: a group grows that has no thread");
        let Ok(n) = self.started.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) else { return };
        if (self.start)(self, n).is_err() {
            self.started.store(self.most, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::small_parts;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    /// A thread that waits for what another one does ends, whichever was started first.
    #[test]
    fn who_waits_for_others_ends_before_them() {
        let parts = small_parts();
        let (background, done) = (Background::default(), Arc::new(AtomicU64::new(0)));
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

    /// A group of three whose threads always request one more: it grows to three, and does not grow while it ends.
    #[test]
    fn a_group_grows_up_to_its_size_and_ends_as_a_whole() {
        let parts = small_parts();
        let steps: Arc<[AtomicU64; 4]> = Arc::default();
        let (ctx, counted) = (parts.ctx.clone(), steps.clone());
        let start = move |group: &Arc<ThreadGroup>, n: usize| {
            let (threads, group, counted) = (group.threads(), group.clone(), counted.clone());
            let step = move || {
                counted[n].fetch_add(1, Ordering::SeqCst);
                group.grow();
                Ok(())
            };
            let pause = || std::thread::sleep(Duration::from_millis(1));
            threads.spawn(&format!("group-{n}"), ShutdownPhase::First, ctx.clone(), step, pause, || {})
        };
        let mut background = Background::default();
        background.begin_group(3, Box::new(start)).unwrap();
        while steps[..3].iter().any(|count| count.load(Ordering::SeqCst) < 3) {
            std::thread::yield_now();
        }
        background.stop(ShutdownPhase::First);
        let ended = steps.each_ref().map(|count| count.load(Ordering::SeqCst));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(steps.each_ref().map(|count| count.load(Ordering::SeqCst)), ended, "all have ended");
        assert_eq!(ended[3], 0, "there is no fourth");
        let none = |_: &Arc<ThreadGroup>, _| Err(Error::Usage("no thread".into()));
        assert!(background.begin_group(2, Box::new(none)).is_err());
        let spawned = background.spawn("late", ShutdownPhase::First, parts.ctx.clone(), || Ok(()), || {}, || {});
        assert!(spawned.is_ok() && background.threads.running.lock().is_empty(), "no thread begins after the end");
    }
}
