//! The device between the engine and a device with encrypted bytes.
//!
//! Rules
//! 1. It works on whole units of 512 bytes and promises that alignment, so no write needs a read before it or changes a
//!    neighboring byte. `xts` describes units of zeros.
//! 2. A unit is written whole, and no power cut tears it: bytes of an earlier write that share a unit with later ones
//!    (redo appended to the last block) are as safe as without encryption. Hence units are not larger.
//! 3. A batch stays one batch, and the promises are those of the device below.
//! 4. A copy is encrypted; the caller's bytes do not change. The memory of copies is kept for the next call, up to
//!    [`MAX_KEPT_BUFFERS`] of [`MAX_KEPT_BYTES`].

use super::xts::{FileKey, UNIT_BYTES, Xts, random_key};
use crate::{AlignedBuf, Device, Placement, Read, ReadCallback, Result, StorageError, Write};
use parking_lot::Mutex;
use std::io::{Error, ErrorKind};
use std::sync::Arc;

/// Buffers kept for later copies.
const MAX_KEPT_BUFFERS: usize = 4;
/// Maximum size of a kept buffer.
const MAX_KEPT_BYTES: usize = 2 << 20;

/// Wraps a device on which everything is encrypted.
pub struct EncryptedDevice {
    inner: Arc<dyn Device>,
    xts: Xts,
    buffers: Mutex<Vec<AlignedBuf>>,
}

impl EncryptedDevice {
    pub(super) fn wrap(inner: Arc<dyn Device>, key: &FileKey) -> Arc<dyn Device> {
        Arc::new(EncryptedDevice { inner, xts: Xts::new(key), buffers: Mutex::default() })
    }

    /// Wraps a new temporary device: its random key is only in memory.
    ///
    /// # Errors
    /// The operating system has no random bytes.
    pub fn temporary(inner: Arc<dyn Device>) -> Result<Arc<dyn Device>> {
        Ok(EncryptedDevice::wrap(inner, &random_key()?))
    }

    fn check(&self, operation: &'static str, offset: u64, len: u64) -> Result<()> {
        let unit = UNIT_BYTES as u64;
        if offset.is_multiple_of(unit) && len.is_multiple_of(unit) {
            return Ok(());
        }
        let reason = format!("an encrypted file is used in whole units of {unit} bytes");
        let source = Error::new(ErrorKind::InvalidInput, reason);
        Err(StorageError { operation, device: self.name(), offset, len, source })
    }

    /// Calls `with` with a buffer of this many bytes, of any contents.
    fn with_buffer<R>(&self, len: usize, with: impl FnOnce(&mut [u8]) -> R) -> R {
        let kept = self.buffers.lock().pop().filter(|buffer| buffer.len() >= len);
        let mut buffer = kept.unwrap_or_else(|| AlignedBuf::zeroed(len.next_power_of_two()));
        let result = with(&mut buffer[..len]);
        let mut buffers = self.buffers.lock();
        if buffers.len() < MAX_KEPT_BUFFERS && buffer.len() <= MAX_KEPT_BYTES {
            buffers.push(buffer);
        }
        result
    }

    fn encrypt(&self, offset: u64, plain: &[u8], into: &mut [u8]) {
        into.copy_from_slice(plain);
        self.xts.encrypt(offset, into);
    }
}

impl Device for EncryptedDevice {
    crate::pass_on!(all but sizes);

    /// The length without an incomplete unit at the end, which cannot be decrypted.
    fn len_bytes(&self) -> Result<u64> {
        Ok(self.inner.len_bytes()? / UNIT_BYTES as u64 * UNIT_BYTES as u64)
    }

    fn alignment_bytes(&self) -> usize {
        self.inner.alignment_bytes().max(UNIT_BYTES)
    }

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        self.check("set length", 0, len)?;
        self.inner.set_len_bytes(len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.check("read", offset, buf.len() as u64)?;
        self.inner.read_at(offset, buf)?;
        self.xts.decrypt(offset, buf);
        Ok(())
    }

    /// The device below reads into a temporary buffer; the completion callback of each read decrypts it into the
    /// caller's buffer.
    fn read_batch(&self, reads: &mut [Read<'_>], done: &mut ReadCallback<'_>) {
        let is_whole = |read: &Read<'_>| self.check("read", read.offset, read.buf.len() as u64).is_ok();
        if !reads.iter().all(is_whole) {
            for (index, read) in reads.iter_mut().enumerate() {
                let result = self.read_at(read.offset, read.buf);
                done(index, result.map(|()| &*read.buf));
            }
            return;
        }
        self.with_buffer(reads.iter().map(|read| read.buf.len()).sum(), |mut rest| {
            let mut below = Vec::with_capacity(reads.len());
            for read in reads.iter() {
                let (buf, behind) = std::mem::take(&mut rest).split_at_mut(read.buf.len());
                below.push(Read { offset: read.offset, buf });
                rest = behind;
            }
            self.inner.read_batch(&mut below, &mut |index, result| {
                let Read { offset, buf } = &mut reads[index];
                let decrypted = result.map(|encrypted| {
                    buf.copy_from_slice(encrypted);
                    self.xts.decrypt(*offset, buf);
                    &**buf
                });
                done(index, decrypted);
            });
        });
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> Result<()> {
        self.check("write", offset, data.len() as u64)?;
        self.with_buffer(data.len(), |encrypted| {
            self.encrypt(offset, data, encrypted);
            self.inner.write_at(offset, encrypted, placement)
        })
    }

    fn write_batch(&self, writes: &[Write<'_>]) -> Result<()> {
        writes.iter().try_for_each(|write| self.check("write", write.offset, write.data.len() as u64))?;
        self.with_buffer(writes.iter().map(|write| write.data.len()).sum(), |mut rest| {
            let mut encrypted = Vec::with_capacity(writes.len());
            for write in writes {
                let (into, behind) = std::mem::take(&mut rest).split_at_mut(write.data.len());
                self.encrypt(write.offset, write.data, into);
                encrypted.push(Write { data: into, ..*write });
                rest = behind;
            }
            self.inner.write_batch(&encrypted)
        })
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.check("reserve", offset, len)?;
        self.inner.reserve(offset, len)
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.check("discard", offset, len)?;
        self.inner.discard(offset, len)
    }
}

#[cfg(test)]
#[path = "device_test.rs"]
mod tests;
