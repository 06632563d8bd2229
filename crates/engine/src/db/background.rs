//! Background threads: each calls one step function until told to stop.
//!
//! Rules
//! 1. No logic here: a step does a bounded amount of work and says how soon it wants to run again.
//! 2. A step that fails stops the database (fail-stop) and its thread; so does a step that panics.

use crate::context::Context;
use crate::error::Result;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The threads of one database. Dropping it stops and joins them.
#[derive(Default)]
pub struct Background {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    wakers: Vec<Box<dyn Fn() + Send + Sync>>,
}

impl Background {
    /// Starts a thread that runs `step` then `pause`, over and over. `wake` ends a pause early.
    ///
    /// # Errors
    /// [`crate::Error::Usage`] when the system has no thread to give.
    pub fn spawn(
        &mut self,
        name: &str,
        ctx: Arc<Context>,
        mut step: impl FnMut() -> Result<()> + Send + 'static,
        pause: impl Fn() + Send + 'static,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<()> {
        let stop = self.stop.clone();
        let run = move || {
            while !stop.load(Ordering::Acquire) && !ctx.poison.is_set() {
                match catch_unwind(AssertUnwindSafe(&mut step)) {
                    Ok(Ok(())) => pause(),
                    Ok(Err(error)) => ctx.poison.set(&error.to_string()),
                    Err(_) => ctx.poison.set("a background thread panicked"),
                }
            }
        };
        let thread = std::thread::Builder::new().name(format!("hw-{name}")).spawn(run);
        let thread = thread.map_err(|e| crate::error::Error::Usage(format!("cannot start thread {name}: {e}")))?;
        self.threads.push(thread);
        self.wakers.push(Box::new(wake));
        Ok(())
    }

    /// Stops and joins every thread.
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.wakers.iter().for_each(|wake| wake());
        for thread in self.threads.drain(..) {
            // A panic was already turned into fail-stop inside the thread.
            let _ = thread.join();
        }
        self.wakers.clear();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}
