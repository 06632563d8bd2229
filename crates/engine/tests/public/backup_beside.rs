//! Backups beside transactions, schema changes, growth and power cuts, with real threads.

use crate::backup::{back_up, restored};
use crate::support::{options, sound};
use highwater::config::{ChangeBuffering, PageStoreKind};
use highwater::{BackupOptions, Database, Error, Options, Schema, Table, Type, values};
use highwater_storage::StorageSet;
use std::ops::ControlFlow::Continue;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

const ACCOUNTS: u64 = 400;
const BALANCE: i64 = 1000;
const CLIENTS: u64 = 4;

/// Accounts whose balances always have the same sum; each transfer is also a row of `transfers`.
struct Bank {
    db: Database,
    accounts: Table,
    transfers: Table,
    /// Per client, how many of its transfers were acknowledged.
    acknowledged: [AtomicU64; CLIENTS as usize],
    stop: AtomicBool,
}

impl Bank {
    fn new(storage: &StorageSet, options: Options) -> Bank {
        let db = Database::open_storage(storage.clone(), options).unwrap();
        let accounts = Schema::new().column("id", Type::U64).column("balance", Type::I64).primary_key(&["id"]);
        let accounts = db.create_table("accounts", accounts.index("by_balance", &["balance"])).unwrap();
        let transfers = Schema::new()
            .column("client", Type::U64)
            .column("number", Type::U64)
            .column("place", Type::U64)
            .column("text", Type::Text(400))
            .primary_key(&["client", "number"])
            .index("by_place", &["place"]);
        let transfers = db.create_table("transfers", transfers).unwrap();
        let mut txn = db.begin().unwrap();
        for id in 0..ACCOUNTS {
            txn.insert(&accounts, &values![id, BALANCE]).unwrap();
        }
        txn.commit().unwrap();
        Bank { db, accounts, transfers, acknowledged: Default::default(), stop: AtomicBool::new(false) }
    }

    fn client(&self, client: u64) {
        let mut random = fastrand::Rng::with_seed(client);
        let mut number = 0;
        while !self.stop.load(SeqCst) {
            match self.transfer(client, number, &mut random) {
                Ok(()) => {
                    number += 1;
                    self.acknowledged[client as usize].store(number, SeqCst);
                }
                Err(Error::Deadlock | Error::LockWaitTimeout) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn transfer(&self, client: u64, number: u64, random: &mut fastrand::Rng) -> highwater::Result<()> {
        let mut txn = self.db.begin()?;
        let (from, to) = (random.u64(..ACCOUNTS), random.u64(..ACCOUNTS));
        for (id, amount) in [(from, -5), (to, 5)] {
            txn.modify(&self.accounts, &values![id], |row, set| set.put(1, row.i64(1) + amount))?;
        }
        let text = "flood ".repeat(random.usize(..60));
        txn.insert(&self.transfers, &values![client, number, random.u64(..), text.as_str()])?;
        txn.commit()
    }

    /// Tables come and go, large ones too; indexes are built.
    fn schema_changes(&self) {
        let mut random = fastrand::Rng::with_seed(99);
        for round in 0.. {
            let name = format!("passing-{round}");
            let schema = Schema::new().column("id", Type::U64).column("text", Type::Text(400)).primary_key(&["id"]);
            let table = self.db.create_table(&name, schema).unwrap();
            let text = "x".repeat(300);
            for start in (0..random.u64(1..800)).step_by(200) {
                let mut txn = self.db.begin().unwrap();
                for id in start..start + 200 {
                    txn.insert(&table, &values![id, text.as_str()]).unwrap();
                }
                txn.commit().unwrap();
            }
            self.db.create_index(&name, "by_text", &["text"], false).unwrap();
            drop(table);
            self.db.drop_table(&name).unwrap();
            // A backup is to see many of them, but of a database that stays small.
            std::thread::sleep(Duration::from_millis(20));
            if self.stop.load(SeqCst) {
                return;
            }
        }
    }

    /// Runs everybody while `work` does.
    fn beside<T>(&self, work: impl FnOnce() -> T) -> T {
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

    fn acknowledged(&self) -> Vec<u64> {
        self.acknowledged.iter().map(|count| count.load(SeqCst)).collect()
    }
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// The copy is whole: the sum, and of each client the first transfers, `at_least` of them and up to `at_most`.
fn check_bank(db: &Database, at_least: &[u64], at_most: &[u64]) {
    sound(db);
    let mut read = db.snapshot().unwrap();
    let accounts = db.table("accounts").unwrap();
    let sum: i64 = read.scan(&accounts).iter().unwrap().map(|row| row.unwrap().i64(1)).sum();
    assert_eq!(sum, BALANCE * ACCOUNTS as i64);
    let mut next = [0; CLIENTS as usize];
    let transfers = db.table("transfers").unwrap();
    for row in read.scan(&transfers).iter().unwrap() {
        let row = row.unwrap();
        let client = row.u64(0) as usize;
        assert_eq!(row.u64(1), next[client], "client {client}: a transfer is missing");
        next[client] += 1;
    }
    for (client, count) in next.iter().enumerate() {
        // The one that was under way may have been committed before it was acknowledged.
        let range = at_least[client]..=at_most[client] + 1;
        assert!(range.contains(count), "client {client}: {count} transfers, {range:?} expected");
    }
}

fn wait_for_growth(bank: &Bank, more: u64) {
    let (since, before) = (Instant::now(), bank.acknowledged().iter().sum::<u64>());
    while bank.acknowledged().iter().sum::<u64>() < before + more && since.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn variants() -> Vec<Options> {
    let small = Options {
        buffer_pool_size: 1 << 20,
        segment_size: 256 << 10,
        segment_fill_pct: 90,
        lock_wait_timeout_ms: 5000,
        ..options()
    };
    [
        (PageStoreKind::InPlace, ChangeBuffering::Memory),
        (PageStoreKind::OutOfPlace, ChangeBuffering::Memory),
        (PageStoreKind::InPlace, ChangeBuffering::Disk),
    ]
    .map(|(page_store, change_buffering)| Options { page_store, change_buffering, ..small.clone() })
    .to_vec()
}

/// The log is a ring of 4 MiB that goes round several times during each backup.
#[test]
fn a_backup_beside_transactions_and_schema_changes_is_of_one_moment() {
    for options in variants() {
        let folder = tempfile::tempdir().unwrap();
        let bank = Bank::new(&StorageSet::memory(), options.clone());
        let slow = BackupOptions { max_bytes_per_s: 16 << 20, ..BackupOptions::default() };
        let (mut chain, mut bounds): (Vec<PathBuf>, _) = (Vec::new(), Vec::new());
        bank.beside(|| {
            for link in 0..3 {
                wait_for_growth(&bank, 200);
                let dest = folder.path().join(format!("link-{link}"));
                let how = BackupOptions { base: chain.last().cloned(), ..slow.clone() };
                let before = bank.acknowledged();
                bank.db.backup(&dest, &how, &mut |_| Continue(())).unwrap();
                bounds.push((before, bank.acknowledged()));
                chain.push(dest);
            }
        });
        for (links, (least, most)) in bounds.iter().enumerate() {
            let copy = folder.path().join(format!("copy-{links}"));
            check_bank(&restored(&chain[..=links], &copy, &options).unwrap(), least, most);
        }
        sound(&bank.db);
    }
}

#[test]
fn power_cuts_of_the_source_during_a_backup_lose_nothing() {
    for (seed, options) in (0..9).zip(variants().into_iter().cycle()) {
        let (folder, storage) = (tempfile::tempdir().unwrap(), StorageSet::memory());
        let bank = Bank::new(&storage, options.clone());
        let slow = BackupOptions { max_bytes_per_s: 8 << 20, ..BackupOptions::default() };
        let (cut, least) = bank.beside(|| {
            wait_for_growth(&bank, 100);
            let mut cut = None;
            let tell = &mut |progress: highwater::BackupProgress| {
                if cut.is_none() && progress.pages * 3 > progress.total * (seed % 3) {
                    let least = bank.acknowledged();
                    cut = Some((storage.cut(seed), least));
                }
                Continue(())
            };
            bank.db.backup(folder.path().join("full"), &slow, tell).unwrap();
            cut.unwrap()
        });
        let db = Database::open_storage(cut, options.clone()).unwrap();
        check_bank(&db, &least, &bank.acknowledged());
        // What is recovered is the base of nothing newer than itself, and can be backed up.
        back_up(&db, &folder.path().join("again"), None).unwrap();
    }
}
