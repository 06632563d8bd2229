//! Keys of encrypted databases. The storage's file sets encrypt; the engine only passes the key with which a set is
//! opened.
//!
//! Rules
//! 1. Outside its file set an encrypted database writes only backups and archived redo, which are encrypted too.
//! 2. A key is read once, at the opening, and not kept.

use super::database::Database;
use crate::error::Result;
use highwater_storage::EncryptionKey;
use std::path::Path;

/// Makes `new` the key of the encrypted database in the folder `dir`, which no process may have open; `old` does not
/// open it any more. This takes a moment, for any size: `old` and `new` wrap the keys with which the files are
/// encrypted, and those stay. After a crash or an error one of the two keys opens the database, and the same call may
/// be repeated. [`Database::rotate_key`] does it while the database is open.
///
/// ```
/// use highwater::{Database, EncryptionKey, Options, rotate_key};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let folder = dir.path();
/// let (old, new) = (EncryptionKey::new([1; 32]), EncryptionKey::new([2; 32])); // random ones in a program
/// let with = |key: &EncryptionKey| Options { encryption_key: Some(key.clone()), ..Options::default() };
/// Database::open(folder, with(&old))?.close()?; // a new database, encrypted
/// rotate_key(folder, &old, &new)?;
/// assert!(Database::open(folder, with(&old)).is_err());
/// Database::open(folder, with(&new))?.close()?;
/// # Ok::<(), highwater::Error>(())
/// ```
///
/// # Errors
/// [`Error::Open`](crate::Error::Open): the database is not encrypted, or with another key; it is open; an I/O error.
pub fn rotate_key(dir: impl AsRef<Path>, old: &EncryptionKey, new: &EncryptionKey) -> Result<()> {
    Ok(highwater_storage::rotate_key(dir.as_ref(), old, new)?)
}

impl Database {
    /// Whether the files of this database are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.inner.storage.is_encrypted()
    }

    /// Changes the key of this open, encrypted database to `new`, as [`rotate_key`] does for a closed one: transactions
    /// continue, and the next opening needs `new`. So does the archive of its redo, if it is open with one.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) if the database is only read; [`Error::Open`](crate::Error::Open): it is
    /// not encrypted, or with another key than `old`, or is not in a folder; an I/O error.
    pub fn rotate_key(&self, old: &EncryptionKey, new: &EncryptionKey) -> Result<()> {
        self.check_writable()?;
        let _one_at_a_time = self.inner.options_change.lock();
        let storage = &self.inner.storage;
        storage.rotate_key(old, new)?;
        match (&self.inner.archiving, storage.copy_key()?) {
            (Some(archiving), Some((_, table))) => archiving.put_keys(&table),
            _ => Ok(()),
        }
    }
}
