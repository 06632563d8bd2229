//! Encrypted databases: crashes, keys, and that no row is found in a file.

use crate::support::{all, options, people};
use highwater::config::{ChangeBuffering, Doublewrite, PageStoreKind};
use highwater::{
    BackupOptions, BackupProgress, Database, EncryptionKey, Error, Options, RestoreOptions, Table, Value, rotate_key,
    values,
};
use highwater_storage::{DataKeys, EncryptionError, OpenError, StorageSet};
use std::collections::BTreeMap;
use std::io::BufRead;
use std::ops::ControlFlow::{Break, Continue};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is in every row, and in no file.
const SECRET: &str = "Rosebud-was-a-sledge";

fn key(byte: u8) -> EncryptionKey {
    EncryptionKey::new([byte; 32])
}

fn with_key(byte: u8) -> Options {
    Options { encryption_key: Some(key(byte)), ..options() }
}

/// Options under which pages reach the files in different ways.
fn ways() -> [Options; 4] {
    let doublewrite = |doublewrite| Options { doublewrite, journal_size: 8 << 20, ..options() };
    let out_of_place = Options { page_store: PageStoreKind::OutOfPlace, segment_size: 256 << 10, ..options() };
    [
        doublewrite(Doublewrite::On),
        Options { change_buffering: ChangeBuffering::Disk, ..doublewrite(Doublewrite::Journal) },
        out_of_place,
        doublewrite(Doublewrite::Off),
    ]
}

fn insert(db: &Database, table: &Table, n: u64) {
    let first = format!("{n:04}{}", "x".repeat(40));
    db.transact(|txn| txn.insert(table, &values![n, SECRET, first.as_str(), n as i32])).unwrap();
}

fn holds_secret(mut bytes: &[u8]) -> bool {
    let (first, rest) = SECRET.as_bytes().split_first().unwrap();
    while bytes.skip_until(*first).unwrap() > 0 {
        if bytes.starts_with(rest) {
            return true;
        }
    }
    false
}

fn images(set: &StorageSet) -> [Vec<u8>; 3] {
    set.memory_devices().unwrap().each_ref().map(|device| device.image())
}

/// Power cuts at random moments while transactions commit: each acknowledged row is there, whole, the check finds
/// nothing, and nothing of a row is on any device, in what the cut left and after recovery.
#[test]
fn acknowledged_rows_survive_power_cuts_and_are_nowhere_in_plain_text() {
    for (way, options) in ways().into_iter().enumerate() {
        let keys = Arc::new(DataKeys::random().unwrap());
        let set = StorageSet::memory().encrypted(keys);
        let db = Database::open_storage(set.clone(), options.clone()).unwrap();
        let table = people(&db);
        let (acknowledged, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1..=100_000 {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    insert(&db, &table, n);
                    acknowledged.store(n, Ordering::Release);
                }
            });
            for seed in 0..5 {
                let wanted = acknowledged.load(Ordering::Acquire) + 37 * (seed + 1);
                while acknowledged.load(Ordering::Acquire) < wanted {
                    std::thread::yield_now();
                }
                let before = acknowledged.load(Ordering::Acquire);
                let left = set.cut(seed + 100 * way as u64);
                assert!(images(&left).iter().all(|image| !holds_secret(image)));
                // Without protection from torn pages only the rows in the log are certain.
                if options.doublewrite != Doublewrite::Off {
                    assert_rows(&left, &options, before);
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        db.close().unwrap();
        assert!(images(&set).iter().all(|image| !holds_secret(image)));
    }
}

fn assert_rows(left: &StorageSet, options: &Options, acknowledged: u64) {
    let db = Database::open_storage(left.clone(), options.clone()).unwrap();
    let table = db.table("people").unwrap();
    let rows: BTreeMap<u64, Vec<Value>> = (1..).zip(all(&db, &table, "PRIMARY")).collect();
    assert!(rows.len() as u64 >= acknowledged, "{} of {acknowledged}", rows.len());
    for (n, row) in &rows {
        assert_eq!(row[..2], [Value::from(*n), Value::from(SECRET.to_string())]);
    }
    assert!(db.check().unwrap().findings.is_empty());
    db.close().unwrap();
    assert!(images(left).iter().all(|image| !holds_secret(image)));
}

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn create(dir: &Path, options: Options) {
    let db = Database::open(dir, options).unwrap();
    let table = people(&db);
    (1..=200).for_each(|n| insert(&db, &table, n));
    db.close().unwrap();
}

fn refusal(opened: Result<Database, Error>) -> EncryptionError {
    match opened.err() {
        Some(Error::Open(OpenError::Encryption(error))) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_row_is_in_a_file_of_an_encrypted_database() {
    for options in ways() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), options.clone());
        assert!(files(folder.path()).values().any(|bytes| holds_secret(bytes)), "the test can fail");
        let folder = tempfile::tempdir().unwrap();
        let options = Options { encryption_key: Some(key(1)), ..options };
        create(folder.path(), options.clone());
        let found = files(folder.path());
        assert_eq!(found.len(), 4);
        assert!(found.values().all(|bytes| !holds_secret(bytes)));
        let db = Database::open(folder.path(), options).unwrap();
        assert!(db.is_encrypted() && db.options().encryption_key.is_none());
        assert_eq!(all(&db, &db.table("people").unwrap(), "PRIMARY").len(), 200);
        db.close().unwrap();
    }
}

type Open = fn(&Path, Options) -> Result<Database, Error>;

#[test]
fn a_key_that_does_not_fit_is_an_error_and_changes_nothing() {
    let (encrypted, plain) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    create(encrypted.path(), with_key(1));
    create(plain.path(), options());
    let before = (files(encrypted.path()), files(plain.path()));
    let (to_write, to_read): (Open, Open) =
        (|dir, options| Database::open(dir, options), |dir, options| Database::open_read_only(dir, options));
    for open in [to_write, to_read] {
        assert!(matches!(refusal(open(encrypted.path(), options())), EncryptionError::NeedsKey(_)));
        assert!(matches!(refusal(open(encrypted.path(), with_key(2))), EncryptionError::WrongKey(_)));
        assert!(matches!(refusal(open(plain.path(), with_key(1))), EncryptionError::NotEncrypted(_)));
    }
    // A table of keys of another database.
    let other = tempfile::tempdir().unwrap();
    create(other.path(), with_key(1));
    std::fs::copy(other.path().join("keys"), encrypted.path().join("keys")).unwrap();
    assert!(Database::open(encrypted.path(), with_key(1)).is_err());
    std::fs::write(encrypted.path().join("keys"), &before.0[&encrypted.path().join("keys")]).unwrap();
    assert!(before == (files(encrypted.path()), files(plain.path())));
    Database::open_read_only(encrypted.path(), with_key(1)).unwrap().close().unwrap();
    // A key for devices would have no effect.
    let error = Database::in_memory_with(with_key(1)).err().unwrap();
    assert!(matches!(&error, Error::BadOption { option, .. } if option == "key-file"), "{error}");
    let both = Options { key_file: Some("/nowhere".into()), ..with_key(1) };
    assert!(matches!(Database::open(plain.path(), both), Err(Error::BadOption { .. })));
    let file = Options { key_file: Some("/nowhere".into()), ..options() };
    assert!(matches!(refusal(Database::open(plain.path(), file)), EncryptionError::KeyFile { .. }));
}

#[test]
fn a_key_is_changed_with_transactions_and_without_them() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), with_key(1));
    let db = Database::open(folder.path(), with_key(1)).unwrap();
    let table = db.table("people").unwrap();
    let mut txn = db.begin().unwrap();
    txn.insert(&table, &values![201, SECRET, "y", 1]).unwrap();
    assert!(db.rotate_key(&key(2), &key(3)).is_err());
    db.rotate_key(&key(1), &key(2)).unwrap();
    txn.commit().unwrap();
    assert!(matches!(rotate_key(folder.path(), &key(2), &key(3)), Err(Error::Open(OpenError::InUse { .. }))));
    db.close().unwrap();
    assert!(matches!(refusal(Database::open(folder.path(), with_key(1))), EncryptionError::WrongKey(_)));
    rotate_key(folder.path(), &key(2), &key(3)).unwrap();
    let db = Database::open(folder.path(), with_key(3)).unwrap();
    assert_eq!(all(&db, &db.table("people").unwrap(), "PRIMARY").len(), 201);
    db.close().unwrap();
    assert!(matches!(rotate_key("/nowhere", &key(1), &key(2)), Err(Error::Open(OpenError::NotFound(_)))));
}

/// A database, its archive, a full backup and an incremental one; the key was changed between the two.
struct Copies {
    folder: tempfile::TempDir,
    /// Rows in the full backup, in both, and with the archive.
    rows: [u64; 3],
}

impl Copies {
    fn new(page_store: PageStoreKind) -> Copies {
        let copies = Copies { folder: tempfile::tempdir().unwrap(), rows: [200, 260, 300] };
        let options = Options { page_store, redo_archive: Some(copies.path("archive")), ..with_key(1) };
        let db = Database::open(copies.path("db"), options).unwrap();
        let table = people(&db);
        let insert = |from, to| (from..=to).for_each(|n| insert(&db, &table, n));
        insert(1, 200);
        let full = BackupOptions { max_bytes_per_s: 0, ..BackupOptions::default() };
        db.backup(copies.path("full"), &full, &mut |_| Continue(())).unwrap();
        insert(201, 260);
        db.rotate_key(&key(1), &key(2)).unwrap();
        let added = BackupOptions { base: Some(copies.path("full")), ..full };
        let manifest = db.backup(copies.path("added"), &added, &mut |_| Continue(())).unwrap();
        assert!(manifest.is_encrypted());
        insert(261, 300);
        db.close().unwrap();
        copies
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn chain(&self) -> [PathBuf; 2] {
        [self.path("full"), self.path("added")]
    }

    fn restore(&self, chain: &[PathBuf], archive: bool, database: Options, to: &str) -> Result<u64, Error> {
        let redo = archive.then(|| self.path("archive"));
        Database::verify_backup(chain, redo.as_deref(), database.encryption_key.as_ref(), &mut |_| Continue(()))?;
        let options = RestoreOptions { database: database.clone(), redo, check: true, ..RestoreOptions::default() };
        Database::restore(chain, self.path(to), &options, &mut |_| Continue(()))?;
        let db = Database::open(self.path(to), database)?;
        let rows = all(&db, &db.table("people")?, "PRIMARY").len() as u64;
        db.close().map(|()| rows)
    }
}

fn files_below(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![dir.to_path_buf()]);
    while let Some(dir) = folders.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(found.insert(path.clone(), std::fs::read(path).unwrap())),
            }
        }
    }
    found
}

fn assert_hidden(dir: &Path) {
    for (path, bytes) in files_below(dir) {
        assert!(!holds_secret(&bytes), "{}", path.display());
    }
}

#[test]
fn nothing_leaves_an_encrypted_database_in_plain_text() {
    for store in [PageStoreKind::InPlace, PageStoreKind::OutOfPlace] {
        let copies = Copies::new(store);
        // One that is cut short.
        let restore = RestoreOptions { database: with_key(2), ..RestoreOptions::default() };
        let mut stop = |at: BackupProgress| match at.step == "restoring" && at.pages > 20 {
            true => Break(()),
            false => Continue(()),
        };
        assert!(Database::restore(&copies.chain(), copies.path("short"), &restore, &mut stop).is_err());
        assert!(files_below(&copies.path("short/restoring")).len() > 3);
        assert_hidden(copies.folder.path());
        let [full, both, all] = copies.rows;
        assert_eq!(copies.restore(&copies.chain(), false, with_key(2), "short").unwrap(), both);
        assert_eq!(copies.restore(&copies.chain(), true, with_key(2), "end").unwrap(), all);
        // What one of the folders opens with is the key of all.
        assert_eq!(copies.restore(&copies.chain(), true, with_key(1), "old").unwrap(), all);
        assert_eq!(copies.restore(&copies.chain()[..1], false, with_key(1), "first").unwrap(), full);
        assert_eq!(files(&copies.path("end")).len(), 4);
        assert_hidden(copies.folder.path());
        // The key of a backup and of an archive is changed as that of a database.
        let error = copies.restore(&copies.chain()[..1], false, with_key(2), "no").unwrap_err();
        assert!(matches!(refusal(Err(error)), EncryptionError::WrongKey(_)));
        rotate_key(copies.path("full"), &key(1), &key(2)).unwrap();
        assert_eq!(copies.restore(&copies.chain()[..1], false, with_key(2), "changed").unwrap(), full);
        // The database continued the archive: its key is the archive's.
        assert!(rotate_key(copies.path("archive"), &key(1), &key(3)).is_err());
        rotate_key(copies.path("archive"), &key(2), &key(3)).unwrap();
    }
}

#[test]
fn copies_without_their_key_are_refused_and_nothing_is_written() {
    let copies = Copies::new(PageStoreKind::InPlace);
    let error = |database, archive| copies.restore(&copies.chain(), archive, database, "to").unwrap_err();
    for archive in [false, true] {
        assert!(matches!(refusal(Err(error(options(), archive))), EncryptionError::NeedsKey(_)));
        assert!(matches!(refusal(Err(error(with_key(5), archive))), EncryptionError::WrongKey(_)));
    }
    // One table is missing: that of another folder opens it; then all are.
    std::fs::remove_file(copies.path("added/keys")).unwrap();
    assert_eq!(copies.restore(&copies.chain(), false, with_key(1), "with the other").unwrap(), copies.rows[1]);
    std::fs::remove_file(copies.path("full/keys")).unwrap();
    let missing = refusal(Err(error(with_key(1), false)));
    assert!(matches!(&missing, EncryptionError::Table { path, .. } if *path == copies.path("full/keys")), "{missing}");
    assert_eq!(copies.restore(&copies.chain(), true, with_key(2), "with the archive's").unwrap(), copies.rows[2]);
    assert!(!copies.path("to").exists());
    // An archive is not followed with another key, or without one.
    let archived = |database| Options { redo_archive: Some(copies.path("archive")), ..database };
    Database::open(copies.path("db"), archived(with_key(2))).unwrap().close().unwrap();
    let (plain, archive) = (copies.path("plain"), files(&copies.path("archive")));
    assert!(matches!(Database::open(&plain, archived(options())).err(), Some(Error::Incompatible(_))));
    assert!(files(&copies.path("archive")) == archive);
}

#[test]
fn a_changed_byte_of_an_encrypted_copy_is_found() {
    let copies = Copies::new(PageStoreKind::InPlace);
    let last = files(&copies.path("archive")).into_keys().rfind(|path| !path.ends_with("keys")).unwrap();
    for path in [copies.path("full/pages"), copies.path("added/redo-groups"), last] {
        let sound = std::fs::read(&path).unwrap();
        for at in (0..sound.len()).step_by(sound.len() / 12 + 1) {
            let mut changed = sound.clone();
            changed[at] ^= 0x10;
            std::fs::write(&path, &changed).unwrap();
            let error = copies.restore(&copies.chain(), true, with_key(2), "to").unwrap_err();
            let is_named = error.to_string().contains(path.to_str().unwrap());
            assert!(matches!(error, Error::Corrupt(_)) && is_named, "byte {at}: {error}");
        }
        std::fs::write(&path, &sound).unwrap();
    }
    assert!(!copies.path("to").exists());
    assert_eq!(copies.restore(&copies.chain(), true, with_key(2), "to").unwrap(), copies.rows[2]);
}

#[test]
fn a_plain_backup_is_restored_into_an_encrypted_database() {
    let folder = tempfile::tempdir().unwrap();
    let [dir, backup, copy] = ["db", "backup", "copy"].map(|name| folder.path().join(name));
    create(&dir, options());
    let db = Database::open(&dir, options()).unwrap();
    db.backup(&backup, &BackupOptions::default(), &mut |_| Continue(())).unwrap();
    db.close().unwrap();
    let restore = RestoreOptions { database: with_key(5), ..RestoreOptions::default() };
    Database::restore(&[backup], &copy, &restore, &mut |_| Continue(())).unwrap();
    let found = files(&copy);
    assert_eq!(found.len(), 4);
    assert!(found.values().all(|bytes| !holds_secret(bytes)));
    assert!(matches!(refusal(Database::open(&copy, options())), EncryptionError::NeedsKey(_)));
    let db = Database::open(&copy, with_key(5)).unwrap();
    assert_eq!(all(&db, &db.table("people").unwrap(), "PRIMARY").len(), 200);
    db.close().unwrap();
}
