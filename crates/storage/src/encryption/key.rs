//! The user's key, and errors of keys.
//!
//! Rules
//! 1. A key is 32 bytes. No message and no `Debug` shows them; dropped ones are overwritten in memory.
//! 2. A key file that users other than its owner may read is refused: its key is not secret. (Not checked on Windows.)

use crate::os::folder::failed;
use crate::os::sys::{fill_random, permissions_of_others};
use crate::{OpenError, StorageError};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const KEY_BYTES: usize = 32;
/// Maximum size of a key file, which has at most 64 digits and a line's end.
const MAX_FILE_BYTES: u64 = 4096;

/// The 256-bit key of the user, which opens an encrypted database. It alone suffices to read the database, and is
/// required.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptionKey(Zeroizing<[u8; KEY_BYTES]>);

impl EncryptionKey {
    /// The key of these bytes, which should be random: of a key management system, or `head -c 32 /dev/urandom`.
    pub fn new(bytes: [u8; KEY_BYTES]) -> EncryptionKey {
        EncryptionKey(Zeroizing::new(bytes))
    }

    /// A new random key.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub fn random() -> Result<EncryptionKey, StorageError> {
        Ok(EncryptionKey(Zeroizing::new(random_bytes()?)))
    }

    /// Reads the key in a file: 32 bytes, or 64 hexadecimal digits, which a line's end may follow. A pipe is read too.
    ///
    /// # Errors
    /// [`EncryptionError::KeyFile`]: the file cannot be read, holds something else, or may be read by others than its
    /// owner.
    pub fn read_file(path: &Path) -> Result<EncryptionKey, EncryptionError> {
        let wrong = |reason: String| EncryptionError::KeyFile { path: path.to_path_buf(), reason };
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let found = file.metadata().map_err(|error| wrong(error.to_string()))?;
        if let Some(reason) = permissions_of_others(&found) {
            return Err(wrong(reason));
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_FILE_BYTES as usize));
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
        let key = parse(&bytes).ok_or_else(|| {
            wrong("it has neither 32 bytes nor 64 hexadecimal digits (head -c 32 /dev/urandom makes a key)".into())
        })?;
        Ok(EncryptionKey(key))
    }

    pub(super) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl std::fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EncryptionKey(..)")
    }
}

fn parse(bytes: &[u8]) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    if let Ok(raw) = bytes.try_into() {
        return Some(Zeroizing::new(raw));
    }
    let digits = bytes.trim_ascii_end();
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(key)
}

/// Random bytes of the operating system.
pub(super) fn random_bytes<const N: usize>() -> Result<[u8; N], StorageError> {
    let mut bytes = [0; N];
    fill_random(&mut bytes).map_err(|source| failed("getrandom", Path::new("the operating system"), source))?;
    Ok(bytes)
}

/// An error of a key, or of the data keys that it should open.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncryptionError {
    /// An unusable key file.
    #[error("key file {}: {reason}", .path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The folder is encrypted, and no key was given.
    #[error("{} is encrypted: its key is needed (--key-file)", .0.display())]
    NeedsKey(PathBuf),
    /// The folder is encrypted, with another key than the one given.
    #[error("{} is encrypted with another key than the one given", .0.display())]
    WrongKey(PathBuf),
    /// A key was given, and the folder is not encrypted.
    #[error(
        "{} is not encrypted, but a key was given: open it without one; to encrypt it, load a dump of it, or restore \
         a backup of it, into a new database with the key. (If it was encrypted, its file \"keys\" is missing.)",
        .0.display()
    )]
    NotEncrypted(PathBuf),
    /// The file with the data keys is damaged, or of another version.
    #[error("{}: {reason}; without it the files in its folder cannot be read: restore it from a copy", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The data keys of devices that are not files are in no table, so the devices have no encrypted copies.
    #[error("{0} is encrypted with keys that are in no file: a backup or an archive of it could not be read again")]
    NoTable(String),
}

impl From<EncryptionError> for OpenError {
    fn from(error: EncryptionError) -> OpenError {
        OpenError::Encryption(error)
    }
}
