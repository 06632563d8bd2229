//! Encrypted copies: files of backups, and segments of archived redo.
//!
//! | offset | field | size |
//! |---|---|---|
//! | 0 | mark | 8 |
//! | 8 | id of the key of copies | 8 |
//! | 16 | AES key wrap (RFC 3394) of the file's key, by the first half of the key of copies | 40 |
//! | 56 | zeros | 4 |
//! | 60 | CRC-32C of all before | 4 |
//! | 64 | records |
//!
//! A record is the number of bytes in it, u32, the bytes in AES-256-GCM, and the tag, 16 bytes. The nonce of a record
//! is its number in the file, u64, and 4 zeros.
//!
//! Rules
//! 1. A file has a random key, and is written once by one [`Sealer`], which numbers the records: no nonce is used twice
//!    with a key, even after a failed write or a truncated tail.
//! 2. A record decrypts only whole, unchanged and at its place; otherwise the error is [`ErrorKind::InvalidData`]. So a
//!    torn tail is detected. The caller detects missing records at the end.
//! 3. The id of a key does not reveal it: it is the encryption of zeros. All copies of a database have the same id,
//!    independent of the user's key at that time.

use super::key::{EncryptionError, EncryptionKey, random_bytes};
use super::table::{is_encrypted, unlock};
use super::xts::{FILE_KEY_BYTES, FileKey};
use crate::{OpenError, StorageError, mark};
use aes::Aes256;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use aes_gcm::Aes256Gcm;
use aes_gcm::aead::AeadInOut;
use aes_kw::KwAes256;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

const HEAD_BYTES: usize = 64;
const CRC_AT: usize = 60;
const KEY_BYTES: usize = 32;
const WRAPPED_BYTES: usize = KEY_BYTES + aes_kw::IV_LEN;
const WRAPPED_AT: usize = 16;
const LENGTH_BYTES: usize = 4;
const TAG_BYTES: usize = 16;

/// Bytes of a record in a file that is one stream; the last one has the rest.
pub const SEALED_RECORD_BYTES: usize = 64 << 10;

/// Bytes of a file of this many plain bytes, in records of [`SEALED_RECORD_BYTES`].
pub fn sealed_bytes(plain: u64) -> u64 {
    HEAD_BYTES as u64 + plain + plain.div_ceil(SEALED_RECORD_BYTES as u64) * (LENGTH_BYTES + TAG_BYTES) as u64
}

/// The key that encrypts the copies of a database. Clones share it.
#[derive(Clone)]
pub struct CopyKey {
    wrapping: Arc<KwAes256>,
    id: u64,
}

impl CopyKey {
    pub(super) fn new(key: &FileKey) -> CopyKey {
        let half = &key[..FILE_KEY_BYTES / 2];
        let fits = "half of a file's key is a key of AES-256";
        let mut block = Array::default();
        Aes256::new_from_slice(half).expect(fits).encrypt_block(&mut block);
        let id = u64::from_le_bytes(std::array::from_fn(|n| block[n]));
        CopyKey { wrapping: Arc::new(KwAes256::new_from_slice(half).expect(fits)), id: id.max(1) }
    }

    /// The key's id in the heads of files; never 0.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Begins a new file: returns the sealer of its records, and its head.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub fn new_file(&self) -> std::result::Result<(Sealer, [u8; HEAD_BYTES]), StorageError> {
        let key = Zeroizing::new(random_bytes::<KEY_BYTES>()?);
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&mark::SEALED);
        head[8..WRAPPED_AT].copy_from_slice(&self.id.to_le_bytes());
        let wrapped = self.wrapping.wrap_key(&key[..], &mut head[WRAPPED_AT..][..WRAPPED_BYTES]);
        wrapped.expect("a key is whole words, and the head has room for it");
        let crc = crc32c::crc32c(&head[..CRC_AT]);
        head[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        Ok((Sealer { cipher: cipher(&key), next: 0 }, head))
    }

    /// Reads a head; returns the opener of the records after it.
    fn open(&self, from: &mut impl Read) -> Result<Opener> {
        let mut head = [0; HEAD_BYTES];
        from.read_exact(&mut head)?;
        let crc = crc32c::crc32c(&head[..CRC_AT]).to_le_bytes();
        if head[..8] != mark::SEALED || head[CRC_AT..] != crc {
            return Err(invalid("the head of its encrypted bytes does not verify"));
        }
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        let wrapped = &head[WRAPPED_AT..][..WRAPPED_BYTES];
        if head[8..WRAPPED_AT] != self.id.to_le_bytes() || self.wrapping.unwrap_key(wrapped, &mut key[..]).is_err() {
            return Err(invalid("it is encrypted with another key than the files in its folder"));
        }
        Ok(Opener { cipher: cipher(&key), next: 0 })
    }
}

impl std::fmt::Debug for CopyKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CopyKey({:016x})", self.id)
    }
}

fn cipher(key: &[u8; KEY_BYTES]) -> Aes256Gcm {
    Aes256Gcm::new(key.into())
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

fn nonce(number: u64) -> Array<u8, aes::cipher::consts::U12> {
    let mut nonce = Array::default();
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce
}

/// The keys of the copies in some folders, all of which one user's key opens.
#[derive(Debug, Default)]
pub struct CopyKeys {
    keys: Vec<CopyKey>,
    user: Option<EncryptionKey>,
}

impl CopyKeys {
    /// The keys of these folders: the table of one folder opens the copies in another, if they are of one database.
    pub fn of<'a>(folders: impl IntoIterator<Item = &'a Path>, user: Option<&EncryptionKey>) -> CopyKeys {
        let opened = folders.into_iter().filter_map(|dir| unlock(dir, user).ok().flatten());
        CopyKeys { keys: opened.map(|keys| keys.copy_key()).collect(), user: user.cloned() }
    }

    /// The key of an open database's copies, if it is encrypted.
    pub fn one(key: Option<CopyKey>) -> CopyKeys {
        CopyKeys { keys: key.into_iter().collect(), user: None }
    }

    /// The key that a file in `dir` names; `None` for a file that is not encrypted (0).
    ///
    /// # Errors
    /// [`OpenError::Encryption`] says which key is needed, or that the table of keys is missing or damaged.
    pub fn get(&self, id: u64, dir: &Path) -> std::result::Result<Option<&CopyKey>, OpenError> {
        let found = self.keys.iter().find(|key| key.id == id);
        if id == 0 || found.is_some() {
            return Ok(found);
        }
        let table = |reason: &str| EncryptionError::Table { path: dir.join("keys"), reason: reason.into() };
        match (is_encrypted(dir), &self.user) {
            (true, user) => Err(match unlock(dir, user.as_ref()) {
                Err(error) => error,
                Ok(_) => table("it has the keys of other files").into(),
            }),
            (false, None) => Err(EncryptionError::NeedsKey(dir.to_path_buf()).into()),
            (false, Some(_)) => Err(table("it is missing").into()),
        }
    }
}

/// Makes the records of one file, in their order.
pub struct Sealer {
    cipher: Aes256Gcm,
    next: u64,
}

impl Sealer {
    /// Appends the next record, with these bytes, to `into`.
    ///
    /// # Panics
    /// If `plain` is empty or has 4 GiB.
    pub fn seal(&mut self, plain: &[u8], into: &mut Vec<u8>) {
        let len = u32::try_from(plain.len()).ok().filter(|len| *len > 0).expect("a record has a length");
        into.extend_from_slice(&len.to_le_bytes());
        let at = into.len();
        into.extend_from_slice(plain);
        let tag = self.cipher.encrypt_inout_detached(&nonce(self.next), &[], (&mut into[at..]).into());
        into.extend_from_slice(&tag.expect("a record is shorter than GCM allows"));
        self.next += 1;
    }
}

/// Opens the records of one file, in their order.
struct Opener {
    cipher: Aes256Gcm,
    next: u64,
}

impl Opener {
    /// Reads from `from` a record of `len` bytes and its tag, and opens it.
    fn open(&mut self, from: &mut impl Read, len: usize, into: &mut Vec<u8>) -> Result<()> {
        into.clear();
        into.resize(len + TAG_BYTES, 0);
        from.read_exact(into)?;
        let (bytes, tag) = into.split_at_mut(len);
        let tag = Array::try_from(&*tag).expect("a tag has its length");
        let opened = self.cipher.decrypt_inout_detached(&nonce(self.next), &[], bytes.into(), &tag);
        into.truncate(if opened.is_ok() { len } else { 0 });
        opened.map_err(|_| invalid("an encrypted record does not verify"))?;
        self.next += 1;
        Ok(())
    }
}

/// Reads the plain bytes of a copy, encrypted or not.
pub struct CopyReader<R> {
    from: R,
    sealed: Option<Sealed>,
}

/// The state of reading an encrypted copy.
struct Sealed {
    opener: Opener,
    /// The open record, and the number of its bytes that were read.
    record: Vec<u8>,
    read: usize,
    /// Bytes of the file after that record.
    left: u64,
}

impl<R: Read> CopyReader<R> {
    /// Reads the next `left` bytes of `from`, which are encrypted if there is a key.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] for a head that does not verify, or is not of this key; that of `from`.
    pub fn new(mut from: R, left: u64, key: Option<&CopyKey>) -> Result<CopyReader<R>> {
        let Some(key) = key else { return Ok(CopyReader { from, sealed: None }) };
        let opener = key.open(&mut from)?;
        let left = left.saturating_sub(HEAD_BYTES as u64);
        Ok(CopyReader { from, sealed: Some(Sealed { opener, record: Vec::new(), read: 0, left }) })
    }

    /// For an encrypted copy: the bytes of the file after the last opened record.
    pub fn left_behind_records(&self) -> Option<u64> {
        self.sealed.as_ref().map(|sealed| sealed.left)
    }

    /// The source of bytes.
    pub fn get_ref(&self) -> &R {
        &self.from
    }

    /// The source of bytes; its position is after the bytes that were read only if the copy is not encrypted.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.from
    }

    /// Whether the copy is encrypted.
    pub fn is_sealed(&self) -> bool {
        self.sealed.is_some()
    }
}

impl Sealed {
    /// Opens the next record; returns false at the end.
    fn next(&mut self, from: &mut impl Read) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        let mut len = [0; LENGTH_BYTES];
        if self.left < LENGTH_BYTES as u64 {
            return Err(invalid("it ends within an encrypted record"));
        }
        from.read_exact(&mut len)?;
        let len = u32::from_le_bytes(len);
        let all = u64::from(len) + (LENGTH_BYTES + TAG_BYTES) as u64;
        if len == 0 || all > self.left {
            return Err(invalid("it ends within an encrypted record"));
        }
        self.opener.open(from, len as usize, &mut self.record)?;
        (self.read, self.left) = (0, self.left - all);
        Ok(true)
    }
}

impl<R: Read> Read for CopyReader<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let Some(sealed) = &mut self.sealed else { return self.from.read(into) };
        if sealed.read == sealed.record.len() && !sealed.next(&mut self.from)? {
            return Ok(0);
        }
        let record = &sealed.record[sealed.read..];
        let len = record.len().min(into.len());
        into[..len].copy_from_slice(&record[..len]);
        sealed.read += len;
        Ok(len)
    }
}

/// Plain bytes of the records after a head, by their lengths alone: `left` bytes of the file, from its head on. A torn
/// record at the end counts with the bytes that it has.
///
/// # Errors
/// That of `from`.
pub fn plain_bytes(from: &mut (impl Read + std::io::Seek), left: u64) -> Result<u64> {
    let (mut left, mut plain) = (left.saturating_sub(HEAD_BYTES as u64), 0);
    from.seek_relative(HEAD_BYTES as i64)?;
    while left > 0 {
        let mut len = [0; LENGTH_BYTES];
        let around = (LENGTH_BYTES + TAG_BYTES) as u64;
        let within = left.saturating_sub(around).max(1);
        if left < around {
            return Ok(plain + within);
        }
        from.read_exact(&mut len)?;
        let len = u64::from(u32::from_le_bytes(len)).clamp(1, within);
        from.seek_relative((len + TAG_BYTES as u64) as i64)?;
        (plain, left) = (plain + len, left.saturating_sub(len + around));
    }
    Ok(plain)
}

#[cfg(test)]
#[path = "sealed_test.rs"]
mod tests;
