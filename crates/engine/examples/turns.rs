//! Threads that take turns: each does one transaction, then the next thread does. `cargo xtask cache-lines` runs it
//! under valgrind, which shows every access to memory, and counts the cache lines that cores would take from each
//! other.
//!
//! ```sh
//! cargo run --release -p highwater --example turns -- load DIR THREADS
//! cargo run --release -p highwater --example turns -- run DIR WORKLOAD THREADS WARM_UP ROUNDS
//! ```
//!
//! Rules
//! 1. One thread works at a time, and the engine has none of its own: every run does the same. After every 300
//!    transactions that write, the main thread takes the steps of background threads that follow writers closely.
//! 2. What belongs to a turn is between two marks on the standard error: `@ THREAD` and `@ end`. The work of passing
//!    the turn on is not measured. A mark is one write to a file of the thread's own: it takes no lock.
//! 3. A turn begins a moment after it was passed on: until then the thread that did so has gone to sleep. The trace
//!    does not say which thread an access is of.
//! 4. A thread's rows are on pages of its own, so the workloads `update` and `insert` share no data.

use highwater::config::FlushLog;
use highwater::internals::{BackgroundStep, DeterministicDb, OpenOverrides, override_cpu_count};
use highwater::{Database, Error, Options, Result, Schema, Table, Type, ValueRef, WriteTxn, values};
use highwater_storage::{SetOptions, StorageSet};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::sleep;
use std::time::Duration;

/// Rows that each thread has, and a stretch of the key that none has: more than a leaf's rows.
const ROWS: u64 = 64;
const APART: u64 = 1 << 32;
const FILLING: u64 = 40;
/// Rows of another table for each thread: about 5 MiB.
const OTHERS: u64 = 25_000;
const PAD: [u8; 180] = [7; 180];
/// A leaf has at least this many.
const ROWS_A_LEAF: usize = 8;
/// Steps of the page cleaner while time passes.
const CLEANINGS: u64 = 6;
const REDO_ROUNDS: u8 = 60;
/// See rule 3.
const MOMENT: Duration = Duration::from_millis(1);
/// Steps of background threads, and after how many turns they are taken.
const TURNS_A_STEP: u64 = 300;
const STEPS: [BackgroundStep; 2] = [BackgroundStep::Log, BackgroundStep::Purge];

fn usage() -> Error {
    Error::Usage("arguments: load DIR THREADS, or run DIR read|update|insert|mixed THREADS WARM_UP ROUNDS".to_string())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|n| n.parse::<u64>().ok()).ok_or_else(usage);
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["load", dir, _] => load(Path::new(dir), number(2)?),
        ["run", dir, work, ..] => run(Path::new(dir), Work::named(work)?, number(3)?, number(4)?, number(5)?),
        _ => Err(usage()),
    }
}

fn options() -> Result<Options> {
    let mut options = Options { flush_log_at_trx_commit: FlushLog::EverySecond, ..Options::default() };
    options.set("buffer-pool-size", "32M")?;
    options.set("log-file-size", "256M")?;
    options.set("flush-method", "fsync")?;
    Ok(options)
}

fn load(dir: &Path, threads: u64) -> Result<()> {
    let db = Database::open(dir, options()?)?;
    let schema = Schema::new().column("id", Type::U64).column("n", Type::U64).column("pad", Type::Binary(200));
    let table = db.create_table("rows", schema.primary_key(&["id"]))?;
    for thread in 0..threads {
        let first = thread * APART;
        let filling = first + APART - FILLING..first + APART;
        db.transact(|txn| {
            (first..first + ROWS)
                .chain(filling.clone())
                .try_for_each(|id| txn.insert(&table, &values![id, 0u64, &PAD[..]]).map(drop))
        })?;
    }
    write_others(&db, threads)?;
    write_redo(&db, &table, threads)?;
    while db.stats().history_list_length > 0 {
        sleep(MOMENT);
    }
    db.close()
}

/// Fills a table that is not counted: a closed database keeps redo log by the size of its data, and the room that
/// threads have spare in the ring is that of a ring in use.
fn write_others(db: &Database, threads: u64) -> Result<()> {
    let schema = Schema::new().column("id", Type::U64).column("pad", Type::Binary(200)).primary_key(&["id"]);
    let table = db.create_table("others", schema)?;
    for thread in 0..threads {
        let ids = thread * OTHERS..(thread + 1) * OTHERS;
        db.transact(|txn| txn.insert_many(&table, ids.clone().map(|id| values![id, &PAD[..]])).map(drop))?;
    }
    Ok(())
}

/// Changes rows for so long that the redo log grows to the size it has in a loaded database.
fn write_redo(db: &Database, table: &Table, threads: u64) -> Result<()> {
    for round in 0..REDO_ROUNDS {
        for thread in 0..threads {
            db.transact(|txn| {
                let change =
                    |id| txn.update(table, &values![id], &[(2, ValueRef::Bytes(&[round; PAD.len()]))]).map(drop);
                (thread * APART..thread * APART + ROWS).try_for_each(change)
            })?;
        }
    }
    Ok(())
}

/// What a turn does.
#[derive(Clone, Copy, PartialEq)]
enum Work {
    /// Reads a random row of all.
    Read,
    /// Changes one of the thread's rows.
    Update,
    /// Inserts a row after the thread's.
    Insert,
    /// Every second thread reads, the others change rows.
    Mixed,
}

impl Work {
    fn named(name: &str) -> Result<Work> {
        match name {
            "read" => Ok(Work::Read),
            "update" => Ok(Work::Update),
            "insert" => Ok(Work::Insert),
            "mixed" => Ok(Work::Mixed),
            _ => Err(usage()),
        }
    }

    fn of(self, thread: u64) -> Work {
        match self {
            Work::Mixed if thread.is_multiple_of(2) => Work::Read,
            Work::Mixed => Work::Update,
            work => work,
        }
    }
}

fn run(dir: &Path, work: Work, threads: u64, warm_up: u64, rounds: u64) -> Result<()> {
    override_cpu_count(threads as usize);
    let set = SetOptions { cached_redo: true, ..SetOptions::default() };
    let storage = StorageSet::open(dir, &set).map_err(|error| Error::Usage(error.to_string()))?;
    let clock = Arc::new(AtomicU64::new(0));
    let deterministic = DeterministicDb::open(storage, options()?, &OpenOverrides::default(), clock.clone())?;
    run_steps(&deterministic, threads, &clock)?;
    write_at_once(deterministic.database(), threads)?;
    let marks = Marks::open()?;
    marks.write(&format!("base {:x}", load_address()?))?;
    std::thread::scope(|scope| {
        let workers: Vec<Worker> = (0..threads)
            .map(|thread| {
                let (go, turns) = channel();
                let (done, ended) = channel();
                let db = deterministic.database();
                scope.spawn(move || take_turns(db, work.of(thread), thread, threads, &turns, &done));
                Worker { go, ended }
            })
            .collect();
        for round in 0..warm_up + rounds {
            if round == warm_up / 2 {
                run_steps(&deterministic, threads, &clock)?;
            }
            if round == warm_up {
                marks.write("measured")?;
            }
            workers.iter().try_for_each(Worker::take_turn)?;
            let turns = (round + 1) * threads;
            if work != Work::Read && turns / TURNS_A_STEP > (turns - threads) / TURNS_A_STEP {
                marks.write(&threads.to_string())?;
                STEPS.iter().try_for_each(|step| deterministic.step(*step))?;
                marks.write("end")?;
            }
        }
        Ok::<(), Error>(())
    })?;
    deterministic.close()
}

/// Time passes, and a row of each leaf is read before and after it: the pages are in the pool, and young. The redo log
/// grows to what the threads need.
fn run_steps(deterministic: &DeterministicDb, threads: u64, clock: &AtomicU64) -> Result<()> {
    let table = deterministic.database().table("rows")?;
    let mut read = deterministic.database().snapshot()?;
    let rows = || (0..threads).flat_map(|thread| (0..ROWS).step_by(ROWS_A_LEAF).map(move |row| thread * APART + row));
    let mut look = || rows().try_for_each(|id| read.get_with(&table, &values![id], |_| ()).map(drop));
    look()?;
    for _ in 0..CLEANINGS {
        clock.fetch_add(10_000, Relaxed);
        deterministic.step(BackgroundStep::Cleaner)?;
    }
    look()
}

/// As many transactions write at once as there are threads, as on a machine where these run: so there is an undo stream
/// for each.
fn write_at_once(db: &Database, threads: u64) -> Result<()> {
    let table = db.table("rows")?;
    let begin = |thread: u64| {
        let mut txn = db.begin()?;
        txn.update(&table, &values![thread * APART], &[(1, ValueRef::UInt(1))]).map(|_| txn)
    };
    let open: Result<Vec<WriteTxn>> = (0..threads).map(begin).collect();
    open?.into_iter().try_for_each(WriteTxn::commit)
}

struct Worker {
    go: Sender<()>,
    ended: Receiver<Result<()>>,
}

impl Worker {
    fn take_turn(&self) -> Result<()> {
        let gone = || Error::Usage("a thread has ended early".to_string());
        self.go.send(()).map_err(|_| gone())?;
        let result = self.ended.recv().map_err(|_| gone())?;
        sleep(MOMENT);
        result
    }
}

fn take_turns(db: &Database, work: Work, thread: u64, threads: u64, turns: &Receiver<()>, done: &Sender<Result<()>>) {
    let mut turn = match Turn::new(db, work, thread, threads) {
        Ok(turn) => turn,
        // A thread that waits for the turn sees that the thread is gone.
        Err(_) => return,
    };
    while turns.recv().is_ok() {
        sleep(MOMENT);
        let result = turn.take(db);
        if done.send(result).is_err() {
            return;
        }
    }
}

/// A thread's own state.
struct Turn {
    work: Work,
    table: Table,
    thread: u64,
    threads: u64,
    marks: Marks,
    begin: String,
    random: u64,
    next: u64,
}

impl Turn {
    fn new(db: &Database, work: Work, thread: u64, threads: u64) -> Result<Turn> {
        let (table, marks) = (db.table("rows")?, Marks::open()?);
        let random = (thread + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Ok(Turn { work, table, thread, threads, marks, begin: thread.to_string(), random, next: ROWS })
    }

    fn take(&mut self, db: &Database) -> Result<()> {
        let (own, any) = (self.draw() % ROWS, self.draw() % (self.threads * ROWS));
        self.marks.write(&self.begin)?;
        match self.work {
            Work::Read | Work::Mixed => self.read(db, any / ROWS * APART + any % ROWS)?,
            Work::Update => self.update(db, self.thread * APART + own)?,
            Work::Insert => self.insert(db)?,
        }
        self.marks.write("end")
    }

    fn read(&self, db: &Database, id: u64) -> Result<()> {
        db.snapshot()?.get_with(&self.table, &values![id], |row| row.u64(1))?.map(drop).ok_or_else(usage)
    }

    fn update(&self, db: &Database, id: u64) -> Result<()> {
        let mut txn = db.begin()?;
        txn.update(&self.table, &values![id], &[(1, ValueRef::UInt(self.random))])?;
        txn.commit()
    }

    fn insert(&mut self, db: &Database) -> Result<()> {
        let mut txn = db.begin()?;
        txn.insert(&self.table, &values![self.thread * APART + self.next, 0u64, &PAD[..]])?;
        self.next += 1;
        txn.commit()
    }

    /// Marsaglia's xorshift64.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// Where marks are written; see rule 2.
struct Marks(File);

impl Marks {
    fn open() -> Result<Marks> {
        Ok(Marks(File::options().append(true).open("/dev/stderr").map_err(unreadable)?))
    }

    fn write(&self, mark: &str) -> Result<()> {
        (&self.0).write_all(format!("@ {mark}\n").as_bytes()).map_err(unreadable)
    }
}

fn unreadable(error: std::io::Error) -> Error {
    Error::Usage(error.to_string())
}

/// The address of the program in memory.
fn load_address() -> Result<u64> {
    let (maps, own) = (std::fs::read_to_string("/proc/self/maps"), std::env::current_exe());
    let (maps, own) = (maps.map_err(unreadable)?, own.map_err(unreadable)?);
    let own = maps.lines().find(|line| line.ends_with(&own.display().to_string()));
    own.and_then(|line| u64::from_str_radix(line.split('-').next()?, 16).ok()).ok_or_else(usage)
}
