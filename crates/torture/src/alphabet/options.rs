//! The values of options that the tortures draw from.
//!
//! Rules
//! 1. Every option of the engine's table is in [`OPTIONS`], or is exempt (`alphabet_test.rs`).
//! 2. A value that is listed twice is drawn twice as often.
//! 3. Values are small: pools and logs that a short life fills, pauses that cost no time.
//! 4. Nothing depends on the duration of a life: an option that is compared with elapsed time always takes effect, or
//!    never.

use super::choices::Choices;
use highwater::config::{Doublewrite, OPTION_TABLE, PageStoreKind};
use highwater::{Error as Engine, Options};
use highwater_bench::Result;

/// The time at which an option is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At the creation: the value stays.
    Creation,
    /// At each opening.
    Opening,
}

/// An option and its values.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// Its name in the engine's table.
    pub name: &'static str,
    /// The time at which it is drawn.
    pub when: When,
    /// The values, each as likely as the others.
    pub values: &'static [&'static str],
}

impl Drawn {
    /// Whether it can be changed while the database is open.
    pub fn is_dynamic(&self) -> bool {
        OPTION_TABLE.iter().any(|option| option.name == self.name && option.is_dynamic)
    }
}

/// Whether the error refuses a size of the pool: larger than its maximum, or smaller than possible now.
pub fn is_refused_pool_size(error: &Engine) -> bool {
    match error {
        Engine::BadOption { option, .. } => option == "buffer-pool-size",
        Engine::PoolExhausted { .. } => true,
        _ => false,
    }
}

const fn fixed(name: &'static str, values: &'static [&'static str]) -> Drawn {
    Drawn { name, when: When::Creation, values }
}

const fn free(name: &'static str, values: &'static [&'static str]) -> Drawn {
    Drawn { name, when: When::Opening, values }
}

/// The drawn options, in this order.
pub const OPTIONS: &[Drawn] = &[
    fixed("page_size", &["4K", "4K", "8K", "16K"]),
    fixed("page_store", &["in-place", "out-of-place"]),
    fixed("page_compression", &["off", "lz4", "zstd", "auto"]),
    fixed("segment_size", &["256K", "256K", "512K"]),
    free("segment_fill_pct", &["75", "75", "20", "90"]),
    free("buffer_pool_size", &["2M", "2M", "2M", "3M"]),
    free("buffer_pool_size_max", &["0", "0", "4M"]),
    free("change_log_expire_seconds", &["0", "0", "0", "1", "2"]),
    free("log_file_size", &["4M", "4M", "4M", "8M", "8M", "12M"]),
    free("log_buffer_size", &["1M", "1M", "2M"]),
    free("flush_log_at_trx_commit", &["1", "1", "1", "1", "0", "2"]),
    free("flush_method", &["O_DIRECT", "O_DIRECT", "fsync", "O_DSYNC"]),
    free("doublewrite", &["on", "on", "journal", "auto", "off", "atomic"]),
    free("journal_size", &["8M"]),
    free("lru_scan_depth", &["1024", "1024", "16", "128"]),
    free("max_dirty_pages_pct", &["75", "75", "0", "10"]),
    free("max_dirty_pages_pct_lwm", &["50", "50", "0", "5"]),
    free("flush_neighbors", &["auto", "0", "1", "2"]),
    free("probe_again", &["off", "off", "off", "on"]),
    free("victim_policy", &["lru-clean", "raw", "war"]),
    free("change_buffering", &["memory", "disk", "off"]),
    free("change_buffer_max_size", &["25", "25", "1", "50"]),
    free("change_buffer_merge_at_close", &["on", "off", "auto"]),
    free("cleaner_interval_ms", &["50", "5", "1"]),
    free("adaptive_flushing_lwm", &["10", "10", "0", "70"]),
    free("checkpoint_age_async_pct", &["75", "75", "20", "95"]),
    free("checkpoint_age_sync_pct", &["90", "90", "25", "99"]),
    free("io_capacity", &["2000", "2000", "16", "200"]),
    free("old_blocks_time_ms", &["0", "1000000"]),
    free("old_blocks_pct", &["37", "37", "5", "95"]),
    free("lock_wait_timeout_ms", &["50000"]),
    free("read_io_threads", &["16", "0", "4"]),
    free("purge_threads", &["4", "1", "2"]),
    free("max_purge_lag", &["0", "0", "0", "3"]),
    free("max_purge_lag_delay", &["0", "20"]),
    free("create_if_missing", &["on"]),
];

/// The properties of the disk that restrict options.
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// Whether a power cut tears no page on it.
    pub keeps_pages_whole: bool,
}

/// The options of a new database.
///
/// # Errors
/// None: every value is accepted.
pub fn at_creation(disk: Disk, rng: &mut Choices) -> Result<Options> {
    draw(Options::default(), |_| true, disk, rng)
}

/// The options of the next opening.
///
/// # Errors
/// None: every value is accepted.
pub fn at_opening(before: &Options, disk: Disk, rng: &mut Choices) -> Result<Options> {
    draw(before.clone(), |when| when == When::Opening, disk, rng)
}

fn draw(mut options: Options, is_due: impl Fn(When) -> bool, disk: Disk, rng: &mut Choices) -> Result<Options> {
    for drawn in OPTIONS.iter().filter(|drawn| is_due(drawn.when)) {
        options.set(drawn.name, drawn.values[rng.usize(..drawn.values.len())])?;
    }
    if options.page_store == PageStoreKind::InPlace {
        options.set("page_compression", "auto")?;
    } else {
        options.doublewrite = Doublewrite::On;
    }
    if matches!(options.doublewrite, Doublewrite::Off | Doublewrite::Atomic) && !disk.keeps_pages_whole {
        options.doublewrite = Doublewrite::Journal;
    }
    Ok(options)
}
