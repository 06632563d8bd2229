//! `dump` and `load` as processes: through pipes and files, damaged and cut off, into new databases and old ones.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn highwater(arguments: &[&str], input: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(arguments);
    match input {
        Some(path) => command.stdin(std::fs::File::open(path).expect("an input")),
        None => command.stdin(Stdio::null()),
    };
    command.output().expect("the command starts")
}

fn fine(arguments: &[&str], input: Option<&Path>) -> String {
    let output = highwater(arguments, input);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    stderr
}

fn refused(arguments: &[&str], status: i32, reason: &str) {
    let output = highwater(arguments, None);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
    assert!(stderr.contains(reason) && stderr.lines().count() == 1, "{arguments:?}: {stderr}");
}

/// What a table has, as CSV.
fn exported(dir: &str) -> Vec<u8> {
    highwater(&["export", dir, "city"], None).stdout
}

#[test]
fn a_database_goes_through_a_file_and_a_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a readable path").to_string();
    let (db, csv, dump, copy, again) = (path("db"), path("c.csv"), path("d.hwdump"), path("copy"), path("again"));
    let rows: String = (0..3000).map(|n| format!("{n},Town {n},{}.50\n", n * 7)).collect();
    std::fs::write(&csv, format!("id,name,area\n{rows}")).expect("a file");
    fine(&["import", &db, "city", &csv, "--primary-key", "id", "--index", "by_name=name", "--page-size", "8K"], None);

    let said = fine(&["dump", &db, &dump], None);
    assert!(said.contains("dumped 3000 rows of 1 table, "), "{said}");
    let said = fine(&["load", &dump, &copy], None);
    assert!(said.contains("loaded 3000 rows of 1 table, "), "{said}");
    assert_eq!(exported(&copy), exported(&db));
    let pages = highwater(&["inspect", &copy], None).stdout;
    assert!(String::from_utf8_lossy(&pages).contains("8192"), "the page size of the dumped one");
    fine(&["load", "-", &again, "--page-size", "4096"], Some(Path::new(&dump)));
    assert_eq!(exported(&again), exported(&db));
    let piped = highwater(&["dump", &again], None).stdout;
    assert!(piped.starts_with(b"HIGHWDMP"));

    refused(&["load", &dump, &copy], 1, "there is a table city already; nothing was loaded");
    refused(&["load", &path("missing"), &copy], 2, "No such file");
    refused(&["dump", &path("nothing")], 2, "nothing");
}

#[test]
fn what_is_damaged_or_cut_off_makes_no_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a readable path").to_string();
    let (db, csv, dump, bad, copy) = (path("db"), path("c.csv"), path("d"), path("bad"), path("copy"));
    std::fs::write(&csv, "id,name\n1,Lund\n2,Ystad\n").expect("a file");
    fine(&["import", &db, "city", &csv], None);
    fine(&["dump", &db, &dump], None);
    let whole = std::fs::read(&dump).expect("a dump");
    let mut damaged = whole.clone();
    let last = damaged.len() - 3;
    damaged[last] ^= 1;
    let damage = "has a wrong checksum; nothing was loaded";
    for (bytes, reason) in [(&damaged[..], damage), (&whole[..whole.len() - 9], "the dump is cut off: it ends at byte")]
    {
        std::fs::write(&bad, bytes).expect("a file");
        refused(&["load", &bad, &copy], 1, reason);
        assert!(!Path::new(&copy).exists(), "{reason}");
    }
    refused(&["load", &csv, &copy], 1, "this is no dump of a Highwater database");
}
