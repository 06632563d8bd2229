//! Descents that start again.

use crate::context::Context;
use crate::error::{Error, Result};
use std::time::{Duration, Instant};

/// Restarts before the thread yields.
const PATIENT_RESTARTS: u32 = 8;
/// Maximum time of a descent with repeated restarts.
const GIVE_UP: Duration = Duration::from_secs(30);

/// Counts restarts, yields, and gives up when the pool is too small for its threads.
pub(crate) struct Restarts<'c> {
    ctx: &'c Context,
    count: u32,
    since: Option<Instant>,
}

impl<'c> Restarts<'c> {
    /// None yet.
    #[inline]
    pub(crate) fn new(ctx: &'c Context) -> Self {
        Restarts { ctx, count: 0, since: None }
    }

    /// Notes one restart.
    #[cold]
    pub(crate) fn again(&mut self) -> Result<()> {
        self.ctx.stats.btree_restarts.inc();
        self.count += 1;
        if self.count < PATIENT_RESTARTS {
            return Ok(());
        }
        self.ctx.poison.check()?;
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited > GIVE_UP {
            let waited_ms = waited.as_millis() as u64;
            return Err(Error::PoolExhausted { frames: self.ctx.pool.frame_count(), waited_ms });
        }
        crate::sync::thread::yield_now();
        Ok(())
    }
}
