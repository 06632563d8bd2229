//! Thousands of sessions: open at once, waiting for one row, begun and ended. What they took is released, and each
//! costs the same however many there are.
//!
//! By default the numbers are small. `HIGHWATER_SESSIONS=full` takes 10,000 open at once, 5,000 that wait for one row,
//! 100,000 begun and ended. Memory is what this process has allocated and not freed; the system's view of it (resident
//! bytes) is printed too.

use highwater::config::{FlushLog, PageSize};
use highwater::{Database, Error, Options, Schema, Table, TxnOptions, Type, ValueRef, values};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Counts what is allocated.
struct Counting;

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE_BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn live_bytes() -> usize {
    LIVE_BYTES.load(Relaxed)
}

/// A figure of the system's about this process or thread.
fn proc_figure(file: &str, name: &str) -> usize {
    let status = std::fs::read_to_string(file).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn resident_kib() -> usize {
    proc_figure("/proc/self/status", "VmRSS")
}

/// How often this thread has slept.
fn sleeps() -> usize {
    proc_figure("/proc/thread-self/status", "voluntary_ctxt_switches")
}

/// Memory is the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn size(short: u64, full: u64) -> u64 {
    if std::env::var("HIGHWATER_SESSIONS").is_ok_and(|asked| asked == "full") { full } else { short }
}

/// A database on files, so that none of its pages counts as allocated, with a table of `rows` rows.
fn database(rows: u64) -> (TempDir, Database, Table) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        page_size: PageSize::Bytes(4096),
        buffer_pool_size: 16 << 20,
        log_file_size: 64 << 20,
        flush_log_at_trx_commit: FlushLog::EverySecond,
        ..Options::default()
    };
    let db = Database::open(folder.path(), options).unwrap();
    let schema = Schema::new().column("id", Type::U64).column("n", Type::U64).primary_key(&["id"]);
    let table = db.create_table("t", schema).unwrap();
    let mut txn = db.begin().unwrap();
    for id in 0..rows {
        txn.insert(&table, &values![id, 0]).unwrap();
    }
    txn.commit().unwrap();
    (folder, db, table)
}

fn raise(txn: &mut highwater::WriteTxn, table: &Table, id: u64) -> Result<bool, Error> {
    txn.modify(table, &values![id], |row, set| set.put(1, ValueRef::UInt(row.u64(1) + 1)))
}

/// Waits until nothing is left to purge.
fn purged(db: &Database) {
    let since = Instant::now();
    while db.stats().history_list_length > 0 {
        assert!(since.elapsed() < Duration::from_secs(120), "{} are not purged", db.stats().history_list_length);
        thread::sleep(Duration::from_millis(5));
    }
}

/// What is allocated beyond `before`, as soon as that is at most `limit`: undo streams are released some seconds
/// after they were last needed.
fn kept_since(before: usize, limit: usize) -> usize {
    let since = Instant::now();
    loop {
        let kept = live_bytes().saturating_sub(before);
        if kept <= limit || since.elapsed() > Duration::from_secs(30) {
            return kept;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Whether each of three rounds keeps `more` bytes (the first that does not ends them), and what is kept beyond
/// `before`, first before any round. What is made once, as the cleaner's first large batch, may be made between two
/// rounds; what leaks grows in each.
fn grows(before: usize, more: usize, mut round: impl FnMut()) -> (bool, Vec<usize>) {
    let mut kept = vec![live_bytes().saturating_sub(before)];
    let grows = (0..3).all(|_| {
        let limit = kept[kept.len() - 1] + more;
        round();
        kept.push(kept_since(before, limit));
        kept[kept.len() - 1] > limit
    });
    (grows, kept)
}

/// Opens `sessions` transactions that have written, locked or only begun, and as many snapshots as a tenth of them;
/// ends them, half by a commit, half as they are dropped. Returns what was allocated for them.
fn one_round(db: &Database, table: &Table, sessions: u64) -> usize {
    let before = live_bytes();
    let mut open = Vec::with_capacity(sessions as usize);
    let mut snapshots = Vec::new();
    for id in 0..sessions {
        let mut txn = db.begin().unwrap();
        match id % 4 {
            0 => assert!(raise(&mut txn, table, id).unwrap()),
            1 => assert!(txn.get_for_update(table, &values![id]).unwrap().is_some()),
            2 => assert!(txn.get(table, &values![id]).unwrap().is_some()),
            _ => {}
        }
        open.push(txn);
        if id % 10 == 0 {
            let mut snapshot = db.snapshot().unwrap();
            assert!(snapshot.get(table, &values![id]).unwrap().is_some());
            snapshots.push(snapshot);
        }
    }
    let taken = live_bytes().saturating_sub(before);
    for (number, txn) in open.into_iter().enumerate() {
        if number % 8 < 4 { txn.commit().unwrap() } else { drop(txn) }
    }
    drop(snapshots);
    purged(db);
    taken
}

#[test]
fn sessions_open_at_once_release_what_they_took() {
    let _alone = alone();
    let sessions = size(1_000, 10_000);
    let (_folder, db, table) = database(sessions);
    purged(&db);
    let (before, resident) = (live_bytes(), resident_kib());
    let first = one_round(&db, &table, sessions);
    let kept = live_bytes().saturating_sub(before);
    let mut later: Vec<usize> = (0..3).map(|_| one_round(&db, &table, sessions)).collect();
    // What stays: the buffers of a few ended transactions, the capacity of tables.
    let limit = (256 << 10) + 200 * sessions as usize;
    let kept_later = kept_since(before, limit);
    println!(
        "{sessions} sessions: {} bytes for each, {kept} bytes kept after one round, {kept_later} after four; \
         resident {resident} KiB before, {} KiB after",
        first / sessions as usize,
        resident_kib()
    );
    if kept_later > limit {
        let (grows, kept) = grows(before, limit / 4, || later.push(one_round(&db, &table, sessions)));
        assert!(!grows, "{kept_later}, then {kept:?} bytes are kept");
    }
    assert!(later.iter().all(|taken| *taken < first * 2), "{first} {later:?}");
    let read = |id: u64| db.snapshot().unwrap().get(&table, &values![id]).unwrap().unwrap().u64(1);
    assert_eq!((read(0), read(4), read(1)), (1 + later.len() as u64, 0, 0), "committed, dropped, never changed");
}

const STACK_BYTES: usize = 192 << 10;

/// Raises the row once; how often the thread slept for it.
fn raise_once(db: &Database, table: &Table, timeout_ms: u64) -> Result<usize, Error> {
    let options = TxnOptions { lock_wait_timeout_ms: Some(timeout_ms), ..TxnOptions::default() };
    let mut txn = db.begin_with(options)?;
    let before = sleeps();
    raise(&mut txn, table, 0)?;
    txn.commit()?;
    Ok(sleeps() - before)
}

/// N sessions request one row, which another session holds until all wait that do not give up; every fifth gives up.
/// How often each of the others slept.
fn one_queue(db: &Database, table: &Table, sessions: usize) -> Vec<usize> {
    let gives_up = |session: usize| session % 5 == 4;
    let timeout_ms = |session: usize| if gives_up(session) { 20 + session as u64 % 100 } else { 600_000 };
    let mut holder = db.begin().unwrap();
    assert!(holder.get_for_update(table, &values![0]).unwrap().is_some());
    let results: Vec<_> = thread::scope(|scope| {
        let start = |session| {
            let wait = move || raise_once(db, table, timeout_ms(session));
            Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, wait).unwrap()
        };
        let threads: Vec<_> = (0..sessions).map(start).collect();
        let patient = (0..sessions).filter(|session| !gives_up(*session)).count() as u64;
        // Sessions that give up count as waiting until they have ended: they end first.
        let gave_up =
            || (0..sessions).filter(|session| gives_up(*session)).all(|session| threads[session].is_finished());
        while !gave_up() || db.stats().row_lock_current_waits != patient {
            thread::sleep(Duration::from_millis(2));
        }
        holder.commit().unwrap();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    purged(db);
    let outcome = |(session, result)| match result {
        Ok(sleeps) if !gives_up(session) => Some(sleeps),
        Err(Error::LockWaitTimeout) if gives_up(session) => None,
        other => panic!("session {session}: {other:?}"),
    };
    results.into_iter().enumerate().filter_map(outcome).collect()
}

/// Sessions queue for a row; each is woken when it is served, or gives up. It costs the same however many they are.
#[test]
fn who_waits_for_one_row_is_woken_once() {
    let _alone = alone();
    let sessions = size(500, 5_000) as usize;
    let (_folder, db, table) = database(1);
    purged(&db);
    let before = live_bytes();
    let mut slept = one_queue(&db, &table, sessions);
    let more = (128 << 10) + 200 * sessions;
    let (grows, kept) = grows(before, more, || slept.extend(one_queue(&db, &table, sessions)));
    let mean = slept.iter().sum::<usize>() as f64 / slept.len() as f64;
    println!("{sessions} sessions for one row: each slept {mean:.1} times; {kept:?} bytes kept");
    // Once for the row, sometimes for a mutex. Were all woken each time, it would be hundreds or thousands.
    assert!(mean < 20.0, "each session slept {mean:.1} times");
    // The table of parked threads is as large as there ever were threads, and is kept.
    assert!(!grows, "{kept:?} bytes are kept");
    let row = db.snapshot().unwrap().get(&table, &values![0]).unwrap().unwrap();
    assert_eq!(row.u64(1), slept.len() as u64);
    assert_eq!(db.stats().row_lock_current_waits, 0);
}

#[test]
fn sessions_begun_and_ended_leave_nothing() {
    const THREADS: u64 = 4;
    let _alone = alone();
    let sessions = size(8_000, 100_000);
    let (_folder, db, table) = database(THREADS);
    let run = |sessions: u64| {
        thread::scope(|scope| {
            for id in 0..THREADS {
                let (db, table) = (&db, &table);
                scope.spawn(move || {
                    for n in 0..sessions / THREADS {
                        let mut txn = db.begin().unwrap();
                        match n % 4 {
                            0 => assert!(raise(&mut txn, table, id).unwrap()),
                            1 => assert!(txn.get(table, &values![id]).unwrap().is_some()),
                            2 => assert!(txn.get_for_update(table, &values![id]).unwrap().is_some()),
                            _ => {}
                        }
                        if n % 8 < 4 { txn.commit().unwrap() } else { txn.rollback().unwrap() }
                    }
                });
            }
        });
        purged(&db);
    };
    run(sessions / 10);
    let (before, resident) = (live_bytes(), resident_kib());
    run(sessions);
    let (kept, after) = (kept_since(before, 128 << 10), resident_kib());
    println!("{sessions} sessions: {kept} bytes kept; resident {resident} KiB before, {after} KiB after");
    if kept > 128 << 10 {
        let (grows, later) = grows(before, 128 << 10, || run(sessions));
        assert!(!grows, "{kept}, then {later:?} bytes are kept");
    }
    // The pool's pages become resident as they are used; what is beyond them would be the sessions'.
    assert!(after < resident + (24 << 10), "resident {resident} KiB before, {after} KiB after");
}
