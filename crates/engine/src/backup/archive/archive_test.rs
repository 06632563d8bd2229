//! The archive and power cuts.

use super::segment::time_noted_in;
use super::{Archive, ArchivePosition, Begin};
use crate::config::Options;
use crate::db::Database;
use crate::db::testing::by_id;
use crate::table::{Type, ValueRef};
use crate::testing::{is_tried, small_options};
use crate::types::{Lsn, unix_us};
use highwater_storage::{CopyKeys, DataKeys, EncryptionKey, Faults, StorageSet};
use std::path::Path;
use std::sync::Arc;

fn options(archive: &Path) -> Options {
    Options { redo_archive: Some(archive.to_path_buf()), ..small_options() }
}

fn fill(db: &Database, from: u64) -> crate::error::Result<()> {
    let schema = by_id().column("text", Type::Text(200));
    let table = db.table("rows").or_else(|_| db.create_table("rows", schema))?;
    for id in from..from + 50 {
        let mut txn = db.begin()?;
        txn.insert(&table, &[ValueRef::from(id), ValueRef::from("a row")])?;
        txn.commit()?;
    }
    Ok(())
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// A key that opens archives of encrypted databases.
fn user_key() -> EncryptionKey {
    EncryptionKey::new([7; 32])
}

fn keys(archive: &Path) -> CopyKeys {
    CopyKeys::of([archive], Some(&user_key()))
}

/// The archive has every group from its begin on to `end`; the times that they note.
fn assert_whole(archive: &Path, id: u64, end: u64, what: &str) -> Vec<u64> {
    let archive = Archive::open(archive, id, &keys(archive)).unwrap();
    let position = ArchivePosition { generation: 2, lsn: Lsn(4080) };
    let mut groups = archive.groups(Begin { position, frame: None }).unwrap();
    let (mut last, mut times) = (position.lsn, Vec::new());
    while let Some(group) = groups.next().unwrap_or_else(|error| panic!("{what}: {error}")) {
        last = group.end;
        times.extend(Some(time_noted_in(group.payload)).filter(|us| *us > 0));
    }
    assert!(last.0 >= end, "{what}: it ends at LSN {last}, before {end}");
    times
}

/// A database with an archive that a power cut ended while it worked.
fn cut_off(storage: &StorageSet, archive: &Path) -> (StorageSet, u64) {
    let faults = Faults::new();
    let db = Database::open_storage(storage.map(|device| faults.wrap(device)), options(archive)).unwrap();
    fill(&db, 0).unwrap();
    let end = db.lsn();
    faults.power_off_after(0);
    drop(db);
    (storage.cut(1), end)
}

/// Power is cut at each write of the opening after that, of the work that follows and of the closing: nothing that was
/// durable is missing in the archive, and no opening finds a gap.
#[test]
fn a_cut_at_any_write_leaves_no_gap() {
    cut_at_any_write(&StorageSet::memory(), is_tried);
}

#[test]
fn a_cut_at_any_write_leaves_no_gap_in_an_encrypted_archive() {
    let keys = DataKeys::random().unwrap().with_table(&user_key());
    cut_at_any_write(&StorageSet::memory().encrypted(Arc::new(keys)), |writes| writes % 3 == 0 && is_tried(writes / 3));
}

fn cut_at_any_write(storage: &StorageSet, is_tried: impl Fn(u64) -> bool) {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    let (image, end) = cut_off(storage, &first);
    let mut is_through = false;
    for writes in (0..).filter(|writes| is_tried(*writes)) {
        let (storage, faults) = (image.cut(writes), Faults::new());
        let archive = folder.path().join(format!("cut-{writes}"));
        copied(&first, &archive);
        // Many writes of work are left out.
        faults.power_off_after(if writes < 40 { writes } else { 40 + (writes - 40) * 5 });
        let powered = storage.map(|device| faults.wrap(device));
        let worked = Database::open_storage(powered, options(&archive)).and_then(|db| {
            fill(&db, 100)?;
            db.close()
        });
        let was_cut = faults.is_power_off();
        assert!(was_cut || worked.is_ok(), "{worked:?}");
        let db = Database::open_storage(storage.cut(writes), options(&archive)).unwrap();
        assert_eq!(db.archive_problem(), None, "after {writes} writes");
        assert_eq!(db.stats().redo_archive_gaps, 0, "after {writes} writes");
        fill(&db, 200).unwrap();
        let (id, last) = (db.id(), db.lsn());
        db.close().unwrap();
        assert_whole(&archive, id, last.max(end), &format!("after {writes} writes"));
        std::fs::remove_dir_all(&archive).unwrap();
        if !was_cut {
            is_through = true;
            break;
        }
    }
    assert!(is_through);
}

/// A log that has grown, cut off with redo that the archive may lack.
fn cut_off_with_a_large_log(archive: &Path) -> (StorageSet, u64) {
    let (storage, faults) = (StorageSet::memory(), Faults::new());
    let large = Options { log_file_size: 8 << 20, ..options(archive) };
    let db = Database::open_storage(storage.map(|device| faults.wrap(device)), large).unwrap();
    let table = db.create_table("long", by_id().column("text", Type::Text(900))).unwrap();
    for id in 0.. {
        if storage.redo.len_bytes().unwrap() > small_options().log_file_size {
            break;
        }
        let text = "a long row ".repeat(80);
        db.transact(|txn| txn.insert(&table, &[ValueRef::from(id), ValueRef::from(&*text)]).map(drop)).unwrap();
        assert!(id < 100_000, "the log does not grow");
    }
    fill(&db, 0).unwrap();
    let end = db.lsn();
    faults.power_off_after(0);
    drop(db);
    (storage.cut(1), end)
}

/// The next opening makes the log smaller: what the archive lacks is copied before, wherever the power is cut.
#[test]
fn a_log_that_shrinks_leaves_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    let (image, end) = cut_off_with_a_large_log(&first);
    let mut sizes = std::collections::BTreeSet::new();
    for writes in (0..).filter(|writes| is_tried(*writes)) {
        let (storage, faults) = (image.cut(writes), Faults::new());
        let archive = folder.path().join(format!("cut-{writes}"));
        copied(&first, &archive);
        // The last writes of an opening are those that matter here.
        faults.power_off_after(writes * 7);
        let opened = Database::open_storage(storage.map(|device| faults.wrap(device)), options(&archive)).map(drop);
        let (was_cut, cut) = (faults.is_power_off(), storage.cut(writes));
        assert!(was_cut || opened.is_ok(), "{opened:?}");
        sizes.insert(cut.redo.len_bytes().unwrap());
        let db = Database::open_storage(cut.clone(), options(&archive)).unwrap();
        assert_eq!((db.archive_problem(), db.stats().redo_archive_gaps), (None, 0), "after {writes} writes");
        assert_eq!(cut.redo.len_bytes().unwrap(), small_options().log_file_size);
        fill(&db, 200).unwrap();
        let (id, last) = (db.id(), db.lsn());
        db.close().unwrap();
        assert_whole(&archive, id, last.max(end), &format!("after {writes} writes"));
        std::fs::remove_dir_all(&archive).unwrap();
        if !was_cut {
            break;
        }
    }
    assert_eq!(sizes.len(), 2, "some cuts are before the log shrinks, some behind");
}

/// A database that was closed, and an opening of it that the power cut before it wrote anything in its generation.
fn closed_and_cut_off(archive: &Path) -> (StorageSet, u64) {
    let storage = StorageSet::memory();
    let db = Database::open_storage(storage.clone(), options(archive)).unwrap();
    fill(&db, 0).unwrap();
    db.close().unwrap();
    let faults = Faults::new();
    let db = Database::open_storage(storage.map(|device| faults.wrap(device)), options(archive)).unwrap();
    faults.power_off_after(0);
    let end = db.lsn();
    drop(db);
    (storage.cut(1), end)
}

/// The padding in front of a generation is not redo that lacks, though a second opening is cut short after the first.
#[test]
fn openings_cut_short_one_behind_the_other_leave_no_gap() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    let (image, end) = closed_and_cut_off(&first);
    let tried = (0..).filter(|writes| is_tried(*writes));
    for (writes, loses) in tried.flat_map(|writes| [(writes, false), (writes, true)]) {
        let archive = folder.path().join(format!("cut-{writes}-{loses}"));
        copied(&first, &archive);
        let (storage, faults) = (image.cut(writes), Faults::new());
        faults.power_off_after(writes);
        let opened = Database::open_storage(storage.map(|device| faults.wrap(device)), options(&archive));
        let was_cut = faults.is_power_off();
        drop(opened);
        // A power cut, or a kill.
        let storage = if loses { storage.cut(writes) } else { storage };
        let db = Database::open_storage(storage, options(&archive)).unwrap();
        let told = (db.archive_problem(), db.stats().redo_archive_gaps);
        assert_eq!(told, (None, 0), "after {writes} writes, {loses}");
        fill(&db, 200).unwrap();
        let (id, last) = (db.id(), db.lsn());
        db.close().unwrap();
        assert_whole(&archive, id, last.max(end), &format!("after {writes} writes"));
        if !was_cut && loses {
            break;
        }
    }
}

/// Times in the archive never go back, also when the clock has: within a life, over an opening, over a crash.
#[test]
fn noted_times_never_go_back() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, storage) = (folder.path().join("archive"), StorageSet::memory());
    let ahead_us = unix_us() + 3_600_000_000;
    let db = Database::open_storage(storage.clone(), options(&archive)).unwrap();
    fill(&db, 0).unwrap();
    // As if the clock had been an hour fast.
    db.context().note_times_from(ahead_us);
    fill(&db, 100).unwrap();
    db.close().unwrap();
    // A life that notes nothing, and one that is cut off.
    Database::open_storage(storage.clone(), options(&archive)).unwrap().close().unwrap();
    let faults = Faults::new();
    let db = Database::open_storage(storage.map(|device| faults.wrap(device)), options(&archive)).unwrap();
    fill(&db, 200).unwrap();
    faults.power_off_after(0);
    drop(db);
    let db = Database::open_storage(storage.cut(1), options(&archive)).unwrap();
    fill(&db, 300).unwrap();
    let (id, last) = (db.id(), db.lsn());
    db.close().unwrap();
    let times = assert_whole(&archive, id, last, "in the end");
    assert!(times.len() > 200 && times.is_sorted(), "{times:?}");
    assert_eq!(times.last(), Some(&ahead_us));
}
