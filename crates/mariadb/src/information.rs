//! Status tables: transactions, locks, counters.
//!
//! Rule: what other connections do is shown from what they have noted (`Connection`); nothing here waits for one.

use crate::abi::{Bytes, Context, VisitRow};
use crate::database::Database;
use crate::failure::{Code, guarded};
use highwater::{Isolation, LockMode, Result, TxnWatch};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// Locks that are listed at most, about.
const MAX_LOCKS: usize = 100_000;
/// Bytes of a key that are shown, two digits each.
const MAX_KEY_BYTES: usize = 512;

/// An open transaction.
#[derive(Clone)]
pub(crate) struct OpenTxn {
    pub(crate) watch: TxnWatch,
    /// A `hw_isolation`.
    pub(crate) isolation: u32,
    pub(crate) began: Instant,
}

/// A session, as other connections see it.
pub(crate) struct Connection {
    number: u64,
    open: Mutex<Option<OpenTxn>>,
}

impl Connection {
    /// Notes what the session does now.
    #[inline]
    pub(crate) fn set(&self, open: Option<OpenTxn>) {
        *self.open.lock() = open;
    }
}

/// The sessions of a database.
#[derive(Default)]
pub(crate) struct Connections(Mutex<Vec<Weak<Connection>>>);

impl Connections {
    pub(crate) fn add(&self, number: u64) -> Arc<Connection> {
        let connection = Arc::new(Connection { number, open: Mutex::new(None) });
        let mut all = self.0.lock();
        // As many are looked at as are added: those that are gone go.
        if all.len() == all.capacity() {
            all.retain(|connection| connection.strong_count() > 0);
        }
        all.push(Arc::downgrade(&connection));
        connection
    }

    /// The open transactions, with their connections' numbers.
    fn open(&self) -> Vec<(u64, OpenTxn)> {
        let all: Vec<Arc<Connection>> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        all.iter().filter_map(|of| of.open.lock().clone().map(|open| (of.number, open))).collect()
    }
}

/// A value of a row: a text, a number, or NULL.
#[repr(C)]
pub struct Cell {
    text: Bytes,
    number: u64,
    has_number: u32,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.text.get(), self.has_number) {
            (Some(text), _) => f.write_str(&String::from_utf8_lossy(text)),
            (None, 0) => f.write_str("NULL"),
            (None, _) => self.number.fmt(f),
        }
    }
}

const NULL: Cell = Cell { text: Bytes::null(), number: 0, has_number: 0 };

fn number(number: u64) -> Cell {
    Cell { number, has_number: 1, ..NULL }
}

fn text(text: &str) -> Cell {
    Cell { text: Bytes::of(text.as_bytes()), ..NULL }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(MAX_KEY_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

fn list_transactions(database: &Database, row: &mut dyn FnMut(&[Cell])) -> Result<()> {
    let waiting: HashSet<u64> = database.db.lock_waiters().into_iter().collect();
    for (connection, OpenTxn { watch, isolation, began }) in database.connections.open() {
        let id = watch.id();
        let level = Isolation::ALL.get(isolation as usize);
        let level = level.map(|level| level.to_string().to_uppercase().replace('-', " "));
        let state = if waiting.contains(&watch.owner()) { "LOCK WAIT" } else { "ACTIVE" };
        row(&[
            number(connection),
            number(watch.owner()),
            if id == 0 { NULL } else { number(id) },
            text(state),
            level.as_deref().map_or(NULL, text),
            number(began.elapsed().as_secs()),
            number(watch.undo_records()),
            NULL,
        ]);
    }
    for prepared in database.db.prepared() {
        let (id, undo) = (number(prepared.transaction), number(prepared.undo_records));
        row(&[NULL, NULL, id, text("PREPARED"), NULL, NULL, undo, text(&prepared.xid.to_string())]);
    }
    Ok(())
}

fn list_locks(database: &Database, row: &mut dyn FnMut(&[Cell])) -> Result<()> {
    let open = database.connections.open();
    let connections: HashMap<u64, u64> = open.iter().map(|(number, open)| (open.watch.owner(), *number)).collect();
    for lock in database.db.row_locks(MAX_LOCKS) {
        row(&[
            text(&lock.table),
            text(&hex(&lock.key)),
            number(lock.owner),
            connections.get(&lock.owner).map_or(NULL, |connection| number(*connection)),
            text(if lock.mode == LockMode::Exclusive { "EXCLUSIVE" } else { "SHARED" }),
            text(if lock.is_waiting { "YES" } else { "NO" }),
        ]);
    }
    Ok(())
}

fn list_metrics(database: &Database, row: &mut dyn FnMut(&[Cell])) -> Result<()> {
    for counter in database.db.stats().table() {
        let innodb = counter.innodb.map_or(NULL, text);
        row(&[text(counter.name), number(counter.value), text(counter.doc.trim()), innodb]);
    }
    let lists = database.db.list_lengths();
    let lengths = [
        ("pool_pages", lists.frames as u64, "Frames of the buffer pool.", Some("buffer_pool_pages_total")),
        ("pool_pages_free", lists.free as u64, "Frames on the free list.", Some("buffer_pool_pages_free")),
        ("pool_pages_lru", lists.lru as u64, "Frames on the LRU list.", None),
        ("pool_pages_dirty", lists.dirty as u64, "Pages on the flush list.", Some("buffer_pool_pages_dirty")),
        ("history_list", lists.history, "Transactions on the history list.", Some("trx_rseg_history_len")),
    ];
    for (name, value, doc, innodb) in lengths {
        row(&[text(name), number(value), text(doc), innodb.map_or(NULL, text)]);
    }
    Ok(())
}

/// Lists the rows of a table.
type List = fn(&Database, &mut dyn FnMut(&[Cell])) -> Result<()>;

/// Hands the rows over.
fn listed(list: List, database: &Database, visit: VisitRow, context: Context) -> i32 {
    guarded(|| {
        list(database, &mut |cells| visit(context, cells.as_ptr(), cells.len()))?;
        Ok(Code::Ok)
    })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_list_transactions(database: &Database, visit: VisitRow, context: Context) -> i32 {
    listed(list_transactions, database, visit, context)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_list_locks(database: &Database, visit: VisitRow, context: Context) -> i32 {
    listed(list_locks, database, visit, context)
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn hw_list_metrics(database: &Database, visit: VisitRow, context: Context) -> i32 {
    listed(list_metrics, database, visit, context)
}
