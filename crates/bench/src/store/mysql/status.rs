//! The servers' counters in the engine's words: SHOW GLOBAL STATUS and INNODB_METRICS as a [`StatsSnapshot`].
//!
//! Rules
//! 1. A counter that a server does not have is zero in the snapshot, which has no other way to say it; [`uncounted`] names it, and results leave it
//!    out. Nothing is made up.
//! 2. Every flushed page is counted once. `pages_flushed` is what the server wrote (`Innodb_pages_written`); the reasons are its batches'
//!    own counts. The batches count neighbors in with the list that began them, so neighbors are taken out of both lists by their share.
//! 3. Adaptive flushing looks at the dirty pages and at the log in one; its pages count as flushed for the checkpoint age.
//! 4. A batch counts its pages when it ends, so the reasons lag behind `pages_flushed` by the batch that is being written; what no batch
//!    writes (recovery, the end of an index build) is in `pages_flushed` only.
//! 5. Milliseconds become microseconds, pages become bytes.

use super::Flavor;
use highwater::stats::StatsSnapshot;
use std::collections::HashMap;

/// Rows of SHOW GLOBAL STATUS: name and value, not all of them numbers.
pub(super) type Status = Vec<(String, String)>;
/// Name and count of each metric of InnoDB.
pub(super) type Metrics = Vec<(String, i64)>;

struct Counters {
    status: HashMap<String, u64>,
    metrics: HashMap<String, u64>,
}

impl Counters {
    fn new(status: Status, metrics: Metrics) -> Counters {
        let number = |(name, value): (String, String)| Some((name.to_ascii_lowercase(), value.parse().ok()?));
        Counters {
            status: status.into_iter().filter_map(number).collect(),
            metrics: metrics
                .into_iter()
                .map(|(name, count)| (name.to_ascii_lowercase(), count.max(0) as u64))
                .collect(),
        }
    }

    /// A status variable that begins with `Innodb_`.
    fn status(&self, name: &str) -> u64 {
        self.status.get(&format!("innodb_{name}")).copied().unwrap_or(0)
    }

    fn metric(&self, name: &str) -> u64 {
        self.metrics.get(name).copied().unwrap_or(0)
    }

    fn metrics(&self, names: &[&str]) -> u64 {
        names.iter().map(|name| self.metric(name)).sum()
    }

    /// Of the status and the metric, whichever the server has.
    fn either(&self, status: &str, metric: &str) -> u64 {
        self.status(status).max(self.metric(metric))
    }
}

/// Counters of ours that a server may lack, and where it has them: a status variable, without `Innodb_`, or a metric.
const MAY_LACK: [(&str, &str); 6] = [
    ("pages_flushed_single_page", "buffer_lru_single_flush_num_scan"),
    ("pages_flushed_sync", "buffer_flush_sync_total_pages"),
    ("sync_flush_waits", "buffer_flush_sync_waits"),
    ("free_frame_waits", "buffer_pool_wait_free"),
    ("log_waits", "log_waits"),
    ("log_writes", "log_writes"),
];
/// Counters of ours that claims or tables show and that no server has.
const ALL_LACK: [&str; 1] = ["log_wait_us"];

/// Our names of the counters that the server does not have.
pub(super) fn uncounted(status: Status, metrics: Metrics) -> Vec<&'static str> {
    let c = Counters::new(status, metrics);
    let has = |source: &str| c.status.contains_key(&format!("innodb_{source}")) || c.metrics.contains_key(source);
    let missing = MAY_LACK.into_iter().filter(|(_, source)| !has(source)).map(|(name, _)| name);
    missing.chain(ALL_LACK).collect()
}

/// Pages flushed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flushed {
    lru_list: u64,
    adaptive: u64,
    background: u64,
    sync: u64,
    neighbor: u64,
    single_page: u64,
}

fn flushed(flavor: Flavor, counters: &Counters) -> Flushed {
    let lru = match flavor {
        Flavor::Mysql => counters.metric("buffer_lru_batch_total_pages"),
        _ => counters.either("buffer_pool_pages_lru_flushed", "buffer_lru_batch_flush_total_pages"),
    };
    let failed = counters.metric("buffer_lru_single_flush_failure_count");
    let single = counters.metric("buffer_lru_single_flush_num_scan").saturating_sub(failed);
    let list =
        ["adaptive", "background", "sync"].map(|reason| counters.metric(&format!("buffer_flush_{reason}_total_pages")));
    let neighbor = counters.metric("buffer_flush_neighbor_total_pages");
    let all = lru + list.iter().sum::<u64>();
    let own = |pages: u64| {
        if all == 0 { 0 } else { pages - (u128::from(pages) * u128::from(neighbor.min(all)) / u128::from(all)) as u64 }
    };
    let [adaptive, background, sync] = list.map(own);
    let lru_list = own(lru);
    let neighbor = all - lru_list - adaptive - background - sync;
    Flushed { lru_list, adaptive, background, sync, neighbor, single_page: single }
}

/// The snapshot.
pub(super) fn snapshot(flavor: Flavor, status: Status, metrics: Metrics) -> StatsSnapshot {
    let c = Counters::new(status, metrics);
    let page_bytes = c.status("page_size");
    let written = c.status("pages_written");
    let flushed = flushed(flavor, &c);
    let bytes = |names: &[&str]| c.metrics(names) * page_bytes;
    StatsSnapshot {
        pages_read: c.status("pages_read"),
        pages_flushed: written,
        pages_flushed_lru_list: flushed.lru_list,
        pages_flushed_checkpoint_age: flushed.adaptive,
        pages_flushed_idle: flushed.background,
        pages_flushed_sync: flushed.sync,
        pages_flushed_neighbor: flushed.neighbor,
        pages_flushed_single_page: flushed.single_page,
        pages_evicted: c.status("buffer_pool_pages_lru_freed"),
        pages_made_young: c.status("buffer_pool_pages_made_young"),
        free_frame_waits: c.status("buffer_pool_wait_free"),
        sync_flush_waits: c.metric("buffer_flush_sync_waits"),
        log_waits: c.status("log_waits"),
        log_writes: c.status("log_writes"),
        log_syncs: c.status("os_log_fsyncs"),
        data_syncs: c.status("data_fsyncs").saturating_sub(c.status("os_log_fsyncs")),
        checkpoints: c.metric("log_checkpoints"),
        redo_bytes: c.either("lsn_current", "log_lsn_current"),
        bytes_written_redo: c.status("os_log_written"),
        bytes_written_doublewrite: c.status("dblwr_pages_written") * page_bytes,
        bytes_written_undo: bytes(&["buffer_page_written_undo_log"]),
        bytes_written_change_buffer: bytes(&[
            "buffer_page_written_index_ibuf_leaf",
            "buffer_page_written_index_ibuf_non_leaf",
        ]),
        bytes_written_index_leaf: bytes(&["buffer_page_written_index_leaf"]),
        bytes_written_index_inner: bytes(&["buffer_page_written_index_non_leaf"]),
        bytes_written_other: other_bytes(&c, page_bytes, written),
        btree_splits: c.metric("index_page_splits"),
        btree_merges: c.metric("index_page_merge_successful"),
        trx_commits: c.metrics(&["trx_rw_commits", "trx_ro_commits", "trx_nl_ro_commits"]),
        trx_rollbacks: c.metric("trx_rollbacks"),
        row_lock_waits: c.status("row_lock_waits"),
        row_lock_wait_us: c.status("row_lock_time") * 1000,
        row_lock_timeouts: c.metric("lock_timeouts"),
        deadlocks: c.either("deadlocks", "lock_deadlocks"),
        purged_records: c.metrics(&["purge_del_mark_records", "purge_upd_exist_or_extern_records"]),
        history_list_length: c.metric("trx_rseg_history_len"),
        pool_pages_free: c.status("buffer_pool_pages_free"),
        pool_pages_dirty: c.status("buffer_pool_pages_dirty"),
        pool_pages_data: c.status("buffer_pool_pages_data"),
        checkpoint_age_bytes: c.either("checkpoint_age", "log_lsn_checkpoint_age"),
        rows_inserted: c.either("rows_inserted", "dml_inserts"),
        rows_read: c.either("rows_read", "dml_reads"),
        rows_updated: c.either("rows_updated", "dml_updates"),
        rows_deleted: c.either("rows_deleted", "dml_deletes"),
        ..StatsSnapshot::default()
    }
}

/// Pages written that are neither index, undo nor change buffer.
fn other_bytes(c: &Counters, page_bytes: u64, written: u64) -> u64 {
    let named = c.metrics(&[
        "buffer_page_written_undo_log",
        "buffer_page_written_index_ibuf_leaf",
        "buffer_page_written_index_ibuf_non_leaf",
        "buffer_page_written_index_leaf",
        "buffer_page_written_index_non_leaf",
    ]);
    written.saturating_sub(named) * page_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<T>(pairs: &[(&str, u64)], value: impl Fn(u64) -> T) -> Vec<(String, T)> {
        pairs.iter().map(|&(name, number)| (name.to_string(), value(number))).collect()
    }

    fn read(flavor: Flavor, status: &[(&str, u64)], metrics: &[(&str, u64)]) -> StatsSnapshot {
        snapshot(flavor, rows(status, |number| number.to_string()), rows(metrics, |number| number as i64))
    }

    /// Counters of MySQL 5.6.24 after a write-only load on a small pool.
    #[test]
    fn mysqls_pages_are_counted_once() {
        let stats = read(
            Flavor::Mysql,
            &[("Innodb_pages_written", 21_667), ("Innodb_page_size", 16_384), ("Innodb_row_lock_time", 8)],
            &[
                ("buffer_LRU_batch_total_pages", 19_856),
                ("buffer_LRU_single_flush_num_scan", 942),
                ("buffer_LRU_single_flush_failure_count", 2),
                ("buffer_flush_background_total_pages", 871),
                ("buffer_flush_neighbor_total_pages", 8_414),
                ("buffer_page_written_index_leaf", 20_000),
                ("log_lsn_checkpoint_age", 77),
            ],
        );
        assert_eq!(stats.pages_flushed_by_reason(), 21_667);
        assert_eq!((stats.pages_flushed, stats.pages_flushed_single_page), (21_667, 940));
        assert!(stats.pages_flushed_neighbor.abs_diff(8_414) <= 3, "{}", stats.pages_flushed_neighbor);
        // What is left keeps the lists' shares.
        assert_eq!((stats.pages_flushed_lru_list, stats.pages_flushed_idle), (11_796, 518));
        assert_eq!((stats.bytes_written_index_leaf, stats.bytes_written_other), (20_000 * 16_384, 1_667 * 16_384));
        assert_eq!((stats.checkpoint_age_bytes, stats.row_lock_wait_us), (77, 8_000));
    }

    /// Counters of MariaDB 10.11 after a write-only load on a pool that holds it all, and some pages of an index build.
    #[test]
    fn mariadbs_pages_are_counted_once() {
        let stats = read(
            Flavor::Mariadb,
            &[
                ("Innodb_pages_written", 47_000),
                ("Innodb_buffer_pool_pages_lru_flushed", 0),
                ("Innodb_checkpoint_age", 5),
            ],
            &[("buffer_flush_adaptive_total_pages", 46_940), ("buffer_flush_neighbor_total_pages", 27_321)],
        );
        assert_eq!((stats.pages_flushed, stats.pages_flushed_by_reason()), (47_000, 46_940));
        assert_eq!((stats.pages_flushed_checkpoint_age, stats.pages_flushed_neighbor), (19_619, 27_321));
        assert_eq!(stats.checkpoint_age_bytes, 5);
    }

    #[test]
    fn a_missing_counter_is_named_and_one_at_zero_is_not() {
        let metrics = |names: &[&str]| names.iter().map(|name| (name.to_string(), 0)).collect::<Metrics>();
        let status = |names: &[&str]| names.iter().map(|name| (name.to_string(), "0".to_string())).collect::<Status>();
        let all = uncounted(
            status(&["Innodb_log_waits", "Innodb_log_writes", "Innodb_buffer_pool_wait_free"]),
            metrics(&["buffer_LRU_single_flush_num_scan", "buffer_flush_sync_total_pages", "buffer_flush_sync_waits"]),
        );
        assert_eq!(all, ["log_wait_us"]);
        let some = uncounted(status(&["Innodb_log_waits", "Innodb_log_writes"]), metrics(&["buffer_flush_sync_waits"]));
        assert_eq!(some, ["pages_flushed_single_page", "pages_flushed_sync", "free_frame_waits", "log_wait_us"]);
        // Each of them is a counter of ours.
        let table = StatsSnapshot::default().table();
        let ours: Vec<&str> = table.into_iter().map(|row| row.name).collect();
        assert!(MAY_LACK.iter().map(|(name, _)| name).chain(&ALL_LACK).all(|name| ours.contains(name)), "{ours:?}");
    }

    #[test]
    fn text_and_missing_counters_are_zero() {
        let status = vec![("Innodb_buffer_pool_dump_status".to_string(), "not started".to_string())];
        assert_eq!(snapshot(Flavor::Mysql, status, vec![("log_waits".into(), -1)]), StatsSnapshot::default());
    }
}
