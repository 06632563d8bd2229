//! Backups of a database that does not change meanwhile: chains, what is refused, what is damaged.

use crate::support::{all, await_purge, check_indexes, memory, open, options, sound};
use crate::testing::{TestDb, by_id};
use highwater::config::{ChangeBuffering, PageStoreKind};
use highwater::{
    BackupManifest, BackupOptions, Database, Error, Options, RestoreOptions, Table, Type, Until, Value, values,
};
use highwater_storage::{Placement, StorageSet};
use std::ops::ControlFlow::{Break, Continue};
use std::path::{Path, PathBuf};

const ROWS: u64 = 3000;

pub(crate) fn restore_options(options: &Options) -> RestoreOptions {
    // Recovery is fast when much of its redo fits the pool.
    let database = Options { buffer_pool_size: 16 << 20, ..options.clone() };
    RestoreOptions { database, check: true, ..RestoreOptions::default() }
}

pub(crate) fn back_up(db: &Database, dest: &Path, base: Option<&Path>) -> highwater::Result<BackupManifest> {
    let options = BackupOptions { base: base.map(Path::to_path_buf), max_bytes_per_s: 0, ..BackupOptions::default() };
    db.backup(dest, &options, &mut |_| Continue(()))
}

pub(crate) fn restored(chain: &[PathBuf], dir: &Path, options: &Options) -> highwater::Result<Database> {
    Database::restore(chain, dir, &restore_options(options), &mut |_| Continue(()))?;
    Database::open(dir, options.clone())
}

fn accounts(db: &Database, name: &str) -> Table {
    let schema = by_id().column("owner", Type::U64).column("note", Type::Text(3000)).index("by_owner", &["owner"]);
    db.create_table(name, schema).unwrap()
}

fn put(db: &Database, table: &Table, random: &mut fastrand::Rng, transactions: u32) {
    for _ in 0..transactions {
        let mut txn = db.begin().unwrap();
        for _ in 0..20 {
            let (id, owner) = (random.u64(..ROWS), random.u64(..ROWS));
            let note = "tide ".repeat(random.usize(..30) * if random.u8(..40) == 0 { 15 } else { 1 });
            if random.u8(..10) == 0 {
                txn.delete(table, &values![id]).unwrap();
            } else {
                match txn.insert(table, &values![id, owner, note.as_str()]) {
                    Err(Error::DuplicateKey { .. }) => {
                        txn.update(table, &values![id], &[(1, owner.into()), (2, note.as_str().into())]).unwrap();
                    }
                    inserted => drop(inserted.unwrap()),
                }
            }
        }
        if random.u8(..8) == 0 { txn.rollback().unwrap() } else { txn.commit().unwrap() }
    }
}

/// Every row of every table.
fn contents(db: &Database) -> Vec<(String, Vec<Vec<Value>>)> {
    db.tables().iter().map(|table| (table.name().to_string(), all(db, table, "PRIMARY"))).collect()
}

fn variants() -> Vec<Options> {
    let small = Options { buffer_pool_size: 1 << 20, segment_size: 256 << 10, ..options() };
    let mut variants = Vec::new();
    for page_store in [PageStoreKind::InPlace, PageStoreKind::OutOfPlace] {
        for change_buffering in [ChangeBuffering::Memory, ChangeBuffering::Disk] {
            variants.push(Options { page_store, change_buffering, ..small.clone() });
        }
    }
    variants
}

#[test]
fn a_chain_restores_to_what_the_source_had_at_each_link() {
    for (number, options) in variants().into_iter().enumerate() {
        let (folder, mut random) = (tempfile::tempdir().unwrap(), fastrand::Rng::with_seed(number as u64));
        let mut storage = StorageSet::memory();
        let mut db = Database::open_storage(storage.clone(), options.clone()).unwrap();
        put(&db, &accounts(&db, "first"), &mut random, 60);
        let mut chain: Vec<PathBuf> = Vec::new();
        for link in 0..5 {
            let dest = folder.path().join(format!("link-{link}"));
            let manifest = back_up(&db, &dest, chain.last().map(PathBuf::as_path)).unwrap();
            assert_eq!(manifest.is_full(), link == 0);
            chain.push(dest);
            let expected = contents(&db);
            let copy = folder.path().join(format!("copy-{link}"));
            let copied = restored(&chain, &copy, &options).unwrap();
            assert!(contents(&copied) == expected, "{options:?}, link {link}: other rows");
            assert_eq!(copied.options().page_store, options.page_store);
            assert_eq!(copied.options().log_file_size, db.options().log_file_size);
            copied.tables().iter().for_each(|table| check_indexes(&copied, table));
            // It is a database like any other.
            put(&copied, &copied.tables()[0], &mut random, 5);
            sound(&copied);
            copied.close().unwrap();
            match link {
                0 => put(&db, &db.table("first").unwrap(), &mut random, 40),
                1 => put(&db, &accounts(&db, "second"), &mut random, 60),
                2 => db.drop_table("first").unwrap(),
                _ => {
                    // A crash and its recovery, or a clean closing, between two backups.
                    put(&db, &db.table("second").unwrap(), &mut random, 30);
                    if number % 2 == 0 {
                        storage = storage.cut(7);
                        drop(db);
                    } else {
                        db.close().unwrap();
                    }
                    db = Database::open_storage(storage.clone(), options.clone()).unwrap();
                    put(&db, &db.table("second").unwrap(), &mut random, 10);
                }
            }
        }
    }
}

/// Between a backup and the next one the database was opened with a smaller redo log.
#[test]
fn a_chain_goes_on_where_the_log_has_shrunk() {
    let (folder, mut random) = (tempfile::tempdir().unwrap(), fastrand::Rng::with_seed(9));
    let storage = StorageSet::memory();
    let large = Options { log_file_size: 32 << 20, ..options() };
    let db = TestDb::on(&storage, large);
    accounts(&db, "only");
    while storage.redo.len_bytes().unwrap() == options().log_file_size {
        put(&db, &db.table("only").unwrap(), &mut random, 50);
    }
    let chain = [folder.path().join("full"), folder.path().join("changes")];
    back_up(&db, &chain[0], None).unwrap();
    put(&db, &db.table("only").unwrap(), &mut random, 20);
    drop(db);
    let db = open(&storage);
    assert_eq!(storage.redo.len_bytes().unwrap(), options().log_file_size);
    put(&db, &db.table("only").unwrap(), &mut random, 20);
    assert!(!back_up(&db, &chain[1], Some(&chain[0])).unwrap().is_full());
    let copied = restored(&chain, &folder.path().join("copy"), &options()).unwrap();
    assert!(contents(&copied) == contents(&db));
    sound(&copied);
}

#[test]
fn an_incremental_backup_is_small() {
    let folder = tempfile::tempdir().unwrap();
    let db = memory();
    let table = accounts(&db, "only");
    put(&db, &table, &mut fastrand::Rng::with_seed(1), 200);
    let (one, two) = (folder.path().join("1"), folder.path().join("2"));
    // Purge changes pages too.
    await_purge(&db);
    let full = back_up(&db, &one, None).unwrap();
    let mut txn = db.begin().unwrap();
    txn.insert(&table, &values![ROWS, 1u64, "new"]).unwrap();
    txn.commit().unwrap();
    let more = back_up(&db, &two, Some(&one)).unwrap();
    assert!(more.pages_copied * 3 < full.pages_copied, "{} of {} pages", more.pages_copied, full.pages_copied);
    let copy = restored(&[one, two], &folder.path().join("copy"), &options()).unwrap();
    assert!(copy.snapshot().unwrap().get(&copy.table("only").unwrap(), &values![ROWS]).unwrap().is_some());
}

#[test]
fn the_end_of_a_crash_between_the_redo_of_a_backup_is_any_lsn_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let db = memory();
    let table = accounts(&db, "only");
    put(&db, &table, &mut fastrand::Rng::with_seed(1), 20);
    let dest = folder.path().join("full");
    let manifest = back_up(&db, &dest, None).unwrap();
    let restore = |to_lsn: u64, name: &str| {
        let restore = RestoreOptions { until: Some(Until::Lsn(to_lsn)), ..restore_options(&options()) };
        Database::restore(std::slice::from_ref(&dest), folder.path().join(name), &restore, &mut |_| Continue(()))
    };
    assert_eq!(restore(manifest.end_lsn, "end").unwrap().end_lsn, manifest.end_lsn);
    let refusals = [
        (manifest.pages_lsn - 1, "early", "can be restored to moments from LSN"),
        (manifest.end_lsn + 1, "late", "the redo ends at LSN"),
    ];
    for (lsn, name, part) in refusals {
        let error = restore(lsn, name).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(!folder.path().join(name).exists());
    }
}

fn refusal<T>(result: highwater::Result<T>, parts: &[&str]) {
    let error = result.err().expect("it is refused").to_string();
    assert!(parts.iter().all(|part| error.contains(part)), "{error:?} lacks one of {parts:?}");
}

#[test]
fn a_wrong_link_is_refused_by_name() {
    let (folder, mut random) = (tempfile::tempdir().unwrap(), fastrand::Rng::with_seed(3));
    let path = |name: &str| folder.path().join(name);
    let db = Database::open(path("db"), options()).unwrap();
    let table = accounts(&db, "only");
    for (name, base) in [("a", None), ("b", Some("a")), ("c", Some("b")), ("full", None)] {
        put(&db, &table, &mut random, 5);
        back_up(&db, &path(name), base.map(path).as_deref()).unwrap();
    }
    let restore = |names: &[&str]| {
        let chain: Vec<PathBuf> = names.iter().map(|name| path(name)).collect();
        restored(&chain, &path("copy"), &options())
    };
    refusal(restore(&[]), &["name a full backup"]);
    refusal(restore(&["b"]), &["b is an incremental backup", "is missing before it"]);
    refusal(restore(&["a", "c"]), &["c adds to backup", "a before it is backup"]);
    refusal(restore(&["full", "b"]), &["b adds to backup", "full before it"]);
    refusal(restore(&["a", "b", "full"]), &["full is a full backup; it cannot follow"]);
    refusal(restore(&["a", "nothing"]), &["nothing is not a complete backup", "there is no such folder"]);
    refusal(restore(&["a", "db/data"]), &["data is not a complete backup", "it is not a folder"]);
    refusal(restore(&["a", "db"]), &["db is not a complete backup", "backup.json"]);
    assert!(!path("copy").exists(), "nothing was written");
    std::fs::create_dir(path("copy")).unwrap();
    std::fs::write(path("copy/mine"), "text").unwrap();
    refusal(restore(&["a"]), &["copy is not empty"]);
    refusal(back_up(&db, &path("copy"), None), &["copy is not empty"]);
    refusal(back_up(&db, &path("db/backup"), None), &["is in the database's folder"]);
    assert!(!path("db/backup").exists());
    refusal(back_up(&db, &path("x"), Some(&path("db"))), &["not a complete backup"]);
    refusal(back_up(&db, &path("copy/mine"), None), &["mine is not a folder"]);
    // A restored database goes another way than its source.
    let copy = restored(&[path("a"), path("b")], &path("restored"), &options()).unwrap();
    refusal(back_up(&copy, &path("y"), Some(&path("b"))), &["is a backup of database", "take a full backup"]);
    back_up(&copy, &path("z"), None).unwrap();
    // An older copy of the source.
    copy.close().unwrap();
    let older = StorageSet::memory();
    let young = open(&older);
    refusal(back_up(&young, &path("w"), Some(&path("a"))), &["is a backup of database"]);
    assert!(!path("w").exists() && !path("x").exists() && !path("y").exists());
}

/// A copy of the files from before a backup, used until its LSN has passed the backup's: what changed since has other
/// bytes there.
#[test]
fn a_copy_that_was_put_back_does_not_add_to_a_later_backup() {
    let (folder, mut random) = (tempfile::tempdir().unwrap(), fastrand::Rng::with_seed(5));
    let storage = StorageSet::memory();
    let db = open(&storage);
    put(&db, &accounts(&db, "only"), &mut random, 5);
    db.close().unwrap();
    let copy = storage.cut(0);
    for _ in 0..3 {
        open(&storage).close().unwrap();
    }
    let db = open(&storage);
    let full = folder.path().join("full");
    back_up(&db, &full, None).unwrap();
    let older = open(&copy);
    while older.lsn() <= db.lsn() {
        put(&older, &older.table("only").unwrap(), &mut random, 5);
    }
    refusal(back_up(&older, &folder.path().join("more"), Some(&full)), &["generation", "an older copy of it"]);
}

/// Each flipped byte is noticed before anything is written, or makes no difference.
#[test]
fn a_damaged_backup_is_noticed() {
    let (folder, mut random) = (tempfile::tempdir().unwrap(), fastrand::Rng::with_seed(4));
    let db = memory();
    put(&db, &accounts(&db, "only"), &mut random, 5);
    let dest = folder.path().join("full");
    back_up(&db, &dest, None).unwrap();
    let verify = || Database::verify_backup(std::slice::from_ref(&dest), None, None, &mut |_| Continue(())).map(drop);
    verify().unwrap();
    for name in ["backup.json", "pages", "redo-groups"] {
        let path = dest.join(name);
        let good = std::fs::read(&path).unwrap();
        for round in 0..60 {
            let mut bad = good.clone();
            let at = if round < 20 { round * good.len() / 20 } else { random.usize(..good.len()) };
            bad[at] ^= 1 << random.u8(..8);
            std::fs::write(&path, &bad).unwrap();
            // White space in the manifest means nothing.
            let is_space = name == "backup.json" && [good[at], bad[at]].iter().any(|byte| byte.is_ascii_whitespace());
            match verify() {
                Ok(()) => assert!(is_space, "{name} byte {at}"),
                Err(error) => assert!(error.to_string().contains("full"), "{name} byte {at}: {error}"),
            }
        }
        std::fs::write(&path, &good[..good.len() - 1]).unwrap();
        assert!(name == "backup.json" || verify().is_err(), "{name} cut");
        std::fs::remove_file(&path).unwrap();
        assert!(verify().is_err(), "{name} missing");
        std::fs::write(&path, &good).unwrap();
    }
    verify().unwrap();
}

#[test]
fn a_damaged_page_of_the_source_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let storage = StorageSet::memory();
    let db = open(&storage);
    put(&db, &accounts(&db, "only"), &mut fastrand::Rng::with_seed(5), 200);
    let db = db.reopen();
    let dest = folder.path().join("full");
    // From the end on, until one is in use and not in the pool.
    let damaged = (2..storage.data.len_bytes().unwrap() / 4096).rev().find(|page| {
        let (mut good, at) = (vec![0; 4096], page * 4096);
        storage.data.read_at(at, &mut good).unwrap();
        if good.iter().all(|byte| *byte == 0) {
            return false;
        }
        storage.data.write_at(at + 512, &[0xA5; 512], Placement::Other).unwrap();
        match back_up(&db, &dest, None) {
            Err(Error::CorruptPage { page: named, .. }) => u64::from(named.0) == *page,
            other => {
                other.unwrap();
                storage.data.write_at(at, &good, Placement::Other).unwrap();
                std::fs::remove_dir_all(&dest).unwrap();
                false
            }
        }
    });
    let page = damaged.expect("a damaged page is named");
    assert!(!dest.exists());
    let skipping = BackupOptions { skip_damaged: true, ..BackupOptions::default() };
    let manifest = db.backup(&dest, &skipping, &mut |_| Continue(())).unwrap();
    assert_eq!(manifest.damaged_pages, [page as u32]);
    refusal(back_up(&db, &folder.path().join("more"), Some(&dest)), &["damaged", "full backup"]);
    let adding = BackupOptions { base: Some(dest.clone()), ..skipping };
    refusal(db.backup(folder.path().join("more"), &adding, &mut |_| Continue(())), &["damaged", "full backup"]);
}

#[test]
fn work_that_is_ended_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let db = memory();
    let table = accounts(&db, "only");
    put(&db, &table, &mut fastrand::Rng::with_seed(6), 20);
    let dest = folder.path().join("full");
    refusal(db.backup(&dest, &BackupOptions::default(), &mut |_| Break(())), &["interrupted"]);
    // Also while it waits for its rate limit: an hour for an extent.
    let slow = BackupOptions { max_bytes_per_s: 64, ..BackupOptions::default() };
    let (started, mut calls) = (std::time::Instant::now(), 0);
    let tell = &mut |_| {
        calls += 1;
        if calls == 3 { Break(()) } else { Continue(()) }
    };
    refusal(db.backup(&dest, &slow, tell), &["interrupted"]);
    assert!(started.elapsed() < std::time::Duration::from_secs(60));
    assert!(!dest.exists());
    // The log is free again, and so is the way for the next one.
    put(&db, &table, &mut fastrand::Rng::with_seed(6), 300);
    back_up(&db, &dest, None).unwrap();
    db.close().unwrap();
}

/// A folder with a backup of a small database, and the chain of that backup.
fn backed_up() -> (tempfile::TempDir, [PathBuf; 1]) {
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    let db = Database::open(folder.path().join("db"), options()).unwrap();
    accounts(&db, "rows");
    back_up(&db, &backup, None).unwrap();
    (folder, [backup])
}

/// A restore removes only files that a restore made, and never those of a restore that another process runs.
#[test]
fn a_restore_leaves_what_is_not_its_own() {
    let (folder, chain) = backed_up();
    let target = folder.path().join("target");
    let restore = |tell: &mut highwater::OnBackupProgress<'_>| {
        Database::restore(&chain, &target, &restore_options(&options()), tell)
    };
    // A database of the user's with the name of the folder that restores work in.
    let own = target.join("restoring");
    Database::open(&own, options()).unwrap().close().unwrap();
    refusal(restore(&mut |_| Continue(())), &["is not empty"]);
    Database::open(&own, options()).unwrap().close().unwrap();
    std::fs::remove_dir_all(&own).unwrap();
    // Two concurrent restores.
    let mut refusals = 0;
    restore(&mut |progress| {
        if progress.step != "restoring" {
            return Continue(());
        }
        refusal(restore(&mut |_| Continue(())), &["in use"]);
        refusal(Database::open(&target, options()), &["in use"]);
        refusals += 1;
        Continue(())
    })
    .unwrap();
    assert!(refusals > 0);
    Database::open(&target, options()).unwrap().close().unwrap();
    let names: Vec<_> = std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

/// A restore that ended at any of its steps, whatever it had made, is begun again.
#[test]
fn what_an_ended_restore_left_is_taken_away() {
    let (folder, chain) = backed_up();
    let target = folder.path().join("target");
    for end in 0.. {
        let mut calls = 0;
        let ended = Database::restore(&chain, &target, &restore_options(&options()), &mut |_| {
            calls += 1;
            if calls > end { Break(()) } else { Continue(()) }
        });
        if ended.is_ok() {
            break;
        }
        if target.join("restoring").exists() {
            refusal(Database::open(&target, options()), &["was cut short"]);
        }
    }
    Database::open(&target, options()).unwrap().close().unwrap();
}

#[test]
fn a_database_that_is_only_read_is_backed_up_unless_it_has_to_be_recovered() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let db = Database::open(path("db"), options()).unwrap();
    put(&db, &accounts(&db, "only"), &mut fastrand::Rng::with_seed(8), 30);
    let expected = contents(&db);
    db.close().unwrap();
    let reader = Database::open_read_only(path("db"), options()).unwrap();
    back_up(&reader, &path("full"), None).unwrap();
    reader.close().unwrap();
    let db = Database::open(path("db"), options()).unwrap();
    put(&db, &db.table("only").unwrap(), &mut fastrand::Rng::with_seed(9), 30);
    back_up(&db, &path("more"), Some(&path("full"))).unwrap();
    let later = contents(&db);
    for (chain, rows) in [(vec![path("full")], expected), (vec![path("full"), path("more")], later)] {
        let copy = path(&format!("copy-{}", chain.len()));
        assert!(contents(&restored(&chain, &copy, &options()).unwrap()) == rows);
    }
    let crashed = StorageSet::memory();
    let db = Database::open_storage(crashed.clone(), options()).unwrap();
    accounts(&db, "only");
    let after = crashed.cut(3).overlaid().unwrap();
    let reader = Database::open_storage_idle(after, options()).unwrap();
    refusal(back_up(&reader, &path("never"), None), &["was not closed", "open it for writing"]);
    assert!(!path("never").exists());
}
