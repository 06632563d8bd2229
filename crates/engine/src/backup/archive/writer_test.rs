//! The writer of the archive: gaps, failed and torn writes, its lock.

use super::*;
use crate::db::open_parts::OpenParts;
use crate::testing::small_parts;
use highwater_storage::{DataKeys, EncryptionKey, StorageSet};

/// Commits are held up only until the gap begins, however long the archive cannot be written; then it continues.
#[test]
fn behind_a_gap_nothing_is_kept() {
    let (parts, folder) = (small_parts(), tempfile::tempdir().unwrap());
    let (log, dir) = (&parts.ctx.log, folder.path().join("archive"));
    let mut archiver = followed(&parts, &dir);
    archiver.open = None;
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::write(&dir, "not a folder").unwrap();
    let archive = |archiver: &mut Archiver| {
        let lsn = append(log, 4000);
        archiver.step();
        log.checkpoint(lsn).unwrap();
    };
    for _ in 0..3 * log.capacity_bytes() / 4000 {
        archive(&mut archiver);
    }
    assert_eq!(parts.ctx.stats.redo_archive_gaps.get(), 1);
    assert!(archiver.problem().is_some_and(|problem| problem.contains("cannot be written")));
    std::fs::remove_file(&dir).unwrap();
    std::fs::create_dir(&dir).unwrap();
    archive(&mut archiver);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
}

/// Followed from its end on; what is appended is durable.
fn followed(parts: &OpenParts, dir: &Path) -> Archiver {
    followed_with(parts, dir, None)
}

fn followed_with(parts: &OpenParts, dir: &Path, key: Option<(CopyKey, KeyTable)>) -> Archiver {
    let log = &parts.ctx.log;
    log.flush_to(log.end_lsn()).unwrap();
    let mut archiver = Archiver::open(dir, 7, key).unwrap();
    archiver.begin(ArchivePosition { generation: log.generation(), lsn: log.end_lsn() }).unwrap();
    archiver.follow(log.clone(), parts.ctx.stats.clone()).unwrap();
    archiver
}

fn append(log: &Log, bytes: usize) -> Lsn {
    let reservation = log.reserve_at_once(bytes as u64).expect("nothing is kept for the archive");
    let lsn = log.append(reservation, &vec![7; bytes], |_, _| {});
    log.flush_to(lsn).unwrap();
    lsn
}

/// The remains of a failed write in the middle of a segment do not hide redo that is archived later.
#[test]
fn behind_a_failed_write_the_archive_is_read_on() {
    let (parts, folder) = (small_parts(), tempfile::tempdir().unwrap());
    let (log, dir) = (&parts.ctx.log, folder.path().join("archive"));
    let mut archiver = followed(&parts, &dir);
    let start = archiver.end.unwrap();
    let first = append(log, 400);
    archiver.step();
    let second = append(log, 400);
    // A group that was written, and something else; neither was synced.
    log.copy_groups(first..second, start.generation, |_, group| archiver.write(group)).unwrap();
    archiver.write(&[9; 100]).unwrap();
    let open = archiver.open.as_mut().unwrap();
    open.file = File::open(&open.path).unwrap();
    archiver.step();
    assert_eq!((parts.ctx.stats.redo_archive_failures.get(), archiver.end.unwrap().lsn), (1, first));
    archiver.step();
    let last = append(log, 400);
    archiver.step();
    let archive = super::super::Archive::open(&dir, 7, &CopyKeys::default()).unwrap();
    let mut groups = archive.groups(super::super::Begin { position: start, frame: None }).unwrap();
    let mut end = start.lsn;
    while let Some(group) = groups.next().unwrap() {
        assert_eq!(group.start, end);
        end = group.end;
    }
    assert_eq!(end, last);
}

/// A crash within the write of a record: what was durable before it stays, and is all there is.
#[test]
fn a_torn_record_of_an_encrypted_segment_is_cut_off() {
    let (parts, folder) = (small_parts(), tempfile::tempdir().unwrap());
    let (log, dir) = (&parts.ctx.log, folder.path().join("archive"));
    let keys = DataKeys::random().unwrap().with_table(&EncryptionKey::new([1; 32]));
    let key = StorageSet::memory().encrypted(Arc::new(keys)).copy_key().unwrap();
    let mut archiver = followed_with(&parts, &dir, key.clone());
    let path = archiver.open.as_ref().unwrap().path.clone();
    let len = || std::fs::metadata(&path).unwrap().len();
    let first = append(log, 100);
    archiver.step();
    let sound = len();
    let second = append(log, 100);
    archiver.step();
    drop(archiver);
    let whole = std::fs::read(&path).unwrap();
    for torn in sound..=whole.len() as u64 {
        std::fs::write(&path, &whole[..torn as usize]).unwrap();
        let archiver = Archiver::open(&dir, 7, key.clone()).unwrap();
        let (end, left) = if torn < whole.len() as u64 { (first, sound) } else { (second, torn) };
        assert_eq!((archiver.end.unwrap().lsn, len()), (end, left), "{torn} bytes");
    }
    // Another key, and none.
    assert!(matches!(Archiver::open(&dir, 7, None).err(), Some(Error::Open(OpenError::Encryption(_)))));
}

/// Two copies of a database have the same id.
#[test]
fn one_database_at_a_time_writes_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let first = Archiver::open(folder.path(), 7, None).unwrap();
    let refused = Archiver::open(folder.path(), 7, None).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|error| error.contains("in use")));
    drop(first);
    Archiver::open(folder.path(), 7, None).unwrap();
}
