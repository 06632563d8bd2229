//! The context of every layer above the log: buffer pool, redo log, counters, and the fail-stop switch of one database.

use crate::log::Log;
use crate::pool::Pool;
use crate::stats::Stats;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use crate::sync::poison::Poison;
use crate::sync::sharded::CachePadded;
use crate::types::{PageNo, unix_us};
use std::sync::{Arc, OnceLock};

/// Called when an mtr that allocated or freed pages has ended.
pub(crate) trait SpaceHook: Send + Sync {
    /// The mtr is in the log (`committed`) or never happened.
    fn finished(&self, committed: bool, allocated: &[PageNo], freed: &[PageNo]);
}

pub(crate) struct Context {
    pub pool: Pool,
    pub log: Arc<Log>,
    pub stats: Arc<Stats>,
    pub poison: Arc<Poison>,
    space_hook: OnceLock<Arc<dyn SpaceHook>>,
    /// Mini-transactions that commit something note when.
    notes_time: AtomicBool,
    /// The latest time that was noted.
    noted_us: CachePadded<AtomicU64>,
    /// The clock of a database that is stepped.
    stepped_clock: OnceLock<Arc<AtomicU64>>,
}

impl Context {
    pub(crate) fn new(pool: Pool, log: Arc<Log>, stats: Arc<Stats>, poison: Arc<Poison>) -> Context {
        let (space_hook, notes_time, noted_us) = (OnceLock::new(), AtomicBool::new(false), CachePadded::default());
        Context { pool, log, stats, poison, space_hook, notes_time, noted_us, stepped_clock: OnceLock::new() }
    }

    /// From now on mini-transactions that commit something note when: their redo is archived. The archive has times up
    /// to `noted_us`.
    pub(crate) fn note_times_from(&self, noted_us: u64) {
        self.noted_us.fetch_max(noted_us, Relaxed);
        self.notes_time.store(true, Relaxed);
    }

    /// From now on the clock of the database is this one, which its caller moves on; set once.
    pub(crate) fn set_clock(&self, now_ms: Arc<AtomicU64>) {
        assert!(self.stepped_clock.set(now_ms).is_ok(), "one clock per database");
    }

    /// The clock: microseconds since 1970, or since a stepped one began.
    pub(crate) fn unix_us(&self) -> u64 {
        let stepped = |now_ms: &Arc<AtomicU64>| now_ms.load(Relaxed) * 1000;
        self.stepped_clock.get().map_or_else(unix_us, stepped)
    }

    /// The time to note: that of the clock or, while the clock is behind, the latest that was noted. So times in redo
    /// never go back.
    pub(crate) fn time_us(&self) -> u64 {
        let now = self.unix_us();
        self.noted_us.fetch_max(now, Relaxed).max(now)
    }

    #[inline]
    pub(crate) fn notes_time(&self) -> bool {
        self.notes_time.load(Relaxed)
    }

    /// Sets what is called for allocations; once, when the space is opened.
    pub(crate) fn set_space_hook(&self, hook: Arc<dyn SpaceHook>) {
        assert!(self.space_hook.set(hook).is_ok(), "one space per database");
    }

    #[inline]
    pub(crate) fn space_hook(&self) -> Option<&dyn SpaceHook> {
        self.space_hook.get().map(|hook| &**hook)
    }
}
