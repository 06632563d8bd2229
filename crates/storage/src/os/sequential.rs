//! A large file that is written once, sequentially, while other programs use the same disk.
//!
//! Rules
//! 1. Writes bypass the page cache, in pieces of [`PIECE_BYTES`]: they evict nothing from the cache, cost no second
//!    copy, and leave little for the last sync, for which the syncs of other files would wait.
//! 2. The last piece is padded with zeros to whole blocks, and the file is then truncated to its length.
//! 3. On a file system without direct I/O writes are buffered, synced every [`SYNC_BYTES`] and then dropped from the
//!    cache.
//! 4. After an error the file is useless: the caller removes it.

use super::sys::{self, OpenFlags};
use crate::{ALIGNMENT_BYTES, AlignedBuf};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Result, Write};
use std::path::Path;

/// Bytes of a write, small enough that the reads and writes of others do not wait long for it.
const PIECE_BYTES: usize = 256 << 10;
/// Without direct I/O the file is synced after this many bytes.
const SYNC_BYTES: u64 = 32 << 20;

/// A new file that is written from its begin to its end.
#[derive(Debug)]
pub struct SequentialFile {
    file: File,
    is_direct: bool,
    piece: AlignedBuf,
    filled: usize,
    /// Bytes of whole pieces in the file.
    written: u64,
}

impl SequentialFile {
    /// Makes the file, which must not exist.
    ///
    /// # Errors
    /// The operating system's.
    pub fn create(path: &Path) -> Result<SequentialFile> {
        let open = |direct| {
            let mut options = OpenOptions::new();
            let flags = OpenFlags { direct, ..OpenFlags::default() };
            sys::with_flags(options.write(true).create_new(true), flags).open(path)
        };
        let (file, is_direct) = match open(sys::HAS_DIRECT_IO) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                // The file may have been made before its flags were looked at.
                let _ = std::fs::remove_file(path);
                (open(false)?, false)
            }
            other => (other?, sys::HAS_DIRECT_IO),
        };
        Ok(SequentialFile::of(file, is_direct))
    }

    fn of(file: File, is_direct: bool) -> SequentialFile {
        SequentialFile { file, is_direct, piece: AlignedBuf::zeroed(PIECE_BYTES), filled: 0, written: 0 }
    }

    /// Appends.
    ///
    /// # Errors
    /// The operating system's, a full disk among them.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.filled));
            self.piece[self.filled..][..now.len()].copy_from_slice(now);
            (self.filled, bytes) = (self.filled + now.len(), later);
            if self.filled == PIECE_BYTES {
                self.write_piece(PIECE_BYTES)?;
            }
        }
        Ok(())
    }

    /// Writes the remaining bytes, truncates the file to its length and makes it durable, except for its entry in the
    /// folder.
    ///
    /// # Errors
    /// The operating system's.
    pub fn finish(mut self) -> Result<()> {
        let len = self.written + self.filled as u64;
        if self.filled > 0 {
            let whole = self.filled.next_multiple_of(ALIGNMENT_BYTES);
            let filled = self.filled;
            self.piece[filled..whole].fill(0);
            self.write_piece(whole)?;
        }
        self.file.set_len(len)?;
        self.file.sync_all()?;
        sys::forget_cached(&self.file);
        Ok(())
    }

    fn write_piece(&mut self, len: usize) -> Result<()> {
        self.file.write_all(&self.piece[..len])?;
        (self.written, self.filled) = (self.written + len as u64, 0);
        if !self.is_direct && self.written.is_multiple_of(SYNC_BYTES) {
            self.file.sync_data()?;
            sys::forget_cached(&self.file);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_at_any_length() {
        let dir = tempfile::tempdir().unwrap();
        for len in [0, 1, 4095, 4096, 4097, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES + 5000] {
            let path = dir.path().join(len.to_string());
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            for step in [997, 300_000] {
                let mut file = SequentialFile::create(&path).unwrap();
                bytes.chunks(step).for_each(|part| file.write(part).unwrap());
                file.finish().unwrap();
                assert!(std::fs::read(&path).unwrap() == bytes, "{len} bytes in steps of {step}");
                std::fs::remove_file(&path).unwrap();
            }
        }
    }

    #[test]
    fn without_direct_writes_all_is_written_too_over_several_syncs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("buffered");
        let mut file = SequentialFile::of(File::create_new(&path).unwrap(), false);
        let part: Vec<u8> = (0..1_000_003).map(|at| (at % 251) as u8).collect();
        let parts = 2 * SYNC_BYTES / 1_000_003 + 2;
        (0..parts).for_each(|_| file.write(&part).unwrap());
        file.finish().unwrap();
        assert!(std::fs::read(&path).unwrap() == part.repeat(parts as usize));
    }

    #[test]
    fn a_file_that_is_there_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("there");
        std::fs::write(&path, "what was there").unwrap();
        assert_eq!(SequentialFile::create(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"what was there");
    }
}
