//! Options that are changed while the database is open.

use crate::support::{memory, memory_with, open, options, sound};
use crate::testing::{by_id, commit_all};
use highwater::config::{FlushLog, OPTION_TABLE};
use highwater::{Database, Error, Options, Table, TxnOptions, Type, ValueRef, values};
use highwater_storage::StorageSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn filled(db: &Database, rows: u64) -> Table {
    let table = db.create_table("t", by_id().column("x", Type::Text(400))).unwrap();
    let text = "x".repeat(300);
    for first in (0..rows).step_by(500) {
        let end = rows.min(first + 500);
        commit_all(db, first..end, |txn, id| txn.insert(&table, &values![id, text.as_str()]));
    }
    table
}

#[test]
fn each_option_can_be_changed_or_says_that_it_cannot() {
    let db = memory();
    let before = db.options();
    for option in OPTION_TABLE {
        let (_, value) = before.values().into_iter().find(|(name, _)| *name == option.name).unwrap();
        db.set_option(option.name, &value).unwrap_or_else(|error| panic!("{}: {error}", option.name));
        let other = match option.name {
            "page_size" => "16K",
            "page_store" => "out-of-place",
            "page_compression" => "zstd",
            "segment_size" => "1M",
            "flush_method" => "fsync",
            "doublewrite" => "journal",
            "journal_size" => "32M",
            "flush_neighbors" => "1",
            "victim_policy" => "war",
            "change_buffering" => "off",
            "change_buffer_merge_at_close" => "on",
            "buffer_pool_size" => "1M",
            "buffer_pool_size_max" => "8M",
            "log_file_size" => "8M",
            "log_buffer_size" => "2M",
            "log_dir" | "redo_archive" | "key_file" => "/somewhere",
            "flush_log_at_trx_commit" => "2",
            "probe_again" => "on",
            "create_if_missing" => "off",
            _ => "31",
        };
        match db.set_option(option.name, other) {
            Ok(()) => assert!(option.is_dynamic, "{}", option.name),
            Err(Error::BadOption { option: named, reason }) => {
                assert!(!option.is_dynamic && named == option.name.replace('_', "-"), "{}: {reason}", option.name);
                assert!(reason.ends_with("give it at the opening"), "{reason}");
            }
            Err(error) => panic!("{}: {error}", option.name),
        }
        let (_, now) = db.options().values().into_iter().find(|(name, _)| *name == option.name).unwrap();
        assert_eq!(now != value, option.is_dynamic, "{}: {value}, {now}", option.name);
    }
    for (name, value) in [("nothing", "1"), ("io_capacity", "0"), ("io_capacity", "much")] {
        assert!(matches!(db.set_option(name, value), Err(Error::BadOption { .. })), "{name}");
    }
}

#[test]
fn a_change_is_done_whole_or_not_at_all() {
    let db = memory();
    let refused = db.change_options(|options| {
        options.io_capacity = 777;
        options.journal_size = 32 << 20;
    });
    assert!(matches!(refused, Err(Error::BadOption { option, .. }) if option == "journal-size"));
    assert_eq!(db.options().io_capacity, Options::default().io_capacity);
}

/// The closure may look at what is in force; a change inside of a change is an error and no hang.
#[test]
fn a_change_reads_the_options_in_force() {
    let db = memory();
    let mut inside = None;
    db.change_options(|options| {
        options.io_capacity = 2 * db.options().io_capacity;
        inside = Some(db.set_option("io_capacity", "7"));
    })
    .unwrap();
    assert!(matches!(inside, Some(Err(Error::Usage(_)))), "{inside:?}");
    assert_eq!(db.options().io_capacity, 2 * Options::default().io_capacity);
}

#[test]
fn a_lock_wait_is_as_long_as_the_option_says_now() {
    let db = memory_with(Options { lock_wait_timeout_ms: 60_000, ..options() });
    let table = filled(&db, 10);
    let mut holder = db.begin().unwrap();
    assert!(holder.delete(&table, &values![1]).unwrap());
    db.set_option("lock_wait_timeout_ms", "50").unwrap();
    let since = Instant::now();
    let mut waiter = db.begin().unwrap();
    assert!(matches!(waiter.delete(&table, &values![1]), Err(Error::LockWaitTimeout)));
    assert!(matches!(db.drop_table("t"), Err(Error::LockWaitTimeout)));
    assert!(since.elapsed() < Duration::from_secs(30));
}

/// A commit that has returned under 1 survives, whatever the database was opened with.
#[test]
fn commits_are_as_durable_as_the_option_says_now() {
    let storage = StorageSet::memory();
    let opened = Options { flush_log_at_trx_commit: FlushLog::EverySecond, ..options() };
    let db = Database::open_storage(storage.clone(), opened).unwrap();
    let table = filled(&db, 10);
    db.change_options(|options| options.flush_log_at_trx_commit = FlushLog::Sync).unwrap();
    for id in 100..110u64 {
        db.transact(|txn| txn.insert(&table, &values![id, "durable"]).map(drop)).unwrap();
        let cut = open(&storage.cut(id));
        assert!(cut.snapshot().unwrap().get(&cut.table("t").unwrap(), &values![id]).unwrap().is_some(), "{id}");
    }
    db.set_option("flush-log-at-trx-commit", "2").unwrap();
    let syncs = db.stats().log_syncs;
    let since = Instant::now();
    db.begin_with(TxnOptions::default()).unwrap().commit().unwrap();
    (200..260u64).for_each(|id| db.transact(|txn| txn.insert(&table, &values![id, "fast"]).map(drop)).unwrap());
    let (more, seconds) = (db.stats().log_syncs - syncs, since.elapsed().as_secs());
    assert!(more < 30 + seconds * 3, "{more} syncs for 60 commits in {seconds} s");
}

#[test]
fn the_pool_shrinks_and_grows_under_load_and_loses_nothing() {
    let db = memory_with(Options { buffer_pool_size_max: 6 << 20, lock_wait_timeout_ms: 120_000, ..options() });
    let table = filled(&db, 4000);
    let frames = |db: &Database| db.list_lengths().frames;
    assert_eq!((frames(&db), db.options().buffer_pool_size), (512, 2 << 20));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..3u64 {
            let (db, table, stop) = (&db, &table, &stop);
            scope.spawn(move || {
                let mut n = writer;
                while !stop.load(Ordering::Relaxed) {
                    n += 3;
                    let id = n * 7919 % 4000;
                    let text = format!("{id}-{}", "y".repeat(250));
                    let changed = db.transact(|txn| txn.update(table, &values![id], &[(1, ValueRef::Text(&text))]));
                    assert!(changed.unwrap());
                }
            });
        }
        for (size, expected) in [("1M", 256), ("6M", 1536), ("1M", 256), ("3M", 768), ("2M", 512)].repeat(3) {
            db.set_option("buffer-pool-size", size).unwrap();
            assert_eq!(frames(&db), expected);
            assert_eq!(db.options().buffer_pool_size, expected as u64 * 4096);
        }
        stop.store(true, Ordering::Relaxed);
    });
    for (size, hint) in [("8M", "buffer-pool-size-max"), ("100K", "1MiB to 15TiB")] {
        let refused = db.set_option("buffer_pool_size", size).unwrap_err().to_string();
        assert!(refused.contains(hint), "{refused}");
    }
    assert_eq!(frames(&db), 512);
    let mut read = db.snapshot().unwrap();
    for row in read.scan(&table).iter().unwrap() {
        let row = row.unwrap();
        assert!(row.str(1).starts_with("xxx") || row.str(1).starts_with(&format!("{}-", row.u64(0))));
    }
    drop(read);
    sound(&db);
}

#[test]
fn the_redo_log_grows_to_what_the_option_says_now() {
    let db = memory();
    let table = filled(&db, 100);
    let before = db.storage.redo.len_bytes().unwrap();
    db.set_option("log_file_size", "16M").unwrap();
    assert_eq!(db.options().log_file_size, 16 << 20);
    let mut id = 1000;
    while db.storage.redo.len_bytes().unwrap() <= before {
        assert!(id < 100_000, "the log has not grown");
        commit_all(&db, id..id + 100, |txn, id: u64| txn.insert(&table, &values![id, "z".repeat(300).as_str()]));
        id += 100;
    }
    db.set_option("log_file_size", "4M").unwrap();
    let db = db.reopen();
    assert!(db.storage.redo.len_bytes().unwrap() <= 4 << 20);
    sound(&db);
}
