//! A read-only device with changes kept in an overlay, so that a read-only database can be recovered.
//!
//! Rules
//! 1. Nothing but reads reaches the device below.
//! 2. Changed blocks are kept in memory up to [`MEMORY_BYTES`], all others in a temporary file. If that cannot be
//!    created or written, the write is an error; earlier writes stay readable.
//! 3. Changes are lost with the last handle; `sync` promises nothing.
//! 4. Over an encrypted device the temporary file is encrypted too.
//! 5. A read holds the lock shared for its whole duration, so only writes wait for reads.

use crate::{Device, EncryptedDevice, FileDevice, FlushMethod, Placement, Result, StorageError};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a block.
const BLOCK_BYTES: u64 = 4096;

/// Changed blocks in memory.
const MEMORY_BYTES: u64 = 32 << 20;

/// Changes over a device that is only read.
pub struct Overlay {
    below: Arc<dyn Device>,
    memory_bytes: u64,
    /// Folder of the temporary file.
    folder: PathBuf,
    changes: RwLock<Changes>,
}

/// The copy of a changed block.
enum Kept {
    Memory(Box<[u8]>),
    /// At this block of the temporary file.
    File(u64),
}

/// The temporary file.
#[derive(Default)]
struct Spill {
    file: Option<Arc<dyn Device>>,
    is_encrypted: bool,
    blocks: u64,
    /// Free blocks of the temporary file.
    free: Vec<u64>,
}

struct Changes {
    len: u64,
    /// Bytes of the device below that are still visible. Truncation reduces it.
    below_len: u64,
    /// Changed blocks by number.
    blocks: HashMap<u64, Kept>,
    in_memory: u64,
    spill: Spill,
}

impl Overlay {
    /// An overlay without changes. Blocks that do not fit in memory go to the folder of large temporary files
    /// (`TMPDIR`, else `/var/tmp`), and are encrypted there if `is_encrypted`.
    ///
    /// # Errors
    /// The device below does not report its length.
    pub fn new(below: Arc<dyn Device>, is_encrypted: bool) -> Result<Overlay> {
        let folder = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from);
        Overlay::with_memory(below, is_encrypted, MEMORY_BYTES, folder)
    }

    fn with_memory(below: Arc<dyn Device>, is_encrypted: bool, memory_bytes: u64, folder: PathBuf) -> Result<Overlay> {
        let len = below.len_bytes()?;
        let spill = Spill { is_encrypted, ..Spill::default() };
        let changes = Changes { len, below_len: len, blocks: HashMap::new(), in_memory: 0, spill };
        Ok(Overlay { below, memory_bytes, folder, changes: RwLock::new(changes) })
    }

    /// Bytes of memory that changed blocks take.
    pub fn memory_bytes(&self) -> u64 {
        self.changes.read().in_memory * BLOCK_BYTES
    }

    fn error(&self, operation: &'static str, offset: u64, len: usize, kind: ErrorKind) -> StorageError {
        StorageError { operation, device: self.name(), offset, len: len as u64, source: Error::from(kind) }
    }

    /// Reads from the device below; zeros where it is not visible.
    fn read_below(&self, changes: &Changes, offset: u64, buf: &mut [u8]) -> Result<()> {
        let there = changes.below_len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let (old, new) = buf.split_at_mut(there);
        new.fill(0);
        if old.is_empty() { Ok(()) } else { self.below.read_at(offset, old) }
    }

    /// Writes a part of the block.
    fn write_part(&self, changes: &mut Changes, number: u64, start: usize, part: &[u8]) -> Result<()> {
        if let Some(Kept::Memory(block)) = changes.blocks.get_mut(&number) {
            block[start..start + part.len()].copy_from_slice(part);
            return Ok(());
        }
        let mut block = vec![0; BLOCK_BYTES as usize].into_boxed_slice();
        if part.len() < block.len() {
            match changes.blocks.get(&number) {
                Some(Kept::File(at)) => changes.spill.read(*at, &mut block)?,
                _ => self.read_below(changes, number * BLOCK_BYTES, &mut block)?,
            }
        }
        block[start..start + part.len()].copy_from_slice(part);
        if let Some(Kept::File(at)) = changes.blocks.get(&number) {
            return changes.spill.write(*at, &block);
        }
        let kept = if (changes.in_memory + 1) * BLOCK_BYTES <= self.memory_bytes {
            changes.in_memory += 1;
            Kept::Memory(block)
        } else {
            Kept::File(changes.spill.add(&self.folder, &block)?)
        };
        changes.blocks.insert(number, kept);
        Ok(())
    }
}

impl Changes {
    /// Discards the changed blocks with these numbers.
    fn forget(&mut self, is_gone: impl Fn(u64) -> bool) {
        for (_, kept) in self.blocks.extract_if(|number, _| is_gone(*number)) {
            match kept {
                Kept::Memory(_) => self.in_memory -= 1,
                Kept::File(at) => self.spill.free.push(at),
            }
        }
    }
}

impl Spill {
    fn file(&self) -> &dyn Device {
        self.file.as_deref().expect("a block in the file has been written there")
    }

    fn read(&self, at: u64, block: &mut [u8]) -> Result<()> {
        self.file().read_at(at * BLOCK_BYTES, block)
    }

    fn write(&self, at: u64, block: &[u8]) -> Result<()> {
        self.file().write_at(at * BLOCK_BYTES, block, Placement::Other)
    }

    /// Appends a block; returns its position.
    fn add(&mut self, folder: &Path, block: &[u8]) -> Result<u64> {
        if self.file.is_none() {
            let file: Arc<dyn Device> = Arc::new(FileDevice::temporary(folder, FlushMethod::Fsync)?);
            self.file = Some(if self.is_encrypted { EncryptedDevice::temporary(file)? } else { file });
        }
        let at = self.free.last().copied().unwrap_or(self.blocks);
        self.write(at, block)?;
        if self.free.pop().is_none() {
            self.blocks += 1;
        }
        Ok(at)
    }
}

/// The part of `offset..end` in the block `offset` is in: the block, where the part starts in it, its length.
fn part(offset: u64, end: u64) -> (u64, usize, usize) {
    let (number, start) = (offset / BLOCK_BYTES, offset % BLOCK_BYTES);
    (number, start as usize, (BLOCK_BYTES - start).min(end - offset) as usize)
}

impl Device for Overlay {
    fn name(&self) -> String {
        self.below.name()
    }

    fn len_bytes(&self) -> Result<u64> {
        Ok(self.changes.read().len)
    }

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        let mut changes = self.changes.write();
        if len < changes.len {
            let (number, start, _) = part(len, u64::MAX);
            changes.forget(|block| block > number);
            if changes.blocks.contains_key(&number) {
                self.write_part(&mut changes, number, start, &vec![0; BLOCK_BYTES as usize - start])?;
            }
            changes.below_len = changes.below_len.min(len);
        }
        changes.len = len;
        Ok(())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let changes = self.changes.read();
        let end = offset.saturating_add(buf.len() as u64);
        if end > changes.len {
            return Err(self.error("read", offset, buf.len(), ErrorKind::UnexpectedEof));
        }
        let mut at = offset;
        while at < end {
            let (number, start, mut len) = part(at, end);
            let out = (at - offset) as usize;
            match changes.blocks.get(&number) {
                Some(Kept::Memory(bytes)) => buf[out..out + len].copy_from_slice(&bytes[start..start + len]),
                Some(Kept::File(block)) => {
                    changes.spill.file().read_at(block * BLOCK_BYTES + start as u64, &mut buf[out..out + len])?;
                }
                // As many unchanged blocks as follow each other, at once.
                None => {
                    while at + (len as u64) < end && !changes.blocks.contains_key(&((at + len as u64) / BLOCK_BYTES)) {
                        len += part(at + len as u64, end).2;
                    }
                    self.read_below(&changes, at, &mut buf[out..out + len])?;
                }
            }
            at += len as u64;
        }
        Ok(())
    }

    /// As a file does, a write beyond the end grows the device.
    fn write_at(&self, offset: u64, data: &[u8], _placement: Placement) -> Result<()> {
        let end = offset.checked_add(data.len() as u64);
        let end = end.ok_or_else(|| self.error("write", offset, data.len(), ErrorKind::InvalidInput))?;
        let mut changes = self.changes.write();
        let mut at = offset;
        while at < end {
            let (number, start, len) = part(at, end);
            let from = (at - offset) as usize;
            self.write_part(&mut changes, number, start, &data[from..from + len])?;
            at += len as u64;
        }
        changes.len = changes.len.max(end);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        let whole = offset.div_ceil(BLOCK_BYTES)..offset.saturating_add(len) / BLOCK_BYTES;
        self.changes.write().forget(|block| whole.contains(&block));
        Ok(())
    }

    fn alignment_bytes(&self) -> usize {
        self.below.alignment_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultKind, Faults, MemoryDevice, Operation};

    /// 5 blocks of ones on a device that refuses every change, under overlays that keep all, one or no changed block in
    /// memory.
    fn overlays() -> impl Iterator<Item = (Overlay, MemoryDevice)> {
        [MEMORY_BYTES, BLOCK_BYTES, 0].into_iter().map(|memory_bytes| {
            let below = MemoryDevice::holding(vec![1; 5 * 4096]);
            let faults = Faults::new();
            for operation in [Operation::Write, Operation::Sync, Operation::SetLen, Operation::Discard] {
                faults.fail(operation, 1, FaultKind::ErrorForGood);
            }
            let wrapped = faults.wrap(Arc::new(below.clone()));
            (Overlay::with_memory(wrapped, false, memory_bytes, std::env::temp_dir()).unwrap(), below)
        })
    }

    fn read(overlay: &Overlay, offset: u64, len: usize) -> Vec<u8> {
        let mut buf = vec![9; len];
        overlay.read_at(offset, &mut buf).unwrap();
        buf
    }

    #[test]
    fn changes_are_seen_and_do_not_reach_the_device_below() {
        for (overlay, below) in overlays() {
            overlay.write_at(4096, &[2; 4096], Placement::Other).unwrap();
            overlay.write_at(3 * 4096 - 1, &[3; 2], Placement::Other).unwrap();
            overlay.sync().unwrap();
            let expected = [vec![1; 4096], vec![2; 4096], vec![1; 4095], vec![3; 2], vec![1; 2 * 4096 - 1]].concat();
            assert_eq!(read(&overlay, 0, 5 * 4096), expected);
            assert_eq!(read(&overlay, 4000, 9000), expected[4000..13000]);
            assert_eq!(below.image(), vec![1; 5 * 4096]);
            assert_eq!(overlay.memory_bytes(), overlay.memory_bytes.min(3 * 4096));
        }
    }

    #[test]
    fn what_was_cut_off_is_zeros_when_it_grows_again() {
        for (overlay, _) in overlays() {
            overlay.write_at(2 * 4096, &[2; 3 * 4096], Placement::Other).unwrap();
            overlay.set_len_bytes(2 * 4096 + 10).unwrap();
            assert!(overlay.read_at(2 * 4096, &mut [0; 11]).is_err());
            overlay.set_len_bytes(6 * 4096).unwrap();
            let expected = [vec![1; 2 * 4096], vec![2; 10], vec![0; 4 * 4096 - 10]].concat();
            assert_eq!(read(&overlay, 0, 6 * 4096), expected);
            overlay.write_at(6 * 4096, &[5; 10], Placement::Other).unwrap();
            assert_eq!((overlay.len_bytes().unwrap(), read(&overlay, 6 * 4096, 10)), (6 * 4096 + 10, vec![5; 10]));
        }
    }

    #[test]
    fn discarded_blocks_take_no_room() {
        for (overlay, _) in overlays() {
            overlay.write_at(0, &[2; 4 * 4096], Placement::Other).unwrap();
            overlay.discard(4000, 3 * 4096).unwrap();
            assert_eq!(read(&overlay, 0, 4096), vec![2; 4096]);
            overlay.write_at(4096, &[3; 2 * 4096], Placement::Other).unwrap();
            assert_eq!(read(&overlay, 0, 4 * 4096), [vec![2; 4096], vec![3; 2 * 4096], vec![2; 4096]].concat());
            let changes = overlay.changes.read();
            assert_eq!((changes.in_memory + changes.spill.blocks, changes.blocks.len()), (4, 4));
        }
    }

    #[test]
    fn what_lies_over_an_encrypted_device_is_encrypted_in_the_temporary_file() {
        let keys = crate::DataKeys::random().unwrap();
        let below = keys.wrap(crate::SetFile::Data, Arc::new(MemoryDevice::holding(vec![0; 4 * 4096])));
        let overlay = Overlay::with_memory(below, true, BLOCK_BYTES, std::env::temp_dir()).unwrap();
        overlay.write_at(512, &[2; 2 * 4096], Placement::Other).unwrap();
        assert_eq!(read(&overlay, 0, 3 * 4096), [vec![0; 512], vec![2; 2 * 4096], vec![0; 3584]].concat());
        // A plain file would take anything.
        assert_eq!(overlay.changes.read().spill.file().alignment_bytes(), 512);
    }

    /// Nothing is lost by a write that finds no space.
    #[test]
    fn without_a_temporary_file_a_write_is_an_error() {
        let below: Arc<dyn Device> = Arc::new(MemoryDevice::holding(vec![1; 3 * 4096]));
        let overlay = Overlay::with_memory(below, false, BLOCK_BYTES, PathBuf::from("/nowhere")).unwrap();
        overlay.write_at(0, &[2; 4096], Placement::Other).unwrap();
        let error = overlay.write_at(4096, &[3; 4096], Placement::Other).unwrap_err();
        assert!(error.to_string().contains("create of /nowhere/temporary failed"), "{error}");
        overlay.write_at(10, &[4; 1], Placement::Other).unwrap();
        assert_eq!(read(&overlay, 0, 3 * 4096), [vec![2; 10], vec![4], vec![2; 4085], vec![1; 2 * 4096]].concat());
    }
}
