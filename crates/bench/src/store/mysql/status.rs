//! The servers' counters under the names of the engine's counter table: SHOW GLOBAL STATUS and INNODB_METRICS as
//! [`StoreStats`].
//!
//! Rules
//! 1. A counter that the server does not have is absent. No value is invented.
//! 2. Every flushed page is counted once. `pages_flushed` is what the server wrote (`Innodb_pages_written`); the
//!    reasons are its batches' own counts. The batches count neighbors with the list that began them, so their share is
//!    subtracted from both lists.
//! 3. Adaptive flushing considers dirty pages and log together; its pages count as flushed for the checkpoint age.
//! 4. A batch counts its pages when it ends, so the reasons lag behind `pages_flushed` by the batch that is being
//!    written; pages that no batch writes (recovery, the end of an index build) are in `pages_flushed` only.
//! 5. Milliseconds become microseconds, pages become bytes.

use super::Flavor;
use crate::counter;
use crate::store::{StatsSnapshot, StoreStats};
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
    fn status(&self, name: &str) -> Option<u64> {
        self.status.get(&format!("innodb_{name}")).copied()
    }

    fn metric(&self, name: &str) -> Option<u64> {
        self.metrics.get(name).copied()
    }

    /// The sum of those of the metrics that the server has.
    fn metrics(&self, names: &[&str]) -> Option<u64> {
        names.iter().filter_map(|name| self.metric(name)).reduce(|a, b| a + b)
    }

    /// The status variable or the metric, whichever the server has.
    fn either(&self, status: &str, metric: &str) -> Option<u64> {
        self.status(status).max(self.metric(metric))
    }

    /// Pages of these metrics in bytes.
    fn bytes(&self, names: &[&str]) -> Option<u64> {
        Some(self.metrics(names)? * self.status("page_size")?)
    }
}

/// Pages flushed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flushed {
    lru_list: Option<u64>,
    adaptive: Option<u64>,
    background: Option<u64>,
    sync: Option<u64>,
    neighbor: Option<u64>,
    single_page: Option<u64>,
}

fn flushed(flavor: Flavor, counters: &Counters) -> Flushed {
    let lru = match flavor {
        Flavor::Mysql => counters.metric("buffer_lru_batch_total_pages"),
        Flavor::Mariadb | Flavor::Myrocks | Flavor::Highwater => {
            counters.either("buffer_pool_pages_lru_flushed", "buffer_lru_batch_flush_total_pages")
        }
    };
    let failed = counters.metric("buffer_lru_single_flush_failure_count").unwrap_or(0);
    let single_page = counters.metric("buffer_lru_single_flush_num_scan").map(|scans| scans.saturating_sub(failed));
    let list =
        ["adaptive", "background", "sync"].map(|reason| counters.metric(&format!("buffer_flush_{reason}_total_pages")));
    let all: u64 = list.iter().chain([&lru]).flatten().sum();
    let neighbors = counters.metric("buffer_flush_neighbor_total_pages");
    let taken_out = u128::from(neighbors.unwrap_or(0).min(all));
    let own =
        |pages: Option<u64>| pages.map(|pages| pages - (u128::from(pages) * taken_out / u128::from(all.max(1))) as u64);
    let ([adaptive, background, sync], lru_list) = (list.map(own), own(lru));
    let others: u64 = [lru_list, adaptive, background, sync].iter().flatten().sum();
    let neighbor = neighbors.map(|_| all - others);
    Flushed { lru_list, adaptive, background, sync, neighbor, single_page }
}

/// Counters by name, each of them one of the engine's table.
macro_rules! stats {
    ($($name:ident: $value:expr,)*) => { [$((counter!($name), $value)),*].into_iter().collect::<StoreStats>() };
}

/// Highwater's own counters: a status variable is named as its counter, after the name of the engine.
fn of_highwater(status: &Status) -> StoreStats {
    let named = |name: &str| status.iter().find(|(variable, _)| is_counter(variable, name));
    let value = |name: &str| named(name).and_then(|(_, value)| value.parse().ok());
    StatsSnapshot::default().table().into_iter().map(|row| (row.name, value(row.name))).collect()
}

fn is_counter(variable: &str, name: &str) -> bool {
    let of_engine = variable.split_at_checked("Highwater_".len());
    of_engine.is_some_and(|(engine, rest)| engine.eq_ignore_ascii_case("Highwater_") && rest == name)
}

fn change_buffer_bytes(c: &Counters) -> Option<u64> {
    // MariaDB adds it up in an unsigned integer of 64 bits from differences of 32: the upper half is noise.
    let pages = c.status("ibuf_size").or(c.metric("ibuf_size")).map(|pages| pages & 0xffff_ffff);
    pages.zip(c.status("page_size")).map(|(pages, page_bytes)| pages * page_bytes)
}

/// The counters that the server has.
pub(super) fn stats(flavor: Flavor, status: Status, metrics: Metrics) -> StoreStats {
    if flavor == Flavor::Highwater {
        return of_highwater(&status);
    }
    let c = Counters::new(status, metrics);
    // MariaDB's metric of syncs counts something else.
    let (flushed, log_syncs) = (flushed(flavor, &c), c.status("os_log_fsyncs"));
    stats! {
        pages_read: c.status("pages_read"),
        pages_flushed: c.status("pages_written"),
        change_buffer_merges: c.either("ibuf_merges", "ibuf_merges"),
        change_buffer_merged_inserts: c.either("ibuf_merged_inserts", "ibuf_merges_insert"),
        change_buffer_merged_delete_marks: c.either("ibuf_merged_delete_marks", "ibuf_merges_delete_mark"),
        change_buffer_merged_deletes: c.either("ibuf_merged_deletes", "ibuf_merges_delete"),
        change_buffer_discarded_ops: c.metrics(&DISCARDED),
        change_buffer_bytes: change_buffer_bytes(&c),
        pages_flushed_lru_list: flushed.lru_list,
        pages_flushed_checkpoint_age: flushed.adaptive,
        pages_flushed_idle: flushed.background,
        pages_flushed_sync: flushed.sync,
        pages_flushed_neighbor: flushed.neighbor,
        pages_flushed_single_page: flushed.single_page,
        pages_evicted: c.status("buffer_pool_pages_lru_freed"),
        pages_made_young: c.status("buffer_pool_pages_made_young"),
        free_frame_waits: c.either("buffer_pool_wait_free", "buffer_pool_wait_free"),
        sync_flush_waits: c.metric("buffer_flush_sync_waits"),
        log_waits: c.either("log_waits", "log_waits"),
        log_writes: c.either("log_writes", "log_writes"),
        log_syncs: log_syncs,
        data_syncs: c.status("data_fsyncs").map(|syncs| syncs.saturating_sub(log_syncs.unwrap_or(0))),
        checkpoints: c.metric("log_checkpoints"),
        redo_bytes: c.either("lsn_current", "log_lsn_current"),
        bytes_written_redo: c.status("os_log_written"),
        bytes_written_doublewrite: c.status("dblwr_pages_written").zip(c.status("page_size")).map(|(n, size)| n * size),
        bytes_written_undo: c.bytes(&UNDO),
        bytes_written_change_buffer: c.bytes(&CHANGE_BUFFER),
        bytes_written_index_leaf: c.bytes(&LEAVES),
        bytes_written_index_inner: c.bytes(&INNER),
        bytes_written_other: other_bytes(&c),
        btree_splits: c.metric("index_page_splits"),
        btree_merges: c.metric("index_page_merge_successful"),
        trx_commits: c.metrics(&["trx_rw_commits", "trx_ro_commits", "trx_nl_ro_commits"]),
        trx_rollbacks: c.metric("trx_rollbacks"),
        row_lock_waits: c.status("row_lock_waits"),
        row_lock_current_waits: c.status("row_lock_current_waits"),
        row_lock_wait_us: c.status("row_lock_time").map(|ms| ms * 1000),
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
    }
}

/// Metrics of buffered changes that were discarded.
const DISCARDED: [&str; 3] =
    ["ibuf_merges_discard_insert", "ibuf_merges_discard_delete_mark", "ibuf_merges_discard_delete"];
/// Metrics of pages written, by what the pages are.
const UNDO: [&str; 1] = ["buffer_page_written_undo_log"];
const CHANGE_BUFFER: [&str; 2] = ["buffer_page_written_index_ibuf_leaf", "buffer_page_written_index_ibuf_non_leaf"];
const LEAVES: [&str; 1] = ["buffer_page_written_index_leaf"];
const INNER: [&str; 1] = ["buffer_page_written_index_non_leaf"];

/// Bytes of the pages written that are neither index, undo nor change buffer.
fn other_bytes(c: &Counters) -> Option<u64> {
    let named = [&UNDO[..], &CHANGE_BUFFER, &LEAVES, &INNER].concat();
    Some(c.status("pages_written")?.saturating_sub(c.metrics(&named).unwrap_or(0)) * c.status("page_size")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<T>(pairs: &[(&str, u64)], value: impl Fn(u64) -> T) -> Vec<(String, T)> {
        pairs.iter().map(|&(name, number)| (name.to_string(), value(number))).collect()
    }

    fn read(flavor: Flavor, status: &[(&str, u64)], metrics: &[(&str, u64)]) -> StoreStats {
        stats(flavor, rows(status, |number| number.to_string()), rows(metrics, |number| number as i64))
    }

    const REASONS: [&str; 6] = [
        counter!(pages_flushed_lru_list),
        counter!(pages_flushed_checkpoint_age),
        counter!(pages_flushed_idle),
        counter!(pages_flushed_sync),
        counter!(pages_flushed_neighbor),
        counter!(pages_flushed_single_page),
    ];

    /// Counters of MySQL 5.6.24 after a write-only load on a small pool.
    #[test]
    fn mysqls_pages_are_counted_once() {
        let found = read(
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
        let of = |name: &str| found.get(name).unwrap();
        assert_eq!((found.sum(&REASONS), of("pages_flushed")), (Some(21_667), 21_667));
        assert_eq!(of("pages_flushed_single_page"), 940);
        assert!(of("pages_flushed_neighbor").abs_diff(8_414) <= 3, "{found:?}");
        // What is left keeps the lists' shares.
        assert_eq!((of("pages_flushed_lru_list"), of("pages_flushed_idle")), (11_796, 518));
        assert_eq!((of("bytes_written_index_leaf"), of("bytes_written_other")), (20_000 * 16_384, 1_667 * 16_384));
        assert_eq!((of("checkpoint_age_bytes"), of("row_lock_wait_us")), (77, 8_000));
    }

    /// Counters of MariaDB 10.11 after a write-only load on a pool that holds it all, and some pages of an index build.
    #[test]
    fn mariadbs_pages_are_counted_once() {
        let found = read(
            Flavor::Mariadb,
            &[
                ("Innodb_pages_written", 47_000),
                ("Innodb_buffer_pool_pages_lru_flushed", 0),
                ("Innodb_checkpoint_age", 5),
            ],
            &[("buffer_flush_adaptive_total_pages", 46_940), ("buffer_flush_neighbor_total_pages", 27_321)],
        );
        let of = |name: &str| found.get(name).unwrap();
        assert_eq!((of("pages_flushed"), found.sum(&REASONS)), (47_000, Some(46_940)));
        assert_eq!((of("pages_flushed_checkpoint_age"), of("pages_flushed_neighbor")), (19_619, 27_321));
        assert_eq!(of("checkpoint_age_bytes"), 5);
    }

    #[test]
    fn a_missing_counter_is_absent_and_one_at_zero_is_not() {
        let all = read(
            Flavor::Mariadb,
            &[("Innodb_log_waits", 0), ("Innodb_log_writes", 0), ("Innodb_buffer_pool_wait_free", 0)],
            &[("buffer_flush_sync_total_pages", 0), ("buffer_flush_sync_waits", 0)],
        );
        for name in ["log_waits", "log_writes", "free_frame_waits", "pages_flushed_sync", "sync_flush_waits"] {
            assert_eq!(all.get(name), Some(0), "{name}");
        }
        for name in ["pages_flushed_single_page", "pages_flushed", "log_wait_us", "bytes_written_other", "trx_commits"]
        {
            assert_eq!(all.get(name), None, "{name}");
        }
    }

    #[test]
    fn both_servers_names_of_the_change_buffer_are_known() {
        let mysql = [("ibuf_merges", 7), ("ibuf_merges_insert", 20), ("ibuf_merges_delete", 3), ("ibuf_size", 5)];
        let mariadb = [("Innodb_ibuf_merges", 7), ("Innodb_ibuf_merged_inserts", 20), ("Innodb_ibuf_size", 5)];
        let wrong = [("ibuf_size", 1 << 40)];
        let size = ("Innodb_page_size", 16_384);
        let found = [
            read(Flavor::Mysql, &[size], &mysql),
            read(Flavor::Mariadb, &[&mariadb[..], &[("Innodb_ibuf_merged_deletes", 3), size]].concat(), &wrong),
        ];
        for found in found {
            let of = |name: &str| found.get(name);
            assert_eq!((of("change_buffer_merges"), of("change_buffer_merged_inserts")), (Some(7), Some(20)));
            assert_eq!((of("change_buffer_merged_deletes"), of("change_buffer_bytes")), (Some(3), Some(5 * 16_384)));
            assert_eq!(of("change_buffer_ops_buffered"), None);
        }
    }

    #[test]
    fn text_is_no_counter() {
        let status = vec![("Innodb_pages_read".to_string(), "not started".to_string())];
        assert_eq!(stats(Flavor::Mysql, status, Vec::new()), StoreStats::default());
    }
}
