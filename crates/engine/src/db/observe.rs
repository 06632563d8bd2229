//! Observing an open database: counters, latencies, lengths of lists, and the check.

use super::database::Database;
use crate::check::{self, CheckReport, OnProgress, Subject};
use crate::config::ChangeBuffering;
use crate::error::Result;
use crate::inspect::ListLengths;
use crate::probe::ProbeRecord;
use crate::stats::{LatencySnapshot, MetricsFormat, MetricsText, StatsSnapshot};
use crate::txn::{PurgeState, telling};
use highwater_storage::StorageSet;

impl Database {
    /// The devices.
    pub fn storage(&self) -> &StorageSet {
        &self.inner.storage
    }

    /// The probe of the data device and what it chose; `None` if no option is `auto` or the device is memory.
    pub fn probe(&self) -> Option<&ProbeRecord> {
        self.inner.probe.as_ref()
    }

    /// The counters.
    pub fn stats(&self) -> StatsSnapshot {
        let _sets_gauges = self.purge_state();
        let (stats, storage) = (&self.inner.ctx.stats, &self.inner.storage);
        let calls = [&storage.data, &storage.redo, &storage.doublewrite].map(|device| device.io_counts());
        stats.os_syncs.set(calls.iter().map(|c| c.syncs).sum());
        stats.os_writes.set(calls.iter().map(|c| c.writes).sum());
        stats.os_ring_writes.set(calls.iter().map(|c| c.ring_writes).sum());
        stats.row_lock_current_waits.set(self.inner.txns.locks.current_waits());
        stats.snapshot()
    }

    /// Every counter, the latencies and the sizes of pool and log as text for Prometheus, times in seconds: what an
    /// HTTP server answers at `/metrics`. `highwater_build_info` has the version.
    ///
    /// ```
    /// use highwater::{Database, MetricsFormat, Options};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Database::open(dir.path(), Options::default())?;
    /// let text = db.metrics_text(MetricsFormat::OpenMetrics);
    /// assert!(text.contains("\nhighwater_trx_commits_total ") && text.ends_with("# EOF\n"));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    pub fn metrics_text(&self, format: MetricsFormat) -> String {
        let mut text = MetricsText::new(format);
        self.stats().table().iter().for_each(|row| text.row(row));
        let (lists, options) = (self.list_lengths(), self.options());
        text.gauge("pool_pages", "Frames of the buffer pool. InnoDB: buffer_pool_pages_total.", lists.frames as u64);
        text.gauge("pool_pages_lru", "Frames on the LRU list.", lists.lru as u64);
        text.gauge("page_bytes", "Size of a page.", options.page_size.bytes().unwrap_or_default());
        text.gauge("log_file_size_bytes", "Size to which the redo log grows.", options.log_file_size);
        let help = "Time from missing a page to reading it, with the wait for a frame.";
        text.latency("page_read", help, &self.page_read_latency());
        let help = "Time that threads waited for a free frame.";
        text.latency("free_frame_wait", help, &self.free_frame_wait_latency());
        text.finish()
    }

    /// The lag of purge, and the damage that it skipped; [`PurgeWatch`](crate::PurgeWatch) turns it into warnings.
    pub fn purge_state(&self) -> PurgeState {
        self.inner.txns.purge_state()
    }

    /// Latency of page misses since the opening: from the miss in the buffer pool until the page is readable, the wait
    /// for a free frame included.
    pub fn page_read_latency(&self) -> LatencySnapshot {
        self.inner.ctx.pool.page_read_latency()
    }

    /// Latency of waits for a free frame since the opening.
    pub fn free_frame_wait_latency(&self) -> LatencySnapshot {
        self.inner.ctx.pool.free_frame_wait_latency()
    }

    /// Lengths of the pool's lists and of the history list.
    pub fn list_lengths(&self) -> ListLengths {
        let pool = &self.inner.ctx.pool;
        ListLengths {
            frames: pool.frame_count(),
            free: pool.free_count(),
            lru: pool.lru_count(),
            dirty: pool.dirty_count(),
            history: self.inner.txns.history_list_length(),
        }
    }

    /// Changes how changes of secondary indexes are buffered. What is buffered is merged first; nothing is buffered
    /// meanwhile, nor afterwards if that fails.
    ///
    /// ```
    /// use highwater::config::ChangeBuffering;
    /// use highwater::{Database, Options};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let folder = dir.path();
    /// let options = Options { change_buffering: ChangeBuffering::Disk, ..Options::default() };
    /// let db = Database::open(folder, options)?;
    /// db.set_change_buffering(ChangeBuffering::Memory)?;
    /// # db.close()?;
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) if the database was opened to be read only, a damaged leaf, a full disk,
    /// an I/O error.
    pub fn set_change_buffering(&self, mode: ChangeBuffering) -> Result<()> {
        self.check_writable()?;
        let _no_schema_change = self.inner.gate.without_schema_changes(self.patience())?;
        let _no_drops = self.inner.dropping.hold()?;
        self.check_writable()?;
        self.inner.txns.changes.set_mode(mode)
    }

    /// Verifies every page, tree and cross-reference. Meanwhile transactions can read, and lock rows; writers and
    /// schema changes wait. The check itself waits until transactions that write have ended; it bars new ones
    /// meanwhile, in turns, as a [schema change](Database::drop_table) does.
    ///
    /// # Errors
    /// [`LockWaitTimeout`](crate::Error::LockWaitTimeout) if transactions or schema changes keep it out for longer than
    /// that; [`Closed`](crate::Error::Closed) if the database is closed during the check; the error that ends the
    /// check. Damage is not an error but in the report.
    pub fn check(&self) -> Result<CheckReport> {
        self.check_with(&mut |_, _| {})
    }

    /// As [`check`](Database::check), with progress. `on_progress` may read rows; it gets
    /// [`Usage`](crate::Error::Usage) where it closes the database, changes tables or indexes, or checks again. A close
    /// by another thread waits until it returns.
    ///
    /// # Errors
    /// As [`check`](Database::check).
    pub fn check_with(&self, on_progress: &mut OnProgress<'_>) -> Result<CheckReport> {
        let inner = &self.inner;
        self.check_open()?;
        let _readers_only = inner.gate.alone(self.patience())?;
        self.check_open()?;
        let tables = inner.registry.all();
        let _no_drops = inner.dropping.hold()?;
        let _no_purge = inner.txns.hold_purge();
        let subject = Subject {
            ctx: &inner.ctx,
            space: &inner.space,
            txns: &inner.txns,
            catalog: &inner.catalog,
            changes: &inner.txns.changes,
            tables: tables.clone(),
            goes_on: &|| inner.check_running(),
        };
        check::run(&subject, &mut |done, total| telling(|| on_progress(done, total)))
    }
}
