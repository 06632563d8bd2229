//! Closing a database wakes every thread that waits for a lock: of a row, of a range, of a table.

use crate::TxnOptions;
use crate::db::testing::TestDb;
use crate::error::{Error, Result};
use crate::table::{Schema, Type};
use crate::testing::small_options;
use crate::values;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const LONG_MS: u64 = 20_000;

fn spawn(statement: impl FnOnce() -> Result<()> + Send + 'static) -> JoinHandle<Result<()>> {
    thread::spawn(statement)
}

#[test]
fn closing_wakes_waiters_for_a_lock() {
    let options = crate::Options { lock_wait_timeout_ms: LONG_MS, ..small_options() };
    let db = TestDb::new(options);
    let schema = Schema::new().column("id", Type::U32).column("x", Type::U32).primary_key(&["id"]);
    let table = db.create_table("t", schema).unwrap();
    let mut first = db.begin().unwrap();
    first.insert(&table, &values![1, 1]).unwrap();
    assert!(first.get_for_update(&table, &values![2]).unwrap().is_none());
    let (of_row, of_range) = (db.begin().unwrap(), db.begin().unwrap());
    let (t1, t2) = (table.clone(), table.clone());
    let mut waiting = vec![
        spawn(move || { of_row }.get_for_update(&t1, &values![1]).map(drop)),
        spawn(move || { of_range }.insert(&t2, &values![2, 2]).map(drop)),
    ];
    while db.stats().row_lock_waits < 2 {
        thread::yield_now();
    }
    let remover = db.clone();
    waiting.push(spawn(move || remover.drop_table("t")));
    // The removal waits once a newcomer has to.
    let is_held_back = || {
        let mut newcomer =
            db.begin_with(TxnOptions { lock_wait_timeout_ms: Some(1), ..TxnOptions::default() }).unwrap();
        matches!(newcomer.get(&table, &values![1]), Err(Error::LockWaitTimeout))
    };
    while !is_held_back() {
        thread::yield_now();
    }
    let started = Instant::now();
    db.close().unwrap();
    for waiter in waiting {
        let error = waiter.join().unwrap().unwrap_err();
        assert!(matches!(error, Error::Closed), "{error}");
    }
    assert!(started.elapsed() < Duration::from_millis(LONG_MS / 2), "they waited for their timeouts");
}
