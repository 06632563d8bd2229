//! The counter table: each counter once, with its name, its meaning and, where InnoDB counts the same, InnoDB's name
//! (as in `INNODB_METRICS` or `SHOW GLOBAL STATUS LIKE 'Innodb_%'`). Everything that prints counters walks it.

mod latency;
mod metrics;

pub(crate) use latency::Histogram;
pub use latency::LatencySnapshot;
pub use metrics::MetricsFormat;
pub(crate) use metrics::MetricsText;

use crate::sync::sharded::{shard, shard_count};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident $(= $innodb:literal)?,)*) => {
        /// Live counters of one database.
        #[derive(Debug, Default)]
        pub struct Stats { $($(#[doc = $doc])+ pub $name: Counter,)* }

        /// The counters at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct StatsSnapshot { $($(#[doc = $doc])+ pub $name: u64,)* }

        impl Stats {
            /// Reads every counter.
            pub fn snapshot(&self) -> StatsSnapshot {
                StatsSnapshot { $($name: self.$name.get(),)* }
            }
        }

        impl StatsSnapshot {
            /// Every counter with its value, in table order.
            pub fn table(&self) -> Vec<CounterRow> {
                vec![$(CounterRow {
                    name: stringify!($name),
                    doc: concat!($($doc),+).trim_ascii(),
                    innodb: None$(.or(Some($innodb)))?,
                    value: self.$name,
                },)*]
            }

            /// What happened since `earlier` (gauges keep their present value's difference, saturating).
            pub fn since(&self, earlier: &StatsSnapshot) -> StatsSnapshot {
                StatsSnapshot { $($name: self.$name.saturating_sub(earlier.$name),)* }
            }
        }
    };
}

/// One row of the counter table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterRow {
    /// Name.
    pub name: &'static str,
    /// Meaning; a gauge's begins with `Gauge: `.
    pub doc: &'static str,
    /// InnoDB's name, and its unit where that is another; `None` if InnoDB has no such counter.
    pub innodb: Option<&'static str>,
    /// Value.
    pub value: u64,
}

/// A relaxed counter, in parts for the shards of threads: neither threads with different counters slow each other, nor
/// those that count the same thing at different places. A gauge is only set, a counter only added to.
#[derive(Debug)]
pub struct Counter(Box<[Part]>);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Part(AtomicU64);

impl Default for Counter {
    fn default() -> Counter {
        Counter((0..shard_count()).map(|_| Part::default()).collect())
    }
}

impl Counter {
    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        // There is a power of two of them, so the mask is the remainder.
        self.0[shard() & (self.0.len() - 1)].0.fetch_add(n, Relaxed);
    }

    /// Adds one.
    #[inline]
    pub fn inc(&self) {
        self.add(1);
    }

    /// The present value.
    pub fn get(&self) -> u64 {
        self.0.iter().fold(0, |sum, part| sum.wrapping_add(part.0.load(Relaxed)))
    }

    /// Sets a gauge.
    pub fn set(&self, n: u64) {
        let counts = self.0[1..].iter().any(|part| part.0.load(Relaxed) != 0);
        debug_assert!(!counts, "a counter is set to {n} that has counted");
        self.0[0].0.store(n, Relaxed);
    }
}

counters! {
    /// Pages read from the data file.
    pages_read = "buffer_pages_read",
    /// Pages read before a thread needed them: along scans and checks, and for several rows that are looked up.
    pages_read_ahead = "buffer_pages_read_ahead",
    /// Bytes written to temporary files, to sort the entries of new indexes.
    sort_bytes_written,
    /// Dropped tables and indexes that could not be freed because of damage, and wait for the next opening.
    drops_postponed,
    /// Changes that writers noted while an index of their table was being built.
    index_build_logged_changes,
    /// Pages written to the data file, for any reason: the sum of the counters by reason.
    pages_flushed = "buffer_pages_written",
    /// Index pages (of tables and secondary indexes) read from the data file.
    index_pages_read,
    /// Index pages (of tables and secondary indexes) written to the data file.
    index_pages_written,
    /// Pages of the change buffer read from the data file.
    change_buffer_pages_read,
    /// Pages of the change buffer written to the data file.
    change_buffer_pages_written,
    /// Changes of secondary indexes that were buffered because the leaf was not in the buffer pool.
    change_buffer_ops_buffered,
    /// Leaves into which buffered changes were merged.
    change_buffer_merges = "ibuf_merges",
    /// Buffered inserts that were merged.
    change_buffer_merged_inserts = "ibuf_merges_insert",
    /// Buffered delete-marks, set or cleared, that were merged.
    change_buffer_merged_delete_marks = "ibuf_merges_delete_mark",
    /// Buffered removals that were merged.
    change_buffer_merged_deletes = "ibuf_merges_delete",
    /// Buffered changes of dropped indexes, and of leaves that were lost, discarded.
    change_buffer_discarded_ops = "ibuf_merges_discard_insert, inserts only",
    /// Buffered changes that were logged again so that a checkpoint could pass their redo.
    change_buffer_relogged_ops,
    /// Bytes of redo of those.
    change_buffer_relogged_bytes,
    /// Gauge: bytes that buffered changes take.
    change_buffer_bytes = "ibuf_size, in pages",
    /// Gauge: leaves for which changes are buffered.
    change_buffer_leaves,
    /// Pages flushed from the tail of the LRU list.
    pages_flushed_lru_list = "buffer_LRU_batch_flush_total_pages",
    /// Pages flushed from the flush list because too many frames are dirty.
    pages_flushed_dirty_pct,
    /// Pages flushed from the flush list because of the checkpoint age.
    pages_flushed_checkpoint_age = "buffer_flush_adaptive_total_pages",
    /// Pages flushed from the flush list while no transaction changed anything.
    pages_flushed_idle = "buffer_flush_background_total_pages",
    /// Pages flushed from the flush list because a load had filled them, while it continued.
    pages_flushed_bulk_load,
    /// Pages flushed from the flush list above the sync watermark of the checkpoint age.
    pages_flushed_sync = "buffer_flush_sync_total_pages",
    /// Pages flushed together with a neighboring page (`flush_neighbors`).
    pages_flushed_neighbor = "buffer_flush_neighbor_total_pages",
    /// Pages flushed one at a time by a thread that found no free frame.
    pages_flushed_single_page = "buffer_LRU_single_flush_num_scan, in scans",
    /// Pages flushed when the database was closed and by recovery.
    pages_flushed_shutdown,
    /// Microseconds threads spent in single-page flushes.
    single_page_flush_us,
    /// Pages evicted from the LRU list, clean or after a flush.
    pages_evicted = "buffer_pool_pages_LRU_freed",
    /// Pages made young (moved to the head of the LRU list).
    pages_made_young = "buffer_pool_pages_made_young",
    /// Times a thread found the free list empty and waited.
    free_frame_waits = "buffer_pool_wait_free",
    /// Microseconds spent in those waits.
    free_frame_wait_us,
    /// Times the page at the LRU tail was dirty when a thread needed its frame.
    dirty_victims,
    /// Times a batch waited for its area of the doublewrite file.
    doublewrite_waits,
    /// Microseconds spent in those waits.
    doublewrite_wait_us,
    /// Times a batch waited for room in the journal.
    journal_waits,
    /// Microseconds spent in those waits.
    journal_wait_us,
    /// Times a mini-transaction was delayed because the checkpoint age was too large.
    sync_flush_waits = "buffer_flush_sync_waits",
    /// Microseconds spent in those waits.
    sync_flush_wait_us,
    /// Times a thread waited for room in the redo ring.
    log_waits = "log_waits",
    /// Microseconds spent in those waits.
    log_wait_us,
    /// Writes to the redo device.
    log_writes = "log_writes",
    /// Syncs of the redo device.
    log_syncs = "os_log_fsyncs",
    /// Microseconds spent in those syncs.
    log_sync_us,
    /// Syncs of the data device that the engine requested; with O_DIRECT_NO_FSYNC few of them are a system call
    /// (`os_syncs`).
    data_syncs,
    /// Requested syncs of the doublewrite device.
    doublewrite_syncs,
    /// Requested syncs of the doublewrite device that make the journal durable.
    journal_syncs,
    /// Bytes that flushes appended to segments, headers and padding included (page store out of place).
    store_bytes_user,
    /// Bytes that the cleaner appended to segments, headers and padding included.
    store_bytes_cleaned,
    /// Gauge: bytes of images that the page map points at.
    store_live_bytes,
    /// Gauge: segments that the data file has.
    store_segments,
    /// Gauge: segments that are free.
    store_segments_free,
    /// Segments cleaned.
    store_segments_cleaned,
    /// Segments that could not be read when they were to be cleaned; they take room until the next opening.
    store_segments_unreadable,
    /// Segments discarded on the device.
    store_discards,
    /// Times a flush waited until a segment was free.
    store_clean_waits,
    /// Microseconds of those waits.
    store_clean_wait_us,
    /// Reads of a page that were repeated because it was moved meanwhile.
    store_read_retries,
    /// Gauge: bytes read when the store was opened, to find out where the pages are.
    store_open_scan_bytes,
    /// Bytes of pages given to the compression.
    store_compressed_bytes_in,
    /// Bytes of their images.
    store_compressed_bytes_out,
    /// Microseconds spent compressing.
    store_compress_us,
    /// Checkpoints written.
    checkpoints = "log_checkpoints",
    /// Bytes of redo generated.
    redo_bytes = "log_lsn_current, from the creation on",
    /// Bytes of redo that the archive has, from the opening on.
    redo_archived_bytes,
    /// Gauge: bytes of durable redo that the archive does not have yet.
    redo_archive_lag_bytes,
    /// Times that the archive could not be written.
    redo_archive_failures,
    /// Times that redo was left out of the archive.
    redo_archive_gaps,
    /// Bytes written: redo.
    bytes_written_redo = "os_log_written",
    /// Bytes written: doublewrite.
    bytes_written_doublewrite = "dblwr_pages_written, in pages",
    /// Bytes written: journal.
    bytes_written_journal,
    /// Bytes written: undo pages.
    bytes_written_undo = "buffer_page_written_undo_log, in pages",
    /// Bytes written: change buffer.
    bytes_written_change_buffer = "buffer_page_written_index_ibuf_leaf, in pages",
    /// Bytes written: tree leaves.
    bytes_written_index_leaf = "buffer_page_written_index_leaf, in pages",
    /// Bytes written: inner tree pages.
    bytes_written_index_inner = "buffer_page_written_index_non_leaf, in pages",
    /// Bytes written: everything else.
    bytes_written_other,
    /// Page splits.
    btree_splits = "index_page_splits",
    /// Page merges.
    btree_merges = "index_page_merge_successful",
    /// Optimistic tree descents that were restarted.
    btree_restarts,
    /// Transactions committed.
    trx_commits = "trx_rw_commits",
    /// Transactions prepared.
    trx_prepares,
    /// Transactions rolled back.
    trx_rollbacks = "trx_rollbacks",
    /// Row lock waits.
    row_lock_waits = "lock_row_lock_waits",
    /// Gauge: sessions that wait for a row lock, or for another's range lock.
    row_lock_current_waits = "lock_row_lock_current_waits",
    /// Microseconds spent in row lock waits.
    row_lock_wait_us = "lock_row_lock_time, in milliseconds",
    /// Row lock waits that timed out.
    row_lock_timeouts = "lock_timeouts",
    /// Deadlocks resolved.
    deadlocks = "lock_deadlocks",
    /// Undo records purged.
    purged_records = "purge_del_mark_records, without updates",
    /// Steps from a version of a row to the version before it, by readers, purge and rollback.
    mvcc_versions_traversed,
    /// Undo records that purge skipped because a page they refer to is damaged.
    purge_records_skipped,
    /// Undo streams that purge abandoned because one of their pages is damaged.
    purge_streams_skipped,
    /// Transactions that could not be rolled back when the database was opened because a page is damaged; their rows
    /// stay locked.
    rollbacks_skipped,
    /// Merges of underfull tree pages that were abandoned because a neighboring page is damaged or space is short.
    btree_merges_abandoned,
    /// Times a purge step failed and was retried later, or could not release an undo page for now.
    purge_retries,
    /// Row changes that were delayed because of `max_purge_lag`.
    purge_lag_delays,
    /// Microseconds of those delays.
    purge_lag_delay_us = "purge_dml_delay_usec, the present delay",
    /// Gauge: undo records of ended transactions that are not purged yet (of those that ended since the opening).
    purge_pending_records,
    /// Gauge: bytes of the data file that undo pages take.
    undo_bytes,
    /// Gauge: age of the oldest open snapshot, in seconds.
    oldest_view_age_s,
    /// Gauge: connections of readers in other processes, each with a snapshot.
    readers,
    /// Connections of readers in other processes so far.
    readers_served,
    /// Gauge: committed transactions whose undo is not purged yet.
    history_list_length = "trx_rseg_history_len",
    /// Gauge: frames on the free list.
    pool_pages_free = "buffer_pool_pages_free",
    /// Gauge: dirty frames.
    pool_pages_dirty = "buffer_pool_pages_dirty",
    /// Gauge: frames that hold a page.
    pool_pages_data = "buffer_pool_pages_data",
    /// Gauge: bytes between the last checkpoint and the end of the log.
    checkpoint_age_bytes = "log_lsn_checkpoint_age",
    /// Gauge: redo generated per second, smoothed.
    redo_bytes_per_s,
    /// Bytes of redo scanned when the database was opened.
    recovery_redo_bytes,
    /// Pages read to replay it.
    recovery_pages_read,
    /// Microseconds from the start of the scan until every replayed page was durable.
    recovery_us,
    /// Pages overwritten since they could not be read when changes of them had to be applied, at opening or later.
    pages_lost,
    /// Rows inserted.
    rows_inserted = "dml_inserts",
    /// Rows read.
    rows_read = "dml_reads",
    /// Rows updated.
    rows_updated = "dml_updates",
    /// Rows deleted.
    rows_deleted = "dml_deletes",
    /// Rows deleted because they were expired, by the thread that does so.
    rows_expired,
    /// Sync system calls, all files; fewer than the requested syncs where the flush method needs none.
    os_syncs = "os_data_fsyncs",
    /// Writes to files with one system call each.
    os_writes,
    /// Writes to files submitted in batches through io_uring.
    os_ring_writes,
}

impl Stats {
    /// Counts bytes written to the data file under their placement.
    pub fn count_written(&self, placement: highwater_storage::Placement, bytes: usize) {
        use highwater_storage::Placement as P;
        let counter = match placement {
            P::Redo => &self.bytes_written_redo,
            P::Doublewrite => &self.bytes_written_doublewrite,
            P::Journal => &self.bytes_written_journal,
            P::Undo => &self.bytes_written_undo,
            P::ChangeBuffer => &self.bytes_written_change_buffer,
            P::IndexLeaf => &self.bytes_written_index_leaf,
            P::IndexInner => &self.bytes_written_index_inner,
            P::Other => &self.bytes_written_other,
            // Of pages out of place the store counts what it appends.
            P::Lifetime0 | P::Lifetime1 | P::Lifetime2 | P::Lifetime3 | P::Lifetime4 | P::Lifetime5 => return,
        };
        counter.add(bytes as u64);
    }

    /// Counts a page read from the data file under its type.
    pub fn count_page_read(&self, placement: highwater_storage::Placement) {
        use highwater_storage::Placement as P;
        match placement {
            P::IndexLeaf | P::IndexInner => self.index_pages_read.inc(),
            P::ChangeBuffer => self.change_buffer_pages_read.inc(),
            _ => {}
        }
    }

    /// Counts pages written to the data file under their type.
    pub fn count_pages_written(&self, placement: highwater_storage::Placement, pages: u64) {
        use highwater_storage::Placement as P;
        match placement {
            P::IndexLeaf | P::IndexInner => self.index_pages_written.add(pages),
            P::ChangeBuffer => self.change_buffer_pages_written.add(pages),
            _ => {}
        }
    }
}

impl StatsSnapshot {
    /// Pages flushed from the flush list, for any of its reasons.
    pub fn pages_flushed_flush_list(&self) -> u64 {
        self.pages_flushed_dirty_pct
            + self.pages_flushed_checkpoint_age
            + self.pages_flushed_idle
            + self.pages_flushed_bulk_load
            + self.pages_flushed_sync
    }

    /// The sum of the reasons for which pages were flushed; equals `pages_flushed` whenever no flush is running.
    pub fn pages_flushed_by_reason(&self) -> u64 {
        self.pages_flushed_lru_list
            + self.pages_flushed_flush_list()
            + self.pages_flushed_neighbor
            + self.pages_flushed_single_page
            + self.pages_flushed_shutdown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn counters_that_innodb_has_carry_its_name() {
        let table = StatsSnapshot { free_frame_waits: 7, ..StatsSnapshot::default() }.table();
        let row = |name: &str| *table.iter().find(|row| row.name == name).unwrap();
        assert_eq!((row("free_frame_waits").innodb, row("free_frame_waits").value), (Some("buffer_pool_wait_free"), 7));
        assert_eq!(row("pool_pages_dirty").innodb, Some("buffer_pool_pages_dirty"));
        assert_eq!(row("pages_flushed_lru_list").innodb, Some("buffer_LRU_batch_flush_total_pages"));
        assert_eq!(row("free_frame_wait_us").innodb, None);
        let names: Vec<_> = table.iter().filter_map(|row| row.innodb).collect();
        assert_eq!(
            names.iter().collect::<HashSet<_>>().len(),
            names.len(),
            "a name of InnoDB's is that of one counter"
        );
    }
}
