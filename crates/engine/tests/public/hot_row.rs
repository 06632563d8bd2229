//! Thousands of sessions that wait for one row.

use crate::support::{memory_with, options, sound};
use crate::testing::by_id;
use highwater::{Error, Options, TxnOptions, Type, ValueRef, values};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

const SESSIONS: usize = 5000;
const STACK_BYTES: usize = 192 << 10;

#[test]
fn five_thousand_sessions_change_one_row_each_once() {
    let db = memory_with(Options { buffer_pool_size: 16 << 20, log_file_size: 32 << 20, ..options() });
    let table = db.create_table("t", by_id().column("n", Type::U64)).unwrap();
    let mut txn = db.begin().unwrap();
    txn.insert(&table, &values![1, 0]).unwrap();
    txn.commit().unwrap();

    let mut holder = db.begin().unwrap();
    holder.get_for_update(&table, &values![1]).unwrap();
    let asking = AtomicUsize::new(0);
    let patient = TxnOptions { lock_wait_timeout_ms: Some(120_000), ..TxnOptions::default() };
    let raise = || -> Result<(), Error> {
        let mut txn = db.begin_with(patient.clone())?;
        asking.fetch_add(1, Ordering::Relaxed);
        txn.modify(&table, &values![1], |row, set| set.put(1, ValueRef::UInt(row.u64(1) + 1)))?;
        txn.commit()
    };
    std::thread::scope(|scope| {
        let start = |_| Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, raise).unwrap();
        let sessions: Vec<_> = (0..SESSIONS).map(start).collect();
        while asking.load(Ordering::Relaxed) < SESSIONS {
            std::thread::yield_now();
        }
        holder.commit().unwrap();
        sessions.into_iter().for_each(|session| session.join().unwrap().unwrap());
    });
    let row = db.snapshot().unwrap().get(&table, &values![1]).unwrap().unwrap();
    assert_eq!(row.u64(1), SESSIONS as u64);
    sound(&db);
}
