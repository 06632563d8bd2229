//! `highwater changes` as a command.

use highwater::{Database, Options, Schema, Type, values};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

fn changes(arguments: &[&str]) -> (Option<i32>, Vec<Value>, String) {
    let command = Command::new(env!("CARGO_BIN_EXE_highwater")).arg("changes").args(arguments).output();
    let Output { status, stdout, stderr } = command.expect("the command starts");
    let lines = String::from_utf8_lossy(&stdout);
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    (status.code(), lines, String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn the_change_log_is_printed_from_a_position_on() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let db = Database::open(dir, Options { log_file_size: 4 << 20, ..Options::default() }).unwrap();
    let schema = Schema::new().column("id", Type::U64).nullable("name", Type::Text(40)).primary_key(&["id"]);
    let table = db.create_table("people", schema.log_changes()).unwrap();
    db.transact(|txn| {
        txn.insert(&table, &values![1, "Ada \"L\""])?;
        txn.insert(&table, &values![2, null])
    })
    .unwrap();
    let first = db.last_change().unwrap();
    db.transact(|txn| txn.delete(&table, &values![1])).unwrap();
    db.close().unwrap();

    let (status, lines, said) = changes(&[dir]);
    assert_eq!((status, lines.len()), (Some(0), 3), "{said}");
    let inserted = json!({
        "sequence": first, "time": lines[0]["time"], "table": "people", "kind": "insert", "key": [1],
        "row": {"id": 1, "name": "Ada \"L\""}, "last": false,
    });
    assert_eq!(lines[0], inserted);
    assert!(lines[0]["time"].as_str().is_some_and(|time| time.starts_with("20")), "{}", lines[0]);
    assert_eq!((&lines[1]["row"]["name"], &lines[1]["last"]), (&Value::Null, &json!(true)));
    let (_, lines, _) = changes(&[dir, "--since", &first.to_string()]);
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["kind"], &lines[0]["key"], lines[0].get("row")), (&json!("delete"), &json!([1]), None));
    let (status, lines, said) = changes(&[dir, "--since", "99"]);
    assert!(status == Some(1) && lines.is_empty() && said.contains("no change has the number 99"), "{said}");
}

#[test]
fn a_database_that_is_open_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let db = Database::open(dir, Options { log_file_size: 4 << 20, ..Options::default() }).unwrap();
    let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).primary_key(&["id"]);
    let table = db.create_table("people", schema.log_changes()).unwrap();
    let insert = |id: u64| db.transact(|txn| txn.insert(&table, &values![id, "Ada"])).unwrap();
    insert(1);
    let (status, lines, said) = changes(&[dir]);
    assert_eq!((status, lines.len()), (Some(0), 1), "{said}");
    assert_eq!((&lines[0]["key"], &lines[0]["row"]["name"]), (&json!([1]), &json!("Ada")));

    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    let command = command.args(["changes", dir, "--follow"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut following = command.spawn().expect("the command starts");
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut key = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap()["key"].clone();
    assert_eq!(key(), json!([1]));
    insert(2);
    assert_eq!(key(), json!([2]));
    db.close().unwrap();
    assert!(lines.next().is_none());
    let ended = following.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(1) && said.contains("it has closed the database"), "{said}");

    let (status, lines, said) = changes(&[dir, "--follow"]);
    assert!(status == Some(2) && lines.is_empty() && said.contains("there is nothing to follow"), "{said}");
}
