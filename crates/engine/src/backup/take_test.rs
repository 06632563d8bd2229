//! The discard of emptied pages during a backup.

use crate::backup::{BackupManifest, BackupOptions, RestoreOptions};
use crate::config::{Options, PageStoreKind};
use crate::db::Database;
use crate::db::testing::{TestDb, by_id};
use crate::table::{Table, Type, ValueRef};
use crate::testing::small_options;
use std::ops::ControlFlow::Continue;

const ROWS: u64 = 8000;

fn filled(db: &Database, name: &str, rows: u64) -> Table {
    let table = db.create_table(name, by_id().column("text", Type::Text(600))).unwrap();
    change(db, rows, |txn, id| {
        txn.insert(&table, &[ValueRef::from(id), ValueRef::from(&*"deep ".repeat(80))]).unwrap();
    });
    table
}

fn change(db: &Database, rows: u64, mut row: impl FnMut(&mut crate::db::WriteTxn, u64)) {
    for first in (0..rows).step_by(200) {
        let mut txn = db.begin().unwrap();
        (first..rows.min(first + 200)).for_each(|id| row(&mut txn, id));
        txn.commit().unwrap();
    }
}

/// Waits until all pages are in the store and the checkpoint has passed their changes; emptied extents are discarded
/// unless a hold prevents it.
fn wait_until_flushed(db: &Database) {
    let ctx = db.context();
    ctx.log.flush_to(ctx.log.end_lsn()).unwrap();
    ctx.pool.flush_all().unwrap();
    ctx.log.checkpoint(crate::pool::cleaner::checkpoint_target(&ctx.pool, &ctx.log)).unwrap();
    db.space().discard_step(ctx);
}

/// Pages that the backup's redo changes are emptied before the backup has copied them. They must stay until it has: the
/// redo needs what they were.
#[test]
fn emptied_pages_stay_until_the_backup_has_them() {
    for page_store in [PageStoreKind::InPlace, PageStoreKind::OutOfPlace] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { page_store, segment_size: 256 << 10, log_file_size: 16 << 20, ..small_options() };
        let db = TestDb::new(options.clone());
        filled(&db, "stays", 100);
        let passing = filled(&db, "passing", ROWS);
        wait_until_flushed(&db);
        let mut passing = Some(passing);
        let dest = folder.path().join("full");
        let full = BackupOptions { max_bytes_per_s: 0, ..BackupOptions::default() };
        let taken = db.backup(&dest, &full, &mut |_| {
            if let Some(table) = passing.take() {
                change(&db, ROWS, |txn, id| {
                    txn.update(&table, &[ValueRef::from(id)], &[(1, ValueRef::from("short"))]).unwrap();
                });
                drop(table);
                db.drop_table("passing").unwrap();
                (0..3).for_each(|_| wait_until_flushed(&db));
            }
            Continue(())
        });
        taken.unwrap();
        let restore = RestoreOptions { database: options, check: true, ..RestoreOptions::default() };
        Database::restore(&[dest], folder.path().join("copy"), &restore, &mut |_| Continue(())).unwrap();
    }
}

/// A manifest with a right checksum claims a database of 4 TiB.
#[test]
fn pages_that_a_backup_cannot_have_take_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let (dest, copy) = (folder.path().join("full"), folder.path().join("copy"));
    let db = TestDb::new(small_options());
    filled(&db, "rows", 100);
    let manifest = db.backup(&dest, &BackupOptions::default(), &mut |_| Continue(())).unwrap();
    BackupManifest { page_count: 1 << 30, ..manifest }.write(&dest).unwrap();
    let restore = RestoreOptions { database: small_options(), check: true, ..RestoreOptions::default() };
    Database::restore(&[dest], &copy, &restore, &mut |_| Continue(())).unwrap();
    assert!(std::fs::metadata(copy.join("data")).unwrap().len() <= 16 << 20);
}
