//! The names of measured values in results: numbers, series and texts; and the names of the varied axes.
//!
//! Rules
//! 1. A name is a constant: a mistyped name does not compile.
//! 2. Names stay the same across releases and carry their unit.
//! 3. A counter of the subject has the counter's name, which the compiler checks.

use highwater_bench::counter;

macro_rules! kind_of_name {
    ($(#[$doc:meta])* $Kind:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $Kind(&'static str);

        impl $Kind {
            /// The name in results.
            pub const fn name(self) -> &'static str {
                self.0
            }
        }

        impl AsRef<str> for $Kind {
            fn as_ref(&self) -> &str {
                self.0
            }
        }
    };
}

kind_of_name! {
    /// A number.
    Metric
}
kind_of_name! {
    /// A series of points (x, y).
    Series
}
kind_of_name! {
    /// A text.
    Info
}
kind_of_name! {
    /// A varied axis: a part of the setting of a cell.
    Axis
}

impl Axis {
    /// An axis of an experiment.
    pub const fn new(name: &'static str) -> Axis {
        Axis(name)
    }
}

macro_rules! constants {
    ($Kind:ident: $($NAME:ident = $text:expr,)*) => { $(pub(crate) const $NAME: $Kind = $Kind($text);)* };
}

// Counters of the subject.
constants! { Metric:
    CHANGE_BUFFER_BYTES = counter!(change_buffer_bytes),
    CHANGE_BUFFER_BYTES_WRITTEN = counter!(bytes_written_change_buffer),
    CHANGE_BUFFER_CARRIED_BYTES = counter!(change_buffer_relogged_bytes),
    CHANGE_BUFFER_MERGED_DELETES = counter!(change_buffer_merged_deletes),
    CHANGE_BUFFER_MERGED_DELETE_MARKS = counter!(change_buffer_merged_delete_marks),
    CHANGE_BUFFER_MERGED_INSERTS = counter!(change_buffer_merged_inserts),
    CHANGE_BUFFER_MERGES = counter!(change_buffer_merges),
    CHANGE_BUFFER_OPS_BUFFERED = counter!(change_buffer_ops_buffered),
    CHANGE_BUFFER_PAGES_READ = counter!(change_buffer_pages_read),
    CHANGE_BUFFER_PAGES_WRITTEN = counter!(change_buffer_pages_written),
    CLEAN_WAITS = counter!(store_clean_waits),
    CLEAN_WAIT_US = counter!(store_clean_wait_us),
    COMPRESSED_BYTES_IN = counter!(store_compressed_bytes_in),
    COMPRESSED_BYTES_OUT = counter!(store_compressed_bytes_out),
    COMPRESS_US = counter!(store_compress_us),
    DATA_SYNCS = counter!(data_syncs),
    DIRTY_VICTIMS = counter!(dirty_victims),
    DOUBLEWRITE_SYNCS = counter!(doublewrite_syncs),
    DOUBLEWRITE_BYTES_WRITTEN = counter!(bytes_written_doublewrite),
    DOUBLEWRITE_WAIT_US = counter!(doublewrite_wait_us),
    FREE_FRAME_WAITS = counter!(free_frame_waits),
    FREE_FRAME_WAIT_US = counter!(free_frame_wait_us),
    INDEX_INNER_BYTES_WRITTEN = counter!(bytes_written_index_inner),
    INDEX_LEAF_BYTES_WRITTEN = counter!(bytes_written_index_leaf),
    INDEX_PAGES_READ = counter!(index_pages_read),
    INDEX_PAGES_WRITTEN = counter!(index_pages_written),
    JOURNAL_BYTES_WRITTEN = counter!(bytes_written_journal),
    JOURNAL_SYNCS = counter!(journal_syncs),
    LOG_WAITS = counter!(log_waits),
    LOG_WAIT_US = counter!(log_wait_us),
    LOG_WRITES = counter!(log_writes),
    OTHER_BYTES_WRITTEN = counter!(bytes_written_other),
    PAGES_FLUSHED = counter!(pages_flushed),
    PAGES_FLUSHED_CHECKPOINT_AGE = counter!(pages_flushed_checkpoint_age),
    PAGES_FLUSHED_DIRTY_PCT = counter!(pages_flushed_dirty_pct),
    PAGES_FLUSHED_BULK_LOAD = counter!(pages_flushed_bulk_load),
    PAGES_FLUSHED_IDLE = counter!(pages_flushed_idle),
    PAGES_FLUSHED_LRU_LIST = counter!(pages_flushed_lru_list),
    PAGES_FLUSHED_NEIGHBOR = counter!(pages_flushed_neighbor),
    PAGES_FLUSHED_SINGLE_PAGE = counter!(pages_flushed_single_page),
    PAGES_FLUSHED_SYNC = counter!(pages_flushed_sync),
    PAGES_READ = counter!(pages_read),
    POOL_PAGES_DIRTY = counter!(pool_pages_dirty),
    REDO_BYTES = counter!(redo_bytes),
    REDO_BYTES_WRITTEN = counter!(bytes_written_redo),
    SEGMENTS_CLEANED = counter!(store_segments_cleaned),
    SINGLE_PAGE_FLUSH_US = counter!(single_page_flush_us),
    STORE_BYTES_CLEANED = counter!(store_bytes_cleaned),
    STORE_BYTES_USER = counter!(store_bytes_user),
    STORE_DISCARDS = counter!(store_discards),
    STORE_LIVE_BYTES = counter!(store_live_bytes),
    STORE_SEGMENTS = counter!(store_segments),
    STORE_SEGMENTS_FREE = counter!(store_segments_free),
    SYNC_FLUSH_WAITS = counter!(sync_flush_waits),
    UNDO_BYTES_WRITTEN = counter!(bytes_written_undo),
}

// Of every run.
constants! { Metric:
    CPU_PCT = "cpu_pct",
    CPU_OTHERS_PCT = "cpu_others_pct",
    CPU_WITHHELD_PCT = "cpu_withheld_pct",
    DEVICE_HOST_WRITTEN_BYTES = "device_host_written_bytes",
    DEVICE_MEDIA_WRITTEN_BYTES = "device_media_written_bytes",
    DEVICE_READ_BYTES = "device_read_bytes",
    ELAPSED_S = "elapsed_s",
    ENDED_BY_MEMORY_LIMIT = "ended_by_memory_limit",
    LATENCY_MAX_US = "latency_max_us",
    LATENCY_P50_US = "latency_p50_us",
    LATENCY_P99_US = "latency_p99_us",
    LATENCY_P999_US = "latency_p999_us",
    PAGES_DIRTY_AT_END = "pages_dirty_at_end",
    PAGES_FLUSHED_FLUSH_LIST = "pages_flushed_flush_list",
    SUBJECT_CPU_S = "subject_cpu_s",
    TPS = "tps",
    TRANSACTIONS = "transactions",
}

// Of single experiments.
constants! { Metric:
    CAPACITIES_WRITTEN = "capacities_written",
    CHANGE_BUFFER_OPS_MERGED = "change_buffer_ops_merged",
    CLEANED_BYTES_PER_TRANSACTION = "cleaned_bytes_per_transaction",
    CLIENT_CPU_S = "client_cpu_s",
    CLIENT_CPU_US_PER_TRANSACTION = "client_cpu_us_per_transaction",
    CLOSE_S = "close_s",
    COMPRESSION_RATIO = "compression_ratio",
    CONDITIONS_BROKEN = "conditions_broken",
    COPIED_BYTES = "copied_bytes",
    CPU_US_PER_TRANSACTION = "cpu_us_per_transaction",
    CPU_WITHHELD_PCT_WORST_SECOND = "cpu_withheld_pct_worst_second",
    CUTS = "cuts",
    DAMAGED_DATABASES = "damaged_databases",
    DATABASES_WITH_LOST_COMMITS = "databases_with_lost_commits",
    DATABASES_WITH_TORN_PAGES = "databases_with_torn_pages",
    DATA_BYTES = "data_bytes",
    DATA_READS_PER_S = "data_reads_per_s",
    DATA_WRITES_PER_S = "data_writes_per_s",
    DEVICE_HOST_BYTES_CLOSED_PER_TRANSACTION = "device_host_bytes_closed_per_transaction",
    DEVICE_HOST_BYTES_PER_TRANSACTION = "device_host_bytes_per_transaction",
    DEVICE_MEDIA_BYTES_PER_TRANSACTION = "device_media_bytes_per_transaction",
    DOUBLEWRITE_BYTES_PER_TRANSACTION = "doublewrite_bytes_per_transaction",
    ENGINE_WRITE_AMPLIFICATION = "engine_write_amplification",
    FLUSHED_BYTES_PER_TRANSACTION = "flushed_bytes_per_transaction",
    FLUSH_LIST_PCT = "flush_list_pct",
    FREE_FRAME_WAIT_US_PER_TRANSACTION = "free_frame_wait_us_per_transaction",
    HOST_WRITTEN_BYTES = "host_written_bytes",
    INDEX_ENTRIES = "index_entries",
    INSTRUCTIONS_PER_TRANSACTION = "instructions_per_transaction",
    JOURNAL_SHARE = "journal_share",
    JOURNAL_WRITES_PER_BLOCK = "journal_writes_per_block",
    LATENCY_P95_US = "latency_p95_us",
    LOAD_MB_PER_S = "load_mb_per_s",
    LOG_BYTES = "log_bytes",
    LOG_BYTES_PER_S = "log_bytes_per_s",
    LOG_SYNCS_WORST_SECOND = "log_syncs_worst_second",
    LOG_SYNC_US_MEDIAN_SECOND = "log_sync_us_median_second",
    LOG_SYNC_US_WORST_SECOND = "log_sync_us_worst_second",
    LOG_TO_DATA_PCT = "log_to_data_pct",
    LOG_WRITES_PER_S = "log_writes_per_s",
    LRU_LIST_PCT = "lru_list_pct",
    MEDIA_WRITTEN_BYTES = "media_written_bytes",
    OPS_PER_MERGED_LEAF = "ops_per_merged_leaf",
    REQUESTS_PER_S = "requests_per_s",
    NEW_ORDERS_PER_MIN = "new_orders_per_min",
    NOPM = "nopm",
    OTHER_WRITES_PER_BLOCK = "other_writes_per_block",
    PAGES_FLUSHED_TO_CLEAN = "pages_flushed_to_clean",
    PAGE_BYTES_PER_TRANSACTION = "page_bytes_per_transaction",
    PAGE_READ_US_P50 = "page_read_us_p50",
    PAGE_READ_US_P95 = "page_read_us_p95",
    PAGE_READ_US_P99 = "page_read_us_p99",
    PAGE_STREAMS_WRITE_AMPLIFICATION = "page_streams_write_amplification",
    PEAK_MEMORY_BYTES = "peak_memory_bytes",
    POOL_BYTES = "pool_bytes",
    POOL_TO_DATA_PCT = "pool_to_data_pct",
    READ_BYTES_PER_TRANSACTION = "read_bytes_per_transaction",
    REDO_BYTES_PER_TRANSACTION = "redo_bytes_per_transaction",
    RETRIES = "retries",
    ROWS = "rows",
    SECONDS = "seconds",
    SECONDS_UNDISTURBED = "seconds_undisturbed",
    SINGLE_PAGE_PCT = "single_page_pct",
    SPACE_BYTES = "space_bytes",
    STEPS_MS = "steps_ms",
    TORN_PAGES = "torn_pages",
    TPS_MEDIAN_SECOND = "tps_median_second",
    TPS_WORST_SECOND = "tps_worst_second",
    TPS_WORST_SECOND_UNDISTURBED = "tps_worst_second_undisturbed",
    WRITE_AMPLIFICATION = "write_amplification",
    WRITTEN_BYTES_PER_TRANSACTION = "written_bytes_per_transaction",
}

/// The write amplification of one stream of the device.
pub(crate) fn stream_write_amplification(stream: &str) -> String {
    format!("stream_{stream}_write_amplification")
}

pub(crate) mod series {
    use super::Series;

    constants! { Series:
        CHECKPOINT_AGE_BYTES = "checkpoint_age_bytes",
        CPU_WITHHELD_PCT = "cpu_withheld_pct",
        FLASH_TO_FLUSHED_OVER_TIME = "flash_to_flushed_over_time",
        FLUSHED = "flushed",
        LOG_SYNC_US = "log_sync_us",
        TPS = "tps",
        WAF_OVER_TIME = "waf_over_time",
        WRITES_BY_PLACE = "writes_by_place",
    }
}

pub(crate) mod info {
    use super::Info;

    constants! { Info:
        FIRST_FINDING = "first_finding",
        FLUSH_NEIGHBORS = "flush_neighbors",
        INNODB_FLUSH_NEIGHBORS = "innodb_flush_neighbors",
        LOADED_DIGEST = "loaded_digest",
        LOG_BYTES = "log_bytes",
        MEMORY_LIMIT = "memory_limit",
        SUBJECT_VERSION = "subject_version",
        TRACE = "trace",
    }
}
