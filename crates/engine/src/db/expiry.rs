//! The removal of expired rows (`txn/expiry.rs` says what they are).
//!
//! Rules
//! 1. A thread deletes them in transactions of at most [`ROWS`] rows, each as any deletion: logged, undone by a crash
//!    in its middle, seen by a stream of changes. It finds them by an index that begins with the expiry column, and
//!    leaves a table alone that has none.
//! 2. It waits for no lock: a row that is locked is left for the next time, and so is a table that is being changed, or
//!    whatever cannot be deleted. Nothing that goes wrong stops the database.
//! 3. Between two transactions it pauses: [`BUSY_PAUSE`] while there are more rows, else [`IDLE_PAUSE`].
//! 4. The thread holds the database open, and ends when the program's last handle is dropped, or at a closing; as that
//!    of the readers (`handle_thread.rs`).

use super::database::{Database, OpenGuard};
use super::handle_thread::HandleThread;
use super::write_txn::WriteTxn;
use crate::error::Result;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::event::event;
use crate::sync::notify::Notify;
use crate::sync::thread::Builder;
use crate::table::{DateTime, Table};
use crate::txn::{Access, Isolation, TxnOptions};
use crate::values;
use std::sync::Arc;
use std::time::Duration;

/// Most rows that a transaction deletes.
const ROWS: usize = 100;
/// At most [`ROWS`] rows of a table in this time.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// The pause while no row is expired.
const IDLE_PAUSE: Duration = Duration::from_secs(1);

/// Removes expired rows until it is dropped.
pub(super) struct ExpiryThread {
    stops: Arc<(AtomicBool, Notify)>,
    thread: HandleThread,
}

impl ExpiryThread {
    /// Starts it; `None` if the system has no thread for it, or nothing is to be written.
    pub(super) fn start(db: &Database) -> Option<Arc<ExpiryThread>> {
        db.check_writes_wanted().ok()?;
        let stops = Arc::new((AtomicBool::new(false), Notify::default()));
        let (db, stop) = (Database { readers: None, ..db.clone() }, Arc::clone(&stops));
        let run = move || {
            while !stop.0.load(Ordering::Acquire) && db.inner.check_running().is_ok() {
                let pause = if db.expire_step() { BUSY_PAUSE } else { IDLE_PAUSE };
                stop.1.wait(pause);
            }
        };
        match Builder::new().name("hw-expiry".to_string()).spawn(run) {
            Ok(thread) => Some(Arc::new(ExpiryThread { stops, thread: HandleThread::new(thread) })),
            Err(error) => {
                event!(WARN, error = error, "expired rows are not removed");
                None
            }
        }
    }

    /// Ends the thread, and waits for it where that can be.
    pub(super) fn stop(&self) {
        if self.thread.is_here() {
            self.stops.0.store(true, Ordering::Release);
            self.stops.1.wake();
            self.thread.join();
        }
    }
}

impl Drop for ExpiryThread {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Database {
    /// Deletes some expired rows of each table. Returns whether there may be more.
    pub(super) fn expire_step(&self) -> bool {
        let mut are_more = false;
        for table in self.tables() {
            match self.expire_rows(&table) {
                Ok(deleted) => {
                    self.inner.ctx.stats.rows_expired.add(deleted);
                    are_more |= deleted >= ROWS as u64;
                }
                Err(error) => event!(WARN, table = table.name(), error = error, "expired rows are not removed now"),
            }
        }
        are_more
    }

    fn expire_rows(&self, table: &Table) -> Result<u64> {
        let definition = table.definition();
        let Some(index) = definition.expiry_index() else { return Ok(0) };
        let now = DateTime::from_unix_us(self.inner.ctx.unix_us() as i64);
        let isolation = Isolation::ReadCommitted;
        let options = TxnOptions { isolation, lock_wait_timeout_ms: Some(0), ..TxnOptions::default() };
        // Expired rows exist for it.
        let mut txn = WriteTxn::begin(&OpenGuard::new(&self.inner), &options, Access::ReadWrite)?;
        let (never, expired) = (values![null], values![now]);
        let scan = txn.scan(table).index(&index.name).to(&expired).limit(ROWS).skip_locked();
        let may_be_null = definition.expires.is_some_and(|column| definition.columns[column].nullable);
        let deleted = if may_be_null { scan.from_exclusive(&never) } else { scan }.delete()?;
        txn.commit()?;
        Ok(deleted)
    }
}

#[cfg(test)]
#[path = "expiry_test.rs"]
mod tests;
