//! The threads of an open database: few while nothing happens, more under load, none when it is closed. Each test runs
//! again in a process of its own, where no other test has threads.

use crate::support::{await_purge, people};
use highwater::{Database, Options, values};
use std::process::Command;
use std::time::{Duration, Instant};

/// Set in the process of its own.
const ALONE: &str = "HIGHWATER_TEST_ALONE";

/// Runs a test of this file in a process of its own.
fn alone(name: &str, test: fn()) {
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", &format!("threads::{name}"), "--nocapture"];
    let output = Command::new(program).args(arguments).env(ALONE, "yes").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Names of the engine's threads in this process.
fn names() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end meanwhile.
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    let all = tasks.flatten().filter_map(name).map(|name| name.trim_end().to_string());
    let mut names: Vec<String> = all.filter(|name| name.starts_with("hw-")).collect();
    names.sort();
    names
}

/// Waits until these are the threads: one that was just started has no name yet, and one that was joined is still in
/// the list for a moment.
#[track_caller]
fn await_names(expected: &[&str]) {
    let since = Instant::now();
    while names() != expected {
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", names());
        std::thread::sleep(Duration::from_millis(5));
    }
}

const IDLE: [&str; 9] =
    ["hw-changes", "hw-cleaner", "hw-drop", "hw-expiry", "hw-log", "hw-lru", "hw-purge-0", "hw-read-0", "hw-readers"];

#[test]
fn an_idle_database_has_a_thread_for_each_kind_of_work() {
    alone("an_idle_database_has_a_thread_for_each_kind_of_work", || {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(folder.path().join("db"), Options::default()).unwrap();
        let table = people(&db);
        db.transact(|txn| txn.insert(&table, &values![null, "a", "b", null]).map(drop)).unwrap();
        await_names(&IDLE);
        drop(table);
        db.close().unwrap();
        await_names(&[]);
    });
}

/// Five undo streams wait for purge while a snapshot holds it up: it has all its threads before the snapshot ends.
#[test]
fn purge_has_more_threads_while_more_streams_wait() {
    alone("purge_has_more_threads_while_more_streams_wait", || {
        let db = Database::in_memory().unwrap();
        let table = people(&db);
        let mut reader = db.snapshot().unwrap();
        reader.scan(&table).count().unwrap();
        let mut txns: Vec<_> = (0..5).map(|_| db.begin().unwrap()).collect();
        for (n, txn) in txns.iter_mut().enumerate() {
            let id = txn.insert(&table, &values![null, format!("{n}").as_str(), "b", null]).unwrap();
            txn.delete(&table, &values![id.auto_increment.unwrap()]).unwrap();
        }
        txns.into_iter().for_each(|txn| txn.commit().unwrap());
        let begun = Instant::now();
        let purge = || names().into_iter().filter(|name| name.starts_with("hw-purge-")).collect::<Vec<_>>();
        while purge().len() < 4 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", purge());
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(reader);
        await_purge(&db);
        assert_eq!(purge(), ["hw-purge-0", "hw-purge-1", "hw-purge-2", "hw-purge-3"]);
        drop(table);
        db.close().unwrap();
        await_names(&[]);
    });
}
