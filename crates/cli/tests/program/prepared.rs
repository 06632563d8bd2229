//! The command `highwater prepared`; and `check`, `backup` and `restore` of a database with prepared transactions.

use highwater::{Database, Options, Schema, Type, Xid, values};
use std::path::Path;
use std::process::{Command, Output};

fn output(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_highwater")).args(arguments).output().expect("the command starts")
}

fn highwater(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = output(arguments);
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

fn prepare_two(dir: &Path) {
    let db = Database::open(dir, Options { log_file_size: 4 << 20, ..Options::default() }).unwrap();
    let schema = Schema::new().column("id", Type::U64).primary_key(&["id"]);
    let table = db.create_table("goods", schema).unwrap();
    for (id, name) in [(1u64, &b"order 1"[..]), (2, b"order-2")] {
        let mut txn = db.begin().unwrap();
        txn.insert(&table, &values![id]).unwrap();
        txn.prepare(Xid::new(1, name, b"stock").unwrap()).unwrap().unwrap().detach();
    }
    db.close().unwrap();
}

fn rows(dir: &Path) -> u64 {
    let db = Database::open_read_only(dir, Options::default()).unwrap();
    let table = db.table("goods").unwrap();
    db.snapshot().unwrap().scan(&table).count().unwrap()
}

#[test]
fn prepared_transactions_are_listed_named_by_a_restore_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let [db, backup, copy] = ["db", "backup", "copy"].map(|name| folder.path().join(name));
    prepare_two(&db);
    let [dir, kept, to] = [&db, &backup, &copy].map(|path| path.to_str().unwrap());
    let (status, said) = highwater(&["prepared", dir]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("1:order%201:stock: transaction") && said.contains("tables: goods"), "{said}");
    let Output { status, stdout, .. } = output(&["prepared", dir, "--json", "-"]);
    let list: serde_json::Value = serde_json::from_slice(&stdout).expect("only JSON goes to stdout");
    assert_eq!((status.code(), list[1]["xid"].as_str()), (Some(0), Some("1:order-2:stock")));
    assert_eq!(highwater(&["check", dir]).0, Some(0));
    assert_eq!(highwater(&["backup", dir, kept]).0, Some(0));
    let (status, said) = highwater(&["restore", kept, "--to", to]);
    assert!(status == Some(0) && said.contains("transaction 1:order-2:stock is prepared"), "{said}");
    assert_eq!((rows(&db), rows(&copy)), (0, 0));

    let (status, said) = highwater(&["prepared", to, "--commit", "1:order-2:stock", "--commit", "1:other:"]);
    assert!(status == Some(1) && said.contains("no transaction named 1:other: is prepared"), "{said}");
    assert_eq!(rows(&copy), 0, "a wrong name changes nothing");
    let wrong = highwater(&["prepared", to, "--commit", "order-2"]);
    assert!(wrong.0 == Some(2) && wrong.1.contains("FORMAT:GLOBAL:BRANCH"), "{}", wrong.1);
    let twice = highwater(&["prepared", to, "--commit", "1:order-2:stock", "--rollback", "1:order-2:stock"]);
    assert!(twice.0 == Some(2) && twice.1.contains("named twice"), "{}", twice.1);
    let (status, said) = highwater(&["prepared", to, "--commit", "1:order-2:stock", "--rollback", "1:order%201:stock"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("order-2:stock: committed") && said.contains("1:stock: rolled back"), "{said}");
    assert_eq!((rows(&copy), rows(&db)), (1, 0));
    assert!(highwater(&["prepared", to]).1.contains("no transaction is prepared"));
    assert_eq!(highwater(&["check", to]).0, Some(0));
}
