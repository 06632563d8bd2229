//! Damage of a file, and devices with that damage.

use super::database::{File, Files};
use highwater_storage::{Device, Overlay, Placement, Result, StorageError, StorageSet};
use std::io::{Error, ErrorKind};
use std::sync::Arc;

/// Bytes that replace others in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: File,
    /// Offset of the first byte.
    pub offset: u64,
    /// The present contents.
    pub bytes: Vec<u8>,
}

impl Damage {
    /// Flips one bit of a byte; the bit varies from byte to byte.
    pub fn flip(files: &Files, file: File, offset: u64) -> Damage {
        let byte = files[file as usize][offset as usize];
        Damage { file, offset, bytes: vec![byte ^ 1 << (offset.wrapping_mul(0x9e37_79b9) >> 13 & 7)] }
    }
}

/// A set of devices with the damaged files. Writes stay in the set.
///
/// # Errors
/// Never.
pub fn damaged(files: &Files, damages: &[Damage]) -> Result<StorageSet> {
    let device = |file: File| -> Result<Arc<dyn Device>> {
        let damages = damages.iter().filter(|damage| damage.file == file).cloned().collect();
        let below = Damaged { file, bytes: Arc::clone(&files[file as usize]), damages };
        Ok(Arc::new(Overlay::new(Arc::new(below), false)?))
    };
    Ok(StorageSet::of_devices(device(File::Data)?, device(File::Redo)?, device(File::Doublewrite)?))
}

/// A file that is only read.
struct Damaged {
    file: File,
    bytes: Arc<Vec<u8>>,
    damages: Vec<Damage>,
}

impl Damaged {
    fn error(&self, operation: &'static str, offset: u64, len: usize, kind: ErrorKind) -> StorageError {
        StorageError { operation, device: self.name(), offset, len: len as u64, source: Error::from(kind) }
    }

    fn refuse<T>(&self, operation: &'static str) -> Result<T> {
        Err(self.error(operation, 0, 0, ErrorKind::PermissionDenied))
    }
}

impl Device for Damaged {
    fn name(&self) -> String {
        self.file.name().to_string()
    }

    fn len_bytes(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let (from, to) = (offset as usize, offset as usize + buf.len());
        let Some(whole) = self.bytes.get(from..to) else {
            return Err(self.error("read", offset, buf.len(), ErrorKind::UnexpectedEof));
        };
        buf.copy_from_slice(whole);
        for damage in &self.damages {
            let at = damage.offset as usize;
            let (first, end) = (at.max(from), (at + damage.bytes.len()).min(to));
            if first < end {
                buf[first - from..end - from].copy_from_slice(&damage.bytes[first - at..end - at]);
            }
        }
        Ok(())
    }

    fn set_len_bytes(&self, _len: u64) -> Result<()> {
        self.refuse("set length")
    }

    fn write_at(&self, _offset: u64, _data: &[u8], _placement: Placement) -> Result<()> {
        self.refuse("write")
    }

    fn sync(&self) -> Result<()> {
        self.refuse("sync")
    }

    fn discard(&self, _offset: u64, _len: u64) -> Result<()> {
        self.refuse("discard")
    }

    fn alignment_bytes(&self) -> usize {
        1
    }
}
