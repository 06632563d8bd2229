//! `check --repair` and `check --salvage` as commands, on files with real damage.

use highwater::config::PageSize;
use highwater::inspect::RawFile;
use highwater::{Database, Options, Schema, Type, values};
use highwater_storage::FileDevice;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn highwater(arguments: &[&str]) -> (Option<i32>, String) {
    let command = Command::new(env!("CARGO_BIN_EXE_highwater")).args(arguments).output();
    let Output { status, stdout, stderr } = command.expect("the command starts");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

fn create(dir: &Path) {
    // Not the size that a device would be given.
    let page_size = PageSize::Bytes(8192);
    let db = Database::open(dir, Options { log_file_size: 4 << 20, page_size, ..Options::default() }).unwrap();
    let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).primary_key(&["id"]);
    let table = db.create_table("person", schema.index("by_name", &["name"])).unwrap();
    let mut txn = db.begin().unwrap();
    for id in 0..3000u64 {
        txn.insert(&table, &values![id, format!("name {:05}", id * 7919 % 10_007).as_str()]).unwrap();
    }
    txn.commit().unwrap();
    db.close().unwrap();
}

/// Flips a byte of the root page of a tree of table person.
fn break_root(dir: &Path, tree: usize) {
    let path = dir.join("data");
    let offset = {
        let data = FileDevice::open_read_only(&path).unwrap();
        let file = RawFile::open(&data).unwrap();
        file.tables()[0].trees[tree].root.0 as usize * file.page_bytes()
    };
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[offset + 3000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    // No copy to repair it from.
    std::fs::write(dir.join("doublewrite"), []).unwrap();
}

#[test]
fn a_damaged_index_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    create(&dir);
    break_root(&dir, 1);
    let dir = dir.to_str().unwrap();
    assert_eq!(highwater(&["check", dir]).0, Some(1));
    let (status, said) = highwater(&["check", "--repair", dir]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("rebuilt: index by_name of table person"), "{said}");
    let (status, said) = highwater(&["check", dir]);
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn rows_are_salvaged_from_a_database_that_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, out) = (folder.path().join("db"), folder.path().join("out"));
    create(&dir);
    break_root(&dir, 0);
    std::fs::remove_file(dir.join("redo")).unwrap();
    let (dir, out) = (dir.to_str().unwrap(), out.to_str().unwrap());
    let (status, said) = highwater(&["check", "--salvage", out, dir]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("cannot be opened") && said.contains("table person: 3000 rows copied, 0 lost"), "{said}");
    let (status, said) = highwater(&["check", out]);
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn wrong_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    create(&dir);
    let (inside, full) = (dir.join("out"), folder.path().join("full"));
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("x"), "x").unwrap();
    let (dir, text) = (dir.to_str().unwrap(), |path: &Path| path.to_str().unwrap().to_string());
    for (out, from, reason) in [
        (text(&inside), dir, "must not be in each other"),
        (text(folder.path()), dir, "must not be in each other"),
        (text(&full), dir, "is not empty"),
        (text(&folder.path().join("new")), "/nowhere", "there is no database in /nowhere"),
    ] {
        let (status, said) = highwater(&["check", "--salvage", &out, from]);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(reason), "{said}");
    }
    assert!(!inside.exists());
}

/// A database with committed rows that are only in its redo log, as a killed process leaves it.
fn killed(dir: &Path) -> u64 {
    create(dir);
    let copy = dir.with_extension("open");
    let db = Database::open(dir, Options::default()).unwrap();
    let table = db.table("person").unwrap();
    for id in 3000..3100u64 {
        db.transact(|txn| txn.insert(&table, &values![id, "late"])).unwrap();
    }
    std::fs::create_dir(&copy).unwrap();
    for name in ["data", "redo", "doublewrite"] {
        std::fs::copy(dir.join(name), copy.join(name)).unwrap();
    }
    drop(db);
    std::fs::remove_dir_all(dir).unwrap();
    std::fs::rename(&copy, dir).unwrap();
    3100
}

fn page_bytes(dir: &Path) -> usize {
    let data = FileDevice::open_read_only(&dir.join("data")).unwrap();
    RawFile::open(&data).unwrap().page_bytes()
}

/// Also without the file of copies, and where the database does not open: the redo is readable, so it is replayed.
#[test]
fn the_redo_is_replayed_whatever_else_is_lost() {
    for lost in ["nothing", "doublewrite", "extent map"] {
        let folder = tempfile::tempdir().unwrap();
        let (dir, out) = (folder.path().join("db"), folder.path().join("out"));
        let rows = killed(&dir);
        match lost {
            "doublewrite" => std::fs::remove_file(dir.join(lost)).unwrap(),
            "extent map" => break_page(&dir, 1),
            _ => {}
        }
        let (status, said) = highwater(&["check", "--salvage", out.to_str().unwrap(), dir.to_str().unwrap()]);
        assert_eq!(status, Some(i32::from(lost != "nothing")), "{lost}: {said}");
        assert!(said.contains(&format!("table person: {rows} rows copied, 0 lost")), "{lost}: {said}");
        assert!(!said.contains("is lost"), "{lost}: {said}");
        assert_eq!(said.contains("its redo log was replayed in memory"), lost == "extent map", "{said}");
        assert_eq!(page_bytes(&out), page_bytes(&dir));
    }
}

/// Damages a page, and the copies of pages.
fn break_page(dir: &Path, page: usize) {
    let (path, page_bytes) = (dir.join("data"), page_bytes(dir));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[page * page_bytes + 3000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    std::fs::write(dir.join("doublewrite"), []).unwrap();
}

/// Without its redo the data file is read, and that is said; so it is when the redo is damaged.
#[test]
fn what_is_read_without_redo_is_said() {
    for damaged in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (dir, out) = (folder.path().join("db"), folder.path().join("out"));
        killed(&dir);
        match damaged {
            false => std::fs::remove_file(dir.join("redo")).unwrap(),
            true => std::fs::write(dir.join("redo"), [7u8; 65536]).unwrap(),
        }
        let (status, said) = highwater(&["check", "--salvage", out.to_str().unwrap(), dir.to_str().unwrap()]);
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains("what was in the redo log only is lost"), "{said}");
        assert_eq!(said.contains("name that with --log-dir"), !damaged, "{said}");
        assert!(said.contains("table person: 3000 rows copied"), "{said}");
    }
}

/// Commands that do not work while another process has the database open name that process and say what to do; all
/// others read through it. The files of an open database change while they are read: nothing else is said of them.
#[test]
fn a_database_in_use_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, out) = (folder.path().join("db"), folder.path().join("out"));
    create(&dir);
    let db = Database::open(&dir, Options::default()).unwrap();
    let (dir, out) = (dir.to_str().unwrap(), out.to_str().unwrap());
    let [csv, dump, key, next] = ["rows.csv", "rows.hwdump", "key", "next"].map(|name| folder.path().join(name));
    std::fs::write(&csv, "id\n1\n").unwrap();
    for key in [&key, &next] {
        std::fs::write(key, [7; 32]).unwrap();
        std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let [csv, dump, key, next] = [&csv, &dump, &key, &next].map(|path| path.to_str().unwrap());
    for arguments in [
        &["top", dir, "--once", "--interval", "0.1"][..],
        &["shell", dir, "-c", "tables"],
        &["export", dir, "person"],
        &["dump", dir, dump],
        &["changes", dir],
    ] {
        let (status, said) = highwater(arguments);
        assert_eq!(status, Some(0), "{arguments:?}: {said}");
    }
    for (arguments, instead) in [
        (&["check", "--salvage", out, dir][..], "end it first"),
        (&["check", dir], "Database::check"),
        (&["check", "--repair", dir], "Database::repair_indexes"),
        (&["inspect", dir], "highwater top"),
        (&["inspect", dir, "tables"], "highwater shell"),
        (&["inspect", dir, "page", "1"], "end it first"),
        (&["inspect", dir, "log"], "end it first"),
        (&["inspect", dir, "lists"], "end it first"),
        (&["inspect", dir, "segments"], "end it first"),
        (&["backup", dir, out], "Database::backup"),
        (&["compact", dir], "Database::compact"),
        (&["rotate-key", dir, "--key-file", key, "--new-key-file", next], "Database::rotate_key"),
        (&["prepared", dir], "Database::prepared"),
        (&["prepared", dir, "--commit", "1:order:"], "Database::finish_prepared"),
        (&["import", dir, "rows", csv, "--primary-key", "id"], "end it first"),
        (&["load", dump, dir], "end it first"),
    ] {
        let (status, said) = highwater(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {said}");
        let process = format!("is in use: process {} (", std::process::id());
        assert!(said.contains(&process) && said.contains(instead), "{arguments:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{arguments:?}: {said}");
        assert!(!Path::new(out).exists(), "{arguments:?}");
    }
    let (status, said) = highwater(&["restore", out, "--to", dir]);
    assert!(status == Some(1) && said.contains("not a complete backup"), "{said}");
    db.close().unwrap();
}
