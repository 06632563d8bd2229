//! Databases restored to moments between backups, from backups and the archive of redo.

use crate::backup::{back_up, restore_options};
use crate::bank::{Bank, CLIENTS, Transfer, check_bank, now_us};
use crate::concurrent_backup;
use crate::support::options;
use crate::testing::by_id;
use highwater::config::{ChangeBuffering, Doublewrite, PageStoreKind};
use highwater::{Database, DateTime, Options, RestoreOptions, RestoreReport, Until};
use highwater_storage::{Faults, StorageSet};
use std::fs;
use std::ops::ControlFlow::Continue;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

fn variants() -> Vec<Options> {
    let journal = Options {
        doublewrite: Doublewrite::Journal,
        change_buffering: ChangeBuffering::Off,
        page_store: PageStoreKind::InPlace,
        ..concurrent_backup::variants()[0].clone()
    };
    concurrent_backup::variants().into_iter().chain([journal]).collect()
}

/// A folder with an archive and backups.
struct Place {
    folder: tempfile::TempDir,
    options: Options,
}

impl Place {
    fn new(options: Options) -> Place {
        let folder = tempfile::tempdir().unwrap();
        Place { options: Options { redo_archive: Some(folder.path().join("redo")), ..options }, folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn open(&self, storage: &StorageSet) -> Bank {
        Bank::of(Database::open_storage(storage.clone(), self.options.clone()).unwrap())
    }

    fn restore(&self, chain: &[PathBuf], until: Option<Until>) -> highwater::Result<(RestoreReport, Database)> {
        let copy = self.at("copy");
        let _ = fs::remove_dir_all(&copy);
        let options = RestoreOptions { redo: Some(self.at("redo")), until, ..restore_options(&self.options) };
        let report = Database::restore(chain, &copy, &options, &mut |_| Continue(()))?;
        let own = Options { redo_archive: None, ..self.options.clone() };
        Ok((report, Database::open(&copy, own)?))
    }

    fn segments(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.at("redo")).unwrap().map(|entry| entry.unwrap().path());
        let mut segments: Vec<PathBuf> = entries.filter(|path| path.extension().is_some()).collect();
        segments.sort();
        segments
    }
}

/// What was acknowledged, in all lives of a database.
#[derive(Default)]
struct Acknowledged {
    transfers: Vec<Transfer>,
}

impl Acknowledged {
    /// Per client: how many transfers `surely` are in the database, and how many `perhaps`. Of one that was under way
    /// when the power failed nothing is known but its place between the acknowledged ones.
    fn expected(
        &self,
        surely: impl Fn(&Transfer) -> bool,
        perhaps: impl Fn(&Transfer) -> bool,
    ) -> Vec<RangeInclusive<u64>> {
        (0..CLIENTS)
            .map(|client| {
                let own = || self.transfers.iter().filter(|transfer| transfer.client == client);
                let behind = |of: &dyn Fn(&Transfer) -> bool| {
                    own().filter(|transfer| of(transfer)).map(|transfer| transfer.number + 1).max().unwrap_or(0)
                };
                let (least, max) = (behind(&surely), behind(&perhaps));
                let is_known = own().any(|transfer| transfer.number == max);
                least..=if is_known { max } else { max + 1 }
            })
            .collect()
    }

    fn up_to(&self, lsn: u64) -> Vec<RangeInclusive<u64>> {
        self.expected(|transfer| transfer.lsn <= lsn, |transfer| transfer.lsn <= lsn)
    }

    fn at(&self, us: u64) -> Vec<RangeInclusive<u64>> {
        self.expected(|transfer| transfer.acknowledged_us <= us, |transfer| transfer.called_us <= us)
    }
}

/// Five lives: one closed, one cut off by a power cut, one closed, one in which nothing happens, one closed. Backups in
/// the first and the second. Returns them, what was acknowledged, and the LSNs at which the backups ended.
fn live(place: &Place, seed: u64) -> (Vec<PathBuf>, Acknowledged, Vec<u64>) {
    let (mut storage, mut acknowledged) = (StorageSet::memory(), Acknowledged::default());
    let (mut chain, mut ends): (Vec<PathBuf>, _) = (Vec::new(), Vec::new());
    for life in 0..5 {
        let faults = Faults::new();
        let powered = storage.map(|device| faults.wrap(device));
        let bank = if life == 0 { Bank::new(&powered, place.options.clone()) } else { place.open(&powered) };
        if life != 3 {
            bank.during(|| {
                bank.wait_for_growth(60);
                if life < 2 {
                    let dest = place.at(&format!("backup-{life}"));
                    ends.push(back_up(&bank.db, &dest, chain.last().map(PathBuf::as_path)).unwrap().pages_lsn);
                    chain.push(dest);
                }
                bank.wait_for_growth(120);
                if life == 1 {
                    faults.power_off_after(seed * 3 % 40);
                    bank.wait_for_growth(100_000);
                }
            });
        }
        acknowledged.transfers.extend(bank.made());
        if life == 1 {
            drop(bank);
            storage = storage.cut(seed);
        } else {
            bank.db.close().unwrap();
        }
    }
    (chain, acknowledged, ends)
}

/// The database at random LSNs, transactions and times is what was committed up to then: exactly.
#[test]
fn a_database_is_restored_to_any_moment() {
    for (seed, options) in variants().into_iter().enumerate() {
        let place = Place::new(options);
        let (chain, acknowledged, ends) = live(&place, seed as u64);
        let mut random = fastrand::Rng::with_seed(seed as u64);
        let reachable: Vec<Transfer> =
            acknowledged.transfers.iter().filter(|transfer| transfer.lsn > ends[0]).copied().collect();
        for round in 0..8 {
            let transfer = reachable[random.usize(..reachable.len())];
            let (until, expected) = match round % 4 {
                0 => (Until::Lsn(transfer.lsn), acknowledged.up_to(transfer.lsn)),
                1 => (Until::Lsn(transfer.lsn - 1), acknowledged.up_to(transfer.lsn - 1)),
                2 => (Until::Transaction(transfer.transaction), acknowledged.up_to(transfer.lsn)),
                _ => {
                    let us = transfer.acknowledged_us;
                    (Until::Time(DateTime::from_unix_us(us as i64)), acknowledged.at(us))
                }
            };
            let (report, copy) = match place.restore(&chain, Some(until)) {
                Ok(restored) => restored,
                Err(error) => panic!("{until} (of {transfer:?}): {error}"),
            };
            check_bank(&copy, &expected);
            let is_late = transfer.lsn > ends[1] + 1000;
            assert!(report.backups == 2 || !is_late, "{until}: {report:?}, {ends:?}");
            if let Until::Transaction(id) = until {
                assert_eq!(report.last_commit.map(|commit| (commit.transaction, commit.lsn)), Some((id, transfer.lsn)));
            }
        }
        // All of it; and with the full backup alone.
        for links in [1, 2] {
            let (_, copy) = place.restore(&chain[..links], None).unwrap();
            check_bank(&copy, &acknowledged.up_to(u64::MAX));
        }
    }
}

#[track_caller]
fn refused<T>(result: highwater::Result<T>, parts: &[&str]) {
    let error = result.err().expect("it is refused").to_string();
    assert!(parts.iter().all(|part| error.contains(part)), "{error:?} lacks one of {parts:?}");
}

fn some_transfers(bank: &Bank) {
    bank.during(|| bank.wait_for_growth(30));
}

#[test]
fn redo_that_was_not_archived_is_a_gap_that_is_named() {
    let (place, storage) = (Place::new(options()), StorageSet::memory());
    let bank = Bank::new(&storage, place.options.clone());
    let full = place.at("full");
    back_up(&bank.db, &full, None).unwrap();
    some_transfers(&bank);
    let before = bank.db.lsn();
    assert_eq!(bank.db.archive_problem(), None);
    bank.db.close().unwrap();
    let without = Options { redo_archive: None, ..place.options.clone() };
    let bank = Bank::of(Database::open_storage(storage.clone(), without).unwrap());
    some_transfers(&bank);
    let unarchived = bank.made()[10].lsn;
    bank.db.close().unwrap();
    let bank = place.open(&storage);
    assert!(bank.db.archive_problem().unwrap().contains("has a gap"));
    assert_eq!(bank.db.stats().redo_archive_gaps, 1);
    some_transfers(&bank);
    let more = place.at("more");
    back_up(&bank.db, &more, Some(&full)).unwrap();
    some_transfers(&bank);
    let after = bank.made().last().unwrap().lsn;
    let count = bank.acknowledged();
    assert!(after > unarchived);
    bank.db.close().unwrap();
    let chain = [full, more];
    let gap = "redo lacks the redo from LSN";
    for until in [Until::Lsn(unarchived), Until::Lsn(after)] {
        refused(place.restore(&chain[..1], Some(until)), &[gap, "it was not archived"]);
    }
    refused(place.restore(&chain[..1], None), &[gap]);
    refused(place.restore(&chain, Some(Until::Lsn(unarchived))), &[gap]);
    assert!(!place.at("copy").exists(), "nothing was written");
    place.restore(&chain, Some(Until::Lsn(before))).unwrap();
    let (_, copy) = place.restore(&chain, Some(Until::Lsn(after))).unwrap();
    check_bank(&copy, &count.iter().map(|count| 0..=*count).collect::<Vec<_>>());
}

/// No redo was archived after the backup: the backup holds everything.
#[test]
fn a_backup_of_a_closed_database_is_restored_with_its_archive() {
    let place = Place::new(options());
    let dir = place.at("db");
    let bank = Bank::of_new(Database::open(&dir, place.options.clone()).unwrap());
    some_transfers(&bank);
    let count = bank.acknowledged();
    bank.db.close().unwrap();
    let closed = Database::open_read_only(&dir, options()).unwrap();
    let full = place.at("full");
    back_up(&closed, &full, None).unwrap();
    closed.close().unwrap();
    let (_, copy) = place.restore(&[full], None).unwrap();
    check_bank(&copy, &count.iter().map(|count| *count..=*count).collect::<Vec<_>>());
}

#[test]
fn an_archive_of_another_history_is_refused() {
    let place = Place::new(options());
    let [db, full, older] = ["db", "full", "older"].map(|name| place.at(name));
    let open = |dir: &Path, redo: &str| {
        Database::open(dir, Options { redo_archive: Some(place.at(redo)), ..place.options.clone() })
    };
    let bank = Bank::new(&StorageSet::memory(), Options { redo_archive: Some(place.at("other")), ..options() });
    bank.db.close().unwrap();
    let first = open(&db, "redo").unwrap();
    back_up(&first, &full, None).unwrap();
    first.close().unwrap();
    fs::create_dir(&older).unwrap();
    for name in ["data", "redo", "doublewrite"] {
        fs::copy(db.join(name), older.join(name)).unwrap();
    }
    let first = open(&db, "redo").unwrap();
    first.create_table("later", by_id()).unwrap();
    first.close().unwrap();
    refused(open(&older, "redo"), &["has redo up to LSN", "it is an older copy"]);
    refused(open(&db, "other"), &["has the redo of database", "name another folder"]);
    refused(open(&db, "db/within"), &["redo-archive", "is in the database's folder"]);
    refused(open(&place.at("new-db"), "new-db/within"), &["redo-archive", "is in the database's folder"]);
    assert!(!place.at("new-db").exists(), "nothing is made");
    refused(open(&db, "full"), &["is not an archive of redo, and not empty"]);
    refused(open(&db, "full/backup.json"), &["backup.json is not a folder"]);
    // A restored database goes another way than its source.
    let (_, copy) = place.restore(std::slice::from_ref(&full), None).unwrap();
    assert!(copy.table("later").is_ok());
    copy.close().unwrap();
    refused(open(&place.at("copy"), "redo"), &["has the redo of database"]);
    open(&place.at("copy"), "new").unwrap().close().unwrap();
    // The older copy continues with an archive of its own: its redo does not follow the backup of the other copy.
    let fork = open(&older, "fork").unwrap();
    fork.close().unwrap();
    let options = |redo: &str| RestoreOptions { redo: Some(place.at(redo)), ..restore_options(&place.options) };
    for (redo, parts) in [("new", "has the redo of database"), ("full", "is not an archive"), ("nothing", "nothing")] {
        let chain = std::slice::from_ref(&full);
        refused(Database::restore(chain, place.at("x"), &options(redo), &mut |_| Continue(())), &[parts]);
    }
    assert!(!place.at("x").exists() && !place.at("nothing").exists());
}

/// Each flipped byte of the archive, each segment that is missing or cut is noticed and named.
#[test]
fn a_damaged_archive_is_named() {
    let (place, storage) = (Place::new(options()), StorageSet::memory());
    let bank = Bank::new(&storage, place.options.clone());
    let full = place.at("full");
    back_up(&bank.db, &full, None).unwrap();
    some_transfers(&bank);
    bank.db.close().unwrap();
    for _ in 0..2 {
        let bank = place.open(&storage);
        some_transfers(&bank);
        bank.db.close().unwrap();
    }
    let redo = place.at("redo");
    let verify = || Database::verify_backup(std::slice::from_ref(&full), Some(&redo), None, &mut |_| Continue(()));
    let sound = verify().unwrap();
    let (segments, mut random) = (place.segments(), fastrand::Rng::with_seed(5));
    assert_eq!(segments.len(), 3);
    for (number, segment) in segments.iter().enumerate() {
        let good = fs::read(segment).unwrap();
        let name = segment.file_name().unwrap().to_str().unwrap();
        for round in 0..50 {
            // The redo before the backup's end is not needed, and the rest of a head is zeros that mean nothing.
            let first = if number == 0 { good.len() - 20_000 } else { 0 };
            let at = if round < 10 && number > 0 { round * 7 % 64 } else { random.usize(first..good.len()) };
            let mut bad = good.clone();
            bad[at] ^= 1 << random.u8(..8);
            fs::write(segment, &bad).unwrap();
            let error = verify().expect_err(&format!("{name} byte {at}")).to_string();
            assert!(error.contains(name) || error.contains("lacks the redo"), "{name} byte {at}: {error}");
        }
        for cut in [1, good.len() / 3, good.len() - 10] {
            fs::write(segment, &good[..good.len() - cut]).unwrap();
            let error = verify().err().map(|error| error.to_string());
            let is_named = error.as_ref().is_some_and(|error| error.contains(name) || error.contains("lacks the redo"));
            assert!(is_named || number == 2 && error.is_none(), "{name} cut by {cut}: {error:?}");
        }
        if number == 1 {
            fs::remove_file(segment).unwrap();
            refused(verify(), &["lacks the redo from LSN", "was removed"]);
        }
        fs::write(segment, &good).unwrap();
    }
    assert_eq!(verify().unwrap(), sound);
    // A torn end of the last segment can be left out on purpose.
    let last = &segments[2];
    let good = fs::read(last).unwrap();
    fs::write(last, [&good[..], &[7; 100]].concat()).unwrap();
    refused(place.restore(std::slice::from_ref(&full), None), &["is damaged", "can be restored"]);
    place.restore(std::slice::from_ref(&full), Some(Until::Lsn(sound.end_lsn))).unwrap();
    // The next opening cuts it off.
    some_transfers(&place.open(&storage));
    place.restore(std::slice::from_ref(&full), None).unwrap();
}

#[test]
fn a_moment_that_cannot_be_reached_is_an_error() {
    let (place, storage) = (Place::new(options()), StorageSet::memory());
    let bank = Bank::new(&storage, place.options.clone());
    some_transfers(&bank);
    let early = bank.made()[3];
    let full = place.at("full");
    let manifest = back_up(&bank.db, &full, None).unwrap();
    some_transfers(&bank);
    let late = bank.made().last().copied().unwrap();
    bank.db.close().unwrap();
    let time = |us: u64| Until::Time(DateTime::from_unix_us(us as i64));
    let chain = std::slice::from_ref(&full);
    for until in [Until::Lsn(0), Until::Lsn(manifest.pages_lsn - 1), time(early.acknowledged_us)] {
        refused(place.restore(chain, Some(until)), &["full can be restored to moments from LSN"]);
    }
    let (last, not_yet) = ("its last commit is that of transaction", now_us() + 3_600_000_000);
    for until in [Until::Lsn(u64::MAX), time(not_yet), Until::Transaction(1 << 40)] {
        refused(place.restore(chain, Some(until)), &["full: the redo ends at LSN", last]);
    }
    refused(place.restore(chain, Some(time(not_yet))), &["that time has not come (times are in UTC"]);
    let older = Until::Transaction(early.transaction);
    refused(place.restore(chain, Some(older)), &["lacks the commit of transaction", "it came before them", last]);
    let options = RestoreOptions { until: Some(time(late.acknowledged_us)), ..restore_options(&place.options) };
    let without = Database::restore(chain, place.at("copy"), &options, &mut |_| Continue(()));
    refused(without, &["the redo ends at LSN", "later redo is in the archive"]);
    assert!(!place.at("copy").exists());
}

/// Nothing that is known of is missing, and the report says that the archive ends before that time.
#[test]
fn a_time_behind_the_last_commit_restores_all_there_is() {
    let (place, storage) = (Place::new(options()), StorageSet::memory());
    let bank = Bank::new(&storage, place.options.clone());
    let full = place.at("full");
    back_up(&bank.db, &full, None).unwrap();
    some_transfers(&bank);
    let (count, last) = (bank.acknowledged(), bank.made().iter().map(|made| made.acknowledged_us).max().unwrap());
    bank.db.close().unwrap();
    let later = Until::Time(DateTime::from_unix_us(now_us() as i64));
    let (report, copy) = place.restore(std::slice::from_ref(&full), Some(later)).unwrap();
    check_bank(&copy, &count.iter().map(|count| *count..=*count).collect::<Vec<_>>());
    assert!(report.ends_before_until && report.last_commit.is_some());
    let (report, _) = place.restore(&[full], Some(Until::Lsn(report.end_lsn))).unwrap();
    assert!(!report.ends_before_until, "{last}");
}

/// Its redo is all there, whatever lacks after the later backup.
#[test]
fn a_transaction_before_a_gap_behind_a_later_backup_is_restored() {
    let (place, storage) = (Place::new(options()), StorageSet::memory());
    let bank = Bank::new(&storage, place.options.clone());
    let chain = [place.at("full"), place.at("more")];
    back_up(&bank.db, &chain[0], None).unwrap();
    some_transfers(&bank);
    let wanted = bank.made()[10];
    let mut acknowledged = Acknowledged { transfers: bank.made() };
    back_up(&bank.db, &chain[1], Some(&chain[0])).unwrap();
    some_transfers(&bank);
    bank.db.close().unwrap();
    let without = Options { redo_archive: None, ..place.options.clone() };
    let bank = Bank::of(Database::open_storage(storage.clone(), without).unwrap());
    some_transfers(&bank);
    let lost = bank.made()[10];
    bank.db.close().unwrap();
    let bank = place.open(&storage);
    some_transfers(&bank);
    bank.db.close().unwrap();
    let (report, copy) = place.restore(&chain, Some(Until::Transaction(wanted.transaction))).unwrap();
    acknowledged.transfers.retain(|transfer| transfer.lsn <= wanted.lsn);
    check_bank(&copy, &acknowledged.up_to(wanted.lsn));
    assert_eq!((report.backups, report.end_lsn), (1, wanted.lsn));
    refused(place.restore(&chain, Some(Until::Transaction(lost.transaction))), &["lacks the redo from LSN"]);
}

/// What an opening finds is before its LSN, and nothing else: in the archive, and in a backup.
#[test]
fn the_lsn_of_an_opened_database_is_a_moment() {
    let (place, storage) = (Place::new(options()), StorageSet::memory());
    let bank = Bank::new(&storage, place.options.clone());
    let full = place.at("full");
    back_up(&bank.db, &full, None).unwrap();
    some_transfers(&bank);
    let expected: Vec<_> = bank.acknowledged().iter().map(|count| *count..=*count).collect();
    bank.db.close().unwrap();
    let bank = place.open(&storage);
    let lsn = bank.db.lsn();
    for is_written in [false, true] {
        if is_written {
            some_transfers(&bank);
        }
        let (_, copy) = place.restore(std::slice::from_ref(&full), Some(Until::Lsn(lsn))).unwrap();
        check_bank(&copy, &expected);
    }
}

#[test]
fn moments_are_read_as_they_are_shown() {
    for text in ["LSN 17", "2026-01-31T12:00:00.5Z", "the commit of transaction 9"] {
        let given = text.replace("LSN ", "").replace("the commit of transaction ", "txn:");
        assert_eq!(given.parse::<Until>().unwrap().to_string(), text);
    }
    for text in ["", "txn:", "txn:x", "-1", "1.5", "yesterday", "99999999999999999999", "2026-13-01", "txn:-4"] {
        let error = text.parse::<Until>().unwrap_err();
        assert!(error.contains("neither an LSN"), "{error}");
    }
}
