//! `check`, `export` and `inspect` only read: not a byte of the files changes, also of a database that was not closed,
//! and they work where nothing can be written. The mount needs the right to make one.

use highwater::{Database, Options, Schema, Type, values};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FILES: [&str; 3] = ["data", "redo", "doublewrite"];
const ROWS: u64 = 500;

fn highwater(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_highwater")).args(arguments).output().expect("the command runs")
}

#[track_caller]
fn expect(arguments: &[&str], status: i32, parts: &[&str]) {
    let output = highwater(arguments);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{arguments:?}: no {part:?} in {text}");
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

/// A database that was closed, and a copy of its files from while it was open, with a commit in its redo only.
fn databases() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let (closed, crashed) = (folder.path().join("closed"), folder.path().join("crashed"));
    let options = Options { log_file_size: 8 << 20, buffer_pool_size: 4 << 20, ..Options::default() };
    let db = Database::open(&closed, options).expect("a database");
    let schema = Schema::new().column("id", Type::U64).column("note", Type::Text(200)).primary_key(&["id"]);
    let table = db.create_table("note", schema).expect("a table");
    let mut txn = db.begin().expect("a transaction");
    for n in 0..ROWS {
        txn.insert(&table, &values![n, "note"]).expect("a row");
    }
    txn.commit().expect("a commit");
    std::fs::create_dir(&crashed).expect("a folder");
    for name in FILES {
        std::fs::copy(closed.join(name), crashed.join(name)).expect("a copy");
    }
    db.close().expect("closed");
    (folder, closed, crashed)
}

fn contents(dir: &Path) -> Vec<Vec<u8>> {
    let names: Vec<String> = std::fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    assert_eq!(names.len(), FILES.len(), "{names:?}");
    FILES.map(|name| std::fs::read(dir.join(name)).expect("a file")).into()
}

/// Everything that only reads.
fn look(dir: &Path, was_closed: bool) {
    let dir = path(dir);
    let replayed: &[&str] = if was_closed { &["sound"] } else { &["was not closed", "replayed in memory", "sound"] };
    expect(&["check", dir], 0, replayed);
    expect(&["export", dir, "note"], 0, &[&format!("{},note", ROWS - 1), &format!("exported {ROWS} rows")]);
    expect(&["inspect", dir], 0, &["database id"]);
    expect(&["inspect", dir, "lists"], 0, &["table note", "flush list"]);
}

#[test]
fn looking_changes_nothing() {
    let (_folder, closed, crashed) = databases();
    for (dir, was_closed) in [(&closed, true), (&crashed, false)] {
        let before = contents(dir);
        look(dir, was_closed);
        assert!(contents(dir) == before, "the files of {} have changed", dir.display());
    }
}

#[test]
fn databases_on_a_read_only_mount_can_be_looked_at() {
    let (folder, ..) = databases();
    let place = folder.path().join("mounted");
    std::fs::create_dir(&place).expect("a folder");
    let Some(_mount) = Mount::read_only(folder.path(), &place) else { return };
    assert!(std::fs::write(place.join("closed/new"), "").is_err());
    look(&place.join("closed"), true);
    look(&place.join("crashed"), false);
    let csv = folder.path().join("one.csv");
    std::fs::write(&csv, "id\n1\n").expect("a file");
    let import = ["import", path(&place.join("closed")), "one", path(&csv), "--primary-key", "id"].map(str::to_string);
    expect(&import.each_ref().map(String::as_str), 1, &["cannot be written", "ead-only"]);
}

/// What cannot be looked at is neither sound nor unsound.
#[test]
fn who_cannot_look_says_so() {
    let (_folder, closed, _) = databases();
    expect(&["check", path(&closed), "--buffer-pool-size", "64K"], 2, &["buffer-pool-size"]);
    let options = Options { create_if_missing: false, ..Options::default() };
    let db = Database::open(&closed, options).expect("a database");
    expect(&["check", path(&closed)], 2, &["in use"]);
    drop(db);
    expect(&["check", path(&closed)], 0, &[]);
}

/// A read-only bind mount; gone with this handle.
struct Mount(PathBuf);

impl Mount {
    /// None where the host cannot mount, which it must where HIGHWATER_TEST_MOUNTS is set.
    fn read_only(folder: &Path, place: &Path) -> Option<Mount> {
        let mount =
            |arguments: &[&str]| Command::new("mount").args(arguments).output().ok().filter(|o| o.status.success());
        let bound = mount(&["--bind", path(folder), path(place)]).map(|_| Mount(place.to_path_buf()));
        let mounted = bound.filter(|_| mount(&["-o", "remount,bind,ro", path(place)]).is_some());
        assert!(mounted.is_some() || std::env::var_os("HIGHWATER_TEST_MOUNTS").is_none(), "this host cannot mount");
        mounted
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a command that failed may still be ending.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
