//! Calls of the public API, compared with a model: a map of rows for each commit, and what each open transaction has
//! changed.
//!
//! Laws
//! 1. What a plain read finds is what its level of isolation says: committed rows of a moment, and the transaction's
//!    own changes. A locking read finds the newest committed rows and its own changes.
//! 2. A write works on the newest committed row or the own one. It is refused only for a reason that is there: a key
//!    that exists, another open transaction, a newer commit under first-committer-wins.
//! 3. No write passes over a change that is not committed.
//! 4. Whatever is closed opens again with the same rows and passes the check.

mod act;
mod read;
mod shape;

use crate::input::Input;
use crate::values::{Key, refs};
use highwater::config::{ChangeBuffering, PageCompression, PageSize, PageStoreKind};
use highwater::internals::{BackgroundStep, DeterministicDb, OpenOverrides};
use highwater::{Database, Error, Isolation, Options, ReadTxn, Savepoint, Table, TxnOptions, Value, WriteTxn};
use highwater_storage::StorageSet;
use shape::Shape;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Rows by their key.
type Rows = BTreeMap<Key, Vec<Value>>;
/// What a transaction has changed: `None` = deleted.
type Own = BTreeMap<Key, Option<Vec<Value>>>;

/// Open transactions, and held snapshots, at most.
const ACTORS: usize = 4;
const SNAPSHOTS: usize = 2;
/// Calls of an input.
const MAX_CALLS: usize = 300;

/// An open transaction.
struct Actor {
    txn: WriteTxn,
    options: TxnOptions,
    /// The committed rows that it sees, once it has a view.
    view: Option<Rc<Rows>>,
    own: Own,
    savepoints: Vec<(Savepoint, Own)>,
}

/// A database and what must be in it.
struct World {
    storage: StorageSet,
    options: Options,
    now_ms: Arc<AtomicU64>,
    shape: Shape,
    committed: Rc<Rows>,
}

/// An open one, and who uses it.
struct Session {
    db: DeterministicDb,
    table: Table,
    actors: Vec<Actor>,
    snapshots: Vec<(ReadTxn, Option<Rc<Rows>>)>,
}

/// Makes the calls that an input says.
pub fn run(input: &mut Input<'_>) {
    let options = options(input);
    let (shape, storage) = (Shape::choose(input), StorageSet::memory());
    let mut world = World { storage, options, now_ms: Arc::default(), shape, committed: Rc::default() };
    let mut session = world.open();
    for _ in 0..MAX_CALLS {
        if input.is_empty() {
            break;
        }
        session = world.call(session, input);
    }
    world.close(session);
    let session = world.open();
    let report = session.db.database().check().expect("a database is checked");
    assert!(report.is_sound(), "{:?}", report.findings);
    world.close(session);
}

fn options(input: &mut Input<'_>) -> Options {
    let how = input.byte();
    let out_of_place = how & 1 != 0;
    Options {
        page_size: PageSize::Bytes(4096),
        page_store: if out_of_place { PageStoreKind::OutOfPlace } else { PageStoreKind::InPlace },
        page_compression: if out_of_place && how & 2 != 0 { PageCompression::Lz4 } else { PageCompression::Off },
        change_buffering: ChangeBuffering::ALL[usize::from(how >> 2) % ChangeBuffering::ALL.len()],
        segment_size: 256 << 10,
        buffer_pool_size: 1 << 20,
        log_file_size: 4 << 20,
        log_buffer_size: 1 << 20,
        lock_wait_timeout_ms: 1,
        ..Options::default()
    }
}

impl World {
    fn open(&self) -> Session {
        let db = DeterministicDb::open(
            self.storage.clone(),
            self.options.clone(),
            &OpenOverrides::default(),
            self.now_ms.clone(),
        );
        let db = db.expect("a database in memory opens");
        let table = match db.database().table("t") {
            Ok(table) => table,
            Err(_) => db.database().create_table("t", self.shape.schema.clone()).expect("a table is made"),
        };
        let mut session = Session { db, table, actors: Vec::new(), snapshots: Vec::new() };
        self.compare(&mut session);
        session
    }

    /// Everything that is committed is there, by every index.
    fn compare(&self, session: &mut Session) {
        let mut read = session.db.database().snapshot().expect("a snapshot begins");
        for index in self.shape.indexes() {
            let found = read::all(read.scan(&session.table).index(index.name), false).expect("all rows are read");
            read::same(&found, &read::sorted(&self.committed, &self.shape, &index), index.name);
        }
    }

    /// Ends everything and closes: law 4.
    fn close(&self, mut session: Session) {
        session.actors.clear();
        session.snapshots.clear();
        self.compare(&mut session);
        drop(session.table);
        session.db.close().expect("a database in memory is closed");
    }

    fn call(&mut self, mut session: Session, input: &mut Input<'_>) -> Session {
        self.now_ms.fetch_add(7, Relaxed);
        match input.byte() % 32 {
            0 | 1 if session.actors.len() < ACTORS => session.actors.push(begin(session.db.database(), input)),
            2 | 3 if !session.actors.is_empty() => self.end(&mut session, input),
            4 if session.snapshots.len() < SNAPSHOTS => {
                let read = session.db.database().snapshot().expect("a snapshot begins");
                session.snapshots.push((read, None));
            }
            5 if !session.snapshots.is_empty() => drop(session.snapshots.swap_remove(0)),
            6 | 7 if !session.snapshots.is_empty() => self.look(&mut session, input),
            8..=10 => session.db.step(*input.one_of(&BackgroundStep::ALL)).expect("a step in memory is done"),
            11 if input.byte().is_multiple_of(4) => {
                self.close(session);
                return self.open();
            }
            12 if input.byte().is_multiple_of(4) && session.actors.is_empty() && session.snapshots.is_empty() => {
                let indexes = self.shape.indexes();
                let name = indexes[input.below(indexes.len())].name;
                if name != "PRIMARY" {
                    session.db.database().rebuild_index("t", name).expect("an index is built again");
                }
            }
            _ => {
                if session.actors.is_empty() {
                    session.actors.push(begin(session.db.database(), input));
                }
                let at = input.below(session.actors.len());
                self.act(&mut session, at, input);
            }
        }
        session
    }

    /// A snapshot reads.
    fn look(&self, session: &mut Session, input: &mut Input<'_>) {
        let at = input.below(session.snapshots.len());
        let (read, view) = &mut session.snapshots[at];
        let range = read::Range::choose(input, &self.shape);
        if view.is_none() && range.may_read_nothing() {
            let key = self.shape.key(&self.shape.row(input));
            read.get(&session.table, &refs(&key.0)).expect("a snapshot reads");
        }
        let rows = view.get_or_insert_with(|| self.committed.clone());
        let bounds = range.bounds();
        let scan = range.apply(&bounds, read.scan(&session.table));
        let found = read::all(scan, input.byte() & 1 != 0).expect("a snapshot reads");
        read::same(&found, &range.of(rows, &self.shape), "a snapshot");
    }

    /// Commits or rolls back.
    fn end(&mut self, session: &mut Session, input: &mut Input<'_>) {
        let Actor { txn, own, .. } = session.actors.swap_remove(input.below(session.actors.len()));
        if input.byte().is_multiple_of(4) {
            return txn.rollback().expect("a transaction is rolled back");
        }
        txn.commit().expect("a transaction is committed");
        self.committed = Rc::new(read::over(&self.committed, &own));
    }
}

fn begin(db: &Database, input: &mut Input<'_>) -> Actor {
    let how = input.byte();
    let isolation = Isolation::ALL[usize::from(how) % Isolation::ALL.len()];
    let first_committer_wins = how & 0x80 != 0 && isolation == Isolation::RepeatableRead;
    let options =
        TxnOptions { isolation, lock_wait_timeout_ms: Some(1), first_committer_wins, ..TxnOptions::default() };
    let txn = db.begin_with(options.clone()).expect("a transaction begins");
    Actor { txn, options, view: None, own: Own::new(), savepoints: Vec::new() }
}

/// Whether an error is one that another transaction may cause.
fn is_conflict(error: &Error) -> bool {
    error.is_retryable() && !matches!(error, Error::Deadlock)
}
