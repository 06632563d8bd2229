//! A child process has the handles of its parent. (What it may try, during which calls: `tests/long_calls`.)

use crate::db::testing::by_id;
use crate::error::Error;
use crate::{Database, Options, values};
use std::time::{Duration, Instant};

/// Runs `run` in a child process; false if it says so, panics or hangs.
fn in_child(run: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child ends without cleaning up, and uses nothing that another thread may have locked.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = i32::from(!std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or(false));
        // SAFETY: it ends the process.
        unsafe { libc::_exit(code) }
    }
    let (begin, mut status) = (Instant::now(), 0);
    // SAFETY: the kernel writes one number through the pointer, which outlives the call.
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        if begin.elapsed() > Duration::from_secs(30) {
            // SAFETY: it is this process's child, and was not waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

#[test]
fn a_child_neither_uses_nor_ends_what_its_parent_opened() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(folder.path(), Options::default()).unwrap();
    let table = db.create_table("t", by_id()).unwrap();
    let mut txn = db.begin().unwrap();
    txn.insert(&table, &values![1u64]).unwrap();
    let mut handles = Some((db, table, txn));
    let is_well = in_child(|| {
        let (db, table, mut txn) = handles.take().unwrap();
        let refused = [
            db.begin().map(drop),
            txn.insert(&table, &values![2u64]).map(drop),
            txn.commit(),
            db.flush_log(),
            db.clone().close(),
            db.check().map(drop),
        ];
        drop((db, table));
        // Closing would have unlocked the folder.
        let is_locked = Database::open(folder.path(), Options::default()).is_err();
        is_locked && refused.iter().all(|result| matches!(result, Err(Error::Forked)))
    });
    assert!(is_well);
    let (db, table, txn) = handles.take().unwrap();
    txn.commit().unwrap();
    assert_eq!(db.snapshot().unwrap().scan(&table).count().unwrap(), 1);
    db.close().unwrap();
}
