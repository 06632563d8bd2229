//! Accounts whose balances always have the same sum, clients that transfer between them, and concurrent schema changes;
//! and what a copy of such a database must hold.

use crate::support::sound;
use crate::testing::{by_id, commit_all};
use highwater::{Database, Error, Options, Schema, Table, Type, values};
use highwater_storage::StorageSet;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const ACCOUNTS: u64 = 400;
const BALANCE: i64 = 1000;
const AMOUNT: i64 = 5;
pub(crate) const CLIENTS: u64 = 4;

/// A transfer that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub client: u64,
    pub number: u64,
    /// The transaction's number and the LSN of its commit.
    pub transaction: u64,
    pub lsn: u64,
    /// Microseconds since 1970 when its commit was called and when it was acknowledged.
    pub called_us: u64,
    pub acknowledged_us: u64,
}

/// A database in use; each transfer is also a row of `transfers`.
pub(crate) struct Bank {
    pub db: Database,
    accounts: Table,
    transfers: Table,
    /// Per client, how many transfers it has made.
    acknowledged: [AtomicU64; CLIENTS as usize],
    made: Mutex<Vec<Transfer>>,
    stop: AtomicBool,
}

pub(crate) fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
}

impl Bank {
    pub(crate) fn new(storage: &StorageSet, options: Options) -> Bank {
        Bank::of_new(Database::open_storage(storage.clone(), options).unwrap())
    }

    /// Of a database without tables.
    pub(crate) fn of_new(db: Database) -> Bank {
        let accounts = by_id().column("balance", Type::I64);
        let accounts = db.create_table("accounts", accounts.index("by_balance", &["balance"])).unwrap();
        let transfers = Schema::new()
            .column("client", Type::U64)
            .column("number", Type::U64)
            .column("from", Type::U64)
            .column("to", Type::U64)
            .column("place", Type::U64)
            .column("text", Type::Text(400))
            .primary_key(&["client", "number"])
            .index("by_place", &["place"]);
        db.create_table("transfers", transfers).unwrap();
        commit_all(&db, 0..ACCOUNTS, |txn, id| txn.insert(&accounts, &values![id, BALANCE]));
        Bank::of(db)
    }

    /// Continues with a database.
    pub(crate) fn of(db: Database) -> Bank {
        let (accounts, transfers) = (db.table("accounts").unwrap(), db.table("transfers").unwrap());
        let acknowledged = counts(&db).map(AtomicU64::new);
        Bank { db, accounts, transfers, acknowledged, made: Mutex::default(), stop: AtomicBool::new(false) }
    }

    /// What was acknowledged since this bank began.
    pub(crate) fn made(&self) -> Vec<Transfer> {
        self.made.lock().unwrap().clone()
    }

    /// Makes transfers until it is to stop or the database has stopped.
    fn client(&self, client: u64) {
        let place = &self.acknowledged[client as usize];
        let mut number = place.load(SeqCst);
        let mut random = fastrand::Rng::with_seed(client + number * CLIENTS);
        while !self.stop.load(SeqCst) {
            match self.transfer(client, number, &mut random) {
                Ok(made) => {
                    number += 1;
                    place.store(number, SeqCst);
                    self.made.lock().unwrap().push(made);
                }
                Err(Error::Deadlock | Error::LockWaitTimeout) => {}
                Err(Error::Poisoned { .. } | Error::Storage(_)) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn transfer(&self, client: u64, number: u64, random: &mut fastrand::Rng) -> highwater::Result<Transfer> {
        let mut txn = self.db.begin()?;
        let (from, to) = (random.u64(..ACCOUNTS), random.u64(..ACCOUNTS));
        for (id, amount) in [(from, -AMOUNT), (to, AMOUNT)] {
            txn.modify(&self.accounts, &values![id], |row, set| set.put(1, row.i64(1) + amount))?;
        }
        let text = "flood ".repeat(random.usize(..60));
        txn.insert(&self.transfers, &values![client, number, from, to, random.u64(..), text.as_str()])?;
        let (transaction, called_us) = (txn.id().unwrap(), now_us());
        let lsn = txn.commit_lsn()?;
        Ok(Transfer { client, number, transaction, lsn, called_us, acknowledged_us: now_us() })
    }

    /// Tables come and go, large ones too; indexes are built.
    fn schema_changes(&self) {
        let mut random = fastrand::Rng::with_seed(99);
        for round in 0.. {
            match self.schema_change(round, &mut random) {
                Ok(()) => {}
                Err(Error::Poisoned { .. } | Error::Storage(_)) => return,
                Err(error) => panic!("{error}"),
            }
            // A backup is to see many of them, but of a database that stays small.
            std::thread::sleep(Duration::from_millis(20));
            if self.stop.load(SeqCst) {
                return;
            }
        }
    }

    fn schema_change(&self, round: u64, random: &mut fastrand::Rng) -> highwater::Result<()> {
        let name = format!("passing-{}-{round}", self.db.lsn());
        let table = self.db.create_table(&name, by_id().column("text", Type::Text(400)))?;
        let text = "x".repeat(300);
        for start in (0..random.u64(1..800)).step_by(200) {
            let mut txn = self.db.begin()?;
            for id in start..start + 200 {
                txn.insert(&table, &values![id, text.as_str()])?;
            }
            txn.commit()?;
        }
        self.db.create_index(&name, "by_text", &["text"], false)?;
        drop(table);
        self.db.drop_table(&name)
    }

    /// Runs the clients while `work` runs.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.stop.store(false, SeqCst);
        std::thread::scope(|scope| {
            (0..CLIENTS).for_each(|client| drop(scope.spawn(move || self.client(client))));
            scope.spawn(|| self.schema_changes());
            // Also when the work fails.
            let stop = Stop(&self.stop);
            let done = work();
            drop(stop);
            done
        })
    }

    /// Per client, how many transfers are acknowledged.
    pub(crate) fn acknowledged(&self) -> Vec<u64> {
        self.acknowledged.iter().map(|count| count.load(SeqCst)).collect()
    }

    /// Waits until that many more transfers were made, or the database has stopped.
    pub(crate) fn wait_for_growth(&self, more: u64) {
        let (since, before) = (Instant::now(), self.acknowledged().iter().sum::<u64>());
        let is_waiting = || self.acknowledged().iter().sum::<u64>() < before + more && self.db.snapshot().is_ok();
        while is_waiting() && since.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn counts(db: &Database) -> [u64; CLIENTS as usize] {
    let mut counts = [0; CLIENTS as usize];
    let transfers = db.table("transfers").unwrap();
    for row in db.snapshot().unwrap().scan(&transfers).iter().unwrap() {
        counts[row.unwrap().u64(0) as usize] += 1;
    }
    counts
}

/// The copy is whole: of each client the first transfers, as many as expected, and the balances that they lead to.
#[track_caller]
pub(crate) fn check_bank(db: &Database, expected: &[RangeInclusive<u64>]) {
    sound(db);
    let mut read = db.snapshot().unwrap();
    let mut next = [0; CLIENTS as usize];
    let mut balances = vec![BALANCE; ACCOUNTS as usize];
    for row in read.scan(&db.table("transfers").unwrap()).iter().unwrap() {
        let row = row.unwrap();
        let client = row.u64(0) as usize;
        assert_eq!(row.u64(1), next[client], "client {client}: a transfer is missing");
        next[client] += 1;
        balances[row.u64(2) as usize] -= AMOUNT;
        balances[row.u64(3) as usize] += AMOUNT;
    }
    for (client, (count, expected)) in next.iter().zip(expected).enumerate() {
        assert!(expected.contains(count), "client {client}: {count} transfers, {expected:?} expected");
    }
    let accounts = read.scan(&db.table("accounts").unwrap()).iter().unwrap().map(|row| row.unwrap().i64(1));
    assert!(accounts.eq(balances), "the balances are not those of the transfers");
}

/// From what was acknowledged at one moment to what was at another; the one that was under way then may have been
/// committed before it was acknowledged.
pub(crate) fn between(least: &[u64], max: &[u64]) -> Vec<RangeInclusive<u64>> {
    least.iter().zip(max).map(|(least, max)| *least..=*max + 1).collect()
}
