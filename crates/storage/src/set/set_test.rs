//! Tests of `set`.

use super::*;
use crate::{Device, FlushMethod, OpenError, Placement};
use std::path::Path;

fn open(dir: &Path, create: bool) -> Result<StorageSet, OpenError> {
    StorageSet::open_dir(dir, None, FlushMethod::Fsync, create)
}

fn fill(set: &StorageSet) {
    for device in [&set.data, &set.redo, &set.doublewrite] {
        device.set_len_bytes(4096).unwrap();
    }
}

fn made(dir: &Path) {
    fill(&open(dir, true).unwrap());
}

#[test]
fn a_created_set_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("a/b");
    made(&dir);
    let set = open(&dir, false).unwrap();
    assert_eq!(set.data.len_bytes().unwrap(), 4096);
}

#[test]
fn an_interrupted_creation_can_be_done_again() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), true).unwrap());
    std::fs::remove_file(folder.path().join("redo")).unwrap();
    assert!(matches!(open(folder.path(), false), Err(OpenError::NotFound(_))));
    assert!(!folder.path().join("redo").exists());
    made(folder.path());
    open(folder.path(), false).unwrap();
}

#[test]
fn the_folder_is_locked_until_the_last_clone_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    made(folder.path());
    let set = open(folder.path(), false).unwrap();
    let clone = set.clone();
    drop(set);
    assert!(matches!(open(folder.path(), true), Err(OpenError::InUse { .. })));
    drop(clone);
    open(folder.path(), false).unwrap();
}

#[test]
fn readers_share_a_folder_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = StorageSet::open_read_only(folder.path(), None, None).unwrap_err();
    assert!(matches!(nothing, OpenError::NotFound(_)), "{nothing}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    made(folder.path());
    let (one, two) = (
        StorageSet::open_read_only(folder.path(), None, None).unwrap(),
        StorageSet::open_read_only(folder.path(), None, None),
    );
    assert!(matches!(open(folder.path(), false), Err(OpenError::InUse { .. })));
    for device in [&one.data, &one.redo, &one.doublewrite] {
        device.write_at(0, &[7; 8192], Placement::Other).unwrap();
        device.sync().unwrap();
    }
    assert_eq!((one.data.len_bytes().unwrap(), two.unwrap().data.len_bytes().unwrap()), (8192, 4096));
    drop(one);
    for name in ["data", "redo", "doublewrite"] {
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), vec![0; 4096]);
    }
    let writer = open(folder.path(), false).unwrap();
    assert!(matches!(StorageSet::open_read_only(folder.path(), None, None), Err(OpenError::InUse { .. })));
    drop(writer);
}

#[test]
fn the_log_folder_is_locked_too() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two, log) = (folder.path().join("1"), folder.path().join("2"), folder.path().join("log"));
    let set = StorageSet::open_dir(&one, Some(&log), FlushMethod::Direct, true).unwrap();
    assert!(log.join("redo").exists() && !one.join("redo").exists());
    let error = StorageSet::open_dir(&two, Some(&log), FlushMethod::Direct, true).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    fill(&set);
    drop(set);
    let error = open(&one, false).unwrap_err();
    assert!(matches!(&error, OpenError::Incomplete { missing, .. } if missing.ends_with("redo")), "{error}");
    StorageSet::open_dir(&one, Some(&log), FlushMethod::Direct, false).unwrap();
    StorageSet::open_dir(&one, Some(&one.join(".")), FlushMethod::Direct, false).unwrap_err();
}

#[test]
fn a_missing_file_is_named() {
    for name in ["data", "redo", "doublewrite"] {
        let folder = tempfile::tempdir().unwrap();
        made(folder.path());
        std::fs::remove_file(folder.path().join(name)).unwrap();
        for create in [false, true] {
            let error = open(folder.path(), create).unwrap_err();
            assert!(matches!(&error, OpenError::Incomplete { missing, .. } if missing.ends_with(name)), "{error}");
            assert!(!folder.path().join(name).exists());
        }
    }
}

#[test]
fn other_files_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    made(folder.path());
    open(folder.path(), true).unwrap();
    assert_eq!(std::fs::read(folder.path().join("notes.txt")).unwrap(), b"mine");
}

#[test]
fn what_is_no_folder_is_said_to_be_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        for create in [false, true] {
            let error = open(&path, create).unwrap_err();
            assert!(matches!(error, OpenError::NotAFolder(_)), "{error}");
        }
    }
    let error = open(&folder.path().join("none"), false).unwrap_err();
    assert!(matches!(error, OpenError::NotFound(_)), "{error}");
    assert!(!folder.path().join("none").exists());
}

#[test]
fn a_folder_without_write_permission_is_an_error() {
    let unwritable = Path::new("/proc/highwater-test");
    let error = open(unwritable, true).unwrap_err();
    assert!(error.to_string().contains("/proc"), "{error}");
}

#[test]
fn a_set_in_memory_survives_a_cut_as_its_devices_do() {
    let set = StorageSet::memory();
    set.data.set_len_bytes(512).unwrap();
    set.data.write_at(0, &[1; 512], Placement::Other).unwrap();
    set.data.sync().unwrap();
    set.redo.set_len_bytes(512).unwrap();
    let lens: std::collections::BTreeSet<u64> = (0..50).map(|s| set.cut(s).redo.len_bytes().unwrap()).collect();
    assert_eq!(lens, [0, 512].into());
    assert!((0..50).all(|s| set.cut(s).data.len_bytes().unwrap() == 512));
}

#[test]
fn a_wrapped_set_keeps_its_memory() {
    let faults = crate::Faults::new();
    let set = StorageSet::memory();
    let wrapped = set.map(|device| faults.wrap(device));
    wrapped.data.set_len_bytes(512).unwrap();
    assert_eq!(set.data.len_bytes().unwrap(), 512);
    assert_eq!(wrapped.memory_devices().unwrap()[0].len_bytes().unwrap(), 512);
    assert_eq!(faults.changes(), 1);
}
