//! Highwater: the bench's own store, opened with the settings of the comparison.

use crate::failure::failed;
use crate::settings::{Peer, Settings};
use highwater::config::FlushLog;
use highwater::{Database, Options};
use highwater_bench::Result;
use highwater_bench::store::embedded::Embedded;
use std::path::Path;

impl Peer for Embedded {
    fn open(folder: &Path, settings: &Settings) -> Result<Embedded> {
        let mut options = Options {
            buffer_pool_size: settings.cache_bytes,
            flush_log_at_trx_commit: if settings.durable { FlushLog::Sync } else { FlushLog::Write },
            ..Options::default()
        };
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
