//! The removal of expired rows (`txn/expiry.rs` defines them), and of old changes of the change log.
//!
//! Rules
//! 1. A thread deletes them in transactions of at most [`ROWS`] rows by ordinary deletions: logged, rolled back after a
//!    crash, visible in the stream of changes. It finds them by an index that begins with the expiry column, and skips
//!    a table without one.
//! 2. It waits for no lock: locked rows, tables with a running schema change, and rows that cannot be deleted are
//!    skipped until the next time. Its errors do not stop the database.
//! 3. Between two transactions it pauses: [`BUSY_PAUSE`] while there are more rows, else [`IDLE_PAUSE`]. While no table
//!    has such an index, and the change log has no age limit, it sleeps until a schema change has ended or an option
//!    was changed.
//! 4. Like the thread of the readers, the thread keeps the database open, and ends at a close or when the program's
//!    last handle is dropped (`handle_thread.rs`).

use super::database::{Database, OpenGuard};
use super::expiry_thread::ExpiryThread;
use super::handle_thread::HandleThread;
use super::write_txn::WriteTxn;
use crate::error::Result;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::event::event;
use crate::sync::thread::Builder;
use crate::table::{DateTime, IndexDefinition, Table, TableDefinition};
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

/// The result of a step over all tables and the change log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Expired {
    /// No table has rows that expire and an index that finds them, and no change is too old.
    NoTable,
    /// Some rows at most, which are gone.
    FewRows,
    /// There may be more.
    MoreRows,
}

impl Expired {
    /// Rule 3; `None`: until it is woken.
    fn pause(self) -> Option<Duration> {
        match self {
            Expired::NoTable => None,
            Expired::FewRows => Some(IDLE_PAUSE),
            Expired::MoreRows => Some(BUSY_PAUSE),
        }
    }
}

impl ExpiryThread {
    /// Starts it; `None` if the system has no thread for it, or nothing is to be written.
    pub(super) fn start(db: &Database) -> Option<Arc<ExpiryThread>> {
        db.check_writes_wanted().ok()?;
        let (stops, gate) = (Arc::new(AtomicBool::new(false)), Arc::clone(&db.inner.gate));
        let (db, stop) = (Database { readers: None, ..db.clone() }, Arc::clone(&stops));
        let run = move || {
            while !stop.load(Ordering::Acquire) && db.inner.check_running().is_ok() {
                db.inner.gate.expiry_wake().wait_for(db.expire_step().pause());
            }
        };
        match Builder::new().name("hw-expiry".to_string()).spawn(run) {
            Ok(thread) => Some(Arc::new(ExpiryThread { stops, gate, thread: HandleThread::new(thread) })),
            Err(error) => {
                event!(WARN, error = error, "expired rows are not removed");
                None
            }
        }
    }
}

/// The time by which rows of a database expire now, in microseconds since 1970.
pub fn clock_us(db: &Database) -> i64 {
    db.inner.ctx.unix_us() as i64
}

impl Database {
    /// Deletes some expired rows of each table, and some old changes.
    pub(super) fn expire_step(&self) -> Expired {
        let mut found = Expired::NoTable;
        for table in self.tables() {
            let definition = table.definition();
            let Some(index) = definition.expiry_index() else { continue };
            found = found.max(Expired::FewRows);
            match self.expire_rows(&table, &definition, index) {
                Ok(deleted) => {
                    self.inner.ctx.stats.rows_expired.add(deleted);
                    found = if deleted >= ROWS as u64 { Expired::MoreRows } else { found };
                }
                Err(error) => event!(WARN, table = table.name(), error = error, "expired rows are not removed now"),
            }
        }
        found.max(self.expire_changes())
    }

    fn expire_changes(&self) -> Expired {
        match self.trim_by_age() {
            Ok(None) => Expired::NoTable,
            Ok(Some(true)) => Expired::MoreRows,
            Ok(Some(false)) => Expired::FewRows,
            Err(error) => {
                event!(WARN, error = error, "the change log is not trimmed now");
                Expired::FewRows
            }
        }
    }

    fn expire_rows(&self, table: &Table, definition: &TableDefinition, index: &IndexDefinition) -> Result<u64> {
        let first = index.columns.first().map(|part| part.column);
        debug_assert_eq!(first, definition.expires, "rule 1: index {} does not begin with the expiry", index.name);
        let now = DateTime::from_unix_us(self.inner.ctx.unix_us() as i64);
        let isolation = Isolation::ReadCommitted;
        let options = TxnOptions { isolation, lock_wait_timeout_ms: Some(0), ..TxnOptions::default() };
        // Expired rows exist for it.
        let mut txn = WriteTxn::begin(&OpenGuard::new(&self.inner), &options, Access::ReadWrite)?;
        let (never, expired) = (values![null], values![now]);
        let scan = txn.scan(table).index(&index.name).to(&expired).limit(ROWS).skip_locked();
        let may_be_null = definition.expires.is_some_and(|column| definition.columns[column].nullable);
        let deleted = if may_be_null { scan.from_exclusive(&never) } else { scan }.delete()?;
        debug_assert!(deleted <= ROWS as u64, "rule 1: a transaction removes {deleted} rows");
        txn.commit()?;
        Ok(deleted)
    }
}

#[cfg(test)]
#[path = "expiry_test.rs"]
mod tests;
