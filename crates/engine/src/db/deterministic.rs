//! A database without its own threads: the caller runs their steps in an order of its choice. So one thread decides
//! everything, and a simulator can repeat a run.
//!
//! Rules
//! 1. A step that fails stops the database, as its thread would ([`super::background`], rule 2); purge alone does not.
//! 2. A thread that finds no space in the redo log runs the steps of cleaner and change buffer itself, because no other
//!    thread does. It holds no latch then.
//! 3. The caller sets the time; only pauses take real time, without effect. No thread waits for a lock, or for the page
//!    cleaner, because no other thread would run meanwhile.

use super::background::{DiscardCheckpoints, PURGE_BATCH};
use super::database::Database;
pub use super::open_overrides::OpenOverrides;
use super::open_parts::OpenParts;
use crate::change_buffer::ChangeBuffer;
use crate::config::Options;
use crate::context::Context;
use crate::error::Result;
use crate::pool::cleaner::{Cleaner, LruFlusher};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::types::EXTENT_PAGES;
use highwater_storage::StorageSet;
use std::sync::Arc;

/// A bounded piece of work that a thread does otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundStep {
    /// Of the page cleaner: flushes pages, moves the checkpoint.
    Cleaner,
    /// Of the LRU flusher.
    LruFlusher,
    /// Of the change buffer: merges, carries forward.
    ChangeBuffer,
    /// Of the log: syncs it where commits do not.
    Log,
    /// Of purge.
    Purge,
    /// Frees what dropped tables and indexes have left, and the end of the file.
    Drops,
    /// Of the removal of expired rows.
    Expiry,
}

impl BackgroundStep {
    /// Every step.
    pub const ALL: [BackgroundStep; 7] = [
        BackgroundStep::Cleaner,
        BackgroundStep::LruFlusher,
        BackgroundStep::ChangeBuffer,
        BackgroundStep::Log,
        BackgroundStep::Purge,
        BackgroundStep::Drops,
        BackgroundStep::Expiry,
    ];
}

/// An open database and its steps.
pub struct DeterministicDb {
    database: Database,
    cleaning: Arc<Cleaning>,
    flusher: Mutex<LruFlusher>,
    changes: Arc<ChangeBuffer>,
}

struct Cleaning {
    cleaner: Mutex<Cleaner>,
    discards: Mutex<DiscardCheckpoints>,
    now_ms: Arc<AtomicU64>,
}

impl Cleaning {
    fn step(&self, ctx: &Context) -> Result<()> {
        self.cleaner.lock().step(&ctx.pool, &ctx.log, self.now_ms.load(Relaxed)).map(drop)
    }
}

impl DeterministicDb {
    /// Opens or creates a database in `storage`; `now_ms` is its clock, which the caller moves on.
    ///
    /// # Errors
    /// As [`Database::open_storage`].
    pub fn open(
        storage: StorageSet,
        options: Options,
        overrides: &OpenOverrides,
        now_ms: Arc<AtomicU64>,
    ) -> Result<DeterministicDb> {
        let mut parts = OpenParts::open_in(storage, options, overrides)?;
        // Rule 3.
        parts.options.lock_wait_timeout_ms = 0;
        parts.ctx.set_clock(now_ms.clone());
        let (cleaner, discards) = (Mutex::new(Cleaner::new(&parts.options)), Mutex::default());
        let cleaning = Arc::new(Cleaning { cleaner, discards, now_ms });
        let changes = parts.changes.clone();
        answer_pressure(&parts, cleaning.clone());
        let database = Database::assemble(parts, |_| Ok(()))?;
        Ok(DeterministicDb { database, cleaning, flusher: Mutex::default(), changes })
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Whether all redo is durable.
    pub fn is_log_durable(&self) -> bool {
        let log = &self.database.inner.ctx.log;
        log.durable_lsn() >= log.end_lsn()
    }

    /// Extent maps that the data file has.
    pub fn extent_maps(&self) -> u32 {
        let space = &self.database.inner.space;
        space.layout().groups(space.page_count() / EXTENT_PAGES)
    }

    /// One step.
    ///
    /// # Errors
    /// The step's; the database has stopped then.
    pub fn step(&self, step: BackgroundStep) -> Result<()> {
        let inner = &self.database.inner;
        let ctx = &inner.ctx;
        ctx.poison.check()?;
        let done = match step {
            BackgroundStep::Cleaner => {
                let discard =
                    || self.cleaning.discards.lock().step(ctx, &inner.space, self.cleaning.now_ms.load(Relaxed));
                self.cleaning.step(ctx).and_then(|()| discard())
            }
            BackgroundStep::LruFlusher => {
                self.flusher.lock().step(&ctx.pool, self.cleaning.now_ms.load(Relaxed)).map(drop)
            }
            BackgroundStep::ChangeBuffer => self.changes.step().map(drop),
            BackgroundStep::Log => ctx.log.sync_step(),
            BackgroundStep::Purge => match inner.txns.purge_round(PURGE_BATCH, true) {
                Err(error) if ctx.poison.is_set() => return Err(error),
                _ => Ok(()),
            },
            BackgroundStep::Drops => match inner.dropping.background_step() {
                Err(error) if ctx.poison.is_set() => return Err(error),
                _ => Ok(()),
            },
            BackgroundStep::Expiry => {
                self.database.expire_step();
                Ok(())
            }
        };
        done.inspect_err(|error| ctx.poison.set(&error.to_string()))
    }

    /// Closes the database.
    ///
    /// # Errors
    /// As [`Database::close`].
    pub fn close(self) -> Result<()> {
        self.database.close()
    }
}

/// Rule 2.
fn answer_pressure(parts: &OpenParts, cleaning: Arc<Cleaning>) {
    let (ctx, changes) = (Arc::downgrade(&parts.ctx), Arc::downgrade(&parts.changes));
    parts.ctx.log.on_pressure(Box::new(move || {
        let Some(ctx) = ctx.upgrade() else { return };
        // Not a whole step: merging operations of the tree would reserve redo (see `Log::on_pressure`).
        let carried = changes.upgrade().map_or(Ok(()), |changes| changes.advance_due().map(drop));
        if let Err(error) = carried.and_then(|()| cleaning.step(&ctx)) {
            ctx.poison.set(&error.to_string());
        }
    }));
}
