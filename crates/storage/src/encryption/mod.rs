//! Encryption at rest: the contents of the disk are unreadable without the user's key.
//!
//! `key` is the key of the user (the *master key*), `table` the file with the *data keys* (one for each file of a
//! folder), which the master key wraps, `xts` the cipher of devices, `device` puts it between the engine and a device,
//! `sealed` encrypts copies: files that are written once, from their begin to their end.
//!
//! Rules
//! 1. Every byte of an encrypted set reaches its device through [`EncryptedDevice`], temporary files included, and
//!    every byte of a copy of it goes through a [`Sealer`].
//! 2. A data key is random, belongs to one file of one folder, and is on the disk only wrapped by the master key. A
//!    temporary file has a separate key, which is only in memory.
//! 3. The table is durable before the first encrypted byte is written, and is replaced whole: by a new file that is
//!    synced and renamed.
//! 4. If the key is wrong, missing, or given for files that are not encrypted, nothing is written.
//!
//! Encryption hides contents from a thief of the disk. The encryption of devices does not authenticate: a page's
//! checksum detects damage, not forgery. A record of a copy was written by an owner of the key, or does not decrypt.

mod device;
mod key;
mod sealed;
mod table;
mod xts;

pub use device::EncryptedDevice;
pub use key::{EncryptionError, EncryptionKey};
pub use sealed::{CopyKey, CopyKeys, CopyReader, SEALED_RECORD_BYTES, Sealer, plain_bytes, sealed_bytes};
pub use table::{DataKeys, KeyTable, SetFile, is_encrypted, rotate_key, unlock};
pub(crate) use table::{Opening, keys_for, rotate_key_of_locked};
