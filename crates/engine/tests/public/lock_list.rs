//! Locks, those who hold them and those who wait, as another thread sees them.

use crate::support::{patient, sound};
use crate::testing::commit_all;
use highwater::{LockMode, RowLockInfo, Schema, Type, values};
use std::time::{Duration, Instant};

#[test]
fn holders_and_waiters_are_listed() {
    let db = patient();
    let table = db.create_table("t", Schema::new().column("id", Type::U8).primary_key(&["id"])).unwrap();
    commit_all(&db, 1..4u8, |txn, id| txn.insert(&table, &values![id]));
    assert!(db.row_locks(10).is_empty() && db.lock_waiters().is_empty());
    let (mut one, mut other) = (db.begin().unwrap(), db.begin().unwrap());
    one.get_for_share(&table, &values![1]).unwrap();
    other.get_for_share(&table, &values![1]).unwrap();
    one.delete(&table, &values![2]).unwrap();
    let (of_one, of_other) = (one.watch(), other.watch());
    assert!(of_one.id() == one.id().unwrap() && of_one.undo_records() == 1);
    assert!(of_other.id() == 0 && of_other.undo_records() == 0 && of_other.owner() != of_one.owner());
    let lock = |key: u8, owner, mode, is_waiting| RowLockInfo {
        table: "t".to_string(),
        key: vec![key],
        owner,
        mode,
        is_waiting,
    };
    let list = |max| {
        let mut locks = db.row_locks(max);
        locks.sort_by_key(|lock| (lock.key.clone(), lock.is_waiting, lock.owner));
        locks
    };
    let mut shared =
        vec![lock(1, of_one.owner(), LockMode::Shared, false), lock(1, of_other.owner(), LockMode::Shared, false)];
    shared.sort_by_key(|lock| lock.owner);
    assert_eq!(list(10), shared);
    assert_eq!(list(0), []);

    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| other.get_for_update(&table, &values![2]).unwrap().is_none());
        let began = Instant::now();
        while db.lock_waiters() != [of_other.owner()] {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not wait");
            std::thread::sleep(Duration::from_millis(1));
        }
        shared.push(lock(2, of_one.owner(), LockMode::Exclusive, false));
        shared.push(lock(2, of_other.owner(), LockMode::Exclusive, true));
        assert_eq!(list(10), shared);
        one.commit().unwrap();
        assert!(waiter.join().unwrap());
    });
    assert!(db.lock_waiters().is_empty() && of_one.id() == 0);
    other.commit().unwrap();
    assert!(db.row_locks(10).is_empty());
    sound(&db);
}
