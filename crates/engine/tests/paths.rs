//! Relative paths, and folders with several names. A program of its own: its working directory changes.

use highwater::{BackupOptions, Database, Error, Options, Schema, Type, values};
use std::ops::ControlFlow::Continue;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Redo of more than one segment of the archive.
const ROWS: u64 = 75;

fn options() -> Options {
    Options {
        log_dir: Some("log".into()),
        redo_archive: Some("archive".into()),
        buffer_pool_size: 8 << 20,
        log_file_size: 64 << 20,
        ..Options::default()
    }
}

fn backup(db: &Database, dest: &Path) -> highwater::Result<()> {
    db.backup(dest, &BackupOptions::default(), &mut |_| Continue(())).map(drop)
}

#[test]
fn an_open_database_does_not_depend_on_the_working_directory() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("real")).unwrap();
    symlink("real", root.join("link")).unwrap();
    std::env::set_current_dir(&root).unwrap();
    let db = Database::open("link/db", options()).unwrap();
    std::env::set_current_dir("/").unwrap();

    // Neither do the links that led to it.
    std::fs::remove_file(root.join("link")).unwrap();
    let schema = Schema::new().column("id", Type::U64).column("text", Type::Binary(1_000_000)).primary_key(&["id"]);
    let table = db.create_table("t", schema).unwrap();
    let text = vec![7u8; 1_000_000];
    for id in 0..ROWS {
        db.transact(|txn| txn.insert(&table, &values![id, &text[..]])).unwrap();
    }
    db.create_index("t", "by_id", &["id"], false).unwrap();

    for name in ["real/db/backup", "other/backup", "real/../real/db/backup"] {
        let _ = symlink("real/db", root.join("other"));
        let refused = backup(&db, &root.join(name)).unwrap_err();
        assert!(matches!(&refused, Error::Usage(text) if text.contains("is in the database's folder")), "{refused}");
    }
    assert_eq!(std::fs::read_dir(root.join("real/db")).unwrap().count(), 3, "data, doublewrite, readers");
    backup(&db, &root.join("backup")).unwrap();
    assert_eq!(db.archive_problem(), None);
    let segments = std::fs::read_dir(root.join("archive")).unwrap().count();
    assert!(segments >= 2, "{segments} segments");
    let Options { log_dir, redo_archive, .. } = Options::clone(&db.options());
    assert_eq!((log_dir, redo_archive), (Some(root.join("log")), Some(root.join("archive"))));
    db.close().unwrap();

    std::env::set_current_dir(&root).unwrap();
    let again = Database::open("real/db", options()).unwrap();
    let table = again.table("t").unwrap();
    assert_eq!(again.snapshot().unwrap().scan(&table).count().unwrap(), ROWS);
}
