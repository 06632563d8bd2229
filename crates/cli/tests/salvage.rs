//! `check --repair` and `check --salvage` as commands, on files with real damage.

use highwater::inspect::RawFile;
use highwater::{Database, Options, Schema, Type, values};
use highwater_storage::FileDevice;
use std::path::Path;
use std::process::{Command, Output};

fn highwater(arguments: &[&str]) -> (Option<i32>, String) {
    let command = Command::new(env!("CARGO_BIN_EXE_highwater")).args(arguments).output();
    let Output { status, stdout, stderr } = command.expect("the command starts");
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

fn create(dir: &Path) {
    let db = Database::open(dir, Options { log_file_size: 4 << 20, ..Options::default() }).unwrap();
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
        (text(&inside), dir, "must not lie in each other"),
        (text(folder.path()), dir, "must not lie in each other"),
        (text(&full), dir, "is not empty"),
        (text(&folder.path().join("new")), "/nowhere", "holds no database"),
    ] {
        let (status, said) = highwater(&["check", "--salvage", &out, from]);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(reason), "{said}");
    }
    assert!(!inside.exists());
}
