//! Prepared transactions in what is made of a database: backups, databases restored to a moment, what is salvaged.

use crate::backup::{back_up, restore_options};
use crate::prepared::{ages, filled, listed, prepared, xid};
use crate::support::{check_indexes, memory, memory_with, open, options, sound};
use crate::testing::TestDb;
use highwater::{Database, Options, RestoreOptions, Until, Xid, salvage, values};
use highwater_storage::StorageSet;
use std::ops::ControlFlow::Continue;
use std::path::{Path, PathBuf};

/// A new database whose redo is archived in a folder.
fn archiving(redo: &Path) -> TestDb {
    let archived = Options { redo_archive: Some(redo.into()), ..options() };
    memory_with(archived)
}

/// The source's redo is archived. A full backup, two transactions that are prepared, an incremental backup, their ends.
#[test]
fn a_restore_names_the_transactions_that_were_prepared_then() {
    let folder = tempfile::tempdir().unwrap();
    let redo = folder.path().join("redo");
    let db = archiving(&redo);
    let people = filled(&db);
    let chain = ["full", "incremental"].map(|name| folder.path().join(name));
    assert!(back_up(&db, &chain[0], None).unwrap().is_full());
    let before = db.lsn();
    let first = prepared(&db, &people, "a", &[1, 2], 5);
    let one = db.lsn();
    let second = prepared(&db, &people, "b", &[3], 6);
    let both = db.lsn();
    assert!(!back_up(&db, &chain[1], Some(&chain[0])).unwrap().is_full());
    second.rollback().unwrap();
    let rolled_back = db.lsn();
    first.commit().unwrap();
    let ended = db.lsn();
    db.close().unwrap();

    let none: [&str; 0] = [];
    let cases: [(&[PathBuf], _, _, &[&str]); 8] = [
        (&chain[..1], false, None, &none),
        (&chain[..1], true, Some(before), &none),
        (&chain[..1], true, Some(one), &["a"]),
        (&chain[..1], true, Some(both), &["a", "b"]),
        (&chain, false, None, &["a", "b"]),
        (&chain, true, Some(one), &["a"]),
        (&chain, true, Some(rolled_back), &["a"]),
        (&chain, true, Some(ended), &none),
    ];
    for (n, (chain, with_redo, until, names)) in cases.into_iter().enumerate() {
        let (until, redo) = (until.map(Until::Lsn), with_redo.then(|| redo.clone()));
        let into = folder.path().join(format!("copy-{n}"));
        let how = RestoreOptions { redo, until, ..restore_options(&options()) };
        let report = Database::restore(chain, &into, &how, &mut |_| Continue(())).unwrap();
        let right: Vec<Xid> = names.iter().map(|name| xid(name)).collect();
        assert_eq!(report.prepared, right, "case {n}");
        let db = Database::open(&into, options()).unwrap();
        let people = db.table("people").unwrap();
        assert_eq!(listed(&db), names, "case {n}");
        let is_committed = until == Some(Until::Lsn(ended));
        assert_eq!(ages(&db, &people), ages_after(is_committed), "case {n}");
        for name in names {
            db.finish_prepared(&xid(name), *name == "a").unwrap();
        }
        assert_eq!(ages(&db, &people), ages_after(is_committed || names.contains(&"a")), "case {n}");
        check_indexes(&db, &people);
        sound(&db);
    }
}

/// The record with the name is in the redo before the state: at each LSN the transaction is prepared under its name, or
/// active and rolled back.
#[test]
fn at_every_moment_of_a_prepare_the_name_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let redo = folder.path().join("redo");
    let db = archiving(&redo);
    let people = filled(&db);
    let full = folder.path().join("full");
    back_up(&db, &full, None).unwrap();
    // Its undo has several pages: the record is on another one than the state.
    let mut txn = db.begin().unwrap();
    (1..=300i64).for_each(|age| assert!(txn.update(&people, &values![1], &[(3, age.into())]).unwrap()));
    let before = db.lsn();
    let prepared = txn.prepare(xid("a")).unwrap().unwrap();
    let after = db.lsn();
    prepared.rollback().unwrap();
    db.close().unwrap();
    // Each of the two mini-transactions has more bytes than this.
    let moments = (before..after).step_by(16).chain([after]);
    let listed_at = |until: u64| {
        let into = folder.path().join(until.to_string());
        let (redo, until) = (Some(redo.clone()), Some(Until::Lsn(until)));
        let how = RestoreOptions { redo, until, ..restore_options(&options()) };
        Database::restore(std::slice::from_ref(&full), &into, &how, &mut |_| Continue(())).unwrap().prepared
    };
    let mut found: Vec<_> = moments.map(listed_at).collect();
    found.dedup();
    assert_eq!(found, [vec![], vec![xid("a")]]);
}

fn ages_after(is_committed: bool) -> [Option<i64>; 4] {
    if is_committed { [Some(5), Some(5), Some(0), Some(0)] } else { [Some(0); 4] }
}

#[test]
fn salvage_lists_what_is_prepared_and_copies_the_versions_before() {
    let storage = StorageSet::memory();
    let db = open(&storage);
    let people = filled(&db);
    prepared(&db, &people, "committed", &[4], 9).commit().unwrap();
    prepared(&db, &people, "rolled back", &[1], 9).rollback().unwrap();
    let mut txn = db.begin().unwrap();
    txn.delete(&people, &values![3]).unwrap();
    txn.insert(&people, &values![null, "new", "f", 1]).unwrap();
    txn.prepare(xid("z")).unwrap().unwrap().detach();
    prepared(&db, &people, "a", &[1, 2], 5).detach();
    db.close().unwrap();
    let into = memory();
    let report = salvage(&*storage.data, &into, &mut |_, _| {}).unwrap();
    assert_eq!(report.prepared, [xid("a"), xid("z")]);
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    let people = into.table("people").unwrap();
    assert_eq!((ages(&into, &people), listed(&into)), (vec![Some(0), Some(0), Some(0), Some(9)], vec![]));
    check_indexes(&into, &people);
    sound(&into);
}
