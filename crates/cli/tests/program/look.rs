//! `highwater check` and `highwater inspect` on sound and on damaged databases.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PAGE_BYTES: usize = 16384;

fn highwater(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_highwater")).args(arguments).output().expect("the command runs")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[track_caller]
fn expect(arguments: &[&str], status: i32, parts: &[&str]) -> String {
    let output = highwater(arguments);
    let text = text(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{arguments:?}: no {part:?} in {text}");
    }
    text
}

fn json(arguments: &[&str], status: i32) -> Value {
    let output = highwater(arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output));
    serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
}

/// A database with a table `city` of 5,000 rows and an index `by_name`.
fn database() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let csv = folder.path().join("city.csv");
    let rows = (1..=5000).map(|n| format!("{n},city {:04}\n", n * 7919 % 5003));
    std::fs::write(&csv, format!("id,name\n{}", rows.collect::<String>())).expect("a file");
    let db = folder.path().join("db");
    let (dir, csv) = (path(&db), path(&csv));
    let import = ["import", dir, "city", csv, "--primary-key", "id", "--index", "by_name=name", "--page-size", "16K"];
    expect(&import, 0, &[]);
    (folder, db)
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

/// The first page of an owner.
fn page_of(db: &Path, owner: &str) -> usize {
    let data = highwater_storage::FileDevice::open_read_only(&db.join("data")).expect("a file");
    let file = highwater::inspect::RawFile::open(&data).expect("a data file");
    let is_of = |page: &u32| file.name_of(highwater::PageNo(*page)).is_some_and(|name| name == owner);
    (0..file.page_count() as u32).find(is_of).expect("a page of the owner") as usize
}

fn change(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(file).expect("a file");
    change(&mut bytes);
    std::fs::write(file, bytes).expect("a file");
}

#[test]
fn views_of_a_sound_database() {
    let (_folder, db) = database();
    let dir = path(&db);
    expect(&["inspect", dir], 0, &["pages of 16384 bytes", "checkpoint LSN", "city", "PRIMARY", "by_name"]);
    expect(&["inspect", dir, "tables"], 0, &["table city", "text(", "(name)"]);
    expect(
        &["inspect", dir, "lists"],
        0,
        &["extents of 64 pages", "table city, index by_name", "flush list", "LRU list"],
    );
    expect(&["inspect", dir, "log", "--limit", "1"], 0, &["header 0: database", "the current one", "end LSN"]);
    expect(&["inspect", dir, "page", "0", "--hex"], 0, &["FileHeader", "root slot 0", "HIGHWTR"]);
    expect(&["inspect", dir, "page", "1"], 0, &["ExtentMap", "extent 0 (page 0)"]);
    expect(&["inspect", dir, "page", "4000000000"], 2, &["there is no page 4000000000; the last one is"]);

    let summary = json(&["inspect", dir, "--json", "-"], 0);
    let table = &summary["tables"][0];
    assert_eq!(table["name"], "city");
    let rows = table["indexes"][0]["records_estimate"].as_u64().expect("a number");
    assert!((4000..6000).contains(&rows), "{rows} rows");
    let root = table["indexes"][1]["root_page"].to_string();
    let inner = json(&["inspect", dir, "page", &root, "--json", "-"], 0);
    assert_eq!(inner["type"], "Inner");
    let child = inner["contents"]["records"][0]["value_text"].as_str().expect("a child").replace("page ", "");
    let leaf = expect(&["inspect", dir, "page", &child], 0, &["Leaf", "index by_name", "(city 00", "row ("]);
    assert!(!leaf.contains("corrupt"));
    for what in ["tables", "lists", "log"] {
        json(&["inspect", dir, what, "--json", "-"], 0);
    }
    let report = json(&["check", dir, "--json", "-"], 0);
    assert_eq!((&report["sound"], &report["counts"]["rows"]), (&Value::Bool(true), &5000.into()));
}

#[test]
fn a_damaged_page_is_named_and_shown() {
    let (_folder, db) = database();
    let dir = path(&db);
    let root =
        json(&["inspect", dir, "--json", "-"], 0)["tables"][0]["indexes"][1]["root_page"].as_u64().expect("a page");
    change(&db.join("data"), |bytes| bytes[root as usize * PAGE_BYTES + 9000] ^= 1);
    change(&db.join("doublewrite"), |bytes| bytes.fill(0));
    let name = format!("page {root}: table city: index by_name: checksum");
    expect(&["check", dir], 1, &[&name, "not sound"]);
    let report = json(&["check", dir, "--json", "-"], 1);
    assert_eq!((&report["sound"], &report["findings"][0]["page"]), (&Value::Bool(false), &root.into()));
    expect(&["inspect", dir, "page", &root.to_string()], 1, &["checksum, place  checksum is", "does not verify"]);
}

#[test]
fn damage_is_located_in_a_database_that_cannot_be_opened() {
    let (_folder, db) = database();
    let dir = path(&db);
    change(&db.join("redo"), |bytes| bytes[..8192].fill(0xAB));
    change(&db.join("doublewrite"), |bytes| bytes.fill(0));
    let page = page_of(&db, "table city, index PRIMARY");
    change(&db.join("data"), |bytes| bytes[page * PAGE_BYTES + 100] ^= 1);
    let named = format!("page {page}: table city, index PRIMARY: checksum");
    let scan = ["cannot be opened", "redo", &named, "not sound"];
    expect(&["check", dir], 1, &scan);
    expect(&["inspect", dir, "log"], 1, &["does not start with a header", "error: "]);
    expect(&["inspect", dir], 0, &["city", "by_name"]);
    std::fs::remove_file(db.join("redo")).expect("a file");
    expect(&["check", dir], 1, &["redo is missing", &named]);
    change(&db.join("data"), |bytes| bytes.truncate(10 * PAGE_BYTES));
    expect(&["check", dir], 1, &["the data file is cut"]);
}

#[test]
fn foreign_and_missing_databases_are_wrong_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = path(folder.path());
    for arguments in
        [vec!["check", dir], vec!["inspect", dir], vec!["inspect", dir, "lists"], vec!["inspect", dir, "page", "1"]]
    {
        expect(&arguments, 2, &["there is no database in"]);
    }
    for file in ["data", "redo", "doublewrite"] {
        std::fs::write(folder.path().join(file), vec![b'x'; 100_000]).expect("a file");
    }
    expect(&["check", dir], 2, &["not a Highwater database"]);
    expect(&["inspect", dir], 2, &["not a Highwater database"]);
    expect(&["inspect", dir, "page"], 2, &["NUMBER"]);
}

/// A changed byte in the redo of acknowledged commits is not mistaken for the end of the log.
#[test]
fn a_damaged_redo_log_is_said_to_be_damaged() {
    let folder = tempfile::tempdir().expect("a folder");
    let (live, copy) = (folder.path().join("live"), folder.path().join("copy"));
    let db = highwater::Database::open(&live, highwater::Options::default()).expect("a new database");
    let schema = highwater::Schema::new().column("id", highwater::Type::U32).primary_key(&["id"]);
    let table = db.create_table("t", schema).expect("a new table");
    for id in 0..300u32 {
        let mut txn = db.begin().expect("a transaction");
        txn.insert(&table, &highwater::values![id]).expect("a new row");
        txn.commit().expect("a commit");
    }
    std::fs::create_dir(&copy).expect("a folder");
    for file in ["redo", "doublewrite", "data"] {
        std::fs::copy(live.join(file), copy.join(file)).expect("a copy");
    }
    let dir = path(&copy);
    let log = json(&["inspect", dir, "log", "--json", "-", "--limit", "1"], 0);
    assert!(log["damage"].is_null() && log["groups"].as_u64() > Some(300), "{log}");
    let middle = (log["checkpoint_lsn"].as_u64().unwrap() + log["end_lsn"].as_u64().unwrap()) / 2;
    let place = 8192 + middle / 4080 * 4096 + 16 + middle % 4080;
    change(&copy.join("redo"), |bytes| bytes[place as usize] ^= 4);
    let parts = ["redo is damaged at byte", "durable up to LSN", "restore a backup"];
    expect(&["inspect", dir, "log"], 1, &parts);
    expect(&["inspect", dir], 1, &parts);
    let log = json(&["inspect", dir, "log", "--json", "-"], 1);
    let damage = &log["damage"];
    assert!(damage["lsn"].as_u64() <= Some(middle) && damage["durable_lsn"].as_u64() > Some(middle), "{damage}");
    expect(&["check", dir], 1, &parts);
    expect(&["check", dir], 1, &["not sound"]);
}

#[test]
fn an_emptied_data_file_is_not_taken_for_a_new_database() {
    let (_folder, db) = database();
    change(&db.join("data"), Vec::clear);
    let redo = std::fs::read(db.join("redo")).expect("a file");
    expect(&["check", path(&db)], 1, &["data is empty, but", "the data file was lost"]);
    let csv = db.with_extension("csv");
    std::fs::write(&csv, "id\n1\n").expect("a file");
    expect(&["import", path(&db), "t", path(&csv), "--primary-key", "id"], 1, &["the data file was lost"]);
    assert!(std::fs::read(db.join("redo")).expect("a file") == redo && db.join("data").metadata().unwrap().len() == 0);
}
