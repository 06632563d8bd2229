//! Full disks: what users add is refused, what releases room works, and the database opens again.
//!
//! The disk is memory with a limit, or (with `HIGHWATER_TEST_MOUNTS`, as root) a small file system: ext4 or XFS on a
//! loop device, and tmpfs. Rules
//! 1. A refused change is [`Error::DiskFull`] and nothing else; what was committed before is there afterwards.
//! 2. Rollback, delete, drop and opening work while the disk is full.

use highwater::config::PageSize;
use highwater::{Database, Error, Options, Schema, Table, Type, WriteTxn, values};
use highwater_storage::{Device, FileRole, FlushMethod, MemoryDevice, StorageSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

fn options() -> Options {
    Options {
        page_size: PageSize::Bytes(4096),
        buffer_pool_size: 4 << 20,
        log_file_size: 4 << 20,
        log_buffer_size: 1 << 20,
        lock_wait_timeout_ms: 500,
        ..Options::default()
    }
}

fn schema() -> Schema {
    Schema::new().column("id", Type::U64).column("v", Type::Text(900)).primary_key(&["id"])
}

/// A database in memory, `data` with a limit.
struct Disk {
    data: MemoryDevice,
    set: StorageSet,
}

impl Disk {
    fn of(limit_bytes: u64) -> Disk {
        Disk::with(StorageSet::of_memory([
            MemoryDevice::limited(limit_bytes),
            MemoryDevice::new(),
            MemoryDevice::new(),
        ]))
    }

    fn with(set: StorageSet) -> Disk {
        Disk { data: set.memory_devices().unwrap()[0].clone(), set }
    }

    fn open(&self) -> highwater::Result<Database> {
        Database::open_storage(self.set.clone(), options())
    }
}

fn put(txn: &mut WriteTxn, table: &Table, id: u64, text: &str) {
    txn.insert(table, &values![id, text]).unwrap();
}

/// Inserts rows of 800 bytes, fifty a transaction, from `from` on until the disk is full or `max` are there; returns
/// the first id that is not. What a transaction inserted before the disk was full is committed.
fn fill(database: &Database, table: &Table, from: u64, max: u64) -> u64 {
    let long = "x".repeat(800);
    let (mut id, mut full) = (from, false);
    while id < from + max && !full {
        let mut txn = database.begin().unwrap();
        for _ in 0..50.min(from + max - id) {
            match txn.insert(table, &values![id, long.as_str()]) {
                Ok(_) => id += 1,
                Err(Error::DiskFull { file, source }) => {
                    assert!(source.is_full() && !file.is_empty());
                    full = true;
                    break;
                }
                Err(error) => panic!("row {id}: {error}"),
            }
        }
        txn.commit().unwrap();
    }
    id
}

/// As [`fill`], but all of them: after it refused room, a disk counts as full for a moment.
fn fill_all(database: &Database, table: &Table, from: u64, rows: u64) {
    let (mut next, end) = (from, from + rows);
    wait_for("room for rows", || {
        next = fill(database, table, next, end - next);
        next == end
    });
}

fn check(database: &Database, case: &str) {
    let report = database.check().unwrap();
    assert!(report.is_sound(), "{case}: {:?}", report.findings.first());
}

fn delete(database: &Database, table: &Table, ids: std::ops::Range<u64>) {
    for start in ids.clone().step_by(50) {
        let mut txn = database.begin().unwrap();
        for id in start..(start + 50).min(ids.end) {
            assert!(txn.delete(table, &values![id]).unwrap());
        }
        txn.commit().unwrap();
    }
}

fn count(database: &Database, table: &Table) -> u64 {
    let mut read = database.snapshot().unwrap();
    let scan = read.scan(table);
    scan.iter().unwrap().inspect(|row| assert!(row.is_ok())).count() as u64
}

/// Waits for the work of a background thread. The bound is far above what a loaded machine needs.
fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(300), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Rows are made short, other files take the space, the disk is filled, and then the short rows get their old length
/// back.
fn shorten_fill_and_roll_back(database: &Database) {
    let (table, filler) =
        (database.create_table("t", schema()).unwrap(), database.create_table("filler", schema()).unwrap());
    let long = "x".repeat(800);
    let mut load = database.begin().unwrap();
    (0..400_u64).for_each(|id| put(&mut load, &table, id * 1000, &long));
    load.commit().unwrap();
    let mut open = database.begin().unwrap();
    (0..400_u64).for_each(|id| assert!(open.update(&table, &values![id * 1000], &[(1, "s".into())]).unwrap()));
    let mut others = database.begin().unwrap();
    for id in 0..400_u64 {
        (1..8).for_each(|n| put(&mut others, &table, id * 1000 + n, &long[..100]));
    }
    others.commit().unwrap();
    fill(database, &filler, 0, u64::MAX / 2);
    open.rollback().unwrap();
    let mut read = database.begin().unwrap();
    for id in 0..400_u64 {
        // The pages of the undo log that was rolled back come back from a background thread.
        wait_for("room for undo", || match read.update(&table, &values![id * 1000], &[(1, "z".into())]) {
            Ok(found) => found,
            Err(Error::DiskFull { .. }) => false,
            Err(error) => panic!("row {id}: {error}"),
        });
    }
    read.rollback().unwrap();
}

#[test]
fn a_rollback_on_a_full_disk_works_and_the_database_opens() {
    let disk = Disk::of(12 << 20);
    let database = disk.open().unwrap();
    shorten_fill_and_roll_back(&database);
    assert_eq!(count(&database, &database.table("t").unwrap()), 400 * 8);
    check(&database, "memory");
    database.close().unwrap();
    let database = disk.open().unwrap();
    check(&database, "memory");
    database.close().unwrap();
}

#[test]
fn a_transaction_open_at_a_crash_on_a_full_disk_is_rolled_back() {
    let disk = Disk::of(12 << 20);
    let database = disk.open().unwrap();
    let table = database.create_table("t", schema()).unwrap();
    let long = "x".repeat(800);
    let mut load = database.begin().unwrap();
    (0..400_u64).for_each(|id| put(&mut load, &table, id, &long));
    load.commit().unwrap();
    let mut open = database.begin().unwrap();
    (0..400_u64).for_each(|id| assert!(open.update(&table, &values![id], &[(1, "s".into())]).unwrap()));
    let full = fill(&database, &table, 1000, u64::MAX / 2);
    database.flush_log().unwrap();
    std::mem::forget(open);
    let crashed = Disk::with(disk.set.cut(1));
    drop(database);
    crashed.data.fill_up();
    let database = crashed.open().unwrap();
    let table = database.table("t").unwrap();
    assert_eq!(count(&database, &table), 400 + full - 1000);
    check(&database, "memory");
    database.close().unwrap();
}

#[test]
fn what_is_deleted_on_a_full_disk_is_room_for_another_table() {
    let disk = Disk::of(8 << 20);
    let database = disk.open().unwrap();
    let (table, other) =
        (database.create_table("t", schema()).unwrap(), database.create_table("other", schema()).unwrap());
    let rows = fill(&database, &table, 0, u64::MAX / 2);
    fill(&database, &other, 0, u64::MAX / 2);
    let error = database.begin().unwrap().insert(&table, &values![rows, "x".repeat(800).as_str()]).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("memory has no free space") && text.contains("delete rows"), "{text}");
    assert_eq!(disk.data.len_bytes().unwrap(), 8 << 20);
    delete(&database, &table, 0..rows);
    wait_for("purge", || database.stats().history_list_length == 0);
    let before = count(&database, &other);
    let added = fill(&database, &other, rows * 2, rows / 2) - rows * 2;
    assert_eq!((added, count(&database, &other)), (rows / 2, before + rows / 2));
    check(&database, "memory");
    database.close().unwrap();
}

/// The undo of updates, which a snapshot keeps from purge, does not take what deletes need.
#[test]
fn rows_are_deleted_with_a_snapshot_after_updates_were_refused() {
    let disk = Disk::of(24 << 20);
    let database = disk.open().unwrap();
    let table = database.create_table("t", schema()).unwrap();
    let rows = fill(&database, &table, 0, u64::MAX / 2);
    let mut snapshot = database.snapshot().unwrap();
    assert!(snapshot.get(&table, &values![0u64]).unwrap().is_some());
    let mut refused = 0;
    for round in 0.. {
        let text = ["y", "z"][round as usize % 2].repeat(800);
        let updated = database.transact(|txn| {
            (0..100).try_for_each(|id| {
                txn.update(&table, &values![(round * 100 + id) % rows], &[(1, text.as_str().into())]).map(drop)
            })
        });
        match updated {
            Ok(()) => {}
            Err(Error::DiskFull { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        if refused == 50 {
            break;
        }
    }
    delete(&database, &table, 0..1000);
    assert_eq!(snapshot.scan(&table).count().unwrap(), rows);
    drop(snapshot);
    assert_eq!(count(&database, &table), rows - 1000);
    check(&database, "memory");
    database.close().unwrap();
}

/// What tables, rolled-back inserts and their undo took is released to the file system when the database closes.
#[test]
fn a_closing_gives_emptied_room_back() {
    let disk = Disk::of(64 << 20);
    let database = disk.open().unwrap();
    let kept = database.create_table("kept", schema()).unwrap();
    let large = database.create_table("large", schema()).unwrap();
    fill(&database, &kept, 0, 100);
    fill(&database, &large, 0, 20_000);
    let small = |n: u32| format!("small-{n}");
    (0..200).for_each(|n| drop(database.create_table(&small(n), schema()).unwrap()));
    let mut undone = database.begin().unwrap();
    (1000..9000).for_each(|id| put(&mut undone, &kept, id, &"x".repeat(800)));
    undone.rollback().unwrap();
    drop(large);
    database.drop_table("large").unwrap();
    (0..200).for_each(|n| database.drop_table(&small(n)).unwrap());
    database.finish_drops().unwrap();
    wait_for("purge", || database.stats().history_list_length == 0);
    database.close().unwrap();
    // What purge had not come to; what the file was longer by than it needed.
    disk.open().unwrap().close().unwrap();
    let allocated_bytes = disk.data.len_bytes().unwrap() - disk.data.discarded_bytes();
    assert!(allocated_bytes < 8 << 20, "{allocated_bytes} of {} bytes", disk.data.len_bytes().unwrap());
    let database = disk.open().unwrap();
    assert_eq!(count(&database, &database.table("kept").unwrap()), 100);
    check(&database, "memory");
}

#[test]
fn room_that_was_discarded_and_taken_by_others_is_not_written_to() {
    let disk = Disk::of(24 << 20);
    let database = disk.open().unwrap();
    let dropped = database.create_table("dropped", schema()).unwrap();
    fill(&database, &dropped, 0, 12_000);
    database.drop_table("dropped").unwrap();
    database.finish_drops().unwrap();
    let table = database.create_table("t", schema()).unwrap();
    let mut load = database.begin().unwrap();
    (0..50).for_each(|id| put(&mut load, &table, id * 1000, "short"));
    load.commit().unwrap();
    let mut rounds = 0..;
    wait_for("a checkpoint and discards", || {
        change(&database, &table, rounds.next().unwrap());
        disk.data.discarded_bytes() > 4 << 20
    });
    disk.data.fill_up();
    let full = fill(&database, &table, 1 << 40, 12_000);
    assert!(full < (1 << 40) + 12_000, "other files have the space");
    let expected = 50 + full - (1 << 40);
    assert_eq!(count(&database, &table), expected);
    database.close().unwrap();
    let database = disk.open().unwrap();
    let table = database.table("t").unwrap();
    check(&database, "memory");
    assert_eq!(count(&database, &table), expected);
    // The other files are removed: the discarded space can be used again.
    disk.data.others_leave();
    fill_all(&database, &table, 1 << 41, 8_000);
    check(&database, "memory");
    database.close().unwrap();
}

/// A small file system, unmounted when dropped.
struct Mounted {
    at: PathBuf,
    _folder: tempfile::TempDir,
}

impl Mounted {
    /// `None` where mounting is not asked for.
    fn new(kind: &str, bytes: u64) -> Option<Mounted> {
        std::env::var_os("HIGHWATER_TEST_MOUNTS")?;
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("mnt");
        std::fs::create_dir(&at).unwrap();
        let run = |command: &mut Command| {
            let output = command.output().unwrap();
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        if kind == "tmpfs" {
            run(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(&at));
        } else {
            let image = folder.path().join("image");
            std::fs::File::create(&image).and_then(|file| file.set_len(bytes)).unwrap();
            let quiet: &[&str] = if kind == "ext4" { &["-q", "-F", "-m", "0"] } else { &["-q", "-f"] };
            run(Command::new(format!("mkfs.{kind}")).args(quiet).arg(&image));
            run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&at));
        }
        Some(Mounted { at, _folder: folder })
    }

    /// Fills what is left with another program's file.
    fn fill_up(&self) {
        let mut ballast = std::fs::File::create(self.at.join("ballast")).unwrap();
        for piece in [1 << 20, 4096] {
            while std::io::Write::write_all(&mut ballast, &vec![1; piece]).is_ok() {}
        }
        // A file system that allocates late reports it only here.
        let _ = ballast.sync_all();
    }

    fn make_room(&self) {
        std::fs::remove_file(self.at.join("ballast")).unwrap();
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.at).status().is_ok_and(|status| status.success());
        assert!(unmounted || std::thread::panicking(), "{} stays mounted", self.at.display());
    }
}

/// Bytes that a file takes of its file system.
fn allocated_bytes(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(path).unwrap()) * 512
}

/// Writes redo, and undo that purge takes back: rows keep their length.
fn change(database: &Database, table: &Table, round: u64) {
    let text = ["y", "z"][round as usize % 2].repeat(800);
    let mut txn = database.begin().unwrap();
    for id in 0..50 {
        match txn.update(table, &values![id * 1000], &[(1, text.as_str().into())]) {
            Ok(found) => assert!(found),
            // Undo that is not purged yet has what there is.
            Err(Error::DiskFull { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    txn.commit().unwrap();
}

/// Everything in one run: rollback while the disk is full, deletes, a drop whose blocks another program takes, reuse.
fn lives_on_a_small_file_system(kind: &str, method: FlushMethod) {
    let Some(mounted) = Mounted::new(kind, 64 << 20) else { return };
    let case = format!("{kind}, {method:?}");
    let dir = mounted.at.join("db");
    let options = || Options { flush_method: method, ..options() };
    let database = Database::open(&dir, options()).unwrap();
    shorten_fill_and_roll_back(&database);
    let filler = database.table("filler").unwrap();
    delete(&database, &filler, 0..2000);
    check(&database, &case);
    database.close().unwrap();
    mounted.fill_up();
    let database = Database::open(&dir, options()).unwrap_or_else(|e| panic!("{case}: {e}"));
    check(&database, &case);
    let before = allocated_bytes(&dir.join("data"));
    database.drop_table("filler").unwrap();
    database.finish_drops().unwrap();
    let table = database.table("t").unwrap();
    let punches = method != FlushMethod::DirectNoFsync;
    let start = Instant::now();
    for round in 0_u64.. {
        if !punches || allocated_bytes(&dir.join("data")) + (16 << 20) < before {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{case}: nothing is discarded");
        change(&database, &table, round);
    }
    mounted.make_room();
    mounted.fill_up();
    let full = fill(&database, &table, 1 << 41, 40_000);
    assert!(!punches || full < (1 << 41) + 40_000, "{case}: other files have the space");
    let rows = count(&database, &table);
    database.close().unwrap_or_else(|e| panic!("{case}: {e}"));
    let database = Database::open(&dir, options()).unwrap_or_else(|e| panic!("{case}: {e}"));
    let table = database.table("t").unwrap();
    check(&database, &case);
    assert_eq!(count(&database, &table), rows, "{case}");
    mounted.make_room();
    fill_all(&database, &table, 1 << 42, 2_000);
    database.close().unwrap();
}

#[test]
fn ext4() {
    lives_on_a_small_file_system("ext4", FlushMethod::Direct);
    lives_on_a_small_file_system("ext4", FlushMethod::DirectNoFsync);
}

/// XFS on a full disk refuses to reserve what is reserved: a restart must not cost the reserve.
#[test]
fn xfs_that_is_full_keeps_what_was_reserved_over_a_restart() {
    let Some(mounted) = Mounted::new("xfs", 320 << 20) else { return };
    let path = mounted.at.join("file");
    let open = || highwater_storage::FileDevice::open(&path, FileRole::Data, FlushMethod::Fsync, true).unwrap();
    let device = open();
    device.set_len_bytes(16 << 20).unwrap();
    device.discard(4 << 20, 1 << 20).unwrap();
    device.sync().unwrap();
    drop(device);
    mounted.fill_up();
    let device = open();
    device.reserve(0, 4 << 20).unwrap();
    device.reserve(5 << 20, 11 << 20).unwrap();
    for (offset, len) in [(0, 16 << 20), (4 << 20, 1 << 20), (15 << 20, 2 << 20)] {
        assert!(device.reserve(offset, len).is_err_and(|error| error.is_full()), "{offset} {len}");
    }
}

#[test]
fn tmpfs() {
    lives_on_a_small_file_system("tmpfs", FlushMethod::Fsync);
}
