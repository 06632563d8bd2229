//! Changing options while the database is open.
//!
//! Rules
//! 1. Each layer keeps its options in its own state; a change is stored there, and takes effect at the next access.
//! 2. The table of options says which can be changed (`OptionInfo::is_dynamic`). A change of several options is all or
//!    nothing: the parts that can fail come first.

use super::database::Database;
use crate::config::Options;
use crate::error::{Error, Result};
use crate::txn::{LagLimits, check_outside_closures, telling};
use std::sync::Arc;
use std::time::Duration;

impl Database {
    /// The options in force: those of the opening and of later changes, but page and log have their created sizes, the
    /// pool has the size of whole pages, and `lru_scan_depth` is limited for a small pool.
    pub fn options(&self) -> Arc<Options> {
        self.inner.options.lock().clone()
    }

    /// Changes an option, by its name, while the database is open; dashes and underscores are the same. The table of
    /// options ([`OPTION_TABLE`](crate::config::OPTION_TABLE)) says which can be changed.
    ///
    /// ```
    /// # use highwater::{Database, Options};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Database::open(dir.path(), Options::default())?;
    /// db.set_option("io-capacity", "500")?;
    /// db.set_option("buffer_pool_size", "64M")?;
    /// assert_eq!(db.options().io_capacity, 500);
    /// assert!(db.set_option("page-size", "16K").is_err());
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadOption`] for an unknown name, a value that is not accepted, or an option that can be changed at the
    /// opening only; those of [`change_options`](Self::change_options).
    pub fn set_option(&self, name: &str, value: &str) -> Result<()> {
        self.try_change_options(|options| options.set(name, value))
    }

    /// Changes options while the database is open.
    ///
    /// `buffer_pool_size`: a smaller pool flushes and evicts pages before this returns; a larger one is refused beyond
    /// the greater of `buffer_pool_size_max` and the size at the opening. `log_file_size`: a log that has less grows to
    /// it as redo needs space, one that has more shrinks when the database is closed or opened. `lock_wait_timeout_ms`:
    /// for transactions that begin afterwards.
    ///
    /// ```
    /// # use highwater::{Database, Options};
    /// # use highwater::config::FlushLog;
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Database::open(dir.path(), Options::default())?;
    /// db.change_options(|options| {
    ///     options.flush_log_at_trx_commit = FlushLog::Write;
    ///     options.max_dirty_pages_pct = 40.0;
    /// })?;
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadOption`] names the first option with a value that is not accepted, or that can be changed at the
    /// opening only; [`Error::PoolExhausted`] if the pool cannot become so small now; [`Error::Usage`] inside of the
    /// closure. Nothing is changed then.
    pub fn change_options(&self, change: impl FnOnce(&mut Options)) -> Result<()> {
        self.try_change_options(|options| {
            change(options);
            options.validate()
        })
    }

    fn try_change_options(&self, change: impl FnOnce(&mut Options) -> Result<()>) -> Result<()> {
        check_outside_closures()?;
        self.check_open()?;
        let _one_at_a_time = self.inner.options_change.lock();
        let in_force = self.options();
        let mut options = Options::clone(&in_force);
        // A deterministic database waits for no lock: its timeout of 0 is not an accepted value.
        let is_stepped = in_force.lock_wait_timeout_ms == 0;
        options.lock_wait_timeout_ms = options.lock_wait_timeout_ms.max(1);
        telling(|| change(&mut options))?;
        if is_stepped {
            options.lock_wait_timeout_ms = 0;
        }
        if let Some(fixed) = options.fixed_difference(&in_force) {
            let reason = "cannot be changed while the database is open; give it at the opening".to_string();
            return Err(Error::BadOption { option: fixed.replace('_', "-"), reason });
        }
        self.apply(&in_force, &mut options)?;
        let fixed = options.fixed_difference(&in_force);
        debug_assert!(fixed.is_none(), "rule 2: the option {fixed:?} is changed, and is fixed");
        *self.inner.options.lock() = Arc::new(options);
        self.inner.gate.expiry_wake().wake();
        Ok(())
    }

    /// Applies the changes by rule 2: the parts that can refuse come first, the log and then the pool. If the pool
    /// refuses, the log's change is undone.
    fn apply(&self, before: &Options, options: &mut Options) -> Result<()> {
        let (ctx, txns) = (&self.inner.ctx, &self.inner.txns);
        if options.log_file_size != before.log_file_size {
            ctx.log.set_max_bytes(options.log_file_size)?;
        }
        if options.buffer_pool_size != before.buffer_pool_size {
            let resized = ctx.pool.resize(options.buffer_pool_size as usize / ctx.pool.page_bytes());
            if let Err(error) = resized {
                if options.log_file_size != before.log_file_size {
                    ctx.log.set_max_bytes(before.log_file_size)?;
                }
                return Err(error);
            }
        }
        ctx.log.set_flush_log_at_trx_commit(options.flush_log_at_trx_commit);
        ctx.pool.set_lru_options(options);
        ctx.pool.set_flush_limits(options);
        txns.changes.set_options(options);
        txns.set_lock_timeout(Duration::from_millis(options.lock_wait_timeout_ms));
        let Options { max_purge_lag, max_purge_lag_delay: max_delay_us, .. } = *options;
        txns.set_lag_limits(LagLimits { max_purge_lag, max_delay_us });
        options.buffer_pool_size = (ctx.pool.frame_count() * ctx.pool.page_bytes()) as u64;
        options.log_file_size = ctx.log.max_bytes();
        options.lru_scan_depth = ctx.pool.lru_scan_depth() as u64;
        Ok(())
    }
}
