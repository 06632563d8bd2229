//! Tests of `table`, and of sets of files with one.

use super::*;
use crate::{AlignedBuf, FlushMethod, MemoryDevice, Placement, SetOptions, StorageSet};
use std::os::unix::fs::PermissionsExt;

const UNIT: usize = 512;

fn keys() -> Arc<DataKeys> {
    Arc::new(DataKeys::random().unwrap())
}

fn read_from(device: &dyn Device, offset: usize, len: usize) -> Vec<u8> {
    let mut buf = AlignedBuf::zeroed(len);
    device.read_at(offset as u64, &mut buf).unwrap();
    buf.to_vec()
}

fn write(device: &dyn Device, offset: usize, data: &[u8]) {
    device.write_at(offset as u64, data, Placement::Other).unwrap();
}

fn key(byte: u8) -> EncryptionKey {
    EncryptionKey::new([byte; 32])
}

fn open(dir: &Path, key: Option<&EncryptionKey>, create: bool) -> Result<StorageSet, OpenError> {
    let encryption_key = key.cloned();
    StorageSet::open(
        dir,
        &SetOptions { flush_method: FlushMethod::Fsync, create, encryption_key, ..SetOptions::default() },
    )
}

/// What of each file of the folder is there.
fn contents(dir: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn create(dir: &Path, key: Option<&EncryptionKey>) {
    let set = open(dir, key, true).unwrap();
    for device in [&set.data, &set.redo, &set.doublewrite] {
        device.set_len_bytes(4096).unwrap();
        device.write_at(0, b"the plain text of a row.".repeat(64)[..UNIT].as_ref(), Placement::Other).unwrap();
        device.sync().unwrap();
    }
}

fn assert_opens(dir: &Path, key: &EncryptionKey) {
    let expected = &b"the plain text of a row.".repeat(64)[..UNIT];
    for is_read_only in [false, true] {
        let set =
            if is_read_only { StorageSet::open_read_only(dir, None, Some(key)) } else { open(dir, Some(key), false) };
        let set = set.unwrap();
        assert!(set.is_encrypted());
        for device in [&set.data, &set.redo, &set.doublewrite] {
            assert_eq!(read_from(&**device, 0, UNIT), expected);
        }
    }
}

#[test]
fn a_folder_is_opened_by_its_key_only_and_nothing_is_written_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Some(&key(1)));
    let before = contents(folder.path());
    assert_eq!(before.len(), 4);
    for (name, bytes) in &before {
        assert!(!bytes.windows(9).any(|part| part == b"plain tex"), "{name:?}");
    }
    for create in [false, true] {
        let error = open(folder.path(), None, create).unwrap_err();
        assert!(matches!(error, OpenError::Encryption(EncryptionError::NeedsKey(_))), "{error}");
        let error = open(folder.path(), Some(&key(2)), create).unwrap_err();
        assert!(matches!(error, OpenError::Encryption(EncryptionError::WrongKey(_))), "{error}");
    }
    let error = StorageSet::open_read_only(folder.path(), None, None).unwrap_err();
    assert!(error.to_string().contains("is encrypted: its key is needed"), "{error}");
    let error = StorageSet::open_read_only(folder.path(), None, Some(&key(2))).unwrap_err();
    assert!(error.to_string().contains("another key"), "{error}");
    assert_eq!(contents(folder.path()), before);
    assert_opens(folder.path(), &key(1));
}

#[test]
fn a_plain_folder_is_not_opened_with_a_key() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), None);
    let before = contents(folder.path());
    for set in
        [open(folder.path(), Some(&key(1)), true), StorageSet::open_read_only(folder.path(), None, Some(&key(1)))]
    {
        let error = set.unwrap_err();
        assert!(matches!(error, OpenError::Encryption(EncryptionError::NotEncrypted(_))), "{error}");
    }
    assert_eq!(contents(folder.path()), before);
    // Nor does a look at a folder without a database leave anything there.
    let empty = tempfile::tempdir().unwrap();
    assert!(matches!(open(empty.path(), Some(&key(1)), false), Err(OpenError::NotFound(_))));
    assert_eq!(contents(empty.path()), []);
}

/// The table is there before any file has contents; a creation that was cut short is done again, with the same key.
#[test]
fn a_creation_that_was_cut_short_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = || ["data", "redo", "doublewrite"].map(|name| std::fs::write(folder.path().join(name), "").unwrap());
    drop(open(folder.path(), Some(&key(1)), true).unwrap());
    let table = std::fs::read(folder.path().join("keys")).unwrap();
    nothing();
    assert!(matches!(open(folder.path(), None, true), Err(OpenError::Encryption(EncryptionError::NeedsKey(_)))));
    create(folder.path(), Some(&key(1)));
    assert_eq!(std::fs::read(folder.path().join("keys")).unwrap(), table);
    assert_opens(folder.path(), &key(1));
    // Cut short before the table had its name.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("keys.new"), &table[..100]).unwrap();
    create(folder.path(), Some(&key(2)));
    assert_opens(folder.path(), &key(2));
}

#[test]
fn a_rotation_changes_the_key_and_no_page() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Some(&key(1)));
    let before = contents(folder.path());
    let error = rotate_key(folder.path(), &key(2), &key(3)).unwrap_err();
    assert!(matches!(error, OpenError::Encryption(EncryptionError::WrongKey(_))), "{error}");
    assert_eq!(contents(folder.path()), before);
    rotate_key(folder.path(), &key(1), &key(2)).unwrap();
    let after = contents(folder.path());
    for ((name, old), (_, new)) in before.iter().zip(&after) {
        assert_eq!(old != new, name == "keys", "{name:?}");
    }
    assert!(matches!(open(folder.path(), Some(&key(1)), false), Err(OpenError::Encryption(_))));
    assert_opens(folder.path(), &key(2));
    // Once more: it has been done.
    rotate_key(folder.path(), &key(1), &key(2)).unwrap();
    assert_eq!(contents(folder.path()), after);
    let set = open(folder.path(), Some(&key(2)), false).unwrap();
    assert!(matches!(rotate_key(folder.path(), &key(2), &key(3)), Err(OpenError::InUse { .. })));
    drop(set);
    let plain = tempfile::tempdir().unwrap();
    create(plain.path(), None);
    let error = rotate_key(plain.path(), &key(1), &key(2)).unwrap_err();
    assert!(matches!(error, OpenError::Encryption(EncryptionError::NotEncrypted(_))), "{error}");
}

/// Of a rotation that was cut short at any byte the old key or the new one opens the folder.
#[test]
fn after_a_rotation_that_was_cut_short_one_of_the_two_keys_opens() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Some(&key(1)));
    let before = std::fs::read(folder.path().join("keys")).unwrap();
    rotate_key(folder.path(), &key(1), &key(2)).unwrap();
    let after = std::fs::read(folder.path().join("keys")).unwrap();
    for len in (0..=after.len()).step_by(29) {
        std::fs::write(folder.path().join("keys"), &before).unwrap();
        std::fs::write(folder.path().join("keys.new"), &after[..len]).unwrap();
        assert_opens(folder.path(), &key(1));
        rotate_key(folder.path(), &key(1), &key(2)).unwrap();
        assert_opens(folder.path(), &key(2));
        assert!(!folder.path().join("keys.new").exists());
    }
}

/// A rotation that cannot write its new table leaves the old one.
#[test]
fn a_rotation_that_cannot_be_written_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Some(&key(1)));
    std::fs::create_dir(folder.path().join("keys.new")).unwrap();
    let error = rotate_key(folder.path(), &key(1), &key(2)).unwrap_err();
    assert!(error.to_string().contains("keys.new"), "{error}");
    std::fs::remove_dir(folder.path().join("keys.new")).unwrap();
    assert_opens(folder.path(), &key(1));
}

#[test]
fn a_damaged_table_is_told_from_a_wrong_key() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Some(&key(1)));
    let path = folder.path().join("keys");
    let sound = std::fs::read(&path).unwrap();
    let refuse = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = open(folder.path(), Some(&key(1)), false).unwrap_err();
        assert!(matches!(error, OpenError::Encryption(EncryptionError::Table { .. })), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        error.to_string()
    };
    for at in 0..sound.len() {
        let mut damaged = sound.clone();
        damaged[at] ^= 4;
        refuse(&damaged);
    }
    (0..sound.len()).step_by(7).for_each(|len| drop(refuse(&sound[..len])));
    refuse(&[&sound[..], &[0]].concat());
    let mut later = sound.clone();
    later[8] = 2;
    assert!(refuse(&later).contains("version 2"));
    std::fs::write(&path, &sound).unwrap();
    assert_opens(folder.path(), &key(1));
}

#[test]
fn a_lost_table_is_named() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Some(&key(1)));
    std::fs::remove_file(folder.path().join("keys")).unwrap();
    let text = open(folder.path(), Some(&key(1)), true).unwrap_err().to_string();
    assert!(text.contains("\"keys\" is missing"), "{text}");
    assert_eq!(contents(folder.path()).len(), 3);
}

#[test]
fn temporary_files_of_an_encrypted_set_are_encrypted() {
    let memory = MemoryDevice::new();
    let made = memory.clone();
    let set = StorageSet::memory().encrypted(keys()).with_temporary(move || Ok(Arc::new(made.clone())));
    let temporary = set.temporary().unwrap();
    temporary.set_len_bytes(UNIT as u64).unwrap();
    write(&*temporary, 0, &[7; UNIT]);
    assert_ne!(memory.image(), [7; UNIT]);
    assert_eq!(read_from(&*temporary, 0, UNIT), [7; UNIT]);
}

#[test]
fn a_set_in_memory_stays_encrypted_after_a_cut() {
    let set = StorageSet::memory().encrypted(keys());
    set.data.set_len_bytes(UNIT as u64).unwrap();
    write(&*set.data, 0, &[7; UNIT]);
    set.data.sync().unwrap();
    let left = set.cut(3);
    assert!(left.is_encrypted());
    assert_eq!(read_from(&*left.data, 0, UNIT), [7; UNIT]);
    assert_ne!(left.memory_devices().unwrap()[0].image(), [7; UNIT]);
    let over = left.overlaid().unwrap();
    assert_eq!(read_from(&*over.data, 0, UNIT), [7; UNIT]);
}

// Key files.

#[test]
fn a_key_file_has_bytes_or_digits_and_is_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    let with = |bytes: &[u8], mode: u32| {
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        EncryptionKey::read_file(&path).map_err(|error| error.to_string())
    };
    let expected = EncryptionKey::new(std::array::from_fn(|at| at as u8 * 7));
    let digits: String = (0..32).map(|at| format!("{:02x}", at as u8 * 7)).collect();
    assert_eq!(with(expected.bytes(), 0o600).unwrap(), expected);
    assert_eq!(with(expected.bytes(), 0o400).unwrap(), expected);
    for text in [digits.clone(), digits.to_uppercase(), format!("{digits}\n"), format!("{digits}\r\n")] {
        assert_eq!(with(text.as_bytes(), 0o600).unwrap(), expected, "{text:?}");
    }
    for mode in [0o644, 0o640, 0o604, 0o620, 0o601] {
        let text = with(expected.bytes(), mode).unwrap_err();
        assert!(text.contains("others than its owner") && text.contains("chmod 600"), "{text}");
    }
    for wrong in ["", "short", &digits[1..], &format!("{}g", &digits[1..]), &format!("{digits}00"), &"0".repeat(9999)] {
        let text = with(wrong.as_bytes(), 0o600).unwrap_err();
        assert!(text.contains("neither 32 bytes nor 64 hexadecimal digits"), "{text}");
    }
    std::fs::remove_file(&path).unwrap();
    let text = EncryptionKey::read_file(&path).unwrap_err().to_string();
    assert!(text.starts_with("key file") && text.contains("No such file"), "{text}");
}

#[test]
fn a_key_is_shown_nowhere() {
    let shown = format!("{:?} {:?}", key(0xab), DataKeys::random().unwrap());
    assert_eq!(shown, "EncryptionKey(..) DataKeys(..)");
    assert_ne!(EncryptionKey::random().unwrap(), EncryptionKey::random().unwrap());
}
