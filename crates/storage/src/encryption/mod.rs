//! Encryption at rest: what is on the disk is of no use without the user's key.
//!
//! `key` is the key of the user (the *master key*), `table` the file with the *data keys* (one for each file of a
//! folder), which the master key wraps, `xts` the cipher of devices, `device` puts it between the engine and a device,
//! `sealed` encrypts copies: files that are written once, from their begin to their end.
//!
//! Rules
//! 1. Every byte of an encrypted set reaches its device through [`EncryptedDevice`], temporary files included, and
//!    every byte of a copy of it goes through a [`Sealer`].
//! 2. A data key is random, belongs to one file of one folder, and is on the disk only wrapped by the master key. A
//!    temporary file has a key of its own, which is nowhere but in memory.
//! 3. The table is durable before the first encrypted byte is written, and is replaced whole: by a new file that is
//!    synced and renamed.
//! 4. Nothing is written where the key does not fit, is missing, or is given for files that are not encrypted.
//!
//! Encryption hides contents from a thief of the disk. That of devices does not show who changed them: a page's
//! checksum finds damage, not forgery. A record of a copy was written by an owner of the key, or does not open.

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
