//! Highwater: the bench's own store, opened with the settings of the comparison.

use crate::failure::failed;
use crate::settings::{Peer, Settings};
use highwater::config::FlushLog;
use highwater::{Database, Options};
use highwater_bench::Result;
use highwater_bench::store::embedded::Embedded;
use std::path::Path;

/// The log's buffer, of which there are two, where memory is short; by default they take 32 MiB.
const SMALL_LOG_BUFFER_BYTES: u64 = 2 << 20;

impl Peer for Embedded {
    fn open(folder: &Path, settings: &Settings) -> Result<Embedded> {
        let mut options = Options {
            buffer_pool_size: settings.cache_bytes,
            flush_log_at_trx_commit: if settings.durable { FlushLog::Sync } else { FlushLog::Write },
            ..Options::default()
        };
        if settings.beyond_memory {
            options.log_buffer_size = SMALL_LOG_BUFFER_BYTES;
        }
        for (name, value) in &settings.options {
            options.set(name, value)?;
        }
        std::fs::create_dir_all(folder).map_err(|e| failed("highwater", e))?;
        Ok(Embedded::new(Database::open(folder, options)?))
    }

    fn close(self) -> Result<()> {
        Ok(self.database().clone().close()?)
    }

    fn version() -> String {
        env!("CARGO_PKG_VERSION").into()
    }
}
