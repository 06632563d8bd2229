//! Indexes that are not right are found.

use super::*;
use crate::peer::lmdb::Lmdb;
use crate::peers_test::{load, settings, spec};
use crate::settings::Peer;
use highwater_bench::peers::{self, Verify};
use highwater_bench::store::Store;

type Lmdbs = KvStore<Lmdb>;

/// A store with rows, after `damage` wrote to the trees of rows and entries.
fn damaged(
    folder: &Path,
    damage: impl FnOnce(&mut <<Lmdb as Kv>::Client as KvClient>::Write<'_>, [&Tree; 2]),
) -> Lmdbs {
    let store = Lmdbs::open(folder, &settings(false)).unwrap();
    load(&store);
    let table = store.table("things").unwrap().unwrap();
    let kv = Lmdb::clone(store.kv());
    let mut client = kv.client().unwrap();
    let mut write = client.write().unwrap();
    damage(&mut write, [&table.rows, &table.entries[0]]);
    write.finish().unwrap();
    store
}

type Tree = <Lmdb as Kv>::Tree;

fn first_key(read: &mut impl KvRead<Tree = Tree>, tree: &Tree) -> Vec<u8> {
    let mut first = Vec::new();
    let all = Range { from: b"", to: b"", reverse: false, newest: false };
    read.scan(tree, &all, |key, _| {
        first = key.to_vec();
        ControlFlow::Break(())
    })
    .unwrap();
    first
}

#[test]
fn an_entry_that_has_not_followed_its_row_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = damaged(folder.path(), |write, [_, entries]| {
        let mut key = first_key(write, entries);
        write.delete(entries, &key).unwrap();
        key[0] = u8::MAX;
        write.put(entries, &key, b"").unwrap();
    });
    let (_, conditions) = peers::contents(&store, &[spec()], Verify::Indexes).unwrap();
    assert!(conditions.iter().any(|one| !one.holds && one.detail.contains("misplaced: 1")), "{conditions:?}");
}

#[test]
fn an_entry_without_its_row_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let store = damaged(folder.path(), |write, [rows, _]| {
        let key = first_key(write, rows);
        write.delete(rows, &key).unwrap();
    });
    let error = peers::contents(&store, &[spec()], Verify::Indexes).unwrap_err().to_string();
    assert!(error.contains("leads to no row"), "{error}");
}
