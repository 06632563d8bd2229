//! The file `keys` of an encrypted folder: the data key of each file, wrapped by the user's key.
//!
//! | offset | field | size |
//! |---|---|---|
//! | 0 | mark | 8 |
//! | 8 | version, 1 | 4 |
//! | 12 | number of keys | 4 |
//! | 16 | number of changes of the user's key | 8 |
//! | 24 | AES key wrap (RFC 3394) of: the 8 bytes before, each key in the order of [`SetFile`] | 16 + 64 n |
//! | | CRC-32C of all before | 4 |
//!
//! Rules
//! 1. A folder is encrypted if it has this file. It is written once, in an empty folder, and then only replaced by
//!    [`rotate_key`]; it is never removed.
//! 2. It is replaced whole: a new file is written, synced and renamed, then the folder is synced. A crash leaves the
//!    old file or the new one, and possibly a `keys.new`, which is never read and which the next change overwrites.
//! 3. The checksum distinguishes a damaged file from a wrong key; the key wrap alone does not.
//! 4. A change of the user's key does not change the data keys: no page is rewritten. (An owner of the data keys can
//!    still read; to change them, load the database into another folder.)

use super::device::EncryptedDevice;
use super::key::{EncryptionError, EncryptionKey};
use super::sealed::CopyKey;
use super::xts::{FILE_KEY_BYTES, FileKey, random_key};
use crate::mark;
use crate::os::folder::{self, Access, failed};
use crate::{Device, OpenError, StorageError};
use aes::cipher::KeyInit;
use aes_kw::KwAes256;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

const NAME: &str = "keys";
/// Name of the next table until it is complete.
const NEW_NAME: &str = "keys.new";
const VERSION: u32 = 1;
const KEYS: usize = SetFile::ALL.len();
/// Bytes before the wrapped keys.
const HEADER_BYTES: usize = 24;
/// Number of changes, then the keys.
const PLAIN_BYTES: usize = 8 + KEYS * FILE_KEY_BYTES;
/// Bytes that the key wrap adds.
const WRAPPING_BYTES: usize = aes_kw::IV_LEN;
const CRC_AT: usize = HEADER_BYTES + PLAIN_BYTES + WRAPPING_BYTES;
const TABLE_BYTES: usize = CRC_AT + 4;

/// A file, or kind of files, with a data key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetFile {
    /// `data`.
    Data,
    /// `redo`.
    Redo,
    /// `doublewrite`.
    Doublewrite,
    /// Backups and archived redo: their files have keys of their own, which this one wraps ([`CopyKey`]).
    Copies,
}

crate::names!(SetFile { Data => "data", Redo => "redo", Doublewrite => "doublewrite", Copies => "copies" });

/// The data keys of a folder.
pub struct DataKeys {
    /// Number of changes of the user's key.
    changes: u64,
    keys: [FileKey; KEYS],
    /// For devices that are not files: the table that files would have.
    table: Option<KeyTable>,
}

/// The bytes of a table. They are copied to a folder of encrypted copies, so that the user's key opens these.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyTable([u8; TABLE_BYTES]);

impl KeyTable {
    /// The key table of the folder `dir`, if it is encrypted.
    pub(crate) fn of(dir: &Path) -> Result<Option<KeyTable>, OpenError> {
        Ok(read(dir)?.map(KeyTable))
    }

    /// Makes this the table of the folder `dir`, durably. The folder has copies that are encrypted with these keys.
    ///
    /// # Errors
    /// An I/O error.
    pub fn put_into(&self, dir: &Path) -> Result<(), OpenError> {
        match read(dir) {
            Ok(Some(table)) if table == self.0 => Ok(()),
            _ => replace(dir, &self.0),
        }
    }
}

impl std::fmt::Debug for KeyTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyTable(..)")
    }
}

impl DataKeys {
    /// New random keys: for devices that are not files.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub fn random() -> Result<DataKeys, StorageError> {
        let keys = [random_key()?, random_key()?, random_key()?, random_key()?];
        Ok(DataKeys { changes: 0, keys, table: None })
    }

    /// The keys of these bytes, in the order of [`SetFile`]: for a program that keeps the data keys itself. They must
    /// be random, and not be used for anything else.
    pub fn of(keys: [[u8; FILE_KEY_BYTES]; KEYS]) -> DataKeys {
        DataKeys { changes: 0, keys: keys.map(Zeroizing::new), table: None }
    }

    /// These keys with a table in memory, which `key` opens: without one, devices that are not files have no copies.
    pub fn with_table(mut self, key: &EncryptionKey) -> DataKeys {
        self.table = Some(KeyTable(self.encode(key)));
        self
    }

    /// The table in memory.
    pub(crate) fn table(&self) -> Option<&KeyTable> {
        self.table.as_ref()
    }

    /// The key of copies.
    pub fn copy_key(&self) -> CopyKey {
        CopyKey::new(&self.keys[SetFile::Copies as usize])
    }

    /// Wraps `device` with the encryption of `file`.
    pub fn wrap(&self, file: SetFile, device: Arc<dyn Device>) -> Arc<dyn Device> {
        EncryptedDevice::wrap(device, &self.keys[file as usize])
    }

    /// The table, wrapped.
    fn encode(&self, key: &EncryptionKey) -> [u8; TABLE_BYTES] {
        let changes = self.changes.to_le_bytes();
        let mut plain = Zeroizing::new([0; PLAIN_BYTES]);
        plain[..8].copy_from_slice(&changes);
        for (into, key) in plain[8..].chunks_exact_mut(FILE_KEY_BYTES).zip(&self.keys) {
            into.copy_from_slice(&key[..]);
        }
        let mut table = [0; TABLE_BYTES];
        table[..8].copy_from_slice(&mark::KEYS);
        table[8..12].copy_from_slice(&VERSION.to_le_bytes());
        table[12..16].copy_from_slice(&(KEYS as u32).to_le_bytes());
        table[16..24].copy_from_slice(&changes);
        let wrapped = wrapping(key).wrap_key(&plain[..], &mut table[HEADER_BYTES..CRC_AT]);
        wrapped.expect("the keys are whole words, and the table has room for them");
        let crc = crc32c::crc32c(&table[..CRC_AT]);
        table[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        table
    }

    /// The keys of a sound table; `None` if another key wrapped them.
    fn decode(table: &[u8; TABLE_BYTES], key: &EncryptionKey) -> Option<DataKeys> {
        let mut plain = Zeroizing::new([0; PLAIN_BYTES]);
        wrapping(key).unwrap_key(&table[HEADER_BYTES..CRC_AT], &mut plain[..]).ok()?;
        let (changes, keys) = plain.split_first_chunk()?;
        let mut keys = keys.chunks_exact(FILE_KEY_BYTES).map(|key| Zeroizing::new(key.try_into().expect("whole keys")));
        let keys = std::array::from_fn(|_| keys.next().expect("as many keys as files"));
        Some(DataKeys { changes: u64::from_le_bytes(*changes), keys, table: None })
    }
}

impl std::fmt::Debug for DataKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DataKeys(..)")
    }
}

fn wrapping(key: &EncryptionKey) -> KwAes256 {
    KwAes256::new(key.bytes().into())
}

/// The state of a folder that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// The folder is empty: it becomes encrypted if there is a key.
    New,
    /// The folder has files.
    Existing,
}

/// Whether the files in this folder are encrypted.
pub fn is_encrypted(dir: &Path) -> bool {
    std::fs::symlink_metadata(dir.join(NAME)).is_ok()
}

/// The data keys of the folder `dir`, which `key` opens; `None` for a folder that is not encrypted.
///
/// # Errors
/// [`OpenError::Encryption`] for a key that does not fit, is missing, or is not needed, and for a damaged table.
pub fn unlock(dir: &Path, key: Option<&EncryptionKey>) -> Result<Option<DataKeys>, OpenError> {
    keys_for(dir, key, Opening::Existing)
}

/// As [`unlock`]; a new folder gets keys if `key` is given. The caller has locked the folder.
pub(crate) fn keys_for(
    dir: &Path,
    key: Option<&EncryptionKey>,
    opening: Opening,
) -> Result<Option<DataKeys>, OpenError> {
    match (read(dir)?, key, opening) {
        (None, None, _) => Ok(None),
        (None, Some(_), Opening::Existing) => Err(EncryptionError::NotEncrypted(dir.to_path_buf()).into()),
        (Some(_), None, _) => Err(EncryptionError::NeedsKey(dir.to_path_buf()).into()),
        (Some(table), Some(key), _) => match DataKeys::decode(&table, key) {
            Some(keys) => Ok(Some(keys)),
            None => Err(EncryptionError::WrongKey(dir.to_path_buf()).into()),
        },
        (None, Some(key), Opening::New) => {
            let keys = DataKeys::random()?;
            replace(dir, &keys.encode(key))?;
            Ok(Some(keys))
        }
    }
}

/// Makes `new` the key that opens the encrypted folder `dir`, which no process may have open; `old` does not open it
/// any more. Takes a moment: the data keys stay, and no page is written again. After a crash, or an error, one of the
/// two keys opens the folder, and the same call may be repeated.
///
/// # Errors
/// [`OpenError::Encryption`] if the folder is not encrypted, or with another key; [`OpenError::InUse`]; an I/O error.
pub fn rotate_key(dir: &Path, old: &EncryptionKey, new: &EncryptionKey) -> Result<(), OpenError> {
    let _locked = folder::lock(dir, Access::Write)?;
    rotate_key_of_locked(dir, old, new)
}

/// As [`rotate_key`], of a folder that the caller has locked.
pub(crate) fn rotate_key_of_locked(dir: &Path, old: &EncryptionKey, new: &EncryptionKey) -> Result<(), OpenError> {
    let table = read(dir)?.ok_or_else(|| EncryptionError::NotEncrypted(dir.to_path_buf()))?;
    match DataKeys::decode(&table, old) {
        Some(keys) => replace(dir, &DataKeys { changes: keys.changes + 1, ..keys }.encode(new)),
        // An earlier call may have been cut short after its last step but one.
        None if DataKeys::decode(&table, new).is_some() => folder::sync(dir),
        None => Err(EncryptionError::WrongKey(dir.to_path_buf()).into()),
    }
}

/// The table of the folder, if there is one.
fn read(dir: &Path) -> Result<Option<[u8; TABLE_BYTES]>, OpenError> {
    let path = dir.join(NAME);
    let mut bytes = Vec::with_capacity(TABLE_BYTES + 1);
    let read = File::open(&path).and_then(|file| file.take(TABLE_BYTES as u64 + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => check(&bytes).map(Some).map_err(|reason| EncryptionError::Table { path, reason }.into()),
        Err(error) if error.kind() == ErrorKind::NotFound && !is_encrypted(dir) => Ok(None),
        Err(error) => Err(failed("read", &path, error).into()),
    }
}

/// Verifies a table: complete, undamaged and of this version. The error says what is wrong.
fn check(bytes: &[u8]) -> Result<[u8; TABLE_BYTES], String> {
    if !bytes.starts_with(&mark::KEYS) {
        return Err("it is not a table of keys".into());
    }
    match bytes.get(8..12).map(|version| u32::from_le_bytes(version.try_into().expect("4 bytes"))) {
        Some(VERSION) | None => {}
        Some(other) => return Err(format!("it has version {other}, this program reads {VERSION}")),
    }
    let table: [u8; TABLE_BYTES] =
        bytes.try_into().map_err(|_| format!("it is damaged: {TABLE_BYTES} bytes are expected"))?;
    let crc = u32::from_le_bytes(table[CRC_AT..].try_into().expect("4 bytes"));
    let is_sound = crc32c::crc32c(&table[..CRC_AT]) == crc && table[12..16] == (KEYS as u32).to_le_bytes();
    if is_sound { Ok(table) } else { Err("it is damaged: its checksum is wrong".into()) }
}

/// Puts the table in its place, durably (rule 2).
fn replace(dir: &Path, table: &[u8; TABLE_BYTES]) -> Result<(), OpenError> {
    let (new, path): (PathBuf, PathBuf) = (dir.join(NEW_NAME), dir.join(NAME));
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(table)?;
        file.sync_all()
    });
    written.map_err(|source| failed("write", &new, source))?;
    std::fs::rename(&new, &path).map_err(|source| failed("rename", &new, source))?;
    folder::sync(dir)
}

#[cfg(test)]
#[path = "table_test.rs"]
mod tests;
