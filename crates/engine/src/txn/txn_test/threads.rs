//! Many threads at once.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

const ACCOUNTS: u64 = 30;
const START: u64 = 1000;

fn account(i: u64) -> String {
    format!("acct{i:03}")
}

fn balance_row(i: u64, balance: u64) -> Row {
    // The balance is in an index, so every transfer moves entries.
    row(&format!("{:02}", balance % 40), &format!("u{i}"), &balance.to_string())
}

fn balance(row: &Row) -> u64 {
    String::from_utf8(row.rest.clone()).unwrap().parse().unwrap()
}

fn add(session: &mut Session, i: u64, amount: u64) -> Result<()> {
    let found = session.op(account(i).as_bytes()).update(&mut |old, new, _| {
        let old = balance(&Row::decode(old));
        new.extend_from_slice(&balance_row(i, old.wrapping_add(amount)).encode());
        Ok(true)
    })?;
    assert!(found);
    Ok(())
}

fn transfer(db: &Db, random: &mut Random) -> Result<()> {
    let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
    if from == to {
        return Ok(());
    }
    let level = if random.below(2) == 0 { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
    let mut session = db.begin_with(TxnOptions { isolation: level, ..TxnOptions::default() });
    let amount = random.below(50);
    // Overdrafts wrap to a large number that the sum takes back.
    add(&mut session, from, amount.wrapping_neg())?;
    add(&mut session, to, amount)?;
    if random.below(10) == 0 { session.try_rollback() } else { session.try_commit() }
}

fn audit(db: &Db, random: &mut Random) {
    let mut session = db.begin();
    let rows = if random.below(2) == 0 {
        session.scan_rows(&ScanOptions { reverse: random.below(2) == 0, ..ScanOptions::default() }).unwrap()
    } else {
        session.scan_rows(&ScanOptions { index: Some(0), ..ScanOptions::default() }).unwrap()
    };
    let accounts: Vec<_> = rows.iter().filter(|(key, _)| key.starts_with("acct")).collect();
    assert_eq!(accounts.len() as u64, ACCOUNTS);
    assert_eq!(accounts.iter().fold(0u64, |sum, (_, row)| sum.wrapping_add(balance(row))), ACCOUNTS * START);
}

/// Inserts and deletes around the accounts, so that leaves split and merge.
fn churn(db: &Db, random: &mut Random, me: u64) -> Result<()> {
    let mut session = db.begin();
    for _ in 0..20 {
        let key = format!("{}{:03}-{me}", ["a", "b"][random.below(2) as usize], random.below(300));
        if random.below(2) == 0 {
            match session.insert(&key, &row("churn", "", &"c".repeat(random.below(700) as usize))) {
                Ok(()) | Err(Error::DuplicateKey { .. }) => {}
                Err(error) => return Err(error),
            }
        } else {
            session.delete(&key)?;
        }
    }
    session.try_commit()
}

#[test]
fn money_is_neither_made_nor_lost() {
    let options = Options { buffer_pool_size: 2 << 20, ..small_options() };
    let db = Db::with(StorageSet::memory(), options);
    let mut session = db.begin();
    for i in 0..ACCOUNTS {
        session.insert(&account(i), &balance_row(i, START)).unwrap();
    }
    session.commit();
    let (stop, deadlocks) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let (db, stop, deadlocks) = (&db, &stop, &deadlocks);
        let workers: Vec<_> = (0..6)
            .map(|me| {
                scope.spawn(move || {
                    let mut random = Random(me);
                    for _ in 0..250 {
                        let result = if me < 4 { transfer(db, &mut random) } else { churn(db, &mut random, me) };
                        match result {
                            Ok(()) => {}
                            Err(Error::Deadlock) => drop(deadlocks.fetch_add(1, Relaxed)),
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        let auditor = scope.spawn(move || {
            let mut random = Random(77);
            while !stop.load(Relaxed) {
                audit(db, &mut random);
            }
        });
        let purger = scope.spawn(move || {
            while !stop.load(Relaxed) {
                db.system.purge_step(50).unwrap();
                thread::yield_now();
            }
        });
        let failed: Vec<_> = workers.into_iter().filter_map(|worker| worker.join().err()).collect();
        stop.store(true, Relaxed);
        auditor.join().unwrap();
        purger.join().unwrap();
        assert!(failed.is_empty());
    });
    assert!(db.system.locks.is_empty());
    audit(&db, &mut Random(1));
    db.check(false);
    db.purge_all();
    db.check(true);
}

#[test]
fn one_of_many_inserts_of_a_value_wins() {
    let db = Db::new();
    for round in 0..20 {
        let won = AtomicU64::new(0);
        thread::scope(|scope| {
            for me in 0..4 {
                let (db, won) = (&db, &won);
                scope.spawn(move || {
                    let mut session = db.begin();
                    match session.insert(&format!("{round}-{me}"), &row("a", &format!("only{round}"), "")) {
                        Ok(()) => {
                            won.fetch_add(1, Relaxed);
                            session.commit();
                        }
                        Err(Error::DuplicateKey { .. } | Error::Deadlock) => drop(session),
                        Err(error) => panic!("{error}"),
                    }
                });
            }
        });
        assert_eq!(won.load(Relaxed), 1, "round {round}");
    }
    db.purge_all();
    assert_eq!(db.check(true).len(), 20);
}
