//! Copies of a disk's bytes at one moment, so that many runs can begin with the same state.
//!
//! Rules
//! 1. Pieces that are all zeros are not stored.
//! 2. The file of an image is a raw disk image: sparse, of the disk's length.

use crate::error::{DeviceError, Result};
use crate::store::Store;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PIECE_BYTES: u64 = 64 << 10;

/// The bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    len: u64,
    pieces: Vec<(u64, Box<[u8]>)>,
}

impl Image {
    /// The contents of a store of `len` bytes.
    pub(crate) fn of(store: &dyn Store, len: u64) -> Result<Image> {
        Image::read(len, |offset, buf| store.read(offset, buf))
    }

    fn read(len: u64, read: impl Fn(u64, &mut [u8]) -> Result<()>) -> Result<Image> {
        let mut pieces = Vec::new();
        for offset in (0..len).step_by(PIECE_BYTES as usize) {
            let mut piece = vec![0; PIECE_BYTES.min(len - offset) as usize];
            read(offset, &mut piece)?;
            if piece.iter().any(|byte| *byte != 0) {
                pieces.push((offset, piece.into_boxed_slice()));
            }
        }
        Ok(Image { len, pieces })
    }

    /// Replaces the contents of `store`, which has the same length.
    pub(crate) fn put(&self, store: &dyn Store) -> Result<()> {
        store.punch(0, self.len)?;
        self.pieces.iter().try_for_each(|(offset, piece)| store.write(*offset, piece))
    }

    /// Length of the disk.
    pub fn len_bytes(&self) -> u64 {
        self.len
    }

    /// Writes it into a new file.
    pub fn write_to(&self, path: &Path) -> Result<()> {
        let failed = |e| DeviceError::io(format!("writing {}", path.display()), e);
        let file = File::create(path).map_err(failed)?;
        file.set_len(self.len).map_err(failed)?;
        self.pieces.iter().try_for_each(|(offset, piece)| file.write_all_at(piece, *offset)).map_err(failed)
    }

    /// Reads it from a file.
    pub fn read_from(path: &Path) -> Result<Image> {
        let failed = |e| DeviceError::io(format!("reading {}", path.display()), e);
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        Image::read(len, |offset, buf| file.read_exact_at(buf, offset).map_err(failed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    #[test]
    fn images_bring_bytes_back() {
        let (store, folder) = (MemoryStore::new(1 << 20), tempfile::tempdir().unwrap());
        store.write(70_000, &[7; 5000]).unwrap();
        let image = Image::of(&store, 1 << 20).unwrap();
        let path = folder.path().join("image");
        image.write_to(&path).unwrap();
        assert_eq!(Image::read_from(&path).unwrap(), image);
        store.write(0, &[9; 1 << 20]).unwrap();
        image.put(&store).unwrap();
        assert_eq!(Image::of(&store, 1 << 20).unwrap(), image);
    }
}
