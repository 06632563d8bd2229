//! Highwater on an emulated disk whose power is cut at a random write: what each promise of the disk is worth to the
//! engine, and what the engine's handling (doublewrite, checksums, syncs) saves.
//!
//! Rules
//! 1. A row's value is its id and a number that grows with each commit, so that every row shows which commit wrote it
//!    last.
//! 2. After a cut the database is opened and checked as a whole. The verdict is one of [`Verdict`]; a value that was
//!    never written is a failure of the test whatever the disk did: damage must be reported, never returned as a value.
//! 3. Growth into new extent-map groups is cut as well: with pages of 4 KiB a group has 25 MiB.
//! 4. Each switch is tried with the handling and without it: without it something breaks, with it nothing.

use highwater::config::{Doublewrite, PageSize};
use highwater::{Database, Error, Options, Schema, Type, ValueRef, values};
use highwater_device::adapter::{EngineDisk, EngineDiskOptions};
use highwater_device::disk::{DiskOptions, TimeMode};
use highwater_device::preset::DeviceConfig;
use highwater_device::promises::{Faults, Promises};
use highwater_device::ssd::config::SsdConfig;
use highwater_storage::{Request, StorageSet, TestDevice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

const ROWS: u64 = 1500;
const SEEDS: u64 = 40;
const FILLER: usize = 600;

/// What a power cut did to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Every acknowledged commit is there, the check finds nothing.
    Sound,
    /// Sound, but commits at the end are missing although they were acknowledged.
    LostCommits,
    /// The engine says that the database is damaged.
    Damaged,
    /// Rows of different moments: pages that were written survive redo that was flushed before them and is gone. Only a
    /// disk that breaks its promises about flushed data can do this.
    Mixed,
    /// The disk did not come back.
    DeadDisk,
}

/// How the engine and its disk are set up.
#[derive(Clone, Copy)]
struct Setup {
    promises: Promises,
    doublewrite: Doublewrite,
    /// Whether a sync of the engine reaches the disk.
    syncs: bool,
    flush_log_at_trx_commit: u64,
}

impl Setup {
    /// A disk with these promises, every protection on.
    fn on(promises: Promises) -> Setup {
        Setup { promises, doublewrite: Doublewrite::On, syncs: true, flush_log_at_trx_commit: 1 }
    }

    fn options(&self) -> Options {
        let mut options = Options {
            page_size: PageSize::Bytes(16384),
            buffer_pool_size: 1 << 20,
            log_file_size: 4 << 20,
            log_buffer_size: 1 << 20,
            doublewrite: self.doublewrite,
            // Pages are flushed all the time, so that many cuts fall into it.
            max_dirty_pages_pct: 1.0,
            io_capacity: 20_000,
            cleaner_interval_ms: 1,
            ..Options::default()
        };
        options.set("flush_log_at_trx_commit", &self.flush_log_at_trx_commit.to_string()).unwrap();
        options
    }

    fn disk(&self) -> EngineDiskOptions {
        let mut config = DeviceConfig::Ssd(SsdConfig::simple(64 << 8, 0.3, 64));
        config.set_promises(self.promises);
        // With a time of its own, so that a cut finds many writes under way: those of a batch, and those of other
        // threads.
        let disk = DiskOptions { crashes: true, time: TimeMode::Virtual, ..DiskOptions::new(config) };
        // Every file begins at a multiple of 16 KiB, as pages do.
        EngineDiskOptions { redo_bytes: 8 << 20, ..EngineDiskOptions::new(disk) }
    }

    fn set(&self, disk: &EngineDisk) -> StorageSet {
        match self.syncs {
            true => disk.set(),
            false => disk.set().map(|device| Arc::new(TestDevice::over(device).without_syncs())),
        }
    }

    /// Runs until power fails at a write that `seed` chooses, then opens and looks.
    fn cut(&self, seed: u64) -> Verdict {
        let (options, disk_options) = (self.options(), self.disk());
        let disk = EngineDisk::new(&disk_options).unwrap();
        let database = Database::open_storage(self.set(&disk), options.clone()).unwrap();
        load(&database);
        disk.disk().flush().unwrap();
        disk.disk().power_cut_at_write(20 + seed * 7919 % 900, seed);
        let acknowledged = update(&database, seed);
        assert!(!disk.disk().is_powered(), "seed {seed}: the run ended before the cut");
        let closed = database.close();
        assert!(closed.is_err(), "seed {seed}: a disk without power cannot be closed cleanly");
        if disk.disk().power_on().is_err() {
            return Verdict::DeadDisk;
        }
        let disk = match EngineDisk::on(disk.disk().clone(), &disk_options) {
            Ok(disk) => disk,
            Err(_) => return Verdict::Damaged,
        };
        match Database::open_storage(disk.set(), options) {
            Ok(database) => look(&database, acknowledged, seed),
            Err(error) => damaged(&error, seed),
        }
    }

    /// Whether one of many cuts has this verdict; stops at the first.
    fn ever(&self, wanted: Verdict) -> bool {
        (0..20 * SEEDS).any(|seed| self.cut(seed) == wanted)
    }

    /// The verdicts of many cuts.
    fn verdicts(&self) -> Vec<Verdict> {
        (0..SEEDS).map(|seed| self.cut(seed)).collect()
    }
}

fn value(id: u64, number: u64) -> String {
    format!("{id} {number} {}", "x".repeat(FILLER))
}

fn load(database: &Database) {
    let schema = Schema::new().column("id", Type::U64).column("v", Type::Text(800)).primary_key(&["id"]);
    let table = database.create_table("t", schema).unwrap();
    for ids in (0..ROWS).collect::<Vec<_>>().chunks(100) {
        let mut txn = database.begin().unwrap();
        for id in ids {
            txn.insert(&table, &values![*id, value(*id, 0).as_str()]).unwrap();
        }
        txn.commit().unwrap();
    }
}

/// Commits until the disk fails; the number of the last commit that was acknowledged.
fn update(database: &Database, seed: u64) -> u64 {
    let table = database.table("t").unwrap();
    for number in 1..20_000 {
        let id = fastrand::Rng::with_seed(seed ^ number).u64(..ROWS);
        let text = value(id, number);
        let changed = database.begin().and_then(|mut txn| {
            txn.update(&table, &values![id], &[(1, ValueRef::from(text.as_str()))])?;
            txn.commit()
        });
        if changed.is_err() {
            return number - 1;
        }
    }
    panic!("seed {seed}: power did not fail");
}

/// The engine says what is wrong; anything else would be a failure of its own.
fn damaged(error: &Error, seed: u64) -> Verdict {
    let reported = matches!(
        error,
        Error::CorruptPage { .. } | Error::Corrupt(_) | Error::Incompatible(_) | Error::Storage(_) | Error::Poisoned(_)
    );
    assert!(reported, "seed {seed}: {error}");
    Verdict::Damaged
}

fn look(database: &Database, acknowledged: u64, seed: u64) -> Verdict {
    let found = database.check();
    let newest = found.map_err(|e| damaged(&e, seed)).and_then(|report| match report.is_sound() {
        true => newest(database, acknowledged, seed).map_err(|e| damaged(&e, seed)),
        false => Err(Verdict::Damaged),
    });
    drop(database.clone().close());
    match newest {
        Err(verdict) => verdict,
        Ok(Found::After(newest)) if newest >= acknowledged => Verdict::Sound,
        Ok(Found::After(_) | Found::NoLoad) => Verdict::LostCommits,
        Ok(Found::Mixed) => Verdict::Mixed,
    }
}

/// What the rows say.
enum Found {
    /// Not even all of the load is there.
    NoLoad,
    /// They are those after exactly this commit.
    After(u64),
    /// They are those of no moment.
    Mixed,
}

/// Reads every row: each must be one that was written.
fn newest(database: &Database, acknowledged: u64, seed: u64) -> Result<Found, Error> {
    let Some(table) = database.tables().into_iter().find(|table| table.name() == "t") else { return Ok(Found::NoLoad) };
    let mut read = database.snapshot()?;
    let (mut numbers, mut newest) = (Vec::new(), 0);
    for row in read.scan(&table).iter()? {
        let row = row?;
        let (id, text) = (row.u64(0), row.str(1).to_string());
        let number = text.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a number");
        assert_eq!(text, value(id, number), "seed {seed}: a value that was never written");
        newest = newest.max(number);
        numbers.push(number);
    }
    if numbers.len() as u64 != ROWS {
        return Ok(Found::NoLoad);
    }
    assert!(newest <= acknowledged + 1, "seed {seed}: commit {newest} was never begun");
    let mut expected = vec![0; ROWS as usize];
    (1..=newest).for_each(|n| expected[fastrand::Rng::with_seed(seed ^ n).u64(..ROWS) as usize] = n);
    Ok(if numbers == expected { Found::After(newest) } else { Found::Mixed })
}

fn honest(atomic_write_bytes: u32) -> Promises {
    Promises { atomic_write_bytes, ..Promises::default() }
}

fn faulty(atomic_write_bytes: u32, set: impl Fn(&mut Faults)) -> Promises {
    let mut promises = honest(atomic_write_bytes);
    set(&mut promises.faults);
    promises
}

fn count(verdicts: &[Verdict], wanted: Verdict) -> usize {
    verdicts.iter().filter(|verdict| **verdict == wanted).count()
}

fn all_sound(setup: Setup) {
    let verdicts = setup.verdicts();
    assert_eq!(count(&verdicts, Verdict::Sound) as u64, SEEDS, "{verdicts:?}");
}

/// Writes of 512 bytes or 4 KiB tear a page of 16 KiB: doublewrite repairs it, and without doublewrite it is damage.
#[test]
fn doublewrite_saves_pages_larger_than_the_atomic_unit() {
    for atomic in [512, 4096] {
        all_sound(Setup::on(honest(atomic)));
        let without = Setup { doublewrite: Doublewrite::Off, ..Setup::on(honest(atomic)) };
        assert!(without.ever(Verdict::Damaged), "atomic writes of {atomic} bytes");
    }
}

/// A disk that writes 16 KiB atomically needs no doublewrite; one that promises less is refused.
#[test]
fn atomic_writes_of_a_page_need_no_doublewrite() {
    all_sound(Setup { doublewrite: Doublewrite::Atomic, ..Setup::on(honest(16384)) });
    let setup = Setup { doublewrite: Doublewrite::Atomic, ..Setup::on(honest(8192)) };
    let refused = Database::open_storage(EngineDisk::new(&setup.disk()).unwrap().set(), setup.options()).err();
    assert!(refused.is_some_and(|error| error.to_string().contains("promises that of 8192 bytes")));
}

#[test]
fn doublewrite_saves_shorn_writes() {
    let shorn = faulty(16384, |f| f.shorn_writes = true);
    all_sound(Setup::on(shorn));
    assert!(Setup { doublewrite: Doublewrite::Off, ..Setup::on(shorn) }.ever(Verdict::Damaged));
}

/// What was not synced is lost with the cache: commits survive because each one is synced.
#[test]
fn a_volatile_cache_loses_commits_that_were_not_synced() {
    all_sound(Setup::on(honest(4096)));
    let unsynced = Setup { flush_log_at_trx_commit: 2, ..Setup::on(honest(4096)) }.verdicts();
    assert!(count(&unsynced, Verdict::LostCommits) > 0, "{unsynced:?}");
    assert_eq!(count(&unsynced, Verdict::Damaged), 0, "{unsynced:?}");
    all_sound(Setup { flush_log_at_trx_commit: 2, ..Setup::on(Promises::protected(4096)) });
}

/// Syncs put writes in order. A disk that keeps the order without them loses only the end without them, another one
/// anything.
#[test]
fn syncs_order_what_the_disk_does_not() {
    let ordered = Promises { ordered: true, ..honest(4096) };
    all_sound(Setup::on(ordered));
    let kept = Setup { syncs: false, ..Setup::on(ordered) }.verdicts();
    assert!(count(&kept, Verdict::LostCommits) > 0 && count(&kept, Verdict::Damaged) == 0, "{kept:?}");
    let mixed = Setup { syncs: false, ..Setup::on(honest(4096)) }.verdicts();
    assert!(count(&mixed, Verdict::Damaged) + count(&mixed, Verdict::Mixed) > 0, "{mixed:?}");
}

/// A flush that lies takes acknowledged commits with it, and no engine can help that: it is what this test shows.
#[test]
fn a_lying_flush_loses_acknowledged_commits() {
    let verdicts = Setup::on(faulty(4096, |f| f.lying_flush = true)).verdicts();
    let kept = count(&verdicts, Verdict::Sound);
    assert!((kept as u64) < SEEDS / 2, "{verdicts:?}");
}

#[test]
fn flushed_writes_that_vanish_are_damage_or_lost_commits() {
    let verdicts = Setup::on(faulty(4096, |f| f.unserializable_writes = true)).verdicts();
    assert!(count(&verdicts, Verdict::Sound) < verdicts.len(), "{verdicts:?}");
}

/// Checksums find flipped bits, and the log's marks distinguish a damaged log from one that ends: no wrong value is
/// returned ([`newest`] would fail). A commit is lost silently only if the redo of the last sync is hit, after the
/// newest mark, which is rare.
#[test]
fn flipped_bits_are_reported() {
    let verdicts = Setup::on(faulty(4096, |f| f.bit_corruption = true)).verdicts();
    let (reported, lost) = (count(&verdicts, Verdict::Damaged), count(&verdicts, Verdict::LostCommits));
    assert!(reported > 0 && lost * 8 < reported, "{verdicts:?}");
}

#[test]
fn a_lost_map_page_and_a_dead_disk_are_errors() {
    let lost = Setup::on(faulty(4096, |f| f.metadata_corruption = true)).verdicts();
    assert!(count(&lost, Verdict::Damaged) as u64 > SEEDS / 2, "{lost:?}");
    let dead = Setup::on(faulty(4096, |f| f.dead_device = true)).verdicts();
    assert!(count(&dead, Verdict::DeadDisk) > 0 && count(&dead, Verdict::Damaged) == 0, "{dead:?}");
}

/// Bytes that one extent map of 4 KiB describes: 101 extents of 64 pages.
const GROUP_BYTES: u64 = 101 * 64 * 4096;

/// Commits rows of 300 KiB until the disk fails; how many were acknowledged.
fn fill(database: &Database) -> u64 {
    let schema = Schema::new().column("id", Type::U64).column("v", Type::Text(400_000)).primary_key(&["id"]);
    let Ok(table) = database.create_table("big", schema) else { return 0 };
    let text = "y".repeat(300 << 10);
    let inserted = |id: u64| {
        let mut txn = database.begin()?;
        txn.insert(&table, &values![id, text.as_str()])?;
        txn.commit()
    };
    (0..400).take_while(|id| inserted(*id).is_ok()).count() as u64
}

/// The power goes at the first writes after the file became longer, in the second and in the third group.
#[test]
fn growth_into_new_extent_map_groups_survives() {
    let setup = Setup::on(honest(512));
    let options = Options { page_size: PageSize::Bytes(4096), ..setup.options() };
    let mut config = DeviceConfig::Ssd(SsdConfig::simple(96 << 8, 0.3, 64));
    config.set_promises(setup.promises);
    let disk = DiskOptions { crashes: true, time: TimeMode::Virtual, ..DiskOptions::new(config) };
    let disk_options = EngineDiskOptions { redo_bytes: 8 << 20, ..EngineDiskOptions::new(disk) };
    for (group, writes) in (1..=8).map(|writes| (1, writes)).chain([(1, 30), (2, 1), (2, 2), (2, 3), (2, 4), (2, 6)]) {
        let case = format!("cut at write {writes} of the growth into group {group}");
        let disk = EngineDisk::new(&disk_options).unwrap();
        // The data file's disk loses its power a few writes after the file grew into the group.
        let (cut_disk, done) = (disk.disk().clone(), AtomicBool::new(false));
        let cutting = move |request: Request<'_>| {
            let is_growth = matches!(request, Request::SetLen(len) if len > group * GROUP_BYTES);
            if is_growth && !done.swap(true, SeqCst) {
                cut_disk.power_cut_at_write(writes, writes);
            }
            Ok(())
        };
        let set = disk.set().map_data(|data| Arc::new(TestDevice::over(data).before(cutting)));
        let database = Database::open_storage(set, options.clone()).unwrap();
        let acknowledged = fill(&database);
        assert!(!disk.disk().is_powered(), "{case}: the run ended before the cut");
        drop(database.close());
        disk.disk().power_on().unwrap();
        let disk = EngineDisk::on(disk.disk().clone(), &disk_options).unwrap();
        let database = Database::open_storage(disk.set(), options.clone()).unwrap_or_else(|e| panic!("{case}: {e}"));
        assert!(database.check().unwrap().is_sound(), "{case}");
        let table = database.table("big").unwrap();
        let mut read = database.snapshot().unwrap();
        let rows = read.scan(&table).iter().unwrap().map(|row| row.unwrap().str(1).len()).collect::<Vec<_>>();
        drop(read);
        assert!(rows.iter().all(|len| *len == 300 << 10), "{case}");
        assert!(
            (acknowledged..=acknowledged + 1).contains(&(rows.len() as u64)),
            "{case}: {} of {acknowledged}",
            rows.len()
        );
        database.close().unwrap();
    }
}
